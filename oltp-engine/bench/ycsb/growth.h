/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers for records that are inserted while a workload runs, and which of them are there: all
 * before the frontier. Inserts commit in any order; the frontier passes one once all before it have
 * committed, so a reader of numbers before the frontier finds a record. Any number of threads.
 */
#ifndef BENCH_GROWTH_H
#define BENCH_GROWTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Numbers that may be taken whose inserts have not committed; a power of two. */
#define GROWTH_AHEAD	4096u

struct growth {
	uint64_t max;			/* numbers are below it */
	_Atomic uint64_t next;
	_Atomic uint64_t frontier;
	/* Number + 1 of what committed, by number modulo GROWTH_AHEAD. */
	_Atomic uint64_t done[GROWTH_AHEAD];
};

/* Records 0 to n - 1 are there already. */
void growth_init(struct growth *growth, uint64_t n, uint64_t max);

/* False: none to be had, the table is full or too much is on its way. */
bool growth_take(struct growth *growth, uint64_t *ret_number);

/* The insert of a number that was taken has committed. */
void growth_commit(struct growth *growth, uint64_t number);

static inline uint64_t growth_frontier(const struct growth *growth)
{
	/* Pairs with growth_commit: who sees the number finds the record. */
	return atomic_load_explicit(&growth->frontier, memory_order_acquire);
}

#endif
