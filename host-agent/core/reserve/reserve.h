/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of CPU time to VMs that share cores.  Decides which promises are made and which part of
 * its core each vCPU is to get (admit.h), and asks the executor for that.
 *
 * The promise of a VM is divided evenly over its vCPUs, to a thousandth of a core, and holds on the
 * core where each of them is.  So a VM of two vCPUs that is promised 100% gets half of each of two
 * cores.
 *
 * On an emulated host each core has two levels: parts for the vCPUs with a promise, one part for
 * all others.  libvirt has one level only, a weight for each VM.  There the part of the others is
 * divided among those that are on the core, anew whenever VMs come, go or move.  That is weaker:
 *   - a VM without a promise has one weight for all its cores, that of the most crowded one;
 *   - a VM that computes on some of its vCPUs only has all its weight on their cores.
 * Weights change one after the other, each after some milliseconds.  The weights on a core add up
 * to 1000 at most, before and after.  So weights that fall change first, and weights that rise only
 * when all falls are done: meanwhile the sum is not above 1000, and each VM has at least the
 * smaller of its two weights.  If weights rose first, a VM whose weight stays the same would get
 * less of its core than it is promised.  A VM whose weight is not known (it has just started)
 * counts as one that falls.  A weight that can not be set does not hold up the others.  Weights
 * outlive the agent, so one that starts sets those of all VMs on shared cores, also where nothing
 * is promised any more.
 */
#ifndef EBB_CORE_RESERVE_H
#define EBB_CORE_RESERVE_H

#include "core/reserve/admit.h"
#include "model/shortage.h"
#include "core/room.h"

#define EBB_RESERVE_MAX_VCPUS	16384u

struct reserve_room {
	const struct core_env *env;
	bool is_stale;			/* a VM came, went or was defined anew */
	uint32_t num_threads[EBB_MAX_NODES]; /* shared, by node of the host */
	uint64_t capacity[EBB_MAX_NODES]; /* may be promised, thousandths of a core */
	uint64_t promised[EBB_MAX_NODES];
	uint32_t num_lowering;		/* VMs whose weight has yet to fall before others rise */
	uint16_t num_others[EBB_MAX_THREADS]; /* vCPUs without a promise, by thread */
	uint16_t rest[EBB_MAX_THREADS];	/* for vCPUs without a promise together, by thread */
	/* Scratch. */
	uint32_t first[EBB_MAX_THREADS + 1]; /* of the claims on a thread */
	struct ebb_promise_ask asks[EBB_MAX_VMS];
	struct ebb_shortage_claim claims[EBB_RESERVE_MAX_VCPUS];
	struct ebb_level_part parts[EBB_RESERVE_MAX_VCPUS];
};

void reserve_create(struct reserve_room *s);
/* The VM was defined anew; a run of it begins; a run is over. */
void reserve_define(const struct ebb_vm *vm);
void reserve_start(struct reserve_room *s, const struct ebb_vm *vm);
void reserve_stop(struct reserve_room *s, const struct ebb_vm *vm);
/* After vCPUs have been given shared cores.  is_stale: a VM that shares cores has changed. */
/* The amount that may be promised has changed. */
void reserve_changed(struct reserve_room *s);
void reserve_settle(struct reserve_room *s, usec_t now, bool is_stale);
/* Asks for what the VM's vCPUs are to get.  False if *out has no space for an action. */
bool reserve_act(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
		 struct ebb_actions *out);
/* SHARES has ended.  One that is not awaited any more is ignored. */
void reserve_shares_done(struct reserve_room *s, usec_t now, const struct ebb_vm *vm,
			 const struct ebb_fact_action_done *f);
/* RESERVE has ended.  One that is not awaited any more is ignored. */
void reserve_done(const struct reserve_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		  const struct ebb_fact_action_done *f);
/* host_node: a node of the host. */
void reserve_node(const struct reserve_room *s, uint16_t host_node, struct ebb_promise_node *ret);

#endif /* EBB_CORE_RESERVE_H */
