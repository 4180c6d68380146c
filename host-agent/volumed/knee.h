/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which depth a disk is best used with, from what was measured at several.  Pure.
 *
 * Up to some depth a disk does more the more requests it has; from there on each only takes longer.
 * The depth to use is the least that gives nearly all of what the disk can do.
 */
#ifndef EBB_VOLUMED_KNEE_H
#define EBB_VOLUMED_KNEE_H

#include <stddef.h>
#include <stdint.h>

/* Of the most requests per second that were measured, so much is enough. */
#define EBB_KNEE_PERCENT	90

struct ebb_knee_point {
	uint32_t depth;			/* requests at a time */
	uint64_t iops;			/* completed per second */
	uint32_t mean_us, p99_us;	/* how long one took */
};

/* Index of the point to use; num is 1 or more, depths rise. */
size_t ebb_knee_find(const struct ebb_knee_point *points, size_t num);

#endif
