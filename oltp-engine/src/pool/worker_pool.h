/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker pool's own structures: what its thread (worker_thread.c) and its owner share. */
#ifndef OLTP_WORKER_POOL_H
#define OLTP_WORKER_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "arrivals.h"
#include "oltp-engine/src/base/hist.h"
#include "oltp-engine/src/base/util.h"
#include "oltp.h"

#define ACKS_EPOCHS	256u
#define ACKS_STARTS	16384u

/*
 * Transactions that have committed and are not acknowledged yet, because their epoch is not on
 * disk: how many of each epoch, and when those began whose latency is measured. Of one thread.
 */
struct acks {
	struct acks *next;	/* of the pool's list */
	uint32_t first, n;	/* epochs */
	uint32_t first_start, n_starts;
	struct {
		uint64_t epoch;
		uint64_t n;
		uint32_t n_starts;
	} epochs[ACKS_EPOCHS];	/* a ring */
	uint64_t starts[ACKS_STARTS];	/* a ring */
};

/*
 * Is there room for n more transactions, each of an epoch of its own? If not, wait for the oldest.
 */
static inline bool acks_have_room(const struct acks *acks, uint32_t n)
{
	return acks->n + n <= ACKS_EPOCHS && acks->n_starts + n <= ACKS_STARTS;
}

static inline bool acks_are_due(const struct acks *acks, uint64_t durable)
{
	return acks->n && acks->epochs[acks->first].epoch <= durable;
}

/*
 * Adds a transaction of the epoch, which is not lower than that of the call before. There must be
 * room. start_ns 0: its latency is not measured.
 */
void acks_push(struct acks *acks, uint64_t epoch, uint64_t start_ns);

/*
 * Acknowledges the transactions up to the epoch durable. Returns how many. hist (NULL: none) gets
 * their latencies.
 */
uint64_t acks_take(struct acks *acks, uint64_t durable, uint64_t now_ns, struct hist *hist);

/* The oldest and the newest epoch; there is one. */
static inline uint64_t acks_oldest(const struct acks *acks)
{
	return acks->epochs[acks->first].epoch;
}

static inline uint64_t acks_newest(const struct acks *acks)
{
	return acks->epochs[(acks->first + acks->n - 1) % ACKS_EPOCHS].epoch;
}

struct oltp_pool {
	struct oltp_engine *engine;
	struct oltp_workload workload;
	uint32_t latency_every;
	bool no_pin;
	struct oltp_arrivals *arrivals;	/* NULL: work is unlimited, or of the feed */
	const struct oltp_feed *feed;	/* NULL: none */
	/* Owner's thread only. */
	struct pool_worker **workers;
	uint32_t n_workers;
	struct pool_worker **idle;	/* threads without work, for the next add on their CPU */
	uint32_t n_idle;
	uint32_t room;			/* in either */
	struct oltp_totals gone_totals;	/* of workers that have left */
	struct hist_view gone_hist;
	struct acks *orphans;		/* of workers that left before all was acknowledged */
	uint64_t gone_idles, gone_stalled_ns;
	uint64_t last_arrived;
	uint64_t first_sample_ns, last_sample_ns;
	struct oltp_totals last_totals;
	struct hist_view last_hist;
};

/* The state of a thread. By changing it owner and thread hand the worker over to each other. */
enum pool_worker_state {
	POOL_WORKER_IDLE,	/* the owner's: waits for work, or to be told to quit */
	POOL_WORKER_STARTING,	/* the thread's from here on */
	POOL_WORKER_RUNNING,
	POOL_WORKER_QUIT,
};

/* A thread, and what it does or did last. The thread stays when the work ends. */
struct pool_worker {
	struct oltp_pool *pool;
	uint32_t cpu;
	pthread_t thread;
	struct oltp_worker *worker;	/* made by the thread, destroyed by the owner while idle */
	pthread_mutex_t lock;
	pthread_cond_t ordered;		/* the thread waits: idle no more */
	pthread_cond_t reported;	/* the owner waits: started, or idle again */
	enum pool_worker_state state;
	int start_rc;			/* why it is idle again without having run; 0: it ran */
	void *local;			/* under the lock; NULL: not attached */
	struct acks *acks;		/* made by the thread; NULL: commits count at once */

	/*
	 * Written by the owner of the pool, read by the worker once per transaction. 0: goes on;
	 * else it is to stop, and may end what it has begun until then (CLOCK_MONOTONIC).
	 */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t stop_by_ns;

	/* Written by the worker, read by the owner; since the work began. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t committed;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t failed;
	_Atomic uint64_t failed_io;
	_Atomic uint64_t failed_lost;
	_Atomic uint64_t cpu_ns;
	_Atomic uint64_t idles;	/* times that it found no work */
	_Atomic uint64_t stalled_ns;	/* from the first conflict of transactions to their end */
	struct hist hist;
};

/* The work of all workers since the start, by which their number is chosen. Owner's thread. */
struct pool_progress {
	uint64_t committed, stalled_ns, idles;
};

void pool_progress_read(const struct oltp_pool *pool, struct pool_progress *ret_progress);

/* Adds the figures of a worker that leaves to the pool's. *ret_totals (may be NULL): its own. */
void pool_figures_keep(struct oltp_pool *pool, const struct pool_worker *pw,
		       struct oltp_totals *ret_totals);

/*
 * Takes over the unacknowledged transactions of a worker that has left. They are counted once they
 * are durable; their latency is not measured. Accepts NULL.
 */
void pool_acks_adopt(struct oltp_pool *pool, struct acks *acks);

/* pthread entry; arg: struct pool_worker. */
void *pool_worker_main(void *arg);

#endif
