// SPDX-License-Identifier: GPL-2.0-or-later
/* VMs start, stop, and change behind the agent's back. */
#include <errno.h>
#include <string.h>

#include "core/internal.h"

static void active_insert(struct ebb_state *s, struct ebb_vm *vm)
{
	size_t i = s->env.num_active++;

	for (; i > 0 && s->active[i - 1]->order > vm->order; i--) {
		s->active[i] = s->active[i - 1];
		s->active[i]->work->place = (uint16_t)i;
	}
	s->active[i] = vm;
	vm->work->place = (uint16_t)i;
	core_set_open(&s->cycle.news, i);
	core_set_open(&s->cycle.marked, i);
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		core_set_open(&s->env.on[h], i);
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
		core_set_add(&s->env.on[vm->sla.nodes[g].host_node], i);
}

static void active_remove(struct ebb_state *s, const struct ebb_vm *vm)
{
	const uint16_t place = vm->work->place;

	s->env.num_active--;
	for (uint16_t i = place; i < s->env.num_active; i++) {
		s->active[i] = s->active[i + 1];
		s->active[i]->work->place = i;
	}
	vm->work->place = EBB_MAX_VMS;
	core_set_close(&s->cycle.news, place);
	core_set_close(&s->cycle.marked, place);
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		core_set_close(&s->env.on[h], place);
	core_alarm_set(&s->settles, vm->work->slot, EBB_TIME_NEVER);
	core_alarm_set(&s->wakes, vm->work->slot, EBB_TIME_NEVER);
}

static void start_run(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		      const struct ebb_fact_vm_running *f)
{
	struct ebb_vm_work *w = vm->work;

	vm->is_running = true;
	vm->is_incoming = f->is_incoming;
	vm->is_admitted = false;
	vm->link_up = false;
	/*
	 * Found at start: the driver that was there before is still there, until HELLO says.  One
	 * that is on its way here has got nothing from an agent of this host.
	 */
	w->is_found = vm->has_driver = !s->env.is_loaded && !f->is_incoming;
	w->has_hello = false;
	w->has_come = f->is_incoming;
	w->counts_as_driven = vm->has_driver;
	vm->order = f->order;
	vm->resets = 0;
	vm->running_at = vm->link_at = now;
	vm->telemetry_at = 0;
	vm->before = (struct ebb_account){ 0 };
	meter_start(&s->meter, vm);
	promise_start(vm);
	promise_start_cache(vm);
	broker_start(vm);
	shared_start(&s->shared, vm);
	reserve_start(&s->reserve, vm);
	floor_start(vm);
	io_changed(&s->io, vm);
	active_insert(s, vm);
	s->cycle.plan_is_stale = true;
	cpu_start(&s->cpu, vm, f);
	mem_start(vm, f);
	core_text(core_record(&s->env, vm, now, EBB_EVENT_JOIN)->text, "%s with %u CPUs",
		  f->is_incoming ? "is coming from another host" :
		  s->env.is_loaded ? "started" : "found running", f->num_plugged);
}

void core_vm_arrived(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	if (!vm->is_incoming)
		return;
	vm->is_incoming = false;
	/* As of a VM that is found: its driver has come with it, until HELLO says. */
	vm->has_driver = true;
	/* Until now there was no device that could have said HELLO. */
	vm->running_at = vm->link_at = now;
	meter_start(&s->meter, vm);
	core_touch(&s->env, vm);
	core_text(core_record(&s->env, vm, now, EBB_EVENT_JOIN)->text,
		  "has arrived from another host");
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
		cpu_compare(&s->cpu, now, vm, f);
	else
		start_run(s, now, vm, f);
	if (!f->is_incoming)
		core_vm_arrived(s, now, vm);
	vm->is_outgoing = f->is_outgoing || (f->is_incoming && !vm->is_incoming);
	core_touch(&s->env, vm);
	return 0;
}

int core_vm_stopped(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	struct ebb_record *r;
	struct ebb_vm_totals t;

	if (!vm->is_running)
		return 0;
	core_gather_end(&s->env, vm, now);
	pressure_stop(&s->pressure, now, vm);
	cpu_count(&s->cpu, vm);
	ebb_vm_totals(vm, &t);
	r = core_record(&s->env, vm, now, EBB_EVENT_LEAVE);
	r->cpus = (uint16_t)t.held;
	r->bytes = t.mem_held;
	core_text(r->text, "%s; its %u CPUs and %llu MiB of pool memory are free",
		  vm->is_incoming ? "has not arrived" : "stopped", t.held,
		  (unsigned long long)(t.mem_held >> 20));
	meter_record(&s->meter, vm);
	mem_stop(vm);
	broker_stop(vm);
	cpu_stop(&s->cpu, now, vm);
	vm->is_incoming = vm->is_outgoing = false;
	vm->is_running = vm->is_admitted = vm->link_up = vm->has_driver = false;
	vm->can_lend = vm->can_vom = vm->can_leave = vm->can_baseline = false;
	vm->can_account = false;
	vm->work->is_refused = false;
	vm->work->is_welcome_due = vm->work->is_close_due = false;
	vm->work->is_account_due = false;
	vm->work->num_responses = 0;
	active_remove(s, vm);
	s->cycle.plan_is_stale = true;
	shared_stop(&s->shared, vm);
	reserve_stop(&s->reserve, vm);
	floor_stop(vm);
	io_stop(&s->io, vm);
	if (vm->work->is_void) {
		vm->work->is_void = vm->has_sla = false;
	} else {
		vm->error[0] = '\0';
	}
	if (vm->is_removed)
		core_vm_forget(s, vm);
	return 0;
}
