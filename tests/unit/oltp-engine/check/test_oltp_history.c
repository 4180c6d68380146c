// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * G1: recorded histories of the engine under every scheme are strictly serializable, while workers
 * come and go (G4), and while records go to disk and come back (G5).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "record_rig.h"

/*
 * Histories without a conflict would prove little, but on a busy machine the threads may run one
 * after the other for a while.
 */
#define ROUNDS_MAX	100u

static void record(struct record_config config)
{
	struct record_stats stats = { 0 };
	uint64_t conflicts = 0;

	for (config.seed = 1; config.seed <= 2 || (!conflicts && config.seed < ROUNDS_MAX);
	     config.seed++) {
		record_rig_expect_clean(&config, &stats);
		conflicts += stats.conflicts;
	}
	assert_true(conflicts > 0);
}

static void record_moving(enum oltp_cc cc)
{
	struct record_config config = {
		.engine = { .cc = cc, .node = -1, .cold_dir = rig_dir() },
		.transactions = 800,
		.memory_bytes = 8 * MIB,
		.memory_low_bytes = 2 * MIB,
	};
	struct record_stats stats = { 0 };
	uint64_t colds = 0;

	/* So few records are in use nearly all the time: some runs end before one has gone. */
	for (config.seed = 1; config.seed <= 1 || (!colds && config.seed < ROUNDS_MAX);
	     config.seed++) {
		record_rig_expect_clean(&config, &stats);
		colds += stats.colds;
	}
	assert_true(colds > 0);
}

static void test_all_schemes(void **state)
{
	(void)state;
	for (int cc = 0; strcmp(oltp_cc_name(cc), "unknown"); cc++)
		record((struct record_config){ .engine = { .cc = cc, .node = -1 },
					       .transactions = 1000 });
}

static void test_all_schemes_while_records_move(void **state)
{
	(void)state;
	for (int cc = 0; strcmp(oltp_cc_name(cc), "unknown"); cc++)
		record_moving(cc);
}

static void test_rows_alone(void **state)
{
	(void)state;
	for (int cc = 0; strcmp(oltp_cc_name(cc), "unknown"); cc++)
		record((struct record_config){ .engine = { .cc = cc, .node = -1 },
					       .what = RECORD_DO_ROWS, .windows = 3,
					       .transactions = 800 });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_schemes),
		cmocka_unit_test(test_rows_alone),
		cmocka_unit_test(test_all_schemes_while_records_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
