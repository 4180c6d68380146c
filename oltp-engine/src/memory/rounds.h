/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Emptying blocks, some at a time (a round): their old records go to disk, and the others move
 * together into free slots of other blocks. For the manager's thread.
 */
#ifndef OLTP_ROUNDS_H
#define OLTP_ROUNDS_H

#include "shrink.h"

#define VICTIMS_MAX	64u	/* blocks worked on between two waits for an epoch */
#define SETTLE_NS	100000000ull

struct round {
	struct block *victims[VICTIMS_MAX];
	uint64_t used[VICTIMS_MAX][SLOT_WORDS_MAX];
	uint32_t n;
};

/* What a walk over blocks is for. */
struct goal {
	uint32_t node;
	bool keeps;		/* the blocks stay with the engine: a table needs one */
	uint64_t deadline_ns;
};

/* Notes which stamps are about to go to disk, for threads that bring records back. */
void rounds_note(struct shrink *shrink, struct oltp_table *table, uint64_t threshold);

/*
 * So many of the bytes are still to be freed: the host may take a demand back, or a part of it, at
 * any time. Without a provider of blocks nobody demands, and the caller knows.
 */
uint64_t goal_left(struct shrink *shrink, const struct goal *goal, uint64_t bytes);

/* The deadline has passed, or the engine ends. */
bool goal_is_late(const struct shrink *shrink, uint64_t deadline_ns);

/* It is late, or nothing is left to be freed. */
bool goal_is_over(struct shrink *shrink, const struct goal *goal);

/*
 * Closes the victims and works on them until they are empty or nothing more goes. budget_bytes is
 * what may go to disk of records that are old (oldest_is). Returns how many records went.
 */
uint64_t round_run(struct shrink *shrink, struct round *round, const struct goal *goal,
		   uint64_t threshold, int64_t budget_bytes);

/*
 * Victims that are empty become unused once an epoch has passed; the others are opened again. One
 * that a transaction empties after the epoch began stays: that transaction is not waited for, and
 * may yet store the lock word of the record that it deleted. n_victims: as there were at first.
 * Returns the bytes of those that became unused.
 */
uint64_t round_end(struct shrink *shrink, struct round *round, uint32_t n_victims);

#endif
