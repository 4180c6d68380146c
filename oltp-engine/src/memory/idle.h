/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A clock that stands still while no transactions run, and how much use of records can be expected
 * during such a pause. Pure.
 *
 * The age of a record's last use says how likely it is to be used again, as long as transactions
 * run. In a pause all records are used less, and all alike: one that was used ten times as much as
 * another still will be, if any is used. The longer a pause has lasted, the longer it can be
 * expected to go on. So the use that can be expected falls with the root of the pause's length:
 * most of it soon, when others may want the memory, and some remains for long. Once a pause is over
 * it says nothing any more: records that were used much before it will be used much after it. So
 * uses are timed by a clock that leaves pauses out, and during a pause one factor applies to all
 * records.
 */
#ifndef OLTP_IDLE_H
#define OLTP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The default: after a pause so long half of the use can still be expected, a quarter after five
 * times that, an eighth after 21 times. See docs/numbers.md for why.
 */
#define IDLE_HALF_MS	120000u

/* Pauses do not lower the use that is expected. */
#define IDLE_NEVER	UINT32_MAX

/*
 * This part of that time (10 s by default, also with IDLE_NEVER) is left out of no pause: a shorter
 * pause is the rhythm of an engine with few transactions, not the end of its work.
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
 * some are under way. Returns the clock's time, which never goes back. now_ns may not go back.
 */
uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns);

/* The clock's time at now_ns, as far as is known by now. */
uint64_t idle_now(const struct idle *idle, uint64_t now_ns);

/*
 * How much use can be expected, as a part of the use while transactions run: 1 then, less the
 * longer a pause lasts.
 */
double idle_expected(const struct idle *idle, uint64_t now_ns);

/* Has nothing run for so long? */
bool idle_is_pause(const struct idle *idle, uint64_t now_ns, uint64_t ns);

#endif
