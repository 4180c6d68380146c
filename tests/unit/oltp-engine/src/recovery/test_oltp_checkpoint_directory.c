// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The directory of a checkpoint whose rows have sort keys, in several pieces: what was written is
 * read, and a bit that is wrong, a file that is too short, or a count or an offset that is wrong
 * behind a checksum that is right, is damage.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/log_faults.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/recovery/checkpoint_file.h"

#define N_TABLES	3u
#define N_PIECES	2u
#define RECORD_MAX	24u
#define PATH		"/disk/checkpoint-0000000000000001"

static const struct {
	uint32_t record_bytes, n_sorts, n_rows;
} tables[N_TABLES] = { { 8, 2, 70000 }, { 24, 0, 900 }, { 16, 1, 2000 } };

static struct fault_disk *disk;
static const struct io_files *io;
static struct checkpoint_info info;
static uint64_t piece_at[N_PIECES];
static uint32_t piece_bytes[N_PIECES];

static uint64_t sort_of(uint64_t key, uint32_t i)
{
	return key * 0x9e3779b97f4a7c15ull + i;
}

static void add_rows(struct checkpoint_writer *writer, uint32_t table)
{
	const struct checkpoint_kind kind = { table, tables[table].n_sorts, 77 };

	for (uint64_t key = 0; key < tables[table].n_rows; key++) {
		const uint64_t sorts[] = { sort_of(key, 0), sort_of(key, 1) };
		const uint8_t record[RECORD_MAX] = { (uint8_t)key };

		assert_int_equal(checkpoint_writer_add(writer, &kind, &(struct checkpoint_row){
			.key = key, .record = record, .sorts = sorts,
			.record_bytes = tables[table].record_bytes }), 0);
	}
}

/* Length 0: all from there on. */
static uint8_t *file_read(uint64_t offset, uint64_t bytes)
{
	int fd = io->ops->open(io->ctx, PATH, O_RDONLY, 0);
	uint64_t size;
	uint8_t *data;

	assert_true(fd >= 0);
	assert_int_equal(io->ops->size(io->ctx, fd, &size), 0);
	bytes = bytes ?: size - offset;
	data = malloc(bytes);
	assert_non_null(data);
	assert_int_equal(io->ops->pread(io->ctx, fd, data, bytes, offset), bytes);
	io->ops->close(io->ctx, fd);
	return data;
}

static void file_write(const void *data, uint64_t bytes, uint64_t offset, int flags)
{
	int fd = io->ops->open(io->ctx, PATH, O_WRONLY | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(io, fd, data, bytes, offset), 0);
	io->ops->close(io->ctx, fd);
}

static int setup(void **state)
{
	static struct io_files files;
	struct checkpoint_header header = { .number = 1, .start_group = 1, .n_tables = N_TABLES };
	const uint8_t database[16] = { 0 };
	struct checkpoint_writer writer;

	(void)state;
	disk = fault_disk_create(1);
	files = (struct io_files){ .ops = &fault_disk_ops, .ctx = disk };
	io = &files;
	for (uint32_t i = 0; i < N_TABLES; i++)
		header.tables[i] = (struct log_catalog_table){ i, tables[i].record_bytes };
	assert_int_equal(checkpoint_writer_open(&writer, io, "/disk", &header, NULL), 0);
	for (uint32_t i = 0; i < N_TABLES; i++)
		add_rows(&writer, i);
	assert_int_equal(checkpoint_writer_finish(&writer, 1, 1, 1), 0);
	assert_int_equal(checkpoint_writer_publish(&writer), 0);
	checkpoint_writer_close(&writer);
	assert_int_equal(checkpoint_look(io, "/disk", 1, database, &info), 0);
	assert_true(info.is_good);
	assert_int_equal(info.directory.n_pieces, N_PIECES);
	piece_at[1] = info.directory.last;
	piece_bytes[1] = info.directory.last_bytes;
	for (uint32_t i = N_PIECES; --i;) {
		uint8_t *block = file_read(piece_at[i], piece_bytes[i]);
		const struct checkpoint_piece *piece =
			(const void *)(block + sizeof(struct checkpoint_block));

		piece_at[i - 1] = piece->before;
		piece_bytes[i - 1] = piece->before_bytes;
		free(block);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fault_disk_destroy(disk);
	return 0;
}

/* As info says of it. */
static int directory_read(const struct checkpoint_info *of, struct checkpoint_directory *ret)
{
	int fd = io->ops->open(io->ctx, PATH, O_RDONLY, 0);
	int rc;

	assert_true(fd >= 0);
	rc = checkpoint_directory_read(io, fd, of, ret);
	io->ops->close(io->ctx, fd);
	return rc;
}

static void refused(const struct checkpoint_info *of, const char *what, uint64_t at)
{
	struct checkpoint_directory directory;
	int rc = directory_read(of, &directory);

	if (!rc)
		checkpoint_directory_finish(&directory);
	if (rc != -EUCLEAN)
		fail_msg("%s at %llu: %d", what, (unsigned long long)at, rc);
}

struct seen {
	uint32_t n[N_TABLES];
};

static int see_part(void *ctx, const struct checkpoint_part *part,
		    const struct checkpoint_keys *keys)
{
	const uint32_t table = part->kind.table, n_sorts = tables[table].n_sorts;
	struct seen *seen = ctx;

	assert_int_equal(part->kind.n_sorts, n_sorts);
	assert_int_equal(part->kind.sorts_check, 77);
	for (uint32_t i = 0; i < part->n_rows; i++) {
		uint64_t key = seen->n[table]++;

		assert_int_equal(keys->keys[i], key);
		for (uint32_t j = 0; j < n_sorts; j++)
			assert_int_equal(keys->sorts[(size_t)i * n_sorts + j], sort_of(key, j));
	}
	return 0;
}

static void test_what_was_written_is_read(void **state)
{
	(void)state;
	struct checkpoint_directory directory;
	struct seen seen = { 0 };

	assert_int_equal(directory_read(&info, &directory), 0);
	assert_int_equal(checkpoint_directory_each(&directory, see_part, &seen), 0);
	for (uint32_t i = 0; i < N_TABLES; i++)
		assert_int_equal(seen.n[i], tables[i].n_rows);
	checkpoint_directory_finish(&directory);
}

/* Headers and lists of parts bit by bit; of keys, sort keys, checksums and padding some. */
static void test_flipped_bits(void **state)
{
	(void)state;

	for (uint32_t i = 0; i < N_PIECES; i++) {
		for (uint32_t at = 0; at < piece_bytes[i]; at += at < 160 ? 1 : 26003) {
			for (uint32_t bit = 0; bit < 8; bit += at < 160 ? 1 : 5) {
				uint64_t offset = piece_at[i] + at;
				uint8_t *old = file_read(offset, 1);
				uint8_t new = *old ^ (uint8_t)(1u << bit);

				file_write(&new, 1, offset, 0);
				refused(&info, "flipped", offset);
				file_write(old, 1, offset, 0);
				free(old);
			}
		}
	}
	test_what_was_written_is_read(state);
}

/* The end, where it would be then, says what it said; so the file is short in the middle. */
static void test_truncated_files(void **state)
{
	(void)state;
	const uint8_t database[16] = { 0 };
	uint8_t *file = file_read(0, 0);

	for (uint64_t gone = LOG_BLOCK_BYTES; gone + 2 * LOG_BLOCK_BYTES <= info.bytes;
	     gone += 37 * LOG_BLOCK_BYTES) {
		uint64_t end = info.bytes - LOG_BLOCK_BYTES - gone;
		struct checkpoint_info found;

		/* Without the end it is no checkpoint. */
		file_write(file, info.bytes - gone, 0, O_TRUNC);
		assert_int_equal(checkpoint_look(io, "/disk", 1, database, &found), 0);
		assert_false(found.is_good);
		file_write(file + info.bytes - LOG_BLOCK_BYTES, LOG_BLOCK_BYTES, end, 0);
		assert_int_equal(checkpoint_look(io, "/disk", 1, database, &found), 0);
		assert_true(found.is_good);
		assert_int_equal(found.bytes, info.bytes - gone);
		refused(&found, "truncated", gone);
	}
	file_write(file, info.bytes, 0, O_TRUNC);
	free(file);
	test_what_was_written_is_read(state);
}

struct change {
	const char *name;
	uint32_t at, bytes;	/* of a number in the block */
	uint64_t value;
	bool is_added;		/* to what is there */
};

#define NUMBER(base, type, field) \
	(uint32_t)((base) + offsetof(struct type, field)), sizeof(((struct type *)0)->field)
#define BLOCK(field)	#field, NUMBER(0, checkpoint_block, field)
#define PIECE(field)	#field, NUMBER(sizeof(struct checkpoint_block), checkpoint_piece, field)
#define PART(field)	#field, NUMBER(sizeof(struct checkpoint_block) + \
				       sizeof(struct checkpoint_piece), checkpoint_part, field)

static const struct change changes[] = {
	{ BLOCK(magic), 1, true },
	{ BLOCK(database), 1, true },
	{ BLOCK(number), 1, true },
	{ BLOCK(table), N_TABLES, false },
	{ BLOCK(n_rows), 1, true },
	{ PIECE(magic), 1, true },
	{ PIECE(before), 1, true },
	{ PIECE(before), LOG_BLOCK_BYTES, true },
	{ PIECE(before), UINT64_MAX - LOG_BLOCK_BYTES + 1, false },
	{ PIECE(before), 0, false },
	{ PIECE(before_bytes), LOG_BLOCK_BYTES, true },
	{ PIECE(before_bytes), UINT32_MAX, false },
	{ PIECE(before_bytes), UINT32_MAX - LOG_BLOCK_BYTES + 1, false },
	{ PIECE(n_parts), 1, true },
	{ PIECE(n_parts), UINT32_MAX, true },
	{ PIECE(n_parts), 0, false },
	{ PIECE(n_parts), UINT32_MAX, false },
	{ PIECE(n_rows), 1, true },
	{ PIECE(n_rows), UINT64_MAX, true },
	{ PIECE(n_rows), 0, false },
	{ PIECE(n_rows), UINT64_MAX, false },
	{ PIECE(n_rows), 1ull << 61, true },
	{ PIECE(n_sorts), 1, true },
	{ PIECE(n_sorts), UINT64_MAX, true },
	{ PIECE(n_sorts), 0, false },
	{ PIECE(n_sorts), UINT64_MAX, false },
	{ PIECE(n_sorts), 1ull << 61, true },
	{ PART(offset), 1, true },
	{ PART(offset), 0, false },
	{ PART(offset), LOG_BLOCK_BYTES, false },
	{ PART(offset), 1ull << 40, false },
	{ PART(offset), UINT64_MAX - 7, false },
	{ PART(n_rows), 1, true },
	{ PART(n_rows), UINT32_MAX, true },
	{ PART(n_rows), 0, false },
	{ PART(n_rows), UINT32_MAX, false },
	{ PART(kind.table), N_TABLES, false },
	{ PART(kind.table), UINT32_MAX, false },
	{ PART(kind.n_sorts), 0, false },
	{ PART(kind.n_sorts), 1, true },
	{ PART(kind.n_sorts), CHECKPOINT_SORTS_MAX + 1, false },
	{ PART(kind.n_sorts), UINT32_MAX, false },
};

static void change_one(uint8_t *block, uint32_t bytes, const struct change *change)
{
	struct checkpoint_block *head = (struct checkpoint_block *)block;
	const uint32_t n = change->bytes < 8 ? change->bytes : 8;
	uint64_t value = 0;

	memcpy(&value, block + change->at, n);
	value = change->value + (change->is_added ? value : 0);
	memcpy(block + change->at, &value, n);
	head->crc32c = 0;
	head->crc32c = crc32c(0, block, bytes);
}

/* As a program with an error would have written it. */
static void test_wrong_numbers(void **state)
{
	(void)state;

	for (uint32_t i = 0; i < N_PIECES; i++) {
		for (uint32_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++) {
			uint8_t *old = file_read(piece_at[i], piece_bytes[i]);
			uint8_t *new = file_read(piece_at[i], piece_bytes[i]);

			change_one(new, piece_bytes[i], &changes[c]);
			/* The first piece has none before it, wherever that would be. */
			if (memcmp(old, new, piece_bytes[i]) &&
			    (i || strcmp(changes[c].name, "before"))) {
				file_write(new, piece_bytes[i], piece_at[i], 0);
				refused(&info, changes[c].name, c);
				file_write(old, piece_bytes[i], piece_at[i], 0);
			}
			free(old);
			free(new);
		}
	}
	test_what_was_written_is_read(state);
}

/* Where the last piece is, and how many there are. */
static void test_wrong_references(void **state)
{
	(void)state;
	const struct checkpoint_directory_ref good = info.directory;
	const struct checkpoint_directory_ref bad[] = {
		{ .last = piece_at[1], .last_bytes = piece_bytes[1], .n_pieces = 1 },
		{ .last = piece_at[1], .last_bytes = piece_bytes[1], .n_pieces = 3 },
		{ .last = piece_at[1], .last_bytes = piece_bytes[1], .n_pieces = UINT32_MAX },
		{ .last = piece_at[0], .last_bytes = piece_bytes[0], .n_pieces = 1 },
		{ .last = piece_at[0], .last_bytes = piece_bytes[0], .n_pieces = 2 },
		{ .last = piece_at[1], .last_bytes = 0, .n_pieces = 2 },
		{ .last = piece_at[1], .last_bytes = LOG_BLOCK_BYTES, .n_pieces = 2 },
		{ .last = piece_at[1], .last_bytes = piece_bytes[1] + LOG_BLOCK_BYTES,
		  .n_pieces = 2 },
		{ .last = piece_at[1], .last_bytes = 1u << 31, .n_pieces = 2 },
		{ .last = piece_at[1] + 1, .last_bytes = piece_bytes[1], .n_pieces = 2 },
		{ .last = 0, .last_bytes = piece_bytes[1], .n_pieces = 2 },
		{ .last = info.bytes, .last_bytes = piece_bytes[1], .n_pieces = 2 },
		{ .last = UINT64_MAX - LOG_BLOCK_BYTES + 1, .last_bytes = piece_bytes[1],
		  .n_pieces = 2 },
	};

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		info.directory = bad[i];
		refused(&info, "reference", i);
	}
	info.directory = good;
	info.end.n_rows++;
	refused(&info, "rows", info.end.n_rows);
	info.end.n_rows--;
	test_what_was_written_is_read(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_written_is_read),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_truncated_files),
		cmocka_unit_test(test_wrong_numbers),
		cmocka_unit_test(test_wrong_references),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
