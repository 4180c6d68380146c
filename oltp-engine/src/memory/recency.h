/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The records that are watched: oltp_memory.h says what for, recency_sample.h what is computed from
 * it.
 *
 * All records in some buckets of each table's index are watched. The hash of a key says which
 * bucket it is in, and the key stays in its slot there wherever the record goes (I3 in index.h). So
 * the sampler need not be told that records come, go, or move, and such records are no more and no
 * less likely to be watched. The buckets stay the same as long as they hold about as many records
 * as wanted.
 *
 * The manager looks in an announced epoch, so that memory to which the index points is not reused
 * meanwhile. A lock word, a key and a slot are read, nothing is written.
 */
#ifndef OLTP_RECENCY_H
#define OLTP_RECENCY_H

#include <pthread.h>

#include "oltp-engine/src/base/random.h"
#include "oltp-engine/src/index/index.h"
#include "oltp.h"
#include "recency_sample.h"

#define RECENCY_NONE	UINT16_MAX

struct recency_member {
	struct index_ref ref;	/* the slot, and what was there when it was last looked at */
	uint64_t key;
	struct recency recency;
	uint16_t next;		/* of the bucket, or free */
	uint16_t node;		/* that its block is of, or was last */
};

struct recency_bucket {
	uint64_t number;
	uint16_t first;		/* member */
};

struct recency_table {
	struct recency_bucket *buckets;
	uint32_t n, room;
	uint32_t hand;		/* where newcomers are looked for next */
	uint64_t first, step;	/* bucket i: see recency_step */
	uint32_t n_members, members_max;
	uint32_t n_resident;
};

struct recency_sampler {
	struct oltp_engine *engine;
	pthread_mutex_t lock;	/* everything below */
	struct random64 random;
	uint64_t looks, look_ns;
	uint64_t now_ns;	/* of the last turn */
	bool is_off;		/* nothing is watched */
	uint32_t n_tables;
	uint16_t free;
	struct recency_table tables[OLTP_TABLES_MAX];
	struct recency_member members[OLTP_MEMORY_SAMPLES_MAX];
	struct recency_clock clock;
};

/* Errors: -ENOMEM. */
int recency_create(struct oltp_engine *engine, uint64_t now_ns,
		   struct recency_sampler **ret_sampler);

/* Accepts NULL. */
void recency_destroy(struct recency_sampler *sampler);

/*
 * A look at all of them, after the epoch has advanced; by the manager's thread, or by any one in an
 * engine that has none. now_ns may stand still, as idle.h says, but not go back.
 */
void recency_turn(struct recency_sampler *sampler, uint32_t n_tables, uint64_t now_ns);

/* The epoch at which records of that age were used last; 0: not known. */
uint64_t recency_epoch(struct recency_sampler *sampler, uint64_t now_ns, uint64_t age_ns);

/* See oltp_memory_watch. */
void recency_watch(struct recency_sampler *sampler, bool is_on);

/* As oltp_memory_sample_read; expected: of the samples. */
uint32_t recency_read(struct recency_sampler *sampler, uint64_t now_ns, double expected,
		      struct oltp_memory_sample *ret_samples, uint32_t max);

#endif
