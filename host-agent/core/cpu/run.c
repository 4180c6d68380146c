// SPDX-License-Identifier: GPL-2.0-or-later
/* vCPUs of VMs that start, stop, are found running, or change behind the agent's back. */
#include "core/cpu/internal.h"

/* A vCPU keeps the thread on which it is found, if that is one of its node and nobody's. */
static void claim(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	const uint16_t thread = vm->vcpus[vcpu].placed;
	const struct ebb_host *host = &s->env->host;

	if (thread != EBB_THREAD_NONE && vm->vcpus[vcpu].thread == EBB_THREAD_NONE &&
	    !vm->sla.is_shared && !host->cores[host->threads[thread].core].is_shared &&
	    host->threads[thread].node == core_host_node(vm, vcpu) &&
	    (s->env->cfg.count_threads || !cpu_is_foreign(s, thread, vm)))
		cpu_vcpu_take(s, vm, vcpu, thread);
}

static bool is_beside_startup(const struct ebb_vm *vm, uint16_t thread)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].is_startup && vm->vcpus[i].placed == thread)
			return true;
	return false;
}

/* Hotplugged vCPUs claim first, then those of startup sets, by the rank of their thread. */
static bool claims_in(const struct cpu_room *s, const struct ebb_vm *vm,
		      const struct ebb_vcpu *v, int pass)
{
	if (pass == 0)
		return v->is_unknown && !is_beside_startup(vm, v->placed);
	return v->is_startup && v->placed != EBB_THREAD_NONE &&
	       s->env->host.threads[v->placed].rank == pass - 1;
}

/*
 * A restart of the agent moves nothing off its core.  Where several vCPUs are found on one
 * thread, one owned it and the others shared it: hotplugged vCPUs share only
 * with the startup set of their own VM, so anywhere else they are the owners;
 * startup vCPUs of VMs that are not admitted own nothing.  Nor do those of a VM
 * that was admitted just before and waits for its cores, even if it came first:
 * whole cores are given out by their first thread (ebb_cores_pick()), so a vCPU that is found there
 * goes before one beside it.
 */
void cpu_claim_all(struct cpu_room *s)
{
	for (int pass = 0; pass <= (int)EBB_MAX_SMT; pass++)
		for (size_t k = 0; k < s->env->num_active; k++) {
			const struct ebb_vm *vm = s->env->active[k];

			/* Of one that is on its way here the pins are those of its old host. */
			for (uint16_t i = 0; vm->is_admitted && !vm->is_incoming &&
			     i < vm->num_vcpus; i++)
				if (claims_in(s, vm, &vm->vcpus[i], pass))
					claim(s, vm, i);
		}
}

void cpu_start(struct cpu_room *s, const struct ebb_vm *vm, const struct ebb_fact_vm_running *f)
{
	*cpu_own(vm) = (struct ebb_vm_cpus){ 0 };
	for (uint16_t i = 0; i < f->num_plugged; i++) {
		const struct ebb_vcpu_fact *p = &f->plugged[i];
		struct ebb_vcpu *v = cpu_own_vcpu(vm, p->vcpu);

		v->life = EBB_VCPU_PLUGGED;
		v->is_unknown = !v->is_startup;
		v->life_at = v->placed_at = f->as_of;
		cpu_vcpu_set_placed(s, vm, p->vcpu, p->thread);
	}
}

static void appeared(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	v->life = EBB_VCPU_PLUGGED;
	v->life_at = now;
	v->is_unknown = !v->is_startup && !v->is_granted && !core_has_hello(vm);
	if (v->is_granted && !v->is_lent)
		v->force = EBB_FORCE_NO_CORE;
	core_touch(s->env, vm);
}

static void vanished(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	struct ebb_record *r;

	if (cpu_vcpu_is_getting(vm, v))
		cpu_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	else if (v->request >= 0 && vm->requests[v->request].phase == EBB_REQUEST_LEND)
		cpu_request_lent(s, now, vm, vcpu, 0);
	else if (v->request >= 0)
		cpu_request_removed(s, now, vm, vcpu, 0);
	cpu_vcpu_gone(s, now, vm, vcpu);
	r = core_record(s->env, vm, now, EBB_EVENT_ERROR);
	r->node = vm->vcpus[vcpu].node;
	r->cpus = 1;
	core_text(r->text, "vCPU %u was unplugged by somebody else", vcpu);
}

/* The VM ran before: what the snapshot says against what is believed. */
void cpu_compare(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		    const struct ebb_fact_vm_running *f)
{
	uint16_t threads[EBB_MAX_VCPUS];
	bool plugged[EBB_MAX_VCPUS] = { false };

	for (uint16_t i = 0; i < f->num_plugged; i++) {
		plugged[f->plugged[i].vcpu] = true;
		threads[f->plugged[i].vcpu] = f->plugged[i].thread;
	}
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);

		if (!v->life_action && v->life_at < f->as_of) {
			if (plugged[i] && v->life == EBB_VCPU_ABSENT && v->request < 0)
				appeared(s, now, vm, i);
			else if (!plugged[i] && v->life == EBB_VCPU_PLUGGED && !v->is_startup)
				vanished(s, now, vm, i);
		}
		if (plugged[i] && v->life == EBB_VCPU_PLUGGED && !v->place_action &&
		    v->placed_at < f->as_of && v->placed != threads[i])
			cpu_vcpu_set_placed(s, vm, i, threads[i]);
	}
}

void cpu_stop(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	cpu_drop(s, vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		cpu_vcpu_gone(s, now, vm, i);
		cpu_vcpu_clear(cpu_own_vcpu(vm, i));
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		*cpu_own_node(vm, g) = (struct ebb_vm_node){ .due = vm->nodes[g].due };
	*cpu_own(vm) = (struct ebb_vm_cpus){ 0 };
}
