// SPDX-License-Identifier: GPL-2.0-or-later
/* Maxima, depth, drains, flows and bad input of the scheduler of the volume server. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/volumed/tags_rig.h"
#include "volumed/flow.h"

/* ---- maxima and depth ---- */

/* Rule 4. */
static void test_maximum_holds(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .max_iops = 100 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .max_bytes = 409600,
				.reserve_iops = 500 });

	(void)state;
	run(w, 10 * SEC);
	assert_about(a->issued, 1000, 1);
	assert_about(b->issued, 1000, 1);
	free(w);
}

/* Nor does a low maximum of before hold anything back. */
static void test_maximum_changes_at_once(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .max_iops = 1 });
	struct ebb_tags_promise p = { .max_iops = 500, .weight = 1 };

	(void)state;
	run(w, SEC / 2);
	assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	a->issued = 0;
	run(w, 100 * MSEC);
	assert_in_range(a->issued, 49, 56);
	free(w);
}

/* Timers that are late, by less than EBB_TAGS_BURST_NSEC, cost nothing of a maximum. */
static void test_maximum_with_late_timers(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 64, (struct ebb_tags_promise){ .max_iops = 1000 });
	struct request *r;
	uint64_t wake;

	(void)state;
	open_requests(w);
	for (int i = 0; i < 200; i++) {
		w->now += 5 * MSEC;
		while ((r = next(w, &wake))) {
			ebb_tags_done(&w->tags, &r->tags);
			submit(w, a, r);
		}
	}
	assert_about(a->issued, 1000, 2);
	free(w);
}

/* A maximum that equals the reservation takes nothing away from it. */
static void test_maximum_at_reservation(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600,
				.max_iops = 600 });

	(void)state;
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	run(w, 10 * SEC);
	assert_about(a->issued, 6000, 1);
	free(w);
}

/* A volume that is late because of its own maximum does not make others late. */
static void test_maximum_stops_no_clock(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 500,
				.max_bytes = 4096 });
	struct client *b = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 1000 });
	uint64_t wake;

	(void)state;
	submit(w, a, new_request(w));
	submit(w, a, new_request(w));
	assert_non_null(next(w, &wake));
	/* Others have filled the disk, which does nothing. */
	for (int i = 0; i < DEPTH; i++) {
		submit(w, b, new_request(w));
		assert_non_null(next(w, &wake));
		w->now += MSEC;
	}
	for (int i = 0; i < 18; i++) {
		w->now += 60 * MSEC;
		assert_null(next(w, &wake));
	}
	assert_int_equal(w->tags.heaps[EBB_TAGS_HEAP_DUE].num, 1);
	assert_int_equal(w->tags.clock, w->now);
	free(w);
}

/* What a drain needs: past maxima and past the depth, and as usual afterwards. */
static void test_drain_goes_past_all_rules(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .max_iops = 1 });
	unsigned int num = 0;
	uint64_t wake;

	(void)state;
	run(w, MSEC / 2);
	assert_int_equal(a->issued, 1);
	ebb_tags_drain_begin(&w->tags, &a->volume, w->now);
	ebb_tags_drain_begin(&w->tags, &a->volume, w->now);
	while (next(w, &wake))
		num++;
	assert_int_equal(num, 15);
	assert_int_equal(a->volume.waiting, 0);
	assert_int_equal(a->volume.in_flight, 16);
	ebb_tags_drain_end(&w->tags, &a->volume, w->now);
	/* It is drained still, and what comes goes. */
	submit(w, a, new_request(w));
	assert_non_null(next(w, &wake));
	ebb_tags_drain_end(&w->tags, &a->volume, w->now);
	submit(w, a, new_request(w));
	assert_null(next(w, &wake));
	free(w);
}

/* What a removal needs: beside one who gets all, and held back by a maximum, all are given up. */
static void test_cancelled(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 1000 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .max_iops = 1 });
	struct client *c = add(w, 16, (struct ebb_tags_promise){ .weight = 1 });
	struct request *flush = new_request(w);
	unsigned int num = 0, at_disk;
	const struct ebb_tags_request *r;

	(void)state;
	run(w, SEC);
	b->flow = EBB_TAGS_FLUSHES;
	submit(w, b, flush);
	at_disk = b->volume.in_flight;
	assert_true(b->volume.waiting >= 10 && c->volume.waiting >= 10);
	for (num = b->volume.waiting; num > 0; num--) {
		r = ebb_tags_cancel(&w->tags, &b->volume, w->now);
		assert_ptr_equal(r->volume, &b->volume);
		assert_int_equal(b->volume.waiting, num - 1);
	}
	assert_null(ebb_tags_cancel(&w->tags, &b->volume, w->now));
	assert_int_equal(b->volume.flushes, 0);
	assert_int_equal(b->volume.in_flight, at_disk);
	while (ebb_tags_cancel(&w->tags, &c->volume, w->now))
		num++;
	assert_true(num >= 10);
	assert_int_equal(w->tags.waiting, a->volume.waiting);
	/* Others go on, and a request that comes is one like any other. */
	b->outstanding = c->outstanding = 0;
	num = (unsigned int)a->issued;
	run(w, SEC);
	assert_about(a->issued - num, 1000, 1);
	assert_int_equal(b->volume.in_flight + c->volume.in_flight, 0);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &b->volume), 0);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &c->volume), 0);
	free(w);
}

/* Rule 3: a request that is due does not wait for one of a flood to be done. */
static void test_due_goes_beyond_depth(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 10 });
	uint64_t wake;

	(void)state;
	add(w, 100, (struct ebb_tags_promise){ .weight = 10000 });
	open_requests(w);
	dispatch(w);
	assert_int_equal(w->num_at_disk, DEPTH);
	submit(w, a, new_request(w));
	submit(w, a, new_request(w));
	assert_ptr_equal(next(w, &wake)->client, a);
	/* The second is due in 100 ms, and there is no more room until one is done. */
	assert_null(next(w, &wake));
	assert_int_equal(wake, EBB_TAGS_NEVER);
	/* If the first is done there is, and the scheduler says when to ask. */
	ebb_tags_done(&w->tags, &w->requests[100].tags);
	assert_null(next(w, &wake));
	assert_int_equal(wake, w->now + 100 * MSEC);
	assert_ptr_equal(ebb_tags_waits(&w->tags), &a->volume);
	w->now = wake;
	assert_ptr_equal(next(w, &wake)->client, a);
	free(w);
}

/* Rule 3: of large requests fewer are at the disk. */
static void test_depth_in_bytes(void **state)
{
	struct world *w = world_new(1000);
	struct ebb_tags_config config = usual;
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 10 });
	struct client *flood = add(w, 100, (struct ebb_tags_promise){ .weight = 10000 });
	struct request *r;
	uint64_t wake;

	(void)state;
	config.depth_bytes = 8 << 20;
	assert_int_equal(ebb_tags_configure(&w->tags, &config, w->now), 0);
	flood->bytes = 4 << 20;
	open_requests(w);
	dispatch(w);
	assert_int_equal(w->num_at_disk, 2);
	submit(w, a, new_request(w));
	r = next(w, &wake);
	assert_ptr_equal(r->client, a);
	ebb_tags_done(&w->tags, &r->tags);
	/* A larger one than that goes when no other is there. */
	flood->bytes = 32 << 20;
	w->most_at_disk = 0;
	run(w, 100 * SEC);
	assert_true(flood->issued >= 100);
	assert_int_equal(w->num_at_disk, 1);
	free(w);
}

/* ---- flows ---- */

/* Rule 7: a burst of 5 requests behind a scan that has 1000 waiting. */
static void test_burst_behind_scan(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 1000, (struct ebb_tags_promise){ .reserve_iops = 100 });
	struct request *burst[5];
	uint64_t came, before;

	(void)state;
	a->flow = 1;
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	run(w, SEC);
	a->flow = 0;
	before = a->due;
	came = w->now;
	for (size_t i = 0; i < 5; i++) {
		burst[i] = new_request(w);
		submit(w, a, burst[i]);
	}
	a->flow = 1;
	run(w, SEC);
	/* Each second slot is the burst's; the volume gets what it gets anyway. */
	for (size_t i = 0; i < 5; i++) {
		assert_true(burst[i]->issued_at >= came);
		assert_true(burst[i]->issued_at - came <= (2 * i + 2) * 11 * MSEC);
	}
	assert_in_range(a->due - before, 99, 102);
	free(w);
}

/* A flow that had nothing waiting has saved nothing, and large requests count more. */
static void test_flows_take_turns_by_size(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 1000 });
	unsigned int small = 0, large = 0;
	struct request *r;
	uint64_t wake;

	(void)state;
	for (size_t i = 0; i < 200; i++) {
		a->flow = i % 2 ? 3 : 5;
		a->bytes = i % 2 ? 4 * 65536 : 4096;
		submit(w, a, new_request(w));
	}
	for (size_t i = 0; i < 100; i++) {
		r = next(w, &wake);
		small += r->tags.flow == 5;
		large += r->tags.flow == 3;
		ebb_tags_done(&w->tags, &r->tags);
		w->now += 10 * MSEC;
	}
	assert_in_range(small, 79, 81);
	assert_in_range(large, 19, 21);
	free(w);
}

static void test_flows_save_nothing(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 1000 });
	unsigned int old = 0;
	struct request *r;
	uint64_t wake;

	(void)state;
	for (size_t i = 0; i < 400; i++) {
		a->flow = i < 300 ? 5 : 3;
		submit(w, a, new_request(w));
		if (i >= 200)
			continue;
		/* These go before flow 3 has any. */
		r = next(w, &wake);
		ebb_tags_done(&w->tags, &r->tags);
		w->now += 10 * MSEC;
	}
	for (size_t i = 0; i < 20; i++) {
		r = next(w, &wake);
		old += r->tags.flow == 5;
		ebb_tags_done(&w->tags, &r->tags);
		w->now += 10 * MSEC;
	}
	assert_in_range(old, 9, 11);
	free(w);
}

static void test_scans_are_seen(void **state)
{
	struct ebb_flow f = { 0 };
	uint64_t scan = 1 << 30, other = 1ull << 40;
	unsigned int flow = 0, of_scan = 0, seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 100; i++) {
		flow = ebb_flow_of(&f, scan, 65536);
		scan += 65536;
		assert_true(i < EBB_FLOW_RUN ? flow == 0 : flow > 0);
		assert_true(flow < EBB_TAGS_FLOWS);
		if (i == EBB_FLOW_RUN)
			of_scan = flow;
		assert_true(!flow || flow == of_scan);
		/* Five others between two of the scan. */
		for (unsigned int k = 0; k < 5; k++)
			assert_int_equal(ebb_flow_of(&f, (uint64_t)rand_r(&seed) << 12 | 1, 4096),
					 0);
	}
	/* A second scan has a flow of its own. */
	for (unsigned int i = 0; i < 10; i++) {
		flow = ebb_flow_of(&f, other, 4096);
		other += 4096;
		assert_int_equal(ebb_flow_of(&f, scan, 65536), of_scan);
		scan += 65536;
	}
	assert_true(flow && flow != of_scan);
	/* The same block again and again is no scan. */
	memset(&f, 0, sizeof(f));
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(ebb_flow_of(&f, 8192, 4096), 0);
}

/* ---- bad input ---- */

static void assert_refused(struct ebb_tags *t, int error, struct ebb_tags_promise p)
{
	const struct ebb_tags_promise good = { .weight = 1 };
	struct ebb_tags_volume v;
	const unsigned int num = t->num_volumes;
	const uint64_t iops = t->promised_iops, bytes = t->promised_bytes;

	assert_int_equal(ebb_tags_volume_add(t, &v, &p), error);
	assert_int_equal(ebb_tags_volume_add(t, &v, &good), 0);
	assert_int_equal(ebb_tags_volume_set(t, &v, &p, SEC), error);
	assert_memory_equal(&v.promise, &good, sizeof(good));
	assert_int_equal(ebb_tags_volume_remove(t, &v), 0);
	assert_int_equal(t->num_volumes, num);
	assert_int_equal(t->promised_iops, iops);
	assert_int_equal(t->promised_bytes, bytes);
}

static void test_bad_promises(void **state)
{
	struct world *w = world_new(1000);
	struct ebb_tags_config config = usual;
	struct ebb_tags_promise p = { .reserve_iops = 600, .weight = 1 };
	struct ebb_tags_volume v;

	(void)state;
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){ .weight = 0 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = EBB_TAGS_MAX_WEIGHT + 1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .penalty = EBB_TAGS_MAX_PENALTY + 1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .reserve_iops = EBB_RATE_MAX_IOPS + 1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .max_iops = UINT64_MAX });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .reserve_bytes = (uint64_t)-1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .max_bytes = EBB_RATE_MAX_BYTES + 1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .reserve_iops = 2, .max_iops = 1 });
	assert_refused(&w->tags, -EINVAL, (struct ebb_tags_promise){
		.weight = 1, .reserve_bytes = 2, .max_bytes = 1 });
	/* More than the disk can do; what is promised already counts, and what is replaced not. */
	config.capacity_iops = 1000;
	config.capacity_bytes = 1 << 20;
	assert_int_equal(ebb_tags_configure(&w->tags, &config, SEC), 0);
	assert_int_equal(ebb_tags_volume_add(&w->tags, &v, &p), 0);
	p.reserve_iops = 400;
	assert_refused(&w->tags, -ENOSPC, (struct ebb_tags_promise){
		.weight = 1, .reserve_iops = 401 });
	assert_refused(&w->tags, -ENOSPC, (struct ebb_tags_promise){
		.weight = 1, .reserve_bytes = (1 << 20) + 1 });
	p.reserve_iops = 1000;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &v, &p, SEC), 0);
	/* The capacity turns out to be less: what is promised stays, and can only become less. */
	config.capacity_iops = 500;
	assert_int_equal(ebb_tags_configure(&w->tags, &config, SEC), 0);
	assert_int_equal(ebb_tags_volume_set(&w->tags, &v, &p, SEC), 0);
	p.reserve_iops = 900;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &v, &p, SEC), 0);
	p.reserve_iops = 901;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &v, &p, SEC), -ENOSPC);
	/* Allowed. */
	config.overbook_percent = 200;
	assert_int_equal(ebb_tags_configure(&w->tags, &config, SEC), 0);
	assert_int_equal(ebb_tags_volume_set(&w->tags, &v, &p, SEC), 0);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &v), 0);
	assert_int_equal(w->tags.promised_iops, 0);
	free(w);
}

static void test_bad_configurations(void **state)
{
	struct world *w = world_new(1000);
	const struct ebb_tags_config bad[] = {
		{ .depth = 0, .overbook_percent = 100 },
		{ .depth = EBB_TAGS_MAX_DEPTH + 1, .overbook_percent = 100 },
		{ .depth = 1, .overbook_percent = 0 },
		{ .depth = 1, .overbook_percent = EBB_TAGS_MAX_OVERBOOK + 1 },
		{ .depth = 1, .overbook_percent = 100, .policy = 2 },
		{ .depth = 1, .overbook_percent = 100, .capacity_iops = UINT64_MAX },
		{ .depth = 1, .overbook_percent = 100, .capacity_bytes = UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ebb_tags_configure(&w->tags, &bad[i], SEC), -EINVAL);
		assert_memory_equal(&w->tags.config, &usual, sizeof(usual));
	}
	free(w);
}

static void test_bad_requests(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 1 });
	struct ebb_tags_request r = { .flow = EBB_TAGS_FLOWS };
	uint64_t wake;

	(void)state;
	assert_int_equal(ebb_tags_arrive(&w->tags, &a->volume, &r, 1, w->now), -EINVAL);
	r.flow = 0;
	assert_int_equal(ebb_tags_arrive(&w->tags, &a->volume, &r, EBB_RATE_MAX_REQUEST + 1,
					 w->now), -EINVAL);
	assert_int_equal(w->tags.waiting, 0);
	assert_null(ebb_tags_next(&w->tags, w->now, &wake));
	/* The largest at the least rate; times stay in order. */
	assert_int_equal(ebb_tags_arrive(&w->tags, &a->volume, &r, EBB_RATE_MAX_REQUEST, w->now),
			 0);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &a->volume), -EBUSY);
	assert_ptr_equal(ebb_tags_next(&w->tags, w->now, &wake), &r);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &a->volume), -EBUSY);
	assert_int_equal(a->volume.slot, w->now + 32768 * SEC);
	ebb_tags_done(&w->tags, &r);
	assert_int_equal(ebb_tags_volume_remove(&w->tags, &a->volume), 0);
	free(w);
}

static void test_too_many_volumes(void **state)
{
	struct world *w = world_new(1000);
	struct ebb_tags_volume *v = calloc(EBB_TAGS_MAX_VOLUMES + 1, sizeof(*v));
	struct ebb_tags_request *r = calloc(EBB_TAGS_MAX_VOLUMES, sizeof(*r));
	const struct ebb_tags_promise p = { .reserve_iops = 1, .weight = 1 };
	uint64_t wake;

	(void)state;
	assert_true(v && r);
	for (size_t i = 0; i < EBB_TAGS_MAX_VOLUMES; i++) {
		assert_int_equal(ebb_tags_volume_add(&w->tags, &v[i], &p), 0);
		assert_int_equal(ebb_tags_arrive(&w->tags, &v[i], &r[i], 1, w->now), 0);
	}
	assert_int_equal(ebb_tags_volume_add(&w->tags, &v[EBB_TAGS_MAX_VOLUMES], &p), -ENFILE);
	for (size_t i = 0; i < EBB_TAGS_MAX_VOLUMES; i++) {
		struct ebb_tags_request *got = ebb_tags_next(&w->tags, w->now, &wake);

		assert_non_null(got);
		ebb_tags_done(&w->tags, got);
	}
	assert_int_equal(w->tags.waiting, 0);
	free(r);
	free(v);
	free(w);
}

/* A clock that goes back is one that stands still. */
static void test_time_goes_back(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 100 });

	(void)state;
	run(w, SEC);
	w->now -= SEC / 2;
	w->disk_free_at = w->now;
	for (size_t i = 0; i < w->num_at_disk; i++)
		w->ends[i] = w->now;
	run(w, SEC);
	assert_true(a->issued >= 1900);
	free(w);
}

/* ---- anything at random ---- */

static void assert_whole(const struct ebb_tags *t)
{
	for (int id = 0; id < EBB_TAGS_HEAPS; id++) {
		const struct ebb_tags_heap *h = &t->heaps[id];

		for (unsigned int i = 0; i < h->num; i++) {
			assert_int_equal(h->entries[i].volume->at[id], i + 1);
			assert_true(h->entries[i].volume->waiting > 0);
			assert_true(!i || h->entries[(i - 1) / 2].key <= h->entries[i].key);
		}
	}
	assert_int_equal(t->heaps[EBB_TAGS_HEAP_LIMITED].num + t->heaps[EBB_TAGS_HEAP_SPARE].num +
			 t->heaps[EBB_TAGS_HEAP_DRAIN].num == 0, t->waiting == 0);
}

/* Each volume with requests is where it can be found, and no request is lost or given twice. */
static void test_heaps_stay_whole(void **state)
{
	struct world *w = world_new(1000);
	unsigned int seed = 1, waiting = 0, drained[50] = { 0 };
	uint64_t wake;

	(void)state;
	for (int i = 0; i < 50; i++)
		add(w, 0, (struct ebb_tags_promise){ .reserve_iops = i % 3 * 20,
			.max_iops = i % 4 ? 0 : 60, .weight = 1 + i, .penalty = i % 5 });
	for (int i = 0; i < 200000; i++) {
		const size_t num = rand_r(&seed) % 50;
		struct client *c = &w->clients[num];
		const struct ebb_tags_promise p = { .reserve_iops = rand_r(&seed) % 2 * 50,
						    .weight = 7, .penalty = 3 };
		const int what = rand_r(&seed) % 98;
		struct request *r;

		w->now += rand_r(&seed) % (2 * MSEC);
		if (what < 45 && w->num_requests < MAX_REQUESTS) {
			c->flow = rand_r(&seed) % EBB_TAGS_FLOWS;
			submit(w, c, new_request(w));
			waiting++;
		} else if (what < 70 && w->num_at_disk) {
			r = w->at_disk[--w->num_at_disk];
			ebb_tags_done(&w->tags, &r->tags);
		} else if (what == 95) {
			ebb_tags_volume_set(&w->tags, &c->volume, &p, w->now);
		} else if (what == 96) {
			set_policy(w, rand_r(&seed) % 2);
		} else if (what == 97 && drained[num]) {
			drained[num]--;
			ebb_tags_drain_end(&w->tags, &c->volume, w->now);
		} else if (what == 97) {
			drained[num]++;
			ebb_tags_drain_begin(&w->tags, &c->volume, w->now);
		} else if ((r = next(w, &wake))) {
			assert_true(r->tags.arrived <= w->now);
			w->at_disk[w->num_at_disk++] = r;
			waiting--;
		}
		if (w->num_requests == MAX_REQUESTS && !waiting && !w->num_at_disk)
			w->num_requests = 0;
		assert_whole(&w->tags);
		assert_int_equal(w->tags.waiting, waiting);
		assert_int_equal(w->tags.in_flight, w->num_at_disk);
	}
	free(w);
}

static void test_many_volumes(void **state)
{
	struct world *w = world_new(10000);

	(void)state;
	for (int i = 0; i < MAX_VOLUMES; i++)
		add(w, 4, (struct ebb_tags_promise){ .reserve_iops = i < 100 ? 90 : 0 });
	run(w, SEC);
	for (int i = 0; i < 100; i++)
		assert_true(w->clients[i].issued >= 87);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maximum_holds),
		cmocka_unit_test(test_maximum_changes_at_once),
		cmocka_unit_test(test_maximum_with_late_timers),
		cmocka_unit_test(test_maximum_at_reservation),
		cmocka_unit_test(test_maximum_stops_no_clock),
		cmocka_unit_test(test_drain_goes_past_all_rules),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_due_goes_beyond_depth),
		cmocka_unit_test(test_depth_in_bytes),
		cmocka_unit_test(test_burst_behind_scan),
		cmocka_unit_test(test_flows_take_turns_by_size),
		cmocka_unit_test(test_flows_save_nothing),
		cmocka_unit_test(test_scans_are_seen),
		cmocka_unit_test(test_bad_promises),
		cmocka_unit_test(test_bad_configurations),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_too_many_volumes),
		cmocka_unit_test(test_time_goes_back),
		cmocka_unit_test(test_heaps_stay_whole),
		cmocka_unit_test(test_many_volumes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
