// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lazy recovery: the first transaction comes before the rows are read, and nothing else changes.
 * What is read, when, and from where; checkpoints, little memory and memory given back while rows
 * are still in the checkpoint; damage.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "lazy_rig.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/recovery/checkpoint_file.h"
#include "oltp-engine/src/recovery/lazy_load.h"

#define ROWS		LAZY_RIG_ROWS
#define PATIENCE_MS	60000u
#define NO_LOAD		OLTP_LAZY_NO_LOAD	/* of the rest: it stays in the checkpoint */
#define FAST		4096u

static uint64_t counters[ROWS];

/* mib_s: of the background; 0: not lazily. */
static struct oltp_recovery recover(struct rig *rig, struct fault_disk *disk, uint64_t limit_bytes,
				    uint32_t mib_s)
{
	const struct oltp_recover_config config = { .lazy = mib_s, .lazy_mib_s = mib_s };
	struct oltp_recovery recovery;

	lazy_rig_open(rig, disk, limit_bytes, true);
	if (oltp_recover(rig->engine, &config, &recovery))
		fail_msg("%s", recovery.error);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	return recovery;
}

static void restart(struct rig *rig, struct fault_disk *disk)
{
	rig_close(rig);
	fault_disk_restart(disk, true);
}

static void update_some(struct rig *rig, uint64_t first, uint64_t step)
{
	for (uint64_t key = first; key < ROWS; key += step)
		assert_int_equal(rig_update(rig, key, ++counters[key]), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
}

/* A disk with ROWS rows in a checkpoint. */
static struct fault_disk *filled_disk(uint64_t seed)
{
	struct fault_disk *disk = fault_disk_create(seed);
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recover(&rig, disk, PLENTY, 0);
	rig_insert(&rig, 0, ROWS);
	/* So that the log after the checkpoint has none of them. */
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	return disk;
}

static uint64_t rows_left(const struct rig *rig)
{
	return oltp_recovery_rows_left(rig->engine);
}

static void wait_loaded(struct rig *rig)
{
	for (uint32_t ms = 0; rows_left(rig); ms++) {
		assert_true(ms < PATIENCE_MS);
		rig_sleep_ms(1);
	}
}

static void test_rows_are_read_when_used(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(1);
	struct oltp_recovery recovery;
	struct rig rig;

	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_null(recovery.not_lazy);
	assert_int_equal(recovery.rows, ROWS);
	assert_int_equal(recovery.lazy_rows, ROWS);
	assert_true(recovery.checkpoint_bytes < recovery.checkpoint_bytes_all / 50);
	assert_int_equal(rows_left(&rig), ROWS);
	assert_true(rig_is_cold(&rig, 17));
	assert_int_equal(rig_read(&rig, 17, 0), OLTP_OK);
	assert_false(rig_is_cold(&rig, 17));
	assert_int_equal(rig_read(&rig, ROWS, 0), OLTP_NOT_FOUND);
	update_some(&rig, 1, 29);
	assert_true(rows_left(&rig) < ROWS - ROWS / 30);
	assert_true(rows_left(&rig) > ROWS / 2);
	/* Those that are not in memory are looked at in the checkpoint. */
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	assert_true(rows_left(&rig) > ROWS / 2);
	assert_int_equal(rig_stats(&rig).read_errors, 0);
	restart(&rig, disk);
	/* The log changes rows that are still in the checkpoint. */
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_int_equal(recovery.lazy_rows, ROWS);
	assert_int_equal(recovery.updates, (ROWS - 1 + 28) / 29);
	assert_int_equal(recovery.puts, 0);
	assert_true(rows_left(&rig) > ROWS / 2);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

/* In the end all is as after an ordinary recovery, and the file can go. */
static void test_the_rest_is_loaded(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(2);
	struct oltp_memory_stats stats;
	struct rig rig;

	recover(&rig, disk, PLENTY, FAST);
	wait_loaded(&rig);
	stats = rig_stats_of(&rig, ROWS);
	assert_int_equal(stats.cold_records, 0);
	assert_int_equal(stats.cold_reads, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	/* Once the manager has seen that nobody looks at its blocks any more. */
	for (uint32_t ms = 0; atomic_load(&rig.engine->cold->checkpoint.number); ms++) {
		assert_true(ms < PATIENCE_MS);
		rig_sleep_ms(1);
	}
	update_some(&rig, 2, 1000);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_int_equal(fault_disk_count(disk, "checkpoint-0000000000000001"), 0);
	restart(&rig, disk);
	recover(&rig, disk, PLENTY, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

#define SLOW_NS		30000000ull
#define BLOCK_BYTES_MIN	(128u << 10)	/* of a read: it is a block */

/* Reads of blocks, by the thread that loads. */
static struct slow {
	_Atomic bool is_slow;		/* recovery is done */
	_Atomic uint64_t n_others;	/* reads that ended */
	uint32_t n;
	struct {
		uint64_t begin_ns, end_ns;
		uint64_t n_others;	/* meanwhile */
	} blocks[64];
} slow;

static ssize_t slow_pread(void *ctx, int fd, void *buffer, size_t size, uint64_t offset)
{
	uint64_t begin_ns = clock_now_ns(), n_others = slow.n_others;
	ssize_t n;

	if (size < BLOCK_BYTES_MIN || !slow.is_slow) {
		n = fault_disk_ops.pread(ctx, fd, buffer, size, offset);
		slow.n_others++;
		return n;
	}
	clock_sleep(SLOW_NS);
	n = fault_disk_ops.pread(ctx, fd, buffer, size, offset);
	assert_true(slow.n < ARRAY_SIZE(slow.blocks));
	slow.blocks[slow.n].begin_ns = begin_ns;
	slow.blocks[slow.n].n_others = slow.n_others - n_others;
	slow.blocks[slow.n++].end_ns = clock_now_ns();
	return n;
}

/* While transactions read, a slow disk is theirs for a part of the time. */
static void test_transactions_come_first(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(19);
	struct io_ops ops = fault_disk_ops;
	uint32_t n_met = 0;
	struct rig rig;

	recover(&rig, disk, PLENTY, NO_LOAD);
	restart(&rig, disk);
	ops.pread = slow_pread;
	lazy_rig_io = &ops;
	recover(&rig, disk, PLENTY, FAST);
	slow.is_slow = true;
	for (uint64_t key = ROWS; key--;) {
		if (key % 16 == 0)
			rig_sleep_ms(1);
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	}
	wait_loaded(&rig);
	restart(&rig, disk);
	lazy_rig_io = &fault_disk_ops;
	assert_true(slow.n > 4);
	for (uint32_t i = 0; i + 1 < slow.n; i++) {
		if (!slow.blocks[i].n_others)
			continue;
		assert_true(slow.blocks[i + 1].begin_ns - slow.blocks[i].end_ns >=
			    SLOW_NS / LAZY_LOAD_TO_OTHERS);
		n_met++;
	}
	assert_true(n_met > 2);
	fault_disk_destroy(disk);
}

/* Puts of whole rows need nothing of what the checkpoint has. */
static void test_puts_read_nothing(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(3);
	uint8_t record[RIG_RECORD_BYTES];
	struct oltp_recovery recovery;
	struct rig rig;

	recover(&rig, disk, PLENTY, 0);
	for (uint64_t key = 0; key < ROWS; key += 100) {
		counters[key] = 5;
		rig_fill_record(record, key, 5);
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(oltp_txn_delete(rig.w, rig.table, key), OLTP_OK);
		assert_int_equal(oltp_txn_insert(rig.w, rig.table, key, record), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	}
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	restart(&rig, disk);
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_int_equal(recovery.puts, (ROWS + 99) / 100);
	assert_int_equal(rig_stats(&rig).cold_reads, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

/* Nor do updates of rows that are in the checkpoint only. */
static void test_updates_read_nothing(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(13);
	struct oltp_recovery recovery;
	struct rig rig;

	recover(&rig, disk, PLENTY, 0);
	update_some(&rig, 5, 3);
	update_some(&rig, 5, 6);
	restart(&rig, disk);
	for (int i = 0; i < 3; i++) {
		recovery = recover(&rig, disk, PLENTY, NO_LOAD);
		assert_true(recovery.updates >= ROWS / 3);
		assert_int_equal(rig_stats(&rig).cold_reads, 0);
		assert_int_equal(rows_left(&rig), ROWS);
		/* Those that were changed, their neighbours, and all. */
		for (uint64_t key = 4; i && key < ROWS; key += 50)
			assert_int_equal(rig_read(&rig, key, counters[key]), OLTP_OK);
		for (uint64_t key = 5; i && key < ROWS; key += 150)
			assert_int_equal(rig_read(&rig, key, counters[key]), OLTP_OK);
		assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
		restart(&rig, disk);
	}
	/* A checkpoint, and memory for a quarter of the rows: what was changed goes along. */
	recover(&rig, disk, PLENTY, NO_LOAD);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	recovery = recover(&rig, disk, 4 * MIB, FAST);
	assert_int_equal(recovery.updates, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	update_some(&rig, 1, 2);
	restart(&rig, disk);
	recovery = recover(&rig, disk, 4 * MIB, FAST);
	assert_true(recovery.updates > ROWS / 3);
	wait_loaded(&rig);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

/* A checkpoint has the rows that are in the one before it, whose file stays for them. */
static void test_checkpoint_meanwhile(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(4);
	struct rig rig;

	recover(&rig, disk, PLENTY, NO_LOAD);
	update_some(&rig, 1, 17);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	update_some(&rig, 2, 19);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_true(rows_left(&rig) > ROWS / 2);
	assert_int_equal(fault_disk_count(disk, "checkpoint-0000000000000001"), 1);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	for (int i = 0; i < 2; i++) {
		restart(&rig, disk);
		recover(&rig, disk, PLENTY, i ? NO_LOAD : 0);
		assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	}
	/* The next process does not need it. */
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	assert_int_equal(fault_disk_count(disk, "checkpoint-0000000000000001"), 0);
	restart(&rig, disk);
	recover(&rig, disk, PLENTY, 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

/* Memory for a quarter of the rows: the rest goes to disk, as if it had been read at once. */
static void test_little_memory(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(5);
	struct oltp_memory_stats stats;
	struct rig rig;

	recover(&rig, disk, 4 * MIB, FAST);
	update_some(&rig, 3, 50);
	wait_loaded(&rig);
	stats = rig_stats_of(&rig, ROWS);
	assert_true(stats.cold_records > ROWS / 4);
	assert_true(stats.held_bytes <= 4 * MIB);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

static void test_memory_given_back_meanwhile(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(6);
	struct oltp_memory_stats stats;
	struct rig rig;

	recover(&rig, disk, PLENTY, 32);
	for (uint64_t key = 0; key < ROWS; key += 2)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	stats = rig_demand(&rig, 4 * MIB, RIG_DEADLINE_MS);
	assert_true(stats.held_bytes <= 4 * MIB);
	update_some(&rig, 1, 7);
	wait_loaded(&rig);
	assert_true(rig_stats(&rig).held_bytes <= 4 * MIB);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

static void test_damaged_row(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(7);
	const struct oltp_recover_config lazy = { .lazy = true, .lazy_mib_s = FAST };
	struct oltp_recovery recovery;
	uint32_t n_bad = 0;
	struct rig rig;

	/* In the sixth row of the first block. */
	fault_disk_damage(disk, "checkpoint-", 0, LOG_BLOCK_BYTES +
			  sizeof(struct checkpoint_block) + 5 * (8 + RIG_RECORD_BYTES) + 100);
	recover(&rig, disk, PLENTY, NO_LOAD);
	for (uint64_t key = 0; key < ROWS; key++) {
		enum oltp_rc rc = rig_read(&rig, key, 0);

		assert_true(rc == OLTP_OK || rc == OLTP_IO);
		n_bad += rc == OLTP_IO;
	}
	assert_int_equal(n_bad, 1);
	assert_true(rig_stats(&rig).read_errors >= 1);
	assert_int_equal(rows_left(&rig), 1);
	assert_int_equal(oltp_checkpoint(rig.engine), -EIO);
	assert_int_equal(rig_scan(&rig, ROWS, counters), -EIO);
	restart(&rig, disk);
	/* All but that one is loaded, and it does not try for ever. */
	lazy_rig_open(&rig, disk, PLENTY, true);
	assert_int_equal(oltp_recover(rig.engine, &lazy, &recovery), 0);
	assert_int_equal(oltp_worker_create(rig.engine, &rig.w), 0);
	for (uint32_t ms = 0; rows_left(&rig) > 1; ms++) {
		assert_true(ms < PATIENCE_MS);
		rig_sleep_ms(1);
	}
	rig_sleep_ms(300);
	assert_int_equal(rig_stats(&rig).read_errors, 1);
	restart(&rig, disk);
	lazy_rig_open(&rig, disk, PLENTY, true);
	assert_int_equal(oltp_recover(rig.engine, NULL, &recovery), -EUCLEAN);
	rig_close(&rig);
	fault_disk_destroy(disk);
}

/* A key that was deleted and added again while the checkpoint was made: the later row counts. */
static void test_a_key_that_is_there_twice(void **state)
{
	(void)state;
	struct fault_disk *disk = fault_disk_create(12);
	const struct io_files io = { .ops = &fault_disk_ops, .ctx = disk };
	const uint32_t row_bytes = 8 + RIG_RECORD_BYTES;
	static uint8_t file[2 * LOG_BLOCK_BYTES];
	const uint64_t keys[] = { 5, 5 };
	uint32_t checks[2];
	struct cold *cold;
	struct rig rig;
	int fd;

	recover(&rig, disk, PLENTY, 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint8_t *row = file + LOG_BLOCK_BYTES + 56 + i * row_bytes;

		memcpy(row, &keys[i], sizeof(keys[i]));
		rig_fill_record(row + sizeof(keys[i]), keys[i], i + 1);
		checks[i] = crc32c(0, row, row_bytes);
	}
	fd = fault_disk_ops.open(disk, "/disk/rows", O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(io_write_all(&io, fd, file, sizeof(file), 0), 0);
	fault_disk_ops.close(disk, fd);
	cold = rig.engine->cold;
	assert_int_equal(cold_checkpoint_open(cold, &io, "/disk/rows", 9), 0);
	assert_int_equal(cold_checkpoint_add(cold, &(struct cold_checkpoint_rows){
		.table = rig.table, .offset = LOG_BLOCK_BYTES + 56, .row_bytes = row_bytes, .n = 2,
		.keys = keys, .checks = checks }), 0);
	assert_int_equal(rig_stats(&rig).cold_records, 1);
	assert_int_equal(rows_left(&rig), 1);
	assert_int_equal(rig_read(&rig, 5, 2), OLTP_OK);
	assert_int_equal(rows_left(&rig), 0);
	/* More could still be added. */
	rig_sleep_ms(200);
	assert_int_equal(cold_checkpoint_number(cold), 9);
	cold_checkpoint_added(cold);
	for (uint32_t ms = 0; cold_checkpoint_number(cold); ms++) {
		assert_true(ms < PATIENCE_MS);
		rig_sleep_ms(1);
	}
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

static struct checkpoint_directory_ref directory_of(struct fault_disk *disk, uint64_t *ret_end)
{
	struct checkpoint_directory_ref ref;
	int fd = fault_disk_ops.open(disk, "/disk/checkpoint-0000000000000001", O_RDONLY, 0);
	uint64_t bytes;

	assert_true(fd >= 0);
	assert_int_equal(fault_disk_ops.size(disk, fd, &bytes), 0);
	*ret_end = bytes - LOG_BLOCK_BYTES;
	assert_int_equal(fault_disk_ops.pread(disk, fd, &ref, sizeof(ref), *ret_end +
					      sizeof(struct checkpoint_end)), sizeof(ref));
	fault_disk_ops.close(disk, fd);
	assert_true(directory_ref_is_good(&ref));
	return ref;
}

static void test_damaged_directory(void **state)
{
	(void)state;
	struct fault_disk *disk = filled_disk(8);
	const struct oltp_recover_config lazy = { .lazy = true };
	struct checkpoint_directory_ref ref;
	struct oltp_recovery recovery;
	struct rig rig;
	uint64_t end;

	ref = directory_of(disk, &end);
	assert_int_equal(ref.n_pieces, 1);
	/* Without the reference to it there is none, as in a checkpoint of an older program. */
	fault_disk_damage(disk, "checkpoint-", 0, end + sizeof(struct checkpoint_end) + 8);
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_non_null(strstr(recovery.not_lazy, "has no directory"));
	assert_int_equal(recovery.lazy_rows, 0);
	assert_int_equal(rows_left(&rig), 0);
	assert_int_equal(rig_scan(&rig, ROWS, counters), 0);
	restart(&rig, disk);
	fault_disk_damage(disk, "checkpoint-", 0, end + sizeof(struct checkpoint_end) + 8);
	/* Each part of a piece: who cannot read it reads all, and finds the same damage. */
	for (uint64_t at = 0; at < ref.last_bytes; at += ref.last_bytes / 7) {
		fault_disk_damage(disk, "checkpoint-", 0, ref.last + at);
		lazy_rig_open(&rig, disk, PLENTY, true);
		assert_int_equal(oltp_recover(rig.engine, &lazy, &recovery), -EUCLEAN);
		assert_non_null(strstr(recovery.not_lazy, "damaged"));
		assert_non_null(strstr(recovery.error, "damaged"));
		restart(&rig, disk);
		fault_disk_damage(disk, "checkpoint-", 0, ref.last + at);
	}
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_int_equal(recovery.lazy_rows, ROWS);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

static uint64_t no_key(void *ctx, uint64_t key, const void *record)
{
	(void)ctx;
	(void)record;
	return ~key;
}

static void test_when_it_cannot_be_lazy(void **state)
{
	(void)state;
	const struct oltp_recover_config lazy = { .lazy = true, .lazy_mib_s = NO_LOAD };
	struct fault_disk *disk = fault_disk_create(9);
	struct oltp_recovery recovery;
	struct oltp_index *index;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	/* There is nothing at all. */
	assert_null(recovery.not_lazy);
	rig_insert(&rig, 0, 100);
	restart(&rig, disk);
	recovery = recover(&rig, disk, PLENTY, NO_LOAD);
	assert_non_null(strstr(recovery.not_lazy, "no checkpoint"));
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	lazy_rig_open(&rig, disk, PLENTY, false);
	assert_int_equal(oltp_recover(rig.engine, &lazy, &recovery), 0);
	assert_non_null(strstr(recovery.not_lazy, "cold_dir"));
	assert_int_equal(recovery.rows, 100);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), 0);
	restart(&rig, disk);
	lazy_rig_open(&rig, disk, PLENTY, true);
	assert_int_equal(oltp_index_create(rig.table, &(struct oltp_index_config){
		.key_of = no_key, .n_key_spans = 1 }, &index), 0);
	assert_int_equal(oltp_recover(rig.engine, &lazy, &recovery), 0);
	assert_non_null(strstr(recovery.not_lazy, "has no keys"));
	assert_int_equal(recovery.rows, 100);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

static int count_rows(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	uint32_t *n = ctx;

	assert_int_equal(sort_key, key);
	assert_true(rig_record_is(record, key, 3));
	++*n;
	return 0;
}

/* Scans are right whether a table waits or, as one with long rows, is loaded at once. */
static void test_tables_that_cannot_wait(void **state)
{
	(void)state;
	enum { ORDERED = 40, SMALL = 20000, LONG_BYTES = 262136 };
	struct fault_disk *disk = fault_disk_create(10);
	static uint8_t record[LONG_BYTES], small[16];
	struct oltp_table *ordered, *longs, *smalls;
	const struct oltp_range all = { .from = 0, .to = UINT64_MAX };
	struct oltp_recovery recovery;
	struct oltp_index *index;
	const void *found;
	struct rig rig;
	uint32_t n = 0;

	for (int i = 0; i < 2; i++) {
		lazy_rig_open(&rig, disk, PLENTY, true);
		assert_int_equal(oltp_table_create(rig.engine, RIG_RECORD_BYTES, ORDERED, &ordered),
				 0);
		assert_int_equal(oltp_table_create(rig.engine, LONG_BYTES, 10, &longs), 0);
		assert_int_equal(oltp_table_create(rig.engine, sizeof(small), SMALL, &smalls), 0);
		assert_int_equal(oltp_index_create(ordered, NULL, &index), 0);
		assert_int_equal(oltp_recover(rig.engine, &(struct oltp_recover_config){
			.lazy = true, .lazy_mib_s = NO_LOAD }, &recovery), 0);
		assert_int_equal(oltp_worker_create(rig.engine, &rig.w), 0);
		if (i)
			break;
		for (uint64_t key = 0; key < ORDERED; key++) {
			rig_fill_record(record, key, 3);
			assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
			assert_int_equal(oltp_txn_insert(rig.w, ordered, key, record), OLTP_OK);
			assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		}
		memset(record, 7, sizeof(record));
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(oltp_txn_insert(rig.w, longs, 5, record), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		for (uint64_t key = 0; key < SMALL; key++) {
			memcpy(small + 8, &key, 8);
			assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
			assert_int_equal(oltp_txn_insert(rig.w, smalls, key, small), OLTP_OK);
			assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		}
		assert_int_equal(oltp_checkpoint(rig.engine), 0);
		restart(&rig, disk);
	}
	/* More rows in a block of the checkpoint than a cold block can have. */
	assert_int_equal(recovery.lazy_rows, SMALL + ORDERED);
	assert_int_equal(recovery.rows, SMALL + ORDERED + 1);
	for (bool is_cold = true; is_cold;) {
		enum oltp_rc rc;

		n = 0;
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		rc = oltp_txn_scan(rig.w, index, &all, count_rows, &n);
		is_cold = rc == OLTP_COLD;
		oltp_txn_abort(rig.w);
		assert_int_equal(is_cold ? oltp_cold_wait(rig.w) : rc, OLTP_OK);
	}
	assert_int_equal(n, ORDERED);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.w, longs, 5, &found), OLTP_OK);
	assert_memory_equal(found, record, sizeof(record));
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	for (uint64_t key = 0; key < SMALL; key++) {
		enum oltp_rc rc;

		do {
			assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
			rc = oltp_txn_read(rig.w, smalls, key, &found);
			if (!rc)
				assert_memory_equal((const uint8_t *)found + 8, &key, 8);
			oltp_txn_abort(rig.w);
			if (rc == OLTP_COLD)
				assert_int_equal(oltp_cold_wait(rig.w), OLTP_OK);
		} while (rc == OLTP_COLD || rc == OLTP_CONFLICT);
		assert_int_equal(rc, OLTP_OK);
	}
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_read_when_used),
		cmocka_unit_test(test_the_rest_is_loaded),
		cmocka_unit_test(test_transactions_come_first),
		cmocka_unit_test(test_puts_read_nothing),
		cmocka_unit_test(test_updates_read_nothing),
		cmocka_unit_test(test_checkpoint_meanwhile),
		cmocka_unit_test(test_little_memory),
		cmocka_unit_test(test_memory_given_back_meanwhile),
		cmocka_unit_test(test_damaged_row),
		cmocka_unit_test(test_a_key_that_is_there_twice),
		cmocka_unit_test(test_damaged_directory),
		cmocka_unit_test(test_when_it_cannot_be_lazy),
		cmocka_unit_test(test_tables_that_cannot_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
