// SPDX-License-Identifier: GPL-2.0-or-later
/* Which table gives another one a block, and what a sample says of the oldest records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/division.h"
#include "oltp-engine/src/memory/oldest.h"

#define BLOCK	OLTP_MEM_BLOCK_BYTES
#define NEEDY	0u

static uint32_t giver_of(const struct division_table *tables, uint32_t n, bool has_none)
{
	return division_giver(tables, n, NEEDY, has_none);
}

static void test_oldest_gives(void **state)
{
	const struct division_table tables[] = {
		{ 4, BLOCK, 100 }, { 9, 5 * BLOCK, 200 }, { 2, BLOCK, 300 }, { 9, BLOCK, 250 },
	};

	(void)state;
	assert_int_equal(giver_of(tables, 4, false), 2);
	assert_int_equal(giver_of(tables, 4, true), 2);
}

static void test_ages_alike(void **state)
{
	const struct division_table near[] = { { 4, BLOCK, 80 }, { 4, BLOCK, 100 } };
	const struct division_table far[] = { { 4, BLOCK, 79 }, { 4, BLOCK, 100 } };

	(void)state;
	assert_int_equal(giver_of(near, 2, false), DIVISION_NONE);
	assert_int_equal(giver_of(far, 2, false), 1);
	/* Without records to give up the needy table takes a block all the same. */
	assert_int_equal(giver_of(near, 2, true), 1);
}

static void test_keeps_a_block(void **state)
{
	const struct division_table last[] = { { 4, 0, 1 }, { 1, BLOCK, 1000 } };
	const struct division_table little[] = { { 4, 0, 1 }, { 9, BLOCK - 1, 1000 } };

	(void)state;
	assert_int_equal(giver_of(last, 2, true), DIVISION_NONE);
	assert_int_equal(giver_of(little, 2, true), DIVISION_NONE);
	assert_int_equal(giver_of(little, 1, true), DIVISION_NONE);
	assert_int_equal(division_giver(NULL, 0, NEEDY, true), DIVISION_NONE);
}

static void test_threshold(void **state)
{
	struct oldest oldest = { .bytes_each = 10, .n = 10 };
	uint64_t median;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		oldest.records[i] = (struct oldest_record){ .stamp = 100 + i, .table = i % 2 };
	assert_int_equal(oldest_threshold(&oldest, 0.5), 105);
	assert_int_equal(oldest_threshold(&oldest, 1), OLDEST_ANY_AGE);
	assert_int_equal(oldest_of_table(&oldest, 0, 105, &median), 30);
	assert_int_equal(median, 102);
	assert_int_equal(oldest_of_table(&oldest, 1, 105, &median), 30);
	assert_int_equal(median, 103);
	assert_int_equal(oldest_of_table(&oldest, 1, OLDEST_ANY_AGE, &median), 50);
	assert_int_equal(median, 105);
	assert_int_equal(oldest_of_table(&oldest, 2, 105, &median), 0);
	assert_int_equal(median, 105);
	oldest.n = 0;
	assert_int_equal(oldest_threshold(&oldest, 0.1), OLDEST_ANY_AGE);
	assert_int_equal(oldest_of_table(&oldest, 0, OLDEST_ANY_AGE, &median), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_gives),
		cmocka_unit_test(test_ages_alike),
		cmocka_unit_test(test_keeps_a_block),
		cmocka_unit_test(test_threshold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
