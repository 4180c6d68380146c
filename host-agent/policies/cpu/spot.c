// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The spot policy: a VM gets the CPUs that are reserved for it whenever it wants them.  All others
 * go to any VM that can use them, and are taken back as soon as a VM with more right to them wants
 * them.  After the floors (startup sets) CPUs are given out in three rounds:
 *
 *   own     CPUs that VMs want of those reserved for them, and one more each, so that a VM that
 *           begins to work finds a core at once
 *   wanted  CPUs that VMs want beyond that, and one more each, so that a guest that only takes
 *           offers and never asks gets its part, too; VMs of class spot and wishes beyond a
 *           reservation count alike here
 *   spare   what nobody wants, up to the ceilings: to be had for the asking, and
 *           withdrawn without a demand as long as nobody asked
 *
 * In each round VMs of the highest priority come first, and among VMs of one priority CPUs per
 * weight become as equal as ceilings and capacities allow; CPUs from an earlier round do not count
 * in a later one.  So when CPUs become scarce they are lost in the reverse order: unused ones
 * first, then by the VMs of the lowest priority, with most CPUs for their weight, the newest first.
 *
 * No VM is moved from node to node: reservations and wishes are counted by node.
 */
#include "policies/cpu/fill.h"
#include "policies/halves.h"

struct spot_cpus {
	struct policy_fill_vms fill;
	uint16_t more[EBB_MAX_VMS];	/* guest node where it gets one more, or EBB_NODE_ANY */
};


enum stage { STAGE_OWN, STAGE_WANTED, STAGE_SPARE, STAGE_MAX };

struct turn {
	enum stage stage;
	uint16_t priority;		/* of the VMs that are served */
	uint16_t *more;			/* as in spot_cpus */
};

static uint16_t smaller(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

/* The most that a VM may have on a guest node in this round. */
static uint16_t top(const struct turn *turn, const struct ebb_view_vm_node *n)
{
	return turn->stage == STAGE_OWN ? n->reserved : n->ceiling;
}

/* One more CPU each, where it wants most already and there is room. */
static void choose_more(const struct turn *turn, const struct ebb_view *view)
{
	for (uint32_t v = 0; v < view->num_vms; v++) {
		const struct ebb_view_vm *vm = &view->vms[v];
		uint16_t best = EBB_NODE_ANY;

		for (uint16_t g = 0; g < vm->num_nodes; g++)
			if (vm->nodes[g].wanted < top(turn, &vm->nodes[g]) &&
			    (best == EBB_NODE_ANY || vm->nodes[g].wanted > vm->nodes[best].wanted))
				best = g;
		turn->more[v] = best;
	}
}

static bool takes_part(const void *ctx, const struct ebb_view *view, uint32_t v)
{
	const struct turn *turn = ctx;
	const struct ebb_view_vm *vm = &view->vms[v];

	return vm->has_driver && vm->priority == turn->priority &&
	       (turn->stage != STAGE_OWN || vm->class == EBB_CLASS_RESERVED);
}

static uint16_t ceiling(const void *ctx, const struct ebb_view *view, uint32_t v, uint16_t g)
{
	const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];
	const struct turn *turn = ctx;

	if (turn->stage == STAGE_SPARE)
		return n->ceiling;
	return smaller(n->wanted + (turn->more[v] == g), top(turn, n));
}

/* The highest priority of a VM below `below`; false if there is none. */
static bool next_priority(const struct ebb_view *view, uint32_t below, uint16_t *ret)
{
	bool found = false;

	for (uint32_t v = 0; v < view->num_vms; v++) {
		const uint16_t p = view->vms[v].priority;

		if (p >= below || (found && p <= *ret))
			continue;
		*ret = p;
		found = true;
	}
	return found;
}

static int decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	uint32_t capacity[EBB_MAX_NODES];
	struct spot_cpus *s = st;
	struct policy_fill fill;
	struct turn turn = { .more = s->more };
	const struct policy_fill_rule rule = {
		.ctx = &turn, .takes_part = takes_part, .ceiling = ceiling,
	};
	int rc;

	for (uint16_t h = 0; h < view->num_nodes; h++)
		capacity[h] = view->nodes[h].capacity;
	rc = policy_fill_start(&fill, &s->fill, view, capacity, ret_plan->targets);
	if (rc < 0)
		return rc;
	for (turn.stage = STAGE_OWN; turn.stage < STAGE_MAX; turn.stage++) {
		uint32_t below = UINT32_MAX;

		choose_more(&turn, view);
		policy_fill_rebase(&fill);
		for (; next_priority(view, below, &turn.priority); below = turn.priority)
			policy_fill_round(&fill, &rule);
	}
	return 0;
}

const struct ebb_policy_half policy_cpu_spot = {
	.name = "spot", .state_size = sizeof(struct spot_cpus), .decide = decide,
};
