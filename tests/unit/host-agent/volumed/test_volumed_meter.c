// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The meter of the volume server: cases by hand, and random loads whose violations must be exactly
 * those that meter_reckon.c finds in the trace of arrivals and issues.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulate/reserved.h"
#include "tests/unit/host-agent/volumed/meter_reckon.h"
#include "util/random.h"
#include "volumed/meter.h"

#define MSEC	1000000ull
#define SEC	(1000 * MSEC)
#define START	(5 * SEC)

#define MOST	1000

static struct ebb_meter meter;
static struct ebb_meter_volume a, b;
static struct ebb_meter_request requests[MOST], others[MOST];

static int set_up(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_init(&meter, SEC, START), 0);
	assert_int_equal(ebb_meter_volume_add(&meter, &a, 7, 100, 0, START), 0);
	assert_int_equal(ebb_meter_volume_add(&meter, &b, 8, 0, 0, START), 0);
	return 0;
}

static void arrive(struct ebb_meter_volume *v, size_t from, size_t num, uint64_t at)
{
	for (size_t i = from; i < from + num; i++)
		assert_int_equal(ebb_meter_arrive(&meter, v, v == &a ? &requests[i] : &others[i],
						  4096, START + at), 0);
}

static void issue(struct ebb_meter_volume *v, size_t from, size_t num, uint64_t at, uint64_t step)
{
	for (size_t i = 0; i < num; i++)
		ebb_meter_issue(&meter, v, v == &a ? &requests[from + i] : &others[from + i],
				START + at + i * step);
}

static const struct ebb_meter_counters *read_at(struct ebb_meter_volume *v, uint64_t at)
{
	return ebb_meter_read(&meter, v, START + at);
}

/* ---- violations ---- */

/* A burst of 50, of which one is issued each 10 ms as promised. */
static void test_kept(void **state)
{
	const struct ebb_meter_counters *c;

	(void)state;
	arrive(&a, 0, 50, 100 * MSEC);
	issue(&a, 0, 50, 100 * MSEC, 10 * MSEC);
	c = read_at(&a, SEC);
	assert_int_equal(c->promised, 100);
	assert_int_equal(c->charged, 50);
	assert_int_equal(c->early + c->missed + c->violated + c->overdue, 0);
	assert_int_equal(c->late_max_nsec, 0);
	assert_int_equal(c->due_requests, 50);
	assert_int_equal(c->delays[0], 50);
	assert_int_equal(c->waiting_nsec, 490 * MSEC);
	assert_int_equal(a.last.end, START + SEC);
	assert_int_equal(a.last.wanted, 50);
	assert_int_equal(a.last.got, 50);
	assert_int_equal(a.last.taker, EBB_METER_NOBODY);
}

/* It has requests all the time and gets half: what is missing is R * t - got (section 2.2). */
static void test_half(void **state)
{
	const struct ebb_meter_counters *c;

	(void)state;
	arrive(&a, 0, 400, 0);
	issue(&a, 0, 150, 0, 20 * MSEC);
	c = read_at(&a, 3 * SEC);
	assert_int_equal(c->charged, 150);
	assert_int_equal(c->violated, 3 * 100 - 150);
	assert_int_equal(c->violated_intervals, 3);
	/* Each deadline of the interval, of which none was met but in the first (section 3.2). */
	assert_int_equal(c->overdue, 50 + 100 + 100);
	/* The last of 150 was due at 1.49 s and issued at 2.98 s. */
	assert_int_equal(c->late_max_nsec, 1490 * MSEC);
}

/* Nobody is to blame for idle time, and it gives no credit. */
static void test_idle(void **state)
{
	(void)state;
	assert_int_equal(read_at(&a, 10 * SEC)->violated, 0);
	assert_int_equal(a.counters.intervals, 10);
	assert_int_equal(a.counters.promised, 1000);
	assert_int_equal(a.counters.waiting_nsec, 0);
	arrive(&a, 0, 100, 10 * SEC);
	issue(&a, 0, 50, 10 * SEC, 10 * MSEC);
	assert_int_equal(read_at(&a, 11 * SEC)->violated, 50);
	assert_int_equal(a.counters.intervals, 11);
	assert_int_equal(a.counters.violated_intervals, 1);
}

/* Spare capacity counts for the average of its interval, but not of the next. */
static void test_early_counts_for_the_interval(void **state)
{
	(void)state;
	arrive(&a, 0, 300, 0);
	/* Twice as fast as promised for half of the second, then nothing for the rest of it. */
	issue(&a, 0, 100, 0, 5 * MSEC);
	assert_int_equal(read_at(&a, SEC)->violated, 0);
	assert_int_equal(a.counters.early, 50);
	assert_int_equal(a.counters.missed, 50);
	assert_int_equal(read_at(&a, 2 * SEC)->violated, 100);
	assert_int_equal(a.last.overdue, 100);
}

/* One request that waits is all that can be seen of a client that sends the next one after it. */
static void test_one_at_a_time(void **state)
{
	(void)state;
	for (size_t i = 0; i < 10; i++) {
		arrive(&a, i, 1, i * 100 * MSEC);
		issue(&a, i, 1, i * 100 * MSEC + 99 * MSEC, 0);
		ebb_meter_complete(&meter, &a, START + (i + 1) * 100 * MSEC - 1);
	}
	/* 99 ms each are worth 9 units, one of which it got. */
	assert_int_equal(read_at(&a, SEC)->violated, 10 * (9 - 1));
	assert_int_equal(a.counters.overdue, 0);
	assert_int_equal(a.counters.pending_nsec, SEC - 10);
}

/* A large request pays for the time after it, also in later intervals. */
static void test_large_requests(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(ebb_meter_arrive(&meter, &a, &requests[i], 256 * 65536, START), 0);
	issue(&a, 0, 3, 0, 2560 * MSEC);
	assert_int_equal(read_at(&a, 8 * SEC)->violated, 0);
	assert_int_equal(a.counters.charged, 3 * 256);
	assert_int_equal(a.counters.promised, 800);
	assert_int_equal(a.counters.late_max_nsec, 0);
}

/* Requests that overtake others use the slots of those. */
static void test_reordered(void **state)
{
	(void)state;
	arrive(&a, 0, 60, 0);
	issue(&a, 0, 40, 0, 10 * MSEC);
	arrive(&a, 60, 5, 400 * MSEC);
	issue(&a, 60, 5, 400 * MSEC, 10 * MSEC);
	issue(&a, 40, 20, 450 * MSEC, 10 * MSEC);
	assert_int_equal(read_at(&a, SEC)->violated, 0);
	assert_int_equal(a.counters.overdue, 0);
	assert_int_equal(a.counters.late_max_nsec, 0);
	assert_int_equal(a.counters.due_requests, 65);
}

static void test_bytes(void **state)
{
	(void)state;
	/* 6.4 MiB per second are 1638 requests of 4 KiB, or 102 units. */
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 1638 * 4096, START), 0);
	arrive(&a, 0, 1000, 0);
	issue(&a, 0, 819, 0, SEC / 819);
	assert_int_equal(read_at(&a, SEC)->promised, 102);
	assert_in_range(a.counters.charged, 51, 52);
	assert_in_range(a.counters.violated, 50, 51);
}

/* Flushes and discards move no data.  Each counts as a unit, also where bytes are promised. */
static void test_no_data(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 100 * EBB_RATE_UNIT, START), 0);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(ebb_meter_arrive(&meter, &a, &requests[i], 0, START), 0);
	issue(&a, 0, 40, 0, 25 * MSEC);
	assert_int_equal(read_at(&a, SEC)->promised, 100);
	assert_int_equal(a.counters.arrived_units, 200);
	assert_int_equal(a.counters.issued_bytes, 0);
	assert_int_equal(a.counters.charged, 40);
	assert_int_equal(a.counters.violated, 60);
	assert_int_equal(a.counters.overdue, 60);
}

/* Old debts at an old rate, new ones at the new one. */
static void test_promise_changes(void **state)
{
	(void)state;
	arrive(&a, 0, 900, 0);
	assert_int_equal(ebb_meter_promise(&meter, &a, 200, 0, START + 500 * MSEC), 0);
	assert_int_equal(read_at(&a, SEC)->violated, 50 + 100);
	assert_int_equal(a.counters.promised, 150);
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 0, START + SEC), 0);
	assert_int_equal(read_at(&a, 2 * SEC)->violated, 150);
	assert_int_equal(ebb_meter_promise(&meter, &a, 10, 0, START + 2 * SEC), 0);
	assert_int_equal(read_at(&a, 3 * SEC)->violated, 160);
}

/* The part of a unit that is due when the promise changes stays due. */
static void test_promise_changes_within_a_unit(void **state)
{
	(void)state;
	arrive(&a, 0, 900, 0);
	assert_int_equal(ebb_meter_promise(&meter, &a, 200, 0, START + 509 * MSEC), 0);
	assert_int_equal(read_at(&a, SEC)->violated, 50 + 100);
}

/* A large request that has paid in advance has paid for one unit of the new promise at most. */
static void test_promise_changes_after_a_large_request(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_arrive(&meter, &a, &requests[0], 64 * 65536, START),
			 0);
	arrive(&a, 1, 900, 0);
	issue(&a, 0, 1, 0, 0);
	assert_int_equal(ebb_meter_promise(&meter, &a, 10, 0, START + 100 * MSEC), 0);
	assert_int_equal(read_at(&a, SEC)->violated, 8);
}

/* ---- reasons ---- */

static void expect_reasons(uint64_t early, uint64_t slow, uint64_t promised, uint64_t taker)
{
	assert_int_equal(a.last.violated, early + slow + promised);
	assert_int_equal(a.last.others_early, early);
	assert_int_equal(a.last.slow, slow);
	assert_int_equal(a.last.others_promised, promised);
	assert_int_equal(a.last.taker, taker);
}

/* 60 of what it lacks went to a volume that is promised nothing, and 40 to nobody. */
static void test_others_got_it(void **state)
{
	struct ebb_meter_volume c;

	(void)state;
	assert_int_equal(ebb_meter_volume_add(&meter, &c, 9, 0, 0, START), 0);
	/* Not while it waited. */
	arrive(&b, 0, 300, 0);
	issue(&b, 0, 100, 0, 0);
	arrive(&a, 0, 200, 0);
	issue(&b, 100, 60, 0, 10 * MSEC);
	read_at(&a, SEC);
	expect_reasons(60, 40, 0, 8);
	assert_int_equal(ebb_meter_volume_remove(&meter, &c, START + SEC), 0);
}

/* What it got itself beyond its promise went to nobody else. */
static void test_own_early_units(void **state)
{
	(void)state;
	arrive(&a, 0, 200, 0);
	issue(&a, 0, 20, 0, 5 * MSEC);
	read_at(&a, SEC);
	assert_int_equal(a.counters.early, 10);
	expect_reasons(0, 80, 0, EBB_METER_NOBODY);
}

/* It took most itself: the other one is named. */
static void test_taker_is_another(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_promise(&meter, &b, 100, 0, START), 0);
	arrive(&a, 0, 200, 0);
	arrive(&b, 0, 200, 0);
	issue(&a, 0, 60, 0, 10 * MSEC);
	issue(&b, 0, 30, 600 * MSEC, 10 * MSEC);
	read_at(&a, SEC);
	expect_reasons(0, 10, 30, 8);
	assert_int_equal(b.last.taker, 7);
}

/* Requests that are given up while they wait count for nobody. */
static void test_cancelled(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_promise(&meter, &b, 50, 0, START), 0);
	arrive(&a, 0, 200, 0);
	arrive(&b, 0, 100, 0);
	for (size_t i = 100; i-- > 0;)
		ebb_meter_cancel(&meter, &b, &others[i], START + SEC / 2);
	issue(&a, 0, 60, 0, 10 * MSEC);
	read_at(&a, SEC);
	/* What it did not get was nobody's. */
	expect_reasons(0, 40, 0, EBB_METER_NOBODY);
	read_at(&b, SEC);
	assert_int_equal(b.counters.issued + b.counters.charged + b.counters.early, 0);
	assert_int_equal(b.counters.waiting_nsec, SEC / 2);
	assert_int_equal(b.counters.pending_nsec, SEC / 2);
	assert_int_equal(b.counters.missed, 25);
	assert_int_equal(b.waiting, 0);
	assert_int_equal(ebb_meter_volume_remove(&meter, &b, START + SEC), 0);
}

/* Time passes, and nothing else. */
static void test_stuck(void **state)
{
	(void)state;
	arrive(&a, 0, 1, 0);
	assert_int_equal(read_at(&a, 60 * SEC)->violated, 6000);
	assert_int_equal(a.counters.violated_intervals, 60);
}

/* Another one got what it is promised: there is too much. With a capacity also: or too little. */
static void test_overbooked_or_slow(void **state)
{
	(void)state;
	assert_int_equal(ebb_meter_promise(&meter, &b, 100, 0, START), 0);
	ebb_meter_capacity(&meter, 100);
	arrive(&a, 0, 900, 0);
	arrive(&b, 0, 900, 0);
	issue(&a, 0, 20, 0, 10 * MSEC);
	issue(&b, 0, 80, 200 * MSEC, 10 * MSEC);
	read_at(&a, SEC);
	/* The disk did its 100: 80 of them went to the other. */
	expect_reasons(0, 0, 80, 8);
	assert_int_equal(b.last.violated, 20);
	assert_int_equal(b.last.taker, 7);
	issue(&a, 20, 20, SEC, 10 * MSEC);
	issue(&b, 80, 30, SEC, 20 * MSEC);
	read_at(&a, 2 * SEC);
	/* It did 50, so 50 of the 80 that are missing are the disk's. */
	expect_reasons(0, 50, 30, 8);
	read_at(&a, 3 * SEC);
	expect_reasons(0, 100, 0, EBB_METER_NOBODY);
	assert_int_equal(a.counters.others_promised, 110);
	assert_int_equal(a.counters.slow, 150);
	assert_int_equal(a.counters.violated, 260);
	/* It did 200 of 300: had it done all, both could have had what they are promised. */
	ebb_meter_capacity(&meter, 300);
	assert_int_equal(ebb_meter_promise(&meter, &b, 200, 0, START + 3 * SEC), 0);
	issue(&a, 40, 50, 3 * SEC, 10 * MSEC);
	issue(&b, 110, 150, 3 * SEC, 5 * MSEC);
	read_at(&a, 4 * SEC);
	expect_reasons(0, 50, 0, EBB_METER_NOBODY);
}

/* A request is at the disk from `from` to `to`, looked at in between. */
static uint64_t pending(uint64_t from, uint64_t to)
{
	arrive(&a, 0, 1, from);
	issue(&a, 0, 1, from, 0);
	for (uint64_t k = 1; k < 100; k++)
		read_at(&a, from + (to - from) * k / 100);
	ebb_meter_complete(&meter, &a, START + to);
	return read_at(&a, to)->promised_microunits;
}

/* What the promise was worth while a request was pending: of requests, bytes, the less of both. */
static void test_promised_while_pending(void **state)
{
	(void)state;
	assert_int_equal(pending(0, SEC / 2), 50000000);
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 1 << 20, START + SEC), 0);
	assert_int_equal(pending(2 * SEC, 3 * SEC), 50000000 + 16000000);
	assert_int_equal(ebb_meter_promise(&meter, &a, 8, 1 << 20, START + 4 * SEC), 0);
	assert_int_equal(pending(5 * SEC, 6 * SEC), 66000000 + 8000000);
	assert_int_equal(ebb_meter_promise(&meter, &a, 100, 1 << 20, START + 7 * SEC), 0);
	assert_int_equal(pending(8 * SEC, 9 * SEC), 74000000 + 16000000);
	/* The least that can be promised, for 20 hours; and nothing. */
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 1, START + 9 * SEC), 0);
	assert_int_equal(pending(10 * SEC, 72010 * SEC), 90000000 + 72000 * 1000000ull / 65536);
	assert_int_equal(ebb_meter_promise(&meter, &a, 0, 0, START + 72010 * SEC), 0);
	assert_int_equal(pending(72011 * SEC, 72012 * SEC), 90000000 + 72000 * 1000000ull / 65536);
}

/* ---- the rest ---- */

static void test_delays(void **state)
{
	uint64_t delays[EBB_METER_DELAYS] = { 0 };
	static const uint64_t msec[] = { 0, 1, 2, 4, 8, 500 };

	(void)state;
	assert_int_equal(ebb_meter_percentile(delays, 500), 0);
	assert_int_equal(ebb_meter_promise(&meter, &a, 1, 0, START), 0);
	for (size_t i = 0; i < 6; i++) {
		arrive(&a, i, 1, 2 * i * SEC);
		issue(&a, i, 1, 2 * i * SEC + msec[i] * MSEC, 0);
	}
	memcpy(delays, read_at(&a, 20 * SEC)->delays, sizeof(delays));
	assert_int_equal(a.counters.due_requests, 6);
	assert_int_equal(a.counters.late_nsec, 515 * MSEC);
	assert_int_equal(a.counters.late_max_nsec, 500 * MSEC);
	assert_int_equal(a.last.late_max_nsec, 0);
	/* Bounds of classes, a quarter beyond at most. */
	assert_int_equal(ebb_meter_percentile(delays, 1), 1000);
	assert_in_range(ebb_meter_percentile(delays, 500), 2 * MSEC, 2.5 * MSEC);
	assert_in_range(ebb_meter_percentile(delays, 800), 8 * MSEC, 10 * MSEC);
	assert_in_range(ebb_meter_percentile(delays, 990), 500 * MSEC, 625 * MSEC);
	/* Minutes are in the last class. */
	arrive(&a, 6, 1, 20 * SEC);
	issue(&a, 6, 1, 100 * SEC, 0);
	assert_int_equal(read_at(&a, 100 * SEC)->delays[EBB_METER_DELAYS - 1], 1);
	assert_true(ebb_meter_percentile(a.counters.delays, 1000) > 16 * SEC);
}

static void test_bad_input(void **state)
{
	struct ebb_meter_volume v;
	struct ebb_meter m;

	(void)state;
	assert_int_equal(ebb_meter_init(&m, 0, 0), -EINVAL);
	assert_int_equal(ebb_meter_init(&m, EBB_METER_MAX_NSEC + 1, 0), -EINVAL);
	assert_int_equal(ebb_meter_volume_add(&meter, &v, 1, EBB_RATE_MAX_IOPS + 1, 0, START),
			 -EINVAL);
	assert_int_equal(ebb_meter_promise(&meter, &a, 1, EBB_RATE_MAX_BYTES + 1, START), -EINVAL);
	assert_int_equal(a.reserve_iops, 100);
	assert_int_equal(ebb_meter_arrive(&meter, &a, &requests[0], EBB_RATE_MAX_REQUEST + 1,
					  START), -EINVAL);
	assert_int_equal(a.counters.arrived, 0);
	arrive(&a, 0, 1, 0);
	assert_int_equal(ebb_meter_volume_remove(&meter, &a, START), -EBUSY);
	issue(&a, 0, 1, 0, 0);
	assert_int_equal(ebb_meter_volume_remove(&meter, &a, START), -EBUSY);
	ebb_meter_complete(&meter, &a, START);
	assert_int_equal(ebb_meter_volume_remove(&meter, &a, START), 0);
	/* A clock that goes back stands still. */
	arrive(&b, 0, 1, SEC / 2);
	issue(&b, 0, 1, 0, 0);
	assert_int_equal(b.counters.waiting_nsec, 0);
	assert_int_equal(read_at(&b, 0)->intervals, 0);
}

/* ---- against the reckoning ---- */

#define MAX_TENANTS	8
#define MAX_TRACED	60000

struct traced {
	struct reckon_request requests[MAX_TRACED];
	size_t num;
	size_t open[SIM_RESERVED_REQUESTS];	/* by the tenant's number of the request */
};

static struct traced traces[MAX_TENANTS];
static uint64_t nth;

static void on_event(void *ctx, const struct sim_reserved_event *e)
{
	struct traced *t = &traces[e->tenant];
	struct reckon_request *r;

	(void)ctx;
	nth++;
	if (e->what == SIM_RESERVED_ARRIVED) {
		assert_true(t->num < MAX_TRACED);
		t->open[e->request] = t->num;
		t->requests[t->num++] = (struct reckon_request){
			.arrived = e->now, .arrived_nth = nth, .bytes = e->bytes,
			.issued = RECKON_NEVER, .issued_nth = RECKON_NEVER,
			.completed = RECKON_NEVER,
		};
		return;
	}
	r = &t->requests[t->open[e->request]];
	if (e->what == SIM_RESERVED_ISSUED) {
		r->issued = e->now;
		r->issued_nth = nth;
	} else if (e->what == SIM_RESERVED_COMPLETED) {
		r->completed = e->now;
	}
}

static uint64_t roll(uint64_t *seed, uint64_t below)
{
	return ebb_random(seed) % below;
}

static struct sim_reserved_tenant draw_tenant(uint64_t *seed)
{
	static const uint64_t sizes[] = { 512, 4096, 65536, 65537, 300000, 4 << 20 };
	struct sim_reserved_tenant t = {
		.name = "random", .bytes = sizes[roll(seed, 6)], .is_scan = roll(seed, 2),
		.promise = { .weight = 1 + (uint32_t)roll(seed, 200),
			     .penalty = (uint32_t)roll(seed, 10),
			     .reserve_iops = 1 + roll(seed, 300) },
		.limit_iops = roll(seed, 2) * (300 + roll(seed, 300)),
	};

	if (roll(seed, 3)) {
		t.outstanding = 1 + (uint32_t)roll(seed, 40);
		t.think_nsec = roll(seed, 2) * roll(seed, 50 * MSEC);
	} else {
		t.rate = 1 + (double)roll(seed, 200);
	}
	if (roll(seed, 2)) {
		t.on_nsec = 1 + roll(seed, 3 * SEC);
		t.off_nsec = 1 + roll(seed, 2 * SEC);
	}
	return t;
}

/* The bound of a class: above the delay of that rank, by a quarter at most, or below 1 us. */
static void compare_percentiles(const struct ebb_meter_counters *c, const struct reckon_outcome *o)
{
	static const unsigned int permille[] = { 1, 500, 900, 990, 999, 1000 };

	for (size_t i = 0; i < sizeof(permille) / sizeof(permille[0]) && o->due_requests; i++) {
		const uint64_t rank = (o->due_requests * permille[i] + 999) / 1000;
		const uint64_t exact = o->delays[rank - 1];
		const uint64_t told = ebb_meter_percentile(c->delays, permille[i]);

		assert_true(told > exact);
		assert_true(told <= 1000 || told <= exact + exact / 4);
	}
}

static void compare_with_reckoning(uint32_t tenant, const struct sim_reserved_tenant *load,
				   uint64_t seconds, const struct ebb_meter_counters *c,
				   uint64_t *violated)
{
	const struct reckon_volume v = {
		.iops = load->promise.reserve_iops, .interval = SEC, .end = seconds * SEC,
		.requests = traces[tenant].requests, .num = traces[tenant].num,
	};
	struct reckon_outcome o;

	reckon(&v, &o);
	assert_int_equal(c->charged, o.charged);
	assert_int_equal(c->early, o.early);
	assert_int_equal(c->missed, o.missed);
	assert_int_equal(c->violated, o.violated);
	assert_int_equal(c->violated_intervals, o.violated_intervals);
	assert_int_equal(c->overdue, o.overdue);
	assert_int_equal(c->due_requests, o.due_requests);
	assert_int_equal(c->late_nsec, o.late_nsec);
	assert_int_equal(c->late_max_nsec, o.late_max_nsec);
	assert_int_equal(c->late_units, o.late_units);
	assert_int_equal(c->waited_nsec, o.waited_nsec);
	assert_int_equal(c->promised_microunits,
			 o.pending_nsec * 1000000 / (SEC / load->promise.reserve_iops));
	assert_int_equal(c->waiting_nsec, o.waiting_nsec);
	assert_int_equal(c->pending_nsec, o.pending_nsec);
	assert_int_equal(c->others_early + c->others_promised + c->slow, c->violated);
	assert_int_equal(c->intervals, seconds);
	compare_percentiles(c, &o);
	free(o.delays);
	*violated += c->violated;
}

static void test_random_loads(void **state)
{
	struct sim_reserved_tenant tenants[MAX_TENANTS];
	struct sim_reserved_result ret[MAX_TENANTS];
	uint64_t violated = 0;

	(void)state;
	for (uint64_t run = 0; run < 60; run++) {
		uint64_t seed = run + 1;
		struct sim_reserved_options o = {
			.policy = run % SIM_RESERVED_POLICIES, .overbooked = run / 3 % 2,
			.disk_iops = 100 + (double)roll(&seed, 1000),
			.parallel = 1 + (uint32_t)roll(&seed, 8), .seconds = 6, .seed = run,
			.num_tenants = 1 + (uint32_t)roll(&seed, MAX_TENANTS),
			.tenants = tenants, .trace = on_event,
		};

		o.depth = o.parallel + (uint32_t)roll(&seed, 8);
		for (uint32_t i = 0; i < o.num_tenants; i++) {
			tenants[i] = draw_tenant(&seed);
			traces[i].num = 0;
		}
		nth = 0;
		assert_int_equal(sim_reserved_run(&o, ret), 0);
		for (uint32_t i = 0; i < o.num_tenants; i++)
			compare_with_reckoning(i, &tenants[i], o.seconds, &ret[i].meter, &violated);
	}
	print_message("%lu units violated\n", (unsigned long)violated);
	assert_true(violated > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_kept, set_up),
		cmocka_unit_test_setup(test_half, set_up),
		cmocka_unit_test_setup(test_idle, set_up),
		cmocka_unit_test_setup(test_early_counts_for_the_interval, set_up),
		cmocka_unit_test_setup(test_one_at_a_time, set_up),
		cmocka_unit_test_setup(test_large_requests, set_up),
		cmocka_unit_test_setup(test_reordered, set_up),
		cmocka_unit_test_setup(test_bytes, set_up),
		cmocka_unit_test_setup(test_no_data, set_up),
		cmocka_unit_test_setup(test_promise_changes, set_up),
		cmocka_unit_test_setup(test_promise_changes_within_a_unit, set_up),
		cmocka_unit_test_setup(test_promise_changes_after_a_large_request, set_up),
		cmocka_unit_test_setup(test_others_got_it, set_up),
		cmocka_unit_test_setup(test_own_early_units, set_up),
		cmocka_unit_test_setup(test_taker_is_another, set_up),
		cmocka_unit_test_setup(test_cancelled, set_up),
		cmocka_unit_test_setup(test_stuck, set_up),
		cmocka_unit_test_setup(test_overbooked_or_slow, set_up),
		cmocka_unit_test_setup(test_promised_while_pending, set_up),
		cmocka_unit_test_setup(test_delays, set_up),
		cmocka_unit_test_setup(test_bad_input, set_up),
		cmocka_unit_test(test_random_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
