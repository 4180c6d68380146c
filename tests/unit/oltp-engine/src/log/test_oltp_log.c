// SPDX-License-Identifier: GPL-2.0-or-later
/* The log on disk says what was committed, and nothing else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "log_rig.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/txn/engine.h"

static struct log_model model;

static int setup(void **state)
{
	memset(&model, 0, sizeof(model));
	return log_rig_setup(state);
}

/* Everything that was committed is on disk; the engine stays open. */
static struct log_seen read_all(struct log_rig *rig)
{
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	memset(&model, 0, sizeof(model));
	return log_rig_read(rig->dir, log_model_redo, &model);
}

static void a_checksum_is_the_known_one(void **state)
{
	uint8_t bytes[8192];

	(void)state;
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t n = 0; n < sizeof(bytes); n += 611)
		assert_int_equal(crc32c(crc32c(0, bytes, n), bytes + n, sizeof(bytes) - n),
				 crc32c(0, bytes, sizeof(bytes)));
}

static void rows_come_back_as_committed(void **state)
{
	struct log_rig *rig = *state;
	struct log_seen seen;

	log_rig_open(rig);
	for (uint64_t key = 0; key < 100; key++)
		assert_int_equal(log_rig_insert(rig, key, key * 3), OLTP_OK);
	for (uint64_t key = 0; key < 100; key += 3)
		assert_int_equal(log_rig_count_up(rig->w, rig->table, key), OLTP_OK);
	seen = read_all(rig);
	assert_int_equal(seen.entries, 134);
	log_model_is(&model, rig->table);
	assert_int_equal(model.rows[6].row.counter, 19);
}

/* Spans that overlap, of one record twice, none at all: the bytes are those at commit. */
static void spans_hold_what_is_there_at_commit(void **state)
{
	static const struct oltp_span first[] = { { 10, 20 }, { 25, 10 }, { 99, 1 }, { 100, 0 } };
	static const struct oltp_span again[] = { { 12, 3 }, { 0, 8 } };
	struct log_rig *rig = *state;
	uint8_t *one, *two;
	struct log_seen seen;

	log_rig_open(rig);
	assert_int_equal(log_rig_insert(rig, 1, 0), OLTP_OK);
	assert_int_equal(log_rig_insert(rig, 2, 0), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 1, first, 4, (void **)&one), OLTP_OK);
	memset(one + 10, 0x11, 20);
	memset(one + 25, 0x22, 10);
	one[99] = 0x33;
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 2, first, 1, (void **)&two), OLTP_OK);
	memset(two + 10, 0x44, 20);
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 1, again, 2, (void **)&one), OLTP_OK);
	memset(one + 12, 0x55, 3);
	memset(one, 0x66, 8);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	seen = read_all(rig);
	assert_int_equal(seen.entries, 3);
	assert_int_equal(seen.ops, 5);
	log_model_is(&model, rig->table);
	assert_int_equal(model.rows[1].row.bytes[12 - 8], 0x55);
	assert_int_equal(model.rows[1].row.bytes[11 - 8], 0x11);
}

static void insert(struct log_rig *rig, uint64_t key, uint8_t fill)
{
	struct log_rig_row row;

	memset(&row, fill, sizeof(row));
	assert_int_equal(oltp_txn_insert(rig->w, rig->table, key, &row), OLTP_OK);
}

/* Every way in which a transaction may add, change and delete one row, and their opposites. */
static void rows_are_put_and_deleted(void **state)
{
	static const struct oltp_span span = { 40, 9 };
	struct log_rig *rig = *state;
	struct log_seen seen;
	uint8_t *record;

	log_rig_open(rig);
	for (uint64_t key = 1; key <= 5; key++)
		assert_int_equal(log_rig_insert(rig, key, key), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	/* 1: changed and deleted; 2: deleted, added again, changed; 3: that and deleted again. */
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 1, &span, 1, (void **)&record),
			 OLTP_OK);
	memset(record + 40, 0x77, 9);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 1), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 2), OLTP_OK);
	insert(rig, 2, 0xa2);
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 2, &span, 1, (void **)&record),
			 OLTP_OK);
	memset(record + 40, 0x77, 9);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 3), OLTP_OK);
	insert(rig, 3, 0xa3);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 3), OLTP_OK);
	/* 6: added and changed; 7: added and deleted; 8: that and added again. */
	insert(rig, 6, 0xa6);
	assert_int_equal(oltp_txn_update(rig->w, rig->table, 6, &span, 1, (void **)&record),
			 OLTP_OK);
	memset(record + 40, 0x77, 9);
	insert(rig, 7, 0xa7);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 7), OLTP_OK);
	insert(rig, 8, 0xa8);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 8), OLTP_OK);
	insert(rig, 8, 0xb8);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	seen = read_all(rig);
	assert_int_equal(seen.entries, 6);
	/* 1, 2, 3, 6, 8: one each. */
	assert_int_equal(seen.ops, 5 + 5);
	log_model_is(&model, rig->table);
	assert_false(model.rows[1].is_there || model.rows[3].is_there || model.rows[7].is_there);
	assert_int_equal(model.rows[2].row.bytes[40 - 8], 0x77);
	assert_int_equal(model.rows[8].row.bytes[0], 0xb8);
}

static void what_changes_nothing_is_not_logged(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_stats stats;
	const void *record;
	uint64_t epoch;

	log_rig_open(rig);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	epoch = oltp_worker_epoch(rig->w);
	assert_true(epoch);
	/* Aborted. */
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	insert(rig, 2, 2);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 1), OLTP_OK);
	oltp_txn_abort(rig->w);
	assert_int_equal(oltp_worker_epoch(rig->w), epoch);
	/* Added and deleted, which comes to nothing. */
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	insert(rig, 3, 2);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, 3), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	/* Read, which has an epoch not before that of what was read. */
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig->w, rig->table, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	assert_true(oltp_worker_epoch(rig->w) >= epoch);
	assert_int_equal(read_all(rig).entries, 1);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_int_equal(stats.entries, 1);
	assert_int_equal(stats.groups, 1);
}

/* Epochs go by with nothing to write, and then none any more; whoever comes then is served. */
static void an_idle_engine_writes_nothing(void **state)
{
	struct oltp_durable_stats before, after;
	struct log_rig *rig = *state;
	const void *record;

	rig->config.group_interval_us = 100;
	log_rig_open(rig);
	for (uint32_t round = 1; round <= 3; round++) {
		assert_int_equal(log_rig_insert(rig, round, 1), OLTP_OK);
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
		/* Until the epoch stands still. */
		oltp_durable_stats_read(rig->engine, &after);
		do {
			before = after;
			usleep(200000);
			oltp_durable_stats_read(rig->engine, &after);
		} while (after.epoch != before.epoch);
		assert_int_equal(after.groups, round);
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_read(rig->w, rig->table, 1, &record), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	}
	assert_int_equal(read_all(rig).groups, 3);
}

/* More than a segment of 1 MiB, then again in those that are not needed any more. */
static void segments_follow_each_other_and_are_used_again(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_stats stats;
	struct log_seen seen;
	uint32_t n_files;
	uint64_t group;

	log_rig_open(rig);
	for (uint32_t i = 0; i < 20000; i++) {
		assert_int_equal(log_rig_insert(rig, i % 100, i), i < 100 ? OLTP_OK : OLTP_EXISTS);
		assert_int_equal(log_rig_count_up(rig->w, rig->table, i % 100), OLTP_OK);
		if (i % 50 == 0)
			oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w));
	}
	seen = read_all(rig);
	assert_true(seen.segments >= 2);
	log_model_is(&model, rig->table);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_int_equal(stats.segments, seen.segments);
	assert_int_equal(stats.bytes, seen.bytes);
	assert_int_equal(stats.groups, seen.groups);

	group = seen.group_last + 1;
	oltp_durable_stats_read(rig->engine, &stats);
	assert_int_equal(log_recycle_before(rig->engine->log, group), 0);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_int_equal(stats.segments, 1);
	n_files = log_fake_files(&rig->fake);
	for (uint32_t i = 0; stats.segments < 3; i++) {
		assert_int_equal(log_rig_count_up(rig->w, rig->table, i % 100), OLTP_OK);
		if (i % 50 == 0)
			oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w));
		oltp_durable_stats_read(rig->engine, &stats);
	}
	/* The spare that there was, and one more that may have been made ahead. */
	assert_true(log_fake_files(&rig->fake) <= n_files + 3 - (seen.segments - 1) + 1);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	seen = log_rig_read(rig->dir, NULL, NULL);
	assert_int_equal(seen.segments, 3);
}

/* As many files as the log had are kept, and no others are made: one, perhaps, ahead. */
static void all_segments_are_used_again(void **state)
{
	const struct oltp_span all = { 0, 200 << 10 };
	struct oltp_durable_stats stats;
	struct log_rig *rig = *state;
	struct oltp_table *big;
	uint32_t n_files;
	uint8_t *row;

	rig->config.txn_undo_bytes = 256 << 10;
	log_rig_open(rig);
	assert_int_equal(oltp_table_create(rig->engine, all.bytes, 64, &big), 0);
	row = calloc(1, all.bytes);
	assert_non_null(row);
	for (uint64_t key = 0; key < 50; key++) {
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_insert(rig->w, big, key, row), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	}
	free(row);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_true(stats.segments >= 10);
	assert_int_equal(log_recycle_before(rig->engine->log,
					    log_group_now(rig->engine->log)), 0);
	n_files = log_fake_files(&rig->fake);
	for (uint64_t key = 0; key < 50; key++) {
		void *record;

		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_update(rig->w, big, key, &all, 1, &record), OLTP_OK);
		memset(record, 7, all.bytes);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	}
	assert_true(log_fake_files(&rig->fake) <= n_files + 1);
}

/* One transaction is more than a segment holds, and more than a chunk: one group all the same. */
static void a_group_may_be_longer_than_a_segment(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_table *big;
	struct log_seen seen;
	uint8_t *row;

	rig->config.txn_records_max = 16;
	log_rig_open(rig);
	assert_int_equal(oltp_table_create(rig->engine, 1u << 20, 16, &big), 0);
	row = malloc(1u << 20);
	assert_non_null(row);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	for (uint64_t key = 0; key < 5; key++) {
		memset(row, (int)key, 1u << 20);
		assert_int_equal(oltp_txn_insert(rig->w, big, key, row), OLTP_OK);
	}
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	assert_int_equal(log_rig_insert(rig, 2, 1), OLTP_OK);
	free(row);
	seen = read_all(rig);
	assert_int_equal(seen.entries, 3);
	assert_int_equal(seen.ops, 7);
	assert_true(seen.bytes > 5u << 20);
	log_model_is(&model, rig->table);
}

static void what_a_worker_left_is_written(void **state)
{
	struct log_rig *rig = *state;
	struct log_seen seen;

	/* No group comes by itself. */
	rig->config.group_interval_us = 1000000;
	log_rig_open(rig);
	for (uint64_t key = 0; key < 20; key++) {
		assert_int_equal(log_rig_insert(rig, key, key), OLTP_OK);
		oltp_worker_destroy(rig->w);
		assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	}
	log_rig_close(rig);
	seen = log_rig_read(rig->dir, log_model_redo, &model);
	assert_int_equal(seen.entries, 20);
	for (uint64_t key = 0; key < 20; key++)
		assert_true(model.rows[key].is_there && model.rows[key].row.counter == key);
}

static void the_folder_is_one_engines(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_engine *other;
	struct oltp_config config;

	log_rig_open(rig);
	assert_int_equal(oltp_engine_open(&rig->config, &other), -EBUSY);
	config = rig->config;
	config.log_dir = "/nonexistent/folder";
	assert_int_equal(oltp_engine_open(&config, &other), -ENOENT);
	config.log_dir = NULL;
	assert_int_equal(oltp_engine_open(&config, &other), -EINVAL);
	config = rig->config;
	config.durability = (enum oltp_durability)3;
	assert_int_equal(oltp_engine_open(&config, &other), -EINVAL);
	config.durability = OLTP_DURABILITY_COMMIT;
	config.group_interval_us = 1000001;
	assert_int_equal(oltp_engine_open(&config, &other), -EINVAL);
}

/* A folder with a database: nothing runs before recovery, and tables must be as they were. */
static void a_database_must_be_recovered_first(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_table *table;

	log_rig_open(rig);
	assert_int_equal(oltp_table_create(rig->engine, 16, 16, &table), 0);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	log_rig_close(rig);

	assert_int_equal(oltp_engine_open(&rig->config, &rig->engine), 0);
	assert_int_equal(oltp_table_create(rig->engine, LOG_RIG_RECORD_BYTES + 1, 16, &table),
			 -EINVAL);
	assert_int_equal(oltp_table_create(rig->engine, LOG_RIG_RECORD_BYTES, 16, &rig->table), 0);
	assert_int_equal(oltp_table_create(rig->engine, 17, 16, &table), -EINVAL);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_INVALID);
	assert_int_equal(oltp_durable_wait(rig->engine, 1), -EINVAL);
}

static void a_damaged_catalogue_is_refused(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_engine *engine;
	char path[128];
	FILE *file;

	log_rig_open(rig);
	log_rig_close(rig);
	snprintf(path, sizeof(path), "%s/" LOG_CATALOG_NAME, rig->dir);
	file = fopen(path, "r+");
	assert_non_null(file);
	assert_int_equal(fseek(file, offsetof(struct log_catalog, tables), SEEK_SET), 0);
	assert_int_equal(fputc(7, file), 7);
	fclose(file);
	assert_int_equal(oltp_engine_open(&rig->config, &engine), -EBADMSG);
	/* Without it, the segments are nobody's. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(oltp_engine_open(&rig->config, &engine), -EBADMSG);
}

static void without_a_log_all_is_durable(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_stats stats;

	rig->config.durability = OLTP_DURABILITY_OFF;
	log_rig_open(rig);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	assert_int_equal(oltp_worker_epoch(rig->w), 0);
	assert_true(oltp_durable_epoch(rig->engine) == UINT64_MAX);
	assert_int_equal(oltp_durable_wait(rig->engine, 7), 0);
	oltp_durable_stats_read(rig->engine, &stats);
	assert_int_equal(stats.bytes, 0);
	assert_int_equal(rig->fake.n_files, 0);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, log_rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_checksum_is_the_known_one),
		WITH_RIG(rows_come_back_as_committed),
		WITH_RIG(spans_hold_what_is_there_at_commit),
		WITH_RIG(rows_are_put_and_deleted),
		WITH_RIG(what_changes_nothing_is_not_logged),
		WITH_RIG(an_idle_engine_writes_nothing),
		WITH_RIG(segments_follow_each_other_and_are_used_again),
		WITH_RIG(all_segments_are_used_again),
		WITH_RIG(a_group_may_be_longer_than_a_segment),
		WITH_RIG(what_a_worker_left_is_written),
		WITH_RIG(the_folder_is_one_engines),
		WITH_RIG(a_database_must_be_recovered_first),
		WITH_RIG(a_damaged_catalogue_is_refused),
		WITH_RIG(without_a_log_all_is_durable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
