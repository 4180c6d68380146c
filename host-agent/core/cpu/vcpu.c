// SPDX-License-Identifier: GPL-2.0-or-later
/* vCPUs: what they own, where they run, and how they are counted. */
#include <limits.h>

#include "core/cpu/internal.h"

void cpu_create(struct cpu_room *s)
{
	s->cores.host = &s->env->host;
}

bool cpu_vcpu_take(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, uint16_t thread)
{
	core_charge(s->env, vm);
	if (ebb_cores_own(&s->cores, thread, vm, vcpu) < 0)
		return false;
	cpu_own_vcpu(vm, vcpu)->thread = thread;
	core_touch(s->env, vm);
	return true;
}

void cpu_vcpu_release(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	if (v->thread == EBB_THREAD_NONE)
		return;
	core_charge(s->env, vm);
	ebb_cores_release(&s->cores, v->thread);
	ebb_cores_release(&s->cores, v->leaves);
	v->thread = v->leaves = EBB_THREAD_NONE;
	core_touch(s->env, vm);
}

void cpu_vcpu_set_placed(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu,
			 uint16_t thread)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	if (thread >= s->env->host.num_threads)
		thread = EBB_THREAD_NONE;
	if (v->placed != EBB_THREAD_NONE)
		s->cores.num_placed[v->placed]--;
	v->placed = thread;
	if (thread != EBB_THREAD_NONE)
		s->cores.num_placed[thread]++;
	core_mark(s->env, vm);
}

void cpu_vcpu_clear(struct ebb_vcpu *v)
{
	*v = (struct ebb_vcpu){
		.node = v->node,
		.is_startup = v->is_startup,
		.request = -1,
		.thread = EBB_THREAD_NONE,
		.leaves = EBB_THREAD_NONE,
		.placed = EBB_THREAD_NONE,
		.placing = EBB_THREAD_NONE,
	};
}

void cpu_define(const struct ebb_vm *vm, const struct ebb_vcpu_def *defs)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);

		v->node = defs[i].node;
		v->is_startup = defs[i].is_startup;
		cpu_vcpu_clear(v);
	}
}

void cpu_vcpu_gone(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	const struct ebb_vcpu old = *v;

	cpu_vcpu_set_placed(s, vm, vcpu, EBB_THREAD_NONE);
	cpu_vcpu_release(s, vm, vcpu);
	cpu_vcpu_clear(v);
	core_times_forget(vm, vcpu);
	/*
	 * The device's table does not change because the vCPU went: a grant is
	 * over only when the guest has asked for its removal.
	 */
	v->is_granted = old.is_granted;
	v->granted_at = old.granted_at;
	v->told_forced = old.told_forced;
	v->is_lent = old.is_lent;
	v->is_parked = old.is_parked;
	v->is_declined = old.is_declined;
	v->life_at = v->placed_at = now;
}

void cpu_vcpu_force(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, enum ebb_force why)
{
	cpu_own_vcpu(vm, vcpu)->force = why;
	core_touch(s->env, vm);
}

/* Home is where the VM's startup set runs. */
static bool is_home(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t thread)
{
	const struct ebb_vcpu *owner;

	if (thread == EBB_THREAD_NONE || s->cores.owner[thread].vm != vm)
		return false;
	/* A vCPU that moves also owns the thread that it leaves, which is no home. */
	owner = &vm->vcpus[s->cores.owner[thread].vcpu];
	return owner->is_startup && owner->thread == thread;
}

static uint16_t home_load(const struct ebb_vm *vm, uint16_t thread)
{
	uint16_t load = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		load += (v->place_action ? v->placing : v->placed) == thread;
	}
	return load;
}

static uint16_t pick_home(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	const uint16_t host_node = core_host_node(vm, vcpu);
	uint16_t best = EBB_THREAD_NONE;
	uint32_t best_cost = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];
		uint32_t cost;

		if (!v->is_startup || v->thread == EBB_THREAD_NONE)
			continue;
		/* Another node is worse than any crowd. */
		cost = home_load(vm, v->thread) +
		       (s->env->host.threads[v->thread].node == host_node ? 0 : EBB_MAX_VCPUS + 1);
		if (best == EBB_THREAD_NONE || cost < best_cost) {
			best = v->thread;
			best_cost = cost;
		}
	}
	return best;
}

static bool has_startup_beside(const struct cpu_room *s, uint16_t thread)
{
	const struct ebb_core *core = &s->env->host.cores[s->env->host.threads[thread].core];

	for (uint16_t rank = 0; rank < core->num_threads; rank++) {
		const struct ebb_thread_owner *o = &s->cores.owner[core->threads[rank]];
		const struct ebb_vm *owner = o->vm;

		if (owner && owner->vcpus[o->vcpu].is_startup)
			return true;
	}
	return false;
}

/*
 * How bad a place the thread is for a vCPU without a core: best not beside a startup vCPU, and if
 * it must be, not on the core's first thread. So an agent that is restarted and finds several vCPUs
 * on one core can tell which of them owns it (cpu_claim_all()).
 */
static unsigned int is_in_the_way(const struct cpu_room *s, uint16_t thread)
{
	if (!has_startup_beside(s, thread))
		return 0;
	return s->env->host.threads[thread].rank > 0 ? 1 : 2;
}

/*
 * For a VM that has no core at all: where it is, if that is on the vCPU's node and no other thread
 * there is better; else where fewest run.
 */
static uint16_t pick_shared(const struct cpu_room *s, uint16_t host_node, uint16_t placed,
			    uint16_t except)
{
	const bool may_stay = placed != EBB_THREAD_NONE && placed != except &&
			      s->env->host.threads[placed].node == host_node;
	unsigned int best_way = may_stay ? is_in_the_way(s, placed) : UINT_MAX;
	uint16_t best = may_stay ? placed : EBB_THREAD_NONE;
	uint32_t best_run = 0;

	for (uint16_t t = 0; t < s->env->host.num_threads; t++) {
		const unsigned int way = is_in_the_way(s, t);

		if (s->env->host.threads[t].node != host_node || t == except ||
		    s->env->host.cores[s->env->host.threads[t].core].is_shared || way > best_way ||
		    (way == best_way && s->cores.num_placed[t] >= best_run))
			continue;
		best = t;
		best_way = way;
		best_run = s->cores.num_placed[t];
	}
	return best;
}

uint16_t cpu_vcpu_wants(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	uint16_t home;

	if (vm->sla.is_shared)
		return vm->vcpu_shares[vcpu].thread;
	if (!cpu_vcpu_goes_home(vm, v)) {
		if (v->thread != EBB_THREAD_NONE)
			return v->thread;
		if (!v->is_startup)
			return EBB_THREAD_NONE;
	}
	home = pick_home(s, vm, vcpu);
	/* The thread that it owns and has to leave is no home, unless the node has no other. */
	if (home == EBB_THREAD_NONE)
		home = pick_shared(s, core_host_node(vm, vcpu), v->placed, v->thread);
	else if (v->placed != v->thread && is_home(s, vm, v->placed))
		return v->placed;
	return home != EBB_THREAD_NONE ? home : v->thread;
}

/* Demands that were met, oldest first, whichever CPU the guest gave. */
static void due_met(const struct cpu_room *s, const struct ebb_vm *vm, struct ebb_vm_node *n,
		    uint16_t count, bool by_guest)
{
	const usec_t near = vm->sla.deadline_ms * EBB_USEC_PER_MSEC / 4;
	uint32_t late = 0;

	if (count > n->num_due)
		count = n->num_due;
	for (uint16_t i = 0; i < count; i++)
		late += n->due[i] <= s->env->now + near;
	if (count > 0 && by_guest)
		core_conduct_given(vm, count, late, s->env->now);
	n->num_due -= count;
	for (uint16_t i = 0; i < n->num_due; i++)
		n->due[i] = n->due[i + count];
}

static void count(struct cpu_room *s, const struct ebb_vm *vm, bool by_guest)
{
	uint16_t used[EBB_MAX_GUEST_NODES] = { 0 }, held[EBB_MAX_GUEST_NODES] = { 0 };
	uint16_t lent[EBB_MAX_GUEST_NODES] = { 0 };

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		used[v->node] += !vm->sla.is_shared &&
				 (v->is_startup || v->thread != EBB_THREAD_NONE);
		held[v->node] += v->is_startup || (v->is_granted && core_vcpu_is_present(v) &&
						   v->force == EBB_FORCE_NONE && !v->is_lent);
		lent[v->node] += v->is_lent;
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = cpu_own_node(vm, g);

		if (held[g] < n->held)
			due_met(s, vm, n, (uint16_t)(n->held - held[g]), by_guest);
		n->used = used[g];
		n->held = held[g];
		n->lent = lent[g];
	}
}

void cpu_count(struct cpu_room *s, const struct ebb_vm *vm)
{
	count(s, vm, true);
}

void cpu_count_forced(struct cpu_room *s, const struct ebb_vm *vm)
{
	count(s, vm, false);
}

void cpu_count_free(const struct cpu_room *s, uint32_t ret[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		ret[h] = 0;
	for (uint16_t c = 0; c < s->env->host.num_cores; c++)
		ret[s->env->host.cores[c].node] += s->cores.num_owned[c] == 0;
}
