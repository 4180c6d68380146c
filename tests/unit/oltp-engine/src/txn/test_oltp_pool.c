// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The worker pool: its threads stay when their work ends, and are used again; transactions that
 * meet conflicts.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp.h"

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static uint32_t first_cpu(void)
{
	cpu_set_t set;
	uint32_t cpu = 0;

	CPU_ZERO(&set);
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

/* Says where each of its workers is attached, and commits from then on. */
struct attached {
	pthread_t thread;
	pid_t tid;
	bool fails;
	cpu_set_t allowed;
	_Atomic uint64_t runs;
};

static int attached_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	struct attached *a = ctx;

	(void)worker;
	a->thread = pthread_self();
	a->tid = gettid();
	CPU_ZERO(&a->allowed);
	if (sched_getaffinity(0, sizeof(a->allowed), &a->allowed))
		abort();
	*ret_local = a;
	return a->fails ? -EIO : 0;
}

static enum oltp_rc attached_run(void *local, uint32_t slot, bool retry)
{
	struct attached *a = local;

	(void)slot;
	(void)retry;
	a->runs++;
	return OLTP_OK;
}

static void attached_detach(void *local)
{
	(void)local;
}

static void attached_open(struct attached *a, bool no_pin, struct oltp_engine **engine,
			  struct oltp_pool **pool)
{
	const struct oltp_workload workload = {
		.attach = attached_attach,
		.run = attached_run,
		.detach = attached_detach,
		.ctx = a,
	};

	assert_int_equal(oltp_engine_open(NULL, engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = *engine,
								      .workload = &workload,
								      .latency_every = 1,
								      .no_pin = no_pin },
					  pool), 0);
}

/* A worker comes, commits and goes; only what this one did is among its totals. */
static void attached_work(struct attached *a, struct oltp_pool *pool, uint32_t cpu)
{
	struct oltp_totals totals;

	a->runs = 0;
	assert_int_equal(oltp_pool_add(pool, cpu), 0);
	while (a->runs < 100)
		sleep_ms(1);
	assert_int_equal(oltp_pool_remove(pool, cpu, &totals), 0);
	assert_int_equal(totals.committed, a->runs);
	assert_true(totals.cpu_ns > 0);
}

/* What Linux says when the CPU is offline; else as ever. */
static int setaffinity_error;
int __real_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);
int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set);

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
	if (setaffinity_error)
		return setaffinity_error;
	return __real_pthread_setaffinity_np(thread, bytes, set);
}

static void test_threads_stay_for_their_cpu(void **state)
{
	(void)state;
	struct attached a = { 0 };
	struct oltp_sample whole;
	struct oltp_engine *engine;
	struct oltp_pool *pool;
	uint32_t cpu = first_cpu();
	uint64_t runs;
	cpu_set_t all;
	pid_t tid;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	attached_open(&a, false, &engine, &pool);
	attached_work(&a, pool, cpu);
	runs = a.runs;
	tid = a.tid;
	/* Linux lets a thread run elsewhere when its CPU goes offline: pinned anew when used. */
	assert_int_equal(pthread_setaffinity_np(a.thread, sizeof(all), &all), 0);
	attached_work(&a, pool, cpu);
	runs += a.runs;
	assert_int_equal(a.tid, tid);
	assert_int_equal(CPU_COUNT(&a.allowed), 1);
	assert_true(CPU_ISSET(cpu, &a.allowed));
	/* Offline still: no worker, but the thread is there when the CPU is. */
	setaffinity_error = EINVAL;
	assert_int_equal(oltp_pool_add(pool, cpu), -EINVAL);
	setaffinity_error = 0;
	assert_int_equal(oltp_pool_count(pool), 0);
	attached_work(&a, pool, cpu);
	runs += a.runs;
	assert_int_equal(a.tid, tid);
	/* One that could not attach is used again, too. */
	a.fails = true;
	assert_int_equal(oltp_pool_add(pool, cpu), -EIO);
	a.fails = false;
	attached_work(&a, pool, cpu);
	runs += a.runs;
	assert_int_equal(a.tid, tid);
	oltp_pool_sample(pool, 1, &whole);
	assert_int_equal(whole.totals.committed, runs);
	assert_int_equal(whole.measured, runs);
	/* With idle threads and with one at work. */
	assert_int_equal(oltp_pool_add(pool, cpu), 0);
	oltp_pool_destroy(pool);
	while (!kill(tid, 0))
		sleep_ms(1);
	oltp_engine_close(engine);
}

/* No CPU is a thread's own: never more threads than were at work at once. */
static void test_threads_without_a_place_serve_all(void **state)
{
	(void)state;
	struct attached a = { 0 };
	struct oltp_engine *engine;
	struct oltp_pool *pool;
	pid_t tid;

	attached_open(&a, true, &engine, &pool);
	attached_work(&a, pool, 0);
	tid = a.tid;
	for (uint32_t cpu = 1; cpu < 100; cpu++) {
		attached_work(&a, pool, cpu);
		assert_int_equal(a.tid, tid);
	}
	oltp_pool_destroy(pool);
	oltp_engine_close(engine);
}

/* The transaction that is begun first has nothing but conflicts until it is let go. */
struct stuck {
	_Atomic bool let_go;
	_Atomic uint64_t begun, ended;
	_Atomic uint64_t tries;		/* of the first */
	uint32_t slot;			/* its slot */
	bool is_begun, is_done;
};

static int stuck_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)worker;
	*ret_local = ctx;
	return 0;
}

static enum oltp_rc stuck_run(void *local, uint32_t slot, bool retry)
{
	struct stuck *s = local;

	s->begun += !retry;
	if (!s->is_begun) {
		s->is_begun = true;
		s->slot = slot;
	}
	/* A slot is another transaction's only once its own has ended. */
	if (!s->is_done && slot == s->slot) {
		s->tries++;
		if (!s->let_go)
			return OLTP_CONFLICT;
		s->is_done = true;
	} else if (retry) {
		abort();
	}
	s->ended++;
	return OLTP_OK;
}

static void wait_until(const _Atomic uint64_t *count, uint64_t least)
{
	time_t end = time(NULL) + 120;

	while (*count < least && time(NULL) < end)
		sleep_ms(1);
	assert_true(*count >= least);
}

static void stuck_open(struct stuck *s, enum oltp_cc cc, struct oltp_arrivals *arrivals,
		       struct oltp_engine **engine, struct oltp_pool **pool)
{
	const struct oltp_workload workload = {
		.attach = stuck_attach,
		.run = stuck_run,
		.detach = attached_detach,
		.ctx = s,
	};

	assert_int_equal(oltp_engine_open(&(struct oltp_config){ .cc = cc }, engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = *engine,
								      .workload = &workload,
								      .no_pin = true,
								      .arrivals = arrivals },
					  pool), 0);
	assert_int_equal(oltp_pool_add(*pool, 0), 0);
}

/* The holder of a record may be out of its CPU: whatever else arrives is served meanwhile. */
static void test_a_conflict_holds_up_no_others(void **state)
{
	(void)state;
	struct stuck s = { 0 };
	struct oltp_arrivals *arrivals;
	struct oltp_engine *engine;
	struct oltp_totals totals;
	struct oltp_pool *pool;
	uint64_t tries;

	assert_int_equal(oltp_arrivals_create(&arrivals), 0);
	stuck_open(&s, OLTP_CC_NO_WAIT, arrivals, &engine, &pool);
	wait_until(&s.ended, 1000);
	tries = s.tries;
	wait_until(&s.tries, tries + 10);
	/* With nothing else to do, it is tried again all the same. */
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, 1), 0);
	tries = s.tries;
	wait_until(&s.tries, tries + 1000);
	/* And before the worker leaves. */
	assert_int_equal(oltp_pool_stop(pool, 0), 0);
	tries = s.tries;
	wait_until(&s.tries, tries + 1000);
	s.let_go = true;
	assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
	assert_true(s.is_done);
	assert_int_equal(s.ended, s.begun);
	assert_int_equal(totals.committed, s.ended);
	assert_int_equal(totals.conflicts, s.tries - 1);
	oltp_pool_destroy(pool);
	oltp_arrivals_destroy(arrivals);
	oltp_engine_close(engine);
}

/* Where age counts, a transaction keeps the worker until it has ended; without arrivals, too. */
static void test_a_conflict_keeps_the_worker(void **state)
{
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct stuck s = { 0 };
		struct oltp_arrivals *arrivals;
		struct oltp_engine *engine;
		struct oltp_pool *pool;

		assert_int_equal(oltp_arrivals_create(&arrivals), 0);
		stuck_open(&s, i ? OLTP_CC_NO_WAIT : OLTP_CC_WAIT_DIE, i ? NULL : arrivals, &engine,
			   &pool);
		wait_until(&s.tries, 1000);
		assert_int_equal(s.begun, 1);
		s.let_go = true;
		wait_until(&s.ended, 100);
		assert_int_equal(oltp_pool_remove(pool, 0, NULL), 0);
		oltp_pool_destroy(pool);
		oltp_arrivals_destroy(arrivals);
		oltp_engine_close(engine);
	}
}

/* Its deadline is over, and the lock that its transaction wants is not free. */
static void test_a_conflict_ends_with_the_deadline(void **state)
{
	(void)state;

	for (int i = 0; i < 2; i++) {
		struct stuck s = { 0 };
		struct oltp_arrivals *arrivals;
		struct oltp_engine *engine;
		struct oltp_totals totals;
		struct oltp_pool *pool;

		assert_int_equal(oltp_arrivals_create(&arrivals), 0);
		stuck_open(&s, i ? OLTP_CC_NO_WAIT : OLTP_CC_WAIT_DIE, arrivals, &engine, &pool);
		wait_until(&s.tries, 1000);
		/* The earliest counts. */
		assert_int_equal(oltp_pool_stop_by(pool, 0, UINT64_MAX - 1), 0);
		assert_int_equal(oltp_pool_stop_by(pool, 0, 1), 0);
		assert_int_equal(oltp_pool_stop_by(pool, 0, UINT64_MAX), 0);
		assert_int_equal(oltp_pool_remove(pool, 0, &totals), 0);
		assert_false(s.is_done);
		assert_int_equal(totals.committed, s.ended);
		assert_int_equal(totals.failed, 1);
		oltp_pool_destroy(pool);
		oltp_arrivals_destroy(arrivals);
		oltp_engine_close(engine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads_stay_for_their_cpu),
		cmocka_unit_test(test_threads_without_a_place_serve_all),
		cmocka_unit_test(test_a_conflict_holds_up_no_others),
		cmocka_unit_test(test_a_conflict_keeps_the_worker),
		cmocka_unit_test(test_a_conflict_ends_with_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
