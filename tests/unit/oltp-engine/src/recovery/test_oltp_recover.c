// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recovery where things go wrong: calls to the disk that fail, here and there, in work, checkpoints
 * and recovery itself; a disk that is full; files that are damaged or missing. What comes up is
 * right by the book of durable_rig.h, or nothing comes up and the file is named.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"
#include "oltp-engine/src/recovery/checkpoint_file.h"

static struct durable_rig rig, saved;

/* A database with a checkpoint, no log before it, and that of two processes behind. */
static void open_disk(uint64_t seed)
{
	durable_init(&rig, seed);
	assert_int_equal(durable_recover(&rig), 0);
	durable_run(&rig, 2, 200, 1);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	durable_run(&rig, 2, 20, 0);
	durable_close(&rig);
	assert_int_equal(durable_recover(&rig), 0);
	durable_run(&rig, 2, 20, 0);
	durable_close(&rig);
}

static void save(void)
{
	saved = rig;
}

/* The disk as it was saved, in another process's hands. */
static void restore(uint64_t seed)
{
	durable_copy(&rig, &saved, seed);
}

static void drop(void)
{
	durable_close(&rig);
	fault_disk_destroy(rig.disk);
}

static void test_each_call_of_recovery_fails(void **state)
{
	(void)state;
	uint64_t n_failed = 0;

	open_disk(1);
	save();
	for (uint64_t nth = 0; nth < 120; nth += DURABLE_FEWER) {
		const int kind = (int)(nth / DURABLE_FEWER % 3);

		restore(nth);
		fault_disk_fail_at(rig.disk, nth, kind ? 1 : UINT64_MAX,
				   kind == 1 ? -ENOSPC : -EIO);
		if (durable_recover(&rig))
			n_failed++;
		durable_close(&rig);
		/* The next process has nothing to suffer from that. */
		fault_disk_restart(rig.disk, kind == 2);
		assert_int_equal(durable_recover(&rig), 0);
		durable_run(&rig, 1, 3, 0);
		drop();
	}
	assert_true(n_failed > 10 / DURABLE_FEWER);
	rig = saved;
	durable_finish(&rig);
}

/* Again and again, also with nothing done in between, and with power lost at every point. */
static void test_recovering_again(void **state)
{
	(void)state;
	uint64_t transactions;

	open_disk(2);
	save();
	for (uint64_t nth = 0; nth < 100; nth += DURABLE_FEWER) {
		restore(nth);
		fault_disk_lose_power_at(rig.disk, nth);
		durable_recover(&rig);
		durable_close(&rig);
		fault_disk_restart(rig.disk, true);
		assert_int_equal(durable_recover(&rig), 0);
		transactions = rig.shared_found;
		for (int i = 0; i < 3; i++) {
			durable_close(&rig);
			fault_disk_restart(rig.disk, i % 2);
			assert_int_equal(durable_recover(&rig), 0);
			assert_int_equal(rig.shared_found, transactions);
		}
		drop();
	}
	rig = saved;
	durable_finish(&rig);
}

/* kind: 0 to 3. */
static void work_with_fault(uint64_t nth, int kind, uint32_t *ret_stopped)
{
	struct oltp_durable_stats stats;

	fault_disk_calm(rig.disk);
	if (kind == 3)
		fault_disk_short_at(rig.disk, nth);
	else
		fault_disk_fail_at(rig.disk, nth, kind == 2 ? UINT64_MAX : 1,
				   kind ? -EIO : -ENOSPC);
	durable_run(&rig, 2, 25, 1);
	oltp_durable_stats_read(rig.engine, &stats);
	*ret_stopped += stats.has_failed;
	if (kind == 3) {
		/* Of a piece of a block the log says that it is not written. */
		assert_true(!stats.has_failed || stats.error == -EIO);
	} else if (stats.has_failed) {
		assert_int_equal(stats.error, kind ? -EIO : -ENOSPC);
	}
	durable_close(&rig);
	fault_disk_restart(rig.disk, (nth + (uint64_t)kind) % 2);
	assert_int_equal(durable_recover(&rig), 0);
}

/* The engine stops acknowledging; what was acknowledged is there afterwards. */
static void test_each_call_of_work_fails(void **state)
{
	(void)state;
	uint32_t n_stopped = 0;

	durable_init(&rig, 3);
	assert_int_equal(durable_recover(&rig), 0);
	for (uint64_t nth = 0; nth < 60; nth += DURABLE_FEWER) {
		for (int kind = 0; kind < 4; kind++)
			work_with_fault(nth, kind, &n_stopped);
	}
	assert_true(n_stopped > 30 / DURABLE_FEWER);
	durable_finish(&rig);
}

static void test_disk_full(void **state)
{
	(void)state;
	struct oltp_durable_stats stats;
	struct oltp_worker *w;

	durable_init(&rig, 4);
	assert_int_equal(durable_recover(&rig), 0);
	durable_set_room(&rig, 4 << 20);
	do {
		durable_run(&rig, 2, 100, 0);
		oltp_durable_stats_read(rig.engine, &stats);
	} while (!stats.has_failed && rig.workers[0].n < DURABLE_TXNS_MAX);
	assert_true(stats.has_failed);
	assert_int_equal(stats.error, -ENOSPC);
	assert_int_equal(oltp_worker_create(rig.engine, &w), 0);
	assert_int_equal(oltp_txn_begin(w), OLTP_IO);
	oltp_worker_destroy(w);
	assert_int_equal(oltp_checkpoint(rig.engine), -EIO);
	durable_close(&rig);
	fault_disk_restart(rig.disk, true);
	durable_set_room(&rig, 0);
	assert_int_equal(durable_recover(&rig), 0);
	/* With room again a checkpoint makes the log short. */
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_true(durable_count(&rig, "log-") <= 2);
	durable_finish(&rig);
}

/* A full disk lets no checkpoint be made, which costs nothing but the checkpoint. */
static void test_no_room_for_a_checkpoint(void **state)
{
	(void)state;
	struct oltp_checkpoint_stats stats;

	durable_init(&rig, 5);
	assert_int_equal(durable_recover(&rig), 0);
	assert_true(durable_run(&rig, 2, 30, 0) > 30);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	durable_set_room(&rig, 1);
	assert_int_equal(oltp_checkpoint(rig.engine), -ENOSPC);
	oltp_checkpoint_stats_read(rig.engine, &stats);
	assert_int_equal(stats.checkpoints, 1);
	assert_int_equal(stats.failed, 1);
	assert_int_equal(stats.last_error, -ENOSPC);
	assert_int_equal(durable_count(&rig, "checkpoint-"), 1);
	durable_set_room(&rig, 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_int_equal(durable_count(&rig, "checkpoint-"), 1);
	durable_close(&rig);
	fault_disk_restart(rig.disk, true);
	assert_int_equal(durable_recover(&rig), 0);
	durable_finish(&rig);
}

static void damaged(const char *prefix, uint32_t nth, uint64_t offset, const char *what)
{
	restore(offset);
	durable_damage(&rig, prefix, nth, offset);
	assert_int_equal(durable_recover(&rig), -EUCLEAN);
	if (!strstr(rig.recovery.error, what))
		fail_msg("'%s' does not say '%s'", rig.recovery.error, what);
	drop();
}

/* One bit more than there should be, in what recovery needs. */
static void test_damage(void **state)
{
	(void)state;

	open_disk(6);
	save();
	/* The header, the first block: the begin, some row; the end is that of the last block. */
	damaged("checkpoint-", 0, 17, "checkpoint-");
	damaged("checkpoint-", 0, LOG_BLOCK_BYTES + 3, "checkpoint-");
	damaged("checkpoint-", 0, LOG_BLOCK_BYTES + 500, "checkpoint-");
	damaged("checkpoint-", 0, LOG_BLOCK_BYTES + 5000, "checkpoint-");
	/* The first segment that is needed: its header, its first group. */
	damaged("log-", 0, 40, "checkpoint-");
	damaged("log-", 0, LOG_BLOCK_BYTES + 9, "log-");
	damaged("log-", 0, LOG_BLOCK_BYTES + 200, "log-");
	rig = saved;
	durable_finish(&rig);
}

/* All in one segment, so that nothing but what is behind it tells. */
static void test_damage_in_the_last_segment(void **state)
{
	(void)state;
	struct oltp_durable_stats stats;

	durable_init(&rig, 10);
	assert_int_equal(durable_recover(&rig), 0);
	do {
		durable_run(&rig, 1, 3, 0);
		oltp_durable_stats_read(rig.engine, &stats);
	} while (stats.groups < 3);
	durable_close(&rig);
	save();
	damaged("log-", 0, LOG_BLOCK_BYTES + 9, "there are later ones");
	damaged("log-", 0, LOG_BLOCK_BYTES + 200, "there are later ones");
	rig = saved;
	durable_finish(&rig);
}

/* Anywhere: right, or refused; what is acknowledged may be cut off with the last group alone. */
static void test_damage_anywhere(void **state)
{
	(void)state;
	uint32_t n_refused = 0, n_right = 0;
	uint64_t rng = 77;

	open_disk(7);
	rig.shared_acknowledged = 0;
	for (uint32_t i = 0; i < DURABLE_WORKERS; i++)
		rig.workers[i].own_acknowledged = 0;
	save();
	for (uint32_t i = 0; i < 150 / DURABLE_FEWER + 20; i++) {
		const char *prefix = i % 3 ? "log-" : "checkpoint-";
		uint32_t n = durable_count(&saved, prefix);
		int rc;

		restore(i);
		durable_damage(&rig, prefix, (uint32_t)durable_draw(&rng, n),
				  durable_draw(&rng, 64 << 10));
		rc = durable_recover(&rig);
		assert_true(!rc || rc == -EUCLEAN);
		n_refused += rc != 0;
		n_right += !rc;
		drop();
	}
	assert_true(n_refused > 0);
	assert_true(n_right > 0);
	rig = saved;
	durable_finish(&rig);
}

static void test_missing_files(void **state)
{
	(void)state;
	uint32_t n;

	open_disk(8);
	save();
	n = durable_count(&rig, "log-");
	assert_true(n >= 2);
	/* The one that the checkpoint needs first; the checkpoint; the catalogue. */
	restore(1);
	durable_remove(&rig, "log-", 0);
	assert_int_equal(durable_recover(&rig), -EUCLEAN);
	assert_non_null(strstr(rig.recovery.error, "checkpoint-"));
	drop();
	restore(2);
	durable_remove(&rig, "checkpoint-", 0);
	assert_int_equal(durable_recover(&rig), -EUCLEAN);
	assert_non_null(strstr(rig.recovery.error, "log-"));
	drop();
	restore(3);
	durable_remove(&rig, LOG_CATALOG_NAME, 0);
	assert_int_equal(durable_recover(&rig), -EBADMSG);
	drop();
	rig = saved;
	durable_finish(&rig);
}

/* Before recovery nothing runs, and it happens once. */
static void test_order_of_calls(void **state)
{
	(void)state;
	struct oltp_table *table;
	struct oltp_worker *w;

	open_disk(9);
	assert_int_equal(durable_open(&rig), 0);
	assert_int_equal(oltp_worker_create(rig.engine, &w), 0);
	assert_int_equal(oltp_txn_begin(w), OLTP_INVALID);
	assert_int_equal(oltp_checkpoint(rig.engine), -EINVAL);
	/* 0 is the epoch of a worker that has committed nothing. */
	assert_int_equal(oltp_durable_wait(rig.engine, 0), -EINVAL);
	assert_int_equal(oltp_durable_wait(rig.engine, 1), -EINVAL);
	assert_int_equal(oltp_recover(rig.engine, NULL, &rig.recovery), 0);
	assert_int_equal(oltp_durable_wait(rig.engine, 0), 0);
	assert_int_equal(rig.recovery.phase, OLTP_RECOVERY_DONE);
	assert_true(rig.recovery.rows > 0);
	assert_int_equal(rig.recovery.checkpoint_bytes, rig.recovery.checkpoint_bytes_all);
	assert_true(rig.recovery.transactions > 0);
	assert_int_equal(oltp_recover(rig.engine, NULL, NULL), -EINVAL);
	assert_int_equal(oltp_txn_begin(w), OLTP_OK);
	oltp_txn_abort(w);
	oltp_worker_destroy(w);
	durable_close(&rig);
	/* Tables that are not the database's. */
	assert_int_equal(oltp_engine_open(&rig.config, &rig.engine), 0);
	assert_int_equal(oltp_table_create(rig.engine, sizeof(uint64_t), 16, &table), 0);
	assert_int_equal(oltp_recover(rig.engine, NULL, &rig.recovery), -EINVAL);
	assert_non_null(strstr(rig.recovery.error, "tables"));
	durable_close(&rig);
	assert_int_equal(oltp_engine_open(&rig.config, &rig.engine), 0);
	assert_int_equal(oltp_table_create(rig.engine, 9, 16, &table), -EINVAL);
	durable_close(&rig);
	rig.config.durability = OLTP_DURABILITY_OFF;
	assert_int_equal(oltp_engine_open(&rig.config, &rig.engine), 0);
	assert_int_equal(oltp_recover(rig.engine, NULL, NULL), -EINVAL);
	assert_int_equal(oltp_checkpoint(rig.engine), -EINVAL);
	durable_finish(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DURABLE_TEST(test_each_call_of_recovery_fails),
		DURABLE_TEST(test_recovering_again),
		DURABLE_TEST(test_each_call_of_work_fails),
		DURABLE_TEST(test_disk_full),
		DURABLE_TEST(test_no_room_for_a_checkpoint),
		DURABLE_TEST(test_damage),
		DURABLE_TEST(test_damage_in_the_last_segment),
		DURABLE_TEST(test_damage_anywhere),
		DURABLE_TEST(test_missing_files),
		DURABLE_TEST(test_order_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
