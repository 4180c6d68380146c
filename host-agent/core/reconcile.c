// SPDX-License-Identifier: GPL-2.0-or-later
/* What differs from what should be becomes actions. */
#include <string.h>

#include "core/internal.h"

usec_t core_backoff(const struct ebb_state *s, uint16_t failures)
{
	usec_t wait = s->cfg.retry_usec[0];

	for (uint16_t i = 1; i < failures && wait < s->cfg.retry_usec[1]; i++)
		wait *= 2;
	return core_sooner(wait, s->cfg.retry_usec[1]);
}

struct ebb_action *core_emit(struct ebb_actions *out, const struct ebb_vm *vm,
			     enum ebb_action_type type)
{
	struct ebb_action *a;

	if (out->count == out->capacity)
		return NULL;
	a = &out->items[out->count++];
	memset(a, 0, sizeof(*a));
	a->type = type;
	memcpy(a->uuid, vm->uuid, sizeof(a->uuid));
	return a;
}

uint64_t core_action_id(struct ebb_state *s, const struct ebb_vm *vm, uint16_t vcpu)
{
	s->num_actions++;
	return (s->num_actions * EBB_MAX_VMS + vm->work->slot) * EBB_MAX_VCPUS + vcpu;
}

static struct ebb_action *emit_vcpu(struct ebb_state *s, struct ebb_actions *out,
				    const struct ebb_vm *vm, enum ebb_action_type type,
				    uint16_t vcpu, uint16_t thread)
{
	struct ebb_action *a = core_emit(out, vm, type);

	if (a) {
		a->id = core_action_id(s, vm, vcpu);
		a->u.vcpu.vcpu = vcpu;
		a->u.vcpu.thread = thread;
	}
	return a;
}

/* ---- messages ------------------------------------------------------------ */

static uint16_t tier_of(const struct ebb_vm *vm)
{
	return vm->can_lend ? vm->sla.tier : VIRTIO_EBB_TIER_ANY;
}

static bool limits_differ(const struct ebb_state *s, const struct ebb_vm *vm)
{
	if (vm->told_tier != tier_of(vm) || vm->vom.told != core_vom_tells(vm))
		return true;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];

		if (n->told_limit != n->limit || n->told_held != n->held ||
		    n->told_due != (n->num_due ? n->due[0] : 0))
			return true;
	}
	return core_pools_must_tell(s, vm);
}

static bool emit_limits(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			struct ebb_actions *out)
{
	struct ebb_action *a = core_emit(out, vm, EBB_ACTION_LIMITS);

	if (!a)
		return false;
	a->u.limits.generation = ++vm->generation;
	a->u.limits.num_nodes = vm->sla.num_nodes;
	vm->told_tier = tier_of(vm);
	vm->vom.told = core_vom_tells(vm);
	a->u.limits.vom_seq = vm->vom.told;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = &vm->nodes[g];

		n->told_limit = n->limit;
		n->told_held = n->held;
		n->told_due = n->num_due ? n->due[0] : 0;
		a->u.limits.nodes[g].held = n->held;
		a->u.limits.nodes[g].limit = n->limit;
		a->u.limits.nodes[g].tier = vm->told_tier;
		a->u.limits.nodes[g].deadline_ms = core_left_ms(n->told_due, now);
	}
	core_pools_tell(s, now, vm, &a->u.limits);
	return true;
}

static bool emit_flags(struct ebb_vm *vm, struct ebb_actions *out)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];
		struct ebb_action *a;
		bool is_forced;

		if (!v->is_granted || v->is_lent || v->is_suspect || v->life != EBB_VCPU_PLUGGED)
			continue;
		/* Told when it is so: the core is gone, or the CPU runs on it. */
		if (v->thread == EBB_THREAD_NONE)
			is_forced = true;
		else if (v->placed == v->thread && v->force == EBB_FORCE_NONE)
			is_forced = false;
		else
			continue;
		if (is_forced == v->told_forced)
			continue;
		a = core_emit(out, vm, EBB_ACTION_CPU_FLAGS);
		if (!a)
			return false;
		a->u.cpu_flags.vcpu = i;
		a->u.cpu_flags.flags = is_forced ? VIRTIO_EBB_CPU_F_FORCED : 0;
		v->told_forced = is_forced;
	}
	return true;
}

/* New vCPUs that were plugged ahead and have arrived at home become the guest's. */
static bool emit_handovers(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			   struct ebb_actions *out)
{
	for (uint16_t i = 0; vm->sla.plug_ahead && i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];
		struct ebb_action *a;

		if (v->place_action || v->thread != EBB_THREAD_NONE ||
		    v->placed == EBB_THREAD_NONE || !core_vcpu_is_ahead(vm, v) ||
		    v->placed != core_vcpu_wants(s, vm, i))
			continue;
		a = core_emit(out, vm, EBB_ACTION_CPU_FLAGS);
		if (!a)
			return false;
		a->u.cpu_flags.vcpu = i;
		a->u.cpu_flags.flags = VIRTIO_EBB_CPU_F_LENT;
		v->is_granted = v->is_lent = true;
		v->told_forced = v->is_parked = false;
		v->force = EBB_FORCE_NONE;
		v->granted_at = now;
		core_vm_count(s, vm);
	}
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
	return emit_flags(vm, out) && emit_handovers(s, now, vm, out) &&
	       (!limits_differ(s, vm) || emit_limits(s, now, vm, out)) &&
	       core_pools_revoke(s, now, vm, out);
}

/* ---- vCPUs --------------------------------------------------------------- */

static void note_issued(struct ebb_vm *vm, const struct ebb_vcpu *v, usec_t now)
{
	if (v->request >= 0 && vm->requests[v->request].issued_at == 0)
		vm->requests[v->request].issued_at = now;
}

static bool reconcile_life(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu,
			   struct ebb_actions *out)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];
	const enum ebb_request_phase phase =
		v->request >= 0 ? vm->requests[v->request].phase : EBB_REQUEST_FREE;
	const bool is_unowned = core_vcpu_is_unowned(v) && !core_vcpu_is_ahead(vm, v);
	struct ebb_action *a;

	if (v->life_action)
		return true;
	if (v->life == EBB_VCPU_ABSENT &&
	    (phase == EBB_REQUEST_ADD || core_vcpu_plugs_ahead(vm, v, now))) {
		a = emit_vcpu(s, out, vm, EBB_ACTION_PLUG, vcpu, EBB_THREAD_NONE);
		if (!a)
			return false;
		v->life = EBB_VCPU_PLUGGING;
	} else if (v->life == EBB_VCPU_PLUGGED && (phase == EBB_REQUEST_REMOVE || is_unowned)) {
		if (is_unowned && now < v->life_retry_at) {
			vm->work->wake_at = core_sooner(vm->work->wake_at, v->life_retry_at);
			return true;
		}
		a = emit_vcpu(s, out, vm, EBB_ACTION_UNPLUG, vcpu, EBB_THREAD_NONE);
		if (!a)
			return false;
		v->life = EBB_VCPU_UNPLUGGING;
		if (is_unowned) {
			struct ebb_record *r = core_record(s, vm, now, EBB_EVENT_RECLAIM);

			r->node = v->node;
			r->cpus = 1;
			core_text(r->text, "vCPU %u is plugged and nobody holds it", vcpu);
		}
	} else {
		if (vm->sla.plug_ahead && v->life == EBB_VCPU_ABSENT && now < v->life_retry_at)
			vm->work->wake_at = core_sooner(vm->work->wake_at, v->life_retry_at);
		return true;
	}
	v->life_action = a->id;
	v->life_at = now;
	note_issued(vm, v, now);
	return true;
}

static bool reconcile_place(struct ebb_state *s, usec_t now, struct ebb_vm *vm, uint16_t vcpu,
			    struct ebb_actions *out)
{
	struct ebb_vcpu *v = &vm->vcpus[vcpu];
	struct ebb_action *a;
	uint16_t thread;

	if (v->place_action || !core_vcpu_is_present(v) ||
	    (!core_vcpu_goes_home(vm, v) &&
	     (v->life == EBB_VCPU_UNPLUGGING || core_vcpu_is_unowned(v))))
		return true;
	thread = core_vcpu_wants(s, vm, vcpu);
	if (thread == EBB_THREAD_NONE || thread == v->placed)
		return true;
	if (now < v->place_retry_at) {
		vm->work->wake_at = core_sooner(vm->work->wake_at, v->place_retry_at);
		return true;
	}
	a = emit_vcpu(s, out, vm,
		      thread == v->thread && !core_vcpu_goes_home(vm, v) ? EBB_ACTION_PLACE :
									   EBB_ACTION_HOME,
		      vcpu, thread);
	if (!a)
		return false;
	v->place_action = a->id;
	v->placing = thread;
	v->placed_at = now;
	note_issued(vm, v, now);
	return true;
}

static void wake_for_requests(const struct ebb_state *s, struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		const struct ebb_request *q = &vm->requests[i];

		if (q->phase == EBB_REQUEST_FREE)
			continue;
		vm->work->wake_at = core_sooner(vm->work->wake_at,
						q->received_at + s->cfg.request_usec);
		if (q->wait_until)
			vm->work->wake_at = core_sooner(vm->work->wake_at, q->wait_until);
	}
}

/* False: no room for all of it; the VM stays dirty. */
static bool reconcile_vm(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			 struct ebb_actions *out)
{
	vm->work->wake_at = EBB_TIME_NEVER;
	core_pools_prepare(s, now, vm);
	if (!emit_messages(s, now, vm, out) || !core_pools_reconcile(s, now, vm, out) ||
	    !core_shared_reconcile(s, now, vm, out))
		return false;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (!reconcile_life(s, now, vm, i, out) || !reconcile_place(s, now, vm, i, out))
			return false;
		if (v->is_suspect)
			vm->work->wake_at = core_sooner(vm->work->wake_at,
							v->granted_at + s->cfg.confirm_usec);
	}
	wake_for_requests(s, vm);
	vm->work->is_dirty = false;
	return true;
}

/* What time and ended actions have brought about, before settling counts it. */
static void tidy(struct ebb_state *s, usec_t now, struct ebb_vm *vm)
{
	core_requests_check(s, now, vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = &vm->vcpus[i];

		/* Home: the core that it leaves is free from now on. */
		if (v->thread != EBB_THREAD_NONE && core_vcpu_goes_home(vm, v) &&
		    !v->place_action && v->placed != EBB_THREAD_NONE &&
		    v->placed == core_vcpu_wants(s, vm, i))
			core_vcpu_release(s, vm, i);
		core_pack_end(s, vm, i);
		if (v->thread == EBB_THREAD_NONE && v->request >= 0 &&
		    vm->requests[v->request].phase == EBB_REQUEST_LEND)
			core_request_lent(s, now, vm, i, 0);
		if (v->is_suspect && now >= v->granted_at + s->cfg.confirm_usec) {
			v->is_suspect = false;
			vm->work->is_close_due = true;
			core_text(core_record(s, vm, now, EBB_EVENT_LINK)->text,
				  "closing the link to learn whether vCPU %u was taken over", i);
		}
	}
}

/*
 * Before anything else, of any VM: cores whose deadline has come.  False: no room for all of it.
 */
static bool emit_forced(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
			struct ebb_actions *out)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->force != EBB_FORCE_NONE && v->thread != EBB_THREAD_NONE &&
		    !reconcile_place(s, now, vm, i, out))
			return false;
	}
	return true;
}

void ebb_state_next(struct ebb_state *s, usec_t now, struct ebb_actions *ret_actions)
{
	struct ebb_actions *out = ret_actions;
	usec_t shared_at;

	out->count = 0;
	out->wake_at = EBB_TIME_NEVER;
	s->now = now;
	if (!s->is_loaded)
		return;
	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm_work *w = s->active[i]->work;

		w->is_dirty = w->is_dirty || w->wake_at <= now;
		if (w->is_dirty)
			tidy(s, now, s->active[i]);
	}
	core_settle(s, now);
	shared_at = core_shared_settle(s, now);
	for (size_t i = 0; i < s->num_active; i++)
		if (s->active[i]->work->is_dirty && !emit_forced(s, now, s->active[i], out)) {
			out->wake_at = now;
			return;
		}
	for (size_t i = 0; i < s->num_active; i++) {
		struct ebb_vm *vm = s->active[i];

		if (vm->work->is_dirty && !reconcile_vm(s, now, vm, out)) {
			out->wake_at = now;
			return;
		}
		if (now >= core_gather_until(vm))
			core_gather_end(s, vm, now);
		out->wake_at = core_sooner(out->wake_at, vm->work->wake_at);
		out->wake_at = core_sooner(out->wake_at, core_gather_until(vm));
	}
	out->wake_at = core_sooner(out->wake_at, s->settle_at);
	out->wake_at = core_sooner(out->wake_at, core_broker_at(s));
	out->wake_at = core_sooner(out->wake_at, core_charge_due(s));
	out->wake_at = core_sooner(out->wake_at, shared_at);
	out->wake_at = core_sooner(out->wake_at, core_violations_review(s, now));
	if (s->plan_is_stale || s->limits_are_stale)
		out->wake_at = now;
}
