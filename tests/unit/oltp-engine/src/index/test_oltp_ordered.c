// SPDX-License-Identifier: GPL-2.0-or-later
/* Ordered indexes, deletes and scans through the public header, one transaction at a time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ordered_rig.h"

#define ROWS	1000u

static struct ordered_seen seen;

static const struct oltp_range everything = { .from = 0, .to = UINT64_MAX };

/* Keys 0, 10, 20, ... in groups of 100 rows; numbers go the other way. */
static void open_full(struct ordered_rig *rig)
{
	const struct oltp_config config = { .node = -1, .txn_records_max = 4000 };

	ordered_rig_open(rig, &config);
	for (uint64_t i = 0; i < ROWS; i++) {
		uint64_t n = i * 373 % ROWS;

		ordered_add_row(rig, n * 10, n / 100, ROWS - n);
	}
}

static enum oltp_rc scan(struct ordered_rig *rig, struct oltp_index *index,
			 struct oltp_range range)
{
	return ordered_scan(rig->w, index, &range, &seen);
}

static void assert_counts(struct ordered_rig *rig, uint32_t n)
{
	uint64_t used = storage_used_slots(rig->table);

	assert_int_equal(ordered_count(rig, rig->by_key), n);
	assert_int_equal(ordered_count(rig, rig->by_group), n);
	assert_int_equal(ordered_count(rig, rig->by_number), n);
	assert_int_equal(used, n);
}

static enum oltp_rc try_delete(struct ordered_rig *rig, uint64_t key)
{
	return oltp_txn_delete(rig->w, rig->table, key);
}

static enum oltp_rc try_read(struct ordered_rig *rig, uint64_t key)
{
	const void *record;

	return oltp_txn_read(rig->w, rig->table, key, &record);
}

static enum oltp_rc insert(struct ordered_rig *rig, uint64_t key, uint64_t group, uint64_t number)
{
	return ordered_insert_row(rig->w, rig->table, key, group, number);
}

static void test_scan_both_ways(void **state)
{
	(void)state;
	struct ordered_rig rig;

	open_full(&rig);
	assert_counts(&rig, ROWS);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	for (uint64_t from = 0; from < 120; from += 3) {
		for (uint64_t to = from; to < 9990; to += 333) {
			uint64_t first = (from + 9) / 10, last = to / 10;
			uint32_t n = last < first ? 0 : (uint32_t)(last - first + 1);
			struct oltp_range range = { .from = from, .to = to };

			assert_int_equal(scan(&rig, rig.by_key, range), OLTP_OK);
			assert_int_equal(seen.n, n);
			for (uint32_t i = 0; i < n; i++) {
				assert_int_equal(seen.rows[i].key, (first + i) * 10);
				assert_int_equal(seen.rows[i].sort, seen.rows[i].key);
				assert_int_equal(seen.rows[i].row.group, (first + i) / 100);
			}
			range.descending = true;
			assert_int_equal(scan(&rig, rig.by_key, range), OLTP_OK);
			assert_int_equal(seen.n, n);
			for (uint32_t i = 0; i < n; i++)
				assert_int_equal(seen.rows[i].key, (last - i) * 10);
			range.limit = 7;
			assert_int_equal(scan(&rig, rig.by_key, range), OLTP_OK);
			assert_int_equal(seen.n, n < 7 ? n : 7);
			if (n)
				assert_int_equal(seen.rows[0].key, last * 10);
			oltp_txn_abort(rig.w);
			assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		}
	}
	/* Nothing between the bounds, and bounds the wrong way round. */
	assert_int_equal(scan(&rig, rig.by_key, (struct oltp_range){ .from = 11, .to = 19 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 0);
	assert_int_equal(scan(&rig, rig.by_key, (struct oltp_range){ .from = 19, .to = 11 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 0);
	/* By group, then by primary key; by number, all of them. */
	assert_int_equal(scan(&rig, rig.by_group, (struct oltp_range){ .from = 3, .to = 4 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 200);
	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(seen.rows[i].key, (300 + i) * 10);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(scan(&rig, rig.by_number, everything), OLTP_OK);
	assert_int_equal(seen.n, ROWS);
	for (uint32_t i = 0; i < ROWS; i++)
		assert_int_equal(seen.rows[i].key, (ROWS - 1 - i) * 10);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	ordered_rig_close(&rig);
}

static void test_ends_of_the_key_space(void **state)
{
	(void)state;
	struct ordered_rig rig;

	ordered_rig_open(&rig, NULL);
	ordered_add_row(&rig, 0, UINT64_MAX, 0);
	ordered_add_row(&rig, UINT64_MAX, 0, UINT64_MAX);
	ordered_add_row(&rig, UINT64_MAX - 1, UINT64_MAX, 1);
	for (uint32_t turn = 0; turn < 2; turn++) {
		const struct oltp_range first = { .from = 0, .to = 0, .descending = turn };
		const struct oltp_range last = { .from = UINT64_MAX, .to = UINT64_MAX,
						 .descending = turn };
		const struct oltp_range all = { .from = 0, .to = UINT64_MAX, .descending = turn };

		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(scan(&rig, rig.by_key, first), OLTP_OK);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.rows[0].key, 0);
		assert_int_equal(scan(&rig, rig.by_key, last), OLTP_OK);
		assert_int_equal(seen.n, 1);
		assert_true(seen.rows[0].key == UINT64_MAX);
		assert_int_equal(scan(&rig, rig.by_group, last), OLTP_OK);
		assert_int_equal(seen.n, 2);
		assert_int_equal(seen.rows[turn].key, 0);
		assert_int_equal(scan(&rig, rig.by_group, all), OLTP_OK);
		assert_int_equal(seen.n, 3);
		assert_true(seen.rows[turn ? 2 : 0].key == UINT64_MAX);
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	}
	ordered_rig_close(&rig);
}

static void test_own_inserts_and_deletes_are_seen(void **state)
{
	(void)state;
	struct ordered_rig rig;
	const void *record;

	open_full(&rig);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(scan(&rig, rig.by_group, (struct oltp_range){ .from = 5, .to = 5 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 100);
	for (uint64_t i = 0; i < 50; i++) {
		assert_int_equal(try_delete(&rig, 5000 + i * 20), OLTP_OK);
		assert_int_equal(try_delete(&rig, 5000 + i * 20), OLTP_NOT_FOUND);
		assert_int_equal(try_read(&rig, 5000 + i * 20), OLTP_NOT_FOUND);
		assert_int_equal(insert(&rig, 5001 + i * 20, 5, 5001 + i * 20), OLTP_OK);
	}
	assert_int_equal(insert(&rig, 5001, 5, 77777), OLTP_EXISTS);
	for (uint32_t turn = 0; turn < 2; turn++) {
		const struct oltp_range range = { .from = 5, .to = 5, .descending = turn };

		assert_int_equal(scan(&rig, rig.by_group, range), OLTP_OK);
		assert_int_equal(seen.n, 100);
		for (uint32_t i = 0; i < 100; i++) {
			uint32_t k = turn ? 99 - i : i;

			assert_int_equal(seen.rows[i].key, 5000 + k / 2 * 20 + (k % 2 ? 10 : 1));
		}
	}
	/* The node set was updated: none of that was anybody else. */
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_counts(&rig, ROWS);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 5000, &record), OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 5001, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	ordered_rig_close(&rig);
}

/* G2, with rows: what is there afterwards, by every way to it, is what was there before. */
static void test_abort_of_everything(void **state)
{
	(void)state;
	const struct oltp_span value = { offsetof(struct ordered_row, value), sizeof(uint64_t) };
	struct ordered_rig rig;
	void *record;

	open_full(&rig);
	for (uint32_t turn = 0; turn < 3; turn++) {
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		for (uint64_t n = 0; n < ROWS; n += 2) {
			uint64_t key = n * 10;

			if (n % 4)
				assert_int_equal(oltp_txn_update(rig.w, rig.table, key, &value, 1,
								 &record), OLTP_OK);
			if (n % 4)
				((struct ordered_row *)record)->value = 999;
			assert_int_equal(try_delete(&rig, key), OLTP_OK);
			/* Once more, elsewhere; and gone again; and there again. */
			if (n % 3)
				assert_int_equal(insert(&rig, key, 50 + n, 5000 + n), OLTP_OK);
			if (n % 9 == 1)
				assert_int_equal(try_delete(&rig, key), OLTP_OK);
			if (n % 9 == 1 && n % 7)
				assert_int_equal(insert(&rig, key, n / 100, 6000 + n), OLTP_OK);
			/* New ones, of which some go. */
			assert_int_equal(insert(&rig, key + 1, 3, 9000 + n), OLTP_OK);
			if (n % 5 == 0)
				assert_int_equal(try_delete(&rig, key + 1), OLTP_OK);
			if (n % 10 == 0)
				assert_int_equal(insert(&rig, key + 1, 4, 9001 + n), OLTP_OK);
		}
		oltp_txn_abort(rig.w);
		assert_counts(&rig, ROWS);
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(scan(&rig, rig.by_number, everything), OLTP_OK);
		for (uint32_t i = 0; i < ROWS; i++) {
			uint64_t n = ROWS - 1 - i;

			assert_int_equal(seen.rows[i].key, n * 10);
			assert_int_equal(seen.rows[i].row.group, n / 100);
			assert_int_equal(seen.rows[i].row.value, (n * 10) ^ (n / 100));
		}
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	}
	/* Nothing is locked. */
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	for (uint64_t n = 0; n < ROWS; n++)
		assert_int_equal(oltp_txn_delete(rig.other, rig.table, n * 10), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.other), OLTP_OK);
	assert_counts(&rig, 0);
	assert_int_equal(rig.engine->leaves.n_used, 3);
	ordered_rig_close(&rig);
}

static void assert_row(struct ordered_rig *rig, uint64_t key, uint64_t group, uint64_t number)
{
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(scan(rig, rig->by_group, (struct oltp_range){ group, group, 0, 0, 0 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.rows[0].key, key);
	assert_int_equal(seen.rows[0].row.number, number);
	assert_int_equal(scan(rig, rig->by_number, (struct oltp_range){ number, number, 0, 0, 0 }),
			 OLTP_OK);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.rows[0].key, key);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

static void test_delete_and_insert_of_one_key(void **state)
{
	(void)state;
	struct ordered_rig rig;

	ordered_rig_open(&rig, NULL);
	ordered_add_row(&rig, 1, 100, 200);
	/* With other sort keys, with one that stays, with the same ones. */
	for (uint32_t turn = 0; turn < 8; turn++) {
		uint64_t group = turn & 1 ? 101 : 100, number = turn & 2 ? 201 : 200;

		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(try_delete(&rig, 1), OLTP_OK);
		assert_int_equal(insert(&rig, 1, group, number), OLTP_OK);
		assert_int_equal(scan(&rig, rig.by_group, everything), OLTP_OK);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.rows[0].sort, group);
		if (turn & 4) {
			/* And once more, back and forth. */
			assert_int_equal(try_delete(&rig, 1), OLTP_OK);
			assert_int_equal(scan(&rig, rig.by_key, everything), OLTP_OK);
			assert_int_equal(seen.n, 0);
			assert_int_equal(insert(&rig, 1, 300, 400), OLTP_OK);
			assert_int_equal(try_delete(&rig, 1), OLTP_OK);
			assert_int_equal(insert(&rig, 1, group, number), OLTP_OK);
		}
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		assert_row(&rig, 1, group, number);
		assert_counts(&rig, 1);
	}
	/* An own insert that goes again leaves nothing, whatever becomes of the transaction. */
	for (uint32_t turn = 0; turn < 4; turn++) {
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		assert_int_equal(insert(&rig, 2, 7, 8), OLTP_OK);
		assert_int_equal(try_delete(&rig, 2), OLTP_OK);
		assert_int_equal(try_read(&rig, 2), OLTP_NOT_FOUND);
		if (turn & 1) {
			assert_int_equal(insert(&rig, 2, 9, 8), OLTP_OK);
			assert_int_equal(scan(&rig, rig.by_group, everything), OLTP_OK);
			assert_int_equal(seen.n, 2);
			assert_int_equal(try_delete(&rig, 2), OLTP_OK);
		}
		if (turn & 2)
			assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
		else
			oltp_txn_abort(rig.w);
		assert_counts(&rig, 1);
	}
	/* Deleted, added and deleted: gone. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(try_delete(&rig, 1), OLTP_OK);
	assert_int_equal(insert(&rig, 1, 5, 6), OLTP_OK);
	assert_int_equal(try_delete(&rig, 1), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_counts(&rig, 0);
	ordered_rig_close(&rig);
}

static void test_unique(void **state)
{
	(void)state;
	struct ordered_rig rig;

	ordered_rig_open(&rig, NULL);
	ordered_add_row(&rig, 1, 100, 200);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(insert(&rig, 2, 100, 200), OLTP_EXISTS);
	assert_int_equal(insert(&rig, 2, 100, 201), OLTP_OK);
	/* The other transaction can have neither, now. */
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(ordered_insert_row(rig.other, rig.table, 3, 100, 201), OLTP_CONFLICT);
	oltp_txn_abort(rig.other);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_counts(&rig, 2);
	/* A number that this transaction has freed. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(try_delete(&rig, 1), OLTP_OK);
	assert_int_equal(insert(&rig, 3, 100, 200), OLTP_OK);
	assert_int_equal(insert(&rig, 1, 100, 200), OLTP_EXISTS);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_counts(&rig, 2);
	/* Two that both saw that it is free: only one gets it. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(scan(&rig, rig.by_number, (struct oltp_range){ .from = 9, .to = 9 }),
			 OLTP_OK);
	assert_int_equal(ordered_insert_row(rig.other, rig.table, 9, 1, 9), OLTP_OK);
	assert_int_equal(insert(&rig, 10, 1, 9), OLTP_CONFLICT);
	oltp_txn_abort(rig.w);
	assert_int_equal(oltp_txn_commit(rig.other), OLTP_OK);
	assert_counts(&rig, 3);
	ordered_rig_close(&rig);
}

static void test_sort_keys_cannot_be_updated(void **state)
{
	(void)state;
	const struct oltp_span spans[] = {
		{ 0, 8 }, { 7, 1 }, { 15, 2 }, { 0, sizeof(struct ordered_row) },
	};
	const struct oltp_span value = { 16, 8 };
	struct ordered_rig rig;
	void *record;

	ordered_rig_open(&rig, NULL);
	ordered_add_row(&rig, 1, 100, 200);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	for (size_t i = 0; i < ARRAY_SIZE(spans); i++)
		assert_int_equal(oltp_txn_update(rig.w, rig.table, 1, &spans[i], 1, &record),
				 OLTP_INVALID);
	assert_int_equal(oltp_txn_update(rig.w, rig.table, 1, &value, 1, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	ordered_rig_close(&rig);
}

static uint64_t any_key(void *ctx, uint64_t primary_key, const void *record)
{
	(void)record;
	return *(uint64_t *)ctx + primary_key;
}

static void test_create_errors(void **state)
{
	(void)state;
	uint64_t offset = 0;
	struct oltp_index_config config = { .key_of = any_key, .ctx = &offset, .n_key_spans = 1 };
	struct oltp_engine *engine;
	struct ordered_rig rig;
	struct oltp_table *table;
	struct oltp_index *index;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_table_create(engine, 16, 10, &table), 0);
	config.key_spans[0] = (struct oltp_span){ 9, 8 };
	assert_int_equal(oltp_index_create(table, &config, &index), -EINVAL);
	config.key_spans[0] = (struct oltp_span){ UINT32_MAX, 8 };
	assert_int_equal(oltp_index_create(table, &config, &index), -EINVAL);
	config.key_spans[0] = (struct oltp_span){ 0, 0 };
	config.n_key_spans = OLTP_KEY_SPANS_MAX + 1;
	assert_int_equal(oltp_index_create(table, &config, &index), -EINVAL);
	config.n_key_spans = 0;
	assert_int_equal(oltp_index_create(table, &config, &index), -EINVAL);
	config.n_key_spans = 1;
	for (uint32_t i = 0; i < OLTP_INDEXES_MAX; i++)
		assert_int_equal(oltp_index_create(table, &config, &index), 0);
	assert_int_equal(oltp_index_create(table, &config, &index), -ENOSPC);
	oltp_engine_close(engine);

	ordered_rig_open(&rig, NULL);
	ordered_add_row(&rig, 1, 2, 3);
	assert_int_equal(oltp_index_create(rig.table, NULL, &index), -EBUSY);
	/* One that does not do what it says is found out. */
	assert_int_equal(oltp_table_create(rig.engine, 16, 10, &table), 0);
	assert_int_equal(oltp_index_create(table, &config, &index), 0);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_insert(rig.w, table, 5, "0123456789abcdef"), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(scan(&rig, index, everything), OLTP_OK);
	assert_int_equal(seen.n, 1);
	offset = 1;
	assert_int_equal(scan(&rig, index, everything), OLTP_INVALID);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_INVALID);
	oltp_txn_abort(rig.w);
	ordered_rig_close(&rig);
}

static void test_states_and_limits(void **state)
{
	(void)state;
	const struct oltp_config config = { .node = -1, .txn_records_max = 20,
					    .txn_undo_bytes = 64 };
	struct ordered_rig rig;

	ordered_rig_open(&rig, &config);
	assert_int_equal(try_delete(&rig, 1), OLTP_INVALID);
	assert_int_equal(scan(&rig, rig.by_key, everything), OLTP_INVALID);
	for (uint64_t key = 0; key < 40; key++)
		ordered_add_row(&rig, key, 1, key);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(scan(&rig, rig.by_key, (struct oltp_range){ .to = 19 }), OLTP_OK);
	assert_int_equal(seen.n, 20);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(scan(&rig, rig.by_key, everything), OLTP_FULL);
	assert_int_equal(try_delete(&rig, 1), OLTP_INVALID);
	assert_int_equal(scan(&rig, rig.by_key, everything), OLTP_INVALID);
	oltp_txn_abort(rig.w);
	/* Twenty look-ups in vain, and one more. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(try_read(&rig, 1000 + i * 0x123456789ull), OLTP_NOT_FOUND);
	assert_int_equal(try_read(&rig, 77), OLTP_FULL);
	oltp_txn_abort(rig.w);
	/* Undo for one row that is added again, not for two. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(try_delete(&rig, 1), OLTP_OK);
	assert_int_equal(try_delete(&rig, 2), OLTP_OK);
	assert_int_equal(insert(&rig, 1, 1, 1), OLTP_OK);
	assert_int_equal(insert(&rig, 2, 1, 2), OLTP_FULL);
	oltp_txn_abort(rig.w);
	assert_int_equal(storage_used_slots(rig.table), 40);
	ordered_rig_close(&rig);
}

struct nested {
	struct ordered_rig *rig;
	uint32_t n, fail_at;
	enum oltp_rc rc;
};

/* Deletes the row it is shown and the next one, and adds one behind it. */
static int delete_two(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct nested *nested = ctx;
	struct ordered_rig *rig = nested->rig;

	(void)record;
	assert_int_equal(sort_key, primary_key);
	assert_int_equal(primary_key % 20, 0);
	nested->n++;
	assert_int_equal(try_delete(rig, primary_key), OLTP_OK);
	assert_int_equal(try_delete(rig, primary_key + 10), OLTP_OK);
	assert_int_equal(insert(rig, primary_key - 1, 1, 5000 + primary_key), OLTP_OK);
	return 0;
}

static int stop_in_trouble(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct nested *nested = ctx;

	(void)sort_key;
	(void)record;
	if (++nested->n == nested->fail_at)
		nested->rc = try_read(nested->rig, primary_key + 10);
	return 0;
}

static void test_fn_works_in_the_transaction(void **state)
{
	(void)state;
	struct oltp_range range = { .from = 2000, .to = 8000, .exclusive = true };
	struct nested nested;
	struct ordered_rig rig;
	const void *record;

	open_full(&rig);
	nested = (struct nested){ .rig = &rig };
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	range.to = 7999;
	assert_int_equal(oltp_txn_scan(rig.w, rig.by_key, &range, delete_two, &nested), OLTP_OK);
	assert_int_equal(nested.n, 300);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_counts(&rig, ROWS - 300);

	/* What dooms the transaction in fn is what the scan ends with. */
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 60), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	nested = (struct nested){ .rig = &rig, .fail_at = 6 };
	range = (struct oltp_range){ .from = 0, .to = 50 };
	assert_int_equal(oltp_txn_scan(rig.w, rig.by_key, &range, stop_in_trouble, &nested),
			 OLTP_CONFLICT);
	assert_int_equal(nested.n, 6);
	assert_int_equal(nested.rc, OLTP_CONFLICT);
	oltp_txn_abort(rig.w);
	oltp_txn_abort(rig.other);

	/* It may end early; the locks are of the kind that was asked for. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	seen.stop_after = 3;
	assert_int_equal(scan(&rig, rig.by_key, (struct oltp_range){ .to = 9999 }), OLTP_OK);
	assert_int_equal(seen.n, 3);
	seen.stop_after = 0;
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.other, rig.table, 10, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.other), OLTP_OK);
	range = (struct oltp_range){ .from = 10, .to = 10, .exclusive = true };
	assert_int_equal(ordered_scan(rig.w, rig.by_key, &range, &seen), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.other, rig.table, 10, &record), OLTP_CONFLICT);
	oltp_txn_abort(rig.other);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	ordered_rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan_both_ways),
		cmocka_unit_test(test_ends_of_the_key_space),
		cmocka_unit_test(test_own_inserts_and_deletes_are_seen),
		cmocka_unit_test(test_abort_of_everything),
		cmocka_unit_test(test_delete_and_insert_of_one_key),
		cmocka_unit_test(test_unique),
		cmocka_unit_test(test_sort_keys_cannot_be_updated),
		cmocka_unit_test(test_create_errors),
		cmocka_unit_test(test_states_and_limits),
		cmocka_unit_test(test_fn_works_in_the_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
