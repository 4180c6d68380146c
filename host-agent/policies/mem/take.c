// SPDX-License-Identifier: GPL-2.0-or-later
/* See take.h. */
#include "policies/mem/take.h"

uint32_t policy_held_on(const struct ebb_view_vm *vm, uint16_t h)
{
	uint64_t held = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		held += vm->nodes[g].host_node == h ? vm->nodes[g].mem.held : 0;
	return held < UINT32_MAX ? (uint32_t)held : UINT32_MAX;
}

static uint32_t caps_of(const struct ebb_view_vm *vm, uint16_t h, bool silent_only,
			uint32_t cap[EBB_MAX_GUEST_NODES])
{
	uint64_t sum = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		cap[g] = 0;
		if (vm->nodes[g].host_node == h &&
		    (!silent_only || vm->nodes[g].mem.num_buckets == 0))
			cap[g] = policy_broker_gives(vm, g);
		sum += cap[g];
	}
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

void policy_take_by(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		    uint64_t blocks, struct policy_taking taking, struct ebb_plan *plan)
{
	struct policy_broker_work *w = &b->work.mem;
	uint32_t cap[EBB_MAX_GUEST_NODES];

	for (uint32_t v = 0; v < view->num_vms; v++) {
		w->parts[v] = (struct ebb_level_part){
			.high = caps_of(&view->vms[v], h, taking.silent_only, cap),
			.weight = taking.weight(&view->vms[v], h),
		};
	}
	ebb_level_fill(w->parts, view->num_vms, blocks);
	for (uint32_t v = 0; v < view->num_vms; v++)
		if (w->parts[v].value > 0) {
			caps_of(&view->vms[v], h, taking.silent_only, cap);
			policy_broker_spread(cap, view->vms[v].num_nodes, w->parts[v].value,
					     plan->targets[v].mem);
		}
}
