// SPDX-License-Identifier: GPL-2.0-or-later
/* What is made of the counters of guests, honest ones and others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "model/relio.h"

#define MIB	64u
#define SEC(n)	((usec_t)(n) * EBB_USEC_PER_SEC)

static struct ebb_relio relio;
static struct ebb_relio_interval got;

static enum ebb_relio_verdict take(usec_t now, uint32_t mib, uint64_t baseline, uint64_t actual)
{
	const struct ebb_telemetry t = {
		.baseline_mib = mib, .baseline_ios = baseline, .actual_ios = actual,
		.accesses = 10 * (baseline + actual),
	};

	return ebb_relio_take(&relio, now, MIB, &t, &got);
}

static int fresh(void **state)
{
	(void)state;
	relio = (struct ebb_relio){ 0 };
	return 0;
}

static void differences_of_readings(void **state)
{
	(void)state;
	assert_true(ebb_relio_is_due(&relio, SEC(1), SEC(1)));
	assert_int_equal(take(SEC(1), MIB, 1000, 2000), EBB_RELIO_NONE);
	assert_int_equal(got.length, 0);
	assert_false(ebb_relio_is_due(&relio, SEC(1) + 800000, SEC(1)));
	assert_true(ebb_relio_is_due(&relio, SEC(1) + 900000, SEC(1)));
	assert_int_equal(take(SEC(2), MIB, 1010, 2030), EBB_RELIO_GOOD);
	assert_int_equal(got.length, SEC(1));
	assert_int_equal(got.baseline, 10);
	assert_int_equal(got.actual, 30);
	assert_int_equal(got.accesses, 400);
	assert_int_equal(ebb_relio_grain(&got), 16);
	assert_int_equal(take(SEC(3), MIB, 2010, 2030), EBB_RELIO_GOOD);
	assert_int_equal(ebb_relio_grain(&got), 36);
}

static void nothing_is_said_of_another_cache(void **state)
{
	(void)state;
	assert_int_equal(take(SEC(1), MIB, 0, 0), EBB_RELIO_NONE);
	/* It simulates another size now, then none: both readings around count from anew. */
	assert_int_equal(take(SEC(2), MIB + 2, 10, 10), EBB_RELIO_NONE);
	assert_int_equal(take(SEC(3), MIB, 20, 20), EBB_RELIO_NONE);
	assert_int_equal(take(SEC(4), MIB, 30, 30), EBB_RELIO_GOOD);
	assert_int_equal(got.baseline, 10);
	assert_int_equal(take(SEC(5), 0, 30, 30), EBB_RELIO_NONE);
	assert_int_equal(relio.doubt_until, 0);
}

static void counters_that_go_back_are_doubted(void **state)
{
	(void)state;
	take(SEC(1), MIB, 1000, 1000);
	assert_int_equal(take(SEC(2), MIB, 999, 1001), EBB_RELIO_DOUBTED);
	assert_true(got.is_new_doubt && got.is_back);
	assert_int_equal(got.actual, 0);
	/* For a minute, whatever it says, and that is told once. */
	assert_int_equal(take(SEC(3), MIB, 1000, 1001), EBB_RELIO_DOUBTED);
	assert_false(got.is_new_doubt || got.is_back);
	assert_int_equal(take(SEC(61), MIB, 1001, 1002), EBB_RELIO_DOUBTED);
	assert_int_equal(take(SEC(62), MIB, 1002, 1003), EBB_RELIO_GOOD);
	assert_int_equal(take(SEC(63), MIB, 1003, 1002), EBB_RELIO_DOUBTED);
	assert_true(got.is_new_doubt);
}

static void more_than_any_vm_can_do_is_doubted(void **state)
{
	const uint64_t most = EBB_RELIO_MOST_PER_SEC;

	(void)state;
	take(SEC(1), MIB, 0, 0);
	assert_int_equal(take(SEC(2), MIB, most, most), EBB_RELIO_GOOD);
	assert_int_equal(take(SEC(3), MIB, most, 5 * most), EBB_RELIO_DOUBTED);
	fresh(NULL);
	take(SEC(1), MIB, 0, 0);
	/* A baseline without end would excuse everything. */
	assert_int_equal(take(SEC(2), MIB, UINT64_MAX, 0), EBB_RELIO_DOUBTED);
	assert_true(got.is_new_doubt && !got.is_back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(differences_of_readings, fresh),
		cmocka_unit_test_setup(nothing_is_said_of_another_cache, fresh),
		cmocka_unit_test_setup(counters_that_go_back_are_doubted, fresh),
		cmocka_unit_test_setup(more_than_any_vm_can_do_is_doubted, fresh),
	};

	return cmocka_run_group_tests_name("model_relio", tests, NULL, NULL);
}
