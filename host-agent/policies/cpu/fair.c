// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The fair policy: the CPUs of the host are divided among the running VMs in
 * proportion to their weights, as equally as floors (startup sets), ceilings
 * and the capacity of each node allow (fill.h), VMs being moved from node to
 * node for that; and memory in the same way, each node by itself (mem/even.h).
 *
 * The class and the priority of a VM make no difference here; its weight does.
 */
#include "model/policy.h"
#include "policies/cpu/fair.h"
#include "policies/cpu/fill.h"
#include "policies/mem/even.h"

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

int policy_fair_cpus(struct policy_fill_vms *cpus, const struct ebb_view *view,
		     struct ebb_plan *plan)
{
	static const struct policy_fill_rule rule = { .ceiling = ceiling, .has_moves = true };
	uint32_t capacity[EBB_MAX_NODES];
	struct policy_fill fill;
	int rc;

	for (uint16_t h = 0; h < view->num_nodes; h++)
		capacity[h] = view->nodes[h].capacity;
	rc = policy_fill_start(&fill, cpus, view, capacity, plan->targets);
	if (rc == 0)
		policy_fill_round(&fill, &rule);
	return rc;
}

static int fair_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	union fair_state *s = st;
	const int rc = policy_fair_cpus(&s->cpus, view, ret_plan);

	if (rc == 0)
		policy_mem_share(&s->mem, view, ret_plan);
	return rc;
}

const struct ebb_policy_ops ebb_policy_fair = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "fair",
	.state_size = sizeof(union fair_state),
	.decide = fair_decide,
};
