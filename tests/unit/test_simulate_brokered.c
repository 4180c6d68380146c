// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The broker experiment at the paper's size (200 VMs on 4 nodes) with the policies of ebbd: warm
 * databases grow at the cost of cold ones.  What is to be reached is 10% more than under the best
 * policy that sees no values, and a restart of the cold ones that is not worse than under
 * proportional.  The model says that one setting does not do both: where idle time counts in ages,
 * as in the paper, the first holds; where it is left out, the second.  With a fifth of it, as in
 * oltp-engine, vom is ahead of all others with every seed, and the restart as good in the median.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulate/brokered.h"

#define SEEDS	5u

static struct brokered_result run(const struct ebb_policy_ops *policy, uint64_t seed,
				  uint32_t idle_percent)
{
	const struct brokered_options options = {
		.seed = seed, .num_vms = 200, .num_nodes = 4, .idle_percent = idle_percent,
	};
	struct brokered_result r;

	assert_int_equal(brokered_run(&options, policy, &r), 0);
	assert_true(r.worst_used <= 1.0001);
	return r;
}

struct compared {
	double ramp;			/* vom against the best of the others */
	double restart;			/* vom against proportional */
};

static struct compared compare(uint64_t seed, uint32_t idle_percent)
{
	const struct brokered_result vom = run(&ebb_policy_vom, seed, idle_percent);
	const struct brokered_result others[] = {
		run(&ebb_policy_proportional, seed, idle_percent),
		run(&ebb_policy_equal, seed, idle_percent),
		run(&ebb_policy_balloon, seed, idle_percent),
	};
	double best = 0;

	assert_true(vom.num_asked > 0 && vom.num_brokered > 0);
	for (int i = 0; i < 3; i++)
		best = others[i].ramp_median > best ? others[i].ramp_median : best;
	return (struct compared){
		.ramp = vom.ramp_median / best,
		.restart = vom.restart_median / others[0].restart_median,
	};
}

static void test_idle_counts(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct compared c = compare(seed, 100);

		printf("idle time counts, seed %u: ramp-up %.3f of the best of the others, restart "
		       "%.3f of proportional\n", (unsigned)seed, c.ramp, c.restart);
		assert_true(c.ramp >= 1.10);
	}
}

static void test_idle_is_left_out(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct compared c = compare(seed, 0);

		printf("idle time is left out, seed %u: ramp-up %.3f of the best of the others, "
		       "restart %.3f of proportional\n", (unsigned)seed, c.ramp, c.restart);
		assert_true(c.restart >= 1);
	}
}

static int compare_numbers(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void test_a_part_of_idle_time(void **state)
{
	double restarts[SEEDS];

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct compared c = compare(seed, 20);

		printf("a fifth of idle time counts, seed %u: ramp-up %.3f of the best of the "
		       "others, restart %.3f of proportional\n", (unsigned)seed, c.ramp, c.restart);
		assert_true(c.ramp >= 1.03);
		restarts[seed - 1] = c.restart;
	}
	qsort(restarts, SEEDS, sizeof(restarts[0]), compare_numbers);
	assert_true(restarts[SEEDS / 2] >= 1);
}

/* The same seed, the same result. */
static void test_repeats(void **state)
{
	const struct brokered_result a = run(&ebb_policy_vom, 7, 20);
	const struct brokered_result b = run(&ebb_policy_vom, 7, 20);

	(void)state;
	assert_true(a.ramp_median == b.ramp_median && a.restart_median == b.restart_median);
}

/* A database alone: it holds what is used most, never more than it may, and its misses fall. */
static void test_database(void **state)
{
	static struct ebb_vom_bucket buckets[BROKERED_SAMPLES];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct brokered_db db;
		double first, last = 0, all = 0;
		uint64_t kib = 0;

		brokered_db_init(&db, 25600, i ? 0.8 : 0, 10000, 1000, 1);
		for (unsigned k = 0; k < BROKERED_PARTS; k++)
			all += db.share[k];
		assert_true(all > 0.999999 && all < 1.000001);
		db.load = 1;
		first = brokered_db_run(&db, 1000);
		assert_true(db.sum_held <= 1000.001);
		for (int s = 0; s < 1000; s++)
			last = brokered_db_run(&db, 12000);
		assert_true(db.sum_held > 6000 && db.sum_held <= 12000.001);
		assert_true(last > 1.2 * first);
		assert_int_equal(brokered_db_tell(&db, buckets), BROKERED_SAMPLES);
		for (uint32_t b = 0; b < BROKERED_SAMPLES; b++) {
			assert_true(b == 0 || buckets[b].value >= buckets[b - 1].value);
			kib += buckets[b].kib;
		}
		assert_true((double)kib / 2048 <= db.sum_held &&
			    (double)kib / 2048 > db.sum_held - 1);
		brokered_db_give(&db, db.sum_held - 100);
		assert_true(db.held[0] > 99 && db.held[BROKERED_PARTS - 1] < 0.001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_database),
		cmocka_unit_test(test_repeats),
		cmocka_unit_test(test_idle_counts),
		cmocka_unit_test(test_idle_is_left_out),
		cmocka_unit_test(test_a_part_of_idle_time),
	};

	return cmocka_run_group_tests_name("simulate brokered", tests, NULL, NULL);
}
