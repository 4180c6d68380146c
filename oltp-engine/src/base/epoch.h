/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Epochs: when may memory that others could still be looking at be used for something else?
 *
 * Whoever looks things up in an index announces the epoch it saw, and takes that back when it is
 * through. What is no longer to be found can be used again once everybody has ended who began
 * before:
 *
 *	unlink everything; e = epoch_advance(); ... until epoch_has_passed(e); reuse
 *
 * Why that holds. A reader stores its announcement, then loads from the index; the one who reclaims
 * stores to the index, then loads the announcements. If each sees the other's older state there is
 * trouble; it takes a full barrier on both sides to rule it out. epoch_advance has one run on all
 * CPUs with membarrier(2), so that readers, who are many and in a hurry, need none. Where there is
 * no membarrier, readers announce with an exchange.
 *
 * The same number is what the lock word of a free record keeps as the time of its last use: it only
 * has to grow, not to be regular.
 */
#ifndef OLTP_EPOCH_H
#define OLTP_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "util.h"

#define EPOCH_NONE	0ull	/* announced: not looking at anything */

/* Readers have numbers: workers their own, and 0 is the thread that moves memory. */
#define EPOCH_READERS	(OLTP_WORKERS_MAX + 1u)

struct epoch {
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t now;	/* from 1 */
	bool has_membarrier;
	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;	/* everything below */
	const _Atomic uint64_t *readers[EPOCH_READERS];	/* what each announces; NULL: none */
	uint32_t readers_end;				/* the highest number ever, and one */
};

void epoch_init(struct epoch *epoch);
void epoch_finish(struct epoch *epoch);

/* A reader comes, before it announces anything, and goes, when it announces nothing any more. */
void epoch_join(struct epoch *epoch, uint32_t number, const _Atomic uint64_t *announced);
void epoch_quit(struct epoch *epoch, uint32_t number);

/* Acquire pairs with the increment in epoch_advance: whoever reads e sees what was unlinked. */
static inline uint64_t epoch_now(const struct epoch *epoch)
{
	return atomic_load_explicit(&epoch->now, memory_order_acquire);
}

static inline void epoch_enter(const struct epoch *epoch, _Atomic uint64_t *announced, uint64_t now)
{
	if (likely(epoch->has_membarrier)) {
		atomic_store_explicit(announced, now, memory_order_relaxed);
		/*
		 * The other half of the barrier is membarrier()'s; keep the compiler from mixing.
		 */
		atomic_signal_fence(memory_order_seq_cst);
	} else {
		atomic_exchange_explicit(announced, now, memory_order_seq_cst);
	}
}

/* Release pairs with the load in whoever asks: all that was read was read before. */
static inline void epoch_leave(_Atomic uint64_t *announced)
{
	atomic_store_explicit(announced, EPOCH_NONE, memory_order_release);
}

/* Returns the new epoch. */
uint64_t epoch_advance(struct epoch *epoch);

/* Have all readers ended that might have begun before then? Nobody sees what was unlinked. */
bool epoch_has_passed(struct epoch *epoch, uint64_t then);

#endif
