// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * With a log, what was in memory that was taken by force comes back: from the newest checkpoint and
 * the log behind it, while transactions run.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/node_set.h"
#include "restore_rig.h"
#include "tests/unit/oltp-engine/src/memory/rows_rig.h"

#define SETUP(n_blocks, with_disk)	\
	(&(struct restore_setup){ disk, OLTP_DURABILITY_COMMIT, n_blocks, with_disk, false })

static uint64_t counters[ROWS];

bool __real_node_set_is_valid(const struct oltp_worker *worker);
bool __wrap_node_set_is_valid(const struct oltp_worker *worker);

/* Between a transaction's last look at what was taken and its entry in the log. */
static void (*on_node_set_check)(void *ctx);
static void *on_node_set_check_ctx;

bool __wrap_node_set_is_valid(const struct oltp_worker *worker)
{
	if (on_node_set_check)
		on_node_set_check(on_node_set_check_ctx);
	return __real_node_set_is_valid(worker);
}

static void fill(struct taker *t, struct rig *rig, const struct restore_setup *setup)
{
	memset(counters, 0, sizeof(counters));
	restore_open(t, rig, setup);
	rig_insert(rig, 0, ROWS);
	assert_int_equal(oltp_checkpoint(rig->engine), 0);
}

static void update_some(struct rig *rig, uint64_t first, uint64_t step)
{
	for (uint64_t key = first; key < ROWS; key += step)
		assert_int_equal(rig_update(rig, key, ++counters[key]), OLTP_OK);
}

static uint64_t segments(struct rig *rig)
{
	struct oltp_durable_stats stats;

	oltp_durable_stats_read(rig->engine, &stats);
	return stats.segments;
}

static void all_is_there(struct rig *rig)
{
	assert_int_equal(rig_scan(rig, ROWS, counters), 0);
	assert_int_equal(rig_stats_of(rig, ROWS).lost_records, restore_stats(rig).records);
}

/* What a restart finds. */
static void recover_from(struct fault_disk *disk)
{
	struct taker t;
	struct rig rig;

	restore_open(&t, &rig, SETUP(32, false));
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	taker_close(&t, &rig);
}

/* Rows that are in the checkpoint alone, and those that were changed since. */
static void checkpoints_go_on(enum oltp_durability durability)
{
	struct fault_disk *disk = fault_disk_create(1);
	struct oltp_checkpoint_stats checkpoints;
	uint64_t n_segments;
	struct taker t;
	struct rig rig;

	fill(&t, &rig, &(struct restore_setup){ disk, durability, 16, false, false });
	for (uint64_t first = 0; first < 3; first++) {
		update_some(&rig, first, 4);
		assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	}
	n_segments = segments(&rig);
	assert_true(n_segments > 2);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	oltp_checkpoint_stats_read(rig.engine, &checkpoints);
	assert_int_equal(checkpoints.checkpoints, 2);
	assert_int_equal(checkpoints.failed, 0);
	assert_int_equal(checkpoints.last_rows, ROWS);
	assert_true(segments(&rig) < n_segments);
	assert_int_equal(restore_stats(&rig).restores, 1);
	assert_int_equal(restore_stats(&rig).records, RIG_PER_BLOCK);
	assert_true(restore_stats(&rig).last_ms > 0);
	all_is_there(&rig);
	update_some(&rig, 2, 5);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_restart(disk, false);
	recover_from(disk);
	fault_disk_destroy(disk);
}

static void test_checkpoints_go_on(void **state)
{
	(void)state;
	checkpoints_go_on(OLTP_DURABILITY_COMMIT);
	checkpoints_go_on(OLTP_DURABILITY_ASYNC);
}

/* There is no checkpoint yet, and most rows are of many segments ago. */
static void test_from_the_log_alone(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	restore_open(&t, &rig, SETUP(16, false));
	rig_insert(&rig, 0, ROWS);
	update_some(&rig, 0, 7);
	restore_take(&t, &rig, 0);
	restore_take(&t, &rig, 2);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

static void test_without_a_log_it_stays_lost(void **state)
{
	(void)state;
	struct taker t;
	struct rig rig;

	taker_open(&t, &rig, 16, NULL);
	rig_insert(&rig, 0, 2 * RIG_PER_BLOCK);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	restore_take(&t, &rig, 0);
	assert_int_equal(oltp_restore_wait(rig.engine), -EINVAL);
	for (uint64_t key = 0; key < 2 * RIG_PER_BLOCK; key++)
		assert_int_equal(rig_read(&rig, key, 0), key < RIG_PER_BLOCK ? OLTP_LOST : OLTP_OK);
	assert_int_equal(oltp_checkpoint(rig.engine), -EINVAL);
	assert_int_equal(restore_stats(&rig).records, 0);
	taker_close(&t, &rig);
}

struct meanwhile {
	struct taker *t;
	struct rig *rig;
	struct fault_disk *disk, *copy;
	uint32_t block;
};

static void take_meanwhile(void *ctx)
{
	const struct meanwhile *m = ctx;

	restore_take(m->t, m->rig, m->block);
}

/* In the midst of reading the checkpoint, or the log, more is taken. */
static void test_more_is_taken_meanwhile(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;
	struct meanwhile m = { .t = &t, .rig = &rig, .block = 2 };

	fill(&t, &rig, SETUP(16, false));
	update_some(&rig, 1, 2);
	event_set(20, take_meanwhile, &m);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_true(event_has_come());
	assert_int_equal(restore_stats(&rig).restores, 1);
	assert_int_equal(restore_stats(&rig).records, 2 * RIG_PER_BLOCK);
	all_is_there(&rig);
	/* And so what was put back. */
	restore_take(&t, &rig, t.n - 1);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_int_equal(restore_stats(&rig).restores, 2);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

/* A checkpoint that has seen a part of the rows gives up, and is made afterwards. */
static void test_taken_while_a_checkpoint_is_made(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct oltp_checkpoint_stats checkpoints;
	struct taker t;
	struct rig rig;
	struct meanwhile m = { .t = &t, .rig = &rig, .block = 1 };

	fill(&t, &rig, SETUP(16, false));
	update_some(&rig, 1, 2);
	event_set(10, take_meanwhile, &m);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_true(event_has_come());
	oltp_checkpoint_stats_read(rig.engine, &checkpoints);
	assert_int_equal(checkpoints.checkpoints, 2);
	assert_int_equal(checkpoints.failed, 0);
	assert_int_equal(checkpoints.last_rows, ROWS);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

static void copy_disk(void *ctx)
{
	struct meanwhile *m = ctx;

	m->copy = fault_disk_copy(m->disk, 2);
}

/* Killed in the midst of it: the disk is what it was. */
static void test_killed_meanwhile(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;
	struct meanwhile m = { .disk = disk };

	fill(&t, &rig, SETUP(16, false));
	update_some(&rig, 1, 2);
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	event_set(20, copy_disk, &m);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_true(event_has_come());
	taker_close(&t, &rig);
	recover_from(m.copy);
	fault_disk_destroy(m.copy);
	fault_disk_destroy(disk);
}

/* All memory there was is needed, and a part of it is gone: rows go to disk. */
static void test_too_little_memory_and_a_disk(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;

	fill(&t, &rig, SETUP(4, true));
	update_some(&rig, 1, 2);
	assert_int_equal(t.n, 4);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	all_is_there(&rig);
	assert_true(rig_stats(&rig).held_bytes <= 3 * OLTP_MEM_BLOCK_BYTES);
	assert_true(rig_stats(&rig).cold_records >= RIG_PER_BLOCK);
	update_some(&rig, 0, 3);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

/* No disk either: it waits until it gets memory. */
static void test_too_little_memory(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;

	fill(&t, &rig, SETUP(4, false));
	update_some(&rig, 1, 2);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_restore_wait(rig.engine), -ENOMEM);
	assert_true(restore_stats(&rig).lacks_room);
	assert_true(restore_stats(&rig).is_running);
	assert_int_equal(oltp_checkpoint(rig.engine), -EOWNERDEAD);
	assert_int_equal(rig_read(&rig, RIG_PER_BLOCK, counters[RIG_PER_BLOCK]), OLTP_LOST);
	t.n_max++;
	oltp_memory_limit(rig.engine, 0, 5 * OLTP_MEM_BLOCK_BYTES, 0);
	while (oltp_restore_wait(rig.engine) == -ENOMEM)
		;
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_false(restore_stats(&rig).lacks_room);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

/* Nothing is made up: what cannot be read stays lost, and that is said. */
static void test_damaged(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;

	fill(&t, &rig, SETUP(16, false));
	fault_disk_damage(disk, "checkpoint-", 0, 3 * MIB);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_restore_wait(rig.engine), -EUCLEAN);
	/* More than once, if it was tried again before this thread came to look. */
	assert_true(restore_stats(&rig).failed >= 1);
	assert_int_equal(restore_stats(&rig).last_error, -EUCLEAN);
	assert_int_equal(oltp_checkpoint(rig.engine), -EOWNERDEAD);
	assert_int_equal(rig_read(&rig, RIG_PER_BLOCK, 0), OLTP_LOST);
	assert_int_equal(rig_read(&rig, 0, 0), OLTP_OK);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

/* Closed in the midst of it. */
static void test_closed_meanwhile(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;

	fill(&t, &rig, SETUP(4, false));
	restore_take(&t, &rig, 1);
	while (!restore_stats(&rig).lacks_room)
		rig_sleep_ms(1);
	taker_close(&t, &rig);
	fault_disk_restart(disk, false);
	recover_from(disk);
	fault_disk_destroy(disk);
}

/* Rows that are being added are in the index and not in the files: they are waited for. */
static void test_transactions_end_before(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	uint8_t record[RIG_RECORD_BYTES];
	struct taker t;
	struct rig rig;

	fill(&t, &rig, SETUP(16, false));
	oltp_txn_begin(rig.w);
	rig_fill_record(record, ROWS, 0);
	assert_int_equal(oltp_txn_insert(rig.w, rig.table, ROWS, record), OLTP_OK);
	/* The one that it had to be put into, and a full one. */
	restore_take(&t, &rig, t.n - 1);
	restore_take(&t, &rig, 1);
	while (!restore_stats(&rig).is_running)
		rig_sleep_ms(1);
	rig_sleep_ms(100);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_LOST);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	assert_int_equal(restore_stats(&rig).failed, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	assert_int_equal(rig_read(&rig, ROWS, 0), OLTP_NOT_FOUND);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

/*
 * A transaction has asked for the last time whether what it holds was taken when it is taken: what
 * it copies to the log are zeroes.
 */
static void test_no_zeroes_in_the_log(void **state)
{
	(void)state;
	const struct oltp_span all = { 0, RIG_RECORD_BYTES };
	struct fault_disk *disk = fault_disk_create(1);
	struct taker t;
	struct rig rig;
	struct meanwhile m = { .t = &t, .rig = &rig, .block = 1 };
	const void *found;
	void *record;

	fill(&t, &rig, SETUP(16, false));
	oltp_txn_begin(rig.w);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, ROWS, &found), OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_update(rig.w, rig.table, RIG_PER_BLOCK, &all, 1, &record), 0);
	rig_fill_record(record, RIG_PER_BLOCK, 1);
	on_node_set_check_ctx = &m;
	on_node_set_check = take_meanwhile;
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_LOST);
	on_node_set_check = NULL;
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);
	all_is_there(&rig);
	taker_close(&t, &rig);
	fault_disk_restart(disk, false);
	recover_from(disk);
	fault_disk_destroy(disk);
}

/* Scans show the rows again, and those that were being added, deleted or put anew as they were. */
static void test_ordered_indexes(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(1);
	struct ordered_rig rows;
	struct taker t;
	struct rig rig;
	uint64_t n = 2 * RIG_PER_BLOCK;

	restore_open_empty(&t, &rig, SETUP(16, true));
	assert_int_equal(oltp_worker_create(rig.engine, &rig.w), 0);
	rows_fill(&rig, &rows, n);
	restore_take(&t, &rig, 1);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_LOST);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_restore_wait(rig.engine), 0);

	for (uint32_t turn = 0; turn < 2; turn++) {
		for (uint64_t from = 0; from < n; from += 64) {
			assert_int_equal(rows_scan(&rig, rows.by_key, from, from + 63), OLTP_OK);
			assert_int_equal(rows_seen.n, from + 64 < n ? 64 : 54);
		}
		assert_int_equal(rows_scan(&rig, rows.by_group, 250, 250), OLTP_OK);
		assert_int_equal(rows_seen.n, 10);
		assert_int_equal(rows_scan(&rig, rows.by_key, 9000, 9100), OLTP_OK);
		assert_int_equal(rows_seen.n, 0);
		assert_int_equal(rows_scan(&rig, rows.by_number, ~2500ull, ~2500ull), OLTP_OK);
		assert_int_equal(rows_seen.n, 1);
		assert_int_equal(rows_seen.rows[0].row.value, 2500);
	}
	oltp_txn_begin(rig.w);
	assert_int_equal(rows_insert(&rig, 2500), OLTP_EXISTS);
	for (uint64_t key = 9000; key < 9005; key++)
		assert_int_equal(rows_insert(&rig, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	taker_close(&t, &rig);
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoints_go_on),
		cmocka_unit_test(test_from_the_log_alone),
		cmocka_unit_test(test_without_a_log_it_stays_lost),
		cmocka_unit_test(test_more_is_taken_meanwhile),
		cmocka_unit_test(test_taken_while_a_checkpoint_is_made),
		cmocka_unit_test(test_killed_meanwhile),
		cmocka_unit_test(test_too_little_memory_and_a_disk),
		cmocka_unit_test(test_too_little_memory),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_closed_meanwhile),
		cmocka_unit_test(test_transactions_end_before),
		cmocka_unit_test(test_no_zeroes_in_the_log),
		cmocka_unit_test(test_ordered_indexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
