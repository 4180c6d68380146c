/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of requests in the volume server, against a disk that serves a fixed number of requests
 * per second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "volumed/order.h"

#define MSEC		1000000ull
#define SEC		(1000 * MSEC)
#define MAX_VOLUMES	1000
#define MAX_REQUESTS	4096
#define DEPTH		8

/* A client that keeps `outstanding` requests open; each takes the disk 1/rate, one at a time. */
struct client {
	struct ebb_order_volume volume;
	uint64_t bytes;
	unsigned int outstanding;
	uint64_t on_usec, off_usec;	/* works and pauses; off 0: never pauses */
};

struct world {
	struct ebb_order order;
	uint64_t now;
	uint64_t service;		/* of the disk, nanoseconds per request */
	uint64_t disk_free_at;
	struct client clients[MAX_VOLUMES];
	size_t num_clients;
	struct ebb_order_request requests[MAX_REQUESTS];
	size_t num_requests;
	struct ebb_order_request *at_disk[DEPTH];	/* in the order in which they end */
	uint64_t ends[DEPTH];
	size_t num_at_disk;
	struct ebb_order_request *idle[MAX_REQUESTS];	/* of clients that pause */
	size_t num_idle;
};

static struct world *world_new(uint64_t iops)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	ebb_order_init(&w->order, DEPTH);
	w->service = SEC / iops;
	w->now = SEC;
	return w;
}

static struct client *add(struct world *w, unsigned int outstanding, struct ebb_order_promise p)
{
	struct client *c = &w->clients[w->num_clients++];

	p.weight = p.weight ? p.weight : 100;
	p.penalty = p.penalty ? p.penalty : 1;
	ebb_order_volume_init(&c->volume, &p);
	c->bytes = 4096;
	c->outstanding = outstanding;
	return c;
}

static struct client *client_of(struct world *w, const struct ebb_order_request *r)
{
	(void)w;
	return (struct client *)((char *)r->volume - offsetof(struct client, volume));
}

static bool is_on(const struct world *w, const struct client *c)
{
	const uint64_t usec = w->now / 1000;

	return !c->off_usec || usec % (c->on_usec + c->off_usec) < c->on_usec;
}

static void submit(struct world *w, struct client *c, struct ebb_order_request *r)
{
	if (is_on(w, c)) {
		ebb_order_arrive(&w->order, &c->volume, r, c->bytes, w->now);
	} else {
		r->volume = &c->volume;
		w->idle[w->num_idle++] = r;
	}
}

static void open_requests(struct world *w)
{
	for (size_t i = 0; i < w->num_clients; i++) {
		struct client *c = &w->clients[i];

		while (c->outstanding) {
			c->outstanding--;
			assert_true(w->num_requests < MAX_REQUESTS);
			submit(w, c, &w->requests[w->num_requests++]);
		}
	}
}

static uint64_t dispatch(struct world *w)
{
	struct ebb_order_request *r;
	uint64_t wake = EBB_ORDER_NEVER;

	while ((r = ebb_order_next(&w->order, w->now, &wake))) {
		assert_true(w->num_at_disk < DEPTH);
		if (w->disk_free_at < w->now)
			w->disk_free_at = w->now;
		w->disk_free_at += w->service;
		w->ends[w->num_at_disk] = w->disk_free_at;
		w->at_disk[w->num_at_disk++] = r;
	}
	return wake;
}

static void complete_first(struct world *w)
{
	struct ebb_order_request *r = w->at_disk[0];

	w->num_at_disk--;
	memmove(w->at_disk, w->at_disk + 1, w->num_at_disk * sizeof(w->at_disk[0]));
	memmove(w->ends, w->ends + 1, w->num_at_disk * sizeof(w->ends[0]));
	ebb_order_complete(&w->order, r->volume, w->now);
	submit(w, client_of(w, r), r);
}

static void resume_idle(struct world *w)
{
	for (size_t i = 0; i < w->num_idle;) {
		struct ebb_order_request *r = w->idle[i];

		if (!is_on(w, client_of(w, r))) {
			i++;
			continue;
		}
		w->idle[i] = w->idle[--w->num_idle];
		submit(w, client_of(w, r), r);
	}
}

static void run(struct world *w, uint64_t nsec)
{
	const uint64_t end = w->now + nsec;

	open_requests(w);
	while (w->now < end) {
		uint64_t next = dispatch(w);

		if (w->num_at_disk && w->ends[0] < next)
			next = w->ends[0];
		if (w->num_idle && next > w->now + MSEC / 10)
			next = w->now + MSEC / 10;
		w->now = next < end ? next : end;
		while (w->num_at_disk && w->ends[0] <= w->now)
			complete_first(w);
		resume_idle(w);
	}
	for (size_t i = 0; i < w->num_clients; i++)
		ebb_order_meter_at(&w->clients[i].volume, w->now);
}

static uint64_t issued(const struct client *c)
{
	return c->volume.meter.issued;
}

static void assert_about(uint64_t got, uint64_t want, unsigned int percent)
{
	const uint64_t off = want * percent / 100;

	if (got + off < want || got > want + off)
		fail_msg("got %lu, want %lu within %u%%", (unsigned long)got, (unsigned long)want,
			 percent);
}

/* ---- tests ---- */

/* Rules 1 to 3: two that are promised something, and a flood that gets the rest. */
static void test_reservations_hold_beside_a_flood(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 200 });
	struct client *flood = add(w, 1000, (struct ebb_order_promise){ .weight = 10000 });

	(void)state;
	run(w, 10 * SEC);
	assert_about(issued(a), 6000, 1);
	assert_about(issued(b), 2000, 1);
	assert_about(issued(flood), 2000, 3);
	assert_true(w->order.in_flight <= DEPTH);
	free(w);
}

/* Every second of it, not only the mean. */
static void test_each_second_holds(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 600 });
	uint64_t before;

	(void)state;
	for (int i = 0; i < 20; i++)
		add(w, 64, (struct ebb_order_promise){ .weight = 1000 });
	run(w, SEC);
	for (int second = 0; second < 10; second++) {
		before = issued(a);
		run(w, SEC);
		assert_true(issued(a) - before >= 597);
	}
	free(w);
}

static void test_spare_goes_by_weight(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .weight = 300 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .weight = 100 });

	(void)state;
	run(w, 4 * SEC);
	assert_about(issued(a), 3000, 1);
	assert_about(issued(b), 1000, 2);
	free(w);
}

/* Rule 3: nobody else wants the disk, so a reservation is no maximum. */
static void test_spare_is_used(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 10 });

	(void)state;
	run(w, SEC);
	assert_about(issued(a), 1000, 2);
	free(w);
}

/* Spare capacity that a volume had does not count against its reservation later. */
static void test_spare_is_no_debt(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 500 });
	uint64_t before;

	(void)state;
	run(w, 10 * SEC);
	add(w, 1000, (struct ebb_order_promise){ .weight = 10000 });
	before = issued(a);
	run(w, SEC);
	assert_true(issued(a) - before >= 490);
	free(w);
}

/* Who used no spare capacity for a while has not saved it. */
static void test_spare_is_not_saved(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .weight = 100 });
	struct client *late;
	uint64_t before;

	(void)state;
	run(w, 10 * SEC);
	late = add(w, 16, (struct ebb_order_promise){ .weight = 100 });
	before = issued(a);
	run(w, 2 * SEC);
	assert_about(issued(a) - before, 1000, 2);
	assert_about(issued(late), 1000, 2);
	free(w);
}

/* Rule 4. */
static void test_maximum_holds(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .max_iops = 100 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .max_bytes = 409600,
				.reserve_iops = 500 });

	(void)state;
	run(w, 10 * SEC);
	assert_about(issued(a), 1000, 1);
	assert_about(issued(b), 1000, 1);
	free(w);
}

static void test_size_is_charged(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .max_iops = 100,
				.weight = 10000 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_bytes = 10 << 20 });

	(void)state;
	a->bytes = 32 << 20;
	b->bytes = 1 << 20;
	add(w, 100, (struct ebb_order_promise){ .weight = 10000 });
	run(w, 20 * SEC);
	/* 512 units of 64 KiB each, at 100 per second: one in 5.12 s. */
	assert_about(issued(a), 4, 25);
	assert_true(issued(b) >= 199);
	free(w);
}

/* Rule 6. */
static void test_overbooked_is_proportional(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 200 });
	struct client *flood = add(w, 64, (struct ebb_order_promise){ .weight = 10000 });
	struct client *late;
	uint64_t before;

	(void)state;
	run(w, 20 * SEC);
	assert_about(issued(a), 6000, 2);
	assert_about(issued(b), 2000, 2);
	assert_true(issued(flood) <= 40);
	/* One that was idle has its part at once, and does not wait until others caught up. */
	late = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 800 });
	before = issued(a);
	run(w, 2 * SEC);
	assert_about(issued(late), 400, 10);
	assert_about(issued(a) - before, 300, 10);
	free(w);
}

/*
 * A client that pauses for a moment, again and again, loses that moment and not more: it has
 * requests that wait for about three quarters of the time, in which 300 per second are its part.
 */
static void test_overbooked_with_short_pauses(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 10, (struct ebb_order_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 200 });

	(void)state;
	a->on_usec = 100000;
	a->off_usec = 40000;
	run(w, 14 * SEC);
	assert_true(issued(a) >= 3150);
	assert_true(issued(b) >= 1750);
	free(w);
}

static void test_overbooked_by_penalty(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 300,
				.penalty = 10 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 300 });

	(void)state;
	ebb_order_set_policy(&w->order, EBB_ORDER_PENALTY);
	run(w, 20 * SEC);
	assert_about(issued(a), 6000, 2);
	assert_about(issued(b), 2000, 3);
	free(w);
}

static void test_policy_can_go_back(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 400,
				.penalty = 10 });
	struct client *b = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 400 });
	uint64_t before;

	(void)state;
	ebb_order_set_policy(&w->order, EBB_ORDER_PENALTY);
	run(w, 10 * SEC);
	assert_true(issued(b) < 100);
	ebb_order_set_policy(&w->order, EBB_ORDER_PROPORTIONAL);
	before = issued(a);
	run(w, 10 * SEC);
	assert_about(issued(a) - before, 2000, 3);
	free(w);
}

/* Idle time is nobody's fault, and gives no credit. */
static void test_pauses_give_no_credit(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 500 });

	(void)state;
	a->on_usec = a->off_usec = 500000;
	add(w, 100, (struct ebb_order_promise){ .weight = 10000 });
	run(w, 10 * SEC);
	/* What waits at the end of a burst is still work: 15 requests each time. */
	assert_about(issued(a), 2500 + 10 * 15, 2);
	assert_about(a->volume.meter.busy_usec, 5000000 + 10 * 30000, 2);
	free(w);
}

static void test_promise_changes_at_once(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 1 });
	struct ebb_order_promise p = { .reserve_iops = 700, .weight = 1, .penalty = 1 };
	uint64_t before;

	(void)state;
	add(w, 1000, (struct ebb_order_promise){ .weight = 10000 });
	/* In the middle between two deadlines of the old promise. */
	run(w, 3 * SEC + SEC / 3);
	ebb_order_set_promise(&w->order, &a->volume, &p, w->now);
	before = issued(a);
	run(w, 100 * MSEC);
	assert_about(issued(a) - before, 70, 5);
	free(w);
}

/* What a drain needs. */
static void test_force_goes_past_all_rules(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .max_iops = 1 });
	unsigned int num = 0;

	(void)state;
	run(w, MSEC);
	assert_int_equal(issued(a), 1);
	while (ebb_order_force(&w->order, &a->volume, w->now))
		num++;
	assert_int_equal(num, 16);
	assert_int_equal(a->volume.queued, 0);
	assert_int_equal(a->volume.in_flight, 16);
	free(w);
}

static void test_meter_counts_delays(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_order_promise){ .reserve_iops = 800 });
	const struct ebb_order_meter *m = &a->volume.meter;
	uint64_t sum = 0;

	(void)state;
	run(w, 10 * SEC);
	for (int i = 0; i < EBB_ORDER_DELAYS; i++)
		sum += m->delays[i];
	assert_int_equal(sum, m->due_units);
	assert_int_equal(m->arrived, m->issued + a->volume.queued);
	assert_about(m->promised_microunits / 1000000, 8000, 1);
	assert_true(m->late_units > 3900 && m->late_max_nsec <= EBB_ORDER_LAG_NSEC + 10 * MSEC);
	free(w);
}

static void assert_whole(const struct ebb_order *o)
{
	for (int id = 0; id < EBB_ORDER_HEAPS; id++) {
		const struct ebb_order_heap *h = &o->heaps[id];

		for (unsigned int i = 0; i < h->num; i++) {
			assert_int_equal(h->entries[i].volume->at[id], i + 1);
			assert_true(h->entries[i].volume->queued > 0);
			assert_true(!i || h->entries[(i - 1) / 2].key <= h->entries[i].key);
		}
	}
}

/* Anything at random: each volume with requests is where it can be found. */
static void test_heaps_stay_whole(void **state)
{
	struct world *w = world_new(1000);
	unsigned int seed = 1, at_disk = 0, waiting = 0;
	uint64_t wake;

	(void)state;
	for (int i = 0; i < 50; i++)
		add(w, 0, (struct ebb_order_promise){ .reserve_iops = i % 3 * 20,
			.max_iops = i % 4 ? 0 : 60, .weight = 1 + i, .penalty = i % 5 });
	for (int i = 0; i < 200000; i++) {
		struct client *c = &w->clients[rand_r(&seed) % 50];
		const struct ebb_order_promise p = { .reserve_iops = rand_r(&seed) % 2 * 50,
						     .weight = 7, .penalty = 3 };
		const int what = rand_r(&seed) % 98;

		w->now += rand_r(&seed) % (2 * MSEC);
		if (what < 45 && w->num_requests < MAX_REQUESTS) {
			ebb_order_arrive(&w->order, &c->volume, &w->requests[w->num_requests++],
					 4096, w->now);
			waiting++;
		} else if (what < 95 && c->volume.in_flight) {
			ebb_order_complete(&w->order, &c->volume, w->now);
			at_disk--;
		} else if (what == 95) {
			ebb_order_set_promise(&w->order, &c->volume, &p, w->now);
		} else if (what == 96) {
			ebb_order_set_policy(&w->order, rand_r(&seed) % 2 ?
					     EBB_ORDER_PENALTY : EBB_ORDER_PROPORTIONAL);
		} else if (what > 96 ? ebb_order_force(&w->order, &c->volume, w->now) :
			   ebb_order_next(&w->order, w->now, &wake)) {
			at_disk++;
			waiting--;
		}
		if (w->num_requests == MAX_REQUESTS && !waiting)
			w->num_requests = 0;
		assert_whole(&w->order);
		assert_int_equal(w->order.heaps[EBB_ORDER_HEAP_LIMITED].num +
				 w->order.heaps[EBB_ORDER_HEAP_SPARE].num == 0, waiting == 0);
	}
	assert_int_equal(w->order.in_flight, at_disk);
	free(w);
}

static void test_many_volumes(void **state)
{
	struct world *w = world_new(10000);

	(void)state;
	for (int i = 0; i < MAX_VOLUMES; i++)
		add(w, 4, (struct ebb_order_promise){ .reserve_iops = i < 100 ? 90 : 0 });
	run(w, SEC);
	for (int i = 0; i < 100; i++)
		assert_true(issued(&w->clients[i]) >= 87);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reservations_hold_beside_a_flood),
		cmocka_unit_test(test_each_second_holds),
		cmocka_unit_test(test_spare_goes_by_weight),
		cmocka_unit_test(test_spare_is_used),
		cmocka_unit_test(test_spare_is_no_debt),
		cmocka_unit_test(test_spare_is_not_saved),
		cmocka_unit_test(test_maximum_holds),
		cmocka_unit_test(test_size_is_charged),
		cmocka_unit_test(test_overbooked_is_proportional),
		cmocka_unit_test(test_overbooked_with_short_pauses),
		cmocka_unit_test(test_overbooked_by_penalty),
		cmocka_unit_test(test_policy_can_go_back),
		cmocka_unit_test(test_pauses_give_no_credit),
		cmocka_unit_test(test_promise_changes_at_once),
		cmocka_unit_test(test_force_goes_past_all_rules),
		cmocka_unit_test(test_meter_counts_delays),
		cmocka_unit_test(test_heaps_stay_whole),
		cmocka_unit_test(test_many_volumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
