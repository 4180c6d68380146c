/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A clock that goes slowly while nobody runs transactions. Pure.
 *
 * The age of a record's last use says how likely it is to be used again as long as there is
 * somebody to use it. In an engine that has nothing to do all records age alike, which says little
 * of what they are worth when it goes on; by this clock only a part of that time makes them older.
 */
#ifndef OLTP_IDLE_H
#define OLTP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a pause, if nothing else is wanted, a fifth counts: see docs/numbers.md for why. */
#define IDLE_PART	5u

#define IDLE_NOTHING	UINT32_MAX

/* Pauses up to this count in full: between the transactions of somebody who has few. */
#define IDLE_AFTER_NS	1000000000ull

struct idle {
	uint64_t activity;	/* as of the last look */
	uint64_t look_ns;	/* of the last look */
	uint64_t ran_ns;	/* of the last look that saw something run */
	uint64_t left_out_ns;	/* of pauses before that */
	uint32_t part;
};

/*
 * After the first IDLE_AFTER_NS of a pause, one part in so many of it counts; at least 1, or
 * IDLE_NOTHING.
 */
void idle_init(struct idle *idle, uint32_t part, uint64_t activity, uint64_t now_ns);

/*
 * A look at what the engine does: activity changes whenever transactions end, is_running says that
 * some are under way. Returns idle_now. Time may not go back.
 */
uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns);

/* What the clock says: it starts at the time of idle_init, and never goes back. */
uint64_t idle_now(const struct idle *idle, uint64_t now_ns);

#endif
