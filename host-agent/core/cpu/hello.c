// SPDX-License-Identifier: GPL-2.0-or-later
/* HELLO: the device lists the vCPUs that the guest was granted. */
#include "core/cpu/internal.h"

/* The device lists the vCPU. */
static void hello_listed(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			 uint16_t flags, bool is_reset, const struct ebb_fact_hello *f)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	/* One that is lent stays so until its request is answered. */
	if (cpu_vcpu_is_getting(vm, v) && !(flags & VIRTIO_EBB_CPU_F_LENT))
		cpu_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	v->is_suspect = false;
	cpu_hello_lent(s, now, vm, vcpu, flags, f->is_first);
	if (!v->is_granted)
		v->granted_at = now;
	v->is_granted = true;
	v->told_forced = flags & VIRTIO_EBB_CPU_F_FORCED;
	if (!core_vcpu_is_present(v)) {
		v->is_unknown = false;
		return;
	}
	v->is_unknown = false;
	if (v->is_lent)
		return;
	if (v->thread == EBB_THREAD_NONE && v->force == EBB_FORCE_NONE)
		cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_NO_CORE);
	if (is_reset)
		cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_RESET);
	else if (f->has_driver && v->force == EBB_FORCE_ABSENT)
		cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_DEADLINE);
}

/* The device does not list the vCPU. */
static void hello_missing(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			  bool is_first)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);

	v->is_unknown = false;
	if (!v->is_granted)
		return;
	if (!is_first && now < v->granted_at + s->env->cfg.confirm_usec) {
		v->is_suspect = true;
		return;
	}
	v->is_granted = v->is_suspect = v->told_forced = v->is_lent = v->is_parked = false;
	core_touch(s->env, vm);
}

uint16_t cpu_hello(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		   const struct ebb_fact_hello *f, bool is_reset)
{
	bool is_listed[EBB_MAX_VCPUS] = { false };
	uint16_t flags[EBB_MAX_VCPUS], hotplugged = 0;

	for (uint16_t i = 0; i < f->num_cpus; i++) {
		is_listed[f->cpus[i].vcpu] = true;
		flags[f->cpus[i].vcpu] = f->cpus[i].flags;
	}
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		if (vm->vcpus[i].is_startup)
			continue;
		if (is_reset)
			cpu_own_vcpu(vm, i)->is_declined = false;
		if (is_listed[i])
			hello_listed(s, now, vm, i, flags[i], is_reset, f);
		else
			hello_missing(s, now, vm, i, f->is_first);
		hotplugged += is_listed[i];
	}
	/* Limits that were told before may be lost: tell them again. */
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		cpu_own_node(vm, g)->told_limit = UINT16_MAX;
	return hotplugged;
}

void cpu_found(struct cpu_room *s, const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);

		if (v->is_granted && v->force == EBB_FORCE_NO_CORE && !v->told_forced &&
		    v->life == EBB_VCPU_PLUGGED && v->thread == EBB_THREAD_NONE &&
		    cpu_vcpu_take(s, vm, i, cpu_pick_thread(s, vm, v->node, true)))
			v->force = EBB_FORCE_NONE;
	}
	cpu_count(s, vm);
}

void cpu_link_lost(const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		cpu_own_vcpu(vm, i)->is_suspect = false;
}
