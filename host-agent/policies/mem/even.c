// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dividing memory among VMs, for policies: blocks per weight (of the memory half of
 * the SLA) as equal as floors and ceilings allow.  Memory can not be used on
 * another node than it is asked for on, so each node of the host is divided by
 * itself.  A VM counts once for a node of the host, however many of its guest
 * nodes are there.
 */
#include "model/level.h"
#include "policies/halves.h"

/* One node of the host, by VM; blocks.  Room for it is part of a policy's state. */
struct policy_mem {
	struct ebb_level_part vms[EBB_MAX_VMS];
};

_Static_assert(sizeof(struct policy_mem) <= EBB_POLICY_STATE_MAX, "state of a policy");

static uint32_t mem_ceiling(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->has_driver ? vm->nodes[g].mem.ceiling : vm->nodes[g].mem.floor;
}

/* The VM's part of the node among its guest nodes there, evenly above their floors. */
static void spread(const struct ebb_view_vm *vm, uint16_t h, uint32_t blocks,
		   struct ebb_plan_vm *ret)
{
	struct ebb_level_part nodes[EBB_MAX_GUEST_NODES] = { 0 };

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == h) {
			nodes[g].high = mem_ceiling(vm, g) - vm->nodes[g].mem.floor;
			blocks -= vm->nodes[g].mem.floor;
		}
	ebb_level_fill(nodes, vm->num_nodes, blocks);
	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == h)
			ret->mem[g] = vm->nodes[g].mem.floor + nodes[g].value;
}

/* Of VMs for which the next level has not enough blocks, those that have one more keep it. */
static void divide_node(struct policy_mem *m, const struct ebb_view *view, uint16_t h,
			struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++) {
		const struct ebb_view_vm *vm = &view->vms[v];
		struct ebb_level_part *p = &m->vms[v];

		*p = (struct ebb_level_part){ .weight = vm->mem_weight };
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			if (vm->nodes[g].host_node == h) {
				p->low += vm->nodes[g].mem.floor;
				p->high += mem_ceiling(vm, g);
				p->has += vm->nodes[g].mem.used;
			}
	}
	ebb_level_fill(m->vms, view->num_vms, view->nodes[h].mem_capacity);
	for (uint32_t v = 0; v < view->num_vms; v++)
		if (m->vms[v].high > 0)
			spread(&view->vms[v], h, m->vms[v].value, &plan->targets[v]);
}

static int decide(void *st, const struct ebb_view *view, struct ebb_plan *plan)
{
	for (uint16_t h = 0; h < view->num_nodes; h++)
		divide_node(st, view, h, plan);
	return 0;
}

const struct ebb_policy_half policy_mem_fair = {
	.name = "fair", .state_size = sizeof(struct policy_mem), .decide = decide,
};
