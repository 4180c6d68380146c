/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The promised memory: tells the simulation (baseline.h) of every use that transactions make of
 * sampled records, wherever the records are. See oltp_memory.h for what it is good for.
 *
 * What the simulation has to know of a record is kept with the record: the epoch of its last use
 * and two flags, in its lock word while it is in memory and free (LOCK_TAKEN, LOCK_COUNTED), with
 * its stub while it is on disk (cold.h: the epoch and LOCK_TAKEN).
 *
 *	access of a record in memory	promise_use; flags go with the stamp when it is released
 *	record on disk			promise_fetch, when its read is begun; it comes in with
 *					LOCK_COUNTED, so that the transaction, which is then run
 *					again, does not count for a second use
 *	abort				leaves LOCK_COUNTED, too, for the same reason
 *	insert, delete			promise_insert, promise_delete
 *
 * The use of a record that others hold at that moment, or that is on its way to disk, is not
 * counted: the stamp is not to be seen then.
 *
 * Each worker collects what uses mean in a batch of its own. Shared lines are written once for each
 * batch: when it is full, and with the first use of a new epoch.
 */
#ifndef OLTP_PROMISE_H
#define OLTP_PROMISE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/baseline.h"
#include "oltp-engine/src/base/util.h"
#include "oltp-engine/src/storage/lock.h"

struct oltp_table;
struct oltp_worker;

#define PROMISE_BATCH	64u

/* Of one worker; what it has not handed in yet. */
struct promise_batch {
	uint64_t epoch;		/* of all its uses */
	uint32_t n;
	struct baseline_use uses[PROMISE_BATCH];
};

#define PROMISE_NONE	UINT64_MAX

struct promise {
	/* Read at every access, written seldom. */
	_Atomic uint64_t mask;		/* of hashes (baseline.h); PROMISE_NONE: nothing promised */
	_Atomic uint64_t held, recent;	/* struct baseline_rule, as of the last batch */
	/* Epoch: records that were last used before it count as taken in then (promise_set). */
	_Atomic uint64_t since;
	/* Written with every batch: on other cache lines. */
	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;
	struct baseline baseline;
	uint32_t mib;			/* promised */
	uint64_t ios;			/* actual ones, of the times in which something was */
	uint64_t ios_from;		/* what the engine had counted when the present one began */
	uint64_t uses;			/* handed in since the last look (promise_turn) */
	uint64_t look_ns;		/* when that was */
};

void promise_init(struct promise *promise);
void promise_finish(struct promise *promise);

/* So many bytes of all records were last used at that epoch (0: not known). */
struct promise_age {
	uint64_t epoch;
	uint64_t bytes;
};

/*
 * What is promised from now on. The simulated memory does not start empty: it has the bytes used
 * last, as far as the ages tell, and those of records used earlier than now that the ages fit. So
 * nothing is counted for filling it. ages are sorted by this.
 */
struct promise_size {
	uint32_t mib;			/* 0: nothing */
	uint64_t bytes;			/* of records that a memory of so many MiB holds */
	uint64_t n_records;		/* in the engine */
	struct promise_age *ages;
	uint32_t n_ages;
	uint64_t now;			/* epoch */
	uint64_t ios;			/* actual ones, that the engine has counted */
};

void promise_set(struct promise *promise, const struct promise_size *size);

/* So much is promised, MiB. */
uint32_t promise_mib(struct promise *promise);

/* What may have changed since the promise was made. */
struct promise_facts {
	uint64_t bytes;		/* as in promise_size */
	uint64_t n_records;	/* in the engine */
	uint32_t n_workers;
	uint64_t now;		/* epoch */
	uint64_t now_ns;	/* CLOCK_MONOTONIC */
};

/*
 * From time to time. Samples fewer records if there are many more of them, or if the uses of those
 * sampled take much of the workers' time, and more again when they do not.
 */
void promise_turn(struct promise *promise, const struct promise_facts *facts);

/* ios: actual ones, that the engine has counted. */
void promise_read(struct promise *promise, uint64_t ios, uint64_t *ret_baseline_ios,
		  uint64_t *ret_actual_ios);

/* Is it worth calling the functions below? With nothing promised hardly ever. */
static inline bool promise_watches(const struct promise *promise, uint64_t hash)
{
	return baseline_is_sampled(hash,
				   atomic_load_explicit(&promise->mask, memory_order_relaxed));
}

/*
 * The worker's transaction has locked the record, whose word was seen before. True: it is to be
 * left with LOCK_TAKEN.
 */
bool promise_use(struct oltp_worker *worker, const struct oltp_table *table, uint64_t seen,
		 bool exclusive);

/*
 * The worker begins to read the record from disk. now: epoch; before and was_taken as noted there.
 * Returns the flags that it is to come in with.
 */
uint64_t promise_fetch(struct oltp_worker *worker, const struct oltp_table *table, uint64_t now,
		       uint64_t before, bool was_taken);

/* As promise_use, of a record that is new. */
bool promise_insert(struct oltp_worker *worker, const struct oltp_table *table);

/* The record that the worker's transaction has locked, and was taken, goes for good. */
void promise_delete(struct oltp_worker *worker, const struct oltp_table *table);

#endif
