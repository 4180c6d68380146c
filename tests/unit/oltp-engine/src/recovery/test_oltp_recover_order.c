// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lazy recovery of a table with an ordered index: scans are complete before any row is loaded, read
 * their range alone, and find what the log changed since. Sort keys in the checkpoint that are
 * damaged are not used.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lazy_rig.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/recovery/checkpoint_file.h"

#define ROWS		LAZY_RIG_ROWS
#define NO_LOAD		OLTP_LAZY_NO_LOAD	/* of the rest: it stays in the checkpoint */

static void restart(struct rig *rig, struct fault_disk *disk)
{
	rig_close(rig);
	fault_disk_restart(disk, true);
}

/* The counter of a record, which rig_fill_record stores first. */
static uint64_t counter_of(void *ctx, uint64_t key, const void *record)
{
	uint64_t counter;

	(void)ctx;
	(void)key;
	memcpy(&counter, record, sizeof(counter));
	return counter;
}

static const struct oltp_index_config by_counter = {
	.key_of = counter_of, .key_spans = { { 0, 8 } }, .n_key_spans = 1,
};

struct found {
	uint64_t first_sort, n;
};

static int find_rows(void *ctx, uint64_t sort_key, uint64_t key, const void *record)
{
	struct found *found = ctx;

	assert_true(rig_record_is(record, key, sort_key));
	assert_int_equal(sort_key, found->first_sort + found->n++);
	return 0;
}

/* Rows with these sort keys, of which there is one each. */
static uint64_t find(struct rig *rig, struct oltp_index *index, uint64_t from, uint64_t to)
{
	const struct oltp_range range = { .from = from, .to = to };
	struct found found = { .first_sort = from };
	enum oltp_rc rc;

	do {
		found.n = 0;
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		rc = oltp_txn_scan(rig->w, index, &range, find_rows, &found);
		oltp_txn_abort(rig->w);
		if (rc == OLTP_COLD)
			assert_int_equal(oltp_cold_wait(rig->w), OLTP_OK);
	} while (rc == OLTP_COLD || rc == OLTP_CONFLICT);
	assert_int_equal(rc, OLTP_OK);
	return found.n;
}

static int try_recover(struct rig *rig, struct fault_disk *disk, uint32_t version,
		       struct oltp_index **ret_index, struct oltp_recovery *ret_recovery)
{
	const struct oltp_recover_config lazy = { .lazy = true, .lazy_mib_s = NO_LOAD };
	struct oltp_index_config config = by_counter;

	config.key_version = version;
	lazy_rig_open(rig, disk, PLENTY, true);
	assert_int_equal(oltp_index_create(rig->table, &config, ret_index), 0);
	return oltp_recover(rig->engine, &lazy, ret_recovery);
}

static struct oltp_recovery recover_ordered(struct rig *rig, struct fault_disk *disk,
					    uint32_t version, struct oltp_index **ret_index)
{
	struct oltp_recovery recovery;

	if (try_recover(rig, disk, version, ret_index, &recovery))
		fail_msg("%s", recovery.error);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	return recovery;
}

static void insert_counted(struct rig *rig, uint64_t key, uint64_t counter)
{
	uint8_t record[RIG_RECORD_BYTES];

	rig_fill_record(record, key, counter);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_insert(rig->w, rig->table, key, record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

static enum oltp_rc delete_row(struct rig *rig, uint64_t key)
{
	enum oltp_rc rc;

	do {
		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		rc = oltp_txn_delete(rig->w, rig->table, key);
		if (!rc)
			rc = oltp_txn_commit(rig->w);
		else
			oltp_txn_abort(rig->w);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(rig->w) ?: OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	return rc;
}

/* A scan finds all rows of its range, and reads these alone. */
static void test_scans_of_what_is_not_loaded(void **state)
{
	(void)state;
	enum { BASE = 100000 };
	struct fault_disk *disk = fault_disk_create(14);
	struct oltp_recovery recovery;
	struct oltp_index *index;
	uint64_t last = 0;
	struct rig rig;

	while ((last * 7 + 5) % ROWS != ROWS - 1)
		last++;
	recover_ordered(&rig, disk, 0, &index);
	for (uint64_t key = 0; key < ROWS; key++)
		insert_counted(&rig, key, BASE + (key * 7 + 5) % ROWS);
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_null(recovery.not_lazy);
	assert_int_equal(recovery.lazy_rows, ROWS);
	assert_true(recovery.checkpoint_bytes < recovery.checkpoint_bytes_all / 30);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), ROWS);
	assert_int_equal(find(&rig, index, 0, BASE - 1), 0);
	assert_int_equal(rig_stats(&rig).cold_reads, 0);
	assert_int_equal(find(&rig, index, BASE + 300, BASE + 399), 100);
	/* Each read brings the rows beside it. */
	assert_in_range(rig_stats(&rig).cold_reads, 1, 100);
	assert_true(oltp_recovery_rows_left(rig.engine) >= ROWS - 500);
	for (uint64_t at = 0; at < ROWS; at += 64)
		assert_int_equal(find(&rig, index, BASE + at, BASE + at + 63), 64);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), 0);
	/* A row that goes and one that comes, while others are not loaded. */
	restart(&rig, disk);
	recover_ordered(&rig, disk, 0, &index);
	insert_counted(&rig, ROWS, BASE + ROWS);
	assert_int_equal(delete_row(&rig, last), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	restart(&rig, disk);
	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_int_equal(recovery.lazy_rows, ROWS);
	assert_int_equal(recovery.deletes, 1);
	assert_int_equal(rig_stats(&rig).cold_reads, 0);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), ROWS - 1);
	assert_int_equal(rig_read(&rig, last, 0), OLTP_NOT_FOUND);
	assert_int_equal(find(&rig, index, BASE + ROWS - 10, BASE + ROWS - 1), 9);
	assert_int_equal(find(&rig, index, BASE + ROWS, UINT64_MAX), 1);
	restart(&rig, disk);
	/* The keys in the checkpoint are not those of this index. */
	recovery = recover_ordered(&rig, disk, 1, &index);
	assert_non_null(strstr(recovery.not_lazy, "has no keys"));
	assert_int_equal(recovery.lazy_rows, 0);
	assert_int_equal(find(&rig, index, BASE + 300, BASE + 399), 100);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

/* As the checkpoint that is there, but with these rows. */
static void write_checkpoint(struct fault_disk *disk, const struct checkpoint_kind *kind,
			     const uint64_t (*rows)[2], uint32_t n)
{
	const struct io_files io = { .ops = &fault_disk_ops, .ctx = disk };
	uint8_t record[RIG_RECORD_BYTES], database[16];
	struct checkpoint_writer writer;
	struct checkpoint_header header;
	struct checkpoint_info info;
	int fd = fault_disk_ops.open(disk, "/disk/checkpoint-0000000000000001", O_RDONLY, 0);

	assert_int_equal(fault_disk_ops.pread(disk, fd, &header, sizeof(header), 0),
			 sizeof(header));
	fault_disk_ops.close(disk, fd);
	memcpy(database, header.database, sizeof(database));
	assert_int_equal(checkpoint_look(&io, "/disk", 1, database, &info), 0);
	assert_true(info.is_good);
	header.number = 2;
	assert_int_equal(checkpoint_writer_open(&writer, &io, "/disk", &header, NULL), 0);
	for (uint32_t i = 0; i < n; i++) {
		rig_fill_record(record, rows[i][0], rows[i][1]);
		assert_int_equal(checkpoint_writer_add(&writer, kind, &(struct checkpoint_row){
			.key = rows[i][0], .record = record, .record_bytes = sizeof(record),
			.sorts = &rows[i][1] }), 0);
	}
	assert_int_equal(checkpoint_writer_finish(&writer, info.end.end_group, info.end.end_csn,
						  info.end.end_epoch), 0);
	assert_int_equal(checkpoint_writer_publish(&writer), 0);
	checkpoint_writer_close(&writer);
}

/* Only the last row of a key is in its index, wherever the others are. */
static void test_sort_keys_of_a_key_that_is_there_twice(void **state)
{
	(void)state;
	enum { N = 300 };
	static uint64_t rows[N + 6][2] = { { 7, 900 }, { 8, 901 }, { 7, 902 }, { 8, 901 } };
	struct fault_disk *disk = fault_disk_create(15);
	struct checkpoint_kind kind = { .n_sorts = 1 };
	struct oltp_recovery recovery;
	struct oltp_index *index;
	struct rig rig;
	uint32_t n = 4;

	recover_ordered(&rig, disk, 0, &index);
	insert_counted(&rig, 1, 1);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	kind.sorts_check = rig.table->keyed_check;
	restart(&rig, disk);
	/* More than a block of the checkpoint holds, then one key a third time, and once more. */
	for (uint32_t i = 0; i < N; i++, n++)
		rows[n][0] = rows[n][1] = 1000 + i;
	rows[n][0] = 7;
	rows[n++][1] = 900;
	rows[n][0] = 1005;
	rows[n++][1] = 2000;
	write_checkpoint(disk, &kind, rows, n);
	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_int_equal(recovery.lazy_rows, n);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), N + 2);
	assert_int_equal(find(&rig, index, 900, 999), 2);
	assert_int_equal(find(&rig, index, 902, 999), 0);
	assert_int_equal(find(&rig, index, 1000, 1004), 5);
	assert_int_equal(find(&rig, index, 1005, 1005), 0);
	assert_int_equal(find(&rig, index, 2000, UINT64_MAX), 1);
	restart(&rig, disk);
	fault_disk_destroy(disk);
}

enum { DAMAGED_ROWS = 600, DAMAGED_BASE = 5000 };

/* The only piece of the directory, in memory. */
struct piece {
	uint64_t offset;
	uint32_t bytes;
	struct checkpoint_block *block;
	struct checkpoint_piece *head;
	struct checkpoint_part *parts;
	uint64_t *keys, *sorts;
	uint32_t *checks;
};

static struct piece piece_read(struct fault_disk *disk)
{
	int fd = fault_disk_ops.open(disk, "/disk/checkpoint-0000000000000001", O_RDONLY, 0);
	struct checkpoint_directory_ref ref;
	struct piece piece;
	uint64_t bytes;

	assert_true(fd >= 0);
	assert_int_equal(fault_disk_ops.size(disk, fd, &bytes), 0);
	assert_int_equal(fault_disk_ops.pread(disk, fd, &ref, sizeof(ref), bytes - LOG_BLOCK_BYTES +
					      sizeof(struct checkpoint_end)), sizeof(ref));
	assert_int_equal(ref.n_pieces, 1);
	piece = (struct piece){ .offset = ref.last, .bytes = ref.last_bytes,
				.block = malloc(ref.last_bytes) };
	assert_non_null(piece.block);
	assert_int_equal(fault_disk_ops.pread(disk, fd, piece.block, piece.bytes, piece.offset),
			 piece.bytes);
	fault_disk_ops.close(disk, fd);
	piece.head = (struct checkpoint_piece *)(piece.block + 1);
	piece.parts = (struct checkpoint_part *)(piece.head + 1);
	piece.keys = (uint64_t *)(piece.parts + piece.head->n_parts);
	piece.sorts = piece.keys + DAMAGED_ROWS;
	piece.checks = (uint32_t *)(piece.sorts + DAMAGED_ROWS);
	assert_int_equal(piece.head->n_rows, DAMAGED_ROWS);
	assert_int_equal(piece.head->n_sorts, DAMAGED_ROWS);
	return piece;
}

/* With a checksum that is right. */
static void piece_write(struct fault_disk *disk, const struct piece *piece)
{
	const struct io_files io = { .ops = &fault_disk_ops, .ctx = disk };
	int fd = fault_disk_ops.open(disk, "/disk/checkpoint-0000000000000001", O_WRONLY, 0);

	assert_true(fd >= 0);
	piece->block->crc32c = 0;
	piece->block->crc32c = crc32c(0, piece->block, piece->bytes);
	assert_int_equal(io_write_all(&io, fd, piece->block, piece->bytes, piece->offset), 0);
	fault_disk_ops.close(disk, fd);
}

static struct fault_disk *disk_to_damage(uint64_t seed)
{
	struct fault_disk *disk = fault_disk_create(seed);
	struct oltp_index *index;
	struct rig rig;

	recover_ordered(&rig, disk, 0, &index);
	for (uint64_t key = 0; key < DAMAGED_ROWS; key++)
		insert_counted(&rig, key, DAMAGED_BASE + (key * 7 + 5) % DAMAGED_ROWS);
	/* Else a checkpoint begins in the group that has them, and they are redone. */
	assert_int_equal(oltp_durable_wait(rig.engine, oltp_worker_epoch(rig.w)), 0);
	assert_int_equal(oltp_checkpoint(rig.engine), 0);
	restart(&rig, disk);
	return disk;
}

/* All is read, since the directory cannot be trusted, and is right. */
static void is_read_at_once(struct fault_disk *disk, const char *why)
{
	struct oltp_recovery recovery;
	struct oltp_index *index;
	struct rig rig;

	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_non_null(recovery.not_lazy);
	assert_non_null(strstr(recovery.not_lazy, why));
	assert_int_equal(recovery.lazy_rows, 0);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), 0);
	assert_int_equal(find(&rig, index, 0, DAMAGED_BASE - 1), 0);
	for (uint64_t at = 0; at < DAMAGED_ROWS; at += 60)
		assert_int_equal(find(&rig, index, DAMAGED_BASE + at, DAMAGED_BASE + at + 59), 60);
	restart(&rig, disk);
}

/* A bit of a list: who cannot read the directory reads all, and finds the same damage. */
static void test_damaged_keys(void **state)
{
	(void)state;
	struct fault_disk *disk = disk_to_damage(16);
	struct piece piece = piece_read(disk);
	const void *const lists[] = { piece.parts, piece.keys, piece.sorts, piece.checks };
	struct oltp_recovery recovery;
	struct oltp_index *index;
	struct rig rig;

	for (uint32_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		for (uint32_t at = 0; at < 5; at++) {
			uint64_t offset = piece.offset + (uint64_t)((const uint8_t *)lists[i] -
						(const uint8_t *)piece.block) + at * 471;

			fault_disk_damage(disk, "checkpoint-", 0, offset);
			assert_int_equal(try_recover(&rig, disk, 0, &index, &recovery), -EUCLEAN);
			assert_non_null(strstr(recovery.not_lazy, "damaged"));
			assert_non_null(strstr(recovery.error, "damaged"));
			restart(&rig, disk);
			fault_disk_damage(disk, "checkpoint-", 0, offset);
		}
	}
	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_int_equal(recovery.lazy_rows, DAMAGED_ROWS);
	restart(&rig, disk);
	free(piece.block);
	fault_disk_destroy(disk);
}

/* Behind a checksum that is right. */
static void test_wrong_counts_of_keys(void **state)
{
	(void)state;
	struct fault_disk *disk = disk_to_damage(17);
	struct piece piece = piece_read(disk);

	piece.head->n_sorts--;
	piece_write(disk, &piece);
	is_read_at_once(disk, "damaged");
	piece.head->n_sorts++;
	piece.parts[0].kind.n_sorts = 0;
	piece_write(disk, &piece);
	is_read_at_once(disk, "damaged");
	piece.parts[0].kind.n_sorts = 1;
	piece.parts[0].n_rows--;
	piece_write(disk, &piece);
	is_read_at_once(disk, "damaged");
	piece.parts[0].n_rows++;
	piece.parts[0].kind.sorts_check ^= 1;
	piece_write(disk, &piece);
	is_read_at_once(disk, "has no keys");
	free(piece.block);
	fault_disk_destroy(disk);
}

/* Rows that are not where their keys are said to be are refused, and no other one is taken. */
static void test_keys_in_another_order(void **state)
{
	(void)state;
	struct fault_disk *disk = disk_to_damage(18);
	struct piece piece = piece_read(disk);
	uint64_t key = piece.keys[300];
	struct oltp_recovery recovery;
	struct oltp_index *index;
	uint32_t n_bad = 0;
	struct rig rig;

	piece.keys[300] = piece.keys[301];
	piece.keys[301] = key;
	piece_write(disk, &piece);
	recovery = recover_ordered(&rig, disk, 0, &index);
	assert_int_equal(recovery.lazy_rows, DAMAGED_ROWS);
	for (key = 0; key < DAMAGED_ROWS; key++) {
		bool is_bad = key == piece.keys[300] || key == piece.keys[301];

		assert_int_equal(rig_read(&rig, key, DAMAGED_BASE + (key * 7 + 5) % DAMAGED_ROWS),
				 is_bad ? OLTP_IO : OLTP_OK);
		n_bad += is_bad;
	}
	assert_int_equal(n_bad, 2);
	assert_int_equal(oltp_recovery_rows_left(rig.engine), 2);
	restart(&rig, disk);
	free(piece.block);
	fault_disk_destroy(disk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scans_of_what_is_not_loaded),
		cmocka_unit_test(test_sort_keys_of_a_key_that_is_there_twice),
		cmocka_unit_test(test_damaged_keys),
		cmocka_unit_test(test_wrong_counts_of_keys),
		cmocka_unit_test(test_keys_in_another_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
