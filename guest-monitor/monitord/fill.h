/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handing out and collecting units one after the other, always levelling; in
 * closed form, as memory has many units.  Pure.
 */
#ifndef EBB_FILL_H
#define EBB_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ebb_fill {
	bool is_in;			/* takes part */
	uint64_t level;			/* what it has before */
	uint64_t most;			/* units that it can give; for ebb_fill_down() only */
	uint64_t units;			/* result: units that it receives, or gives; 0 if not in */
};

/*
 * Levels up to 2^56, and so many units times step, do not overflow with the
 * participants that the monitor can have.
 */

/*
 * Units, each worth step, go one after the other to the participant with the
 * lowest level, of several to the first.  Nobody takes part: nobody gets any.
 */
void ebb_fill_up(struct ebb_fill *parts, size_t num, uint64_t units, uint64_t step);

/*
 * Units, each worth step, come one after the other from the participant with the
 * highest level of those that can give one more, of several from the last.
 * most * step <= level for each.  Returns how many units nobody could give.
 */
uint64_t ebb_fill_down(struct ebb_fill *parts, size_t num, uint64_t units, uint64_t step);

#endif /* EBB_FILL_H */
