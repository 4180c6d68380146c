/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dividing an amount in proportion to weights, where nobody gets less than a lower bound or more
 * than an upper one ("water-filling").  The part that one cannot have goes to the others in the
 * same proportion.
 */
#ifndef EBB_MODEL_LEVEL_H
#define EBB_MODEL_LEVEL_H

#include <stddef.h>
#include <stdint.h>

/* All but the weight in the unit of what is divided: CPUs, cores, or blocks. */
struct ebb_level_part {
	uint32_t low, high;		/* bounds of value; low <= high */
	uint32_t weight;		/* 0 counts as 1 */
	uint32_t has;			/* of the last unit, see below; 0: no matter */
	uint32_t value;			/* out */
};

/*
 * Sets each value to weight x level within its bounds, where the level is the highest at which the
 * values together are no more than the total.  The level is a number with a fraction, so that units
 * may be left for which the next level has too many takers.  They go one each to parts that the
 * next level would give more: first to those that have more than their value, which keep it, and
 * among these, and then among the others, to the first ones.
 *
 * So the values together are the total; or the sum of all low, if the total is less; or the sum of
 * all high, if it is more.  total: up to 2^63 - 1, and so are these sums.
 */
void ebb_level_fill(struct ebb_level_part *parts, size_t count, uint64_t total);

#endif /* EBB_MODEL_LEVEL_H */
