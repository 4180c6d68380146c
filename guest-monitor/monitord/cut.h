/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Collecting units of memory of a node where they are worth least.  Pure.
 *
 * The histogram of an application is made to fit the memory that it owns: memory that is missing
 * there has value 0, and if it says too much, the most valuable part does not count.  An
 * application can give as many whole units as its memory with values below a cut-off makes.  The
 * cut-off is the lowest at which all applications together can give enough.  Each gives these
 * units, and the rest comes from memory whose value is the cut-off itself, from the applications
 * that registered last first.
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
