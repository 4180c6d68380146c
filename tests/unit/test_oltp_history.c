// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * G1: random histories of the engine under every scheme are serializable, also while all records go
 * to disk and come back (G5). First the checker itself, against histories made by hand.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp_history.h"
#include "oltp_memory.h"

/* R(txn, key, version, writer), W(txn, key, version) */
#define R(t, k, v, w)	{ t, k, v, w, false }
#define W(t, k, v)	{ t, k, v, 0, true }

static void test_checker_accepts_serial(void **state)
{
	(void)state;
	/* 2 comes before 1 although it is listed after it. */
	static const struct history_op ops[] = {
		R(1, 0, 1, 2), W(1, 0, 2), R(1, 1, 0, 0), R(2, 0, 0, 0), W(2, 0, 1),
		R(3, 0, 2, 1), R(3, 1, 0, 0), W(3, 1, 1),
	};

	assert_int_equal(history_check(ops, ARRAY_SIZE(ops), 3, 2), HISTORY_SERIALIZABLE);
	assert_int_equal(history_check(ops, 0, 0, 2), HISTORY_SERIALIZABLE);
}

static void test_checker_finds_write_skew(void **state)
{
	(void)state;
	static const struct history_op ops[] = {
		R(1, 0, 0, 0), R(1, 1, 0, 0), W(1, 0, 1),
		R(2, 0, 0, 0), R(2, 1, 0, 0), W(2, 1, 1),
	};

	assert_int_equal(history_check(ops, ARRAY_SIZE(ops), 2, 2), HISTORY_CYCLE);
}

static void test_checker_finds_a_cycle_of_three(void **state)
{
	(void)state;
	static const struct history_op ops[] = {
		R(1, 0, 0, 0), W(1, 1, 1), R(2, 1, 0, 0), W(2, 2, 1), R(3, 2, 0, 0), W(3, 0, 1),
	};

	assert_int_equal(history_check(ops, ARRAY_SIZE(ops), 3, 3), HISTORY_CYCLE);
	/* Without its last write the same history is fine. */
	assert_int_equal(history_check(ops, ARRAY_SIZE(ops) - 1, 3, 3), HISTORY_SERIALIZABLE);
}

static void test_checker_finds_inconsistent_read(void **state)
{
	(void)state;
	/* 1 writes both, 2 sees one of them before and the other one after. */
	static const struct history_op ops[] = {
		W(1, 0, 1), W(1, 1, 1), R(2, 0, 0, 0), R(2, 1, 1, 1),
	};

	assert_int_equal(history_check(ops, ARRAY_SIZE(ops), 2, 2), HISTORY_CYCLE);
}

static void test_checker_finds_lost_updates(void **state)
{
	(void)state;
	static const struct history_op twice[] = { W(1, 0, 1), W(2, 0, 1) };
	static const struct history_op gap[] = { W(1, 0, 1), W(2, 0, 3) };

	assert_int_equal(history_check(twice, 2, 2, 1), HISTORY_LOST_UPDATE);
	assert_int_equal(history_check(gap, 2, 2, 1), HISTORY_LOST_UPDATE);
}

static void test_checker_finds_dirty_reads(void **state)
{
	(void)state;
	/* Nobody who committed wrote it; or somebody else did than the record said. */
	static const struct history_op aborted[] = { R(1, 0, 1, 7) };
	static const struct history_op other[] = { W(1, 0, 1), R(2, 0, 1, 3) };

	assert_int_equal(history_check(aborted, 1, 7, 1), HISTORY_DIRTY_READ);
	assert_int_equal(history_check(other, 2, 3, 1), HISTORY_DIRTY_READ);
	assert_int_equal(history_check(aborted, 1, 0, 1), HISTORY_BAD);
}

#define KEYS		8u
#define THREADS		4u
#define TXNS		300u	/* committed, per thread */
#define OPS_MAX		5u
#define LOG_MAX		(TXNS * OPS_MAX * 2)

/* The writer is stored twice, around the version: a torn read would show. */
struct versioned {
	uint32_t writer, version, writer_again, padding;
};

struct recorder {
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint32_t number;
	uint64_t random;
	struct history_op *log;
	size_t n;
	uint64_t conflicts, colds;
	bool torn;
	bool is_slow;		/* pauses, so that something can happen meanwhile */
	pthread_t thread;
};

/* Takes the only block of records away and gives it back, over and over. */
struct thief {
	struct oltp_blocks_native *blocks;
	_Atomic bool stop;
	pthread_t thread;
};

static void *thief_main(void *arg)
{
	struct thief *thief = arg;

	for (uint32_t i = 0; !atomic_load(&thief->stop); i++) {
		oltp_blocks_native_set_limit(thief->blocks, i % 2 ? 2 * MIB : 0, 0);
		rig_sleep_ms(1 + i % 3);
	}
	oltp_blocks_native_set_limit(thief->blocks, 2 * MIB, 0);
	return NULL;
}

static uint32_t next_random(struct recorder *r, uint32_t below)
{
	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((r->random >> 33) % below);
}

static enum oltp_rc do_read(struct recorder *r, struct oltp_worker *w, uint32_t txn, uint32_t key)
{
	const struct versioned *v;
	const void *record;
	enum oltp_rc rc = oltp_txn_read(w, r->table, key, &record);

	if (rc)
		return rc;
	v = record;
	r->torn |= v->writer != v->writer_again;
	r->log[r->n++] = (struct history_op){ txn, key, v->version, v->writer, false };
	return OLTP_OK;
}

static enum oltp_rc do_write(struct recorder *r, struct oltp_worker *w, uint32_t txn, uint32_t key)
{
	const struct oltp_span span = { 0, sizeof(struct versioned) };
	struct versioned *v;
	void *record;
	enum oltp_rc rc = oltp_txn_update(w, r->table, key, &span, 1, &record);

	if (rc)
		return rc;
	v = record;
	r->torn |= v->writer != v->writer_again;
	v->writer = txn;
	v->version++;
	if (!next_random(r, 16))
		sched_yield();
	v->writer_again = txn;
	r->log[r->n++] = (struct history_op){ txn, key, v->version, 0, true };
	return OLTP_OK;
}

/* Reads, writes and reads followed by writes (upgrades) of different keys, in any order. */
static enum oltp_rc try_once(struct recorder *r, struct oltp_worker *w, uint32_t txn)
{
	uint32_t n_ops = 2 + next_random(r, OPS_MAX - 1);
	uint32_t key = next_random(r, KEYS);
	enum oltp_rc rc = oltp_txn_begin(w);

	for (uint32_t i = 0; !rc && i < n_ops; i++) {
		uint32_t kind = next_random(r, 3);

		/* 3 and 8 have no common divisor: no key comes twice. */
		key = (key + 3) % KEYS;
		if (kind != 1)
			rc = do_read(r, w, txn, key);
		if (!next_random(r, 8))
			sched_yield();
		if (!rc && kind != 0)
			rc = do_write(r, w, txn, key);
	}
	/* Some give up of their own accord, after having written. */
	if (!rc && !next_random(r, 10))
		rc = OLTP_CONFLICT;
	if (!rc)
		return oltp_txn_commit(w);
	oltp_txn_abort(w);
	return rc;
}

static void *recorder_main(void *arg)
{
	struct recorder *r = arg;
	struct oltp_worker_stats stats;
	struct oltp_worker *w;

	if (oltp_worker_create(r->engine, &w))
		abort();
	for (uint32_t i = 0; i < TXNS; i++) {
		size_t start = r->n;
		enum oltp_rc rc;

		if (r->is_slow && i % 16 == 0)
			rig_sleep_ms(2);
		while ((rc = try_once(r, w, 1 + i * THREADS + r->number)) == OLTP_CONFLICT ||
		       rc == OLTP_COLD) {
			r->n = start;
			r->colds += rc == OLTP_COLD;
			if (rc == OLTP_COLD)
				oltp_cold_wait(w);
			else
				sched_yield();
		}
		if (rc)
			abort();
	}
	oltp_worker_stats_read(w, &stats);
	r->conflicts = stats.conflicts;
	oltp_worker_destroy(w);
	return NULL;
}

/* What transactions met. */
struct met {
	uint64_t conflicts, colds;
};

static void record_and_check(enum oltp_cc cc, uint64_t seed, bool moves, struct met *met)
{
	static struct history_op log[THREADS * LOG_MAX];
	struct recorder recorders[THREADS];
	struct versioned zero = { 0 };
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	struct oltp_config config = { .cc = cc };
	struct thief thief = { 0 };
	size_t n = 0;

	if (moves) {
		assert_int_equal(oltp_blocks_native_create(2 * MIB, 0, &thief.blocks), 0);
		config.blocks = &oltp_blocks_native_ops;
		config.blocks_ctx = thief.blocks;
		config.cold_dir = rig_dir();
	}
	assert_int_equal(oltp_engine_open(&config, &engine), 0);
	if (moves)
		oltp_blocks_native_attach(thief.blocks, engine);
	assert_int_equal(oltp_table_create(engine, sizeof(zero), KEYS, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	oltp_txn_begin(w);
	for (uint32_t key = 0; key < KEYS; key++)
		assert_int_equal(oltp_txn_insert(w, table, key, &zero), OLTP_OK);
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
	oltp_worker_destroy(w);

	if (moves)
		assert_int_equal(pthread_create(&thief.thread, NULL, thief_main, &thief), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		recorders[i] = (struct recorder){ .engine = engine, .table = table, .number = i,
						  .random = seed * THREADS + i,
						  .log = log + i * LOG_MAX,
						  .is_slow = moves };
		assert_int_equal(pthread_create(&recorders[i].thread, NULL, recorder_main,
						&recorders[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(recorders[i].thread, NULL);
		assert_false(recorders[i].torn);
		met->conflicts += recorders[i].conflicts;
		met->colds += recorders[i].colds;
		memmove(log + n, recorders[i].log, recorders[i].n * sizeof(*log));
		n += recorders[i].n;
	}
	assert_int_equal(history_check(log, n, THREADS * TXNS, KEYS), HISTORY_SERIALIZABLE);

	/* The same history with one read of the version before must not pass. */
	for (size_t i = 0; i < n; i++) {
		if (!log[i].is_write && log[i].version > 0 && log[i].writer != log[i].txn) {
			log[i].version--;
			break;
		}
	}
	assert_int_not_equal(history_check(log, n, THREADS * TXNS, KEYS), HISTORY_SERIALIZABLE);
	if (moves) {
		atomic_store(&thief.stop, true);
		pthread_join(thief.thread, NULL);
	}
	oltp_engine_close(engine);
	oltp_blocks_native_destroy(thief.blocks);
}

/* So few records are in use nearly all the time: some runs end before one has gone to disk. */
static void record_while_records_move(enum oltp_cc cc)
{
	struct met met = { 0, 0 };

	for (uint64_t seed = 1; seed <= 3 || (!met.colds && seed <= 40); seed++)
		record_and_check(cc, seed, true, &met);
	assert_true(met.colds > 0);
}

/*
 * Histories without a single conflict would prove little, but on a busy machine the threads may run
 * one after the other for a while.
 */
static void record(enum oltp_cc cc)
{
	struct met met = { 0, 0 };

	for (uint64_t seed = 1; seed <= 5 || (!met.conflicts && seed <= 200); seed++)
		record_and_check(cc, seed, false, &met);
	assert_true(met.conflicts > 0);
}

static void test_no_wait_is_serializable(void **state)
{
	(void)state;
	record(OLTP_CC_NO_WAIT);
}

static void test_wait_die_is_serializable(void **state)
{
	(void)state;
	record(OLTP_CC_WAIT_DIE);
}

static void test_wound_wait_is_serializable(void **state)
{
	(void)state;
	record(OLTP_CC_WOUND_WAIT);
}

static void test_no_wait_is_serializable_while_records_move(void **state)
{
	(void)state;
	record_while_records_move(OLTP_CC_NO_WAIT);
}

static void test_wait_die_is_serializable_while_records_move(void **state)
{
	(void)state;
	record_while_records_move(OLTP_CC_WAIT_DIE);
}

static void test_wound_wait_is_serializable_while_records_move(void **state)
{
	(void)state;
	record_while_records_move(OLTP_CC_WOUND_WAIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checker_accepts_serial),
		cmocka_unit_test(test_checker_finds_write_skew),
		cmocka_unit_test(test_checker_finds_a_cycle_of_three),
		cmocka_unit_test(test_checker_finds_inconsistent_read),
		cmocka_unit_test(test_checker_finds_lost_updates),
		cmocka_unit_test(test_checker_finds_dirty_reads),
		cmocka_unit_test(test_no_wait_is_serializable),
		cmocka_unit_test(test_wait_die_is_serializable),
		cmocka_unit_test(test_wound_wait_is_serializable),
		cmocka_unit_test(test_no_wait_is_serializable_while_records_move),
		cmocka_unit_test(test_wait_die_is_serializable_while_records_move),
		cmocka_unit_test(test_wound_wait_is_serializable_while_records_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
