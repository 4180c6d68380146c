// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * VMs that share cores, simulated at the size of the paper: what rebalancing has to be worth, on
 * five seeds.  All of it is virtual time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "simulate/shared.h"

#define SEEDS	5

static struct sim_shared_result fixed[SEEDS], moving[SEEDS];

/* Eight VMs of eight vCPUs on two nodes of 16 cores. */
static struct sim_shared_options paper(enum sim_shared_kind kind, uint32_t seconds)
{
	struct sim_shared_options o = {
		.kind = kind, .num_nodes = 2, .cores_per_node = 16, .num_vms = 8, .vcpus = 8,
		.seconds = seconds,
	};

	ebb_share_config_default(&o.config);
	return o;
}

static void run_both(struct sim_shared_options o)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		o.seed = seed + 1;
		o.is_static = true;
		assert_int_equal(sim_shared_run(&o, &fixed[seed]), 0);
		o.is_static = false;
		assert_int_equal(sim_shared_run(&o, &moving[seed]), 0);
	}
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, SEEDS, sizeof(*values), compare);
	return values[SEEDS / 2];
}

static void test_burst(void **state)
{
	double hot[SEEDS], p99[SEEDS];

	(void)state;
	run_both(paper(SIM_SHARED_BURST, 2400));
	for (int i = 0; i < SEEDS; i++) {
		print_message("seed %d: hot %lu -> %lu, %lu -> %lu transactions, p99 %.0f -> %.0f "
			      "ms, %lu moves of VMs\n", i + 1, fixed[i].num_hot, moving[i].num_hot,
			      fixed[i].committed, moving[i].committed, fixed[i].p99_ms,
			      moving[i].p99_ms, moving[i].num_vm_moves);
		assert_true(fixed[i].num_hot > 100);
		assert_true(moving[i].num_vm_moves > 0);
		assert_int_equal(moving[i].num_early, 0);
		assert_int_equal(fixed[i].num_moves, 0);
		assert_true(moving[i].committed > fixed[i].committed);
		hot[i] = (double)moving[i].num_hot / (double)fixed[i].num_hot;
		p99[i] = moving[i].p99_ms / fixed[i].p99_ms;
	}
	assert_true(median(hot) <= 0.05);
	assert_true(median(p99) < 1);
}

static void test_skew(void **state)
{
	double done[SEEDS], p99[SEEDS];

	(void)state;
	run_both(paper(SIM_SHARED_SKEW, 450));
	for (int i = 0; i < SEEDS; i++) {
		print_message("seed %d: hot %lu -> %lu, %lu -> %lu transactions, p99 %.0f -> %.0f "
			      "ms, %lu moves of VMs\n", i + 1, fixed[i].num_hot, moving[i].num_hot,
			      fixed[i].committed, moving[i].committed, fixed[i].p99_ms,
			      moving[i].p99_ms, moving[i].num_vm_moves);
		/* All of the first half is full, and the second nearly idle; or all is even. */
		assert_in_range(fixed[i].heat[0], 950, 1001);
		assert_in_range(fixed[i].heat[31], 0, 100);
		assert_in_range(moving[i].heat[0], 300, 900);
		assert_int_equal(moving[i].num_early, 0);
		assert_int_equal(moving[i].num_throttled, 0);
		assert_in_range(moving[i].num_vm_moves, 1, 8);
		done[i] = (double)moving[i].committed / (double)fixed[i].committed;
		p99[i] = moving[i].p99_ms / fixed[i].p99_ms;
	}
	assert_true(median(done) >= 1.15);
	assert_true(median(p99) <= 0.5);
}

static void test_same_seed_same_result(void **state)
{
	struct sim_shared_options o = paper(SIM_SHARED_BURST, 60);

	(void)state;
	o.seed = 3;
	assert_int_equal(sim_shared_run(&o, &fixed[0]), 0);
	assert_int_equal(sim_shared_run(&o, &fixed[1]), 0);
	assert_memory_equal(&fixed[0], &fixed[1], sizeof(fixed[0]));
	o.num_vms = 1;
	assert_int_equal(sim_shared_run(&o, &fixed[0]), -EINVAL);
	o = paper(SIM_SHARED_TRACE, 60);
	assert_int_equal(sim_shared_run(&o, &fixed[0]), -EINVAL);
}

/* Made up as PlanetLab's are: means and deviations of seven thousand rows of those. */
static void test_demands_made_up(void **state)
{
	struct sim_shared_options o = paper(SIM_SHARED_TRACE, 60);
	struct sim_demand d;
	double sum = 0, squares = 0, count;

	(void)state;
	assert_int_equal(sim_demand_generate(1, 5000, 288, &d), 0);
	count = 5000.0 * 288;
	for (size_t i = 0; i < 5000 * 288; i++) {
		sum += d.percent[i];
		squares += (double)d.percent[i] * d.percent[i];
	}
	assert_in_range(sum / count * 10, 95, 125); /* 11.1 */
	assert_in_range(squares / count - sum / count * (sum / count), 140, 310); /* 15.5 ^ 2 */
	o.num_vms = 40;
	o.demand = &d;
	o.seed = 1;
	assert_int_equal(sim_shared_run(&o, &fixed[0]), 0);
	assert_true(fixed[0].use > 0.2 && fixed[0].use < 1);
	sim_demand_finish(&d);
}

static int load(const char *text, struct sim_demand *d, struct ebb_err *err)
{
	char path[] = "/tmp/ebb-demand-XXXXXX";
	const int fd = mkstemp(path);
	int r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = sim_demand_load(path, d, err);
	unlink(path);
	return r;
}

static void test_demands_from_a_file(void **state)
{
	static const char *const bad[] = { "", "1,2\n3\n", "1,101\n", "1,x\n", "-1\n", "1;2\n" };
	struct sim_demand d;
	struct ebb_err err;

	(void)state;
	assert_int_equal(load("0,50,100\n7,8,9\r\n", &d, &err), 0);
	assert_int_equal(d.num_rows, 2);
	assert_int_equal(d.num_columns, 3);
	assert_int_equal(d.percent[2], 100);
	assert_int_equal(d.percent[3], 7);
	sim_demand_finish(&d);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(load(bad[i], &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "line 1"));
	assert_int_equal(sim_demand_load("/nonexistent", &d, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_same_seed_same_result),
		cmocka_unit_test(test_demands_made_up),
		cmocka_unit_test(test_demands_from_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
