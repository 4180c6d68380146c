/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workload's state, shared by running (ycsb.c), loading and verifying. */
#ifndef BENCH_YCSB_PRIVATE_H
#define BENCH_YCSB_PRIVATE_H

#include <pthread.h>

#include "ycsb.h"
#include "zipf.h"

/* What committed transactions did. */
struct ycsb_books {
	uint64_t updates;
	uint64_t weighted_updates;
	uint64_t inconsistent_reads;
};

struct ycsb {
	struct ycsb_config config;
	struct oltp_engine *engine;
	struct oltp_table *table;
	/* Of the hot part, or of all; the newest one counts, older ones may still be in use. */
	struct zipf zipfs[YCSB_THETAS_MAX];
	_Atomic uint32_t n_zipfs;
	struct zipf spread;		/* puts ranks of both parts all over the keys */
	uint64_t hot;			/* records that are not of the cold part */
	uint64_t cold_share;		/* of accesses, in 2^-32; 0: there is no cold part */
	_Atomic uint64_t attached;	/* workers ever, for their seeds */
	pthread_mutex_t lock;		/* books: workers add theirs when they detach */
	struct ycsb_books books;
};

#endif
