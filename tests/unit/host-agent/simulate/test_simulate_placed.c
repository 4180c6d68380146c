// SPDX-License-Identifier: GPL-2.0-or-later
/* Traces that are read and made up, and what databases make of them. */
#include <errno.h>
#include <math.h>
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

#include "simulate/placed-demand.h"

static char folder[] = "/tmp/placed-XXXXXX";
static char path[256];

/* ---- traces ---- */

/* A row of `count` values; at(i) makes them, NAN is an empty field. */
static void add_row(FILE *f, const char *head, int count, double (*at)(int i))
{
	fputs(head, f);
	for (int i = 0; i < count; i++) {
		if (i)
			putc(',', f);
		if (!isnan(at(i)))
			fprintf(f, "%g", at(i));
	}
	putc('\n', f);
}

static FILE *begin(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return fopen(path, "w");
}

static void end(FILE *f)
{
	assert_non_null(f);
	assert_int_equal(fclose(f), 0);
}

static void expect_refused(int rc, const char *what)
{
	struct sim_place_traces t;
	struct ebb_err err = { "" };

	assert_int_equal(sim_place_traces_load(path, &t, &err), rc);
	if (!strstr(err.text, what))
		fail_msg("%s: %s", what, err.text);
	assert_null(t.rows);
	unlink(path);
}

static double alternating(int i) { return i % 2 ? 20 : 10; }
static double five(int i) { (void)i; return 5; }
static double fifty(int i) { (void)i; return 50; }
static double negative(int i) { return i == 7 ? -1 : 5; }
static double large(int i) { return i == 7 ? 101 : 5; }
static double missing(int i) { return i == 7 ? NAN : 5; }

static void test_pairs_become_steps(void **state)
{
	struct sim_place_traces t;
	struct ebb_err err;
	FILE *f = begin("day");

	(void)state;
	add_row(f, "", 288, alternating);
	add_row(f, "", 288, five);
	end(f);
	assert_int_equal(sim_place_traces_load(path, &t, &err), 0);
	assert_int_equal(t.num_rows, 2);
	/* By rank: the idlest first. */
	for (int i = 0; i < 144; i++) {
		assert_float_equal(t.rows[0].percent[i], 5, 1e-6);
		assert_float_equal(t.rows[1].percent[i], 15, 1e-6);
	}
	sim_place_traces_finish(&t);
	unlink(path);
}

static void test_days_are_joined_by_rank(void **state)
{
	static double (*const order[2][3])(int) = {
		{ fifty, five, alternating }, { alternating, fifty, five } };
	struct sim_place_traces t;
	struct ebb_err err;

	(void)state;
	for (int d = 0; d < 2; d++) {
		FILE *f = begin(d ? "2" : "1");

		for (int i = 0; i < 3; i++)
			add_row(f, "", 288, order[d][i]);
		end(f);
	}
	assert_int_equal(sim_place_traces_load(folder, &t, &err), 0);
	assert_int_equal(t.num_rows, 3);
	for (uint32_t i = 0; i < 3; i++) {
		static const float means[] = { 5, 15, 50 };

		assert_int_equal(t.rows[i].num_steps, 288);
		for (int k = 0; k < 288; k++)
			assert_float_equal(t.rows[i].percent[k], means[i], 1e-6);
	}
	sim_place_traces_finish(&t);
	unlink(path);
	end(begin("1"));
	unlink(path);
}

/* A hole of an hour at noon of the third day, a longer one in the evening of the ninth. */
static double holes(int i)
{
	if (i == 2 * 144 + 72)
		return 33;
	if (i > 2 * 144 + 72 && i <= 2 * 144 + 78)
		return NAN;
	if (i >= 8 * 144 + 100 && i < 8 * 144 + 107)
		return NAN;
	return i / 144;
}

static double late(int i) { return i < 100 ? NAN : i / 144; }
static double rare(int i) { return i % 144 < 7 ? NAN : 5; }

static void test_holes(void **state)
{
	struct sim_place_traces t;
	struct ebb_err err;
	FILE *f = begin("month");

	(void)state;
	add_row(f, "7,4,10400,8192,", 12 * 144, holes);
	add_row(f, "8,1,2600,1024,", 12 * 144, late);
	add_row(f, "9,1,2600,1024,", 12 * 144, rare);
	end(f);
	assert_int_equal(sim_place_traces_load(path, &t, &err), 0);
	assert_int_equal(t.num_rows, 2);
	assert_int_equal(t.dropped, 1);
	assert_int_equal(t.filled, 6);
	/* Up to the last midnight before the long hole. */
	assert_int_equal(t.rows[0].num_steps, 8 * 144);
	for (int i = 2 * 144 + 72; i <= 2 * 144 + 78; i++)
		assert_float_equal(t.rows[0].percent[i], 33, 1e-6);
	assert_float_equal(t.rows[0].percent[2 * 144 + 79], 2, 1e-6);
	/* From the first midnight on. */
	assert_int_equal(t.rows[1].num_steps, 11 * 144);
	assert_float_equal(t.rows[1].percent[0], 1, 1e-6);
	sim_place_traces_finish(&t);
	unlink(path);
}

static void refuse_row(const char *head, int count, double (*at)(int i), const char *what)
{
	FILE *f = begin("bad");

	add_row(f, "", 288, five);
	add_row(f, head, count, at);
	end(f);
	expect_refused(-EINVAL, what);
}

static void test_bad_input(void **state)
{
	FILE *f;

	(void)state;
	refuse_row("", 288, negative, "bad: line 2: -1 is not a percentage");
	refuse_row("", 288, large, "101 is not a percentage");
	refuse_row("", 288, missing, "value 8 is missing");
	refuse_row("x,", 287, five, "x is no number");
	refuse_row("nan,", 287, five, "nan is no number");
	refuse_row("5 ,", 287, five, "5  is no number");
	/* Intervals of 1 and 30 minutes. */
	refuse_row("", 1440, five, "1440 values");
	refuse_row("", 48, five, "48 values");
	refuse_row("1,2,3,4,", 7 * 144, five, "days and months in one file");
	end(begin("bad"));
	expect_refused(-EINVAL, "bad: empty");
	f = begin("bad");
	add_row(f, "", 288, five);
	end(f);
	expect_refused(-EINVAL, "1 rows can be used");
	expect_refused(-ENOENT, "bad");
	f = begin("bad");
	add_row(f, "1,2,3,4,", 7 * 144, rare);
	end(f);
	expect_refused(-EINVAL, "0 rows can be used (1 dropped for holes)");
	f = begin("1");
	add_row(f, "", 288, five);
	end(f);
	f = begin("2");
	add_row(f, "1,2,3,4,", 7 * 144, five);
	end(f);
	strcpy(path, folder);
	expect_refused(-EINVAL, "files of days and of months");
	end(begin("1"));
	unlink(path);
	end(begin("2"));
	unlink(path);
	strcpy(path, folder);
	expect_refused(-EINVAL, "empty");
}

static void test_compressed_and_cut_short(void **state)
{
	struct sim_place_traces t;
	struct ebb_err err;
	struct stat st;
	gzFile f;

	(void)state;
	snprintf(path, sizeof(path), "%s/day.gz", folder);
	f = gzopen(path, "w");
	for (int row = 0; row < 50; row++)
		for (int i = 0; i < 288; i++)
			gzprintf(f, "%d%c", (i * row * 7919) % 101, i < 287 ? ',' : '\n');
	gzclose(f);
	assert_int_equal(sim_place_traces_load(path, &t, &err), 0);
	assert_int_equal(t.num_rows, 50);
	sim_place_traces_finish(&t);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size / 2), 0);
	assert_true(sim_place_traces_load(path, &t, &err) < 0);
	unlink(path);
}

static void test_made_up(void **state)
{
	struct sim_place_traces t, same;
	double sum = 0;

	(void)state;
	assert_int_equal(sim_place_traces_make(3, 500, &t), 0);
	assert_int_equal(sim_place_traces_make(3, 500, &same), 0);
	for (uint32_t i = 0; i < t.num_rows; i++)
		for (uint32_t k = 0; k < t.rows[i].num_steps; k++) {
			sum += t.rows[i].percent[k];
			assert_true(t.rows[i].percent[k] == same.rows[i].percent[k]);
		}
	/* The six days of PlanetLab's traces: 11.1. */
	assert_float_equal(sum / 500 / SIM_PLACE_WEEK, 11, 2);
	sim_place_traces_finish(&t);
	sim_place_traces_finish(&same);
}

/* ---- databases ---- */

#define DRAWS	20000u

static int compare(const void *a, const void *b)
{
	return (*(const uint32_t *)a > *(const uint32_t *)b) -
	       (*(const uint32_t *)a < *(const uint32_t *)b);
}

static void test_statistics(void **state)
{
	static uint32_t lives[2][DRAWS];
	uint32_t counts[2] = { 0 }, classes[SIM_PLACE_CLASSES] = { 0 };
	struct sim_place_traces t;
	uint64_t random = 1;
	double memory = 0, disk = 0, all = 0;

	(void)state;
	assert_int_equal(sim_place_traces_make(1, 10, &t), 0);
	for (uint32_t i = 0; i < DRAWS; i++) {
		struct sim_place_database db;

		sim_place_draw(&random, &t, SIM_PLACE_SIMULATED, -1, &db);
		lives[db.is_brief][counts[db.is_brief]++] = db.life;
		classes[db.class]++;
		sim_place_draw(&random, &t, SIM_PLACE_SIMULATED, 0, &db);
		assert_int_equal(db.class, 0);
		assert_in_range(1000 * db.memory_peak, 0, 1000);
		assert_in_range(1000 * db.disk_peak, 0, 1000);
		memory += db.memory_peak / DRAWS;
		disk += db.disk_peak / DRAWS;
	}
	for (uint32_t c = 0; c < SIM_PLACE_CLASSES; c++) {
		all += sim_place_classes[c].fraction;
		assert_float_equal((double)classes[c] / DRAWS, sim_place_classes[c].fraction, 0.01);
	}
	assert_float_equal(all, 1, 1e-9);
	assert_float_equal(memory, 0.50, 0.01);
	assert_float_equal(disk, 0.32, 0.01);
	assert_float_equal((double)counts[1] / DRAWS, 0.5, 0.02);
	for (int brief = 0; brief < 2; brief++)
		qsort(lives[brief], counts[brief], sizeof(uint32_t), compare);
	assert_float_equal(lives[0][counts[0] / 2] / 144.0, 56, 2);
	assert_float_equal(lives[0][counts[0] * 9 / 10] / 144.0, 88, 3);
	assert_float_equal(lives[1][counts[1] / 2] / 6.0, 4, 0.3);
	sim_place_traces_finish(&t);
}

/* Rows of earlier VMs and of simulated ones are never the same, also where they are few. */
static void test_halves_are_disjoint(void **state)
{
	(void)state;
	for (uint32_t rows = 2; rows < 10; rows++) {
		struct sim_place_traces t;
		uint32_t seen[2][10] = { { 0 } };
		uint64_t random = rows;

		assert_int_equal(sim_place_traces_make(1, rows, &t), 0);
		for (uint32_t i = 0; i < 1000; i++)
			for (int half = 0; half < 2; half++) {
				struct sim_place_database db;

				sim_place_draw(&random, &t, half, -1, &db);
				seen[half][db.row]++;
			}
		for (uint32_t row = 0; row < rows; row++)
			assert_true(!seen[0][row] != !seen[1][row]);
		sim_place_traces_finish(&t);
	}
}

static void test_growth(void **state)
{
	const struct sim_place_database db = { .class = 1, .life = 1000, .memory_peak = 0.5,
					       .disk_peak = 0.25, .shift = 144 };
	double use[PLACE_N_RESOURCES], max[PLACE_N_RESOURCES], before = 0;
	struct sim_place_traces t;

	(void)state;
	assert_int_equal(sim_place_traces_make(1, 2, &t), 0);
	sim_place_maximum(1, max);
	assert_float_equal(max[PLACE_CPU], 4000, 0);
	for (uint32_t age = 0; age < 1000; age++) {
		sim_place_use(&db, &t, false, 10, age, use);
		assert_true(use[PLACE_MEMORY] > before);
		before = use[PLACE_MEMORY];
		assert_float_equal(use[PLACE_CPU],
				   40 * t.rows[0].percent[(10 + age + 144) % 1008], 1e-3);
		if (age == 0)
			assert_float_equal(use[PLACE_DISK], 0.1 * 0.25 * max[PLACE_DISK], 1);
		if (age == 50)
			assert_float_equal(use[PLACE_MEMORY], 0.95 * 0.5 * max[PLACE_MEMORY], 1);
	}
	assert_float_equal(before, 0.5 * max[PLACE_MEMORY], 10);
	sim_place_use(&db, &t, true, 10, 999, max);
	assert_float_equal(max[PLACE_MEMORY], before, 1e-6);
	assert_float_equal(max[PLACE_CPU], SIM_PLACE_SECONDARY_CPU * use[PLACE_CPU], 1e-3);
	sim_place_traces_finish(&t);
}

/* A serverless database without use lets go of its memory, and takes it again. */
static void test_pause(void **state)
{
	float percent[SIM_PLACE_WEEK] = { 0 };
	struct sim_place_row rows[2] = { { SIM_PLACE_WEEK, percent }, { SIM_PLACE_WEEK, percent } };
	const struct sim_place_traces t = { .num_rows = 2, .rows = rows };
	struct sim_place_database db = { .class = 5, .life = 10000, .memory_peak = 1,
					 .disk_peak = 1 };
	double use[PLACE_N_RESOURCES];

	(void)state;
	assert_true(sim_place_classes[5].is_serverless);
	percent[100] = 6;
	percent[200] = 5;
	for (uint32_t age = 0; age < 300; age++) {
		const bool is_active = age < 6 || (age >= 100 && age < 106);

		assert_int_equal(sim_place_is_active(&db, &t, 0, age), is_active);
		sim_place_use(&db, &t, false, 0, age, use);
		assert_int_equal(use[PLACE_MEMORY] > 0, is_active);
		assert_true(use[PLACE_DISK] > 0);
		if (age == 100)
			assert_float_equal(use[PLACE_CPU], 0.06 * 2000, 1e-3);
		db.class = 0;
		sim_place_use(&db, &t, false, 0, age, use);
		assert_true(use[PLACE_MEMORY] > 0);
		db.class = 5;
	}
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs_become_steps),
		cmocka_unit_test(test_days_are_joined_by_rank),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_compressed_and_cut_short),
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_halves_are_disjoint),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_pause),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
