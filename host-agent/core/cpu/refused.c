// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests that were refused because of limits: policies may count them as wanted CPUs. */
#include "core/cpu/internal.h"

static uint16_t clamp(uint16_t value, uint16_t low, uint16_t high)
{
	return value < low ? low : value > high ? high : value;
}

usec_t cpu_wanted_until(const struct ebb_vm *vm, uint16_t g)
{
	const struct ebb_vm_node *n = &vm->nodes[g];

	/* A VM that has got as many CPUs meanwhile wants no more. */
	return n->want > n->used ? n->want_until : EBB_TIME_NEVER;
}

/*
 * A VM that wants more makes a request, which is refused and calls for a plan by
 * itself.  CPUs given back on demand need none either: the plan wanted them back.
 */
bool cpu_wants_less(const struct ebb_vm *vm, usec_t now)
{
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];

		if (core_wanted(vm, g, now) < n->wanted && n->used < n->target)
			return true;
	}
	return false;
}

static void want_on(usec_t now, const struct ebb_vm *vm, uint16_t g, uint16_t missing)
{
	struct ebb_vm_node *n = cpu_own_node(vm, g);

	n->want = clamp((uint16_t)(n->used + missing), 0, vm->sla.nodes[g].max);
	n->want_until = now + EBB_WANT_USEC;
}

/* Any node will do: one by one, where most could be added. */
static void want_anywhere(usec_t now, const struct ebb_vm *vm, uint16_t missing)
{
	uint16_t more[EBB_MAX_GUEST_NODES] = { 0 };

	for (; missing > 0; missing--) {
		int best = -1, most = 0;

		for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
			const int room = vm->sla.nodes[g].max - vm->nodes[g].used - more[g];

			if (room > most) {
				most = room;
				best = g;
			}
		}
		if (best < 0)
			break;
		more[best]++;
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		if (more[g] > 0)
			want_on(now, vm, g, more[g]);
}

void cpu_want(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g, uint16_t missing)
{
	if (g == EBB_NODE_ANY)
		want_anywhere(now, vm, missing);
	else
		want_on(now, vm, g, missing);
	for (g = 0; g < vm->sla.num_nodes; g++)
		if (core_wanted(vm, g, now) != vm->nodes[g].wanted)
			s->env->cycle->plan_is_stale = true;
}
