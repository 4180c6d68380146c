/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collecting units of memory of a node where they are worth least.  Pure.
 *
 * What an application has said of its memory is made to fit what it owns: what is missing is worth
 * nothing, of what is too much the most valuable does not count.  Below a cut-off it can give the
 * whole units that what it has below makes.  The cut-off is the lowest at which all together can
 * give enough; each gives what it can below it, and what is still missing comes from what is worth
 * just that much, of the applications that came last first.
 */
#ifndef EBB_CUT_H
#define EBB_CUT_H

#include <stddef.h>
#include <stdint.h>
#include <linux/ebb_ioctl.h>

struct ebb_cut {
	const struct ebb_vom_bucket *buckets; /* of all nodes; values rise within each */
	uint32_t num_buckets;
	uint64_t owned;			/* there, a multiple of step; 0: does not take part */
	uint64_t units;			/* result: units that it gives */
};

/* Returns how many of the units, each worth step, nobody could give. */
uint64_t ebb_cut_down(struct ebb_cut *parts, size_t num, uint32_t node, uint64_t units,
		      uint64_t step);

#endif /* EBB_CUT_H */
