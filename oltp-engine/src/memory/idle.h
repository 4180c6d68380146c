/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A clock that stands still while nobody runs transactions, and what a pause says while it lasts.
 * Pure.
 *
 * The age of a record's last use says how likely it is to be used again as long as there is
 * somebody to use it. In an engine that has nothing to do all of them are used less than before,
 * and alike: what was used ten times as much still will be, if anything is. The longer a pause has
 * lasted, the longer it will go on, as far as one can know; so less is left of what was expected
 * before it, by the root of its length: most is lost soon, when others may want the memory, and
 * something is left of it for long. Once a pause is over, it says nothing any more: there is
 * somebody again, and what was used much before the pause will be after it. So uses are noted by a
 * clock that leaves pauses out, and while one lasts there is a factor for all.
 */
#ifndef OLTP_IDLE_H
#define OLTP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * After which the half is left, if nothing else is wanted; a quarter after five times that, an
 * eighth after 21 times. See docs/numbers.md for why.
 */
#define IDLE_HALF_MS	120000u

/* Pauses say nothing. */
#define IDLE_NEVER	UINT32_MAX

/*
 * This part of that time (10 s by default, also with IDLE_NEVER) counts of each pause for ever: one
 * that is shorter is the rhythm of somebody who has few transactions, and not that there is nobody.
 */
#define IDLE_AFTER_PART	12u

struct idle {
	uint64_t activity;	/* as of the last look */
	uint64_t look_ns;	/* of the last look */
	uint64_t ran_ns;	/* of the last look that saw something run */
	uint64_t left_out_ns;	/* of pauses before that */
	uint32_t half_ms;
};

/* half_ms: at least 1, or IDLE_NEVER. The clock starts at now_ns. */
void idle_init(struct idle *idle, uint32_t half_ms, uint64_t activity, uint64_t now_ns);

/*
 * A look at what the engine does: activity changes whenever transactions end, is_running says that
 * some are under way. Returns what the clock says, which never goes back. Time may not go back.
 */
uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns);

/* What the clock says at the time, as far as is known by now. */
uint64_t idle_now(const struct idle *idle, uint64_t now_ns);

/* What is expected, of what is while something runs: 1 then, and less the longer nothing does. */
double idle_expected(const struct idle *idle, uint64_t now_ns);

/* Nothing has run for so long. */
bool idle_is_pause(const struct idle *idle, uint64_t now_ns, uint64_t ns);

#endif
