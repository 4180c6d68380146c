// SPDX-License-Identifier: GPL-2.0-or-later
/* How often records are used, from looks at their stamps: the pure part, with made-up times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/include/oltp.h"
#include "oltp-engine/src/memory/recency_sample.h"
#include "oltp-engine/src/cold/reread.h"
#include "tests/lib/chance.h"

#define TICK	20000000ull
#define SECOND	1000000000ull
#define MIB	(1ull << 20)

/* ---- when an epoch was ---- */

static void test_clock_knows_the_last_ticks_exactly(void **state)
{
	(void)state;
	struct recency_clock *clock = calloc(1, sizeof(*clock));

	assert_non_null(clock);
	assert_int_equal(recency_clock_ns(clock, 5), 0);
	for (uint64_t i = 1; i <= 100; i++) {
		/* Epochs advance in between as well. */
		recency_clock_tick(clock, 10 * i, i * TICK);
		assert_int_equal(recency_clock_ns(clock, 10 * i), i * TICK);
		assert_int_equal(recency_clock_ns(clock, 10 * i + 7), i * TICK);
		assert_int_equal(recency_clock_ns(clock, UINT64_MAX), i * TICK);
		for (uint64_t k = i > 31 ? i - 31 : 1; k <= i; k++) {
			assert_int_equal(recency_clock_ns(clock, 10 * k), k * TICK);
			assert_int_equal(recency_clock_ns(clock, 10 * k + 9), k * TICK);
		}
		/* Before everything. */
		assert_int_equal(recency_clock_ns(clock, 9), 0);
	}
	free(clock);
}

static void test_clock_is_a_fifteenth_off_at_most(void **state)
{
	(void)state;
	struct recency_clock *clock = calloc(1, sizeof(*clock));
	const uint64_t n = 300000;

	assert_non_null(clock);
	for (uint64_t i = 1; i <= n; i++)
		recency_clock_tick(clock, i, i * TICK);
	for (uint64_t i = 1; i <= n; i += i % 7 + 1) {
		uint64_t ns = recency_clock_ns(clock, i);

		assert_true(ns > 0 && ns <= i * TICK);
		assert_true((i * TICK - ns) * 15 <= (n - i) * TICK);
	}
	free(clock);
}

/* ---- a record ---- */

static void test_last_two_uses_are_kept(void **state)
{
	(void)state;
	struct recency r;

	recency_begin(&r, 5, 5 * TICK, 9 * TICK);
	assert_int_equal(r.since_ns, 9 * TICK);
	assert_int_equal(r.used_ns[0], 5 * TICK);
	assert_int_equal(r.used_ns[1], 0);
	/* Not used since; a stamp that went back; one that cannot be seen. */
	recency_look(&r, 5, 5 * TICK);
	recency_look(&r, 4, 4 * TICK);
	recency_look(&r, 0, 0);
	assert_int_equal(r.used_ns[0], 5 * TICK);
	assert_int_equal(r.used_ns[1], 0);
	recency_look(&r, 12, 10 * TICK);
	assert_int_equal(r.used_ns[0], 10 * TICK);
	assert_int_equal(r.used_ns[1], 5 * TICK);
	/* The same tick: the same use. */
	recency_look(&r, 13, 10 * TICK);
	assert_int_equal(r.used_ns[0], 10 * TICK);
	assert_int_equal(r.used_ns[1], 5 * TICK);
	recency_look(&r, 13, 10 * TICK);
	recency_look(&r, 14, 11 * TICK);
	assert_int_equal(r.used_ns[0], 11 * TICK);
	assert_int_equal(r.used_ns[1], 10 * TICK);
}

static void test_unknown_stamps_are_no_uses(void **state)
{
	(void)state;
	struct recency r;

	recency_begin(&r, 0, 0, 9 * TICK);
	assert_int_equal(r.used_ns[0], 0);
	recency_look(&r, 3, 3 * TICK);
	assert_int_equal(r.used_ns[0], 3 * TICK);
	assert_int_equal(r.used_ns[1], 0);
	/* Before all that the clock knows: a newer stamp, but no time to go by. */
	recency_begin(&r, 3, 0, 9 * TICK);
	recency_look(&r, 4, 0);
	assert_int_equal(r.used_ns[0], 0);
	recency_look(&r, 5, 7 * TICK);
	assert_int_equal(r.used_ns[0], 7 * TICK);
	assert_int_equal(r.used_ns[1], 0);
}

/* Against a list of all uses, whatever was looked at and when. */
static void test_random_uses_against_a_list(void **state)
{
	(void)state;
	struct recency_clock *clock = calloc(1, sizeof(*clock));
	uint64_t random = 7;

	assert_non_null(clock);
	for (int round = 0; round < 2000; round++) {
		uint64_t last = 0, before = 0, stamp = 0;
		struct recency r;

		memset(clock, 0, sizeof(*clock));
		recency_clock_tick(clock, 1, TICK);
		recency_begin(&r, 0, 0, TICK);
		for (uint64_t i = 2; i < 30; i++) {
			chance_step(&random);
			recency_clock_tick(clock, i, i * TICK);
			if (random >> 62 == 0) {
				stamp = i;
				before = last;
				last = i * TICK;
			}
			recency_look(&r, stamp, recency_clock_ns(clock, stamp));
			assert_int_equal(r.used_ns[0], last);
			assert_int_equal(r.used_ns[1], before);
		}
	}
	free(clock);
}

/* ---- rates ---- */

static double rate_of(uint64_t last_ns, uint64_t before_ns, uint64_t watched_ns)
{
	return oltp_memory_sample_rate(&(struct oltp_memory_sample){
		.last_ns = last_ns, .before_ns = before_ns, .watched_ns = watched_ns,
		.expected = 1 });
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

static void test_rates(void **state)
{
	(void)state;
	assert_true(is_near(rate_of(SECOND, 4 * SECOND, 9 * SECOND), 0.25));
	assert_true(is_near(rate_of(5 * SECOND, OLTP_NOT_KNOWN, SECOND), 0.1));
	assert_true(is_near(rate_of(OLTP_NOT_KNOWN, OLTP_NOT_KNOWN, 50 * SECOND), 0.01));
	/* No more than can be seen. */
	assert_true(is_near(rate_of(0, 0, 0), 50));
	assert_true(is_near(rate_of(0, OLTP_NOT_KNOWN, 0), 50));
	assert_true(is_near(rate_of(OLTP_NOT_KNOWN, OLTP_NOT_KNOWN, 0), 50));
}

static double exponential(uint64_t *random, double mean)
{
	chance_step(random);
	return -mean * log(((double)(*random >> 11) + 1) / 9007199254740993.0);
}

/* Uses that are independent of each other, looked at at some time: right on average. */
static void test_rate_is_unbiased(void **state)
{
	(void)state;
	const double rates[] = { 0.01, 0.1, 1 };
	uint64_t random = 3;

	for (uint32_t k = 0; k < 3; k++) {
		double sum = 0;
		const int n = 200000;

		for (int i = 0; i < n; i++) {
			double last = exponential(&random, 1 / rates[k]);
			double before = last + exponential(&random, 1 / rates[k]);

			sum += rate_of((uint64_t)(last * 1e9), (uint64_t)(before * 1e9), 0);
		}
		assert_true(fabs(sum / n / rates[k] - 1) < 0.05);
	}
}

/* ---- how much is watched ---- */

static void test_buckets_wanted(void **state)
{
	(void)state;
	struct recency_facts f = { .n_buckets = 250000, .resident_records = 1000000,
				   .resident_bytes = 1000 * MIB };

	/* Four records to a bucket. */
	assert_int_equal(recency_members_wanted(&f, 1000 * MIB), 512);
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 129);
	/* Half of the memory is another table's, or nearly all of it. */
	assert_int_equal(recency_buckets_wanted(&f, 2000 * MIB), 65);
	assert_int_equal(recency_buckets_wanted(&f, 1000000 * MIB), 5);
	/* Not for every change. */
	f.n_watched = 100;
	f.n_members = 400;
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 100);
	f.n_watched = 190;
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 190);
	f.n_watched = 200;
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 129);
	f.n_watched = 80;
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 129);
	/* All on disk, or nearly: as many as there were, or as there is room for. */
	f.resident_records = f.resident_bytes = 0;
	f.n_watched = 10;
	f.n_members = 40;
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 10);
	f.n_watched = 129;
	f.n_members = 516;
	f.resident_records = 100000;
	f.resident_bytes = 100 * MIB;
	assert_int_equal(recency_buckets_wanted(&f, 100 * MIB), 512);
	/* A small table, an empty one with a large index, the smallest. */
	f = (struct recency_facts){ .n_buckets = 3, .resident_records = 5, .resident_bytes = 1 };
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), 3);
	f = (struct recency_facts){ .n_buckets = 1000000 };
	assert_int_equal(recency_buckets_wanted(&f, 1000 * MIB), RECENCY_BUCKETS_MAX);
	f = (struct recency_facts){ .n_buckets = 1 };
	assert_int_equal(recency_buckets_wanted(&f, 0), 1);
}

static void test_step_meets_all(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 400; n++) {
		uint64_t step = recency_step(n), at = n / 3;
		bool seen[400] = { false };

		for (uint64_t i = 0; i < n; i++, at = (at + step) % n) {
			assert_false(seen[at]);
			seen[at] = true;
		}
	}
}

/* ---- classes ---- */

static void test_classes(void **state)
{
	(void)state;
	struct oltp_memory_sample samples[6] = {
		/* Not in memory: in no class. */
		{ .bytes = 1024, .last_ns = 1, .before_ns = 1, .stands_for_bytes = 9 * MIB },
	};
	struct oltp_memory_class classes[4];

	/* Five of 1 MiB each, used i seconds ago and twice as long, 100 us to read. */
	for (uint64_t i = 1; i <= 5; i++)
		samples[i] = (struct oltp_memory_sample){
			.bytes = 1024, .is_resident = true, .last_ns = (6 - i) * SECOND,
			.before_ns = 2 * (6 - i) * SECOND, .reread_ns = 100000,
			.stands_for_bytes = MIB, .expected = 1 };
	assert_int_equal(oltp_memory_classes_make(samples, 6, classes, 1), 1);
	assert_int_equal(classes[0].bytes, 5 * MIB);
	assert_int_equal(classes[0].samples, 5);
	assert_true(classes[0].last_ns_max == OLTP_NOT_KNOWN);
	assert_int_equal(oltp_memory_classes_make(samples, 6, classes, 2), 2);
	assert_int_equal(classes[0].bytes, 3 * MIB);
	assert_int_equal(classes[0].last_ns_max, 3 * SECOND);
	assert_int_equal(classes[1].bytes, 2 * MIB);
	/* 1024 records to a MiB, each used so often. */
	assert_true(is_near(classes[0].uses_ps, 1024 * (0.5 + 0.25 + 1.0 / 6)));
	assert_true(is_near(classes[0].value, 100000 * classes[0].uses_ps / 3));
	assert_true(classes[0].value > classes[1].value);
	/* Those of one age are not told apart. */
	for (uint32_t i = 0; i < 6; i++)
		samples[i].last_ns = SECOND;
	assert_int_equal(oltp_memory_classes_make(samples, 6, classes, 4), 1);
	assert_int_equal(classes[0].bytes, 5 * MIB);
	assert_int_equal(oltp_memory_classes_make(samples, 0, classes, 4), 0);
	assert_int_equal(oltp_memory_classes_make(samples, 6, classes, 0), 0);
}

/* ---- what reading takes ---- */

static bool mean_is(const struct reread *reread, double ns)
{
	return fabs((double)reread->mean_ns / ns - 1) < 1.0 / 16;
}

static void test_mean_moves(void **state)
{
	(void)state;
	struct reread *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	reread_turn(r);
	assert_int_equal(r->mean_ns, 0);
	/* The first few are better than nothing. */
	reread_note(r, 100000, 3);
	reread_turn(r);
	assert_true(mean_is(r, 100000));
	reread_note(r, 180000, 5);
	reread_turn(r);
	assert_true(mean_is(r, 150000));
	reread_note(r, 150000, REREAD_READS - 8);
	reread_turn(r);
	assert_true(mean_is(r, 150000));
	/* Few change little, up or down. */
	reread_note(r, 400000, REREAD_READS / 100);
	reread_turn(r);
	assert_true(mean_is(r, 152500));
	reread_note(r, 50000, REREAD_READS / 100);
	reread_turn(r);
	assert_true(mean_is(r, 151500));
	for (uint32_t i = 0; i < REREAD_READS; i++) {
		reread_note(r, 50000, 1);
		reread_turn(r);
	}
	/* Counted one by one: one part in e is left of what was before. */
	assert_true(mean_is(r, 50000 + 101500 / 2.718));
	/* Many set it. */
	reread_note(r, 400000, REREAD_READS);
	reread_turn(r);
	assert_true(mean_is(r, 400000));
	reread_note(r, 50000, 100 * REREAD_READS);
	reread_turn(r);
	assert_true(mean_is(r, 50000));
	reread_turn(r);
	assert_true(mean_is(r, 50000));
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_knows_the_last_ticks_exactly),
		cmocka_unit_test(test_clock_is_a_fifteenth_off_at_most),
		cmocka_unit_test(test_last_two_uses_are_kept),
		cmocka_unit_test(test_unknown_stamps_are_no_uses),
		cmocka_unit_test(test_random_uses_against_a_list),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_rate_is_unbiased),
		cmocka_unit_test(test_buckets_wanted),
		cmocka_unit_test(test_step_meets_all),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_mean_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
