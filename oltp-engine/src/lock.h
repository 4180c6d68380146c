/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lock word in a record's header: 8 bytes, taken with one compare-and-swap, no queue.
 *
 *   63      62      61..52   51..0
 *   WRITER  WAITER  readers  held: age of the oldest holder (timestamp); free: the stamp
 *
 * Invariants:
 *   L1  WRITER set implies readers == 0, and the age is the writer's.
 *   L2  readers > 0: the age is <= that of every reader. It may be older than all of them (the
 *       oldest reader has left): the age rule then kills too many, never too few.
 *   L3  Neither: the word is free, whatever the other bits say. They are the stamp that the last
 *       holder left: the epoch of its use (recency costs no store of its own), or, if MARK is set,
 *       the mark of somebody who wants to know whether anyone has held the record since.
 *   L4  WAITER is a hint set by a writer that waits: new readers then compete by age instead of
 *       overtaking it. It may be lost at any time; whoever waits sets it again.
 *
 * Timestamps are unique among running transactions (the worker's number is in the low bits).
 * No deadlock: a transaction waits only while it is older than the age in the word, hence older
 * than every holder (L2); it looks again at every turn, so also for holders that joined later.
 * Edges of the wait-for graph thus go from older to younger only.
 */
#ifndef OLTP_LOCK_H
#define OLTP_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

#define LOCK_WRITER		(1ull << 63)
#define LOCK_WAITER		(1ull << 62)
#define LOCK_READERS_SHIFT	52
#define LOCK_READER_ONE		(1ull << LOCK_READERS_SHIFT)
#define LOCK_READERS_MASK	(0x3ffull << LOCK_READERS_SHIFT)
#define LOCK_HELD		(LOCK_WRITER | LOCK_READERS_MASK)
#define LOCK_TS_MASK		(LOCK_READER_ONE - 1)
/* Of a free word: not an epoch but a mark. */
#define LOCK_MARK		(1ull << 51)

/* Timestamp = clock << LOCK_TS_WORKER_BITS | worker number. */
#define LOCK_TS_WORKER_BITS	10

enum lock_verdict {
	LOCK_DIE,
	LOCK_WAIT,
};

/*
 * A concurrency control scheme: what to do about a busy word. holder: the word as seen;
 * is_upgrade: the caller is one of its readers.
 */
struct lock_scheme {
	const char *name;
	enum lock_verdict (*on_conflict)(uint64_t holder, uint64_t ts, bool is_upgrade);
};

/* NULL for an unknown scheme. */
const struct lock_scheme *lock_scheme_get(enum oltp_cc cc);

/*
 * The three ways to take a word return true when taken, else the word seen in *ret_seen. The
 * acquire on success pairs with the release in lock_release_*: what the last holder wrote to the
 * record is visible, and what it read was read before we write.
 */
static inline bool lock_try_shared(_Atomic uint64_t *word, uint64_t ts, uint64_t *ret_seen)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t new;

	do {
		if (!(old & LOCK_HELD)) {
			new = LOCK_READER_ONE | ts;
			continue;
		}
		if ((old & (LOCK_WRITER | LOCK_WAITER)) ||
		    (old & LOCK_READERS_MASK) == LOCK_READERS_MASK) {
			*ret_seen = old;
			return false;
		}
		new = old + LOCK_READER_ONE;
		if (ts < (old & LOCK_TS_MASK))
			new = (new & ~LOCK_TS_MASK) | ts;
	} while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/*
 * Shared, by somebody whose look is not a use: *ret_stamp, to be left when releasing, is the stamp
 * (or mark) that was there. Only a word that is free or has readers and nobody waiting.
 */
static inline bool lock_try_look(_Atomic uint64_t *word, uint64_t ts, uint64_t now,
				 uint64_t *ret_stamp)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t seen;

	if (old & LOCK_HELD) {
		*ret_stamp = now;
		return lock_try_shared(word, ts, &seen);
	}
	*ret_stamp = old & LOCK_TS_MASK;
	return atomic_compare_exchange_strong_explicit(word, &old, LOCK_READER_ONE | ts,
						       memory_order_acquire, memory_order_relaxed);
}

static inline bool lock_try_exclusive(_Atomic uint64_t *word, uint64_t ts, uint64_t *ret_seen)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);

	do {
		if (old & LOCK_HELD) {
			*ret_seen = old;
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(word, &old, LOCK_WRITER | ts,
							memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/* From reader to writer; mine: how many of the readers are the caller. */
static inline bool lock_try_upgrade(_Atomic uint64_t *word, uint64_t ts, uint64_t mine,
				    uint64_t *ret_seen)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);

	do {
		if ((old & LOCK_READERS_MASK) != mine << LOCK_READERS_SHIFT) {
			*ret_seen = old;
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(word, &old, LOCK_WRITER | ts,
							memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/*
 * The releases pair with the acquire above. A reader's needs the release too, although it wrote
 * nothing: a writer must not overwrite what is still being read. Later readers' swaps continue the
 * release sequence, so the writer sees every reader that has left.
 */
static inline void lock_release_shared(_Atomic uint64_t *word, uint64_t stamp)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t new;

	do {
		new = (old & LOCK_READERS_MASK) == LOCK_READER_ONE ?
			      (old & LOCK_WAITER) | stamp : old - LOCK_READER_ONE;
	} while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_release,
							memory_order_relaxed));
}

/* A plain store: nobody else changes a writer's word but for WAITER, which may be lost (L4). */
static inline void lock_release_exclusive(_Atomic uint64_t *word, uint64_t stamp)
{
	atomic_store_explicit(word, stamp, memory_order_release);
}

/* The last holder's stamp; 0 (older than all) where there is only a mark. */
static inline uint64_t lock_stamp(uint64_t free_word)
{
	return free_word & LOCK_MARK ? 0 : free_word & LOCK_TS_MASK;
}

/* Takes a word that is free, untouched since mark was left in it. */
static inline bool lock_try_marked(_Atomic uint64_t *word, uint64_t mark, uint64_t ts)
{
	return atomic_compare_exchange_strong_explicit(word, &mark, LOCK_WRITER | ts,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/*
 * Waits for a busy word, or not, as the scheme says. mine: readers that are the caller (upgrade).
 * *ret_seen: the youngest timestamp met, for the caller's clock; *ret_waited: it did wait.
 * OLTP_OK: taken, OLTP_CONFLICT: die.
 */
enum oltp_rc lock_contended(const struct lock_scheme *scheme, _Atomic uint64_t *word, uint64_t ts,
			    bool exclusive, uint64_t mine, uint64_t *ret_seen, bool *ret_waited);

#endif
