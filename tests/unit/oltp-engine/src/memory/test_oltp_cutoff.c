// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cut-offs by value: the ages that they make in each table, and which records go in an engine that
 * is told one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/cutoff.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"
#include "recency_members.h"

#define SEC		1000000000ull
#define ROWS		320u
#define KEYS		8000u
/* In each of two tables; they fill four blocks nearly. */
#define TABLE_KEYS	8000u

/* Two tables: ages 1 s to 320 s, the second of records twice the size, four times the cost. */
static uint32_t made_up(struct oltp_table *tables, struct oltp_memory_sample *samples)
{
	for (uint32_t i = 0; i < 2 * ROWS; i++) {
		uint32_t t = i % 2;

		samples[i] = (struct oltp_memory_sample){
			.table = &tables[t],
			.bytes = t ? 2048 : 1024,
			.is_resident = true,
			.last_ns = (1 + i / 2) * SEC,
			.before_ns = 2 * (1 + i / 2) * SEC,
			.reread_ns = t ? 400000 : 100000,
			.expected = 1,
			.stands_for_bytes = 1 << 20,
		};
	}
	return 2 * ROWS;
}

static void test_ages(void **state)
{
	static struct oltp_memory_sample samples[2 * ROWS];
	static struct oltp_table tables[2];
	uint64_t ages[OLTP_TABLES_MAX];
	/* 100 us, 1 KiB, once in 200 s: 512000 ns per s and MiB; of the other table, in 400 s. */
	const double cutoff = 512000;

	(void)state;
	tables[1].id = 1;
	cutoff_ages(samples, made_up(tables, samples), cutoff, 1, ages);
	/* A class is of ten. */
	assert_in_range(ages[0], 90 * SEC, 110 * SEC);
	assert_in_range(ages[1], 190 * SEC, 210 * SEC);
	for (uint32_t i = 2; i < OLTP_TABLES_MAX; i++)
		assert_int_equal(ages[i], CUTOFF_NONE);
	/* Nothing is worth so little; all is worth less than that. */
	cutoff_ages(samples, made_up(tables, samples), 1, 1, ages);
	assert_int_equal(ages[0], CUTOFF_NONE);
	assert_int_equal(ages[1], CUTOFF_NONE);
	cutoff_ages(samples, made_up(tables, samples), 1e12, 1, ages);
	assert_int_equal(ages[0], 0);
	assert_int_equal(ages[1], 0);
	/* Only so much is wanted: what is worth least. */
	cutoff_ages(samples, made_up(tables, samples), cutoff, 0.25, ages);
	assert_in_range(ages[0], 155 * SEC, 185 * SEC);
	assert_in_range(ages[1], 300 * SEC, CUTOFF_NONE);
	cutoff_ages(samples, 0, cutoff, 0.25, ages);
	assert_int_equal(ages[0], CUTOFF_NONE);
}

/* What is cold is not in memory: it is neither worth anything there nor in the way. */
static void test_cold_ones_do_not_count(void **state)
{
	static struct oltp_memory_sample samples[2 * ROWS];
	static struct oltp_table tables[2];
	uint64_t ages[OLTP_TABLES_MAX];
	uint32_t n = made_up(tables, samples);

	(void)state;
	tables[1].id = 1;
	for (uint32_t i = 1; i < n; i += 2)
		samples[i].is_resident = false;
	cutoff_ages(samples, n, 1e12, 1, ages);
	assert_int_equal(ages[0], 0);
	assert_int_equal(ages[1], CUTOFF_NONE);
}

static void test_clock(void **state)
{
	static struct recency_clock clock;

	(void)state;
	assert_int_equal(recency_clock_epoch(&clock, 5), 0);
	for (uint64_t i = 1; i <= 10000; i++)
		recency_clock_tick(&clock, 1000 + i, i * SEC);
	assert_int_equal(recency_clock_epoch(&clock, 20000 * SEC), 11000);
	assert_int_equal(recency_clock_epoch(&clock, 9995 * SEC + 1), 10995);
	/* Less exactly, the longer ago; never younger than asked for. */
	for (uint64_t age = 1; age < 9000; age *= 3) {
		uint64_t epoch = recency_clock_epoch(&clock, (10000 - age) * SEC);

		assert_in_range(epoch, 11000 - age - age / 15 - 1, 11000 - age);
	}
}

static void wait_looks(struct rig *rig, uint32_t turns)
{
	struct oltp_memory_recency recency;
	uint64_t until = 0;

	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		assert_int_equal(oltp_memory_recency_read(rig->engine, &recency), 0);
		until = until ?: recency.looks + turns;
		if (recency.looks >= until)
			return;
		rig_sleep_ms(1);
	}
	fail_msg("nobody looks");
}

static void wait_cost(struct rig *rig, struct oltp_memory_sample *ret_samples, uint32_t *ret_n)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		*ret_n = oltp_memory_sample_read(rig->engine, ret_samples, SAMPLES);
		if (*ret_n && oltp_memory_sample_value(rig->engine, ret_samples) != OLTP_NOT_KNOWN)
			return;
		rig_sleep_ms(1);
	}
	fail_msg("nobody knows what reading costs");
}

/* What reading costs is measured although nothing was ever on disk, and leaves nothing there. */
static void test_probe(void **state)
{
	static struct oltp_memory_sample samples[SAMPLES];
	struct oltp_memory_stats stats;
	struct rig rig;
	uint32_t n;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_insert(&rig, 0, KEYS);
	wait_looks(&rig, TURNS_ALL);
	n = oltp_memory_sample_read(rig.engine, samples, SAMPLES);
	assert_true(n > 0);
	assert_int_equal(samples[0].reread_ns, 0);
	wait_cost(&rig, samples, &n);
	assert_true(samples[0].reread_ns > 0);
	assert_in_range(oltp_memory_sample_value(rig.engine, &samples[0]), 1, OLTP_WORTH_ALL - 1);
	stats = rig_stats(&rig);
	assert_int_equal(stats.file_used_bytes, 0);
	assert_int_equal(stats.cold_records + stats.cold_reads, 0);
	assert_int_equal(stats.evicted_records + stats.write_errors, 0);
	rig_close(&rig);
	/* Without a disk there is no price. */
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, false, 0);
	assert_int_equal(oltp_memory_sample_value(rig.engine, &samples[0]), OLTP_WORTH_ALL);
	rig_close(&rig);
}

/*
 * Every eighth record is in use, wherever it lies; the cut-off lies between. What is given is
 * exactly what was demanded, and none of those in use went to disk.
 */
static void test_engine(void **state)
{
	static struct oltp_memory_sample samples[SAMPLES];
	uint64_t in_use = UINT64_MAX, resting = 0, held;
	uint32_t n, n_cold = 0, n_hot_cold = 0;
	struct oltp_memory_node node;
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_insert(&rig, 0, KEYS);
	wait_looks(&rig, TURNS_ALL);
	rig_age(&rig);
	for (int round = 0; round < 3; round++) {
		for (uint64_t key = 0; key < KEYS; key += 8)
			assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
		wait_looks(&rig, 25);
	}
	wait_cost(&rig, samples, &n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = oltp_memory_sample_value(rig.engine, &samples[i]);

		/* Twice since they are watched, or at most once. */
		if (samples[i].before_ns != OLTP_NOT_KNOWN)
			in_use = value < in_use ? value : in_use;
		else
			resting = value > resting ? value : resting;
	}
	assert_true(in_use != UINT64_MAX && resting > 0 && in_use > resting);
	assert_int_equal(oltp_memory_node_read(rig.engine, 0, &node), 0);
	assert_int_equal(node.resident_bytes, rig_stats(&rig).resident_bytes);
	assert_int_equal(node.held_bytes, rig_stats(&rig).held_bytes);
	assert_int_equal(oltp_memory_node_read(rig.engine, OLTP_NODES_MAX, &node), -ENXIO);
	oltp_memory_cutoff(rig.engine, 0, in_use);
	oltp_memory_cutoff(rig.engine, OLTP_NODES_MAX, 1);
	held = 6 * MIB;
	assert_true(node.resident_bytes > held);
	rig_demand(&rig, held, RIG_DEADLINE_MS);
	assert_int_equal(rig_stats(&rig).held_bytes, held);
	for (uint64_t key = 0; key < KEYS; key++) {
		bool is_cold = rig_is_cold(&rig, key);

		n_cold += is_cold;
		n_hot_cold += is_cold && key % 8 == 0;
	}
	/* A block that is not empty after all may spill what is left in it. */
	assert_true(n_cold > 0);
	assert_in_range(n_hot_cold, 0, n_cold / 50);
	assert_int_equal(rig_scan(&rig, KEYS, NULL), 0);
	rig_close(&rig);
}

/*
 * A thread that stays in its transaction keeps the slots of records that went from getting free. A
 * demand without a deadline is given up then: the manager has other nodes to serve.
 */
static void test_stuck_transaction(void **state)
{
	static struct oltp_memory_sample samples[SAMPLES];
	uint64_t demands;
	struct rig rig;
	uint32_t n;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_insert(&rig, 0, KEYS);
	wait_looks(&rig, TURNS_ALL);
	rig_age(&rig);
	wait_cost(&rig, samples, &n);
	oltp_memory_cutoff(rig.engine, 0, OLTP_WORTH_ALL - 1);
	assert_int_equal(oltp_txn_begin(rig.w), OLTP_OK);
	demands = rig_stats(&rig).unanswered_demands;
	oltp_memory_limit(rig.engine, 0, 6 * MIB, 0);
	for (uint32_t ms = 0; rig_stats(&rig).unanswered_demands == demands; ms++) {
		if (ms == RIG_DEADLINE_MS)
			fail_msg("the manager waits for the transaction");
		rig_sleep_ms(1);
	}
	oltp_txn_abort(rig.w);
	rig_demand(&rig, 6 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(rig_stats(&rig).held_bytes, 6 * MIB);
	assert_int_equal(rig_scan(&rig, KEYS, NULL), 0);
	rig_close(&rig);
}

static void read_all(struct rig *rig)
{
	for (uint64_t key = 0; key < TABLE_KEYS; key++)
		assert_int_equal(rig_read(rig, key, 0), OLTP_OK);
}

/* The least that any of the first table is worth, and the most of the other. */
static void values_of(struct rig *rig, const struct oltp_table *table, uint64_t *ret_first,
		      uint64_t *ret_other)
{
	static struct oltp_memory_sample samples[SAMPLES];
	uint32_t n;

	*ret_first = UINT64_MAX;
	*ret_other = 0;
	wait_cost(rig, samples, &n);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t value = oltp_memory_sample_value(rig->engine, &samples[i]);

		if (samples[i].table == table)
			*ret_other = value > *ret_other ? value : *ret_other;
		else
			*ret_first = value < *ret_first ? value : *ret_first;
	}
}

/*
 * Two tables; the records of one were used again and again, until those of the other, in no use for
 * long, were read once. By age the first would go; by value the other does. On a slow machine a
 * block of the first may go by age all the same.
 */
static void test_tables(void **state)
{
	uint64_t often = 0, once = 0;
	uint32_t n_often_cold = 0;
	struct rig rig, other;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 32 * MIB, true, 0);
	other = rig;
	assert_int_equal(oltp_table_create(rig.engine, RIG_RECORD_BYTES, TABLE_KEYS,
					   &other.table), 0);
	rig_insert(&other, 0, TABLE_KEYS);
	rig_insert(&rig, 0, TABLE_KEYS);
	wait_looks(&rig, 100);
	for (int round = 0; round < 3; round++) {
		read_all(&rig);
		wait_looks(&rig, 10);
	}
	rig_age(&rig);
	read_all(&other);
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && often <= once; ms += 10) {
		rig_sleep_ms(10);
		values_of(&rig, other.table, &often, &once);
	}
	assert_true(once && often > once);
	oltp_memory_cutoff(rig.engine, 0, often);
	rig_demand(&rig, 12 * MIB, RIG_DEADLINE_MS);
	assert_int_equal(rig_stats(&rig).held_bytes, 12 * MIB);
	for (uint64_t key = 0; key < TABLE_KEYS; key++)
		n_often_cold += rig_is_cold(&rig, key);
	assert_in_range(n_often_cold, 0, RIG_PER_BLOCK + TABLE_KEYS / 20);
	assert_in_range(rig_stats(&rig).cold_records - n_often_cold, 1000, 6000);
	assert_int_equal(rig_scan(&rig, TABLE_KEYS, NULL), 0);
	assert_int_equal(rig_scan(&other, TABLE_KEYS, NULL), 0);
	rig_close(&rig);
}

/* While nothing is watched, nothing is known; then again everything. */
static void test_watch(void **state)
{
	static struct oltp_memory_sample samples[SAMPLES];
	struct rig rig;

	(void)state;
	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	rig_insert(&rig, 0, KEYS);
	wait_looks(&rig, TURNS_ALL);
	assert_in_range(oltp_memory_sample_read(rig.engine, samples, SAMPLES), 256, 1024);
	oltp_memory_watch(rig.engine, false);
	assert_int_equal(oltp_memory_sample_read(rig.engine, samples, SAMPLES), 0);
	rig_sleep_ms(50);
	assert_int_equal(oltp_memory_sample_read(rig.engine, samples, SAMPLES), 0);
	oltp_memory_watch(rig.engine, true);
	wait_looks(&rig, TURNS_ALL);
	assert_in_range(oltp_memory_sample_read(rig.engine, samples, SAMPLES), 256, 1024);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_cold_ones_do_not_count),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_stuck_transaction),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
