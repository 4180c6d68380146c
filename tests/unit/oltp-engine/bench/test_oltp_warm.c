// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory that is there before the engine asks: what an engine may expect of it, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/bench/warm.h"

#define ROW_BYTES	1000u
#define ROWS		5000u

static void test_blocks_are_aligned_zeroed_and_apart(void **state)
{
	static const uint8_t zeros[4096];
	uint8_t *last = NULL;
	struct warm warm;

	(void)state;
	assert_int_equal(warm_open(&warm, 3 * OLTP_MEM_BLOCK_BYTES, true), 0);
	/* The last ones are beyond what was written to. */
	for (unsigned int i = 0; i < 6; i++) {
		uint8_t *block = warm_mem_ops.alloc(&warm, OLTP_MEM_BLOCK_BYTES, -1);

		assert_non_null(block);
		assert_int_equal((uintptr_t)block % OLTP_MEM_BLOCK_BYTES, 0);
		assert_true(!last || block >= last + OLTP_MEM_BLOCK_BYTES);
		assert_memory_equal(block, zeros, sizeof(zeros));
		assert_memory_equal(block + OLTP_MEM_BLOCK_BYTES - sizeof(zeros), zeros,
				    sizeof(zeros));
		memset(block, 0xff, OLTP_MEM_BLOCK_BYTES);
		last = block;
	}
	warm_close(&warm);
	warm_close(&warm);
}

static void test_what_is_not_a_multiple_takes_whole_blocks(void **state)
{
	struct warm warm;
	uint8_t *a, *b;

	(void)state;
	assert_int_equal(warm_open(&warm, 1, true), 0);
	a = warm_mem_ops.alloc(&warm, OLTP_MEM_BLOCK_BYTES + 1, -1);
	b = warm_mem_ops.alloc(&warm, 1, -1);
	assert_non_null(a);
	assert_ptr_equal(b, a + 2 * OLTP_MEM_BLOCK_BYTES);
	warm_close(&warm);
}

static void test_ends(void **state)
{
	struct warm warm;
	uint64_t n = 0;

	(void)state;
	assert_int_equal(warm_open(&warm, 1, true), 0);
	assert_null(warm_mem_ops.alloc(&warm, 1ul << 40, -1));
	while (warm_mem_ops.alloc(&warm, OLTP_MEM_BLOCK_BYTES, -1))
		n++;
	assert_in_range(n, 1, warm.bytes / OLTP_MEM_BLOCK_BYTES);
	assert_null(warm_mem_ops.alloc(&warm, OLTP_MEM_BLOCK_BYTES, -1));
	warm_close(&warm);
}

static void test_an_engine_lives_in_it(void **state)
{
	struct oltp_config config = { .node = -1, .mem = &warm_mem_ops };
	struct oltp_engine *engine;
	struct oltp_worker *worker;
	struct oltp_table *table;
	uint8_t row[ROW_BYTES];
	struct warm warm;

	(void)state;
	assert_int_equal(warm_open(&warm, ROWS * ROW_BYTES, true), 0);
	config.mem_ctx = &warm;
	assert_int_equal(oltp_engine_open(&config, &engine), 0);
	assert_int_equal(oltp_table_create(engine, ROW_BYTES, ROWS, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &worker), 0);
	for (uint64_t key = 0; key < ROWS; key++) {
		memset(row, (int)key, sizeof(row));
		assert_int_equal(oltp_txn_begin(worker), OLTP_OK);
		assert_int_equal(oltp_txn_insert(worker, table, key, row), OLTP_OK);
		assert_int_equal(oltp_txn_commit(worker), OLTP_OK);
	}
	for (uint64_t key = 0; key < ROWS; key++) {
		const void *found;

		memset(row, (int)key, sizeof(row));
		assert_int_equal(oltp_txn_begin(worker), OLTP_OK);
		assert_int_equal(oltp_txn_read(worker, table, key, &found), OLTP_OK);
		assert_memory_equal(found, row, sizeof(row));
		assert_int_equal(oltp_txn_commit(worker), OLTP_OK);
	}
	oltp_worker_destroy(worker);
	oltp_engine_close(engine);
	warm_close(&warm);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks_are_aligned_zeroed_and_apart),
		cmocka_unit_test(test_what_is_not_a_multiple_takes_whole_blocks),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_an_engine_lives_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
