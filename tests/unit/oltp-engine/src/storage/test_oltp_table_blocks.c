// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Little memory and many tables: blocks are each of one table, so what matters is not only how many
 * there are, but that no table is left without one while another has several. A transaction that
 * adds rows to all of them needs a block of each at once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/memory/oltp_memory_rig.h"

#define BLOCK		OLTP_MEM_BLOCK_BYTES
#define SMALL_TABLES	6u
#define SMALL_ROWS	10u	/* of each small table */
#define LARGE_BLOCKS	4u
#define LARGE_ROWS	(LARGE_BLOCKS * RIG_PER_BLOCK)
/* In vain, for want of room: some are to be expected for each table, but not without end. */
#define ATTEMPTS_MAX	500u
#define DEMAND_MS	RIG_DEADLINE_MS
/* Without anything going on; the engine looks after itself more often. */
#define QUIET_MS	300u

struct tables {
	struct rig rig;		/* its table is the large one */
	struct oltp_table *small[SMALL_TABLES];
	uint64_t next;		/* key to be added to the small ones */
};

static void open_tables(struct tables *t, uint64_t limit_bytes)
{
	*t = (struct tables){ .next = 0 };
	rig_open(&t->rig, OLTP_CC_WOUND_WAIT, limit_bytes, true, 0);
	for (uint32_t i = 0; i < SMALL_TABLES; i++)
		assert_int_equal(oltp_table_create(t->rig.engine, RIG_RECORD_BYTES, 1000,
						   &t->small[i]), 0);
}

/* Blocks that hold the table's records. The engine drops some meanwhile. */
static uint32_t blocks_of(struct tables *t, const struct oltp_table *table)
{
	struct storage *storage = &t->rig.engine->storage;
	uint32_t n_of = 0;

	pthread_mutex_lock(&storage->lock);
	for (size_t i = 0; i < storage->n_blocks; i++)
		n_of += storage->blocks[i]->table == table;
	pthread_mutex_unlock(&storage->lock);
	return n_of;
}

static enum oltp_rc add_rows(struct tables *t)
{
	uint8_t record[RIG_RECORD_BYTES];
	enum oltp_rc rc = OLTP_OK;

	rig_fill_record(record, t->next, 0);
	for (uint32_t i = 0; !rc && i < SMALL_TABLES; i++)
		rc = oltp_txn_insert(t->rig.w, t->small[i], t->next, record);
	return rc;
}

/* One row to each of the small tables, in one transaction. Returns how many attempts it took. */
static uint32_t add_rows_to_end(struct tables *t)
{
	uint32_t attempts = 0;
	enum oltp_rc rc;

	do {
		assert_true(++attempts <= ATTEMPTS_MAX);
		oltp_txn_begin(t->rig.w);
		rc = add_rows(t);
		if (!rc)
			rc = oltp_txn_commit(t->rig.w);
		if (rc)
			oltp_txn_abort(t->rig.w);
		if (rc == OLTP_COLD)
			rc = oltp_cold_wait(t->rig.w) ?: OLTP_CONFLICT;
	} while (rc == OLTP_CONFLICT);
	assert_int_equal(rc, OLTP_OK);
	t->next++;
	return attempts;
}

/* The emptiest blocks are those of small tables; they stay all the same. */
static void test_demand_leaves_a_block(void **state)
{
	struct oltp_memory_stats stats;
	struct tables t;

	(void)state;
	open_tables(&t, 2 * (SMALL_TABLES + LARGE_BLOCKS) * BLOCK);
	for (uint32_t i = 0; i < SMALL_ROWS; i++)
		add_rows_to_end(&t);
	rig_insert(&t.rig, 0, LARGE_ROWS);
	assert_true(blocks_of(&t, t.rig.table) >= LARGE_BLOCKS);

	stats = rig_demand(&t.rig, (SMALL_TABLES + 2) * BLOCK, DEMAND_MS);
	assert_true(stats.held_bytes <= (SMALL_TABLES + 2) * BLOCK);
	for (uint32_t i = 0; i < SMALL_TABLES; i++)
		assert_int_equal(blocks_of(&t, t.small[i]), 1);
	assert_true(blocks_of(&t, t.rig.table) <= 2);
	rig_close(&t.rig);
}

/* With fewer blocks than tables the last ones go as well, and what was in them is still there. */
static void test_demand_takes_the_last(void **state)
{
	struct oltp_memory_stats stats;
	struct tables t;

	(void)state;
	open_tables(&t, 2 * (SMALL_TABLES + LARGE_BLOCKS) * BLOCK);
	for (uint32_t i = 0; i < SMALL_ROWS; i++)
		add_rows_to_end(&t);
	rig_insert(&t.rig, 0, LARGE_ROWS);
	stats = rig_demand(&t.rig, 2 * BLOCK, DEMAND_MS);
	assert_true(stats.held_bytes <= 2 * BLOCK);
	assert_int_equal(stats.unanswered_demands, 0);
	for (uint64_t key = 0; key < LARGE_ROWS; key += RIG_PER_BLOCK)
		assert_int_equal(rig_read(&t.rig, key, 0), OLTP_OK);
	rig_close(&t.rig);
}

/* The large table has all blocks; each of the others gets one of them, not one from the next. */
static void test_insert_into_all(void **state)
{
	struct tables t;

	(void)state;
	open_tables(&t, (SMALL_TABLES + 1) * BLOCK);
	rig_insert(&t.rig, 0, LARGE_ROWS * 2);
	for (uint32_t i = 0; i < SMALL_ROWS; i++)
		add_rows_to_end(&t);
	for (uint32_t i = 0; i < SMALL_TABLES; i++)
		assert_int_equal(blocks_of(&t, t.small[i]), 1);
	assert_int_equal(rig_scan(&t.rig, LARGE_ROWS * 2, NULL), 0);
	rig_close(&t.rig);
}

/*
 * What is brought back into free room and what goes for new room leave each other in peace: the
 * limit is no whole number of blocks, and what is left over is nobody's room.
 */
static void test_comes_to_rest(void **state)
{
	struct oltp_memory_stats stats = { 0 }, before;
	uint32_t quiet_ms = 0;
	struct tables t;

	(void)state;
	open_tables(&t, LARGE_BLOCKS * BLOCK + BLOCK / 4 * 3);
	rig_insert(&t.rig, 0, LARGE_ROWS * 2);
	for (uint32_t ms = 0; quiet_ms < QUIET_MS; ms++) {
		assert_true(ms < RIG_DEADLINE_MS / 2);
		before = stats;
		rig_sleep_ms(1);
		stats = rig_stats(&t.rig);
		quiet_ms = stats.merged_records == before.merged_records ? quiet_ms + 1 : 0;
	}
	assert_true(stats.cold_records >= LARGE_ROWS);
	rig_close(&t.rig);
}

/* Updates all rows, from 0 on, until the table has so many blocks. */
static void use_until(struct tables *t, uint64_t n_rows, uint32_t n_blocks)
{
	for (uint64_t counter = 0; blocks_of(t, t->rig.table) < n_blocks; counter++) {
		assert_true(counter < 20);
		rig_age(&t->rig);
		for (uint64_t key = 0; key < n_rows; key++)
			assert_int_equal(rig_update(&t->rig, key, counter), OLTP_OK);
	}
}

/*
 * Two tables that do not both fit. Blocks go to the one that is filled or used now, until the other
 * one has its last block.
 */
static void test_goes_where_used(void **state)
{
	struct oltp_table *first;
	struct tables t;

	(void)state;
	open_tables(&t, 5 * BLOCK);
	first = t.rig.table;
	rig_insert(&t.rig, 0, 5 * RIG_PER_BLOCK);
	assert_true(blocks_of(&t, first) >= 4);
	t.rig.table = t.small[0];
	rig_insert(&t.rig, 0, 5 * RIG_PER_BLOCK);
	use_until(&t, 5 * RIG_PER_BLOCK, 4);
	assert_int_equal(blocks_of(&t, first), 1);
	t.rig.table = first;
	use_until(&t, 5 * RIG_PER_BLOCK, 4);
	assert_int_equal(blocks_of(&t, t.small[0]), 1);
	rig_close(&t.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demand_leaves_a_block),
		cmocka_unit_test(test_demand_takes_the_last),
		cmocka_unit_test(test_insert_into_all),
		cmocka_unit_test(test_comes_to_rest),
		cmocka_unit_test(test_goes_where_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
