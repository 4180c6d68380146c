/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A clock that stands still while nobody runs transactions, and how much a pause counts while it
 * lasts. Pure.
 *
 * The age of a record's last use says how likely it is to be used again as long as there is
 * somebody to use it. In an engine that has nothing to do all records age alike: the longer that
 * lasts, the less likely any of them is used soon. Once it is over, that says nothing any more:
 * there is somebody again, and what was used much before the pause will be after it. So uses are
 * noted by a clock that leaves pauses out, and a part of the pause that goes on is added to ages.
 */
#ifndef OLTP_IDLE_H
#define OLTP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Of a pause that goes on, if nothing else is wanted: see docs/numbers.md for why. */
#define IDLE_PERCENT	70u

#define IDLE_NOTHING	UINT32_MAX

/*
 * This much of each pause counts for ever: one that is shorter is the rhythm of somebody who has
 * few transactions, and not that there is nobody.
 */
#define IDLE_AFTER_NS	10000000000ull

struct idle {
	uint64_t activity;	/* as of the last look */
	uint64_t look_ns;	/* of the last look */
	uint64_t ran_ns;	/* of the last look that saw something run */
	uint64_t left_out_ns;	/* of pauses before that */
	uint32_t percent;
};

/*
 * percent: of a pause that goes on, after its first IDLE_AFTER_NS; up to 100, or IDLE_NOTHING. The
 * clock starts at now_ns.
 */
void idle_init(struct idle *idle, uint32_t percent, uint64_t activity, uint64_t now_ns);

/*
 * A look at what the engine does: activity changes whenever transactions end, is_running says that
 * some are under way. Returns what the clock says, which never goes back. Time may not go back.
 */
uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns);

/*
 * What ages are counted to: the clock and what counts of the pause that goes on. Goes back to the
 * clock when that is over, so who compares two ages takes both by the same of these.
 */
uint64_t idle_now(const struct idle *idle, uint64_t now_ns);

/* Nothing has run for so long. */
bool idle_is_pause(const struct idle *idle, uint64_t now_ns, uint64_t ns);

#endif
