// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who makes way for whom under WOUND_WAIT, step by step, with an old transaction on a thread of its
 * own; and that no scheme gets stuck (G3), whatever the transactions do to a few hot records.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/src/txn/engine.h"
#include "tests/lib/chance.h"

#define KEYS		6u
/* Longer is a hang, however busy the machine is. */
#define DEADLINE_S	100

enum what {
	READ,
	UPDATE,
	ADD,
	DELETE,
};

/* Two transactions have begun; the old one is older. */
struct duel {
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *old, *young;
};

struct step {
	struct oltp_worker *worker;
	struct oltp_table *table;
	enum what what;
	uint64_t key;
	enum oltp_rc rc;
	pthread_t thread;
};

static enum oltp_rc do_step(struct oltp_worker *worker, struct oltp_table *table, enum what what,
			    uint64_t key)
{
	const struct oltp_span span = { 0, 8 };
	const uint64_t zero = 0;
	const void *found;
	void *record;
	enum oltp_rc rc = OLTP_INVALID;

	switch (what) {
	case READ:
		return oltp_txn_read(worker, table, key, &found);
	case ADD:
		return oltp_txn_insert(worker, table, key, &zero);
	case DELETE:
		return oltp_txn_delete(worker, table, key);
	case UPDATE:
		rc = oltp_txn_update(worker, table, key, &span, 1, &record);
		if (!rc)
			++*(uint64_t *)record;
		return rc;
	}
	return rc;
}

static void *step_main(void *arg)
{
	struct step *step = arg;

	step->rc = do_step(step->worker, step->table, step->what, step->key);
	return NULL;
}

static void step_start(struct step *step, struct duel *duel, struct oltp_worker *worker,
		       enum what what, uint64_t key)
{
	*step = (struct step){ .worker = worker, .table = duel->table, .what = what, .key = key };
	assert_int_equal(pthread_create(&step->thread, NULL, step_main, step), 0);
}

static void join(pthread_t thread)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	assert_int_equal(pthread_timedjoin_np(thread, NULL, &until), 0);
}

static enum oltp_rc step_end(struct step *step)
{
	join(step->thread);
	return step->rc;
}

static bool is_wounded(const struct oltp_worker *worker)
{
	return lock_slot_is_wounded(worker->slot, worker->ts);
}

static void wait_until_wounded(const struct oltp_worker *worker)
{
	time_t until = time(NULL) + DEADLINE_S;

	while (!is_wounded(worker)) {
		assert_true(time(NULL) < until);
		sched_yield();
	}
}

static struct oltp_worker_stats stats_of(const struct oltp_worker *worker)
{
	struct oltp_worker_stats stats;

	oltp_worker_stats_read(worker, &stats);
	return stats;
}

static void fill(struct oltp_engine *engine, struct oltp_table *table)
{
	struct oltp_worker *w;

	assert_int_equal(oltp_worker_create(engine, &w), 0);
	assert_int_equal(oltp_txn_begin(w), OLTP_OK);
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(do_step(w, table, ADD, key), OLTP_OK);
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
	oltp_worker_destroy(w);
}

static void duel_open(struct duel *duel)
{
	const struct oltp_config config = { .cc = OLTP_CC_WOUND_WAIT, .node = -1 };

	assert_int_equal(oltp_engine_open(&config, &duel->engine), 0);
	assert_int_equal(oltp_table_create(duel->engine, 8, KEYS, &duel->table), 0);
	fill(duel->engine, duel->table);
	assert_int_equal(oltp_worker_create(duel->engine, &duel->old), 0);
	assert_int_equal(oltp_worker_create(duel->engine, &duel->young), 0);
	assert_int_equal(oltp_txn_begin(duel->old), OLTP_OK);
	assert_int_equal(oltp_txn_begin(duel->young), OLTP_OK);
	/* Nothing is to depend on how long the other thread takes: who waits goes on waiting. */
	duel->young->n_retries = LOCK_PATIENT_AFTER;
	assert_true(duel->old->ts < duel->young->ts);
}

static void duel_close(struct duel *duel)
{
	oltp_worker_destroy(duel->old);
	oltp_worker_destroy(duel->young);
	oltp_engine_close(duel->engine);
}

static void test_wounded_one_makes_way(void **state)
{
	(void)state;
	struct duel d;
	struct step step;
	uint64_t ts;

	duel_open(&d);
	ts = d.young->ts;
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	step_start(&step, &d, d.old, READ, 1);
	wait_until_wounded(d.young);
	/* At its next access, although nobody is at that record. */
	assert_int_equal(do_step(d.young, d.table, READ, 2), OLTP_CONFLICT);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_INVALID);
	oltp_txn_abort(d.young);
	assert_int_equal(step_end(&step), OLTP_OK);
	assert_int_equal(stats_of(d.young).wounds, 1);
	assert_int_equal(stats_of(d.young).conflicts, 1);
	assert_int_equal(stats_of(d.old).waits, 1);
	/* It is as old when it is run again, and nothing is left of the wound. */
	assert_int_equal(oltp_txn_begin(d.young), OLTP_OK);
	assert_int_equal(d.young->ts, ts);
	assert_int_equal(do_step(d.young, d.table, READ, 2), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.old), OLTP_OK);
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	assert_int_equal(stats_of(d.old).conflicts, 0);
	duel_close(&d);
}

/* As one that is prepared and may not fail any more. */
static void test_wounded_one_may_still_commit(void **state)
{
	(void)state;
	struct duel d;
	struct step step;
	uint64_t ts;

	duel_open(&d);
	ts = d.young->ts;
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	step_start(&step, &d, d.old, UPDATE, 1);
	wait_until_wounded(d.young);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	assert_int_equal(step_end(&step), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.old), OLTP_OK);
	/* The next one may have the same age: it was not meant. */
	assert_int_equal(oltp_txn_begin(d.young), OLTP_OK);
	assert_int_equal(d.young->ts >> LOCK_TS_WORKER_BITS, ts >> LOCK_TS_WORKER_BITS);
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	assert_int_equal(stats_of(d.young).conflicts, 0);
	assert_int_equal(stats_of(d.young).wounds, 0);
	duel_close(&d);
}

/* Each has what the other wants; whoever comes last, the young one makes way. */
static void test_circles(void **state)
{
	(void)state;
	static const struct {
		enum what held_by_old, held_by_young, wanted_by_old, wanted_by_young;
		uint64_t key_of_old, key_of_young;
	} circles[] = {
		{ UPDATE, UPDATE, UPDATE, UPDATE, 1, 2 },
		{ UPDATE, UPDATE, READ, READ, 1, 2 },
		{ UPDATE, READ, UPDATE, READ, 1, 2 },
		{ READ, UPDATE, READ, UPDATE, 1, 2 },
		{ READ, READ, UPDATE, UPDATE, 1, 2 },
		/* Both read it, then both want to write it. */
		{ READ, READ, UPDATE, UPDATE, 3, 3 },
		{ READ, READ, DELETE, UPDATE, 3, 3 },
		{ ADD, DELETE, UPDATE, READ, KEYS + 1, 2 },
		{ DELETE, ADD, ADD, ADD, 2, KEYS + 1 },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(circles); i++) {
		const bool young_first = i % 2;
		struct step steps[2];
		struct duel d;

		duel_open(&d);
		assert_int_equal(do_step(d.old, d.table, circles[i / 2].held_by_old,
					 circles[i / 2].key_of_old), OLTP_OK);
		assert_int_equal(do_step(d.young, d.table, circles[i / 2].held_by_young,
					 circles[i / 2].key_of_young), OLTP_OK);
		for (int n = 0; n < 2; n++) {
			if ((n == 0) == young_first)
				step_start(&steps[0], &d, d.young, circles[i / 2].wanted_by_young,
					   circles[i / 2].key_of_old);
			else
				step_start(&steps[1], &d, d.old, circles[i / 2].wanted_by_old,
					   circles[i / 2].key_of_young);
		}
		assert_int_equal(step_end(&steps[0]), OLTP_CONFLICT);
		assert_int_equal(stats_of(d.young).wounds, 1);
		oltp_txn_abort(d.young);
		assert_int_equal(step_end(&steps[1]), OLTP_OK);
		assert_int_equal(oltp_txn_commit(d.old), OLTP_OK);
		assert_int_equal(stats_of(d.old).conflicts, 0);
		duel_close(&d);
	}
}

static void test_young_one_waits_for_the_old(void **state)
{
	(void)state;
	struct duel d;
	struct step step;
	_Atomic uint64_t *word;

	duel_open(&d);
	assert_int_equal(do_step(d.old, d.table, UPDATE, 1), OLTP_OK);
	word = &d.old->accesses[0].record->lock;
	step_start(&step, &d, d.young, UPDATE, 1);
	for (time_t until = time(NULL) + DEADLINE_S; !(atomic_load(word) & LOCK_WAITER);) {
		assert_true(time(NULL) < until);
		sched_yield();
	}
	assert_false(is_wounded(d.old));
	assert_int_equal(do_step(d.old, d.table, UPDATE, 2), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.old), OLTP_OK);
	assert_int_equal(step_end(&step), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	assert_int_equal(stats_of(d.young).waits, 1);
	assert_int_equal(stats_of(d.young).conflicts, 0);
	duel_close(&d);
}

/* A worker leaves wounded; its number goes to another one, and perhaps its age. */
static void test_number_is_used_again(void **state)
{
	(void)state;
	struct duel d;
	struct step step;
	uint32_t number;

	duel_open(&d);
	number = d.young->number;
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	step_start(&step, &d, d.old, UPDATE, 1);
	wait_until_wounded(d.young);
	oltp_worker_destroy(d.young);
	assert_int_equal(step_end(&step), OLTP_OK);
	assert_int_equal(oltp_worker_create(d.engine, &d.young), 0);
	assert_int_equal(d.young->number, number);
	assert_int_equal(oltp_txn_begin(d.young), OLTP_OK);
	assert_false(is_wounded(d.young));
	assert_int_equal(do_step(d.young, d.table, UPDATE, 2), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	duel_close(&d);
}

static int see(void *ctx, uint64_t key, const void *record)
{
	(void)key;
	(void)record;
	++*(uint32_t *)ctx;
	return 0;
}

static void *scan_main(void *arg)
{
	struct step *step = arg;
	uint32_t n = 0;

	step->rc = oltp_table_scan(step->table, see, &n) || n != KEYS ? OLTP_INVALID : OLTP_OK;
	return NULL;
}

/* It locks records and is no transaction: it waits for old and young, and nobody makes way. */
static void test_table_scan_wounds_nobody(void **state)
{
	(void)state;
	struct duel d;
	struct step step;

	duel_open(&d);
	assert_int_equal(do_step(d.young, d.table, UPDATE, 1), OLTP_OK);
	step = (struct step){ .table = d.table };
	assert_int_equal(pthread_create(&step.thread, NULL, scan_main, &step), 0);
	for (int i = 0; i < 10; i++)
		sched_yield();
	assert_false(is_wounded(d.young));
	assert_int_equal(do_step(d.young, d.table, UPDATE, 2), OLTP_OK);
	assert_int_equal(oltp_txn_commit(d.young), OLTP_OK);
	assert_int_equal(step_end(&step), OLTP_OK);
	duel_close(&d);
}

#define THREADS		6u
#define TXNS		150u
#define OPS		4u

struct runner {
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint64_t random, updates;
	pthread_t thread;
};

static uint32_t next_random(struct runner *r, uint32_t below)
{
	return (uint32_t)((chance_step(&r->random) >> 33) % below);
}

/* Any order of keys, and most of them read first: upgrades cross all the time. */
static enum oltp_rc try_once(struct runner *r, struct oltp_worker *w, uint32_t *ret_updates)
{
	enum oltp_rc rc = oltp_txn_begin(w);

	*ret_updates = 0;
	for (uint32_t i = 0; !rc && i < OPS; i++) {
		uint64_t key = next_random(r, KEYS);
		bool update = next_random(r, 2);

		if (next_random(r, 4))
			rc = do_step(w, r->table, READ, key);
		if (!next_random(r, 128))
			sched_yield();
		if (!rc && update) {
			rc = do_step(w, r->table, UPDATE, key);
			*ret_updates += !rc;
		}
	}
	/* One row that comes and goes. */
	if (!rc && !next_random(r, 4)) {
		rc = do_step(w, r->table, ADD, KEYS);
		if (rc == OLTP_EXISTS)
			rc = do_step(w, r->table, DELETE, KEYS);
	}
	if (!rc)
		rc = oltp_txn_commit(w);
	if (rc)
		oltp_txn_abort(w);
	return rc;
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	struct oltp_worker *w = NULL;

	for (uint32_t i = 0; i < TXNS; i++) {
		enum oltp_rc rc;
		uint32_t updates;

		/* Workers come and go, and their numbers with them. */
		if (i % 16 == 0) {
			oltp_worker_destroy(w);
			if (oltp_worker_create(r->engine, &w))
				return r;
		}
		/* On a busy machine it takes milliseconds to get the CPU back. */
		for (uint32_t n = 1; (rc = try_once(r, w, &updates)) == OLTP_CONFLICT; n++) {
			if (n % 8 == 0)
				sched_yield();
		}
		if (rc)
			return r;
		r->updates += updates;
	}
	oltp_worker_destroy(w);
	return NULL;
}

static int sum_up(void *ctx, uint64_t key, const void *record)
{
	if (key < KEYS)
		*(uint64_t *)ctx += *(const uint64_t *)record;
	return 0;
}

static void nobody_gets_stuck(enum oltp_cc cc)
{
	const struct oltp_config config = { .cc = cc, .node = -1 };
	struct runner runners[THREADS];
	struct oltp_engine *engine;
	struct oltp_table *table;
	uint64_t updates = 0, found = 0;

	assert_int_equal(oltp_engine_open(&config, &engine), 0);
	assert_int_equal(oltp_table_create(engine, 8, KEYS, &table), 0);
	fill(engine, table);
	for (uint32_t i = 0; i < THREADS; i++) {
		runners[i] = (struct runner){ .engine = engine, .table = table, .random = i + 1 };
		assert_int_equal(pthread_create(&runners[i].thread, NULL, runner_main,
						&runners[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		join(runners[i].thread);
		updates += runners[i].updates;
	}
	assert_int_equal(oltp_table_scan(table, sum_up, &found), 0);
	assert_int_equal(found, updates);
	oltp_engine_close(engine);
}

static void test_nobody_gets_stuck(void **state)
{
	(void)state;
	for (enum oltp_cc cc = OLTP_CC_NO_WAIT; cc <= OLTP_CC_WOUND_WAIT; cc++)
		nobody_gets_stuck(cc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wounded_one_makes_way),
		cmocka_unit_test(test_wounded_one_may_still_commit),
		cmocka_unit_test(test_circles),
		cmocka_unit_test(test_young_one_waits_for_the_old),
		cmocka_unit_test(test_number_is_used_again),
		cmocka_unit_test(test_table_scan_wounds_nobody),
		cmocka_unit_test(test_nobody_gets_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
