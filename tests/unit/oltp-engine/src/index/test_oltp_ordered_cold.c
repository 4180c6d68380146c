// SPDX-License-Identifier: GPL-2.0-or-later
/* Scans and deletes while records are on disk, and while memory comes and goes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/manager.h"
#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"
#include "ordered_stress.h"

#define ROWS	4000u	/* two blocks */

struct moving {
	struct rig rig;			/* memory; its worker is used here */
	struct ordered_rig rows;	/* indexes; without workers */
};

static void open_moving(struct moving *m, enum oltp_cc cc, uint64_t limit_bytes, bool with_disk,
			uint32_t record_bytes)
{
	struct oltp_config config = {
		.cc = cc,
		.node = -1,
		.txn_records_max = 1000,
		.blocks = &oltp_blocks_native_ops,
		.cold_dir = with_disk ? rig_dir() : NULL,
	};
	struct rig *rig = &m->rig;

	*m = (struct moving){ 0 };
	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &rig->blocks), 0);
	config.blocks_ctx = rig->blocks;
	assert_int_equal(oltp_engine_open(&config, &rig->engine), 0);
	oltp_blocks_native_attach(rig->blocks, rig->engine);
	assert_int_equal(oltp_table_create(rig->engine, record_bytes, ROWS, &rig->table), 0);
	assert_int_equal(oltp_worker_create(rig->engine, &rig->w), 0);
	m->rows.engine = rig->engine;
	m->rows.table = rig->table;
	ordered_rig_indexes(&m->rows);
}

/* Runs one operation until it goes through, fetching what it misses; how often that was. */
static enum oltp_rc run_to_end(struct moving *m, enum oltp_rc (*one)(struct moving *m, void *ctx),
			       void *ctx, bool commits, uint32_t *ret_fetches)
{
	struct oltp_worker *w = m->rig.w;
	enum oltp_rc rc;

	*ret_fetches = 0;
	do {
		assert_int_equal(oltp_txn_begin(w), OLTP_OK);
		rc = one(m, ctx);
		if (!rc && commits)
			rc = oltp_txn_commit(w);
		oltp_txn_abort(w);
		if (rc != OLTP_COLD)
			continue;
		++*ret_fetches;
		rc = oltp_cold_wait(w) ?: OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	return rc;
}

struct row_op {
	uint64_t key, group, number;
};

static enum oltp_rc insert_one(struct moving *m, void *ctx)
{
	const struct row_op *op = ctx;
	uint8_t bytes[RIG_RECORD_BYTES];
	struct ordered_row row = { op->group, op->number, op->key ^ op->group };

	rig_fill_record(bytes, op->key, 0);
	memcpy(bytes, &row, sizeof(row));
	return oltp_txn_insert(m->rig.w, m->rig.table, op->key, bytes);
}

static enum oltp_rc delete_one(struct moving *m, void *ctx)
{
	const struct row_op *op = ctx;

	return oltp_txn_delete(m->rig.w, m->rig.table, op->key);
}

static void insert_rows(struct moving *m, uint64_t first, uint64_t end)
{
	uint32_t fetches;

	for (uint64_t key = first; key < end; key++) {
		struct row_op op = { key, key / 100, ~key };

		assert_int_equal(run_to_end(m, insert_one, &op, true, &fetches), OLTP_OK);
	}
}

static struct ordered_seen seen;

struct scan_op {
	struct oltp_index *index;
	struct oltp_range range;
};

static enum oltp_rc scan_one(struct moving *m, void *ctx)
{
	const struct scan_op *op = ctx;

	return ordered_scan(m->rig.w, op->index, &op->range, &seen);
}

/* Rows first to end - 1 of those inserted, by group; returns how often it had to fetch. */
static uint32_t scan_group(struct moving *m, uint64_t group, bool descending, uint32_t n)
{
	struct scan_op op = { m->rows.by_group, { .from = group, .to = group,
						  .descending = descending } };
	uint32_t fetches;

	assert_int_equal(run_to_end(m, scan_one, &op, true, &fetches), OLTP_OK);
	assert_int_equal(seen.n, n);
	for (uint32_t i = 0; i < seen.n; i++) {
		assert_int_equal(seen.rows[i].row.group, group);
		assert_int_equal(seen.rows[i].row.value, seen.rows[i].key ^ group);
		if (i)
			assert_true(descending ? seen.rows[i].key < seen.rows[i - 1].key :
						 seen.rows[i].key > seen.rows[i - 1].key);
	}
	return fetches;
}

static void open_half_cold(struct moving *m)
{
	open_moving(m, OLTP_CC_NO_WAIT, 4 * MIB, true, RIG_RECORD_BYTES);
	insert_rows(m, 0, ROWS);
	/* All stamps older than whatever the tests do. */
	rig_sleep_ms(50);
	assert_int_equal(rig_demand(&m->rig, 2 * MIB, 20000).held_bytes, 2 * MIB);
}

static void test_scan_fetches_what_is_cold_at_once(void **state)
{
	(void)state;
	uint64_t n_cold = 0;
	uint32_t fetches = 0;
	struct moving m;

	open_half_cold(&m);
	for (uint64_t group = 0; group < ROWS / 100; group++) {
		for (uint64_t key = group * 100; key < group * 100 + 100; key++)
			n_cold += rig_is_cold(&m.rig, key);
		fetches += scan_group(&m, group, group % 2, 100);
	}
	assert_true(n_cold > ROWS / 4);
	/* Not one for each; a few more than scans, as what comes back pushes others out. */
	assert_true(fetches > 0);
	assert_true(fetches < n_cold / 8);
	rig_close(&m.rig);
}

/* Only so many are fetched as the scan will show. */
static void test_limit_bounds_what_is_fetched(void **state)
{
	(void)state;
	struct scan_op op = { .range = { .from = 0, .to = UINT64_MAX, .limit = 4 } };
	struct moving m;
	uint32_t fetches;
	uint64_t reads;

	open_half_cold(&m);
	op.index = m.rows.by_key;
	for (; op.range.from < ROWS; op.range.from += 100) {
		reads = rig_stats(&m.rig).cold_reads;
		assert_int_equal(run_to_end(&m, scan_one, &op, true, &fetches), OLTP_OK);
		assert_int_equal(seen.n, 4);
		/* Each at most once, unless it was pushed out again in between. */
		assert_true(rig_stats(&m.rig).cold_reads - reads <= 4ull * (fetches ?: 1));
	}
	rig_close(&m.rig);
}

static bool is_buffered(struct moving *m, uint64_t key)
{
	struct index_ref ref;

	oltp_txn_begin(m->rig.w);
	index_find(&m->rig.table->index, key, index_hash(key), &ref);
	oltp_txn_abort(m->rig.w);
	return !(ref.entry & INDEX_STUB) && ref.entry & INDEX_BUFFERED;
}

static void wait_file_is_unused(struct rig *rig)
{
	for (int ms = 0; ms < 30000 && rig_stats(rig).file_used_bytes; ms++)
		rig_sleep_ms(1);
	assert_int_equal(rig_stats(rig).file_used_bytes, 0);
}

/* Nothing is freed by that, so cold records are buffered as soon as blocks are full. */
static void delete_buffered(struct moving *m, uint32_t n)
{
	uint32_t fetches, n_deleted = 0;

	for (uint64_t key = 0; n_deleted < n; key++) {
		struct row_op op = { key, 0, 0 };

		assert_true(key < ROWS);
		if (!rig_is_cold(&m->rig, key))
			continue;
		/* First not for good, then where it was read to. */
		assert_int_equal(run_to_end(m, delete_one, &op, false, &fetches), OLTP_OK);
		if (!is_buffered(m, key))
			continue;
		assert_int_equal(run_to_end(m, delete_one, &op, true, &fetches), OLTP_OK);
		assert_int_equal(run_to_end(m, delete_one, &op, true, &fetches), OLTP_NOT_FOUND);
		op = (struct row_op){ key, key / 100, ~key };
		assert_int_equal(run_to_end(m, insert_one, &op, true, &fetches), OLTP_OK);
		n_deleted++;
	}
}

/* Wherever it is: in a block, on disk, or buffered. */
static void test_delete_of_cold_rows(void **state)
{
	(void)state;
	uint32_t fetches, n_fetched = 0;
	struct oltp_memory_stats stats;
	struct moving m;

	open_half_cold(&m);
	delete_buffered(&m, 20);
	for (uint64_t key = 0; key < ROWS; key++) {
		struct row_op op = { key, 0, 0 };

		/* First not for good. */
		assert_int_equal(run_to_end(&m, delete_one, &op, false, &fetches), OLTP_OK);
		n_fetched += fetches > 0;
		if (key % 4 == 3)
			continue;
		assert_int_equal(run_to_end(&m, delete_one, &op, true, &fetches), OLTP_OK);
		assert_int_equal(run_to_end(&m, delete_one, &op, true, &fetches), OLTP_NOT_FOUND);
	}
	/* How many depends on how fast those that are left move in where others went. */
	assert_true(n_fetched > 0);
	for (uint64_t group = 0; group < ROWS / 100; group++)
		scan_group(&m, group, group % 2, 25);
	for (uint64_t key = 3; key < ROWS; key += 4) {
		struct row_op op = { key, 0, 0 };

		assert_int_equal(run_to_end(&m, delete_one, &op, true, &fetches), OLTP_OK);
	}
	/* Nothing is left of them, in memory or on disk. */
	stats = rig_stats(&m.rig);
	assert_int_equal(stats.cold_records, 0);
	assert_int_equal(stats.resident_records, 0);
	wait_file_is_unused(&m.rig);
	assert_int_equal(rig_demand(&m.rig, 0, 20000).held_bytes, 0);
	assert_int_equal(m.rig.engine->leaves.n_used, 3);
	rig_close(&m.rig);
}

/* Without a disk what deleted rows leave is all that there is to give. */
static void test_memory_of_deleted_rows_is_given_back(void **state)
{
	(void)state;
	struct moving m;
	uint32_t fetches;

	open_moving(&m, OLTP_CC_NO_WAIT, 4 * MIB, false, RIG_RECORD_BYTES);
	insert_rows(&m, 0, ROWS);
	for (uint64_t key = 0; key < ROWS; key++) {
		struct row_op op = { key, 0, 0 };

		if (key % 4)
			assert_int_equal(run_to_end(&m, delete_one, &op, true, &fetches),
					 OLTP_OK);
	}
	assert_int_equal(rig_stats(&m.rig).held_bytes, 4 * MIB);
	assert_int_equal(rig_demand(&m.rig, 2 * MIB, 20000).held_bytes, 2 * MIB);
	for (uint64_t group = 0; group < ROWS / 100; group++)
		scan_group(&m, group, false, 25);
	for (uint64_t key = 0; key < ROWS; key += 4) {
		struct row_op op = { key, 0, 0 };

		assert_int_equal(run_to_end(&m, delete_one, &op, true, &fetches), OLTP_OK);
	}
	assert_int_equal(rig_demand(&m.rig, 0, 20000).held_bytes, 0);
	rig_close(&m.rig);
}

/* ---- threads, while memory comes and goes -------------------------------------------------- */

/* 130 in a block: the rows that there are take two, or three. */
#define STRESS_RECORD_BYTES	16000u

struct shaker {
	struct moving *m;
	_Atomic bool quit;
};

static void *shaker_main(void *arg)
{
	struct shaker *shaker = arg;
	bool little = false;

	while (!atomic_load(&shaker->quit)) {
		little = !little;
		oltp_blocks_native_set_limit(shaker->m->rig.blocks, (little ? 2 : 8) * MIB,
					     clock_now_ns() + 1000000000ull);
		rig_sleep_ms(little ? 20 : 5);
	}
	return NULL;
}

static void stress(enum oltp_cc cc)
{
	struct ordered_stress stress;
	struct shaker shaker = { 0 };
	struct moving m;
	pthread_t id;

	open_moving(&m, cc, 8 * MIB, true, STRESS_RECORD_BYTES);
	ordered_stress_open(&stress, &m.rows);
	shaker.m = &m;
	assert_int_equal(pthread_create(&id, NULL, shaker_main, &shaker), 0);
	ordered_stress_run(&stress, 4, 400);
	atomic_store(&shaker.quit, true);
	pthread_join(id, NULL);
	rig_demand(&m.rig, 2 * MIB, 20000);
	ordered_stress_check(&stress);
	oltp_blocks_native_set_limit(m.rig.blocks, 64 * MIB, 0);
	ordered_stress_check(&stress);
	assert_int_equal(rig_stats(&m.rig).read_errors, 0);
	assert_int_equal(rig_stats(&m.rig).lost_records, 0);
	assert_true(rig_stats(&m.rig).evicted_records > 0);
	rig_close(&m.rig);
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
		cmocka_unit_test(test_scan_fetches_what_is_cold_at_once),
		cmocka_unit_test(test_limit_bounds_what_is_fetched),
		cmocka_unit_test(test_delete_of_cold_rows),
		cmocka_unit_test(test_memory_of_deleted_rows_is_given_back),
		cmocka_unit_test(test_stress_no_wait),
		cmocka_unit_test(test_stress_wait_die),
		cmocka_unit_test(test_stress_wound_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
