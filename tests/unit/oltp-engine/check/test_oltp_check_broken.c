// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The checker finds what is wrong with an engine that is broken on purpose, by nothing but what its
 * transactions were told; and it finds nothing in the same engine when it is whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "broken_engine.h"
#include "record_rig.h"

/* On a busy machine threads may run one after the other for a while, and do nothing wrong. */
#define ROUNDS_MAX	300u

#define ANY		((1u << CHECK_KINDS) - 1)
#define BIT(kind)	(1u << (kind))

/* Until one of these kinds of anomaly has been found. */
static void find(enum broken what, uint32_t record_what, uint32_t kinds)
{
	bool is_found = false;

	broken_engine_set(what);
	for (uint64_t seed = 1; !is_found && seed <= ROUNDS_MAX; seed++) {
		const struct record_config config = {
			.engine = { .node = -1 },
			.what = record_what,
			.transactions = 1000,
			.seed = seed,
		};
		struct record_stats stats;
		struct check_result result = { 0 };

		record_rig_run(&config, &stats, &result);
		for (unsigned int kind = 0; kind < CHECK_KINDS; kind++)
			is_found |= kinds & BIT(kind) && result.n_kind[kind];
		check_result_finish(&result);
	}
	broken_engine_set(BROKEN_NOTHING);
	assert_true(is_found);
}

static void test_read_locks_given_up(void **state)
{
	(void)state;
	find(BROKEN_READ_LOCK, RECORD_DO_ALL,
	     BIT(CHECK_G_SINGLE) | BIT(CHECK_G2_ITEM) | BIT(CHECK_G2));
}

static void test_scan_locks_given_up(void **state)
{
	(void)state;
	find(BROKEN_SCAN_LOCK, RECORD_DO_ROWS,
	     BIT(CHECK_G_SINGLE) | BIT(CHECK_G2_ITEM) | BIT(CHECK_G2));
}

static void test_write_locks_given_up(void **state)
{
	(void)state;
	find(BROKEN_WRITE_LOCK, RECORD_DO_LISTS | RECORD_DO_REGISTERS, ANY);
}

static void test_phantoms(void **state)
{
	(void)state;
	find(BROKEN_NOTES, RECORD_DO_ROWS, BIT(CHECK_G_SINGLE) | BIT(CHECK_G2));
}

static void test_aborts_not_undone(void **state)
{
	(void)state;
	find(BROKEN_UNDO, RECORD_DO_REGISTERS, BIT(CHECK_G1A));
	find(BROKEN_UNDO, RECORD_DO_LISTS, BIT(CHECK_G1A));
}

static void test_nothing_broken(void **state)
{
	struct record_config config = { .engine = { .node = -1 }, .transactions = 1000 };
	struct record_stats stats;

	(void)state;
	for (config.seed = 1; config.seed <= 3; config.seed++)
		record_rig_expect_clean(&config, &stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_broken),
		cmocka_unit_test(test_read_locks_given_up),
		cmocka_unit_test(test_scan_locks_given_up),
		cmocka_unit_test(test_write_locks_given_up),
		cmocka_unit_test(test_phantoms),
		cmocka_unit_test(test_aborts_not_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
