// SPDX-License-Identifier: GPL-2.0-or-later
/* The Zipfian generator against the exact probabilities. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/zipf.h"

#define DRAWS	400000u

/*
 * Pearson's statistic for n ranks. Under the right distribution it has mean n - 1 and variance
 * 2 (n - 1), so being six deviations off is far rarer than one in a million (and the seed is fixed:
 * what passes once passes always).
 */
static double chi_square_excess(uint64_t n, double theta, double claimed_theta)
{
	uint64_t *counts = calloc(n, sizeof(*counts));
	struct random64 random = { 12345 };
	double zeta = 0, chi2 = 0;
	struct zipf zipf;

	assert_int_equal(zipf_init(&zipf, n, theta, false), 0);
	for (uint32_t i = 0; i < DRAWS; i++) {
		uint64_t rank = zipf_next(&zipf, &random);

		assert_true(rank < n);
		counts[rank]++;
	}
	for (uint64_t r = 0; r < n; r++)
		zeta += pow((double)r + 1, -claimed_theta);
	for (uint64_t r = 0; r < n; r++) {
		double expected = DRAWS * pow((double)r + 1, -claimed_theta) / zeta;

		chi2 += ((double)counts[r] - expected) * ((double)counts[r] - expected) / expected;
	}
	free(counts);
	return (chi2 - (double)(n - 1)) / sqrt(2.0 * (double)(n - 1));
}

static void test_exact_probabilities(void **state)
{
	(void)state;
	static const double thetas[] = { 0, 0.1, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999 };
	static const uint64_t ns[] = { 2, 3, 10, 100, 1000 };

	for (size_t t = 0; t < sizeof(thetas) / sizeof(thetas[0]); t++) {
		for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
			double excess = chi_square_excess(ns[i], thetas[t], thetas[t]);

			if (fabs(excess) > 6)
				fail_msg("theta %g, n %lu: %g deviations off", thetas[t],
					 (unsigned long)ns[i], excess);
		}
	}
}

/* The test above must be able to fail. */
static void test_wrong_theta_is_noticed(void **state)
{
	(void)state;
	assert_true(chi_square_excess(100, 0.5, 0.52) > 6);
	assert_true(chi_square_excess(100, 0, 0.03) > 6);
	assert_true(chi_square_excess(100, 0.99, 0.97) > 6);
}

/* Large n, where counting ranks is hopeless: the share of the hottest one percent. */
static void test_head_of_a_large_table(void **state)
{
	(void)state;
	static const double thetas[] = { 0.5, 0.9, 0.99 };
	const uint64_t n = 1000000;

	for (size_t t = 0; t < 3; t++) {
		struct random64 random = { 99 };
		double head = 0, zeta = 0, share, deviation;
		uint32_t hits = 0;
		struct zipf zipf;

		for (uint64_t r = 0; r < n; r++) {
			double p = pow((double)r + 1, -thetas[t]);

			zeta += p;
			head += r < n / 100 ? p : 0;
		}
		assert_int_equal(zipf_init(&zipf, n, thetas[t], false), 0);
		for (uint32_t i = 0; i < DRAWS; i++)
			hits += zipf_next(&zipf, &random) < n / 100;
		share = head / zeta;
		deviation = sqrt(share * (1 - share) / DRAWS);
		assert_true(fabs((double)hits / DRAWS - share) < 5 * deviation);
	}
}

static void test_scramble_is_a_permutation(void **state)
{
	(void)state;
	static const uint64_t ns[] = { 1, 2, 3, 10, 64, 1000, 65536, 99991 };

	for (size_t i = 0; i < sizeof(ns) / sizeof(ns[0]); i++) {
		uint8_t *seen = calloc(ns[i], 1);
		struct zipf zipf;

		assert_int_equal(zipf_init(&zipf, ns[i], 0.5, true), 0);
		for (uint64_t rank = 0; rank < ns[i]; rank++) {
			uint64_t key = zipf_scramble(&zipf, rank);

			assert_true(key < ns[i]);
			assert_int_equal(seen[key]++, 0);
		}
		free(seen);
	}
}

static void test_scrambled_draws_are_the_same_ranks(void **state)
{
	(void)state;
	struct random64 a = { 5 }, b = { 5 };
	struct zipf plain, scrambled;

	assert_int_equal(zipf_init(&plain, 5000, 0.9, false), 0);
	assert_int_equal(zipf_init(&scrambled, 5000, 0.9, true), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(zipf_scramble(&scrambled, zipf_next(&plain, &a)),
				 zipf_next(&scrambled, &b));
}

static void test_bad_parameters(void **state)
{
	(void)state;
	struct zipf zipf;

	assert_int_equal(zipf_init(&zipf, 0, 0.5, false), -EINVAL);
	assert_int_equal(zipf_init(&zipf, (1ull << 31) + 1, 0.5, false), -EINVAL);
	assert_int_equal(zipf_init(&zipf, 10, 1, false), -EINVAL);
	assert_int_equal(zipf_init(&zipf, 10, -0.1, false), -EINVAL);
	assert_int_equal(zipf_init(&zipf, 10, NAN, false), -EINVAL);
	assert_int_equal(zipf_init(&zipf, 1, 0.99, false), 0);
	assert_int_equal(zipf_init(&zipf, 1ull << 31, 0.99, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_probabilities),
		cmocka_unit_test(test_wrong_theta_is_noticed),
		cmocka_unit_test(test_head_of_a_large_table),
		cmocka_unit_test(test_scramble_is_a_permutation),
		cmocka_unit_test(test_scrambled_draws_are_the_same_ranks),
		cmocka_unit_test(test_bad_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
