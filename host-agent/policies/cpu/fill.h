/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dividing CPUs among VMs, for policies: one core at a time goes to the VM that
 * has least for its weight and can still grow ("water-filling"), which also
 * redistributes what a VM cannot use because of its ceiling.
 *
 * If no node on which that VM may grow has a core left and the rule allows
 * moves, another VM is moved out of the way: a chain of moves from node to node,
 * each within the ceilings of the VM that moves, to a node that has one.  A VM
 * for which there is no such chain is finished; later it cannot have one either.
 *
 * So that cores do not move without need, a VM grows first on the nodes where
 * it already has CPUs, and among VMs that are equally short the one that already has more CPUs gets
 * the core, then the one that came first.  Otherwise VMs grow on the nodes with most cores left.
 */
#ifndef EBB_POLICIES_FILL_H
#define EBB_POLICIES_FILL_H

#include "model/policy.h"

/* By VM of the view; room for it is part of a policy's state. */
struct policy_fill_vms {
	uint16_t total[EBB_MAX_VMS];	/* CPUs in the plan */
	uint16_t base[EBB_MAX_VMS];	/* of these: not counted when VMs are compared */
	uint16_t used[EBB_MAX_VMS];	/* that it has now */
	uint16_t target[EBB_MAX_VMS];	/* in the last plan */
	uint16_t heap[EBB_MAX_VMS];	/* VMs that are not finished, the next one first */
};

struct policy_fill {
	struct policy_fill_vms *vms;
	const struct ebb_view *view;
	struct ebb_plan_vm *targets;
	uint32_t left[EBB_MAX_NODES];	/* cores that nobody has in the plan */
};

struct policy_fill_rule {
	const void *ctx;
	/* Whether the VM gets any in this round; NULL: all VMs do. */
	bool (*takes_part)(const void *ctx, const struct ebb_view *view, uint32_t v);
	/* The most CPUs that the VM may have on its guest node, at least its floor. */
	uint16_t (*ceiling)(const void *ctx, const struct ebb_view *view, uint32_t v, uint16_t g);
	bool has_moves;
};

/* The most that a VM can take on a guest node: without driver, nothing beyond its floor. */
uint16_t policy_ceiling(const struct ebb_view_vm *vm, uint16_t g);

/*
 * Gives every VM its floor.  capacity: by node of the host.  -EINVAL if floors exceed it, or there
 * are too many VMs.
 */
int policy_fill_start(struct policy_fill *f, struct policy_fill_vms *vms,
		      const struct ebb_view *view, const uint32_t *capacity,
		      struct ebb_plan_vm *targets);

/* Divides what is left, as far as the rule allows. */
void policy_fill_round(struct policy_fill *f, const struct policy_fill_rule *rule);

/* From now on only what VMs get besides what they have in the plan is compared. */
void policy_fill_rebase(struct policy_fill *f);

#endif /* EBB_POLICIES_FILL_H */
