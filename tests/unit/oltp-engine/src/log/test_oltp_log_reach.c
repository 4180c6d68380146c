// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How far a segment may have been written (struct log_reach): recovery reads no more than that, and
 * none of what is before the checkpoint; what it reads of segments and finds in them is as if it
 * read all.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "log_rig.h"

#define SEGMENT_MIB	64u
#define MIB		(1ull << 20)
#define ROWS		400u
#define ROWS_AT_ONCE	100u

/* Recovery reads so much more than was written: up to the reach (4 MiB), and whole buffers. */
#define READ_MORE	(7 * MIB)

static int setup(void **state)
{
	struct log_rig *rig;

	log_rig_setup(state);
	rig = *state;
	rig->config.log_segment_mib = SEGMENT_MIB;
	log_rig_open(rig);
	return 0;
}

static void insert(struct log_rig *rig)
{
	for (uint64_t key = 0; key < ROWS; key++)
		assert_int_equal(log_rig_insert(rig, key, 0), OLTP_OK);
}

static uint64_t log_bytes(struct log_rig *rig)
{
	struct oltp_durable_stats stats;

	oltp_durable_stats_read(rig->engine, &stats);
	return stats.bytes;
}

/* Whole rows are changed until the log has so much more. They all have the number then. */
static void write_log(struct log_rig *rig, uint64_t bytes, uint64_t number)
{
	static const struct oltp_span all = { 0, LOG_RIG_RECORD_BYTES };
	uint64_t end = log_bytes(rig) + bytes;

	do {
		for (uint64_t key = 0; key < ROWS;) {
			assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
			for (uint32_t i = 0; i < ROWS_AT_ONCE; i++, key++) {
				void *row;

				assert_int_equal(oltp_txn_update(rig->w, rig->table, key, &all, 1,
								 &row), OLTP_OK);
				((struct log_rig_row *)row)->counter = number;
			}
			assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
		}
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	} while (log_bytes(rig) < end);
}

/* The next process. Returns how many bytes it read. */
static uint64_t recover(struct log_rig *rig, uint64_t number)
{
	struct oltp_recovery recovery;
	uint64_t bytes;

	log_rig_open(rig);
	rig->fake.read_bytes = 0;
	if (oltp_recover(rig->engine, NULL, &recovery))
		fail_msg("%s", recovery.error);
	bytes = rig->fake.read_bytes;
	assert_int_equal(recovery.torn_bytes, 0);
	for (uint64_t key = 0; key < ROWS; key++) {
		const void *row;

		assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
		assert_int_equal(oltp_txn_read(rig->w, rig->table, key, &row), OLTP_OK);
		assert_int_equal(((const struct log_rig_row *)row)->counter, number);
		assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	}
	return bytes;
}

static void refuse(struct log_rig *rig, const char *what)
{
	struct oltp_recovery recovery;

	log_rig_open(rig);
	assert_int_equal(oltp_recover(rig->engine, NULL, &recovery), -EUCLEAN);
	if (!strstr(recovery.error, what))
		fail_msg("'%s' does not say '%s'", recovery.error, what);
	log_rig_close(rig);
}

static FILE *segment_file(const struct log_rig *rig, uint64_t number)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" LOG_SEGMENT_NAME, rig->dir, (unsigned long long)number);
	file = fopen(path, "r+b");
	assert_non_null(file);
	return file;
}

static void segment_read(const struct log_rig *rig, uint64_t number, uint64_t offset, void *data,
			 size_t bytes)
{
	FILE *file = segment_file(rig, number);

	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	assert_int_equal(fread(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

static void segment_write(const struct log_rig *rig, uint64_t number, uint64_t offset,
			  const void *data, size_t bytes)
{
	FILE *file = segment_file(rig, number);

	assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
	assert_int_equal(fwrite(data, 1, bytes, file), bytes);
	assert_int_equal(fclose(file), 0);
}

#define REACH_OFFSET	(SEGMENT_MIB * MIB - LOG_BLOCK_BYTES)

static struct log_reach reach_get(const struct log_rig *rig, uint64_t number)
{
	struct log_reach reach;

	segment_read(rig, number, REACH_OFFSET, &reach, sizeof(reach));
	assert_true(log_reach_is_valid(&reach));
	assert_int_equal(reach.segment, number);
	return reach;
}

static void reach_put(const struct log_rig *rig, uint64_t number, struct log_reach reach)
{
	reach.crc32c = log_reach_crc(&reach);
	segment_write(rig, number, REACH_OFFSET, &reach, sizeof(reach));
}

/* The group that begins first behind the offset: where it begins. */
static uint64_t group_behind(const struct log_rig *rig, uint64_t offset, uint64_t *ret_end)
{
	struct log_group_header group;
	uint64_t at = LOG_BLOCK_BYTES;

	for (;; at += group.bytes) {
		segment_read(rig, 1, at, &group, sizeof(group));
		assert_memory_equal(group.magic, LOG_GROUP_MAGIC, LOG_MAGIC_BYTES);
		if (at > offset)
			break;
	}
	*ret_end = at + group.bytes;
	return at;
}

/* Of 64 MiB, and of those that were made to come next. */
static void test_little_is_read(void **state)
{
	struct log_rig *rig = *state;
	struct log_reach reach;
	uint64_t bytes;

	insert(rig);
	write_log(rig, 6 * MIB, 1);
	bytes = log_bytes(rig);
	log_rig_close(rig);
	reach = reach_get(rig, 1);
	assert_in_range(reach.end, bytes + LOG_BLOCK_BYTES, bytes + 5 * MIB);
	assert_in_range(recover(rig, 1), bytes, bytes + READ_MORE);
	/* The next one was made and not used: it was closed with nothing done. */
	log_rig_close(rig);
	assert_true(reach_get(rig, 2).end <= MIB);
	assert_in_range(recover(rig, 1), bytes, bytes + READ_MORE);
	log_rig_close(rig);
	/* Without what says so all is read, and all is there. */
	reach.end ^= 1;
	segment_write(rig, 1, REACH_OFFSET, &reach, sizeof(reach));
	assert_in_range(recover(rig, 1), SEGMENT_MIB * MIB, (SEGMENT_MIB + 7) * MIB);
	log_rig_close(rig);
	/* That of the segment which the file was before says nothing of this one. */
	reach.segment = 0;
	reach.end = LOG_BLOCK_BYTES;
	reach_put(rig, 1, reach);
	assert_in_range(recover(rig, 1), SEGMENT_MIB * MIB, (SEGMENT_MIB + 7) * MIB);
}

/* Whatever is damaged, a group behind it tells, the last one in reach as well. */
static void test_groups_that_are_missing(void **state)
{
	static uint8_t zeros[8 * MIB];
	struct log_rig *rig = *state;
	uint64_t second, last, end, bytes;
	struct log_reach reach;

	insert(rig);
	write_log(rig, 5 * MIB, 1);
	bytes = log_bytes(rig) + LOG_BLOCK_BYTES;
	log_rig_close(rig);
	second = group_behind(rig, LOG_BLOCK_BYTES, &end);
	do
		last = group_behind(rig, end - 1, &end);
	while (end < bytes);
	assert_int_equal(end, bytes);
	assert_true(last - second < sizeof(zeros));
	segment_write(rig, 1, second, zeros, last - second);
	refuse(rig, "there are later ones");
	/* Nor does it help that the reach is another segment's, another database's, or damaged. */
	reach = reach_get(rig, 1);
	reach.end = second;
	reach.segment = 2;
	reach_put(rig, 1, reach);
	refuse(rig, "there are later ones");
	reach.segment = 1;
	reach.database[0] ^= 1;
	reach_put(rig, 1, reach);
	refuse(rig, "there are later ones");
	reach.database[0] ^= 1;
	reach.crc32c = log_reach_crc(&reach) ^ 1;
	segment_write(rig, 1, REACH_OFFSET, &reach, sizeof(reach));
	refuse(rig, "there are later ones");
}

/* In a segment without a header, too. */
static void test_a_header_that_is_missing(void **state)
{
	static const uint8_t zeros[LOG_BLOCK_BYTES];
	struct log_rig *rig = *state;

	insert(rig);
	log_rig_close(rig);
	recover(rig, 0);
	write_log(rig, MIB, 1);
	log_rig_close(rig);
	segment_write(rig, 2, 0, zeros, sizeof(zeros));
	refuse(rig, "there are later ones");
}

/* Groups before the checkpoint are passed over, right or wrong. */
static void test_the_log_before_a_checkpoint(void **state)
{
	static const uint8_t zeros[LOG_BLOCK_BYTES];
	struct log_rig *rig = *state;
	uint64_t bytes, after, unneeded, needed, end;

	insert(rig);
	write_log(rig, 20 * MIB, 1);
	assert_int_equal(oltp_checkpoint(rig->engine), 0);
	bytes = log_bytes(rig);
	write_log(rig, 3 * MIB, 2);
	after = log_bytes(rig) - bytes;
	log_rig_close(rig);
	unneeded = group_behind(rig, 2 * MIB, &end);
	needed = group_behind(rig, bytes + MIB, &end);
	assert_true(recover(rig, 2) < after + READ_MORE + 4 * MIB);
	log_rig_close(rig);
	segment_write(rig, 1, unneeded, zeros, sizeof(zeros));
	assert_true(recover(rig, 2) < after + READ_MORE + 4 * MIB);
	log_rig_close(rig);
	/* Not so behind it. */
	segment_write(rig, 1, needed, zeros, sizeof(zeros));
	refuse(rig, "there are later ones");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_little_is_read, setup, log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_groups_that_are_missing, setup,
						log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_a_header_that_is_missing, setup,
						log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_the_log_before_a_checkpoint, setup,
						log_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
