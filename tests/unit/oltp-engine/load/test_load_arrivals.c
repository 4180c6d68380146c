// SPDX-License-Identifier: GPL-2.0-or-later
/* Arrivals of the load generator: at the rate, whatever the steps; a Poisson process if asked. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oltp-engine/load/decide/arrivals.h"

#define MS	1000000ull
#define S	1000000000ull

static uint32_t count_until(struct load_arrivals *arrivals, uint64_t until_ns)
{
	uint32_t n = 0;

	for (; load_arrivals_next(arrivals) <= until_ns; n++)
		load_arrivals_take(arrivals);
	return n;
}

static void test_even(void **state)
{
	static const struct load_step steps[] = { { 0, 1000 } };
	struct load_arrivals a;

	(void)state;
	load_arrivals_init(&a, steps, 1, false, 1, 7 * S);
	for (uint64_t i = 1; i <= 5000; i++) {
		assert_int_equal(load_arrivals_next(&a), 7 * S + i * MS);
		load_arrivals_take(&a);
	}
}

/* A distance that a step divides: 0.4 of it at 1 per second, 0.6 at 10 per second. */
static void test_steps_divide_a_distance(void **state)
{
	static const struct load_step steps[] = { { 0, 1 }, { 400 * MS, 10 }, { 2 * S, 0 } };
	struct load_arrivals a;

	(void)state;
	load_arrivals_init(&a, steps, 3, false, 1, 0);
	assert_int_equal(load_arrivals_next(&a), 460 * MS);
	load_arrivals_take(&a);
	assert_int_equal(load_arrivals_next(&a), 560 * MS);
	assert_int_equal(count_until(&a, UINT64_MAX - 1), 15);
	assert_int_equal(load_arrivals_next(&a), UINT64_MAX);
	load_arrivals_take(&a);
	assert_int_equal(load_arrivals_next(&a), UINT64_MAX);
}

static void test_a_pause(void **state)
{
	static const struct load_step steps[] = { { 0, 0 }, { S, 100 }, { 2 * S, 0 },
						  { 3 * S, 100 } };
	struct load_arrivals a;

	(void)state;
	load_arrivals_init(&a, steps, 4, false, 1, 0);
	assert_int_equal(count_until(&a, S), 0);
	assert_in_range(count_until(&a, 2 * S), 99, 100);
	assert_int_equal(count_until(&a, 3 * S), 0);
	assert_in_range(count_until(&a, 4 * S), 99, 101);
}

/* Mean and deviation of the distances are both 1 / rate; the same seed gives the same. */
static void test_poisson(void **state)
{
	static const struct load_step steps[] = { { 0, 1000 } };
	struct load_arrivals a, b, other;
	double sum = 0, squares = 0, mean;
	const uint32_t n = 100000;
	uint64_t last = 0;
	uint32_t differ = 0;

	(void)state;
	load_arrivals_init(&a, steps, 1, true, 5, 0);
	load_arrivals_init(&b, steps, 1, true, 5, 0);
	load_arrivals_init(&other, steps, 1, true, 6, 0);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t next = load_arrivals_next(&a);
		double distance = (double)(next - last);

		assert_true(next >= last);
		assert_int_equal(next, load_arrivals_next(&b));
		differ += next != load_arrivals_next(&other);
		sum += distance;
		squares += distance * distance;
		last = next;
		load_arrivals_take(&a);
		load_arrivals_take(&b);
		load_arrivals_take(&other);
	}
	mean = sum / n;
	assert_true(fabs(mean - 1e6) < 0.02e6);
	assert_true(fabs(sqrt(squares / n - mean * mean) - 1e6) < 0.03e6);
	assert_true(differ > n / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_even),
		cmocka_unit_test(test_steps_divide_a_distance),
		cmocka_unit_test(test_a_pause),
		cmocka_unit_test(test_poisson),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
