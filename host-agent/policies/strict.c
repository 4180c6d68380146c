// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The strict policy: VMs share nothing.  Every VM has a static set of CPUs, its
 * startup set and what its SLA lets it add, and of memory, by the same rule.
 * Where the ceilings of all VMs exceed a node, those that arrived first have
 * theirs and the rest is not available to the others.  Only the floor of a
 * newcomer is taken from what was assigned before it, from the latest arrivals
 * first.
 *
 * The class of a VM makes no difference here.
 */
#include "policies/halves.h"

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* One guest node of one resource. */
struct share {
	uint32_t floor, ceiling;
};

static struct share share_of(const struct ebb_view_vm_node *n, bool is_mem)
{
	return is_mem ? (struct share){ n->mem.floor, n->mem.ceiling } :
			(struct share){ n->floor, n->ceiling };
}

static void divide(const struct ebb_view *view, bool is_mem, struct ebb_plan *plan)
{
	uint32_t available[EBB_MAX_NODES];

	for (uint16_t n = 0; n < view->num_nodes; n++)
		available[n] = is_mem ? view->nodes[n].mem_capacity : view->nodes[n].capacity;
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];

			available[n->host_node] -= smaller(share_of(n, is_mem).floor,
							   available[n->host_node]);
		}
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];
			const struct share s = share_of(n, is_mem);
			const uint32_t more = smaller(s.ceiling - s.floor,
						      available[n->host_node]);
			/*
			 * A VM without driver cannot use its set now, but it
			 * stays its own: nobody else is offered it.
			 */
			const uint32_t now = s.floor + (view->vms[v].has_driver ? more : 0);

			available[n->host_node] -= more;
			if (is_mem)
				plan->targets[v].mem[g] = now;
			else
				plan->targets[v].nodes[g] = (uint16_t)now;
		}
}

static int decide_cpus(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	divide(view, false, ret_plan);
	return 0;
}

static int decide_mem(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	divide(view, true, ret_plan);
	return 0;
}

const struct ebb_policy_half policy_cpu_strict = { .name = "strict", .decide = decide_cpus };
const struct ebb_policy_half policy_mem_strict = { .name = "strict", .decide = decide_mem };
