/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A provider of blocks that hands all calls on to another one and notes how long they took. */
#ifndef BENCH_BLOCK_TIMES_H
#define BENCH_BLOCK_TIMES_H

#include <pthread.h>

#include "oltp.h"

/* Of more calls than that, the first ones are kept. */
#define BLOCK_TIMES_MAX	4096u

struct block_times {
	const struct oltp_block_ops *ops;	/* of the other one */
	void *ctx;
	pthread_mutex_t lock;			/* what follows */
	struct block_calls {
		uint64_t n;
		double ms[BLOCK_TIMES_MAX];
	} add, release;
};

/* To be given to the engine with a struct block_times as its context. */
extern const struct oltp_block_ops block_times_ops;

void block_times_init(struct block_times *times, const struct oltp_block_ops *ops, void *ctx);
void block_times_finish(struct block_times *times);

/* Of the calls until now, those that failed left out. Any thread. */
void block_times_get(struct block_times *times, struct oltp_latency_summary *ret_add,
		     struct oltp_latency_summary *ret_release);

#endif
