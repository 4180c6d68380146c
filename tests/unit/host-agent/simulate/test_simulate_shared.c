// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * VMs that share cores, simulated at the size of the paper: what rebalancing has to be worth, on
 * one seed or five.  All of it is virtual time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "simulate/shared.h"
#include "tests/lib/test_full.h"

#define MAX_SEEDS	5

static struct sim_shared_result fixed[MAX_SEEDS], moving[MAX_SEEDS];
static int num_seeds, num_many;

/* Eight VMs of eight vCPUs on a node of 32 cores. */
static struct sim_shared_options paper(enum sim_shared_kind kind, uint32_t seconds)
{
	struct sim_shared_options o = {
		.kind = kind, .num_nodes = 1, .cores_per_node = 32, .num_vms = 8, .vcpus = 8,
		.seconds = seconds,
	};

	ebb_share_config_default(&o.config);
	return o;
}

static void run_both(struct sim_shared_options o)
{
	for (uint64_t seed = 0; seed < (uint64_t)num_seeds; seed++) {
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
	qsort(values, (size_t)num_seeds, sizeof(*values), compare);
	return values[num_seeds / 2];
}

static void test_burst(void **state)
{
	double hot[MAX_SEEDS], p99[MAX_SEEDS];

	(void)state;
	run_both(paper(SIM_SHARED_BURST, 2400));
	for (int i = 0; i < num_seeds; i++) {
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
	double done[MAX_SEEDS], p99[MAX_SEEDS];

	(void)state;
	run_both(paper(SIM_SHARED_SKEW, 450));
	for (int i = 0; i < num_seeds; i++) {
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

/*
 * Many VMs whose loads change every five minutes: nobody is worse off than where they started, and
 * looked at three times as often nearly no core stays hot.
 */
static void test_many(void **state)
{
	struct sim_shared_options o = {
		.kind = SIM_SHARED_TRACE, .num_nodes = 2, .cores_per_node = 72, .num_vms = 100,
		.vcpus = 8, .seconds = 315,
	};
	double hot[MAX_SEEDS];
	struct sim_demand d;
	int num_with_hot = 0;

	(void)state;
	assert_int_equal(sim_demand_generate(1, 1000, 2, &d), 0);
	ebb_share_config_default(&o.config);
	o.demand = &d;
	for (int i = 0; i < num_many; i++) {
		struct sim_shared_result fast;

		o.seed = (uint64_t)i + 1;
		o.is_static = true;
		assert_int_equal(sim_shared_run(&o, &fixed[i]), 0);
		o.is_static = false;
		o.config.window = 15 * EBB_USEC_PER_SEC;
		assert_int_equal(sim_shared_run(&o, &moving[i]), 0);
		o.config.window = 5 * EBB_USEC_PER_SEC;
		assert_int_equal(sim_shared_run(&o, &fast), 0);
		print_message("seed %d: hot %lu -> %lu, %lu; %lu -> %lu, %lu transactions, "
			      "p99 %.0f -> %.0f, %.0f ms\n", i + 1, fixed[i].num_hot,
			      moving[i].num_hot, fast.num_hot, fixed[i].committed,
			      moving[i].committed, fast.committed, fixed[i].p99_ms,
			      moving[i].p99_ms, fast.p99_ms);
		/* Where the VMs begin is drawn: with one seed of three, nowhere is too much. */
		num_with_hot += fixed[i].num_hot > 20;
		assert_true(moving[i].num_hot <= fixed[i].num_hot / 2);
		assert_true(moving[i].committed > fixed[i].committed);
		assert_true(moving[i].p99_ms < fixed[i].p99_ms);
		assert_true(fast.committed > fixed[i].committed);
		assert_true(fast.p99_ms < fixed[i].p99_ms);
		assert_int_equal(moving[i].num_early, 0);
		hot[i] = (double)fast.num_hot / (double)(fixed[i].num_hot ?: 1);
	}
	assert_true(num_with_hot > num_many / 2);
	qsort(hot, (size_t)num_many, sizeof(hot[0]), compare);
	assert_true(hot[num_many / 2] <= 0.05);
	sim_demand_finish(&d);
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

/*
 * VMs of one vCPU, every fourth of which is promised 70% of a core.  Busy ones are two to a core,
 * so each has half of it: promises that nobody keeps are broken all the time.
 */
static void test_promises(void **state)
{
	struct sim_shared_options o = paper(SIM_SHARED_SKEW, 120);

	(void)state;
	o.cores_per_node = 6;
	o.num_vms = 12;
	o.vcpus = 1;
	o.reserve_percent = 70;
	o.is_static = true;
	for (int i = 0; i < num_seeds; i++) {
		struct sim_shared_result *none = &fixed[i], *kept = &moving[i];

		o.seed = (uint64_t)i + 1;
		o.is_kept = false;
		assert_int_equal(sim_shared_run(&o, none), 0);
		o.is_kept = true;
		assert_int_equal(sim_shared_run(&o, kept), 0);
		print_message("seed %d: broken in %lu and %lu of %lu s\n", i + 1,
			      none->promise.num_violations, kept->promise.num_violations,
			      kept->promise.num_intervals);
		assert_int_equal(kept->num_promised, 3);
		assert_int_equal(kept->num_refused, 0);
		assert_int_equal(kept->promise.num_intervals, 3 * 120);
		/* Two of the three are busy. */
		assert_in_range(none->promise.num_violations, 200, 240);
		assert_int_equal(kept->promise.num_violations, 0);
	}
	/* More than there is: what does not fit is refused, and the others keep theirs. */
	o.cores_per_node = 32;
	o.vcpus = o.num_vms = 16;
	assert_int_equal(sim_shared_run(&o, &moving[0]), 0);
	assert_int_equal(moving[0].num_promised, 2);
	assert_int_equal(moving[0].num_refused, 2);
	o.reserve_percent = 101;
	assert_int_equal(sim_shared_run(&o, &moving[0]), -EINVAL);
}

/* Of a value with the one before, the mean over rows. */
static double correlation(const struct sim_demand *d)
{
	double all = 0;

	for (uint32_t i = 0; i < d->num_rows; i++) {
		const uint8_t *row = d->percent + (size_t)i * d->num_columns;
		double mean = 0, both = 0, squares = 0;

		for (uint32_t k = 0; k < d->num_columns; k++)
			mean += (double)row[k] / d->num_columns;
		for (uint32_t k = 0; k < d->num_columns; k++) {
			squares += (row[k] - mean) * (row[k] - mean);
			both += k ? (row[k] - mean) * (row[k - 1] - mean) : 0;
		}
		all += squares > 0 ? both / squares : 0;
	}
	return all / d->num_rows;
}

/* Made up as PlanetLab's are: means and deviations of seven thousand rows of those. */
static void test_demands_made_up(void **state)
{
	struct sim_shared_options o = paper(SIM_SHARED_TRACE, 60);
	struct sim_demand d;
	double sum = 0, squares = 0, count;
	size_t of[101] = { 0 };

	(void)state;
	assert_int_equal(sim_demand_generate(1, 5000, 288, &d), 0);
	count = 5000.0 * 288;
	for (size_t i = 0; i < 5000 * 288; i++) {
		sum += d.percent[i];
		squares += (double)d.percent[i] * d.percent[i];
		of[d.percent[i]]++;
	}
	for (size_t i = 0, below = 0; i < 101; i++) {
		const size_t before = below;

		below += of[i];
		/* The median is 5, the value that nineteen twentieths are below 43. */
		if (before < 5000 * 288 / 2 && below >= 5000 * 288 / 2)
			assert_in_range(i, 4, 6);
		if (before < 5000 * 288 / 20 * 19 && below >= 5000 * 288 / 20 * 19)
			assert_in_range(i, 38, 48);
	}
	assert_in_range(sum / count * 10, 100, 122); /* 11.1 */
	assert_in_range(squares / count - sum / count * (sum / count), 200, 280); /* 15.5 ^ 2 */
	assert_in_range(correlation(&d) * 1000, 50, 120); /* 0.09 */
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
	/* One value per line: a VM. */
	assert_int_equal(load("1\n2\n100\n", &d, &err), 0);
	assert_int_equal(d.num_rows, 1);
	assert_int_equal(d.num_columns, 3);
	assert_int_equal(d.percent[2], 100);
	sim_demand_finish(&d);
}

static void put(const char *folder, const char *name, const char *mode, const char *text)
{
	char path[128];
	gzFile f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = gzopen(path, mode);
	assert_non_null(f);
	if (*text)
		assert_int_equal(gzputs(f, text), strlen(text));
	assert_int_equal(gzclose(f), Z_OK);
}

static void take(const char *folder, const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

/* Files of both forms, compressed or not, by name; one that does not fit is told of by name. */
static void test_demands_from_a_folder(void **state)
{
	char folder[] = "/tmp/ebb-demands-XXXXXX", path[128];
	struct sim_demand d;
	struct ebb_err err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(sim_demand_load(folder, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "empty"));
	/* A folder in it is no file. */
	snprintf(path, sizeof(path), "%s/inner", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	err.text[0] = '\0';
	assert_int_equal(sim_demand_load(folder, &d, &err), -EIO);
	assert_non_null(strstr(err.text, "inner: can not be read"));
	assert_int_equal(rmdir(path), 0);
	put(folder, "b.gz", "w", "1,2,3\n4,5,6\n");
	put(folder, "a", "wT", "7\n8\n9\n");
	put(folder, ".hidden", "wT", "x\n");
	assert_int_equal(sim_demand_load(folder, &d, &err), 0);
	assert_int_equal(d.num_rows, 3);
	assert_int_equal(d.num_columns, 3);
	assert_memory_equal(d.percent, ((const uint8_t[]){ 7, 8, 9, 1, 2, 3, 4, 5, 6 }), 9);
	sim_demand_finish(&d);
	/* Cut short. */
	snprintf(path, sizeof(path), "%s/b.gz", folder);
	assert_int_equal(truncate(path, 20), 0);
	assert_true(sim_demand_load(folder, &d, &err) < 0);
	assert_non_null(strstr(err.text, "/b.gz"));
	take(folder, "b.gz");
	put(folder, "c", "wT", "1,2\n");
	assert_int_equal(sim_demand_load(folder, &d, &err), -EINVAL);
	assert_non_null(strstr(err.text, "/c: line 1"));
	take(folder, "a");
	take(folder, "c");
	take(folder, ".hidden");
	assert_int_equal(rmdir(folder), 0);
}

static uint64_t ticks;

static uint64_t tick(void)
{
	static unsigned calls;

	ticks += ++calls % 7 * 1000;
	return ticks;
}

/* With a clock the time of each decision is told, and nothing else is different. */
static void test_decisions_are_timed(void **state)
{
	struct sim_shared_options o = paper(SIM_SHARED_BURST, 60);

	(void)state;
	o.seed = 3;
	assert_int_equal(sim_shared_run(&o, &fixed[0]), 0);
	assert_true(fixed[0].look_max_usec == 0);
	o.clock = tick;
	assert_int_equal(sim_shared_run(&o, &fixed[1]), 0);
	assert_true(fixed[1].look_median_usec > 0);
	assert_true(fixed[1].look_max_usec >= fixed[1].look_median_usec);
	assert_true(fixed[1].look_max_usec < 8);
	assert_int_equal(fixed[0].committed, fixed[1].committed);
	assert_true(fixed[1].moves_per_window * 8 * (double)fixed[1].num_looks -
		    (double)fixed[1].num_vm_moves < 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_burst),
		cmocka_unit_test(test_skew),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_same_seed_same_result),
		cmocka_unit_test(test_demands_made_up),
		cmocka_unit_test(test_demands_from_a_file),
		cmocka_unit_test(test_demands_from_a_folder),
		cmocka_unit_test(test_decisions_are_timed),
	};

	num_seeds = (int)test_full(5, 1);
	num_many = (int)test_full(3, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
