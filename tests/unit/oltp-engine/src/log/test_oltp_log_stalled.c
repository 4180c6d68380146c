// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker whose CPU is taken away in the midst of an append to the log: others get durable without
 * it, and what it appended is in the log once, in a later group. It stops where the append reads
 * the record, whose page cannot be touched then.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "log_rig.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/log/log_private.h"

/* Rows of others are far from those of the one that is stopped. */
#define ROWS		1000u
#define KEY_BEFORE	0u
#define KEY_STOPPED	1u
#define KEY_OTHER	(ROWS - 1)
#define PAGE_BYTES	4096ul
/* What takes milliseconds may take so long on a busy machine; then it is a hang. */
#define LIMIT_S		120u

/* So often it is stopped, each time at its next attempt. */
#define STOPS		4u

static struct record *stopped_record;
static _Atomic uint32_t n_stops, n_released;
static _Thread_local uint32_t n_stops_wanted;	/* of this thread, later on */

static void page_protect(int prot)
{
	if (mprotect((void *)((uintptr_t)stopped_record & ~(PAGE_BYTES - 1)), PAGE_BYTES, prot))
		abort();
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	uintptr_t at = (uintptr_t)info->si_addr, record = (uintptr_t)stopped_record;
	uint32_t nth;

	(void)number;
	(void)context;
	if ((at ^ record) & ~(PAGE_BYTES - 1))
		abort();
	n_stops_wanted--;
	nth = atomic_fetch_add(&n_stops, 1) + 1;
	while (atomic_load(&n_released) < nth)
		sched_yield();
	page_protect(PROT_READ | PROT_WRITE);
}

int __real_log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes);
int __wrap_log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes);

/* Whoever was left begins in another chunk. */
int __wrap_log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes)
{
	if (n_stops_wanted && atomic_load(&n_stops))
		page_protect(PROT_NONE);
	return __real_log_chunk_open(buffer, epoch, bytes);
}

static int setup(void **state)
{
	alarm(LIMIT_S);
	return log_rig_setup(state);
}

static int teardown(void **state)
{
	alarm(0);
	return log_rig_teardown(state);
}

struct stalled {
	struct log_rig *rig;
	struct oltp_worker *w;
	pthread_t thread;
	uint32_t n_stops;
	enum oltp_rc rc;
	struct sigaction action_before;
};

/* A transaction that goes through, so that an entry is in the chunk, and one that is stopped. */
static void *stalled_main(void *arg)
{
	static const struct oltp_span span = { 0, sizeof(uint64_t) };
	struct stalled *stalled = arg;
	struct oltp_worker *w = stalled->w;
	struct log_rig_row *row;
	enum oltp_rc rc;

	rc = log_rig_count_up(w, stalled->rig->table, KEY_BEFORE) ?:
	     oltp_txn_begin(w) ?:
	     oltp_txn_update(w, stalled->rig->table, KEY_STOPPED, &span, 1, (void **)&row);
	if (!rc) {
		row->counter++;
		page_protect(PROT_NONE);
		n_stops_wanted = stalled->n_stops;
		rc = oltp_txn_commit(w);
	}
	stalled->rc = rc;
	return NULL;
}

static void await_stop(uint32_t nth)
{
	while (atomic_load(&n_stops) < nth)
		sched_yield();
}

/* It is stopped then, so many times in the end. */
static void stall(struct stalled *stalled, uint32_t n)
{
	stalled->n_stops = n;
	atomic_store(&n_stops, 0);
	atomic_store(&n_released, 0);
	assert_int_equal(pthread_create(&stalled->thread, NULL, stalled_main, stalled), 0);
	await_stop(1);
}

/* From the last stop. */
static void release(struct stalled *stalled)
{
	atomic_store(&n_released, stalled->n_stops);
	pthread_join(stalled->thread, NULL);
	assert_int_equal(stalled->rc, OLTP_OK);
}

static void stalled_open(struct stalled *stalled, struct log_rig *rig, uint32_t interval_us)
{
	struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct index_ref ref;

	*stalled = (struct stalled){ .rig = rig };
	rig->config.group_interval_us = interval_us;
	log_rig_open(rig);
	for (uint64_t key = 0; key < ROWS; key++)
		assert_int_equal(log_rig_insert(rig, key, 0), OLTP_OK);
	assert_int_equal(oltp_worker_create(rig->engine, &stalled->w), 0);
	stopped_record = index_find(&rig->table->index, KEY_STOPPED, index_hash(KEY_STOPPED), &ref);
	assert_non_null(stopped_record);
	sigemptyset(&action.sa_mask);
	assert_int_equal(sigaction(SIGSEGV, &action, &stalled->action_before), 0);
}

/* All that was committed is in the log, and once. */
static void stalled_close(struct stalled *stalled, uint64_t n_before, uint64_t n_stopped,
			  uint64_t n_other)
{
	struct log_rig *rig = stalled->rig;
	static struct log_model model;
	struct log_seen seen;

	sigaction(SIGSEGV, &stalled->action_before, NULL);
	oltp_worker_destroy(stalled->w);
	log_rig_close(rig);
	memset(&model, 0, sizeof(model));
	seen = log_rig_read(rig->dir, log_model_redo, &model);
	assert_int_equal(seen.entries, ROWS + n_before + n_stopped + n_other);
	assert_int_equal(model.rows[KEY_BEFORE].row.counter, n_before);
	assert_int_equal(model.rows[KEY_STOPPED].row.counter, n_stopped);
	assert_int_equal(model.rows[KEY_OTHER].row.counter, n_other);
}

/* Another worker's transaction, acknowledged. Returns its epoch. */
static uint64_t count_durably(struct log_rig *rig)
{
	uint64_t epoch;

	assert_int_equal(log_rig_count_up(rig->w, rig->table, KEY_OTHER), OLTP_OK);
	epoch = oltp_worker_epoch(rig->w);
	assert_int_equal(oltp_durable_wait(rig->engine, epoch), 0);
	return epoch;
}

static void others_do_not_wait_for_one_that_stands_still(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_worker *newcomer;
	struct stalled stalled;
	uint64_t epoch, n = 1;

	stalled_open(&stalled, rig, 100000);
	/* An epoch may end just between its two transactions. */
	for (stall(&stalled, 1); !stalled.w->log->whole; n++) {
		release(&stalled);
		stall(&stalled, 1);
	}
	count_durably(rig);
	epoch = count_durably(rig);
	assert_int_equal(stalled.w->log->announced, LOG_LEFT);
	assert_int_equal(oltp_worker_create(rig->engine, &newcomer), 0);
	oltp_worker_destroy(newcomer);
	release(&stalled);
	assert_true(oltp_worker_epoch(stalled.w) > epoch);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(stalled.w)), 0);
	/* What it wrote to is free again. */
	count_durably(rig);
	assert_null(stalled.w->log->left);
	assert_int_equal(log_rig_count_up(stalled.w, rig->table, KEY_STOPPED), OLTP_OK);
	stalled_close(&stalled, n, n + 1, 3);
}

/* The next time it has twice as long: an append that takes many intervals gets through. */
static void one_that_was_left_gets_more_time(void **state)
{
	struct log_rig *rig = *state;
	struct stalled stalled;
	uint64_t patience_ns;

	stalled_open(&stalled, rig, 1000);
	stall(&stalled, STOPS);
	patience_ns = rig->engine->log->interval_ns;
	assert_int_equal(stalled.w->log->patience_ns, 0);
	for (uint32_t nth = 1; nth < STOPS; nth++) {
		count_durably(rig);
		assert_int_equal(stalled.w->log->announced, LOG_LEFT);
		atomic_store(&n_released, nth);
		await_stop(nth + 1);
		patience_ns *= 2;
		assert_int_equal(stalled.w->log->patience_ns, patience_ns);
	}
	count_durably(rig);
	release(&stalled);
	assert_int_equal(stalled.w->log->patience_ns, 0);
	stalled_close(&stalled, 1, 1, STOPS);
}

int main(void)
{
#define WITH_RIG(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_RIG(others_do_not_wait_for_one_that_stands_still),
		WITH_RIG(one_that_was_left_gets_more_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
