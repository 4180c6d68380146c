/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arbiter turns what a policy wants into what is safe to promise.
 * Whatever a policy says, and whatever guests do, these hold after every call
 * into the core ("node" here is a node of the host, "entry" a guest node of a
 * VM, "used" the entry's startup set and every other vCPU that owns a thread):
 *
 *   I1  Every floor is respected: target >= floor and limit >= floor of every
 *       entry, and the floors of all admitted VMs together fit each node.
 *   I2  No thread has two owners.  Forced and lent vCPUs, and startup vCPUs that
 *       wait for their first core, share threads without owning one.  Unless the
 *       option count_threads is set, the threads of a core have owners of one VM.
 *   I3  Limits are backed: on each node, the sum of max(used, limit) is at most
 *       its capacity.  CPUs that have given their core back, or lose it to a
 *       deadline within CPU_ADVANCE_USEC, do not count as used here; their core
 *       is still freed before it is given (I2, I6).  While a VM that has just
 *       started waits for cores of its startup set, used alone may exceed the
 *       capacity; then no limit on that node is above used.  Where the plan
 *       gives out threads (ebb_plan.use_threads), all three are counted in
 *       cores: used is the cores of which the entry owns a thread.
 *   I4  floor <= limit <= ceiling, and the same for target; without a driver
 *       the ceiling is the floor.
 *   I5  A vCPU of a startup set is never forced, unplugged or granted.
 *   I6  A hardware thread is free before it gets another owner: the vCPU that
 *       owned it is unplugged, or runs at home.
 *   I7  Every request gets at most one answer, exactly one while the link is
 *       up; a vCPU is part of one request at most, and granted once.
 *   I8  A guest with a driver loses a core by force only after the deadline
 *       of a demand (or because its boot is over).
 *   I9  A vCPU that is lent has no core, unless a request is about to end that.
 *
 * For memory, counted in blocks ("used" is what the entry can hold without asking:
 * what it holds, or the highest limit that it was told and has not confirmed to be
 * replaced by a lower one):
 *
 *   M1  Every floor is respected: target >= floor, the floors of all admitted
 *       VMs together fit each node, and what is free goes to floors before
 *       anybody is offered more than its floor.
 *   M2  No byte is promised twice: on each node, the sum of max(used, limit) is
 *       at most its capacity.  Where what is found exceeds it (the agent was
 *       restarted with less), no limit on that node is above used.
 *   M3  Freed before given: limits rise only by blocks that no entry uses.  What
 *       a VM was told counts as used until its device has confirmed less.
 *   M4  limit <= ceiling and target <= ceiling; without a driver the ceiling is
 *       the floor.  What is told to a VM is at most its limit, and 0 without a
 *       driver.
 *   M5  Limits, what is told and what is revoked are whole blocks.
 *   M6  A guest loses a block by revocation only after the deadline of a demand
 *       of which it was told.
 *   M7  A VM is told of more only once its memory cgroup allows as much.
 *
 * One more holds of both, while the host has no quorum (ebb_state_quorum_set()); and, of a VM that
 * has come from another host, on a node where more is used than there is:
 *
 *   Q1  No limit is above what is held, not even for a floor: nothing grows.
 *
 * I1, I3, I4, M1, M2 and M4 are made here; the rest in the state (core.h).
 */
#ifndef EBB_CORE_ARBITER_H
#define EBB_CORE_ARBITER_H

#include "model/level.h"

/*
 * A guest node of a VM.  All entries of a call are on the same node of the host, in order of
 * arrival.  CPUs (cores where the plan gives out threads) or blocks.
 */
struct ebb_arbiter_entry {
	uint32_t floor;
	uint32_t ceiling;		/* >= floor; the floor itself for a VM without driver */
	uint32_t used;			/* CPUs: >= floor */
	uint32_t wanted;		/* in: from the policy, anything */
	uint32_t target;		/* wanted, clamped */
	uint32_t limit;			/* in: in force until now; out: from now on */
};

/* All calls: room has space for count parts, to work in. */

/*
 * Sets target from wanted (I1, I4, M1, M4; the targets of the node fit its capacity): where too
 * much is wanted, what exceeds the floors is cut to a common level.  Returns how many entries got
 * another target than they wanted.
 */
uint32_t ebb_arbiter_clamp(uint32_t capacity, struct ebb_arbiter_entry *entries,
			   struct ebb_level_part *room, size_t count);

/*
 * Moves limit towards target as far as the node has free (I1, I3, I4, M1, M2,
 * M4).  A limit falls to its target at once; an offer that was made is not taken
 * back while target, capacity and floors allow it; what is free is handed out
 * evenly, first to those below their floor.
 */
void ebb_arbiter_limits(uint32_t capacity, struct ebb_arbiter_entry *entries,
			struct ebb_level_part *room, size_t count);

#endif /* EBB_CORE_ARBITER_H */
