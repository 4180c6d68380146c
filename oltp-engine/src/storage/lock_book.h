/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What running transactions let each other know when one is in another's way, a slot for each
 * worker's number. Only waiting writes to it. Slots live as long as the engine, so that nobody has
 * to care whether the worker is still there: what is in one speaks of the transaction whose age is
 * written beside it, and of no other.
 */
#ifndef OLTP_LOCK_BOOK_H
#define OLTP_LOCK_BOOK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/util.h"
#include "oltp.h"

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

/* Called again and again while the transaction is in the way, see lock_slot_heal. */
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
 * before, wounded or not. Nothing is lost: whoever finds it in the way wounds it again. One who
 * found the former in the way, and is only now about to say so, still costs one needless conflict.
 */
static inline void lock_slot_heal(struct lock_slot *slot)
{
	if (unlikely(atomic_load_explicit(&slot->wounded, memory_order_relaxed)))
		atomic_store_explicit(&slot->wounded, 0, memory_order_relaxed);
}

/* The transaction waits to write what is under this lock. */
void lock_book_want(struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word);
/* Harmless if it does not. */
void lock_book_unwant(struct lock_book *book, uint64_t ts);

/*
 * Does a transaction older than ts wait to write it? While one comes or goes the answer may be
 * wrong for a moment: to be asked again.
 */
bool lock_book_is_wanted(const struct lock_book *book, uint64_t ts, const _Atomic uint64_t *word);

#endif
