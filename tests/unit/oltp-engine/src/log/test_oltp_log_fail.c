// SPDX-License-Identifier: GPL-2.0-or-later
/* Nothing is acknowledged that is not on disk: with a disk that is slow, full, or fails. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "log_rig.h"
#include "oltp-engine/src/txn/engine.h"

static struct log_model model;

static int setup(void **state)
{
	memset(&model, 0, sizeof(model));
	return log_rig_setup(state);
}

static uint64_t soon_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec + 50000000ull;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* A group is held on its way to disk. Its transactions and who saw them, wait; locks do not. */
static void nothing_is_durable_before_it_is_on_disk(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_worker *other;
	uint64_t first, second;
	const void *record;

	log_rig_open(rig);
	assert_int_equal(oltp_worker_create(rig->engine, &other), 0);
	log_fake_set(&rig->fake, LOG_FAKE_HOLD);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	first = oltp_worker_epoch(rig->w);
	log_fake_wait_held(&rig->fake);
	assert_true(oltp_durable_epoch(rig->engine) < first);
	assert_int_equal(log_wait(rig->engine->log, first, soon_ns()), -ETIMEDOUT);
	/* Another one has read it, and one has changed it. */
	assert_int_equal(oltp_txn_begin(other), OLTP_OK);
	assert_int_equal(oltp_txn_read(other, rig->table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(other), OLTP_OK);
	assert_true(oltp_worker_epoch(other) >= first);
	assert_true(oltp_durable_epoch(rig->engine) < oltp_worker_epoch(other));
	assert_int_equal(log_rig_count_up(other, rig->table, 1), OLTP_OK);
	second = oltp_worker_epoch(other);
	assert_true(second >= first);
	/* However long that takes, what may be lost is the group that is held and the one after. */
	sleep_ms(50);
	assert_true(log_epoch_now(rig->engine->log) - oltp_durable_epoch(rig->engine) <= 2);
	assert_true(oltp_durable_epoch(rig->engine) < first);
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	assert_int_equal(oltp_durable_wait(rig->engine, second), 0);
	oltp_worker_destroy(other);
	assert_int_equal(log_rig_read(rig->dir, log_model_redo, &model).entries, 2);
	log_model_is(&model, rig->table);
}

/* It says so, refuses to go on, and what was on disk before is there. */
static void fails(struct log_rig *rig, enum log_fake_mode mode, int error)
{
	struct oltp_durable_stats stats;
	struct oltp_worker *other;
	uint64_t durable;
	void *record;

	log_rig_open(rig);
	assert_int_equal(oltp_worker_create(rig->engine, &other), 0);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	/* One that is in the middle. */
	assert_int_equal(oltp_txn_begin(other), OLTP_OK);
	assert_int_equal(oltp_txn_update(other, rig->table, 1,
					 &(struct oltp_span){ 50, 1 }, 1, &record), OLTP_OK);
	((uint8_t *)record)[50]++;
	durable = oltp_durable_epoch(rig->engine);
	log_fake_set(&rig->fake, mode);
	assert_int_equal(log_rig_insert(rig, 2, 1), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), error);
	assert_true(oltp_durable_epoch(rig->engine) < oltp_worker_epoch(rig->w));
	assert_true(oltp_durable_epoch(rig->engine) >= durable);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_IO);
	assert_int_equal(oltp_txn_commit(other), OLTP_IO);
	oltp_txn_abort(other);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_true(stats.has_failed);
	assert_int_equal(stats.error, error);
	assert_int_equal(stats.entries, 1);
	/* The disk is well again, and that changes nothing. */
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_IO);
	oltp_worker_destroy(other);
	log_rig_close(rig);
	log_rig_read(rig->dir, log_model_redo, &model);
	assert_true(model.rows[1].is_there);
}

static void a_full_disk_ends_it(void **state)
{
	fails(*state, LOG_FAKE_ENOSPC, -ENOSPC);
	assert_false(model.rows[2].is_there);
}

static void a_sync_that_failed_is_not_tried_again(void **state)
{
	struct log_rig *rig = *state;

	fails(rig, LOG_FAKE_EIO, -EIO);
	assert_int_equal(rig->fake.n_writes, 2);
}

static void a_write_that_writes_nothing_ends_it(void **state)
{
	fails(*state, LOG_FAKE_NOTHING, -EIO);
	assert_false(model.rows[2].is_there);
}

static void short_writes(struct log_rig *rig, enum log_fake_mode mode)
{
	log_rig_open(rig);
	log_fake_set(&rig->fake, mode);
	for (uint64_t key = 0; key < 300; key++)
		assert_int_equal(log_rig_insert(rig, key, key), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	assert_int_equal(log_rig_read(rig->dir, log_model_redo, &model).entries, 300);
	log_model_is(&model, rig->table);
}

static void writes_that_come_in_blocks_are_completed(void **state)
{
	short_writes(*state, LOG_FAKE_SHORT);
}

static void writes_that_end_in_a_block_are_completed(void **state)
{
	short_writes(*state, LOG_FAKE_SPLIT);
}

/* Segments run out: all that was acknowledged is in those that there are. */
static void no_room_for_a_segment_ends_it(void **state)
{
	struct log_rig *rig = *state;
	uint64_t acknowledged = 0;
	enum oltp_rc rc;

	log_rig_open(rig);
	assert_int_equal(log_rig_insert(rig, 1, 0), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	pthread_mutex_lock(&rig->fake.lock);
	rig->fake.open_error = -ENOSPC;
	pthread_mutex_unlock(&rig->fake.lock);
	for (uint64_t n = 1;; n++) {
		rc = log_rig_count_up(rig->w, rig->table, 1);
		if (rc)
			break;
		if (n % 100 == 0 &&
		    !oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)))
			acknowledged = n;
	}
	assert_int_equal(rc, OLTP_IO);
	assert_int_equal(oltp_durable_wait(rig->engine, UINT64_MAX), -ENOSPC);
	log_rig_close(rig);
	log_rig_read(rig->dir, log_model_redo, &model);
	assert_true(acknowledged);
	assert_true(model.rows[1].row.counter >= acknowledged);
}

struct busy {
	struct log_rig *rig;
	_Atomic bool stop;
	uint64_t n;
};

static void *keep_busy(void *arg)
{
	struct busy *busy = arg;

	while (!busy->stop) {
		if (log_rig_count_up(busy->rig->w, busy->rig->table, 1))
			abort();
		busy->n++;
	}
	return NULL;
}

/* With its buffers full of what is not written, a worker waits before it begins. */
static void full_buffers_are_waited_for(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_stats stats;
	struct busy busy = { .rig = rig };
	struct log_seen seen;
	pthread_t thread;

	log_rig_open(rig);
	assert_int_equal(log_rig_insert(rig, 1, 0), OLTP_OK);
	log_fake_set(&rig->fake, LOG_FAKE_HOLD);
	assert_int_equal(pthread_create(&thread, NULL, keep_busy, &busy), 0);
	do {
		sleep_ms(5);
		oltp_durable_stats_read(rig->engine, &stats);
	} while (!stats.waits);
	busy.stop = true;
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	seen = log_rig_read(rig->dir, log_model_redo, &model);
	assert_int_equal(seen.entries, busy.n + 1);
	assert_int_equal(model.rows[1].row.counter, busy.n);
}

/* Log, checkpoint and recovery go through the page cache then, and say so. */
static void a_folder_without_direct_io_will_do(void **state)
{
	struct oltp_durable_stats stats;
	struct log_rig *rig = *state;
	struct oltp_recovery recovery;

	rig->fake.no_direct = true;
	log_rig_open(rig);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_false(stats.is_direct);
	for (uint64_t key = 0; key < 300; key++)
		assert_int_equal(log_rig_insert(rig, key, key), OLTP_OK);
	assert_int_equal(oltp_checkpoint(rig->engine), 0);
	for (uint64_t key = 200; key < 400; key++)
		assert_int_equal(key < 300 ? log_rig_count_up(rig->w, rig->table, key) :
					     log_rig_insert(rig, key, key), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	assert_int_equal(log_rig_read(rig->dir, log_model_redo, &model).entries, 500);
	log_model_is(&model, rig->table);
	log_rig_close(rig);

	log_rig_open(rig);
	assert_int_equal(oltp_recover(rig->engine, NULL, &recovery), 0);
	assert_int_equal(recovery.rows, 300);
	log_model_is(&model, rig->table);
	/* It was asked for, of the log, the checkpoint and in recovery. */
	assert_true(rig->fake.n_direct >= 5);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, log_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(nothing_is_durable_before_it_is_on_disk),
		WITH_RIG(a_full_disk_ends_it),
		WITH_RIG(a_sync_that_failed_is_not_tried_again),
		WITH_RIG(a_write_that_writes_nothing_ends_it),
		WITH_RIG(writes_that_come_in_blocks_are_completed),
		WITH_RIG(writes_that_end_in_a_block_are_completed),
		WITH_RIG(no_room_for_a_segment_ends_it),
		WITH_RIG(full_buffers_are_waited_for),
		WITH_RIG(a_folder_without_direct_io_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
