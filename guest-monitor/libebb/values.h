/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an application says its memory is worth: the caches that it has registered, and the
 * histogram that is made of them when the host asks.  Private to libebb.
 *
 * The lock is not held while a cache is read: what reads may take locks of its own, and
 * register and unregister.  A cache that is being read is unregistered when that has ended.
 */
#ifndef EBB_VALUES_H
#define EBB_VALUES_H

#include <pthread.h>

#include "ebb.h"

/* However often the host asks, a histogram is made no sooner than that after another. */
#define EBB_VALUES_INTERVAL_MS	1000

/* The driver has no room: again after that. */
#define EBB_VALUES_RETRY_MS	100

struct ebb_values {
	pthread_mutex_t lock;		/* for these */
	pthread_cond_t has_ended;	/* reading the cache has */
	struct ebb_vom_cache caches[EBB_VOM_MAX_CACHES]; /* read NULL: free */
	unsigned int num;
	unsigned int reading;		/* number + 1 of the cache that is being read; 0: none */
	pthread_t reader;

	/* Of the thread that dispatches. */
	uint32_t seq;			/* the last one that a histogram was made for; 0: none */
	int has_buckets;		/* 0: it could not be made */
	uint64_t made_ns;		/* 0: never */
	uint32_t num_buckets;
	struct ebb_vom_bucket buckets[EBB_VOM_MAX_BUCKETS]; /* nodes by number */
	uint32_t told_seq;		/* the driver knows; 0: none */
	uint64_t retry_ns;		/* not before that; 0: at once */
};

int ebb_values_init(struct ebb_values *values);
void ebb_values_finish(struct ebb_values *values);

/* Has anything been registered? */
int ebb_values_exist(struct ebb_values *values);

/*
 * The host asks for that number: reads the caches and makes the histogram, unless there is one of
 * that number.  Returns when to try again (ns), 0 for never.  Never fails: see has_buckets.
 */
uint64_t ebb_values_make(struct ebb_values *values, uint32_t seq, uint64_t now_ns);

#endif /* EBB_VALUES_H */
