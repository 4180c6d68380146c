/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker pool's own structures: what its thread (worker_thread.c) and its owner share. */
#ifndef OLTP_WORKER_POOL_H
#define OLTP_WORKER_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "arrivals.h"
#include "hist.h"
#include "oltp.h"
#include "util.h"

struct oltp_pool {
	struct oltp_engine *engine;
	struct oltp_workload workload;
	uint32_t latency_every;
	bool no_pin;
	struct oltp_arrivals *arrivals;	/* NULL: work is unlimited */
	/* Owner's thread only. */
	struct pool_worker **workers;
	uint32_t n_workers, room;
	struct oltp_totals gone_totals;	/* of workers that have left */
	struct hist_view gone_hist;
	uint64_t gone_idles, gone_stalled_ns;
	uint64_t last_arrived;
	uint64_t first_sample_ns, last_sample_ns;
	struct oltp_totals last_totals;
	struct hist_view last_hist;
};

struct pool_worker {
	struct oltp_pool *pool;
	uint32_t cpu;
	pthread_t thread;
	struct oltp_worker *worker;	/* made by the thread, destroyed after the join */
	/* Handshake of the start. */
	pthread_mutex_t lock;
	pthread_cond_t started;
	bool is_started;
	int start_rc;

	/* Written by the owner of the pool, read by the worker once per transaction. */
	_Alignas(CACHE_PAD_BYTES) _Atomic bool stop;

	/* Written by the worker, read by the owner. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t committed;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t failed;
	_Atomic uint64_t failed_io;
	_Atomic uint64_t failed_lost;
	_Atomic uint64_t cpu_ns;
	_Atomic uint64_t idles;	/* times that nothing waited to be done */
	_Atomic uint64_t stalled_ns;	/* from the first conflict of transactions to their end */
	struct hist hist;
};

/* What the workers have done since the start, for decisions about their number. Owner's thread. */
struct pool_progress {
	uint64_t committed, stalled_ns, idles;
};

void pool_progress_read(const struct oltp_pool *pool, struct pool_progress *ret_progress);

/* pthread entry; arg: struct pool_worker. */
void *pool_worker_main(void *arg);

#endif
