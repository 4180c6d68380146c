// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Allocations that fail in the log, in checkpoints and in recovery: the n-th one, and all from the
 * n-th on. Linked with --wrap, so that it is the engine's calls that fail.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/base/alloc_faults.h"
#include "tests/unit/oltp-engine/src/io/durable_rig.h"

static struct durable_rig rig, saved;

static bool is_of_disk(void)
{
	return fault_disk_inside;
}

static void restore(uint64_t seed)
{
	rig = saved;
	rig.disk = fault_disk_copy(saved.disk, seed);
	rig.config.log_io_ctx = rig.disk;
}

/* It says so, and the next try finds everything as it was. */
static void test_nth_fails_in_recovery(void **state)
{
	(void)state;
	bool was_there = true;
	uint64_t n_failed = 0;

	durable_init(&rig, 1);
	assert_int_equal(durable_recover(&rig), 0);
	durable_run(&rig, 2, 60, 1);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	durable_run(&rig, 2, 20, 0);
	durable_close(&rig);
	saved = rig;
	for (uint64_t nth = 0; was_there; nth++) {
		int rc;

		restore(nth);
		rc = durable_open(&rig);
		if (!rc) {
			alloc_fail_from(nth, 1);
			rc = oltp_recover(rig.engine, NULL, &rig.recovery);
			was_there = alloc_fail_end();
			assert_true(!rc || rc == -ENOMEM);
			n_failed += rc != 0;
			durable_close(&rig);
		}
		fault_disk_restart(rig.disk, nth % 2);
		assert_int_equal(durable_recover(&rig), 0);
		durable_close(&rig);
		fault_disk_destroy(rig.disk);
		assert_true(nth < 10000);
	}
	assert_true(n_failed > 5);
	rig = saved;
	durable_finish(&rig);
}

/* The engine with its log is there, or it is not. */
static void test_nth_fails_when_it_opens(void **state)
{
	(void)state;
	uint64_t nth, n_failed = 0;
	bool was_there = true;

	durable_init(&rig, 2);
	for (nth = 0; was_there; nth++) {
		int rc;

		/* It may have come as far as a catalogue: the next one opens what is there then. */
		alloc_fail_from(nth, 1);
		rc = durable_open(&rig);
		was_there = alloc_fail_end();
		assert_true(!rc || (was_there && rc == -ENOMEM));
		n_failed += rc != 0;
		durable_close(&rig);
	}
	assert_true(n_failed > 4);
	assert_int_equal(durable_recover(&rig), 0);
	durable_finish(&rig);
}

/* One, or none left at all: some things fail, and what was acknowledged is there. */
static void test_nth_fails_at_work(void **state)
{
	(void)state;
	uint32_t n_checkpoints_failed = 0, n_met = 0;

	durable_init(&rig, 3);
	assert_int_equal(durable_recover(&rig), 0);
	for (uint64_t nth = 0; nth < 120; nth++) {
		struct oltp_checkpoint_stats stats;

		alloc_fail_from(nth / 2, nth % 2 ? UINT64_MAX : 1);
		durable_run(&rig, 2, 20, 2);
		n_met += alloc_fail_end();
		oltp_checkpoint_stats_read(rig.engine, &stats);
		n_checkpoints_failed += stats.failed != 0;
		durable_close(&rig);
		fault_disk_restart(rig.disk, true);
		assert_int_equal(durable_recover(&rig), 0);
	}
	assert_true(n_met > 20);
	assert_true(n_checkpoints_failed > 5);
	durable_finish(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth_fails_in_recovery),
		cmocka_unit_test(test_nth_fails_when_it_opens),
		cmocka_unit_test(test_nth_fails_at_work),
	};

	alloc_fail_except(is_of_disk);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
