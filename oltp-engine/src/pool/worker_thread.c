// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The life of one pool worker: attach, transactions until asked to stop, detach; then the thread
 * waits for the next time, since a thread that waits is there sooner than a new one.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/base/random.h"
#include "oltp-engine/src/cold/fetch.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/txn/engine.h"
#include "worker_pool.h"

#define BACKOFF_NS		64u
#define BACKOFF_BITS		8u
/* As long as some transactions take. */
#define BACKOFF_YIELD_NS	2000u

/* How many other transactions begin before a deferred one is tried again. */
#define DEFER_OTHERS	8u

/*
 * An idle worker looks again after this time: short against the time over which queues are
 * measured, long against the cost of a look.
 */
#define IDLE_NS		500000u
/* How late commits of a feed may be counted while nothing comes in. */
#define ACKS_NS		20000000u
/* How long a worker that is to leave waits for the log at most. */
#define LEAVE_NS	20000000ull

/*
 * After n conflicts in a row: a random pause below BACKOFF_NS * 2^n, n at most BACKOFF_BITS, so
 * that of many workers that want the same records only so many try at once as can succeed. A
 * transaction that has been stalled for longer than any running thread holds a lock yields its CPU
 * meanwhile: the holder may be waiting for this very CPU.
 */
static void back_off(uint32_t tries, uint64_t start_ns, struct random64 *random)
{
	uint32_t bits = tries < BACKOFF_BITS ? tries : BACKOFF_BITS;
	uint64_t now_ns = clock_now_ns();
	uint64_t until_ns = now_ns + random64_below(random, BACKOFF_NS << bits);

	do {
		if (now_ns - start_ns >= BACKOFF_YIELD_NS)
			sched_yield();
		else
			cpu_relax();
		now_ns = clock_now_ns();
	} while (now_ns < until_ns);
}

/*
 * Transactions that have begun, each in a slot. One that waits for records from disk, or is
 * deferred after a conflict, keeps its slot. A new one takes a free slot, always the same if no
 * transaction waits.
 */
struct slots {
	void *local;
	struct random64 random;
	uint32_t n_begun;
	uint32_t n_free;
	uint8_t free[OLTP_TICKETS];		/* a stack */
	uint32_t n_deferred;
	uint32_t n_retried;			/* n_begun when deferred ones were tried last */
	uint8_t deferred[OLTP_TICKETS];		/* by conflicts; the oldest first */
	uint64_t start_ns[OLTP_TICKETS];	/* 0: not measured */
};

/*
 * May a transaction that met a conflict be deferred, so that others begin first? The holder of its
 * record may stand still, on a CPU that the host has given to another VM, for longer than hundreds
 * of transactions take. Not under schemes that compare ages: a worker has one age, that of its
 * latest transaction.
 */
static bool may_defer(const struct pool_worker *pw, const struct slots *slots)
{
	return (pw->pool->arrivals || pw->pool->feed) && slots->n_free &&
	       pw->pool->engine->scheme == lock_scheme_get(OLTP_CC_NO_WAIT);
}

/* Is the worker to stop, and is its time to end what it has begun over? */
static bool is_over(const struct pool_worker *pw)
{
	uint64_t by_ns = counter_read(&pw->stop_by_ns);

	return unlikely(by_ns) && by_ns != UINT64_MAX && clock_now_ns() >= by_ns;
}

/* Until when a worker with nothing else to do waits, before it looks whether it is to stop. */
static uint64_t wait_until(const struct pool_worker *pw)
{
	return counter_read(&pw->stop_by_ns) ?: clock_now_ns() + IDLE_NS;
}

/*
 * Runs a transaction until it meets anything but a conflict. OLTP_CONFLICT: it is to be deferred,
 * or the worker has no more time.
 */
static enum oltp_rc run_attempts(struct pool_worker *pw, struct slots *slots, uint32_t slot,
				 bool retry)
{
	const struct oltp_workload *workload = &pw->pool->workload;
	enum oltp_rc rc = workload->run(slots->local, slot, retry);
	uint64_t start_ns;

	if (likely(rc != OLTP_CONFLICT))
		return rc;
	start_ns = clock_now_ns();
	for (uint32_t tries = 1; rc == OLTP_CONFLICT; tries++) {
		counter_add(&pw->conflicts, 1);
		if (is_over(pw) ||
		    (may_defer(pw, slots) &&
		     clock_now_ns() - start_ns >= BACKOFF_YIELD_NS))
			break;
		back_off(tries, start_ns, &slots->random);
		rc = workload->run(slots->local, slot, true);
	}
	counter_add(&pw->stalled_ns, clock_now_ns() - start_ns);
	return rc;
}

/*
 * Transactions whose epoch is on disk count as committed, and once the log has failed, all others
 * as failed.
 */
static void acknowledge(struct pool_worker *pw)
{
	struct acks *acks = pw->acks;
	uint64_t durable = oltp_durable_epoch(pw->pool->engine);

	if (unlikely(acks_are_due(acks, durable)))
		counter_add(&pw->committed,
			    acks_take(acks, durable, clock_now_ns(), &pw->hist));
	if (unlikely(acks->n && log_state(pw->pool->engine->log) == LOG_FAILED)) {
		uint64_t n;

		/* The last group that was written may have come since. */
		durable = oltp_durable_epoch(pw->pool->engine);
		counter_add(&pw->committed,
			    acks_take(acks, durable, clock_now_ns(), &pw->hist));
		n = acks_take(acks, UINT64_MAX, 0, NULL);
		counter_add(&pw->failed, n);
		counter_add(&pw->failed_io, n);
	}
}

/* Waits until the epoch is on disk, for wait_ns at most, and acknowledges. */
static void acknowledge_wait(struct pool_worker *pw, uint64_t epoch, uint64_t wait_ns)
{
	log_wait(pw->pool->engine->log, epoch, clock_now_ns() + wait_ns);
	acknowledge(pw);
}

/* A transaction has committed: it is counted now, or once it is on disk. */
static void note_commit(struct pool_worker *pw, uint64_t start_ns)
{
	if (pw->acks) {
		acks_push(pw->acks, oltp_worker_epoch(pw->worker), start_ns);
		log_wake(pw->pool->engine->log);
		acknowledge(pw);
		return;
	}
	counter_add(&pw->committed, 1);
	if (start_ns)
		hist_record_since(&pw->hist, start_ns, clock_now_ns());
}

static void end_transaction(struct pool_worker *pw, struct slots *slots, uint32_t slot,
			    enum oltp_rc rc)
{
	if (unlikely(pw->worker->fetcher))
		oltp_cold_end(pw->worker, slot);
	if (rc) {
		counter_add(&pw->failed, 1);
		if (rc == OLTP_IO)
			counter_add(&pw->failed_io, 1);
		if (rc == OLTP_LOST)
			counter_add(&pw->failed_lost, 1);
		/* Once the log has failed every transaction does: there is no hurry. */
		if (pw->pool->engine->log && log_state(pw->pool->engine->log) == LOG_FAILED)
			clock_sleep(IDLE_NS);
	} else {
		note_commit(pw, slots->start_ns[slot]);
	}
	slots->free[slots->n_free++] = (uint8_t)slot;
}

static bool resume_some(struct pool_worker *pw, struct slots *slots, uint64_t until_ns);

/* The transaction is given up: records that it needs cannot be had. */
static void fail_slot(struct pool_worker *pw, struct slots *slots, uint32_t slot, enum oltp_rc rc)
{
	if (pw->pool->feed)
		pw->pool->feed->give_up(slots->local, slot, rc);
	end_transaction(pw, slots, slot, rc);
}

/* Runs the transaction until it has ended, waits for the disk or is deferred. */
static void run_slot(struct pool_worker *pw, struct slots *slots, uint32_t slot, bool retry)
{
	enum oltp_rc rc;

	for (;; retry = true) {
		rc = run_attempts(pw, slots, slot, retry);
		if (unlikely(rc == OLTP_CONFLICT)) {
			slots->deferred[slots->n_deferred++] = (uint8_t)slot;
			return;
		}
		if (likely(rc != OLTP_COLD))
			break;
		rc = oltp_cold_fetch(pw->worker, slot);
		if (!rc)
			return;
		if (rc != OLTP_FULL) {
			fail_slot(pw, slots, slot, rc);
			return;
		}
		/* Others go first. This one keeps its slot, so each slot comes here only once. */
		while (!resume_some(pw, slots, wait_until(pw))) {
			if (is_over(pw))
				return;
		}
	}
	end_transaction(pw, slots, slot, rc);
}

/*
 * Goes on with transactions whose records have come. until_ns: waits for the first one until then;
 * 0: does not wait. False: there was none.
 */
static bool resume_some(struct pool_worker *pw, struct slots *slots, uint64_t until_ns)
{
	struct oltp_cold_done done[8];
	int n = cold_poll_until(pw->worker, done, 8, until_ns);

	for (int i = 0; i < n; i++) {
		if (done[i].rc)
			fail_slot(pw, slots, done[i].ticket, done[i].rc);
		else
			run_slot(pw, slots, done[i].ticket, true);
	}
	return n > 0;
}

/*
 * Ends the transactions that have begun, for lack of time. None of them holds a lock. They count as
 * failed, but those of a feed go on elsewhere.
 */
static void give_up(struct pool_worker *pw, struct slots *slots)
{
	const struct oltp_feed *feed = pw->pool->feed;
	bool is_free[OLTP_TICKETS] = { false };

	for (uint32_t i = 0; i < slots->n_free; i++)
		is_free[slots->free[i]] = true;
	for (uint32_t slot = 0; slot < OLTP_TICKETS; slot++) {
		if (is_free[slot])
			continue;
		if (feed) {
			feed->give_up(slots->local, slot, OLTP_COLD);
			oltp_cold_end(pw->worker, slot);
		} else {
			end_transaction(pw, slots, slot, OLTP_COLD);
		}
	}
}

/* Tries each deferred transaction once. is_alone: the worker has nothing else to do. */
static void retry_deferred(struct pool_worker *pw, struct slots *slots, bool is_alone)
{
	uint8_t deferred[OLTP_TICKETS];
	uint32_t n = slots->n_deferred;

	memcpy(deferred, slots->deferred, n);
	slots->n_deferred = 0;
	slots->n_retried = slots->n_begun;
	for (uint32_t i = 0; i < n; i++)
		run_slot(pw, slots, deferred[i], true);
	if (is_alone && slots->n_deferred)
		sched_yield();
}

/* True: there is a transaction to run. *ret_start_ns: when it arrived; 0: work is unlimited. */
static bool find_work(struct pool_worker *pw, void *local, struct arrivals_view *view,
		      uint64_t *ret_start_ns)
{
	const struct oltp_feed *feed = pw->pool->feed;

	*ret_start_ns = 0;
	if (feed)
		return feed->ready(local);
	return !pw->pool->arrivals || arrivals_take(pw->pool->arrivals, view, ret_start_ns);
}

/* Waits until the next transaction arrives, however long that takes. */
static void wait_arrival(struct pool_worker *pw, const struct arrivals_view *view)
{
	uint32_t call = arrivals_calls(pw->pool->arrivals);

	/* oltp_pool_stop_by() sets it before it wakes. */
	if (!counter_read(&pw->stop_by_ns))
		arrivals_wait(pw->pool->arrivals, view, call, IDLE_NS);
}

/*
 * Waits for what a feed brings: for records from disk and for commits that are to be counted it
 * looks again after a while.
 */
static void wait_feed(struct pool_worker *pw, struct slots *slots, bool is_cold)
{
	uint64_t wait_ns = is_cold ? IDLE_NS : pw->acks && pw->acks->n ? ACKS_NS : 0;

	if (pw->acks)
		acknowledge(pw);
	/* oltp_pool_stop_by() sets it before it wakes. */
	if (!counter_read(&pw->stop_by_ns))
		pw->pool->feed->wait(slots->local, wait_ns ? clock_now_ns() + wait_ns :
								      UINT64_MAX);
}

static void idle(struct pool_worker *pw, struct slots *slots, const struct arrivals_view *view)
{
	const bool is_cold = slots->n_free < OLTP_TICKETS;

	counter_add(&pw->idles, 1);
	if (is_cold)
		resume_some(pw, slots, 0);
	if (pw->pool->feed)
		wait_feed(pw, slots, is_cold);
	else if (pw->acks && pw->acks->n)
		acknowledge_wait(pw, acks_oldest(pw->acks), IDLE_NS);
	else if (is_cold)
		clock_sleep(IDLE_NS);
	else
		wait_arrival(pw, view);
}

/*
 * Can one more transaction commit without waiting for the disk? If not, waits for that, but not for
 * long: a worker that waits in the middle of a transaction, or for room to note a commit, does not
 * leave when it is to, and the disk may take seconds. Transactions that have begun may need room,
 * too.
 */
static bool has_room(struct pool_worker *pw, const struct slots *slots)
{
	struct oltp_engine *engine = pw->pool->engine;

	if (!engine->log)
		return true;
	if (unlikely(pw->acks && !acks_have_room(pw->acks, OLTP_TICKETS - slots->n_free + 1))) {
		acknowledge_wait(pw, acks_oldest(pw->acks), IDLE_NS);
		return false;
	}
	return log_room_wait(pw->worker, IDLE_NS);
}

static void run_until_stopped(struct pool_worker *pw, void *local)
{
	struct arrivals_view view = { 0 };
	struct slots slots = { .local = local, .random.state = pw->cpu };
	const struct oltp_workload *workload = &pw->pool->workload;
	const struct oltp_feed *feed = pw->pool->feed;
	uint32_t mask = pw->pool->latency_every - 1;
	bool is_told = false;

	for (uint32_t slot = OLTP_TICKETS; slot-- > 0;)
		slots.free[slots.n_free++] = (uint8_t)slot;
	for (;;) {
		bool stop = counter_read(&pw->stop_by_ns);
		uint64_t start_ns;
		uint32_t slot;

		if (unlikely(stop && feed && !is_told)) {
			feed->stop(local);
			is_told = true;
		}
		if (unlikely(slots.n_free < OLTP_TICKETS))
			resume_some(pw, &slots, stop || !slots.n_free ? wait_until(pw) : 0);
		else if (stop)
			break;
		if (unlikely(stop && is_over(pw))) {
			give_up(pw, &slots);
			break;
		}
		if (unlikely(stop || !slots.n_free)) {
			retry_deferred(pw, &slots, true);
			if (feed && !stop)
				feed->ready(local);
			continue;
		}
		if (unlikely(slots.n_deferred && slots.n_begun - slots.n_retried >= DEFER_OTHERS))
			retry_deferred(pw, &slots, false);
		if (unlikely(!has_room(pw, &slots))) {
			if (feed)
				feed->ready(local);
			continue;
		}
		if (!find_work(pw, local, &view, &start_ns)) {
			if (slots.n_deferred)
				retry_deferred(pw, &slots, true);
			else
				idle(pw, &slots, &view);
			continue;
		}
		slot = slots.free[--slots.n_free];
		slots.start_ns[slot] = 0;
		if ((slots.n_begun++ & mask) == 0)
			slots.start_ns[slot] = start_ns ?: clock_now_ns();
		if (start_ns && workload->arrived)
			workload->arrived(local, start_ns);
		run_slot(pw, &slots, slot, false);
	}
}

/*
 * Before the worker leaves: waits until its commits are on disk, for as long as a group usually
 * takes. Later ones are left to the pool: a CPU that is to be given back does not wait for the
 * disk.
 */
static void leave(struct pool_worker *pw)
{
	uint64_t by_ns = counter_read(&pw->stop_by_ns), now_ns = clock_now_ns();
	uint64_t left_ns = by_ns > now_ns ? by_ns - now_ns : 0;

	if (!pw->acks || !pw->acks->n)
		return;
	log_call(pw->pool->engine->log);
	acknowledge_wait(pw, acks_newest(pw->acks), left_ns < LEAVE_NS ? left_ns : LEAVE_NS);
}

/* Before it attaches. Errors: those of creating a worker, -ENOMEM. */
static int worker_make(struct pool_worker *pw)
{
	/* Created here, on the CPU that will use it: first touch places its memory. */
	int rc = oltp_worker_create(pw->pool->engine, &pw->worker);

	if (!rc && log_is_commit(pw->pool->engine->log)) {
		pw->acks = calloc(1, sizeof(*pw->acks));
		rc = pw->acks ? 0 : -ENOMEM;
	}
	return rc;
}

static void report(struct pool_worker *pw, enum pool_worker_state state, int start_rc, void *local)
{
	pthread_mutex_lock(&pw->lock);
	pw->state = state;
	pw->start_rc = start_rc;
	pw->local = local;
	pthread_mutex_unlock(&pw->lock);
	pthread_cond_signal(&pw->reported);
}

static void work(struct pool_worker *pw)
{
	const struct oltp_workload *workload = &pw->pool->workload;
	uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	void *local;
	int rc = worker_make(pw);

	if (!rc)
		rc = workload->attach(workload->ctx, pw->worker, &local);
	if (!rc) {
		report(pw, POOL_WORKER_RUNNING, 0, local);
		run_until_stopped(pw, local);
		leave(pw);
		report(pw, POOL_WORKER_RUNNING, 0, NULL);
		counter_add(&pw->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
		workload->detach(local);
	}
	report(pw, POOL_WORKER_IDLE, rc, NULL);
}

/* False: the thread is to end. */
static bool wait_for_work(struct pool_worker *pw)
{
	bool is_ordered;

	pthread_mutex_lock(&pw->lock);
	while (pw->state == POOL_WORKER_IDLE)
		pthread_cond_wait(&pw->ordered, &pw->lock);
	is_ordered = pw->state == POOL_WORKER_STARTING;
	pthread_mutex_unlock(&pw->lock);
	return is_ordered;
}

void *pool_worker_main(void *arg)
{
	struct pool_worker *pw = arg;

	while (wait_for_work(pw))
		work(pw);
	return NULL;
}
