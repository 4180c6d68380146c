// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that comes and goes under load: YCSB on several workers, both schemes, and nothing is
 * lost.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/ycsb.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"

#define RECORDS	12000u	/* six blocks */

#define DEADLINE_NS	(RIG_DEADLINE_MS * 1000000ull)

struct load {
	struct oltp_blocks_native *blocks;
	struct oltp_engine *engine;
	struct ycsb *ycsb;
	struct oltp_pool *pool;
};

static void load_open(struct load *l, enum oltp_cc cc, uint64_t limit_bytes)
{
	const struct ycsb_config config = { .records = RECORDS, .operations = 10,
					    .update_share = 0.5, .theta = 0.6,
					    .is_scrambled = true, .seed = 5 };
	struct oltp_workload workload;

	assert_int_equal(oltp_blocks_native_create(limit_bytes, 0, &l->blocks), 0);
	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .cc = cc, .node = -1,
						.blocks = &oltp_blocks_native_ops,
						.blocks_ctx = l->blocks,
						.cold_dir = rig_dir() }, &l->engine), 0);
	oltp_blocks_native_attach(l->blocks, l->engine);
	assert_int_equal(ycsb_create(l->engine, &config, &l->ycsb), 0);
	assert_int_equal(ycsb_load(l->ycsb, 2), 0);
	workload = ycsb_workload(l->ycsb);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = l->engine,
						.workload = &workload, .no_pin = true },
					  &l->pool), 0);
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		assert_int_equal(oltp_pool_add(l->pool, cpu), 0);
}

/* All workers go; what they committed is what is there. */
static void load_close(struct load *l)
{
	uint64_t end_ns = clock_now_ns() + DEADLINE_NS;
	struct oltp_sample sample;
	struct ycsb_verdict v;

	do {
		oltp_pool_sample(l->pool, clock_now_ns(), &sample);
		rig_sleep_ms(1);
	} while (!sample.totals.colds && clock_now_ns() < end_ns);
	while (oltp_pool_count(l->pool)) {
		for (uint32_t cpu = 0; cpu < 9; cpu++)
			oltp_pool_remove(l->pool, cpu, NULL);
	}
	oltp_pool_sample(l->pool, clock_now_ns(), &sample);
	assert_int_equal(sample.totals.failed, 0);
	assert_true(sample.totals.committed > 0);
	assert_true(sample.totals.colds > 0);
	ycsb_verify(l->ycsb, &v);
	assert_int_equal(v.scan_rc, 0);
	assert_int_equal(v.records, RECORDS);
	assert_int_equal(v.lost_updates, 0);
	assert_int_equal(v.damaged_records, 0);
	assert_int_equal(v.inconsistent_reads, 0);
	oltp_pool_destroy(l->pool);
	ycsb_destroy(l->ycsb);
	oltp_engine_close(l->engine);
	assert_int_equal(oltp_blocks_native_held(l->blocks), 0);
	oltp_blocks_native_destroy(l->blocks);
}

static void audit_is_good(struct load *l, uint64_t *updates)
{
	struct ycsb_audit audit;

	ycsb_audit(l->ycsb, &audit);
	assert_int_equal(audit.rc, 0);
	assert_true(audit.is_complete);
	assert_int_equal(audit.damaged_records, 0);
	assert_true(audit.updates >= *updates);
	*updates = audit.updates;
}

static void limits_change_under_load(enum oltp_cc cc)
{
	static const uint32_t blocks[] = { 3, 6, 4, 2, 6, 1, 8, 3 };
	uint64_t updates = 0;
	struct load l;

	load_open(&l, cc, 8 * 2 * MIB);
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		oltp_blocks_native_set_limit(l.blocks, blocks[i] * 2 * MIB,
					     clock_now_ns() + DEADLINE_NS);
		rig_sleep_ms(30);
		/* Workers come and go meanwhile. */
		if (i % 2)
			oltp_pool_remove(l.pool, (uint32_t)i / 2, NULL);
		else
			oltp_pool_add(l.pool, 3 + (uint32_t)i / 2);
		audit_is_good(&l, &updates);
	}
	load_close(&l);
}

static void test_no_wait(void **state)
{
	(void)state;
	limits_change_under_load(OLTP_CC_NO_WAIT);
}

static void test_wait_die(void **state)
{
	(void)state;
	limits_change_under_load(OLTP_CC_WAIT_DIE);
}

static void test_wound_wait(void **state)
{
	(void)state;
	limits_change_under_load(OLTP_CC_WOUND_WAIT);
}

/* Demands are met while everything is in use. */
static void test_demand_under_load_is_met(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct load l;

	load_open(&l, OLTP_CC_NO_WAIT, 12 * MIB);
	rig_sleep_ms(50);
	oltp_blocks_native_set_limit(l.blocks, 4 * MIB, clock_now_ns() + DEADLINE_NS);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS; ms++) {
		oltp_memory_stats_read(l.engine, &stats);
		if (stats.demands)
			break;
		rig_sleep_ms(1);
	}
	assert_int_equal(stats.answered_bytes, 8 * MIB);
	assert_int_equal(stats.unanswered_bytes, 0);
	assert_int_equal(oltp_blocks_native_held(l.blocks), 4 * MIB);
	rig_sleep_ms(50);
	load_close(&l);
}

/* A transaction that never ends keeps what it holds, and the demand says so. */
static void test_open_transaction_stands_in_the_way(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	struct oltp_worker *other;
	const void *record;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, true, 0);
	rig_insert(&rig, 0, 8000);
	assert_int_equal(oltp_worker_create(rig.engine, &other), 0);
	oltp_txn_begin(other);
	assert_int_equal(oltp_txn_read(other, rig.table, 10, &record), OLTP_OK);
	stats = rig_demand(&rig, 0, 500);
	assert_true(stats.unanswered_bytes > 0);
	assert_int_equal(stats.unanswered_bytes, stats.held_bytes);
	/* What it reads has not changed under it. */
	assert_true(rig_record_is(record, 10, 0));
	oltp_txn_abort(other);
	stats = rig_demand(&rig, 0, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 0);
	oltp_worker_destroy(other);
	rig_close(&rig);
}

/* The time of a demand that was taken back is no part of the next one's. */
static void test_time_of_a_demand_taken_back(void **state)
{
	(void)state;
	struct oltp_memory_stats stats;
	uint64_t start_ns;
	struct rig rig;

	/* Without a disk, the one block with rows cannot be given. */
	rig_open(&rig, OLTP_CC_NO_WAIT, 8 * MIB, false, 0);
	rig_insert(&rig, 0, 10);
	oltp_blocks_native_set_limit(rig.blocks, 0, clock_now_ns() + DEADLINE_NS);
	for (int ms = 0; ms < (int)RIG_DEADLINE_MS && rig_stats(&rig).unused_bytes; ms++)
		rig_sleep_ms(1);
	oltp_blocks_native_set_limit(rig.blocks, 8 * MIB, 0);
	rig_sleep_ms(200);
	for (uint64_t key = 0; key < 10; key++) {
		oltp_txn_begin(rig.w);
		assert_int_equal(oltp_txn_delete(rig.w, rig.table, key), OLTP_OK);
		assert_int_equal(oltp_txn_commit(rig.w), OLTP_OK);
	}
	start_ns = clock_now_ns();
	stats = rig_demand(&rig, 0, RIG_DEADLINE_MS);
	assert_int_equal(stats.held_bytes, 0);
	assert_true(stats.last_demand_ns <= clock_now_ns() - start_ns);
	rig_close(&rig);
}

/* All memory is full of another one's rows: one of its blocks is emptied. */
static void test_table_without_a_block(void **state)
{
	(void)state;
	struct oltp_table *first;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	rig_insert(&rig, 0, 8000);
	first = rig.table;
	assert_int_equal(oltp_table_create(rig.engine, RIG_RECORD_BYTES, 100, &rig.table), 0);
	rig_insert(&rig, 0, 10);
	assert_int_equal(rig_scan(&rig, 10, NULL), 0);
	rig.table = first;
	assert_int_equal(rig_scan(&rig, 8000, NULL), 0);
	assert_true(rig_stats(&rig).held_bytes <= 4 * MIB);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_wait),
		cmocka_unit_test(test_wait_die),
		cmocka_unit_test(test_wound_wait),
		cmocka_unit_test(test_demand_under_load_is_met),
		cmocka_unit_test(test_open_transaction_stands_in_the_way),
		cmocka_unit_test(test_time_of_a_demand_taken_back),
		cmocka_unit_test(test_table_without_a_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
