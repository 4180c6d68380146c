// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See broker.h.  Free memory is offered to VMs.  A VM that has taken all that it was offered is
 * hungry.  While there are hungry VMs, the others keep half of their offers that they did not
 * take, and the hungry ones are offered the rest.  So offers move in a few steps to VMs that use
 * them, and stay where they are when no VM is hungry.
 *
 * Each VM keeps an offer of one block, with which it can begin to grow.  With more, these offers
 * could be all memory above the threshold, so that VMs that grow never get there and nothing is
 * brokered.
 */
#include "policies/mem/broker.h"

/* Blocks with which everybody can begin to grow before the policy is asked again. */
#define LEAST_SLACK	1u
#define ANY_SLACK	UINT32_MAX
/* Of a pool: those of a VM can be summed up. */
#define MAX_BLOCKS	(EBB_MAX_POOL_MIB / EBB_BLOCK_MIB)

uint32_t policy_broker_low(const struct ebb_view_vm *vm, uint16_t g)
{
	return vm->nodes[g].mem.floor;
}

uint32_t policy_broker_high(const struct ebb_view_vm *vm, uint16_t g)
{
	const struct ebb_view_mem *mem = &vm->nodes[g].mem;
	const uint32_t most = mem->ceiling < MAX_BLOCKS ? mem->ceiling : MAX_BLOCKS;

	return vm->has_driver && most > mem->floor ? most : mem->floor;
}

uint32_t policy_broker_base(const struct ebb_view_vm *vm, uint16_t g)
{
	const uint32_t low = policy_broker_low(vm, g), high = policy_broker_high(vm, g);
	const uint32_t held = vm->nodes[g].mem.held;

	if (held < low)
		return low;
	return held < high ? held : high;
}

uint32_t policy_broker_gives(const struct ebb_view_vm *vm, uint16_t g)
{
	return policy_broker_base(vm, g) - policy_broker_low(vm, g);
}

void policy_broker_spread(const uint32_t cap[EBB_MAX_GUEST_NODES], uint16_t num_nodes,
			  uint32_t part, uint32_t *targets)
{
	struct ebb_level_part parts[EBB_MAX_GUEST_NODES];

	for (uint16_t g = 0; g < num_nodes; g++)
		parts[g] = (struct ebb_level_part){ .high = cap[g], .weight = cap[g] };
	ebb_level_fill(parts, num_nodes, part);
	for (uint16_t g = 0; g < num_nodes; g++)
		targets[g] += parts[g].value;
}

static uint64_t sum_of(const struct ebb_view *view, uint16_t h, const struct ebb_plan *plan)
{
	uint64_t sum = 0;

	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++)
			if (view->vms[v].nodes[g].host_node == h)
				sum += plan->targets[v].mem[g];
	return sum;
}

/* ---- targets that do not fit --------------------------------------------- */

static void cut(struct policy_broker *b, const struct ebb_view *view, uint16_t h, uint64_t excess,
		uint32_t (*least)(const struct ebb_view_vm *vm, uint16_t g), struct ebb_plan *plan)
{
	struct policy_broker_work *w = &b->work.mem;
	uint32_t cap[EBB_MAX_GUEST_NODES], less[EBB_MAX_GUEST_NODES];

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t v = 0; v < view->num_vms; v++) {
			const struct ebb_view_vm *vm = &view->vms[v];
			struct ebb_level_part *p = &w->parts[v];
			uint64_t sum = 0;

			for (uint16_t g = 0; g < vm->num_nodes; g++) {
				const uint32_t t = plan->targets[v].mem[g], low = least(vm, g);

				cap[g] = vm->nodes[g].host_node == h && t > low ? t - low : 0;
				less[g] = 0;
				sum += cap[g];
			}
			if (pass == 0) {
				p->high = p->weight = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
				p->low = p->has = 0;
				continue;
			}
			policy_broker_spread(cap, vm->num_nodes, p->value, less);
			for (uint16_t g = 0; g < vm->num_nodes; g++)
				plan->targets[v].mem[g] -= less[g];
		}
		if (pass == 0)
			ebb_level_fill(w->parts, view->num_vms, excess);
	}
}

void policy_broker_fit(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		       struct ebb_plan *plan)
{
	const uint32_t capacity = view->nodes[h].mem_capacity;
	uint64_t sum = sum_of(view, h, plan);

	if (sum > capacity) {
		cut(b, view, h, sum - capacity, policy_broker_base, plan);
		sum = sum_of(view, h, plan);
	}
	if (sum > capacity)
		cut(b, view, h, sum - capacity, policy_broker_low, plan);
}

/* ---- offers of free memory ----------------------------------------------- */

static bool may_grow(const struct policy_broker *b, const struct ebb_view *view, uint32_t v,
		     uint16_t g, uint16_t h)
{
	const struct ebb_view_vm *vm = &view->vms[v];

	return vm->nodes[g].host_node == h && !(b->down[v] & (1u << g)) &&
	       policy_broker_base(vm, g) < policy_broker_high(vm, g);
}

static uint32_t slack(const struct ebb_view_vm *vm, uint16_t g, uint32_t target)
{
	const uint32_t base = policy_broker_base(vm, g);

	return target > base ? target - base : 0;
}

/* It may have more, and fewer than `below` of the blocks that it was offered are left. */
static bool is_hungry(const struct policy_broker *b, const struct ebb_view *view, uint32_t v,
		      uint16_t g, uint16_t h, uint32_t below, const struct ebb_plan *plan)
{
	const uint32_t t = plan->targets[v].mem[g];

	return may_grow(b, view, v, g, h) && t < policy_broker_high(&view->vms[v], g) &&
	       slack(&view->vms[v], g, t) < below;
}

static bool find_hungry(const struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			const struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++)
			if (is_hungry(b, view, v, g, h, LEAST_SLACK, plan))
				return true;
	return false;
}

/* A VM that is not hungry keeps half of the offer that it did not take, at least LEAST_SLACK. */
static void halve(const struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		  struct ebb_plan *plan)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			uint32_t *t = &plan->targets[v].mem[g];
			const uint32_t has = slack(&view->vms[v], g, *t);

			if (may_grow(b, view, v, g, h) && has > LEAST_SLACK)
				*t -= has - (has / 2 > LEAST_SLACK ? has / 2 : LEAST_SLACK);
		}
}

/* How much more each guest node may have in this round. */
static uint64_t caps_of(const struct policy_broker *b, const struct ebb_view *view, uint32_t v,
			uint16_t h, uint32_t below, const struct ebb_plan *plan,
			uint32_t cap[EBB_MAX_GUEST_NODES])
{
	const struct ebb_view_vm *vm = &view->vms[v];
	uint64_t sum = 0;

	for (uint16_t g = 0; g < vm->num_nodes; g++) {
		cap[g] = 0;
		if (is_hungry(b, view, v, g, h, below, plan))
			cap[g] = policy_broker_high(vm, g) - plan->targets[v].mem[g];
		sum += cap[g];
	}
	return sum;
}

static void offer_round(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			uint32_t below, struct ebb_plan *plan)
{
	const uint32_t capacity = view->nodes[h].mem_capacity;
	struct policy_broker_work *w = &b->work.mem;
	const uint64_t sum = sum_of(view, h, plan);
	uint32_t cap[EBB_MAX_GUEST_NODES];

	if (sum >= capacity)
		return;
	for (uint32_t v = 0; v < view->num_vms; v++) {
		const uint64_t all = caps_of(b, view, v, h, below, plan, cap);

		w->parts[v] = (struct ebb_level_part){
			.high = all < UINT32_MAX ? (uint32_t)all : UINT32_MAX,
			.weight = view->vms[v].mem_weight,
		};
	}
	ebb_level_fill(w->parts, view->num_vms, capacity - sum);
	for (uint32_t v = 0; v < view->num_vms; v++)
		if (w->parts[v].value > 0) {
			caps_of(b, view, v, h, below, plan, cap);
			policy_broker_spread(cap, view->vms[v].num_nodes, w->parts[v].value,
					     plan->targets[v].mem);
		}
}

void policy_broker_offer(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
			 struct ebb_plan *plan)
{
	if (find_hungry(b, view, h, plan)) {
		halve(b, view, h, plan);
		offer_round(b, view, h, LEAST_SLACK, plan);
	}
	/* Then to all, what hungry VMs cannot have. */
	offer_round(b, view, h, ANY_SLACK, plan);
}
