// SPDX-License-Identifier: GPL-2.0-or-later
/* Actions on vCPUs that are not as they should be, and messages to the guest about its CPUs. */
#include <string.h>

#include "core/cpu/internal.h"

static struct ebb_action *emit_vcpu(struct cpu_room *s, struct ebb_actions *out,
				    const struct ebb_vm *vm, enum ebb_action_type type,
				    uint16_t vcpu, uint16_t thread)
{
	struct ebb_action *a = core_emit(out, vm, type);

	if (a) {
		a->id = core_action_id(s->env, vm, vcpu);
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

bool cpu_must_tell(const struct ebb_vm *vm)
{
	if (vm->cpus.told_tier != tier_of(vm))
		return true;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const struct ebb_vm_node *n = &vm->nodes[g];

		if (n->told_limit != n->limit || n->told_held != n->held ||
		    n->told_due != (n->num_due ? n->due[0] : 0))
			return true;
	}
	return false;
}

void cpu_tell(usec_t now, const struct ebb_vm *vm, struct ebb_action_limits *l)
{
	cpu_own(vm)->told_tier = tier_of(vm);
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		struct ebb_vm_node *n = cpu_own_node(vm, g);

		n->told_limit = n->limit;
		n->told_held = n->held;
		n->told_due = n->num_due ? n->due[0] : 0;
		l->nodes[g].held = n->held;
		l->nodes[g].limit = n->limit;
		l->nodes[g].tier = vm->cpus.told_tier;
		l->nodes[g].deadline_ms = core_left_ms(n->told_due, now);
	}
}

static bool emit_flags(const struct ebb_vm *vm, struct ebb_actions *out)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);
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
static bool emit_handovers(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
			   struct ebb_actions *out)
{
	for (uint16_t i = 0; vm->sla.plug_ahead && i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);
		struct ebb_action *a;

		if (v->place_action || v->thread != EBB_THREAD_NONE ||
		    v->placed == EBB_THREAD_NONE || !cpu_vcpu_is_ahead(vm, v) ||
		    v->placed != cpu_vcpu_wants(s, vm, i))
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
		cpu_count(s, vm);
	}
	return true;
}

bool cpu_act_flags(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		   struct ebb_actions *out)
{
	return emit_flags(vm, out) && emit_handovers(s, now, vm, out);
}

/* ---- vCPUs --------------------------------------------------------------- */

static void note_issued(const struct ebb_vm *vm, const struct ebb_vcpu *v, usec_t now)
{
	if (v->request >= 0 && vm->requests[v->request].issued_at == 0)
		cpu_own_request(vm, v->request)->issued_at = now;
}

static bool reconcile_life(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			   struct ebb_actions *out)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	const enum ebb_request_phase phase =
		v->request >= 0 ? vm->requests[v->request].phase : EBB_REQUEST_FREE;
	const bool is_unowned = cpu_is_unowned(v) && !cpu_vcpu_is_ahead(vm, v);
	struct ebb_action *a;

	if (v->life_action)
		return true;
	if (v->life == EBB_VCPU_ABSENT &&
	    (phase == EBB_REQUEST_ADD || cpu_vcpu_plugs_ahead(vm, v, now))) {
		a = emit_vcpu(s, out, vm, EBB_ACTION_PLUG, vcpu, EBB_THREAD_NONE);
		if (!a)
			return false;
		v->life = EBB_VCPU_PLUGGING;
	} else if (v->life == EBB_VCPU_PLUGGED && (phase == EBB_REQUEST_REMOVE || is_unowned)) {
		if (is_unowned && now < v->life_retry_at) {
			core_wake_at(vm, v->life_retry_at);
			return true;
		}
		a = emit_vcpu(s, out, vm, EBB_ACTION_UNPLUG, vcpu, EBB_THREAD_NONE);
		if (!a)
			return false;
		v->life = EBB_VCPU_UNPLUGGING;
		if (is_unowned) {
			struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_RECLAIM);

			r->node = v->node;
			r->cpus = 1;
			core_text(r->text, "vCPU %u is plugged, but the VM does not hold it", vcpu);
		}
	} else {
		if (vm->sla.plug_ahead && v->life == EBB_VCPU_ABSENT && now < v->life_retry_at)
			core_wake_at(vm, v->life_retry_at);
		return true;
	}
	v->life_action = a->id;
	v->life_at = now;
	note_issued(vm, v, now);
	return true;
}

static bool reconcile_place(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			    struct ebb_actions *out)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	struct ebb_action *a;
	uint16_t thread;

	if (v->place_action || !core_vcpu_is_present(v) ||
	    (!cpu_vcpu_goes_home(vm, v) &&
	     (v->life == EBB_VCPU_UNPLUGGING || cpu_is_unowned(v))))
		return true;
	thread = cpu_vcpu_wants(s, vm, vcpu);
	if (thread == EBB_THREAD_NONE || thread == v->placed)
		return true;
	if (now < v->place_retry_at) {
		core_wake_at(vm, v->place_retry_at);
		return true;
	}
	a = emit_vcpu(s, out, vm,
		      thread == v->thread && !cpu_vcpu_goes_home(vm, v) ? EBB_ACTION_PLACE :
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

static void wake_for_requests(const struct cpu_room *s, const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		const struct ebb_request *q = &vm->requests[i];

		if (q->phase == EBB_REQUEST_FREE)
			continue;
		core_wake_at(vm, q->received_at + s->env->cfg.request_usec);
		if (q->wait_until)
			core_wake_at(vm, q->wait_until);
	}
}

bool cpu_act(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, struct ebb_actions *out)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (!reconcile_life(s, now, vm, i, out) || !reconcile_place(s, now, vm, i, out))
			return false;
		if (v->is_suspect)
			core_wake_at(vm, v->granted_at + s->env->cfg.confirm_usec);
	}
	wake_for_requests(s, vm);
	return true;
}

/* Takes note of deadlines that have passed and actions that have ended, before settling counts. */
void cpu_tidy(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	cpu_requests_check(s, now, vm);
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, i);

		/* Home: the core that it leaves is free from now on. */
		if (v->thread != EBB_THREAD_NONE && cpu_vcpu_goes_home(vm, v) &&
		    !v->place_action && v->placed != EBB_THREAD_NONE &&
		    v->placed == cpu_vcpu_wants(s, vm, i))
			cpu_vcpu_release(s, vm, i);
		cpu_pack_end(s, vm, i);
		if (v->thread == EBB_THREAD_NONE && v->request >= 0 &&
		    vm->requests[v->request].phase == EBB_REQUEST_LEND)
			cpu_request_lent(s, now, vm, i, 0);
		if (v->is_suspect && now >= v->granted_at + s->env->cfg.confirm_usec) {
			v->is_suspect = false;
			core_close_link(vm);
			core_text(core_record(s->env, vm, now, EBB_EVENT_LINK)->text,
				  "closing the link to learn whether vCPU %u was taken over", i);
		}
	}
}

/*
 * Before anything else, of any VM: cores whose deadline has come.  False: no room for all of it.
 */
bool cpu_act_forced(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
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

