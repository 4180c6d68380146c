// SPDX-License-Identifier: GPL-2.0-or-later
/* Dividing in proportion to weights within bounds: examples, and what must hold for any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "model/level.h"
#include "tests/lib/chance.h"

#define NUM_ROUNDS	20000u
#define MAX_PARTS	9u

static void test_in_proportion(void **state)
{
	struct ebb_level_part p[3] = {
		{ .high = 100, .weight = 3 }, { .high = 100, .weight = 2 },
		{ .high = 100, .weight = 1 },
	};

	(void)state;
	ebb_level_fill(p, 3, 60);
	assert_int_equal(p[0].value, 30);
	assert_int_equal(p[1].value, 20);
	assert_int_equal(p[2].value, 10);
	/* What the first can not have goes to the others in the same proportion. */
	p[0].high = 12;
	ebb_level_fill(p, 3, 60);
	assert_int_equal(p[0].value, 12);
	assert_int_equal(p[1].value, 32);
	assert_int_equal(p[2].value, 16);
	/* And the third gets no less than is promised to it. */
	p[2].low = 40;
	ebb_level_fill(p, 3, 60);
	assert_int_equal(p[0].value, 12);
	assert_int_equal(p[1].value, 8);
	assert_int_equal(p[2].value, 40);
}

static void test_bounds_go_before_the_total(void **state)
{
	struct ebb_level_part p[2] = { { .low = 4, .high = 6 }, { .low = 3, .high = 9 } };

	(void)state;
	ebb_level_fill(p, 2, 5);
	assert_int_equal(p[0].value, 4);
	assert_int_equal(p[1].value, 3);
	ebb_level_fill(p, 2, 1000);
	assert_int_equal(p[0].value, 6);
	assert_int_equal(p[1].value, 9);
	ebb_level_fill(p, 0, 1000);
}

static void test_last_unit(void **state)
{
	struct ebb_level_part p[3] = { { .high = 9 }, { .high = 9 }, { .high = 9 } };

	(void)state;
	ebb_level_fill(p, 3, 10);
	assert_int_equal(p[0].value, 4);
	assert_int_equal(p[1].value, 3);
	/* One that has more keeps it. */
	p[2].has = 4;
	ebb_level_fill(p, 3, 10);
	assert_int_equal(p[0].value, 3);
	assert_int_equal(p[2].value, 4);
	ebb_level_fill(p, 3, 11);
	assert_int_equal(p[0].value, 4);
	assert_int_equal(p[1].value, 3);
}

static void test_large_numbers(void **state)
{
	struct ebb_level_part p[3] = {
		{ .high = UINT32_MAX, .weight = UINT32_MAX },
		{ .high = UINT32_MAX, .weight = UINT32_MAX - 1 },
		{ .high = UINT32_MAX, .weight = 1 },
	};
	uint64_t sum = 0;

	(void)state;
	ebb_level_fill(p, 3, 7ull << 30);
	for (int i = 0; i < 3; i++)
		sum += p[i].value;
	assert_true(sum == 7ull << 30);
	ebb_level_fill(p, 3, UINT64_MAX >> 1);
	assert_int_equal(p[2].value, UINT32_MAX);
}

/* No unit would be better with somebody else who may have it, by what each has for its weight. */
static void check_fair(const struct ebb_level_part *p, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			if (p[i].value < p[i].high && p[k].value > p[k].low)
				assert_true((uint64_t)(p[k].value - 1) * p[i].weight <=
					    (uint64_t)(p[i].value + 1) * p[k].weight);
}

static void test_any(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < NUM_ROUNDS; round++) {
		struct ebb_level_part p[MAX_PARTS];
		const size_t count = 1 + roll(MAX_PARTS);
		const uint32_t weights = roll(3) ? 200 : 1;
		uint64_t low = 0, high = 0, sum = 0, total;

		for (size_t i = 0; i < count; i++) {
			p[i] = (struct ebb_level_part){
				.low = roll(2) ? roll(20) : 0, .weight = 1 + roll(weights),
				.has = roll(100), .value = roll(1000),
			};
			p[i].high = p[i].low + roll(roll(2) ? 8 : 1000);
			low += p[i].low;
			high += p[i].high;
		}
		total = roll((uint32_t)high + 10);
		ebb_level_fill(p, count, total);
		for (size_t i = 0; i < count; i++) {
			assert_in_range(p[i].value, p[i].low, p[i].high);
			sum += p[i].value;
		}
		assert_int_equal(sum, total < low ? low : total < high ? total : high);
		check_fair(p, count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_proportion),
		cmocka_unit_test(test_bounds_go_before_the_total),
		cmocka_unit_test(test_last_unit),
		cmocka_unit_test(test_large_numbers),
		cmocka_unit_test(test_any),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
