/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much memory the promise of a cache takes, pure.
 *
 * M MiB are promised, so M MiB are enough, and are what a VM gets beyond its minimum while nothing
 * is known.  Often less will do, because the engine's own cache is better than the simulated
 * one, or its load is another than it was.  So the floor is controlled: it grows by a large step,
 * up to M, in each interval in which the engine read from disk more often than the simulated cache,
 * and shrinks by a small step when the engine has read clearly less often for a while.  It shrinks
 * only while the VM has no more memory than the floor: with more, nothing is known of what it would
 * do with less.  An idle VM keeps its floor, as a dedicated cache keeps its content.
 *
 * Other VMs may hold the part of M above the floor, and give it back by their deadline.
 */
#ifndef EBB_CORE_FLOOR_CONTROL_H
#define EBB_CORE_FLOOR_CONTROL_H

#include "model/relio.h"
#include "core/vm.h"

/* Parts of what is promised, by which the floor grows and shrinks. */
#define FLOOR_GROWS	8u
#define FLOOR_SHRINKS	16u
/* It shrinks after so many intervals in a row, each with a Relative IO below -1 / FLOOR_MARGIN. */
#define FLOOR_CALM	10u
#define FLOOR_MARGIN	10u
/* Fewer baseline I/Os in an interval say nothing of how much memory is needed. */
#define FLOOR_LEAST_IOS	100u

/*
 * After an interval.  promised, held: blocks beyond the minimum that are promised, and that the VM
 * held at its end.  Returns whether `want` has changed.
 */
bool floor_step(struct floor_control *c, uint32_t promised, uint32_t held,
		enum ebb_relio_verdict verdict, const struct ebb_relio_interval *i);

#endif /* EBB_CORE_FLOOR_CONTROL_H */
