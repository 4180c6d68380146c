// SPDX-License-Identifier: GPL-2.0-or-later
/* The one cycle: where a VM is not as it should be, an action is issued. */
#include <string.h>

#include "core/internal.h"

/* ---- messages ------------------------------------------------------------ */

static bool emit_limits(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			struct ebb_actions *out)
{
	struct ebb_action *a;

	if (!cpu_must_tell(vm) && !mem_must_tell(&s->mem, vm) &&
	    vm->vom.told == broker_tells(vm) && !floor_must_tell(vm))
		return true;
	a = core_emit(out, vm, EBB_ACTION_LIMITS);
	if (!a)
		return false;
	a->u.limits.generation = ++vm->generation;
	a->u.limits.num_nodes = vm->sla.num_nodes;
	broker_told(vm);
	a->u.limits.vom_seq = vm->vom.told;
	cpu_tell(now, vm, &a->u.limits);
	mem_tell(&s->mem, now, vm, &a->u.limits);
	floor_tell(vm, &a->u.limits);
	return true;
}

static bool emit_messages(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			  struct ebb_actions *out)
{
	struct ebb_vm_work *w = vm->work;
	struct ebb_action *a;

	if (w->is_welcome_due) {
		a = core_emit(out, vm, EBB_ACTION_WELCOME);
		if (!a)
			return false;
		a->u.welcome = w->welcome;
		w->is_welcome_due = false;
	}
	while (w->num_responses > 0) {
		a = core_emit(out, vm, EBB_ACTION_RESPONSE);
		if (!a)
			return false;
		a->u.response = w->responses[0];
		w->num_responses--;
		memmove(&w->responses[0], &w->responses[1],
			w->num_responses * sizeof(w->responses[0]));
	}
	if (w->is_close_due) {
		if (!core_emit(out, vm, EBB_ACTION_LINK_CLOSE))
			return false;
		w->is_close_due = false;
		core_link_lost(s, now, vm);
	}
	if (!vm->link_up)
		return true;
	return cpu_act_flags(&s->cpu, now, vm, out) && emit_limits(s, now, vm, out) &&
	       core_account_emit(s, vm, out) && mem_revoke(&s->mem, now, vm, out);
}

/* False: no room for all of it; the VM stays marked. */
static bool reconcile_vm(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			 struct ebb_actions *out)
{
	/* Until it is here its threads do not run, and libvirt would refuse to change anything. */
	if (vm->is_incoming) {
		core_set_remove(&s->cycle.marked, vm->work->place);
		return true;
	}
	if (now >= core_gather_until(vm))
		core_gather_end(&s->env, vm, now);
	vm->work->wake_at = core_gather_until(vm);
	mem_settle(&s->mem, now, vm);
	if (!emit_messages(s, now, vm, out) || !mem_act(&s->mem, now, vm, out) ||
	    !shared_act(&s->shared, now, vm, out) || !cpu_act(&s->cpu, now, vm, out) ||
	    !reserve_act(&s->reserve, now, vm, out))
		return false;
	core_set_remove(&s->cycle.marked, vm->work->place);
	core_alarm_set(&s->wakes, vm->work->slot, vm->work->wake_at);
	return true;
}

/* A look at shared cores: the room of pressure is told its result. */
static void settle_shared(struct ebb_state *s, usec_t now)
{
	bool is_throttled[EBB_MAX_NODES];
	struct shared_load load;

	if (!shared_settle(&s->shared, now))
		return;
	for (uint16_t i = 0; i < s->shared.share.num_cores; i++)
		if (shared_load_of(&s->shared, i, &load))
			pressure_report_core(&s->pressure, now, load.core, load.level, load.used,
					     load.who);
	shared_throttled(&s->shared, is_throttled);
	for (uint16_t h = 0; h < s->env.host.num_nodes; h++)
		pressure_report_throttle(&s->pressure, h, is_throttled[h]);
	shared_looked(&s->shared, now);
}

/* Of a VM that shares cores the SLA may have changed, or where its vCPUs are. */
static void settle_promises(struct ebb_state *s, usec_t now)
{
	bool is_stale = false;

	core_set_for_each(i, &s->cycle.marked)
		is_stale = is_stale || s->active[i]->sla.is_shared;
	reserve_settle(&s->reserve, now, is_stale);
}

void ebb_state_next(struct ebb_state *s, usec_t now, struct ebb_actions *ret_actions)
{
	struct core_set *marked = &s->cycle.marked;
	struct ebb_actions *out = ret_actions;
	uint16_t slot;

	out->count = 0;
	out->wake_at = EBB_TIME_NEVER;
	s->env.now = now;
	if (!s->env.is_loaded)
		return;
	core_review_quorum(s, now);
	if (meter_is_due(&s->meter))
		core_account_all(s);
	while ((slot = core_alarm_take(&s->wakes, now)) < EBB_MAX_VMS)
		core_set_add(marked, s->slots[slot]->work->place);
	core_set_for_each(i, marked)
		cpu_tidy(&s->cpu, now, s->active[i]);
	core_settle(s, now);
	settle_shared(s, now);
	settle_promises(s, now);
	io_settle(&s->io, now);
	s->env.has_taken_over = true;
	out->wake_at = now;
	core_set_for_each(i, marked)
		if (!cpu_act_forced(&s->cpu, now, s->active[i], out))
			return;
	core_set_for_each(i, marked)
		if (!reconcile_vm(s, now, s->active[i], out))
			return;
	if (!io_act(&s->io, now, out))
		return;
	out->wake_at = core_sooner(core_alarms_next(&s->settles), core_alarms_next(&s->wakes));
	out->wake_at = core_sooner(out->wake_at, s->env.quorum_until);
	out->wake_at = core_sooner(out->wake_at, io_next_at(&s->io));
	out->wake_at = core_sooner(out->wake_at, broker_next_at(&s->broker));
	out->wake_at = core_sooner(out->wake_at, meter_settle(&s->meter));
	out->wake_at = core_sooner(out->wake_at, shared_next_at(&s->shared));
	out->wake_at = core_sooner(out->wake_at, pressure_settle(&s->pressure, now));
	if (s->cycle.plan_is_stale || s->cycle.stale_nodes || !core_set_is_empty(&s->cycle.news))
		out->wake_at = now;
}
