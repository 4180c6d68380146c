// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Nodes on which the plan gives out hardware threads.  There a core belongs to
 * one guest node of one VM as a whole, whose CPUs are its threads; so what is
 * promised is counted in cores, and everything fits if the cores do.  A core is
 * worth the threads that the smallest one of its node has.
 */
#include <string.h>

#include "core/internal.h"

uint32_t core_to_units(const struct ebb_state *s, uint16_t host_node, uint32_t cpus)
{
	const uint32_t smt = s->smt[host_node];

	return s->use_threads[host_node] ? (cpus + smt - 1) / smt : cpus;
}

uint32_t core_from_units(const struct ebb_state *s, uint16_t host_node, uint32_t units)
{
	return s->use_threads[host_node] ? units * s->smt[host_node] : units;
}

static uint32_t count_owned(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g)
{
	bool is_counted[EBB_MAX_THREADS] = { false };
	uint32_t cores = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		uint16_t core;

		if (v->node != g || v->thread == EBB_THREAD_NONE)
			continue;
		core = s->host.threads[v->thread].core;
		cores += !is_counted[core];
		is_counted[core] = true;
		if (v->leaves == EBB_THREAD_NONE)
			continue;
		core = s->host.threads[v->leaves].core;
		cores += !is_counted[core];
		is_counted[core] = true;
	}
	return cores;
}

uint32_t core_count_cores(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g)
{
	uint32_t waiting = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		waiting += v->node == g && v->is_startup && v->thread == EBB_THREAD_NONE;
	}
	return count_owned(s, vm, g) + core_to_units(s, vm->sla.nodes[g].host_node, waiting);
}

bool core_is_foreign(const struct ebb_state *s, uint16_t thread, const struct ebb_vm *vm)
{
	const struct ebb_core *core = &s->host.cores[s->host.threads[thread].core];

	for (uint16_t rank = 0; rank < core->num_threads; rank++) {
		const struct ebb_thread_owner *o = &s->cores.owner[core->threads[rank]];

		if (o->vm && o->vm != vm)
			return true;
	}
	return false;
}

/*
 * Where the option count_threads has let in more startup sets than there are
 * cores, cores can not belong to one VM each.
 */
void core_use_threads(struct ebb_state *s, const bool *use_threads)
{
	uint32_t floors[EBB_MAX_NODES] = { 0 };

	memmove(s->use_threads, use_threads, sizeof(s->use_threads));
	for (size_t i = 0; i < s->num_active; i++)
		for (uint16_t g = 0; s->active[i]->is_admitted && !s->active[i]->sla.is_shared &&
				     g < s->active[i]->sla.num_nodes; g++) {
			const struct ebb_sla_node *sla = &s->active[i]->sla.nodes[g];

			floors[sla->host_node] += core_to_units(s, sla->host_node, sla->startup);
		}
	for (uint16_t h = 0; h < s->host.num_nodes; h++)
		if (floors[h] > s->nodes[h].num_cores)
			s->use_threads[h] = false;
}

bool core_is_own(const struct ebb_state *s, const struct ebb_core *core, const struct ebb_vm *vm,
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
static uint16_t pick_beside(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g)
{
	for (uint16_t c = 0; c < s->host.num_cores; c++) {
		const struct ebb_core *core = &s->host.cores[c];

		if (core->node != vm->sla.nodes[g].host_node || s->cores.num_owned[c] == 0 ||
		    s->cores.num_owned[c] == core->num_threads || !core_is_own(s, core, vm, g))
			continue;
		for (uint16_t rank = 0; rank < core->num_threads; rank++)
			if (!s->cores.owner[core->threads[rank]].vm)
				return core->threads[rank];
	}
	return EBB_THREAD_NONE;
}

static uint16_t pick(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g, bool allow_ht)
{
	const uint16_t h = vm->sla.nodes[g].host_node;
	uint16_t thread = EBB_THREAD_NONE;

	if (!s->use_threads[h])
		return ebb_cores_pick(&s->cores, h, allow_ht && s->cfg.count_threads);
	/* Whole cores first, as many as its limit is worth. */
	if (count_owned(s, vm, g) < core_to_units(s, h, vm->nodes[g].limit))
		thread = ebb_cores_pick(&s->cores, h, false);
	if (thread == EBB_THREAD_NONE && allow_ht)
		thread = pick_beside(s, vm, g);
	return core_thread_is_vacated(vm, thread) ? thread : EBB_THREAD_NONE;
}

uint16_t core_pick_startup(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g)
{
	return pick(s, vm, g, true);
}

/*
 * A startup vCPU that waited for its core runs on the thread, or may, until it has arrived where it
 * belongs.  Who came there meanwhile would lose the core with the next restart of the agent: it
 * takes a vCPU that it finds beside one of the startup set for one that has none
 * (core_claim_all()).
 */
bool core_thread_is_vacated(const struct ebb_vm *vm, uint16_t thread)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		/* While it moves it owns both threads on which it may be. */
		if (v->is_startup && v->leaves == EBB_THREAD_NONE &&
		    core_vcpu_may_run_on(v, thread))
			return false;
	}
	return true;
}

uint16_t core_pick_thread(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
			  bool allow_ht)
{
	const uint16_t thread = pick(s, vm, g, allow_ht);

	return core_thread_is_vacated(vm, thread) ? thread : EBB_THREAD_NONE;
}
