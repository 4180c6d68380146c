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
 *       holder left: the epoch of its use (recency costs no store of its own) and the two flags
 *       of the promised memory (TAKEN, COUNTED: txn/promise.h); or, if MARK is set, the mark of a
 *       thread that wants to know whether the record has been held since.
 *   L4  WAITER is a hint set by a writer that waits: new readers then compete by age instead of
 *       overtaking it. It may be lost at any time; a waiting writer sets it again.
 *
 * Timestamps are unique among running transactions (the worker's number is in the low bits). A
 * waiter checks everything anew at every turn, so what follows is true of holders that came later,
 * too. Movers and oltp_table_scan hold locks without being transactions: they wait for nothing
 * while they hold one, so no cycle of the wait-for graph includes them.
 *
 * No deadlock under WAIT_DIE: a transaction waits only while it is older than the age in the word,
 * hence older than every holder (L2). Edges of the wait-for graph go from older to younger only.
 *
 * No deadlock under WOUND_WAIT: edges from younger to older may stay, and every edge from older to
 * younger goes away by itself. A transaction waits for
 *  - a younger writer: the writer was wounded. If it waits itself, it sees the wound and dies;
 *    if not, it ends.
 *  - readers, in order to write: it has announced that (lock_book_want). A younger reader that
 *    waits looks at all records that it holds shared, sees that an older transaction wants one of
 *    them, and dies.
 *  - readers, in order to read, because WAITER is set: only while an older transaction wants to
 *    write. It waits for that one, and joins the readers once there is none.
 * Hence no cycle: one of its edges would lead from older to younger, and the younger one, which
 * waits like all in the cycle, dies. The oldest transaction is never wounded. It may take itself
 * for a younger one (L2) and die for a lock, but LOCK_PATIENT_AFTER times at most: it gets through.
 * A transaction that has made all its accesses takes no notice of wounds: it waits for nothing.
 */
#ifndef OLTP_LOCK_H
#define OLTP_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/util.h"
#include "oltp.h"

/*
 * How transactions tell each other that one is in another's way: a slot for each worker's number.
 * Only those that wait write to slots. Slots live as long as the engine, so a worker may go at any
 * time. A slot's contents concern only the transaction whose timestamp is in it.
 */

/* Timestamp = clock << LOCK_TS_WORKER_BITS | worker number. */
#define LOCK_TS_WORKER_BITS	10
#define LOCK_TS_WORKER_MASK	((1u << LOCK_TS_WORKER_BITS) - 1)

_Static_assert(LOCK_TS_WORKER_MASK >= OLTP_WORKERS_MAX, "a timestamp names the worker");

struct lock_slot {
	/* Timestamp of the transaction that is to make way for an older one; 0: none. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t wounded;
	/* The lock word that its transaction waits to write, 0: none; and its timestamp. */
	_Atomic uintptr_t wanted;
	_Atomic uint64_t wanted_ts;
};

struct lock_book {
	struct lock_slot slots[OLTP_WORKERS_MAX + 1];
	_Atomic uint32_t end;	/* the highest number ever */
};

static inline struct lock_slot *lock_book_slot(struct lock_book *book, uint64_t ts)
{
	return &book->slots[ts & LOCK_TS_WORKER_MASK];
}

/* There is a worker of this number. Callers exclude each other. */
void lock_book_enter(struct lock_book *book, uint32_t number);

/* Called again and again while the transaction is in the way, see lock_slot_clear_wound. */
static inline void lock_book_wound(struct lock_book *book, uint64_t ts)
{
	struct lock_slot *slot = lock_book_slot(book, ts);

	if (atomic_load_explicit(&slot->wounded, memory_order_relaxed) != ts)
		atomic_store_explicit(&slot->wounded, ts, memory_order_relaxed);
}

static inline bool lock_slot_is_wounded(const struct lock_slot *slot, uint64_t ts)
{
	return atomic_load_explicit(&slot->wounded, memory_order_relaxed) == ts;
}

/*
 * By the worker, before a transaction takes its first lock. Its timestamp may be that of the one
 * before, wounded or not. Nothing is lost: a transaction that it blocks wounds it again. A wound
 * that was meant for the former one and is stored only now costs one needless conflict.
 */
static inline void lock_slot_clear_wound(struct lock_slot *slot)
{
	if (unlikely(atomic_load_explicit(&slot->wounded, memory_order_relaxed)))
		atomic_store_explicit(&slot->wounded, 0, memory_order_relaxed);
}

/* The transaction waits to write what is under this lock. */
void lock_book_want(struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word);
/* It does not wait any more. Does nothing if it did not. */
void lock_book_unwant(struct lock_book *book, uint64_t ts);

/*
 * Does a transaction older than ts wait to write it? While one comes or goes the answer may be
 * wrong for a moment: to be asked again.
 */
bool lock_book_is_wanted(const struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word);

#define LOCK_WRITER		(1ull << 63)
#define LOCK_WAITER		(1ull << 62)
#define LOCK_READERS_SHIFT	52
#define LOCK_READER_ONE		(1ull << LOCK_READERS_SHIFT)
#define LOCK_READERS_MASK	(0x3ffull << LOCK_READERS_SHIFT)
#define LOCK_HELD		(LOCK_WRITER | LOCK_READERS_MASK)
#define LOCK_TS_MASK		(LOCK_READER_ONE - 1)
/* Of a free word: not an epoch but a mark. */
#define LOCK_MARK		(1ull << 51)
/*
 * Of a free word with an epoch, for the simulated cache of the promised memory: it took the record
 * in at its last use; that use is one of a transaction that is going to run again.
 */
#define LOCK_TAKEN		(1ull << 50)
#define LOCK_COUNTED		(1ull << 49)
#define LOCK_EPOCH_MASK		(LOCK_COUNTED - 1)

/* Of the thread that moves memory: the oldest of all, it waits for nobody. */
#define LOCK_TS_MANAGER		0ull

/*
 * How long a waiter spins before it yields the CPU, and again after each time that it did: the time
 * of a few transactions. A holder that takes longer most likely has no CPU, and may need this one.
 */
#define LOCK_SPIN_NS		2000u

/*
 * Under WOUND_WAIT young transactions would yield with their locks held, and others would wait for
 * them: with many more workers than CPUs hardly any would run. So a young one aborts instead, as in
 * a conflict, but this many times in a row at most.
 */
#define LOCK_PATIENT_AFTER	16u

enum lock_verdict {
	LOCK_DIE,
	LOCK_WAIT,
	LOCK_JOIN,	/* the readers, although a writer waits */
};

struct lock_scheme;

/* A transaction that wants a busy lock. */
struct lock_wait {
	const struct lock_scheme *scheme;
	struct lock_book *book;
	_Atomic uint64_t *word;
	uint64_t ts;
	bool exclusive;
	uint64_t mine;		/* readers that are the caller: an upgrade */
	uint32_t n_retries;	/* conflicts the transaction has met before */
	/* Is a lock that it holds shared wanted by an older one (lock_is_in_the_way)? */
	bool (*is_in_the_way)(const void *holder);
	const void *holder;
	bool is_long;		/* the wait, since others were offered the CPU: see LOCK_SPIN_NS */
	/* Results. */
	uint64_t youngest;	/* timestamp met, for the caller's clock */
	bool has_waited;
	bool was_wounded;	/* died to make way for an older one */
};

/* A concurrency control scheme: what to do about a busy word, which was seen like this. */
struct lock_scheme {
	const char *name;
	enum lock_verdict (*on_conflict)(struct lock_wait *wait, uint64_t seen);
};

/* NULL for an unknown scheme. */
const struct lock_scheme *lock_scheme_get(enum oltp_cc cc);

/* The word with a reader more than it has; it has one. */
static inline uint64_t lock_add_reader(uint64_t word, uint64_t ts)
{
	word += LOCK_READER_ONE;
	return ts < (word & LOCK_TS_MASK) ? (word & ~LOCK_TS_MASK) | ts : word;
}

/*
 * The ways to take a word return true when taken; *ret_seen is the word seen, of shared and
 * exclusive also when taken: the one that was there before. The
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
		new = lock_add_reader(old, ts);
	} while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_acquire,
							memory_order_relaxed));
	*ret_seen = old;
	return true;
}

/* In one try, of a word that is free: no holder is waited for or joined. */
static inline bool lock_try_free(_Atomic uint64_t *word, uint64_t ts, bool exclusive,
				 uint64_t *ret_seen)
{
	*ret_seen = atomic_load_explicit(word, memory_order_relaxed);
	return !(*ret_seen & LOCK_HELD) &&
	       atomic_compare_exchange_weak_explicit(word, ret_seen,
						     (exclusive ? LOCK_WRITER :
								  LOCK_READER_ONE) | ts,
						     memory_order_acquire, memory_order_relaxed);
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

/* Shared, beside other readers, even if a writer waits. False: there are none, or too many. */
static inline bool lock_try_join(_Atomic uint64_t *word, uint64_t ts)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	uint64_t new;

	do {
		if (!(old & LOCK_READERS_MASK) ||
		    (old & LOCK_READERS_MASK) == LOCK_READERS_MASK)
			return false;
		new = lock_add_reader(old, ts);
	} while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_acquire,
							memory_order_relaxed));
	return true;
}

/*
 * When taken, *ret_seen is the free word that was there: a caller that wants to leave the stamp as
 * it was takes it from that (lock_left), since a word read before may contain a holder's age.
 */
static inline bool lock_try_exclusive(_Atomic uint64_t *word, uint64_t ts, uint64_t *ret_seen)
{
	uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
	bool is_taken = false;

	while (!is_taken && !(old & LOCK_HELD))
		is_taken = atomic_compare_exchange_weak_explicit(word, &old, LOCK_WRITER | ts,
								 memory_order_acquire,
								 memory_order_relaxed);
	*ret_seen = old;
	return is_taken;
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
 * nothing: a writer must not overwrite data that is still being read. Later readers' swaps continue
 * the release sequence, so the writer sees every reader that has left.
 */
static inline void lock_release_reader(_Atomic uint64_t *word, uint64_t old, uint64_t stamp)
{
	uint64_t new;

	do {
		new = (old & LOCK_READERS_MASK) == LOCK_READER_ONE ?
			      (old & LOCK_WAITER) | stamp : old - LOCK_READER_ONE;
	} while (!atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_release,
							memory_order_relaxed));
}

static inline void lock_release_shared(_Atomic uint64_t *word, uint64_t stamp)
{
	lock_release_reader(word, atomic_load_explicit(word, memory_order_relaxed), stamp);
}

/*
 * The same of a transaction as old as ts, which most likely is alone and took the word when it was
 * free. So that is tried, and the word is not looked at before.
 */
static inline void lock_release_alone(_Atomic uint64_t *word, uint64_t ts, uint64_t stamp)
{
	lock_release_reader(word, LOCK_READER_ONE | ts, stamp);
}

/* A plain store: nobody else changes a writer's word but for WAITER, which may be lost (L4). */
static inline void lock_release_exclusive(_Atomic uint64_t *word, uint64_t stamp)
{
	atomic_store_explicit(word, stamp, memory_order_release);
}

/* What the last holder left, flags included; 0 (older than all) where there is only a mark. */
static inline uint64_t lock_left(uint64_t free_word)
{
	return free_word & LOCK_MARK ? 0 : free_word & LOCK_TS_MASK;
}

/* The epoch in it. */
static inline uint64_t lock_stamp(uint64_t free_word)
{
	return lock_left(free_word) & LOCK_EPOCH_MASK;
}

/* Takes a word that is free, untouched since mark was left in it. */
static inline bool lock_try_marked(_Atomic uint64_t *word, uint64_t mark, uint64_t ts)
{
	return atomic_compare_exchange_strong_explicit(word, &mark, LOCK_WRITER | ts,
						       memory_order_acquire,
						       memory_order_relaxed);
}

/* Of a word that a transaction as old as ts holds shared: does an older one wait to write? */
static inline bool lock_is_in_the_way(const struct lock_book *book, uint64_t ts,
				      const _Atomic uint64_t *word)
{
	return (atomic_load_explicit(word, memory_order_relaxed) & LOCK_WAITER) &&
	       lock_book_is_wanted(book, ts, word);
}

/* Waits for a busy word, or not, as the scheme says. OLTP_OK: taken, OLTP_CONFLICT: die. */
enum oltp_rc lock_contended(struct lock_wait *wait);

#endif
