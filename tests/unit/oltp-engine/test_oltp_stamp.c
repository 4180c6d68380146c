// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The stamp that goes with a record to disk is that of its last use, never the age of a transaction
 * that held the record when somebody looked. That transaction comes just before the first look at
 * the lock word, and is gone right after it: the word is in a page that cannot be touched at first,
 * and the instruction that was about to is then let through alone.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <cmocka.h>

#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"

#define RECORD_BYTES	8u
#define KEY		7u
#define PAGE_BYTES	4096ul
/* As it were of a clock that runs for long, so that it is no epoch. */
#define HOLDER_TS	(1ull << 45 | 1)
#define STAMP		3u

static struct record *trapped;
static volatile sig_atomic_t n_looks, n_steps;

static void page_protect(int prot)
{
	if (mprotect((void *)((uintptr_t)trapped & ~(PAGE_BYTES - 1)), PAGE_BYTES, prot))
		abort();
}

#if defined(__x86_64__)
#define CAN_STEP	true
#define TRAP_FLAG	0x100

static void single_step(void *context, bool is_on)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];

	*flags = is_on ? *flags | TRAP_FLAG : *flags & ~TRAP_FLAG;
}
#else
#define CAN_STEP	false

static void single_step(void *context, bool is_on)
{
	(void)context, (void)is_on;
}
#endif

/* Somebody is about to look. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	if (info->si_addr != &trapped->lock)
		abort();
	page_protect(PROT_READ | PROT_WRITE);
	atomic_store_explicit(&trapped->lock, LOCK_WRITER | HOLDER_TS, memory_order_relaxed);
	single_step(context, true);
	n_looks++;
}

/* And has looked. */
static void on_step(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	lock_release_exclusive(&trapped->lock, STAMP);
	single_step(context, false);
	n_steps++;
}

static void handle(int number, void (*handler)(int, siginfo_t *, void *),
		   struct sigaction *ret_before)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	assert_int_equal(sigaction(number, &action, ret_before), 0);
}

static void test_to_disk(void **state)
{
	struct sigaction fault_before, step_before;
	struct oltp_engine *engine;
	struct oltp_table *table;
	struct oltp_worker *w;
	struct evict evict;
	struct index_ref ref;
	enum evict_result result;
	const uint64_t data = 0;

	(void)state;
	if (!CAN_STEP)
		skip();
	/* A disk for records, and no manager but the test. */
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(cold_create(engine, rig_dir(), 0, &engine->cold), 0);
	assert_int_equal(oltp_table_create(engine, RECORD_BYTES, 16, &table), 0);
	assert_int_equal(oltp_worker_create(engine, &w), 0);
	assert_int_equal(oltp_txn_begin(w), OLTP_OK);
	assert_int_equal(oltp_txn_insert(w, table, KEY, &data), OLTP_OK);
	assert_int_equal(oltp_txn_commit(w), OLTP_OK);
	assert_int_equal(evict_init(&evict, engine), 0);
	trapped = index_find(&table->index, KEY, index_hash(KEY), &ref);
	assert_non_null(trapped);
	handle(SIGSEGV, on_fault, &fault_before);
	handle(SIGTRAP, on_step, &step_before);

	page_protect(PROT_NONE);
	do
		result = evict_to_disk(&evict, table, trapped);
	while (result == EVICT_BUSY);
	assert_int_equal(result, EVICT_DONE);
	assert_int_equal(n_looks, 1);
	assert_int_equal(n_steps, 1);
	assert_int_equal(evict.filling->n, 1);
	assert_int_equal(evict.filling->block->used[0], STAMP);

	sigaction(SIGSEGV, &fault_before, NULL);
	sigaction(SIGTRAP, &step_before, NULL);
	evict_flush(&evict);
	assert_true(evict_settle(&evict, UINT64_MAX));
	evict_finish(&evict);
	oltp_worker_destroy(w);
	oltp_engine_close(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_to_disk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
