// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Allocations that fail while records go to disk and come back: the n-th one, for n = 0, 1, ...
 * until there are no more, and all of them. Linked with --wrap, so that it is the engine's calls
 * that fail and not those of the C library.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/base/alloc_faults.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define RECORDS	4000u	/* two blocks */

static void open_full(struct rig *rig)
{
	rig_open(rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	rig_insert(rig, 0, RECORDS);
}

static void all_is_there(struct rig *rig)
{
	assert_int_equal(rig_scan(rig, RECORDS, NULL), 0);
	for (uint64_t key = 0; key < RECORDS; key += 8)
		assert_int_equal(rig_read(rig, key, 0), OLTP_OK);
	assert_int_equal(rig_scan(rig, RECORDS, NULL), 0);
}

/* One failure does no more than to have it done again before the deadline. */
static void test_nth_fails_on_a_demand(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	bool was_there = true;
	struct rig rig;

	for (uint64_t nth = 0; was_there; nth++) {
		open_full(&rig);
		alloc_fail_from(nth, 1);
		stats = rig_demand(&rig, 2 * MIB, RIG_DEADLINE_MS);
		was_there = alloc_fail_end();
		assert_int_equal(stats.held_bytes, 2 * MIB);
		assert_int_equal(stats.answered_bytes, 2 * MIB);
		assert_int_equal(stats.unanswered_bytes, 0);
		all_is_there(&rig);
		rig_close(&rig);
		assert_true(nth > 0 || was_there);
	}
}

static void test_all_fail_on_a_demand(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct rig rig;

	/* From the first on, and from somewhere in the middle of the work on. */
	for (uint64_t nth = 0; nth < 24; nth += 3) {
		open_full(&rig);
		alloc_fail_from(nth, UINT64_MAX);
		stats = rig_demand(&rig, 2 * MIB, 200);
		alloc_fail_end();
		/* What was given and what was not are the two parts of what was asked for. */
		assert_int_equal(stats.answered_bytes, 4 * MIB - stats.held_bytes);
		assert_int_equal(stats.unanswered_bytes, stats.held_bytes - 2 * MIB);
		assert_int_equal(stats.unanswered_demands, stats.held_bytes > 2 * MIB);
		if (!nth)
			assert_int_equal(stats.held_bytes, 4 * MIB);
		assert_int_equal(stats.resident_records + stats.cold_records, RECORDS);
		assert_int_equal(rig_scan(&rig, RECORDS, NULL), 0);
		/* Asked again when there is memory, it gives the rest. */
		stats = rig_demand(&rig, 0, RIG_DEADLINE_MS);
		assert_int_equal(stats.held_bytes, 0);
		rig_demand(&rig, 4 * MIB, 0);
		all_is_there(&rig);
		rig_close(&rig);
	}
}

/* The transaction fails, or never noticed; the record is still there for the next one. */
static void test_nth_fails_on_a_fetch(void **state)
{
	(void)state;
	uint64_t key = 0, n_failed = 0, n_read = 0;
	struct rig rig;

	open_full(&rig);
	assert_int_equal(rig_demand(&rig, 2 * MIB, RIG_DEADLINE_MS).held_bytes, 2 * MIB);
	for (uint64_t nth = 0; key < RECORDS; key++) {
		enum oltp_rc rc;

		if (!rig_is_cold(&rig, key))
			continue;
		alloc_fail_from(nth, 1);
		rc = rig_read(&rig, key, 0);
		/* One record after the other, each with the next allocation failing. */
		nth = alloc_fail_end() ? nth + 1 : 0;
		assert_true(rc == OLTP_OK || rc == OLTP_NO_MEMORY);
		if (rc)
			assert_true(rig_is_cold(&rig, key));
		n_failed += rc == OLTP_NO_MEMORY;
		n_read++;
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	}
	assert_true(n_read > RECORDS / 4);
	assert_true(n_failed > 0);
	assert_int_equal(rig_stats(&rig).read_errors, 0);
	all_is_there(&rig);
	rig_close(&rig);
}

static void test_all_fail_on_fetches(void **state)
{
	(void)state;
	uint64_t n_failed = 0;
	struct rig rig;

	open_full(&rig);
	assert_int_equal(rig_demand(&rig, 2 * MIB, RIG_DEADLINE_MS).held_bytes, 2 * MIB);
	alloc_fail_from(0, UINT64_MAX);
	for (uint64_t key = 0; key < RECORDS; key += 16) {
		enum oltp_rc rc = rig_read(&rig, key, 0);

		assert_true(rc == OLTP_OK || rc == OLTP_NO_MEMORY);
		n_failed += rc == OLTP_NO_MEMORY;
	}
	alloc_fail_end();
	assert_true(n_failed > RECORDS / 16 / 4);
	all_is_there(&rig);
	rig_close(&rig);
}

static void test_nth_fails_when_an_engine_opens(void **state)
{
	(void)state;
	struct oltp_config config = { .node = -1, .blocks = &oltp_blocks_native_ops,
				      .cold_dir = rig_dir() };
	struct oltp_blocks_native *blocks;
	struct oltp_engine *engine;
	int rc = -ENOMEM;
	uint64_t nth;

	assert_int_equal(oltp_blocks_native_create(4 * MIB, 0, &blocks), 0);
	config.blocks_ctx = blocks;
	for (nth = 0; rc; nth++) {
		alloc_fail_from(nth, 1);
		rc = oltp_engine_open(&config, &engine);
		assert_int_equal(rc, alloc_fail_end() ? -ENOMEM : 0);
	}
	/* Engine, books of cold records, manager and its buffers at least. */
	assert_true(nth > 4);
	oltp_engine_close(engine);
	oltp_blocks_native_destroy(blocks);
}

static pthread_t tester;

static bool is_of_another_thread(void)
{
	return !pthread_equal(pthread_self(), tester);
}

/* An index is there or not, and a worker too. The manager allocates for itself meanwhile. */
static void test_nth_fails_when_an_index_is_made(void **state)
{
	(void)state;
	struct oltp_worker *worker;
	struct oltp_index *index;
	uint64_t n_index = 0, n_worker = 0;
	struct rig rig;
	int rc = -ENOMEM;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	tester = pthread_self();
	alloc_fail_except(is_of_another_thread);
	for (; rc; n_index++) {
		alloc_fail_from(n_index, 1);
		rc = oltp_index_create(rig.table, NULL, &index);
		assert_int_equal(rc, alloc_fail_end() ? -ENOMEM : 0);
	}
	assert_int_equal(rig.table->n_ordered, 1);
	for (rc = -ENOMEM; rc; n_worker++) {
		alloc_fail_from(n_worker, 1);
		rc = oltp_worker_create(rig.engine, &worker);
		assert_int_equal(rc, alloc_fail_end() ? -ENOMEM : 0);
	}
	alloc_fail_except(NULL);
	assert_true(n_index > 1);
	assert_true(n_worker > 5);
	oltp_worker_destroy(worker);
	rig_insert(&rig, 0, 100);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nth_fails_on_a_demand),
		cmocka_unit_test(test_all_fail_on_a_demand),
		cmocka_unit_test(test_nth_fails_on_a_fetch),
		cmocka_unit_test(test_all_fail_on_fetches),
		cmocka_unit_test(test_nth_fails_when_an_engine_opens),
		cmocka_unit_test(test_nth_fails_when_an_index_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
