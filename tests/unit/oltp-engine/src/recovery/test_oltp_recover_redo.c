// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Redo against a model: random histories, over a checkpoint that saw each row at a moment of its
 * own, from every moment on at which one may have begun. Rows and indexes must come out as the
 * history left them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/log/log_format.h"
#include "oltp-engine/src/recovery/recover_redo.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "tests/unit/oltp-engine/src/index/ordered_rig.h"

#define KEYS		10u
#define OPS		150u
#define NUMBERS		(KEYS + 2)	/* few: two rows of different times often have the same */
#define SPAN_BYTES	(sizeof(struct log_span) + 8)

struct model_row {
	bool is_there;
	struct ordered_row row;
};

struct model_op {
	enum redo_kind kind;
	uint64_t key;
	struct ordered_row row;
	/* As in the log. */
	uint32_t n_spans;
	_Alignas(8) uint8_t spans[2 * SPAN_BYTES];
};

struct history {
	struct model_op ops[OPS];
	struct model_row states[OPS + 1][KEYS];	/* before each operation, and at the end */
};

static uint64_t rng;

static uint32_t draw(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)(rng % below);
}

static uint64_t free_number(const struct model_row *rows, uint64_t but)
{
	for (;;) {
		uint64_t number = draw(NUMBERS);
		bool is_taken = false;

		for (uint64_t key = 0; key < KEYS; key++)
			is_taken |= key != but && rows[key].is_there &&
				    rows[key].row.number == number;
		if (!is_taken)
			return number;
	}
}

static struct log_cursor spans_of(const uint8_t *at, uint32_t n, size_t bytes)
{
	return (struct log_cursor){ .at = at, .end = at + bytes, .left = n };
}

/* Up to eight bytes of the value, which no index is made of. */
static void make_span(struct model_op *op, struct ordered_row *row)
{
	uint8_t *at = op->spans + op->n_spans++ * SPAN_BYTES;
	uint32_t first = draw(8), bytes = 1 + draw(8 - first);
	struct log_span span = {
		.offset = (uint32_t)offsetof(struct ordered_row, value) + first,
		.bytes = bytes,
	};

	memset(at, 0, SPAN_BYTES);
	memcpy(at, &span, sizeof(span));
	for (uint32_t i = 0; i < bytes; i++)
		at[sizeof(span) + i] = (uint8_t)draw(256);
	memcpy((uint8_t *)row + span.offset, at + sizeof(span), bytes);
}

static void history_make(struct history *h, uint64_t seed)
{
	rng = seed * 0x9e3779b97f4a7c15ull + 1;
	memset(h, 0, sizeof(*h));
	for (uint32_t i = 0; i < OPS; i++) {
		struct model_op *op = &h->ops[i];
		struct model_row *rows = h->states[i + 1];
		struct model_row *row;

		memcpy(rows, h->states[i], sizeof(h->states[i]));
		op->key = draw(KEYS);
		row = &rows[op->key];
		/* A row that is deleted and added in one transaction is put over the old one. */
		if (!row->is_there || !draw(8)) {
			op->kind = REDO_INSERT;
			op->row = (struct ordered_row){ draw(3), free_number(rows, op->key), rng };
			*row = (struct model_row){ true, op->row };
		} else if (!draw(4)) {
			op->kind = REDO_DELETE;
			row->is_there = false;
		} else {
			op->kind = REDO_UPDATE;
			make_span(op, &row->row);
			if (draw(2))
				make_span(op, &row->row);
		}
	}
}

static int redo_op(struct redo *redo, struct oltp_table *table, const struct model_op *op)
{
	switch (op->kind) {
	case REDO_INSERT:
		return redo_put(redo, table, op->key, &op->row);
	case REDO_DELETE:
		return redo_delete(redo, table, op->key);
	case REDO_UPDATE:
		return redo_update(redo, table, op->key,
				   spans_of(op->spans, op->n_spans, op->n_spans * SPAN_BYTES));
	}
	return -EINVAL;
}

static void rows_are(struct ordered_rig *rig, const struct model_row *rows)
{
	static struct ordered_seen seen;
	const struct oltp_range all = { .from = 0, .to = UINT64_MAX };
	uint32_t n = 0;

	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(ordered_scan(rig->w, rig->by_key, &all, &seen), OLTP_OK);
	for (uint64_t key = 0; key < KEYS; key++) {
		if (!rows[key].is_there)
			continue;
		assert_true(n < seen.n);
		assert_int_equal(seen.rows[n].key, key);
		assert_memory_equal(&seen.rows[n].row, &rows[key].row, sizeof(rows[key].row));
		n++;
	}
	assert_int_equal(seen.n, n);
	assert_int_equal(ordered_scan(rig->w, rig->by_number, &all, &seen), OLTP_OK);
	assert_int_equal(seen.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen.rows[i].sort, rows[seen.rows[i].key].row.number);
	assert_int_equal(ordered_scan(rig->w, rig->by_group, &all, &seen), OLTP_OK);
	assert_int_equal(seen.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(seen.rows[i].sort, rows[seen.rows[i].key].row.group);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

/* All rows go, so that one engine does for many runs. */
static void clear(struct ordered_rig *rig)
{
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	for (uint64_t key = 0; key < KEYS; key++)
		oltp_txn_delete(rig->w, rig->table, key);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

/* What a checkpoint shows that began at start and was through at end, then the rest of the log. */
static void checkpoint_and_redo(struct ordered_rig *rig, const struct history *h, uint32_t start,
				uint32_t end)
{
	uint32_t table;
	struct redo redo;
	uint64_t key;

	assert_int_equal(redo_init(&redo, rig->engine), 0);
	for (key = 0; key < KEYS; key++) {
		const struct model_row *row =
			&h->states[start + draw(end - start + 1)][key];

		if (row->is_there)
			assert_int_equal(redo_put(&redo, rig->table, key, &row->row), 0);
	}
	assert_int_equal(redo_flush(&redo), 0);
	for (uint32_t i = start; i < OPS; i++)
		assert_int_equal(redo_op(&redo, rig->table, &h->ops[i]), 0);
	assert_int_equal(redo_flush(&redo), 0);
	assert_false(redo_has_missing(&redo, &table, &key));
	rows_are(rig, h->states[OPS]);
	redo_finish(&redo);
	clear(rig);
}

static void every_moment(const struct oltp_config *config)
{
	static struct history h;
	struct ordered_rig rig;

	ordered_rig_open(&rig, config);
	for (uint64_t seed = 1; seed <= 8; seed++) {
		history_make(&h, seed);
		for (uint32_t start = 0; start <= OPS; start++) {
			checkpoint_and_redo(&rig, &h, start, start);
			checkpoint_and_redo(&rig, &h, start, start + draw(OPS - start + 1));
			checkpoint_and_redo(&rig, &h, start, OPS);
		}
	}
	ordered_rig_close(&rig);
}

static void test_every_moment(void **state)
{
	(void)state;
	every_moment(NULL);
}

/* Room for few accesses, and for less than a row of undo. */
static void test_every_moment_with_little_room(void **state)
{
	(void)state;
	every_moment(&(struct oltp_config){ .node = -1, .txn_records_max = 48,
					    .txn_undo_bytes = 16 });
}

/* An update of a row that neither the checkpoint nor the log has, nor ever deletes. */
static void test_row_that_never_was(void **state)
{
	(void)state;
	struct model_op update = { .kind = REDO_UPDATE, .key = 3 };
	const struct model_op put = { .kind = REDO_INSERT, .key = 4, .row = { 1, 2, 3 } };
	const struct model_op gone = { .kind = REDO_DELETE, .key = 3 };
	struct ordered_rig rig;
	struct ordered_row row;
	uint32_t table = 99;
	uint64_t key = 99;
	struct redo redo;

	rng = 1;
	make_span(&update, &row);
	ordered_rig_open(&rig, NULL);
	assert_int_equal(redo_init(&redo, rig.engine), 0);
	assert_int_equal(redo_op(&redo, rig.table, &update), 0);
	assert_int_equal(redo_op(&redo, rig.table, &put), 0);
	assert_int_equal(redo_flush(&redo), 0);
	assert_true(redo_has_missing(&redo, &table, &key));
	assert_int_equal(table, rig.table->id);
	assert_int_equal(key, 3);
	assert_int_equal(redo_op(&redo, rig.table, &gone), 0);
	assert_int_equal(redo_flush(&redo), 0);
	assert_false(redo_has_missing(&redo, &table, &key));
	assert_int_equal(redo.counts.passed_over, 2);
	assert_int_equal(redo.counts.puts, 1);
	redo_finish(&redo);
	ordered_rig_close(&rig);
}

/* Many keys remembered, and forgotten in another order. */
static void test_remembered_keys(void **state)
{
	(void)state;
	struct recover_keys keys = { 0 };

	for (uint64_t key = 0; key < 5000; key++) {
		assert_int_equal(recover_keys_add(&keys, (uint32_t)key % 3, key / 3), 0);
		assert_int_equal(recover_keys_add(&keys, (uint32_t)key % 3, key / 3), 0);
	}
	assert_int_equal(keys.n, 5000);
	for (uint64_t step = 0; step < 7; step++) {
		for (uint64_t key = step; key < 5000; key += 7) {
			recover_keys_remove(&keys, (uint32_t)key % 3, key / 3);
			recover_keys_remove(&keys, (uint32_t)key % 3, key / 3);
			recover_keys_remove(&keys, 5, key);
		}
	}
	assert_int_equal(keys.n, 0);
	assert_null(recover_keys_any(&keys));
	recover_keys_finish(&keys);
}

/* An index over bytes that were not part of any when they were changed. */
static void test_new_index_over_changed_bytes(void **state)
{
	(void)state;
	const uint64_t group = 77;
	const struct ordered_row before = { 1, 2, 3 };
	const struct oltp_range at = { .from = group, .to = group };
	_Alignas(8) uint8_t spans[SPAN_BYTES];
	static struct ordered_seen seen;
	struct ordered_rig rig;
	struct redo redo;

	memcpy(spans, &(struct log_span){ offsetof(struct ordered_row, group), 8 }, 8);
	memcpy(spans + 8, &group, 8);
	ordered_rig_open(&rig, NULL);
	assert_int_equal(redo_init(&redo, rig.engine), 0);
	assert_int_equal(redo_put(&redo, rig.table, 5, &before), 0);
	/* Twice: the second time nothing changes. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(redo_update(&redo, rig.table, 5,
					     spans_of(spans, 1, sizeof(spans))), 0);
	assert_int_equal(redo_flush(&redo), 0);
	redo_finish(&redo);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(ordered_scan(rig.w, rig.by_group, &at, &seen), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.rows[0].row.group, group);
	assert_int_equal(seen.rows[0].row.value, 3);
	assert_int_equal(ordered_count(&rig, rig.by_group), 1);
	ordered_rig_close(&rig);
}

static void test_spans_that_do_not_fit(void **state)
{
	(void)state;
	const struct ordered_row row = { 1, 2, 3 };
	const struct log_span bad[] = {
		{ 25, 1 }, { 24, 1 }, { 0, 25 }, { 1, UINT32_MAX }, { UINT32_MAX, 2 }, { 0, 9 },
	};
	_Alignas(8) uint8_t spans[SPAN_BYTES] = { 0 };
	struct ordered_rig rig;
	struct redo redo;

	ordered_rig_open(&rig, NULL);
	assert_int_equal(redo_init(&redo, rig.engine), 0);
	assert_int_equal(redo_put(&redo, rig.table, 5, &row), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memcpy(spans, &bad[i], sizeof(bad[i]));
		assert_int_equal(redo_update(&redo, rig.table, 5,
					     spans_of(spans, 1, sizeof(spans))), -EUCLEAN);
	}
	/* The second one is not there. */
	memcpy(spans, &(struct log_span){ 16, 8 }, sizeof(struct log_span));
	assert_int_equal(redo_update(&redo, rig.table, 5, spans_of(spans, 2, sizeof(spans))),
			 -EUCLEAN);
	assert_int_equal(redo_flush(&redo), 0);
	redo_finish(&redo);
	ordered_rig_close(&rig);
}

/* Rows for four times the memory: they go to disk, and come back to be changed and deleted. */
static void test_little_memory(void **state)
{
	(void)state;
	const uint64_t n = 4 * 2 * RIG_PER_BLOCK;
	static uint64_t counters[4 * 2 * RIG_PER_BLOCK];
	_Alignas(8) uint8_t record[2][sizeof(struct log_span) + RIG_RECORD_BYTES];
	static uint8_t rows[REDO_BATCH][RIG_RECORD_BYTES];
	uint64_t missing_key;
	uint32_t table;
	struct redo redo;
	struct rig rig;

	memset(counters, 0, sizeof(counters));
	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	assert_int_equal(redo_init(&redo, rig.engine), 0);
	for (uint64_t key = 0; key < n; key++) {
		rig_fill_record(rows[key % REDO_BATCH], key, 0);
		assert_int_equal(redo_put(&redo, rig.table, key, rows[key % REDO_BATCH]), 0);
	}
	assert_int_equal(redo_flush(&redo), 0);
	assert_true(rig_stats_of(&rig, n).cold_records > n / 2);
	for (uint64_t i = 0; i < n / 4; i++) {
		uint64_t key = i * 7 % n;
		uint8_t *at = record[i % 2];

		counters[key]++;
		memcpy(at, &(struct log_span){ 0, RIG_RECORD_BYTES }, sizeof(struct log_span));
		rig_fill_record(at + sizeof(struct log_span), key, counters[key]);
		assert_int_equal(redo_update(&redo, rig.table, key,
					     spans_of(at, 1, sizeof(record[0]))), 0);
		if (i % 2)
			assert_int_equal(redo_flush(&redo), 0);
	}
	/* Gone and there again, over whatever there is. */
	for (uint64_t key = 3; key < n; key += 64) {
		counters[key] = 9;
		rig_fill_record(rows[0], key, 9);
		assert_int_equal(redo_delete(&redo, rig.table, key), 0);
		assert_int_equal(redo_put(&redo, rig.table, key, rows[0]), 0);
		assert_int_equal(redo_flush(&redo), 0);
	}
	assert_false(redo_has_missing(&redo, &table, &missing_key));
	assert_int_equal(redo.counts.updates, n / 4);
	redo_finish(&redo);
	assert_int_equal(rig_scan(&rig, n, counters), 0);
	assert_true(rig_stats(&rig).held_bytes <= 4 * MIB);
	rig_close(&rig);
}

/* Memory for a part of the rows, and no disk: an error, and the engine can be closed. */
static void test_too_little_memory(void **state)
{
	(void)state;
	static uint8_t row[RIG_RECORD_BYTES];
	uint64_t key = 0;
	struct redo redo;
	struct rig rig;
	int rc = 0;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, false, 0);
	assert_int_equal(redo_init(&redo, rig.engine), 0);
	for (; !rc && key < 4 * RIG_PER_BLOCK; key++)
		rc = redo_put(&redo, rig.table, key, row);
	assert_int_equal(rc, -ENOMEM);
	assert_true(key > RIG_PER_BLOCK);
	redo_finish(&redo);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_moment),
		cmocka_unit_test(test_every_moment_with_little_room),
		cmocka_unit_test(test_row_that_never_was),
		cmocka_unit_test(test_remembered_keys),
		cmocka_unit_test(test_new_index_over_changed_bytes),
		cmocka_unit_test(test_spans_that_do_not_fit),
		cmocka_unit_test(test_little_memory),
		cmocka_unit_test(test_too_little_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
