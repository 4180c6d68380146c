// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fair policy: the CPUs of the host are divided among the running VMs in
 * proportion to their weights, as equally as floors (startup sets), ceilings
 * and the capacity of each node allow (fill.h), VMs being moved from node to
 * node for that; and memory in the same way, each node by itself (mem-share.h).
 *
 * The class and the priority of a VM make no difference here; its weight does.
 */
#include "ebb/policy.h"
#include "policies/fill.h"
#include "policies/mem-share.h"

union fair_state {
	struct policy_fill_vms cpus;
	struct policy_mem mem;
};

_Static_assert(sizeof(union fair_state) <= EBB_POLICY_STATE_MAX, "state of the fair policy");

static uint16_t ceiling(const void *ctx, const struct ebb_view *view, uint32_t v, uint16_t g)
{
	(void)ctx;
	return policy_ceiling(&view->vms[v], g);
}

static int fair_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	static const struct policy_fill_rule rule = { .ceiling = ceiling, .has_moves = true };
	uint32_t capacity[EBB_MAX_NODES];
	union fair_state *s = st;
	struct policy_fill fill;
	int rc;

	for (uint16_t h = 0; h < view->num_nodes; h++)
		capacity[h] = view->nodes[h].capacity;
	rc = policy_fill_start(&fill, &s->cpus, view, capacity, ret_plan->targets);
	if (rc < 0)
		return rc;
	policy_fill_round(&fill, &rule);
	policy_mem_share(&s->mem, view, ret_plan);
	return 0;
}

const struct ebb_policy_ops ebb_policy_fair = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "fair",
	.state_size = sizeof(union fair_state),
	.decide = fair_decide,
};
