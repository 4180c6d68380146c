/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transactions that have committed and are not acknowledged yet, because their epoch is not on
 * disk: how many of each epoch, and when those began whose latency is measured. Pure; one thread's.
 */
#ifndef OLTP_WORKER_ACKS_H
#define OLTP_WORKER_ACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/hist.h"

#define ACKS_EPOCHS	256u
#define ACKS_STARTS	16384u

struct acks {
	struct acks *next;	/* of the pool's list */
	uint32_t first, n;	/* epochs */
	uint32_t first_start, n_starts;
	struct {
		uint64_t epoch;
		uint64_t n;
		uint32_t n_starts;
	} epochs[ACKS_EPOCHS];	/* a ring */
	uint64_t starts[ACKS_STARTS];	/* a ring */
};

/* For n more, of an epoch each? If not, the oldest epoch has to be waited for. */
static inline bool acks_have_room(const struct acks *acks, uint32_t n)
{
	return acks->n + n <= ACKS_EPOCHS && acks->n_starts + n <= ACKS_STARTS;
}

static inline bool acks_are_due(const struct acks *acks, uint64_t durable)
{
	return acks->n && acks->epochs[acks->first].epoch <= durable;
}

/* There is room, and no epoch before that was later. start_ns 0: is not measured. */
void acks_push(struct acks *acks, uint64_t epoch, uint64_t start_ns);

/*
 * Those up to the epoch durable are acknowledged now: returns how many. hist (NULL: none) gets
 * their latencies.
 */
uint64_t acks_take(struct acks *acks, uint64_t durable, uint64_t now_ns, struct hist *hist);

/* The oldest and the newest epoch; there is one. */
static inline uint64_t acks_oldest(const struct acks *acks)
{
	return acks->epochs[acks->first].epoch;
}

static inline uint64_t acks_newest(const struct acks *acks)
{
	return acks->epochs[(acks->first + acks->n - 1) % ACKS_EPOCHS].epoch;
}

#endif
