// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fair shares of CPUs: the CPUs of the host are divided among the running VMs in
 * proportion to their weights, as equally as floors (startup sets), ceilings
 * and the capacity of each node allow (fill.h), VMs being moved from node to
 * node for that.
 *
 * The class and the priority of a VM make no difference here; its weight does.
 */
#include "policies/cpu/fill.h"
#include "policies/halves.h"

static uint16_t ceiling(const void *ctx, const struct ebb_view *view, uint32_t v, uint16_t g)
{
	(void)ctx;
	return policy_ceiling(&view->vms[v], g);
}

static int decide(void *st, const struct ebb_view *view, struct ebb_plan *plan)
{
	static const struct policy_fill_rule rule = { .ceiling = ceiling, .has_moves = true };
	uint32_t capacity[EBB_MAX_NODES];
	struct policy_fill fill;
	int rc;

	for (uint16_t h = 0; h < view->num_nodes; h++)
		capacity[h] = view->nodes[h].capacity;
	rc = policy_fill_start(&fill, st, view, capacity, plan->targets);
	if (rc == 0)
		policy_fill_round(&fill, &rule);
	return rc;
}

const struct ebb_policy_half policy_cpu_fair = {
	.name = "fair", .state_size = sizeof(struct policy_fill_vms), .decide = decide,
};
