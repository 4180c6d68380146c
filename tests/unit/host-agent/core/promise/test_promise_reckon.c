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

/* An interval on cores without a quota. */
static void reckon(const struct promise_times *vcpus, uint16_t num, usec_t length,
		   uint32_t permille, uint32_t share, struct promise_carry *carry,
		   struct promise_outcome *ret)
{
	const struct promise_terms terms = { .permille = permille, .share = share };

	promise_reckon(vcpus, num, length, &terms, carry, ret);
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
	reckon(&one, 1, SEC(1), 100, 1000, &carry, &o);
	expect(&o, 500, 50, 0, 0);
	one = times(30, 470);
	reckon(&one, 1, SEC(1), 100, 1000, &carry, &o);
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
		reckon(v, 4, SEC(1), 900, 1000, &carry, &o);
		assert_int_equal(o.violated, 0);
		assert_int_equal(carry.owed, 0);
	}
	/* A debt of before is no fault of an idle interval. */
	v[0] = times(400, 600);
	reckon(v, 1, SEC(1), 409, 1000, &carry, &o);
	assert_int_equal(carry.owed, MSEC(9));
	v[0] = times(0, 0);
	reckon(v, 1, SEC(1), 409, 1000, &carry, &o);
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
	reckon(v, 2, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 500, 250, 0, 220);
	/* Both all the time: the bounds meet. */
	v[0] = v[1] = times(200, 800);
	reckon(v, 2, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 1000, 500, 100, 0);
	/* A core for two: one idles, and the other has its half. The VM lacks a half. */
	v[0] = times(500, 500);
	v[1] = times(0, 0);
	reckon(v, 2, SEC(1), 1000, 1000, &carry, &o);
	expect(&o, 1000, 1000, 500, 0);
	/* Two cores and a half, for three that want 1000, 600 and 200 ms: 1000 + 600 + 100. */
	v[0] = times(100, 900);
	v[1] = times(600, 0);
	v[2] = times(0, 200);
	reckon(v, 3, SEC(1), 2500, 1000, &carry, &o);
	expect(&o, 1000, 1700, 1000, 100);
	/* A core for each: no doubt about that. */
	reckon(v, 3, SEC(1), 3000, 1000, &carry, &o);
	expect(&o, 1000, 1800, 1100, 0);
}

/* On an emulated host half a core of a quarter of a CPU is an eighth. */
static void test_emulated(void **state)
{
	const struct promise_times one = times(100, 900);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	reckon(&one, 1, SEC(1), 500, 250, &carry, &o);
	expect(&o, 1000, 125, 25, 0);
}

/* A wait that spans intervals is told when it ends: with what was due for all of it. */
static void test_late_wait(void **state)
{
	struct promise_times one = times(0, 0);
	struct promise_carry carry = { 0 };
	struct promise_outcome o;

	(void)state;
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 0, 0, 0, 0);
	one = times(0, 2000);
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 2000, 1000, 1000, 0);
	/* 100 ms of the wait belong to an interval that gave 50 ms more than is due without it. */
	one = times(500, 400);
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 900, 450, 0, 0);
	one = times(500, 600);
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	expect(&o, 1100, 550, 0, 0);
	/* No more than that is forgiven. */
	one = times(500, 400);
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
	one = times(400, 600);
	reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
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
		reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		expect(&o, 1000, 500, 0, 0);
		reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		expect(&o, 1000, 500, 12, 0);
	}
	for (int i = 0; i < 100; i++) {
		one = i % 2 ? times(506, 494) : times(494, 506);
		reckon(&one, 1, SEC(1), 500, 1000, &carry, &o);
		assert_int_equal(o.violated, 0);
	}
}

/* ---- cores with a quota ---------------------------------------------------- */

/* Half of a core that is worth 0.8 of a CPU, 400 ms of each 500: 200 ms in each period. */
static const struct promise_terms quota = { .permille = 500, .share = 800, .period = MSEC(500) };

#define WORTH	MSEC(200)

/* An interval of a second in which the vCPU was ready all the time. */
static struct promise_outcome second(struct promise_carry *carry, usec_t ran_ms)
{
	const struct promise_times one = times(ran_ms, 1000 - ran_ms);
	struct promise_outcome o;

	promise_reckon(&one, 1, SEC(1), &quota, carry, &o);
	assert_int_equal(o.promised, MSEC(400));
	return o;
}

/* When in each period the vCPU has its 200 ms, at which speed. */
struct shape {
	usec_t begin, end;
};

/* How long it has run, from the begin of a period on. */
static usec_t ran_until(const struct shape *s, usec_t now)
{
	const usec_t at = now % quota.period, length = s->end - s->begin;
	const usec_t in = at < s->begin ? 0 : at < s->end ? at - s->begin : length;

	return now / quota.period * WORTH + in * WORTH / length;
}

/* What 500 intervals from `now` on have violated, each a second long and up to 200 ms more. */
static usec_t follow_quota(const struct shape *s, usec_t now, const struct promise_terms *terms)
{
	struct promise_carry carry = { 0 };
	usec_t violated = 0;

	for (int i = 0; i < 500; i++) {
		const usec_t length = SEC(1) + (usec_t)(rand() % 200) * EBB_USEC_PER_MSEC;
		const usec_t ran = ran_until(s, now + length) - ran_until(s, now);
		const struct promise_times one = { .ran = ran, .waited = length - ran };
		struct promise_outcome o;

		promise_reckon(&one, 1, length, terms, &carry, &o);
		violated += o.violated;
		now += length;
	}
	return violated;
}

/* Each period keeps the promise, and intervals hold pieces of periods. */
static void test_pieces_of_periods(void **state)
{
	static const struct shape shapes[] = {
		{ 0, MSEC(400) }, { 0, MSEC(200) }, { MSEC(200), MSEC(400) },
		{ MSEC(100), MSEC(300) },
	};
	struct promise_terms no_period = quota;

	(void)state;
	srand(1);
	no_period.period = 0;
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++)
		for (usec_t begin = 0; begin < quota.period; begin += MSEC(10)) {
			/* Once in all, as what came before the first interval nobody knows. */
			assert_true(follow_quota(&shapes[k], begin, &quota) <= WORTH);
			/* Without the balance many intervals would count as broken. */
			assert_true(follow_quota(&shapes[k], begin, &no_period) > SEC(1));
		}
}

/* Who is short in each interval has what was broken by all but the first. */
static void test_always_short(void **state)
{
	/* Exactly its promise, or spare capacity. */
	static const usec_t before[] = { 400, 601, 800, 1000 };

	(void)state;
	for (size_t k = 0; k < sizeof(before) / sizeof(before[0]); k++) {
		struct promise_carry carry = { 0 };

		for (int i = 0; i < 100; i++)
			assert_int_equal(second(&carry, before[k]).violated, 0);
		assert_int_equal(second(&carry, 360).violated, 0);
		for (int i = 0; i < 20; i++)
			assert_int_equal(second(&carry, 360).violated, MSEC(40));
	}
}

/* Credit pays for the worth of one period, once. */
static void test_short_after_credit(void **state)
{
	struct promise_carry carry = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(second(&carry, 450).violated, 0);
	assert_int_equal(carry.credit, WORTH);
	for (int i = 0; i < 5 + 1; i++)
		assert_int_equal(second(&carry, 360).violated, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(second(&carry, 360).violated, MSEC(40));
}

/* What is given back later was not broken; beyond the worth of a period it was, at once. */
static void test_debts_of_periods(void **state)
{
	struct promise_carry carry = { 0 };

	(void)state;
	assert_int_equal(second(&carry, 350).violated, 0);
	assert_int_equal(second(&carry, 450).violated, 0);
	assert_int_equal(carry.owed + carry.credit, 0);
	/* A second without anything; the rest counts with the next one that is short. */
	assert_int_equal(second(&carry, 0).violated, MSEC(200));
	assert_int_equal(second(&carry, 400).violated, 0);
	assert_int_equal(second(&carry, 395).violated, MSEC(200));
	assert_int_equal(second(&carry, 395).violated, 0);
	assert_int_equal(carry.owed, MSEC(10));
	assert_int_equal(second(&carry, 0).violated, MSEC(210));
	assert_int_equal(second(&carry, 0).violated, MSEC(400));
	/* An idle interval is not blamed. */
	{
		const struct promise_times idle = times(0, 0);
		struct promise_outcome o;

		promise_reckon(&idle, 1, SEC(1), &quota, &carry, &o);
		assert_int_equal(o.violated, 0);
		assert_int_equal(carry.owed, WORTH);
	}
}

/* Nothing but the worth of a period, what it had before, and a tick is left out, ever. */
static void test_nothing_is_hidden(void **state)
{
	(void)state;
	srand(1);
	for (int run = 0; run < 200; run++) {
		const usec_t most = 400 + (usec_t)rand() % 400;
		usec_t missing = 0, lacked = 0, promised = 0, got = 0, violated = 0;
		struct promise_carry carry = { 0 };

		for (int i = 0; i < 200; i++) {
			const usec_t ran = (usec_t)rand() % most;
			const struct promise_outcome o = second(&carry, ran);

			violated += o.violated;
			/* Since the moment up to which it had more than was promised. */
			missing = missing + o.promised > o.got ? missing + o.promised - o.got : 0;
			lacked += o.promised > o.got ? o.promised - o.got : 0;
			promised += o.promised;
			got += o.got;
			assert_true(carry.credit <= WORTH && carry.owed <= WORTH + MSEC(10));
			assert_true(carry.credit == 0 || carry.owed == 0);
			assert_true(violated <= lacked);
			assert_true(violated + WORTH + MSEC(10) + got >= promised);
			assert_true(violated + WORTH + MSEC(10) + WORTH >= missing);
		}
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
		reckon(read, t->num, SEC(1), t->permille, 1000, &carry, &o);
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
		cmocka_unit_test(test_pieces_of_periods),
		cmocka_unit_test(test_always_short),
		cmocka_unit_test(test_short_after_credit),
		cmocka_unit_test(test_debts_of_periods),
		cmocka_unit_test(test_nothing_is_hidden),
		cmocka_unit_test(test_trace_of_one),
		cmocka_unit_test(test_trace_of_many),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests_name("core/promise: reckoning", tests, NULL, NULL);
}
