/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_pool.h - a worker on each CPU that runs transactions: one after the other, as they arrive,
 * or as clients ask for them. Included by oltp.h.
 */
#ifndef OLTP_POOL_PUBLIC_H
#define OLTP_POOL_PUBLIC_H

#include "oltp.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The transactions of the workers. All hooks are called on the worker's own thread.
 *
 *   attach  once, first; *ret_local is handed to the others. 0 or -errno (the worker then ends).
 *   run     ONE attempt of ONE transaction, the one numbered slot (0 to OLTP_TICKETS - 1). retry
 *           not set: make up a new one. OLTP_CONFLICT: the pool backs off and calls again with
 *           retry set, and the same transaction is to be tried again; with arrivals or a feed,
 *           under NO_WAIT, it runs others in other slots in between. OLTP_COLD (the worker's last
 *           call was oltp_txn_abort): the pool fetches, runs others in other slots, then calls
 *           again with retry set. Any other failure: the transaction is given up and counted as
 *           failed.
 *   arrived may be NULL. With arrivals, once these have begun, right before each run with retry not
 *           set: that transaction arrived at arrival_ns (CLOCK_MONOTONIC; it may lie a little ahead
 *           if the rate has just changed).
 *   detach  once, last, never in the middle of a transaction.
 */
struct oltp_workload {
	int (*attach)(void *ctx, struct oltp_worker *worker, void **ret_local);
	enum oltp_rc (*run)(void *local, uint32_t slot, bool retry);
	void (*arrived)(void *local, uint64_t arrival_ns);
	void (*detach)(void *local);
	void *ctx;
};

/*
 * For a workload whose transactions come from outside, such as a network: when there is one, and
 * how a worker without any waits. Excludes arrivals. All hooks are required. local is what attach
 * gave. All but wake are called on the worker's own thread.
 *
 *   ready    between transactions: handles input and output, without waiting. True: run may be
 *            called, with retry not set.
 *   wait     nothing is ready: sleeps until ready has something to look at, or wake was called
 *            since the last ready, or until_ns (CLOCK_MONOTONIC; UINT64_MAX: no bound). Also
 *            returns at once if a run since the last ready has made something ready.
 *   wake     ends the wait that is going on, or the next one. On the thread of the pool's owner,
 *            between attach and detach.
 *   stop     once: the worker is to end. From here on neither ready nor wait is called, nor run but
 *            with retry set.
 *   give_up  no more run for the transaction in this slot. OLTP_COLD: the worker has no more time;
 *            the transaction has changed nothing, is not counted and may be run elsewhere. Else it
 *            has failed: a record could not be read (OLTP_IO), or there was no room
 *            (OLTP_NO_MEMORY).
 */
struct oltp_feed {
	bool (*ready)(void *local);
	void (*wait)(void *local, uint64_t until_ns);
	void (*wake)(void *local);
	void (*stop)(void *local);
	void (*give_up)(void *local, uint32_t slot, enum oltp_rc rc);
};

/*
 * Transactions that arrive by themselves, at a rate that may change at any time, whether or not a
 * worker is free (open loop). They wait in one queue that all workers take from; latency counts
 * from the arrival. Until the first rate is set, work is unlimited, as without arrivals: each
 * worker runs one transaction after the other. A worker that finds none waiting sleeps until the
 * next arrives, for half a millisecond at least.
 */
struct oltp_arrivals;

/* Errors: -ENOMEM. */
int oltp_arrivals_create(struct oltp_arrivals **ret_arrivals);

/* After the pools that take from it. Accepts NULL. */
void oltp_arrivals_destroy(struct oltp_arrivals *arrivals);

/*
 * From at_ns on (CLOCK_MONOTONIC; may lie ahead, but not before that of the call before), so many
 * arrive per second, evenly. A time in the past changes what has arrived since. One thread at a
 * time. Errors: -EINVAL (negative or not finite, or before the last one), -ENOMEM.
 */
int oltp_arrivals_set_rate(struct oltp_arrivals *arrivals, double per_second, uint64_t at_ns);

struct oltp_pool_config {
	struct oltp_engine *engine;
	const struct oltp_workload *workload;	/* copied */
	uint32_t latency_every;	/* measure 1 transaction in so many; a power of two; 0: 64 */
	bool no_pin;		/* CPU numbers are only names; the scheduler places */
	struct oltp_arrivals *arrivals;	/* NULL: work is unlimited, or comes from a feed */
	const struct oltp_feed *feed;	/* must outlive the pool; NULL: none */
};

struct oltp_pool;

/* Totals of one worker or of all, since the start. */
struct oltp_totals {
	uint64_t committed;
	uint64_t conflicts;	/* attempts that ended in a conflict and were run again */
	uint64_t failed;	/* transactions given up for any other reason */
	uint64_t failed_io;	/* among them: a cold record could not be read */
	uint64_t failed_lost;	/* among them: a record was lost */
	uint64_t colds;		/* attempts that met cold records and were run again */
	uint64_t waits, wounds;	/* of the workers, see struct oltp_worker_stats */
	uint64_t accesses;	/* record accesses of committed transactions */
	uint64_t cpu_ns;	/* CPU time of workers, counted when they end */
};

/*
 * One thread at a time may call the functions of a pool. Errors: -EINVAL (a hook is missing; both a
 * feed and arrivals), -ENOMEM.
 */
int oltp_pool_create(const struct oltp_pool_config *config, struct oltp_pool **ret_pool);

/* Stops every worker first. Accepts NULL. */
void oltp_pool_destroy(struct oltp_pool *pool);

/*
 * Starts a worker pinned on a CPU and returns once it has attached. Errors: -EEXIST (one is there),
 * -EINVAL (no such CPU, or offline), -ENOSPC, -ENOMEM, -EAGAIN, or what attach returned.
 */
int oltp_pool_add(struct oltp_pool *pool, uint32_t cpu);

/*
 * The same for n CPUs, all at once: each starts while the others do. ret_rcs[i]: what oltp_pool_add
 * would return for cpus[i].
 */
void oltp_pool_add_all(struct oltp_pool *pool, const uint32_t *cpus, uint32_t n, int *ret_rcs);

/*
 * Asks the worker to end after its present transactions; does not wait. Those that wait for records
 * from disk are run to their end, for as long as that takes. Error: -ENOENT.
 */
int oltp_pool_stop(struct oltp_pool *pool, uint32_t cpu);

/*
 * The same by a deadline (CLOCK_MONOTONIC ns; in the past: now): transactions that then still wait
 * for records, for room for them, or for others' locks are given up and count as failed; they hold
 * no locks. Nobody waits for the disk reads that were made for them: the engine's own thread ends
 * them. Of several deadlines the earliest counts; UINT64_MAX: none.
 */
int oltp_pool_stop_by(struct oltp_pool *pool, uint32_t cpu, uint64_t deadline_ns);

/*
 * Stops the worker if that was not done, and waits until it has detached: until its transactions
 * have ended, or by the deadline of oltp_pool_stop_by. After a deadline it waits for the hooks that
 * are running and for detach alone, never for a disk. The totals stay in those of the pool;
 * ret_totals, those of the worker, may be NULL. Its thread sleeps on, pinned as it was, for the
 * next oltp_pool_add on that CPU, until the pool is destroyed. Error: -ENOENT.
 */
int oltp_pool_remove(struct oltp_pool *pool, uint32_t cpu, struct oltp_totals *ret_totals);

uint32_t oltp_pool_count(const struct oltp_pool *pool);

/* Counts and rates since the call before, or since the pool was created. */
struct oltp_sample {
	double interval_s;
	uint32_t workers;	/* now */
	double tps;		/* committed transactions per second */
	double aborts_ps;	/* conflicts per second */
	/* First attempt to commit, with arrivals: arrival to commit; 0 with no measurement. */
	double p50_us, p95_us, p99_us;
	double offered_ps;	/* arrived transactions per second; 0 while work is unlimited */
	uint64_t queue;		/* transactions that wait, now */
	uint64_t measured;	/* transactions whose latency was measured */
	struct oltp_totals totals;	/* since the pool was created */
};

/* now_ns: CLOCK_MONOTONIC, given by the caller. */
void oltp_pool_sample(struct oltp_pool *pool, uint64_t now_ns, struct oltp_sample *ret_sample);

/* The same over the whole life of the pool up to the last oltp_pool_sample. */
void oltp_pool_whole(const struct oltp_pool *pool, struct oltp_sample *ret_sample);

/* Totals of all workers up to now; no interval ends or begins. */
void oltp_pool_totals(const struct oltp_pool *pool, struct oltp_totals *ret_totals);

#ifdef __cplusplus
}
#endif

#endif
