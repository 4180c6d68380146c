// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where hardware threads are given out, CPUs of a guest node that came by their cores one by one
 * move together: the node owns more cores then than the plan gives it, yet it has no CPU too many
 * that could be demanded back, so no other VM would ever get those cores.  Guests do not notice.
 *
 * CPUs move only where a VM waits for a core: otherwise the cores that a node has too many harm no
 * VM.  One CPU of a node moves at a time: it owns its new thread at once, and its old one
 * (ebb_vcpu.leaves) until it runs on the new one.
 */
#include "core/cpu/internal.h"

/* What is offered of the host node is less than the plan says, for want of cores. */
static bool is_short(const struct cpu_room *s, uint16_t host_node)
{
	core_set_for_each(i, &s->env->on[host_node]) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == host_node &&
			    vm->nodes[g].limit < vm->nodes[g].target)
				return true;
	}
	return false;
}

static bool is_packing(const struct ebb_vm *vm, uint16_t g)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].node == g && vm->vcpus[i].leaves != EBB_THREAD_NONE)
			return true;
	return false;
}

/* It runs where it belongs, and stays for all that is known. */
static bool can_move(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED && v->thread != EBB_THREAD_NONE &&
	       v->placed == v->thread && !v->place_action && v->request < 0 &&
	       v->force == EBB_FORCE_NONE && (v->is_startup || cpu_vcpu_is_held(v));
}

/* Threads of the core that vCPUs own, all of the guest node; 0 if others have any, too. */
static uint16_t count_own(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g,
			  uint16_t core)
{
	return cpu_is_own(s, &s->env->host.cores[core], vm, g) ? s->cores.num_owned[core] : 0;
}

static uint16_t free_thread(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t core)
{
	const struct ebb_core *c = &s->env->host.cores[core];

	for (uint16_t rank = 0; rank < c->num_threads; rank++)
		if (!s->cores.owner[c->threads[rank]].vm &&
		    cpu_thread_is_vacated(vm, c->threads[rank]))
			return c->threads[rank];
	return EBB_THREAD_NONE;
}

/* The vCPU on the core with the fewest; rather one that is not of the startup set. */
static int pick_mover(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	uint16_t fewest = 0;
	int best = -1;

	for (int i = vm->num_vcpus - 1; i >= 0; i--) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		uint16_t count;

		if (v->node != g || !can_move(v))
			continue;
		count = count_own(s, vm, g, s->env->host.threads[v->thread].core);
		if (count == 0 || (best >= 0 && (count > fewest || (count == fewest &&
								    v->is_startup))))
			continue;
		best = i;
		fewest = count;
	}
	return best;
}

/* In the core that has most and room for one more, and no fewer than the mover's own. */
static uint16_t pick_target(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g,
			    uint16_t from)
{
	const uint16_t left = s->env->host.threads[from].core;
	uint16_t most = count_own(s, vm, g, left), best = EBB_THREAD_NONE;

	for (uint16_t c = 0; c < s->env->host.num_cores; c++) {
		const uint16_t count = count_own(s, vm, g, c);
		const uint16_t thread = free_thread(s, vm, c);

		if (c == left || thread == EBB_THREAD_NONE || count == 0 || count < most ||
		    (best != EBB_THREAD_NONE && count == most))
			continue;
		best = thread;
		most = count;
	}
	return best;
}

static void pack(struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	const int mover = pick_mover(s, vm, g);
	uint16_t from, to;

	if (mover < 0)
		return;
	from = vm->vcpus[mover].thread;
	to = pick_target(s, vm, g, from);
	if (to != EBB_THREAD_NONE && cpu_vcpu_take(s, vm, (uint16_t)mover, to))
		cpu_own_vcpu(vm, mover)->leaves = from;
}

static void pack_node(struct cpu_room *s, uint16_t h)
{
	core_set_for_each(i, &s->env->on[h]) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; vm->is_admitted && !vm->sla.is_shared &&
				     g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == h && !is_packing(vm, g) &&
			    cpu_count_cores(s, vm, g) > cpu_to_units(s, h, vm->nodes[g].limit))
				pack(s, vm, g);
	}
}

void cpu_pack(struct cpu_room *s, uint32_t nodes)
{
	for (uint16_t h = 0; h < s->env->host.num_nodes; h++)
		if (nodes >> h & 1 && s->env->use_threads[h] && is_short(s, h))
			pack_node(s, h);
}

/* Nothing else of the VM runs on the thread, or may for all that is known. */
static bool is_left(const struct ebb_vm *vm, uint16_t vcpu, uint16_t thread)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (i != vcpu && cpu_vcpu_may_run_on(&vm->vcpus[i], thread))
			return false;
	return true;
}

void cpu_pack_end(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	/* Lent vCPUs are at home where the startup set is, and follow it. */
	if (v->leaves == EBB_THREAD_NONE || v->place_action || v->placed != v->thread ||
	    !is_left(vm, vcpu, v->leaves))
		return;
	ebb_cores_release(&s->cores, v->leaves);
	v->leaves = EBB_THREAD_NONE;
	core_touch(s->env, vm);
}
