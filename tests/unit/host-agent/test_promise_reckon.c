// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Promises of CPU time: by hand, and against an independent reckoning that knows of every moment
 * which vCPUs ran, were ready and idled, where the meter has what the scheduler's accounts say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/promise/reckon.h"

#define MSEC(n)	((usec_t)(n) * EBB_USEC_PER_MSEC)
#define SEC(n)	((usec_t)(n) * EBB_USEC_PER_SEC)

static struct promise_times times(usec_t ran_ms, usec_t waited_ms)
{
	return (struct promise_times){ .ran = MSEC(ran_ms), .waited = MSEC(waited_ms) };
}

static void expect(const struct promise_outcome *o, usec_t wanted_ms, usec_t promised_ms,
		   usec_t violated_ms, usec_t unclear_ms)
{
	assert_int_equal(o->wanted, MSEC(wanted_ms));
	assert_int_equal(o->promised, MSEC(promised_ms));
	assert_int_equal(o->violated, MSEC(violated_ms));
	assert_int_equal(o->unclear, MSEC(unclear_ms));
}

/* The example of the paper: promised 10%, ready for 500 ms, so 50 ms are due. */
static void test_paper(void **state)
{
	struct promise_times one = times(50, 450);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	promise_reckon(&one, 1, SEC(1), 100, 1000, &carry, &o);
	expect(&o, 500, 50, 0, 0);
	one = times(30, 470);
	promise_reckon(&one, 1, SEC(1), 100, 1000, &carry, &o);
	expect(&o, 500, 50, 20, 0);
	assert_int_equal(o.got, MSEC(30));
}

/* Whoever is idle, or runs whenever it is ready, is never short of anything. */
static void test_idle(void **state)
{
	struct promise_times v[4] = { { 0 } };
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		for (int k = 0; k < 4; k++)
			v[k].ran = i % 3 ? (usec_t)(rand() % 1000000) : 0;
		promise_reckon(v, 4, SEC(1), 900, 1000, &carry, &o);
		assert_int_equal(o.violated, 0);
		assert_int_equal(carry.owed, 0);
	}
	/* A debt of before is no fault of an idle interval. */
	v[0] = times(400, 600);
	promise_reckon(v, 1, SEC(1), 409, 1000, &carry, &o);
	assert_int_equal(carry.owed, MSEC(9));
	v[0] = times(0, 0);
	promise_reckon(v, 1, SEC(1), 409, 1000, &carry, &o);
	expect(&o, 0, 0, 0, 0);
	assert_int_equal(carry.owed, MSEC(9));
}

/* Two at different times, or at the same time: the accounts are the same. */
static void test_bounds(void **state)
{
	struct promise_times v[3] = { times(140, 360), times(140, 360) };
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	promise_reckon(v, 2, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 500, 250, 0, 220);
	/* Both all the time: the bounds meet. */
	v[0] = v[1] = times(200, 800);
	promise_reckon(v, 2, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 1000, 500, 100, 0);
	/* A core for two: one idles, and the other has its half. The VM lacks a half. */
	v[0] = times(500, 500);
	v[1] = times(0, 0);
	promise_reckon(v, 2, SEC(1), 1000, 1000, &carry, &o);
	expect(&o, 1000, 1000, 500, 0);
	/* Two cores and a half, for three that want 1000, 600 and 200 ms: 1000 + 600 + 100. */
	v[0] = times(100, 900);
	v[1] = times(600, 0);
	v[2] = times(0, 200);
	promise_reckon(v, 3, SEC(1), 2500, 1000, &carry, &o);
	expect(&o, 1000, 1700, 1000, 100);
	/* A core for each: no doubt about that. */
	promise_reckon(v, 3, SEC(1), 3000, 1000, &carry, &o);
	expect(&o, 1000, 1800, 1100, 0);
}

/* On an emulated host half a core of a quarter of a CPU is an eighth. */
static void test_emulated(void **state)
{
	const struct promise_times one = times(100, 900);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	promise_reckon(&one, 1, SEC(1), 500, 250, &carry, &o);
	expect(&o, 1000, 125, 25, 0);
}

/* A wait that spans intervals is told when it ends: with what was due for all of it. */
static void test_late_wait(void **state)
{
	struct promise_times one = times(0, 0);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 0, 0, 0, 0);
	one = times(0, 2000);
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 2000, 1000, 1000, 0);
	/* 100 ms of the wait belong to an interval that gave 50 ms more than is due without it. */
	one = times(500, 400);
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 900, 450, 0, 0);
	one = times(500, 600);
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 1100, 550, 0, 0);
	/* No more than that is forgiven. */
	one = times(500, 400);
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	one = times(400, 600);
	promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 1000, 500, 100, 0);
}

/* Debts of less than a tick add up; what is given back does not count. */
static void test_small_debts(void **state)
{
	struct promise_times one = times(494, 506);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	for (int i = 0; i < 5; i++) {
		promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		expect(&o, 1000, 500, 0, 0);
		promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		expect(&o, 1000, 500, 12, 0);
	}
	for (int i = 0; i < 100; i++) {
		one = i % 2 ? times(506, 494) : times(494, 506);
		promise_reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		assert_int_equal(o.violated, 0);
	}
}

/* ---- against a trace ----------------------------------------------------- */

#define STEP		250u		/* microseconds for which nothing changes */
#define TICK		4000u		/* the kernel adds up run times so often */
#define WAIT_STEPS	40u		/* of a wait at most */
#define MOST		4

/* A vCPU, and what the accounts know of it. */
struct traced {
	enum { IDLES, WAITS, RUNS } is;
	uint32_t steps_left;
	usec_t waiting, running;	/* not in the accounts yet */
	struct promise_times told, read;
};

struct trace {
	struct traced vcpus[MOST];
	uint16_t num;
	uint32_t permille, busy, starved; /* per cent */
	usec_t due, got;		/* in this interval, truly */
};

static void change(struct trace *t, struct traced *v)
{
	const uint32_t dice = (uint32_t)rand() % 100;

	if (v->is == WAITS) {
		v->told.waited += v->waiting;
		v->waiting = 0;
		v->is = RUNS;
	} else if (dice < t->starved) {
		v->is = WAITS;
	} else {
		v->is = (uint32_t)rand() % 100 < t->busy ? RUNS : IDLES;
	}
	if (v->is != RUNS) {
		v->told.ran += v->running;
		v->running = 0;
	}
	v->steps_left = 1 + (uint32_t)rand() % (v->is == WAITS ? WAIT_STEPS : 80);
}

static void step(struct trace *t, usec_t now)
{
	uint32_t num_ready = 0, most;

	for (uint16_t k = 0; k < t->num; k++) {
		struct traced *v = &t->vcpus[k];

		if (v->steps_left == 0)
			change(t, v);
		v->steps_left--;
		num_ready += v->is != IDLES;
		if (v->is == WAITS)
			v->waiting += STEP;
		if (v->is == RUNS) {
			v->running += STEP;
			t->got += STEP;
		}
		if (now % TICK == 0) {
			v->told.ran += v->running;
			v->running = 0;
		}
	}
	most = num_ready * 1000;
	t->due += (usec_t)STEP * (most < t->permille ? most : t->permille) / 1000;
}

/* What the meter finds, and what is true, over all intervals. */
struct result {
	usec_t violated, unclear, missing;
	uint32_t wrongly, missed;	/* intervals */
};

static struct result follow(struct trace *t, int num_intervals)
{
	const usec_t grain = t->num * PROMISE_TICK_USEC;
	/* A wait of the interval may be told in the next one, as long as it is. */
	const usec_t late = t->num * WAIT_STEPS * STEP;
	struct promise_carry carry = { 0 };
	struct result r = { 0 };
	usec_t now = 0, before = 0;

	for (int i = 0; i < num_intervals; i++) {
		struct promise_times read[MOST];
		struct promise_outcome o;
		usec_t missing;

		t->due = t->got = 0;
		for (usec_t end = now + SEC(1); now < end;)
			step(t, now += STEP);
		for (uint16_t k = 0; k < t->num; k++) {
			struct traced *v = &t->vcpus[k];

			read[k].ran = v->told.ran - v->read.ran;
			read[k].waited = v->told.waited - v->read.waited;
			v->read = v->told;
		}
		promise_reckon(read, t->num, SEC(1), t->permille, 1000, &carry, &o);
		missing = t->due > t->got ? t->due - t->got : 0;
		r.violated += o.violated;
		r.unclear += o.unclear;
		r.missing += missing;
		r.wrongly += o.violated > 0 && missing == 0 && before == 0;
		r.missed += missing > grain + late && o.violated == 0 && o.unclear == 0;
		before = missing;
	}
	return r;
}

static struct trace trace(uint16_t num, uint32_t permille, uint32_t busy, uint32_t starved)
{
	struct trace t = { .num = num, .permille = permille, .busy = busy, .starved = starved };

	srand(num * 1000 + permille + busy * 7 + starved);
	return t;
}

static void test_trace_of_one(void **state)
{
	static const uint32_t permilles[] = { 100, 500, 700, 900 };

	(void)state;
	for (size_t p = 0; p < 4; p++)
		for (uint32_t busy = 10; busy < 100; busy += 40)
			for (uint32_t starved = 0; starved < 100; starved += 30) {
				struct trace t = trace(1, permilles[p], busy, starved);
				const struct result r = follow(&t, 200);

				assert_int_equal(r.unclear, 0);
				assert_int_equal(r.wrongly, 0);
				assert_int_equal(r.missed, 0);
				/* Of each interval a tick, and a wait that ends in the next. */
				assert_in_range(r.violated + 200 * PROMISE_TICK_USEC, r.missing,
						r.missing + 400 * PROMISE_TICK_USEC);
				if (starved == 0)
					assert_int_equal(r.violated, 0);
			}
}

static void test_trace_of_many(void **state)
{
	static const uint32_t permilles[] = { 300, 1000, 1500, 4000 };

	(void)state;
	for (size_t p = 0; p < 4; p++)
		for (uint32_t busy = 10; busy < 100; busy += 40)
			for (uint32_t starved = 0; starved < 100; starved += 30) {
				struct trace t = trace(4, permilles[p], busy, starved);
				const struct result r = follow(&t, 100);

				assert_int_equal(r.wrongly, 0);
				assert_int_equal(r.missed, 0);
				assert_true(r.violated <=
					    r.missing + 4 * 100 * PROMISE_TICK_USEC);
				assert_true(r.violated + r.unclear +
					    4 * 100 * PROMISE_TICK_USEC >= r.missing);
				if (starved == 0)
					assert_int_equal(r.violated, 0);
			}
}

static void test_counters(void **state)
{
	const struct promise_outcome kept = { .wanted = 5, .promised = 3, .got = 4, .unclear = 1 };
	const struct promise_outcome broken = {
		.wanted = 9, .promised = 6, .got = 4, .violated = 2,
	};
	struct ebb_ledger sum = { 0 };

	(void)state;
	promise_add(&sum, 10, &kept);
	promise_add(&sum, 20, &broken);
	assert_int_equal(sum.metered_usec, 30);
	assert_int_equal(sum.wanted, 14);
	assert_int_equal(sum.promised, 9);
	assert_int_equal(sum.got, 8);
	assert_int_equal(sum.violated, 2);
	assert_int_equal(sum.unclear, 1);
	assert_int_equal(sum.num_intervals, 2);
	assert_int_equal(sum.num_violations, 1);
	assert_int_equal(sum.num_unclear, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_late_wait),
		cmocka_unit_test(test_small_debts),
		cmocka_unit_test(test_trace_of_one),
		cmocka_unit_test(test_trace_of_many),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests_name("core/promise: reckoning", tests, NULL, NULL);
}
