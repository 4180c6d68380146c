// SPDX-License-Identifier: GPL-2.0-or-later
/* The memory of rows and of ordered indexes: bounded, and nothing is left where there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ordered_rig.h"

static struct ordered_seen seen;

static enum oltp_rc scan(struct ordered_rig *rig, struct oltp_index *index,
			 struct oltp_range range)
{
	return ordered_scan(rig->w, index, &range, &seen);
}

static enum oltp_rc insert(struct ordered_rig *rig, uint64_t key, uint64_t group, uint64_t number)
{
	return ordered_insert_row(rig->w, rig->table, key, group, number);
}

/* Rows and nodes that went leave their memory to those that come. */
static void test_memory_is_bounded(void **state)
{
	(void)state;
	const struct oltp_config config = { .node = -1, .txn_records_max = 4000 };
	struct oltp_memory_stats before, after;
	struct ordered_rig rig;
	uint64_t next = 0;

	ordered_rig_open(&rig, &config);
	for (; next < 3000; next++)
		ordered_add_row(&rig, next, next * 7 % 50, next * 0x9e3779b97f4a7c15ull);
	oltp_memory_stats_read(rig.engine, &before);
	for (uint32_t i = 0; i < 30000; i++, next++) {
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(oltp_txn_delete(rig.w, rig.table, next - 3000), OLTP_OK);
		assert_int_equal(insert(&rig, next, next * 7 % 50, next * 0x9e3779b97f4a7c15ull),
				 OLTP_OK);
		if (i % 5)
			assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		else
			oltp_txn_abort(rig.w);
		if (i % 5 == 0)
			next--;
	}
	oltp_memory_stats_read(rig.engine, &after);
	assert_int_equal(after.held_bytes, before.held_bytes);
	assert_int_equal(after.resident_records, 3000);
	assert_int_equal(ordered_count(&rig, rig.by_key), 3000);
	assert_int_equal(ordered_count(&rig, rig.by_group), 3000);
	assert_int_equal(ordered_count(&rig, rig.by_number), 3000);
	/* Three trees; random orders leave leaves partly empty. */
	assert_true(rig.engine->leaves.n_used < 3 * 3000 / 2);
	assert_true(rig.engine->leaves.n_retired <= 64);
	ordered_rig_close(&rig);
}

struct source {
	uint64_t n_asked;
	int64_t n_blocks;
	bool fails;		/* every other time */
};

static void *source_alloc(void *ctx, size_t bytes, int node)
{
	struct source *source = ctx;
	void *addr;

	(void)node;
	if (source->fails && source->n_asked++ % 2 == 0)
		return NULL;
	addr = aligned_alloc(OLTP_MEM_BLOCK_BYTES, bytes);
	assert_non_null(addr);
	source->n_blocks++;
	return memset(addr, 0, bytes);
}

static void source_free(void *ctx, void *addr, size_t bytes)
{
	struct source *source = ctx;

	(void)bytes;
	free(addr);
	source->n_blocks--;
}

static const struct oltp_mem_ops source_ops = { source_alloc, source_free };

/* So many that rows and leaves need more than one block each. */
#define MANY	60000u

/* Whatever it had added to some of the indexes is gone. */
static void assert_nothing_stayed(struct ordered_rig *rig, uint64_t key)
{
	const void *record;

	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig->w, rig->table, key, &record), OLTP_NOT_FOUND);
	assert_int_equal(scan(rig, rig->by_key, (struct oltp_range){ key, key, 0, 0, 0 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 0);
	assert_int_equal(scan(rig, rig->by_number, (struct oltp_range){ ~key, ~key, 0, 0, 0 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 0);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

/* Each block that is needed is there only when asked for again. */
static void test_blocks_are_refused(void **state)
{
	(void)state;
	struct source source = { 0 };
	const struct oltp_config config = { .node = -1, .mem = &source_ops, .mem_ctx = &source };
	struct oltp_range range = { .limit = 100 };
	struct ordered_rig rig;
	uint32_t n_failed = 0;
	int64_t n_blocks;

	ordered_rig_open(&rig, &config);
	n_blocks = source.n_blocks;
	source.fails = true;
	for (uint64_t n = 0; n < MANY;) {
		uint64_t key = n * 7919 % MANY;
		enum oltp_rc rc;

		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		rc = insert(&rig, key, key % 100, ~key);
		if (!rc) {
			assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
			n++;
			continue;
		}
		assert_int_equal(rc, OLTP_NO_MEMORY);
		oltp_txn_abort(rig.w);
		n_failed++;
		assert_int_equal(storage_used_slots(rig.table), n);
		assert_nothing_stayed(&rig, key);
	}
	/* Blocks of rows and leaves, not one of them for nothing. */
	assert_true(n_failed > 3);
	assert_int_equal(source.n_blocks - n_blocks, n_failed);
	for (range.to = range.from + 99; range.from < MANY; range.from += 100, range.to += 100) {
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(scan(&rig, rig.by_key, range), OLTP_OK);
		assert_int_equal(seen.n, 100);
		assert_int_equal(seen.rows[0].key, range.from);
		assert_int_equal(seen.rows[99].key, range.to);
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	}
	ordered_rig_close(&rig);
	assert_int_equal(source.n_blocks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_blocks_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
