// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes on which the plan gives out hardware threads.  There a core belongs to
 * one guest node of one VM as a whole, whose CPUs are its threads; so what is
 * promised is counted in cores, and everything fits if the cores do.  A core is
 * worth the threads that the smallest one of its node has.
 */
#include <string.h>

#include "core/cpu/internal.h"

uint32_t cpu_to_units(const struct cpu_room *s, uint16_t host_node, uint32_t cpus)
{
	const uint32_t smt = s->env->smt[host_node];

	return s->env->use_threads[host_node] ? (cpus + smt - 1) / smt : cpus;
}

uint32_t cpu_from_units(const struct cpu_room *s, uint16_t host_node, uint32_t units)
{
	return s->env->use_threads[host_node] ? units * s->env->smt[host_node] : units;
}

static uint32_t count_owned(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	bool is_counted[EBB_MAX_THREADS] = { false };
	uint32_t cores = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		uint16_t core;

		if (v->node != g || v->thread == EBB_THREAD_NONE)
			continue;
		core = s->env->host.threads[v->thread].core;
		cores += !is_counted[core];
		is_counted[core] = true;
		if (v->leaves == EBB_THREAD_NONE)
			continue;
		core = s->env->host.threads[v->leaves].core;
		cores += !is_counted[core];
		is_counted[core] = true;
	}
	return cores;
}

uint32_t cpu_count_cores(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	uint32_t waiting = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		waiting += v->node == g && v->is_startup && v->thread == EBB_THREAD_NONE;
	}
	return count_owned(s, vm, g) + cpu_to_units(s, vm->sla.nodes[g].host_node, waiting);
}

bool cpu_is_foreign(const struct cpu_room *s, uint16_t thread, const struct ebb_vm *vm)
{
	const struct ebb_core *core = &s->env->host.cores[s->env->host.threads[thread].core];

	for (uint16_t rank = 0; rank < core->num_threads; rank++) {
		const struct ebb_thread_owner *o = &s->cores.owner[core->threads[rank]];

		if (o->vm && o->vm != vm)
			return true;
	}
	return false;
}

bool cpu_is_own(const struct cpu_room *s, const struct ebb_core *core, const struct ebb_vm *vm,
		 uint16_t g)
{
	for (uint16_t rank = 0; rank < core->num_threads; rank++) {
		const struct ebb_thread_owner *o = &s->cores.owner[core->threads[rank]];

		if (o->vm && (o->vm != vm || vm->vcpus[o->vcpu].node != g))
			return false;
	}
	return true;
}

/* A free thread beside those that the guest node has already. */
static uint16_t pick_beside(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	for (uint16_t c = 0; c < s->env->host.num_cores; c++) {
		const struct ebb_core *core = &s->env->host.cores[c];

		if (core->node != vm->sla.nodes[g].host_node || s->cores.num_owned[c] == 0 ||
		    s->cores.num_owned[c] == core->num_threads || !cpu_is_own(s, core, vm, g))
			continue;
		for (uint16_t rank = 0; rank < core->num_threads; rank++)
			if (!s->cores.owner[core->threads[rank]].vm)
				return core->threads[rank];
	}
	return EBB_THREAD_NONE;
}

static uint16_t pick(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g, bool allow_ht)
{
	const uint16_t h = vm->sla.nodes[g].host_node;
	uint16_t thread = EBB_THREAD_NONE;

	if (!s->env->use_threads[h])
		return ebb_cores_pick(&s->cores, h, allow_ht && s->env->cfg.count_threads);
	/* Whole cores first, as many as its limit is worth. */
	if (count_owned(s, vm, g) < cpu_to_units(s, h, vm->nodes[g].limit))
		thread = ebb_cores_pick(&s->cores, h, false);
	if (thread == EBB_THREAD_NONE && allow_ht)
		thread = pick_beside(s, vm, g);
	return cpu_thread_is_vacated(vm, thread) ? thread : EBB_THREAD_NONE;
}

uint16_t cpu_pick_startup(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	return pick(s, vm, g, true);
}

/*
 * A startup vCPU that waited for its core runs on the thread, or may, until it has arrived where it
 * belongs.  A vCPU placed on this thread now would lose it at the agent's next restart: a vCPU that
 * is found beside one of the startup set is taken for one that has no core (cpu_claim_all()).
 */
bool cpu_thread_is_vacated(const struct ebb_vm *vm, uint16_t thread)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		/* While it moves it owns both threads on which it may be. */
		if (v->is_startup && v->leaves == EBB_THREAD_NONE &&
		    cpu_vcpu_may_run_on(v, thread))
			return false;
	}
	return true;
}

uint16_t cpu_pick_thread(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g,
			  bool allow_ht)
{
	const uint16_t thread = pick(s, vm, g, allow_ht);

	return cpu_thread_is_vacated(vm, thread) ? thread : EBB_THREAD_NONE;
}
