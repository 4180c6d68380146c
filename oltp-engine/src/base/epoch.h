/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Epochs: when may memory that others could still be looking at be used for something else?
 *
 * A reader of an index announces the epoch that it saw, and withdraws that when it is done. Memory
 * that can no longer be found may be reused once every reader has ended that began before the epoch
 * was advanced:
 *
 *	unlink everything; e = epoch_advance(); ... until epoch_has_passed(e); reuse
 *
 * Why that holds. A reader stores its announcement, then loads from the index; the one who reclaims
 * stores to the index, then loads the announcements. If each saw only the older state of the other,
 * memory would be reused under a reader; only a full barrier on both sides rules that out.
 * epoch_advance runs one on all CPUs with membarrier(2), so that readers, whose path is hot, need
 * none. Without membarrier(2), readers announce with an exchange.
 *
 * The lock word of a free record keeps an epoch as the time of the record's last use. So epochs
 * have to grow, but not at a steady rate.
 */
#ifndef OLTP_EPOCH_H
#define OLTP_EPOCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"
#include "util.h"

#define EPOCH_NONE	0ull	/* announced by a reader that looks at nothing */

/* Readers have numbers: workers their own, and 0 is the thread that moves memory. */
#define EPOCH_READERS	(OLTP_WORKERS_MAX + 1u)

struct epoch {
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t now;	/* from 1 */
	bool has_membarrier;
	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;	/* everything below */
	const _Atomic uint64_t *readers[EPOCH_READERS];	/* what each announces; NULL: none */
	uint32_t readers_end;				/* the highest number ever used, plus one */
};

void epoch_init(struct epoch *epoch);
void epoch_finish(struct epoch *epoch);

/* Registers a reader, before it announces anything; removes it, when it announces nothing. */
void epoch_join(struct epoch *epoch, uint32_t number, const _Atomic uint64_t *announced);
void epoch_quit(struct epoch *epoch, uint32_t number);

/*
 * Acquire pairs with the increment in epoch_advance: a thread that reads e sees all unlinks before
 * it.
 */
static inline uint64_t epoch_now(const struct epoch *epoch)
{
	return atomic_load_explicit(&epoch->now, memory_order_acquire);
}

static inline void epoch_enter(const struct epoch *epoch, _Atomic uint64_t *announced, uint64_t now)
{
	if (likely(epoch->has_membarrier)) {
		atomic_store_explicit(announced, now, memory_order_relaxed);
		/*
		 * membarrier() is the other half of this barrier, which keeps the compiler from
		 * reordering.
		 */
		atomic_signal_fence(memory_order_seq_cst);
	} else {
		atomic_exchange_explicit(announced, now, memory_order_seq_cst);
	}
}

/* Release pairs with the load in epoch_has_passed: all reads of the reader come before it. */
static inline void epoch_leave(_Atomic uint64_t *announced)
{
	atomic_store_explicit(announced, EPOCH_NONE, memory_order_release);
}

/* Returns the new epoch. */
uint64_t epoch_advance(struct epoch *epoch);

/*
 * Have all readers ended that began before epoch then? They alone see what was unlinked before it.
 */
bool epoch_has_passed(struct epoch *epoch, uint64_t then);

/* Waits for that. False: it was not so by deadline_ns (CLOCK_MONOTONIC). */
bool epoch_wait(struct epoch *epoch, uint64_t then, uint64_t deadline_ns);

#endif
