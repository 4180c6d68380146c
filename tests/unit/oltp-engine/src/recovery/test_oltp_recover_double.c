// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A log that has something twice, or from which something was taken, with checksums that are right:
 * no row is there twice, and what is not right is refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/log/log_rig.h"
#include "oltp-engine/src/base/checksum.h"

#define GROUPS_MAX	64u

/* A segment in memory, and where its groups are. */
struct segment {
	uint8_t *bytes;
	size_t size;
	struct log_group_header *groups[GROUPS_MAX];
	uint32_t n;
};

static uint64_t counter_of(void *ctx, uint64_t primary_key, const void *record)
{
	(void)ctx;
	(void)primary_key;
	return ((const struct log_rig_row *)record)->counter;
}

static void open_rig(struct log_rig *rig)
{
	const struct oltp_index_config by_counter = {
		.key_of = counter_of,
		.key_spans = { { 0, sizeof(uint64_t) } },
		.n_key_spans = 1,
		.is_unique = true,
	};
	struct oltp_index *index;

	log_rig_open(rig);
	assert_int_equal(oltp_index_create(rig->table, &by_counter, &index), 0);
}

static int setup(void **state)
{
	log_rig_setup(state);
	open_rig(*state);
	return 0;
}

/* In a group of its own. */
static void insert(struct log_rig *rig, uint64_t key, uint64_t counter)
{
	assert_int_equal(log_rig_insert(rig, key, counter), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
}

static void delete(struct log_rig *rig, uint64_t key)
{
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig->w, rig->table, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
}

static FILE *segment_file(const struct log_rig *rig, uint64_t number, const char *mode)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/" LOG_SEGMENT_NAME, rig->dir, (unsigned long long)number);
	file = fopen(path, mode);
	assert_non_null(file);
	return file;
}

/* The first one, of an engine that is closed. */
static void segment_load(const struct log_rig *rig, struct segment *segment)
{
	FILE *file = segment_file(rig, 1, "rb");
	size_t offset = LOG_BLOCK_BYTES;

	assert_int_equal(fseek(file, 0, SEEK_END), 0);
	segment->size = (size_t)ftell(file);
	rewind(file);
	segment->bytes = malloc(segment->size);
	assert_non_null(segment->bytes);
	assert_int_equal(fread(segment->bytes, 1, segment->size, file), segment->size);
	fclose(file);
	segment->n = 0;
	while (offset < segment->size && segment->n < GROUPS_MAX) {
		struct log_group_header *group = (void *)(segment->bytes + offset);

		if (!log_group_is_valid(group, segment->size - offset))
			break;
		segment->groups[segment->n++] = group;
		offset += group->bytes;
	}
}

static void segment_store(const struct log_rig *rig, uint64_t number, const struct segment *segment)
{
	FILE *file = segment_file(rig, number, "wb");

	assert_int_equal(fwrite(segment->bytes, 1, segment->size, file), segment->size);
	assert_int_equal(fclose(file), 0);
}

static void group_seal(struct log_group_header *group)
{
	group->crc32c = 0;
	group->crc32c = crc32c(0, group, group->bytes);
}

/* The group once more behind itself, and what was there further back. */
static void group_double(struct segment *segment, uint32_t nth)
{
	uint8_t *at = (uint8_t *)segment->groups[nth];
	size_t bytes = segment->groups[nth]->bytes;

	memmove(at + bytes, at, segment->size - (size_t)(at - segment->bytes) - bytes);
}

static void expect(struct log_rig *rig, const char *what)
{
	struct oltp_recovery recovery;

	open_rig(rig);
	assert_int_equal(oltp_recover(rig->engine, NULL, &recovery), -EUCLEAN);
	if (!strstr(recovery.error, what))
		fail_msg("'%s' does not say '%s'", recovery.error, what);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_INVALID);
	log_rig_close(rig);
}

/* Keys 1 to n, and no others near them. */
static void expect_rows(struct log_rig *rig, uint64_t n)
{
	struct oltp_recovery recovery;
	const void *record;

	open_rig(rig);
	if (oltp_recover(rig->engine, NULL, &recovery))
		fail_msg("%s", recovery.error);
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	for (uint64_t key = 0; key < n + 10; key++)
		assert_int_equal(oltp_txn_read(rig->w, rig->table, key, &record),
				 key && key <= n ? OLTP_OK : OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
	log_rig_close(rig);
}

static void insert_some(struct log_rig *rig, struct segment *segment)
{
	for (uint64_t key = 1; key <= 4; key++)
		insert(rig, key, key + 100);
	log_rig_close(rig);
	segment_load(rig, segment);
	assert_int_equal(segment->n, 4);
}

static void test_group_twice(void **state)
{
	struct log_rig *rig = *state;
	struct segment segment, changed;

	insert_some(rig, &segment);
	for (uint32_t nth = 0; nth + 1 < segment.n; nth++) {
		segment_load(rig, &changed);
		group_double(&changed, nth);
		segment_store(rig, 1, &changed);
		free(changed.bytes);
		expect(rig, "there are later ones");
		segment_store(rig, 1, &segment);
	}
	/* Behind the last one it is what a write that was broken off may leave. */
	segment_load(rig, &changed);
	group_double(&changed, segment.n - 1);
	segment_store(rig, 1, &changed);
	free(changed.bytes);
	free(segment.bytes);
	expect_rows(rig, 4);
}

/* Under two names: it is read once. */
static void test_segment_twice(void **state)
{
	struct log_rig *rig = *state;
	struct log_segment_header *header;
	struct segment segment;

	insert_some(rig, &segment);
	header = (struct log_segment_header *)segment.bytes;
	header->segment = 2;
	header->crc32c = log_segment_header_crc(header);
	for (uint32_t i = 0; i < segment.n; i++) {
		segment.groups[i]->segment = 2;
		group_seal(segment.groups[i]);
	}
	segment_store(rig, 2, &segment);
	free(segment.bytes);
	expect_rows(rig, 4);
}

/* A transaction twice in its group. */
static void test_entry_twice(void **state)
{
	struct log_rig *rig = *state;
	struct log_group_header *group;
	const struct log_entry *entry;
	struct log_entry *padding, *again;
	struct log_cursor entries;
	struct segment segment;
	uint32_t left;

	insert_some(rig, &segment);
	group = segment.groups[2];
	log_entries_begin(&entries, group);
	assert_int_equal(log_entries_next(&entries, &entry), 1);
	padding = again = (struct log_entry *)((uint8_t *)entry + entry->bytes);
	assert_int_equal(padding->n_ops, 0);
	assert_int_equal((uint8_t *)padding + padding->bytes - (uint8_t *)group, group->bytes);
	left = padding->bytes - entry->bytes;
	memcpy(again, entry, entry->bytes);
	padding = (struct log_entry *)((uint8_t *)again + again->bytes);
	*padding = (struct log_entry){ .bytes = left };
	group->n_entries++;
	group_seal(group);
	segment_store(rig, 1, &segment);
	free(segment.bytes);
	expect(rig, "log-");
}

/*
 * Row 1 goes and row 2 comes with the key that it had in an index that is unique; then the log says
 * that another one went.
 */
static void test_unique_key_twice(void **state)
{
	struct log_rig *rig = *state;
	struct log_cursor entries, ops;
	const struct log_entry *entry;
	const struct log_op *op;
	struct segment segment;

	insert(rig, 1, 5);
	insert(rig, 3, 6);
	delete(rig, 1);
	insert(rig, 2, 5);
	log_rig_close(rig);
	segment_load(rig, &segment);
	assert_int_equal(segment.n, 4);
	log_entries_begin(&entries, segment.groups[2]);
	assert_int_equal(log_entries_next(&entries, &entry), 1);
	log_ops_begin(&ops, entry);
	assert_int_equal(log_ops_next(&ops, &op), 1);
	assert_int_equal(op->kind, LOG_OP_DELETE);
	((struct log_op *)op)->key = 99;
	group_seal(segment.groups[2]);
	segment_store(rig, 1, &segment);
	free(segment.bytes);
	expect(rig, "rows 1 and 2 of table 0");
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, log_rig_teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(test_group_twice),
		WITH_RIG(test_segment_twice),
		WITH_RIG(test_entry_twice),
		WITH_RIG(test_unique_key_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
