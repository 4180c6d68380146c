// SPDX-License-Identifier: GPL-2.0-or-later
/* HELLO, loss of the link, and which VMs count as having a driver. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

bool core_vm_is_driven(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now)
{
	if (!vm->is_running || vm->is_incoming || !vm->has_driver)
		return false;
	return vm->link_up || now < vm->link_at + s->env.cfg.link_grace_usec;
}

usec_t core_vm_driven_until(const struct ebb_state *s, const struct ebb_vm *vm)
{
	if (!vm->is_running || !vm->work->counts_as_driven || vm->link_up)
		return EBB_TIME_NEVER;
	return vm->link_at + s->env.cfg.link_grace_usec;
}

static uint16_t hello_check(const struct ebb_vm *vm, const struct ebb_fact_hello *f,
			    char *ret_text)
{
	if (f->num_nodes != vm->sla.num_nodes) {
		core_text(ret_text, "HELLO names %u nodes, the domain has %u", f->num_nodes,
			  vm->sla.num_nodes);
		return VIRTIO_EBB_REASON_NODE;
	}
	if (f->max_cpus < vm->num_vcpus) {
		core_text(ret_text, "HELLO names at most %u CPUs, the domain has %u", f->max_cpus,
			  vm->num_vcpus);
		return VIRTIO_EBB_REASON_RANGE;
	}
	for (uint16_t i = 0; i < f->num_cpus; i++) {
		const struct ebb_hello_cpu *c = &f->cpus[i];
		const bool is_startup = c->flags & VIRTIO_EBB_CPU_F_STARTUP;

		if (c->vcpu >= vm->num_vcpus) {
			core_text(ret_text, "HELLO lists vCPU %u, allowed are 0 to %u", c->vcpu,
				  vm->num_vcpus - 1);
			return VIRTIO_EBB_REASON_RANGE;
		}
		if (is_startup != vm->vcpus[c->vcpu].is_startup) {
			core_text(ret_text, "HELLO lists vCPU %u as %s, by the domain it is %s",
				  c->vcpu, is_startup ? "startup" : "hotplugged",
				  is_startup ? "hotplugged" : "startup");
			return VIRTIO_EBB_REASON_STARTUP;
		}
	}
	for (uint16_t i = 0; i < f->num_pools; i++)
		if (f->pools[i].node >= vm->sla.num_nodes) {
			core_text(ret_text, "HELLO lists a pool of node %u, allowed are 0 to %u",
				  f->pools[i].node, vm->sla.num_nodes - 1);
			return VIRTIO_EBB_REASON_NODE;
		}
	return VIRTIO_EBB_REASON_NONE;
}

static void hello_refuse(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			 const struct ebb_fact_hello *f, uint16_t reason, const char *text)
{
	struct ebb_record *r = core_record(&s->env, vm, now, EBB_EVENT_ERROR);

	r->code = reason;
	core_text(r->text, "%s; link refused", text);
	core_link_lost(s, now, vm);
	if (f->is_first) {
		vm->work->is_welcome_due = true;
		vm->work->welcome.status = VIRTIO_EBB_NACK;
		vm->work->welcome.reason = reason;
	} else {
		vm->work->is_close_due = true;
	}
	core_mark(&s->env, vm);
}

/* MiB of pools that VMs hold beyond what there is, on the nodes of the host that the VM is on. */
static uint64_t mib_too_much(const struct ebb_state *s, const struct ebb_vm *vm)
{
	uint64_t sum = 0;
	uint32_t seen = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const uint16_t h = vm->sla.nodes[g].host_node;
		const uint64_t held = ebb_state_pool_held(s, h);
		const uint64_t has = ebb_state_pool_capacity(s, h);

		if (!(seen >> h & 1) && held > has)
			sum += (held - has) >> 20;
		seen |= 1u << h;
	}
	return sum;
}

/*
 * A VM keeps the CPUs and the memory that it brings from another host: none is taken at once.  CPUs
 * without a core run at home until there is one.  If VMs hold more than the host has, the policy
 * says whose CPUs and memory are demanded back, with a deadline.
 */
static void record_come(struct ebb_state *s, usec_t now, const struct ebb_vm *vm)
{
	uint64_t bytes = 0;
	uint16_t cpus = 0;
	struct ebb_record *r;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		cpus += v->is_granted && !v->is_lent && !v->is_startup;
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		bytes += vm->pools[g].held * EBB_BLOCK_BYTES;
	r = core_record(&s->env, vm, now, EBB_EVENT_JOIN);
	r->cpus = cpus;
	r->bytes = bytes;
	core_text(r->text,
		  "brought %u hotplugged CPUs and %llu MiB of pool memory; VMs hold %llu MiB more "
		  "than its nodes of the host have", cpus, (unsigned long long)(bytes >> 20),
		  (unsigned long long)mib_too_much(s, vm));
}

int core_hello(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_fact_hello *f)
{
	struct ebb_vm_work *w = vm->work;
	const bool is_reset = w->has_hello && f->resets != vm->resets;
	const bool is_first_of_run = !w->has_hello;
	uint16_t reason, hotplugged;
	char text[EBB_TEXT_SIZE];

	if (!vm->is_running)
		return -ENOENT;
	/* Its device says nothing before the VM is here. */
	core_vm_arrived(s, now, vm);
	reason = hello_check(vm, f, text);
	if (reason != VIRTIO_EBB_REASON_NONE) {
		hello_refuse(s, now, vm, f, reason, text);
		return 0;
	}
	/* The device has completed or dropped what was asked before. */
	if (f->is_first || is_reset || !f->has_driver)
		cpu_drop(&s->cpu, vm);
	if (f->is_first)
		w->num_responses = 0;
	hotplugged = cpu_hello(&s->cpu, now, vm, f, is_reset);
	mem_hello(&s->mem, now, vm, f);
	if (is_reset) {
		meter_forget(vm);
		broker_forget(vm);
		floor_forget(vm);
		promise_forget_cache(vm);
	}
	vm->resets = f->resets;
	vm->has_driver = f->has_driver;
	vm->can_lend = f->can_lend;
	vm->can_vom = f->can_vom;
	vm->can_leave = f->can_leave;
	vm->can_baseline = f->can_baseline;
	vm->can_account = f->can_account;
	if (vm->generation < f->generation)
		vm->generation = f->generation;
	vm->link_up = w->has_hello = true;
	if (f->is_first) {
		vm->link_at = now;
		w->is_welcome_due = true;
		w->welcome.status = VIRTIO_EBB_ACK;
		w->welcome.reason = VIRTIO_EBB_REASON_NONE;
	}
	core_touch(&s->env, vm);
	if (is_first_of_run)
		cpu_found(&s->cpu, vm);
	if (w->has_come && is_first_of_run)
		record_come(s, now, vm);
	core_text(core_record(&s->env, vm, now, EBB_EVENT_LINK)->text,
		  "HELLO%s: %s, %u hotplugged CPUs, %llu resets%s",
		  f->is_first ? " on a new link" : "",
		  f->has_driver ? "driver running" : "no driver", hotplugged,
		  (unsigned long long)f->resets, is_reset ? " (new)" : "");
	return 0;
}

int core_link_lost(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	if (!vm->is_running)
		return 0;
	cpu_drop(&s->cpu, vm);
	vm->work->num_responses = 0;
	vm->work->is_welcome_due = vm->work->is_close_due = false;
	cpu_link_lost(vm);
	broker_changed(&s->broker);
	if (vm->link_up) {
		vm->link_up = false;
		vm->link_at = now;
		core_text(core_record(&s->env, vm, now, EBB_EVENT_LINK)->text, "link lost");
	}
	core_touch(&s->env, vm);
	return 0;
}
