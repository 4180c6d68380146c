// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A promised cache beside databases that want all memory there is, under every policy that brokers
 * memory: the promise holds with the floor, and is broken without.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulate/promised.h"

static struct promised_result run(const struct ebb_policy_ops *policy, uint32_t num_others,
				  bool is_kept)
{
	const struct promised_options options = {
		.seed = 1, .num_others = num_others, .is_kept = is_kept,
	};
	struct promised_result r;

	assert_int_equal(promised_run(&options, policy, &r), 0);
	printf("%-13s %u others, %s: relative I/O %+.3f, %u violations, %.0f MiB, floor at least "
	       "%.0f MiB, others %.0f\n", r.policy, num_others, is_kept ? "kept" : "metered",
	       r.relative_io, r.num_violations, r.mib, r.least_floor_mib, r.others);
	return r;
}

static void test_policies(void **state)
{
	static const struct ebb_policy_ops *const policies[] = {
		&ebb_policy_vom, &ebb_policy_equal, &ebb_policy_proportional, &ebb_policy_fair,
	};

	(void)state;
	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		const struct promised_result kept = run(policies[p], 7, true);
		const struct promised_result not_kept = run(policies[p], 7, false);

		assert_true(kept.relative_io <= 0.001);
		assert_true(kept.num_violations <= PROMISED_LENGTH_S / 100);
		assert_true(not_kept.relative_io > 0.1);
		assert_true(not_kept.num_violations > PROMISED_LENGTH_S / 2);
		assert_true(kept.mib >= PROMISED_MIB);
	}
}

static void test_bad_options(void **state)
{
	const struct promised_options options = { .num_others = PROMISED_MAX_OTHERS + 1 };
	struct promised_result r;

	(void)state;
	assert_int_equal(promised_run(&options, &ebb_policy_vom, &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_bad_options),
	};

	return cmocka_run_group_tests_name("simulate promised", tests, NULL, NULL);
}
