// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dividing memory among VMs, for policies: blocks per weight (of the memory half of
 * the SLA) as equal as floors and ceilings allow.  Memory can not be used on
 * another node than it is asked for on, so each node of the host is divided by
 * itself.  A VM counts once for a node of the host, however many of its guest
 * nodes are there.
 */
#include "policies/halves.h"

/* One node of the host, by VM; blocks.  Room for it is part of a policy's state. */
struct policy_mem {
	uint32_t floor[EBB_MAX_VMS], ceiling[EBB_MAX_VMS];
	uint32_t share[EBB_MAX_VMS];
};

/* A level is blocks per weight, shifted by LEVEL_SHIFT. */
#define LEVEL_SHIFT	16
#define LEVEL_MAX \
	((uint64_t)(EBB_MAX_GUEST_NODES * (EBB_MAX_POOL_MIB / EBB_BLOCK_MIB)) << LEVEL_SHIFT)

_Static_assert(sizeof(struct policy_mem) <= EBB_POLICY_STATE_MAX, "state of a policy");

static uint32_t mem_ceiling(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->has_driver ? vm->nodes[g].mem.ceiling : vm->nodes[g].mem.floor;
}

static uint32_t share_at(const struct policy_mem *m, const struct ebb_view_vm *vm, uint32_t v,
			 uint64_t level)
{
	const uint64_t share = (level * vm->mem_weight) >> LEVEL_SHIFT;

	if (share <= m->floor[v])
		return m->floor[v];
	return share < m->ceiling[v] ? (uint32_t)share : m->ceiling[v];
}

static uint64_t sum_at(const struct policy_mem *m, const struct ebb_view *view, uint64_t level)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < view->num_vms; v++)
		if (m->ceiling[v] > 0)
			sum += share_at(m, &view->vms[v], v, level);
	return sum;
}

static uint64_t used_on(const struct ebb_view_vm *vm, uint16_t h)
{
	uint64_t used = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		used += vm->nodes[g].host_node == h ? vm->nodes[g].mem.used : 0;
	return used;
}

/*
 * The next level would give one block more to more VMs than there are blocks left: those who have
 * it already keep it.
 */
static void share_rest(struct policy_mem *m, const struct ebb_view *view, uint16_t h,
		       uint64_t level, uint64_t rest)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t v = 0; v < view->num_vms && rest > 0; v++) {
			const bool has_it = used_on(&view->vms[v], h) > m->share[v];

			if (m->share[v] < share_at(m, &view->vms[v], v, level + 1) &&
			    has_it == (pass == 0)) {
				m->share[v]++;
				rest--;
			}
		}
}

/* The VM's share of the node among its guest nodes there, evenly above their floors. */
static void spread(const struct ebb_view_vm *vm, uint16_t h, uint32_t share,
		   struct ebb_plan_vm *ret)
{
	uint32_t growing = 1;

	for (uint16_t g = 0; g < vm->num_nodes; g++)
		if (vm->nodes[g].host_node == h) {
			ret->mem[g] = vm->nodes[g].mem.floor;
			share -= ret->mem[g];
		}
	while (share > 0 && growing > 0) {
		uint32_t each;

		growing = 0;
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			growing += vm->nodes[g].host_node == h && ret->mem[g] < mem_ceiling(vm, g);
		each = growing && share / growing ? share / growing : 1;
		for (uint16_t g = 0; g < vm->num_nodes && share > 0; g++) {
			uint32_t more = each < share ? each : share;

			if (vm->nodes[g].host_node != h)
				continue;
			if (more > mem_ceiling(vm, g) - ret->mem[g])
				more = mem_ceiling(vm, g) - ret->mem[g];
			ret->mem[g] += more;
			share -= more;
		}
	}
}

static void share_node(struct policy_mem *m, const struct ebb_view *view, uint16_t h,
		       struct ebb_plan *plan)
{
	const uint64_t capacity = view->nodes[h].mem_capacity;
	uint64_t low = 0, high = LEVEL_MAX;
	uint64_t sum;

	for (uint32_t v = 0; v < view->num_vms; v++) {
		const struct ebb_view_vm *vm = &view->vms[v];

		m->floor[v] = m->ceiling[v] = 0;
		for (uint16_t g = 0; g < vm->num_nodes; g++)
			if (vm->nodes[g].host_node == h) {
				m->floor[v] += vm->nodes[g].mem.floor;
				m->ceiling[v] += mem_ceiling(vm, g);
			}
	}
	if (sum_at(m, view, LEVEL_MAX) == 0)
		return;
	while (low < high) {
		const uint64_t mid = low + (high - low + 1) / 2;

		if (sum_at(m, view, mid) <= capacity)
			low = mid;
		else
			high = mid - 1;
	}
	for (uint32_t v = 0; v < view->num_vms; v++)
		m->share[v] = m->ceiling[v] ? share_at(m, &view->vms[v], v, low) : 0;
	sum = sum_at(m, view, low);
	if (sum < capacity)
		share_rest(m, view, h, low, capacity - sum);
	for (uint32_t v = 0; v < view->num_vms; v++)
		if (m->ceiling[v] > 0)
			spread(&view->vms[v], h, m->share[v], &plan->targets[v]);
}

static int decide(void *st, const struct ebb_view *view, struct ebb_plan *plan)
{
	for (uint16_t h = 0; h < view->num_nodes; h++)
		share_node(st, view, h, plan);
	return 0;
}

const struct ebb_policy_half policy_mem_fair = {
	.name = "fair", .state_size = sizeof(struct policy_mem), .decide = decide,
};
