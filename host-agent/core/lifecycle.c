// SPDX-License-Identifier: GPL-2.0-or-later
/* VMs start, stop, and change behind the agent's back. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

static void active_insert(struct ebb_state *s, struct ebb_vm *vm)
{
	size_t i = s->num_active++;

	for (; i > 0 && s->active[i - 1]->order > vm->order; i--)
		s->active[i] = s->active[i - 1];
	s->active[i] = vm;
}

static void active_remove(struct ebb_state *s, const struct ebb_vm *vm)
{
	size_t i = 0;

	while (s->active[i] != vm)
		i++;
	memmove(&s->active[i], &s->active[i + 1], (--s->num_active - i) * sizeof(s->active[0]));
}

/* A vCPU keeps the thread on which it is found, if that is one of its node and nobody's. */
static void claim(struct ebb_state *s, struct ebb_vm *vm, uint16_t vcpu)
{
	const uint16_t thread = vm->vcpus[vcpu].placed;

	if (thread != EBB_THREAD_NONE && vm->vcpus[vcpu].thread == EBB_THREAD_NONE &&
	    !vm->sla.is_shared && !s->host.cores[s->host.threads[thread].core].is_shared &&
	    s->host.threads[thread].node == core_host_node(vm, vcpu) &&
	    (s->cfg.count_threads || !core_is_foreign(s, thread, vm)))
		core_vcpu_own(s, vm, vcpu, thread);
}

static bool is_beside_startup(const struct ebb_vm *vm, uint16_t thread)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].is_startup && vm->vcpus[i].placed == thread)
			return true;
	return false;
}

/* Hotplugged vCPUs claim first, then those of startup sets, by the rank of their thread. */
static bool claims_in(const struct ebb_state *s, const struct ebb_vm *vm,
		      const struct ebb_vcpu *v, int pass)
{
	if (pass == 0)
		return v->is_unknown && !is_beside_startup(vm, v->placed);
	return v->is_startup && v->placed != EBB_THREAD_NONE &&
	       s->host.threads[v->placed].rank == pass - 1;
}

/*
 * A restart of the agent moves nothing off its core.  Where several vCPUs are found on one
 * thread, one owned it and the others shared it: hotplugged vCPUs share only
 * with the startup set of their own VM, so anywhere else they are the owners;
 * startup vCPUs of VMs that are not admitted own nothing.  Nor do those of a VM
 * that was admitted just before and waits for its cores, even if it came first:
 * whole cores are given out by their first thread (ebb_cores_pick()), so whoever
 * is found there goes before one beside it.
 */
void core_claim_all(struct ebb_state *s)
{
	for (int pass = 0; pass <= (int)EBB_MAX_SMT; pass++)
		for (size_t k = 0; k < s->num_active; k++) {
			struct ebb_vm *vm = s->active[k];

			for (uint16_t i = 0; vm->is_admitted && i < vm->num_vcpus; i++)
				if (claims_in(s, vm, &vm->vcpus[i], pass))
					claim(s, vm, i);
		}
}

static void start_run(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		      const struct ebb_fact_vm_running *f)
{
	struct ebb_vm_work *w = vm->work;

	vm->is_running = true;
	vm->is_admitted = false;
	vm->link_up = false;
	/* Found at start: the driver that was there before is still there, until HELLO says. */
	w->is_found = vm->has_driver = !s->is_loaded;
	w->has_hello = false;
	w->counts_as_driven = vm->has_driver;
	vm->order = f->order;
	vm->resets = 0;
	vm->running_at = vm->link_at = now;
	vm->silent_since = 0;
	vm->telemetry_at = 0;
	core_charge_start(s, vm);
	vm->conduct = (struct ebb_vm_conduct){ 0 };
	core_vom_clear(vm);
	vm->vom.asked = vm->vom.told = 0;
	vm->vom.num_asks = vm->vom.num_answers = vm->vom.num_refused = 0;
	/* Whether an agent that is gone has throttled it is not known. */
	vm->share = (struct ebb_vm_share){
		.throttled = vm->sla.is_shared && !s->is_loaded ? EBB_SHARE_NONE : 0,
	};
	s->shared.is_stale = true;
	active_insert(s, vm);
	s->plan_is_stale = true;
	for (uint16_t i = 0; i < f->num_plugged; i++) {
		const struct ebb_vcpu_fact *p = &f->plugged[i];
		struct ebb_vcpu *v = &vm->vcpus[p->vcpu];

		v->life = EBB_VCPU_PLUGGED;
		v->is_unknown = !v->is_startup;
		v->life_at = v->placed_at = f->as_of;
		core_vcpu_set_placed(s, vm, p->vcpu, p->thread);
	}
	core_pools_start(s, vm, f);
	core_text(core_record(s, vm, now, EBB_EVENT_JOIN)->text, "%s with %u CPUs",
		  s->is_loaded ? "started" : "found running", f->num_plugged);
}

static void appeared(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];

	v->life = EBB_VCPU_PLUGGED;
	v->life_at = now;
	v->is_unknown = !v->is_startup && !v->is_granted && !vm->work->has_hello;
	if (v->is_granted && !v->is_lent)
		v->force = EBB_FORCE_NO_CORE;
	core_touch(s, vm);
}

static void vanished(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	struct ebb_record *r;

	if (core_vcpu_is_getting(vm, v))
		core_request_lose(s, vm, vcpu, VIRTIO_EBB_REASON_HOST);
	else if (v->request >= 0 && vm->requests[v->request].phase == EBB_REQUEST_LEND)
		core_request_lent(s, now, vm, vcpu, 0);
	else if (v->request >= 0)
		core_request_removed(s, now, vm, vcpu, 0);
	core_vcpu_gone(s, now, vm, vcpu);
	r = core_record(s, vm, now, EBB_EVENT_ERROR);
	r->node = vm->vcpus[vcpu].node;
	r->cpus = 1;
	core_text(r->text, "vCPU %u was unplugged by somebody else", vcpu);
}

/* The VM ran before: what the snapshot says against what is believed. */
static void compare(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		    const struct ebb_fact_vm_running *f)
{
	uint16_t threads[EBB_MAX_VCPUS];
	bool plugged[EBB_MAX_VCPUS] = { false };

	for (uint16_t i = 0; i < f->num_plugged; i++) {
		plugged[f->plugged[i].vcpu] = true;
		threads[f->plugged[i].vcpu] = f->plugged[i].thread;
	}
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];

		if (!v->life_action && v->life_at < f->as_of) {
			if (plugged[i] && v->life == EBB_VCPU_ABSENT && v->request < 0)
				appeared(s, now, vm, i);
			else if (!plugged[i] && v->life == EBB_VCPU_PLUGGED && !v->is_startup)
				vanished(s, now, vm, i);
		}
		if (plugged[i] && v->life == EBB_VCPU_PLUGGED && !v->place_action &&
		    v->placed_at < f->as_of && v->placed != threads[i])
			core_vcpu_set_placed(s, vm, i, threads[i]);
	}
}

int core_vm_running(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		    const struct ebb_fact_vm_running *f)
{
	if (!vm->has_sla)
		return -ENOENT;
	if (f->num_plugged > vm->num_vcpus)
		return -EINVAL;
	for (uint16_t i = 0; i < f->num_plugged; i++)
		if (f->plugged[i].vcpu >= vm->num_vcpus)
			return -EINVAL;
	if (vm->is_running)
		compare(s, now, vm, f);
	else
		start_run(s, now, vm, f);
	core_touch(s, vm);
	return 0;
}

int core_vm_stopped(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	struct ebb_record *r;
	struct ebb_vm_totals t;

	if (!vm->is_running)
		return 0;
	core_gather_end(s, vm, now);
	core_move_left(s, now, vm);
	core_vm_count(s, vm);
	ebb_vm_totals(vm, &t);
	r = core_record(s, vm, now, EBB_EVENT_LEAVE);
	r->cpus = (uint16_t)t.held;
	r->bytes = t.mem_held;
	core_text(r->text, "stopped; its %u CPUs and %llu MiB of pool memory are free", t.held,
		  (unsigned long long)(t.mem_held >> 20));
	core_charge_record(s, vm);
	core_pools_stop(vm);
	core_requests_drop(s, vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		core_vcpu_gone(s, now, vm, i);
		core_vcpu_clear(&vm->vcpus[i]);
	}
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		vm->nodes[g] = (struct ebb_vm_node){ .due = vm->nodes[g].due };
	vm->is_running = vm->is_admitted = vm->link_up = vm->has_driver = false;
	vm->can_lend = vm->can_vom = false;
	vm->work->is_dirty = vm->work->is_refused = vm->work->wants_cores = false;
	vm->work->is_welcome_due = vm->work->is_close_due = false;
	vm->work->num_responses = 0;
	active_remove(s, vm);
	s->plan_is_stale = s->limits_are_stale = s->shared.is_stale = true;
	if (vm->work->is_void) {
		vm->work->is_void = vm->has_sla = false;
	} else {
		vm->error[0] = '\0';
	}
	if (vm->is_removed)
		core_vm_forget(s, vm);
	return 0;
}
