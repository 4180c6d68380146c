// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What tenants of the volume server get, in virtual time, on five seeds: the bounds that promises
 * of I/O have to keep, and that a server without promises does not keep them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulate/reserved.h"

#define SEEDS		5u
#define SECONDS		60u
#define MSEC		1000000ull

static struct sim_reserved_case one;
static struct sim_reserved_result ret[SIM_RESERVED_CASE_TENANTS];

static void run(enum sim_reserved_case_id id, enum sim_reserved_policy policy, uint64_t seed)
{
	sim_reserved_case(id, SECONDS, &one);
	one.options.policy = policy;
	one.options.seed = seed;
	assert_int_equal(sim_reserved_run(&one.options, ret), 0);
}

static void expect_kept(void)
{
	for (uint32_t i = 0; i < one.options.num_tenants; i++) {
		const struct sim_reserved_result *r = &ret[i];
		/* Of the time in which it had requests that waited; some have few, or none. */
		const double due = r->reserved * (double)r->meter.waiting_nsec /
				   (double)EBB_RATE_NSEC / SECONDS;

		if (r->reserved <= 0)
			continue;
		if (r->mean < 0.97 * due || r->kept < 0.99 * r->intervals ||
		    (double)r->meter.violated > 0.01 * r->reserved * SECONDS)
			fail_msg("%s, %s: %.1f of %.1f per second, %u of %u intervals, %lu "
				 "violated", one.name, one.tenants[i].name, r->mean, due, r->kept,
				 r->intervals, (unsigned long)r->meter.violated);
	}
}

static void test_promises_are_kept(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		run(SIM_RESERVED_PROMISED, SIM_RESERVED_TAGS, seed);
		expect_kept();
		/* Those that always have requests: the mean itself. */
		assert_true(ret[0].mean >= 0.97 * 300 && ret[1].mean >= 0.97 * 100);
		/* All of the disk is used. */
		assert_true(ret[0].mean + ret[1].mean + ret[2].mean + ret[3].mean + ret[4].mean +
			    ret[5].mean + ret[6].mean >= 970);
		run(SIM_RESERVED_SWAP, SIM_RESERVED_TAGS, seed);
		expect_kept();
	}
}

/* The load is one at which it takes something to keep them. */
static void test_others_keep_none(void **state)
{
	(void)state;
	for (enum sim_reserved_policy p = SIM_RESERVED_MAX_ONLY; p <= SIM_RESERVED_NONE; p++) {
		run(SIM_RESERVED_PROMISED, p, 1);
		assert_true(ret[0].mean < 0.5 * 300);
		assert_int_equal(ret[0].kept, 0);
		assert_true(ret[0].meter.violated > 0.5 * 300 * SECONDS);
		/* Others got it, more than they were promised. */
		assert_true(ret[0].meter.others_early >= 0.99 * (double)ret[0].meter.violated);
	}
}

/* ---- how soon a change is in force ---- */

static uint64_t changed_at;
static uint64_t got[2];

static void on_event(void *ctx, const struct sim_reserved_event *e)
{
	(void)ctx;
	if (e->what == SIM_RESERVED_CHANGED)
		changed_at = e->now;
	else if (e->what == SIM_RESERVED_ISSUED && e->tenant < 2 && changed_at &&
		 e->now < changed_at + 100 * MSEC)
		got[e->tenant]++;
}

static void test_change_within_100_ms(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		changed_at = got[0] = got[1] = 0;
		sim_reserved_case(SIM_RESERVED_SWAP, 10, &one);
		one.options.seed = seed;
		one.options.trace = on_event;
		assert_int_equal(sim_reserved_run(&one.options, ret), 0);
		/* 200 and 600 per second from the first moment on, and some of what is left. */
		assert_true(got[0] >= 19 && got[0] <= 32);
		assert_true(got[1] >= 58 && got[1] <= 72);
	}
}

/* ---- overbooked ---- */

static void test_overbooked(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		double all = 0;

		run(SIM_RESERVED_OVERBOOKED, SIM_RESERVED_TAGS, seed);
		for (uint32_t i = 0; i < 8; i++) {
			const struct sim_reserved_result *r = &ret[i];
			const double busy = (double)r->meter.waiting_nsec / 1e9;
			const double rate = r->mean * SECONDS / busy;

			all += r->mean;
			/*
			 * All lose the same fraction of what they are promised.  The last one is
			 * there for half of the time, in which they are eight and not seven.
			 */
			assert_true(i < 7 ? rate >= 0.97 * 40.2 && rate <= 1.03 * 40.2 :
					    rate >= 0.95 * 37.5 && rate <= 1.05 * 37.5);
			/* It lacks what the meter says, within a unit in each interval. */
			assert_true((double)r->meter.violated >=
				    80 * busy - r->mean * SECONDS - SECONDS);
			assert_true((double)r->meter.violated <=
				    80 * busy - r->mean * SECONDS + SECONDS);
		}
		assert_true(all >= 0.97 * 300);
		/* None for the time in which it was idle: half of what the others have. */
		assert_true((double)ret[7].meter.violated < 0.6 * (double)ret[0].meter.violated);
		/* Nobody got more than is promised, so that is the reason. */
		assert_true(ret[0].meter.others_promised >= 0.85 * (double)ret[0].meter.violated);
	}
}

static void test_overbooked_by_penalty(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint64_t proportional = 0, penalty = 0;

		run(SIM_RESERVED_OVERBOOKED, SIM_RESERVED_TAGS, seed);
		for (uint32_t i = 0; i < 8; i++)
			proportional += ret[i].meter.violated * (i < 3 ? 10 : 1);
		run(SIM_RESERVED_PENALTY, SIM_RESERVED_TAGS, seed);
		for (uint32_t i = 0; i < 8; i++)
			penalty += ret[i].meter.violated * (i < 3 ? 10 : 1);
		/* The three lose next to nothing, and the others what is missing. */
		for (uint32_t i = 0; i < 3; i++)
			assert_true((double)ret[i].meter.violated <= 0.005 * 80 * SECONDS);
		assert_true(penalty < proportional / 3);
	}
}

/* ---- */

static void test_same_seed_same_result(void **state)
{
	struct sim_reserved_result first[SIM_RESERVED_CASE_TENANTS];

	(void)state;
	run(SIM_RESERVED_PROMISED, SIM_RESERVED_TAGS, 3);
	memcpy(first, ret, sizeof(first));
	run(SIM_RESERVED_PROMISED, SIM_RESERVED_TAGS, 3);
	assert_memory_equal(first, ret, sizeof(first));
	run(SIM_RESERVED_PROMISED, SIM_RESERVED_TAGS, 4);
	assert_true(memcmp(first, ret, sizeof(first)) != 0);
}

static void test_bad_options(void **state)
{
	struct sim_reserved_options o;

	(void)state;
	sim_reserved_case(SIM_RESERVED_SWAP, 1, &one);
	for (int i = 0; i < 7; i++) {
		o = one.options;
		one.tenants[0].outstanding = i == 5 ? 0 : 16;
		one.tenants[0].promise.weight = i == 6 ? 0 : 1;
		if (i == 0)
			o.depth = 0;
		else if (i == 1)
			o.num_tenants = 0;
		else if (i == 2)
			o.seconds = 0;
		else if (i == 3)
			o.disk_iops = 0;
		else if (i == 4)
			o.parallel = 0;
		assert_int_equal(sim_reserved_run(&o, ret), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promises_are_kept),
		cmocka_unit_test(test_others_keep_none),
		cmocka_unit_test(test_change_within_100_ms),
		cmocka_unit_test(test_overbooked),
		cmocka_unit_test(test_overbooked_by_penalty),
		cmocka_unit_test(test_same_seed_same_result),
		cmocka_unit_test(test_bad_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
