/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The common part of the policies that broker memory.  A node of the host is left alone until more
 * of it is in use than the threshold; then as much is taken from the VMs that hold it as leads back
 * to the target, at most once in a cool-down:
 *
 *   M = alpha + (threshold - target), alpha = in use - threshold
 *
 * The policies differ in the VMs that give (policy_broker_rule.take).  In use is the memory that
 * VMs hold, or their floor where they hold less, since that is promised.
 *
 * Free memory is offered all the time, also above the threshold, up to the capacity: first to VMs
 * that use what they were offered, evenly by weight.  VMs that gave are "down": they are offered
 * nothing until the memory in use is back at the target, or until the cool-down is over and it is
 * within the threshold.
 *
 * Source: "Flexible resource allocation for relational database-as-a-service", section 4.
 */
#ifndef EBB_POLICIES_BROKER_H
#define EBB_POLICIES_BROKER_H

#include "model/level.h"
#include "model/policy.h"

/* Guest nodes of a VM: a bit for each. */
typedef uint16_t policy_guest_nodes;
_Static_assert(EBB_MAX_GUEST_NODES <= 8 * sizeof(policy_guest_nodes), "a bit for each guest node");

/* Guests are not asked more often, whatever the cool-down. */
#define POLICY_ASK_USEC	(2 * EBB_USEC_PER_SEC)

/* So long before a cool-down ends, so that the answers are there when it does. */
#define POLICY_AHEAD_USEC	EBB_USEC_PER_SEC

struct policy_broker_node {
	bool has_brokered;
	bool is_pressing;		/* balloon: until in use is no more than the target */
	usec_t brokered_at;
	uint64_t price;			/* weighted value of the dearest taken; see vom.c */
};

/* Room for one node, by VM. */
struct policy_broker_work {
	struct ebb_level_part parts[EBB_MAX_VMS]; /* blocks that it may give or get */
	uint64_t key[EBB_MAX_VMS];
	uint16_t heap[EBB_MAX_VMS];
};

/* The state of such a policy. */
struct policy_broker {
	struct policy_broker_node nodes[EBB_MAX_NODES];
	/* VMs of the last plan, and on which of their guest nodes they gave and stay down. */
	uint32_t num_vms;
	uint64_t order[EBB_MAX_VMS];
	policy_guest_nodes down[EBB_MAX_VMS];
	union {
		struct policy_broker_work mem;
		struct {
			uint64_t order[EBB_MAX_VMS];
			policy_guest_nodes down[EBB_MAX_VMS];
		} old;
	} work;
};

struct policy_broker_rule {
	bool needs_values;		/* guests are asked before */
	bool is_balloon;		/* see balloon.c; take is NULL */
	/*
	 * Sets targets[v].mem[], 0 before, to the blocks that each VM gives on the node; never
	 * more than policy_broker_gives().  mem_cutoff[], 0 before, is room to work in.
	 */
	void (*take)(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		     uint64_t blocks, struct ebb_plan *plan);
};

int policy_broker_decide(struct policy_broker *b, const struct policy_broker_rule *rule,
			 const struct ebb_view *view, struct ebb_plan *plan);

/* Blocks that can be taken from a VM on a guest node: what it holds beyond its floor. */
uint32_t policy_broker_gives(const struct ebb_view_vm *vm, uint16_t g);

/*
 * Among the guest nodes of a VM: a part of what they can take together, in proportion; added to
 * targets[].
 */
void policy_broker_spread(const uint32_t cap[EBB_MAX_GUEST_NODES], uint16_t num_nodes,
			  uint32_t part, uint32_t *targets);

/* ---- offers of free memory (broker-offer.c) ---- */

/* The least and the most that the target on a guest node may be. */
uint32_t policy_broker_low(const struct ebb_view_vm *vm, uint16_t g);
uint32_t policy_broker_high(const struct ebb_view_vm *vm, uint16_t g);
/* The blocks that it holds, within these bounds. */
uint32_t policy_broker_base(const struct ebb_view_vm *vm, uint16_t g);

/* Offers the memory that the targets of node h leave free to VMs that are not down. */
void policy_broker_offer(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			 struct ebb_plan *plan);

/* Lowers targets until they fit the node: first memory that no VM holds yet, then held memory. */
void policy_broker_fit(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		       struct ebb_plan *plan);

#endif /* EBB_POLICIES_BROKER_H */
