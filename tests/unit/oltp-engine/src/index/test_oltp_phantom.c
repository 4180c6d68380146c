// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What was not there when a transaction looked (G1): interleavings written out, and threads whose
 * rows must agree with counters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ordered_stress.h"

#define ROWS	400u	/* keys 0, 10, 20, ... in several leaves */

static struct ordered_seen seen;

static void open_full(struct ordered_rig *rig)
{
	const struct oltp_config config = { .node = -1, .txn_records_max = 1000 };

	ordered_rig_open(rig, &config);
	for (uint64_t n = 0; n < ROWS; n++)
		ordered_add_row(rig, n * 10, n / 20, n);
}

static void scan(struct ordered_rig *rig, struct oltp_worker *w, uint64_t from, uint64_t to,
		 uint32_t n)
{
	const struct oltp_range range = { .from = from, .to = to };

	assert_int_equal(ordered_scan(w, rig->by_key, &range, &seen), OLTP_OK);
	assert_int_equal(seen.n, n);
}

static void begin(struct ordered_rig *rig)
{
	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_begin(rig->other), OLTP_OK);
}

static void add(struct ordered_rig *rig, struct oltp_worker *w, uint64_t key)
{
	assert_int_equal(ordered_insert_row(w, rig->table, key, 1000, 100000 + key), OLTP_OK);
}

static void assert_conflict(struct oltp_worker *w)
{
	assert_int_equal(oltp_txn_commit(w), OLTP_CONFLICT);
	/* Doomed: nothing else is accepted. */
	assert_int_equal(oltp_txn_commit(w), OLTP_INVALID);
	oltp_txn_abort(w);
}

static void commit(struct oltp_worker *w)
{
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
}

/* Every way to look at a range in which key 1005 would be. */
static void look(struct ordered_rig *rig, uint32_t how)
{
	const struct oltp_range ranges[] = {
		{ .from = 900, .to = 1100 },
		{ .from = 1001, .to = 1009 },
		{ .from = 0, .to = UINT64_MAX },
		{ .from = 900, .to = 1100, .descending = true },
		{ .from = 1001, .to = 1009, .descending = true, .exclusive = true },
		{ .from = 0, .to = 1009, .descending = true, .limit = 1 },
		{ .from = 1001, .to = UINT64_MAX, .limit = 1 },
	};

	assert_int_equal(ordered_scan(rig->w, rig->by_key, &ranges[how], &seen), OLTP_OK);
}

#define LOOKS	7u

static void test_insert_into_a_scanned_range(void **state)
{
	(void)state;
	struct ordered_rig rig;

	open_full(&rig);
	for (uint32_t how = 0; how < LOOKS; how++) {
		for (uint32_t turn = 0; turn < 2; turn++) {
			begin(&rig);
			look(&rig, how);
			add(&rig, rig.other, 1005);
			/* Committed or not, it came before this one's end. */
			if (turn)
				commit(rig.other);
			assert_conflict(rig.w);
			if (!turn)
				oltp_txn_abort(rig.other);
			/* Tried again, it sees what there is. */
			assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
			look(&rig, how);
			if (turn)
				assert_int_equal(oltp_txn_delete(rig.w, rig.table, 1005),
						 OLTP_OK);
			commit(rig.w);
		}
	}
	/* The one who looks comes second: it meets the lock. */
	begin(&rig);
	add(&rig, rig.other, 1005);
	assert_int_equal(ordered_scan(rig.w, rig.by_key,
				      &(struct oltp_range){ .from = 1001, .to = 1009 }, &seen),
			 OLTP_CONFLICT);
	oltp_txn_abort(rig.w);
	oltp_txn_abort(rig.other);
	ordered_rig_close(&rig);
}

static void test_inserts_elsewhere_do_not_matter(void **state)
{
	(void)state;
	struct ordered_rig rig;

	open_full(&rig);
	begin(&rig);
	scan(&rig, rig.w, 900, 1100, 21);
	add(&rig, rig.other, 3005);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 3010), OLTP_OK);
	commit(rig.other);
	/* Nor does what goes next to the range, and inserts after the end. */
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 1110), OLTP_OK);
	commit(rig.other);
	commit(rig.w);
	ordered_rig_close(&rig);
}

/* A unique key and its row: that row is locked, and nothing else can come there. */
static void test_neighbours_of_a_unique_row_do_not_matter(void **state)
{
	(void)state;
	struct ordered_rig rig;
	struct oltp_range range = { .from = 1000, .to = 1000 };

	open_full(&rig);
	for (uint32_t turn = 0; turn < 2; turn++) {
		begin(&rig);
		assert_int_equal(ordered_scan(rig.w, rig.by_key, &range, &seen), OLTP_OK);
		assert_int_equal(seen.n, 1);
		range.from = range.to = 101;
		assert_int_equal(ordered_scan(rig.w, rig.by_number, &range, &seen), OLTP_OK);
		assert_int_equal(seen.n, 1);
		assert_int_equal(rig.w->n_nodes, 0);
		range.from = range.to = 1000;
		assert_int_equal(ordered_insert_row(rig.other, rig.table, 1001 + turn, 5,
						    50000 + turn), OLTP_OK);
		commit(rig.other);
		commit(rig.w);
		/* In an index that is not unique, others may come. */
		begin(&rig);
		range.from = range.to = 5;
		assert_int_equal(ordered_scan(rig.w, rig.by_group, &range, &seen), OLTP_OK);
		assert_int_equal(ordered_insert_row(rig.other, rig.table, 1003 + turn, 5,
						    50010 + turn), OLTP_OK);
		commit(rig.other);
		assert_conflict(rig.w);
		range.from = range.to = 1000;
	}
	ordered_rig_close(&rig);
}

static void test_delete_from_a_scanned_range(void **state)
{
	(void)state;
	struct ordered_rig rig;

	open_full(&rig);
	begin(&rig);
	scan(&rig, rig.w, 900, 1100, 21);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 1000), OLTP_CONFLICT);
	oltp_txn_abort(rig.other);
	commit(rig.w);
	/* Deleted, but who knows whether that stays. */
	begin(&rig);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 1000), OLTP_OK);
	assert_int_equal(ordered_scan(rig.w, rig.by_key,
				      &(struct oltp_range){ .from = 900, .to = 1100 }, &seen),
			 OLTP_CONFLICT);
	oltp_txn_abort(rig.w);
	commit(rig.other);
	/* And then added again: that key may not come back into the range. */
	begin(&rig);
	scan(&rig, rig.w, 900, 1100, 20);
	add(&rig, rig.other, 1000);
	commit(rig.other);
	assert_conflict(rig.w);
	ordered_rig_close(&rig);
}

static void test_insert_after_not_found(void **state)
{
	(void)state;
	const struct oltp_span span = { offsetof(struct ordered_row, value), 8 };
	struct ordered_rig rig;
	const void *found;
	void *record;

	open_full(&rig);
	for (uint32_t how = 0; how < 3; how++) {
		begin(&rig);
		if (how == 0)
			assert_int_equal(oltp_txn_read(rig.w, rig.table, 7, &found),
					 OLTP_NOT_FOUND);
		if (how == 1)
			assert_int_equal(oltp_txn_update(rig.w, rig.table, 7, &span, 1, &record),
					 OLTP_NOT_FOUND);
		if (how == 2)
			assert_int_equal(oltp_txn_delete(rig.w, rig.table, 7), OLTP_NOT_FOUND);
		add(&rig, rig.other, 7);
		commit(rig.other);
		assert_conflict(rig.w);
		/* What goes is no phantom. */
		begin(&rig);
		assert_int_equal(oltp_txn_delete(rig.other, rig.table, 7), OLTP_OK);
		commit(rig.other);
		assert_int_equal(oltp_txn_read(rig.w, rig.table, 7, &found), OLTP_NOT_FOUND);
		commit(rig.w);
	}
	/* Looked in vain, then added: nobody else was there. */
	begin(&rig);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 7, &found), OLTP_NOT_FOUND);
	add(&rig, rig.w, 7);
	assert_int_equal(oltp_txn_delete(rig.w, rig.table, 7), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 7, &found), OLTP_NOT_FOUND);
	add(&rig, rig.w, 7);
	commit(rig.w);
	/* The same, but somebody else was faster, and has gone. */
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 8, &found), OLTP_NOT_FOUND);
	add(&rig, rig.other, 8);
	assert_int_equal(oltp_txn_delete(rig.other, rig.table, 8), OLTP_OK);
	commit(rig.other);
	assert_int_equal(ordered_insert_row(rig.w, rig.table, 8, 1, 8888), OLTP_CONFLICT);
	oltp_txn_abort(rig.w);
	ordered_rig_close(&rig);
}

static void test_write_skew_over_two_ranges(void **state)
{
	(void)state;
	struct ordered_rig rig;

	for (uint32_t order = 0; order < 4; order++) {
		struct oltp_worker *first, *second;
		enum oltp_rc rc;

		open_full(&rig);
		begin(&rig);
		scan(&rig, rig.w, 1001, 1009, 0);
		scan(&rig, rig.other, 3001, 3009, 0);
		first = order & 1 ? rig.other : rig.w;
		second = order & 1 ? rig.w : rig.other;
		add(&rig, first, first == rig.w ? 3005 : 1005);
		add(&rig, second, second == rig.w ? 3005 : 1005);
		/* Each changed what the other one saw. */
		if (order & 2)
			assert_conflict(second);
		rc = oltp_txn_commit(first);
		assert_int_equal(rc, OLTP_CONFLICT);
		oltp_txn_abort(first);
		if (!(order & 2))
			assert_conflict(second);
		ordered_rig_close(&rig);

		/* One after the other. */
		open_full(&rig);
		begin(&rig);
		scan(&rig, rig.w, 1001, 1009, 0);
		scan(&rig, rig.other, 3001, 3009, 0);
		add(&rig, rig.w, 3005);
		commit(rig.w);
		add(&rig, rig.other, 1005);
		assert_conflict(rig.other);
		ordered_rig_close(&rig);
	}
}

static void test_write_skew_over_two_missing_keys(void **state)
{
	(void)state;
	struct ordered_rig rig;
	const void *record;

	open_full(&rig);
	begin(&rig);
	assert_int_equal(oltp_txn_read(rig.w, rig.table, 5, &record), OLTP_NOT_FOUND);
	assert_int_equal(oltp_txn_read(rig.other, rig.table, 15, &record), OLTP_NOT_FOUND);
	add(&rig, rig.w, 15);
	add(&rig, rig.other, 5);
	assert_conflict(rig.w);
	assert_conflict(rig.other);
	ordered_rig_close(&rig);
}

/* A leaf that was scanned splits, by others and by the transaction itself. */
static void test_splits(void **state)
{
	(void)state;
	struct ordered_rig rig;

	open_full(&rig);
	for (uint32_t turn = 0; turn < 4; turn++) {
		bool own = turn & 1, others = turn & 2;
		uint64_t base = 400 + turn * 900;
		uint64_t leaves = rig.engine->leaves.n_used;

		begin(&rig);
		scan(&rig, rig.w, base, base + 200, 21);
		for (uint64_t i = 0; own && i < 100; i++)
			add(&rig, rig.w, base + i / 5 * 10 + 1 + i % 5);
		if (own)
			assert_true(rig.engine->leaves.n_used > leaves);
		for (uint64_t i = 0; others && i < 100; i++)
			add(&rig, rig.other, base + 500 + i / 5 * 10 + 1 + i % 5);
		commit(rig.other);
		commit(rig.w);
	}
	ordered_rig_close(&rig);
	/* Wherever the halves are: what others add in any of them is noticed. */
	for (uint64_t at = 1000; at < 1200; at += 10) {
		open_full(&rig);
		begin(&rig);
		scan(&rig, rig.w, 1000, 1200, 21);
		for (uint64_t i = 0; i < 100; i++)
			add(&rig, rig.w, 1000 + i / 5 * 10 + 1 + i % 5);
		add(&rig, rig.other, at + 9);
		commit(rig.other);
		assert_conflict(rig.w);
		assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
		scan(&rig, rig.w, 1000, 1200, 22);
		commit(rig.w);
		ordered_rig_close(&rig);
	}
}

/* The leaf that was looked at goes, and its range to another one. */
static void test_leaf_goes(void **state)
{
	(void)state;
	struct ordered_rig rig;
	uint64_t leaves;

	open_full(&rig);
	leaves = rig.engine->leaves.n_used;
	begin(&rig);
	scan(&rig, rig.w, 2001, 2009, 0);
	for (uint64_t key = 1500; key < 2500; key += 10)
		assert_int_equal(oltp_txn_delete(rig.other, rig.table, key), OLTP_OK);
	commit(rig.other);
	assert_true(rig.engine->leaves.n_used < leaves);
	assert_int_equal(oltp_txn_begin(rig.other), OLTP_OK);
	add(&rig, rig.other, 2005);
	commit(rig.other);
	assert_conflict(rig.w);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	scan(&rig, rig.w, 2001, 2009, 1);
	commit(rig.w);
	ordered_rig_close(&rig);
}

/* All keys in one chain of the hash index: what was there before does not hide what came. */
static void test_versions_of_one_chain(void **state)
{
	(void)state;
	const uint8_t byte = 0;
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w, *other;
	const void *record;

	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_table_create(engine, 1, 1, &table), 0);
	assert_int_equal(table->index.n_buckets, 1);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	assert_int_equal(oltp_worker_create(engine, &other), 0);
	for (uint64_t key = 0; key < 200; key++) {
		assert_int_equal(oltp_txn_begin(w), OLTP_OK);
		for (uint64_t k = 0; k < key; k += 9)
			assert_int_equal(oltp_txn_read(w, table, k, &record), OLTP_OK);
		commit(w);
		assert_int_equal(oltp_txn_begin(w), OLTP_OK);
		assert_int_equal(oltp_txn_read(w, table, key, &record), OLTP_NOT_FOUND);
		assert_int_equal(oltp_txn_begin(other), OLTP_OK);
		assert_int_equal(oltp_txn_insert(other, table, key, &byte), OLTP_OK);
		commit(other);
		assert_conflict(w);
	}
	oltp_worker_destroy(w);
	oltp_worker_destroy(other);
	oltp_engine_close(engine);
}

static void stress(enum oltp_cc cc)
{
	const struct oltp_config config = { .cc = cc, .node = -1,
					    .txn_records_max = 2 * STRESS_KEYS };
	struct ordered_stress stress;
	struct ordered_rig rig;

	ordered_rig_open(&rig, &config);
	ordered_stress_open(&stress, &rig);
	for (uint32_t turn = 0; turn < 2; turn++) {
		ordered_stress_run(&stress, 4, 1200);
		ordered_stress_check(&stress);
	}
	ordered_rig_close(&rig);
}

static void test_stress_no_wait(void **state)
{
	(void)state;
	stress(OLTP_CC_NO_WAIT);
}

static void test_stress_wait_die(void **state)
{
	(void)state;
	stress(OLTP_CC_WAIT_DIE);
}

static void test_stress_wound_wait(void **state)
{
	(void)state;
	stress(OLTP_CC_WOUND_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_insert_into_a_scanned_range),
		cmocka_unit_test(test_inserts_elsewhere_do_not_matter),
		cmocka_unit_test(test_neighbours_of_a_unique_row_do_not_matter),
		cmocka_unit_test(test_delete_from_a_scanned_range),
		cmocka_unit_test(test_insert_after_not_found),
		cmocka_unit_test(test_write_skew_over_two_ranges),
		cmocka_unit_test(test_write_skew_over_two_missing_keys),
		cmocka_unit_test(test_splits),
		cmocka_unit_test(test_leaf_goes),
		cmocka_unit_test(test_versions_of_one_chain),
		cmocka_unit_test(test_stress_no_wait),
		cmocka_unit_test(test_stress_wait_die),
		cmocka_unit_test(test_stress_wound_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
