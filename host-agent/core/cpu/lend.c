// SPDX-License-Identifier: GPL-2.0-or-later
/* CPUs that stay plugged while their core is elsewhere: CPU_LEND, and plugging ahead of need. */
#include <errno.h>

#include "core/cpu/internal.h"

/* ---- CPU_LEND ------------------------------------------------------------ */

static void record_lend(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			const struct ebb_request *q)
{
	const struct ebb_vcpu *v = &vm->vcpus[vcpu];
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_LEND);

	r->node = v->node;
	r->cpus = q && q->was_held;
	r->asked = 1;
	if (q && q->issued_at) {
		r->agent_usec = q->issued_at - q->received_at;
		r->place_usec = now - q->issued_at;
		r->total_usec = now - q->received_at;
	}
	core_text(r->text, "the guest %s vCPU %u%s and keeps it%s",
		  r->cpus ? "gave the core of" : "lends", vcpu,
		  r->cpus ? " back" : ", which has none any more,",
		  v->is_parked ? ", parked" : "");
}

/* From now on the device has it as lent, and as not forced. */
static void set_lent(struct ebb_vcpu *v, usec_t now, bool is_parked)
{
	v->is_lent = true;
	v->is_parked = is_parked;
	v->told_forced = v->is_suspect = false;
	v->force = EBB_FORCE_NONE;
	v->granted_at = now;
}

int cpu_request_lend(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		      const struct ebb_fact_request *f)
{
	const struct ebb_action_response done = {
		.tag = f->tag, .type = f->type, .status = VIRTIO_EBB_ACK,
	};
	const int slot = cpu_request_slot(vm);
	struct ebb_vcpu *v;

	if (f->vcpu >= vm->num_vcpus)
		return -EINVAL;
	if (cpu_refuse_return(s, now, vm, f, "the vCPU is being added, removed or lent"))
		return 0;
	v = cpu_own_vcpu(vm, f->vcpu);
	if (v->life == EBB_VCPU_ABSENT) {
		/* An earlier removal has succeeded, and that could not be told. */
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_NOT_HELD,
			    "the vCPU has been unplugged; it is to be removed");
	} else if (v->life == EBB_VCPU_UNPLUGGING) {
		/* By a request that is over, of an earlier boot say: it may go at any moment. */
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_IN_PROGRESS,
			    "the vCPU is still being unplugged");
	} else if (v->thread == EBB_THREAD_NONE) {
		/* It has no core: forced before, or lent already. */
		set_lent(v, now, f->park);
		record_lend(s, now, vm, f->vcpu, NULL);
		core_respond(s->env, vm, &done);
	} else {
		core_conduct_back(now, vm, f->vcpu);
		*cpu_own_request(vm, slot) = (struct ebb_request){
			.phase = EBB_REQUEST_LEND, .tag = f->tag, .asked = 1,
			.node = v->node, .num_vcpus = 1, .vcpus = { f->vcpu },
			.received_at = now, .was_held = cpu_vcpu_is_held(v),
		};
		set_lent(v, now, f->park);
		v->request = (int8_t)slot;
	}
	return 0;
}

void cpu_request_lent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		      int err)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	struct ebb_request *q = cpu_own_request(vm, v->request);
	struct ebb_action_response response = {
		.tag = q->tag, .type = VIRTIO_EBB_REQ_CPU_LEND, .status = VIRTIO_EBB_ACK,
	};

	v->request = -1;
	v->granted_at = now;
	if (err == 0) {
		record_lend(s, now, vm, vcpu, q);
	} else {
		struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_REFUSE);

		/* The guest has it back, in whatever place its thread is; see give_cores(). */
		v->is_lent = v->is_parked = false;
		cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_NO_CORE);
		response.reason = VIRTIO_EBB_REASON_TIMEOUT;
		response.status = cpu_status_of(response.reason);
		r->node = v->node;
		r->asked = 1;
		r->code = response.reason;
		r->total_usec = now - q->received_at;
		core_text(r->text, "vCPU %u could not be moved off its core in time", vcpu);
	}
	q->phase = EBB_REQUEST_FREE;
	core_respond(s->env, vm, &response);
}

/* ---- HELLO --------------------------------------------------------------- */

void cpu_hello_lent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		     uint16_t flags, bool is_first)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	const bool is_lent = flags & VIRTIO_EBB_CPU_F_LENT;

	/* The device will know better once it has the answer. */
	if (v->request >= 0 && vm->requests[v->request].phase == EBB_REQUEST_LEND)
		return;
	if (is_lent != v->is_lent && v->is_granted && !is_first &&
	    now < v->granted_at + s->env->cfg.confirm_usec) {
		v->is_suspect = true;
		return;
	}
	if (is_lent && !v->is_lent)
		v->force = EBB_FORCE_NONE;
	v->is_lent = is_lent;
	v->is_parked = flags & VIRTIO_EBB_CPU_F_PARKED;
	core_touch(s->env, vm);
}

/* ---- plugging ahead ------------------------------------------------------ */

/* Plugging is the domain's business as a whole: one at a time, and none while a request waits. */
static bool is_busy(const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].phase != EBB_REQUEST_FREE)
			return true;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].life_action)
			return true;
	return false;
}

/* vCPUs of the node that the guest has, lent or not. */
static uint16_t count_owned(const struct ebb_vm *vm, uint16_t g)
{
	uint16_t owned = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		owned += v->node == g && (v->is_startup || v->is_granted || v->request >= 0);
	}
	return owned;
}

static bool wants_ahead(const struct ebb_vm *vm, uint16_t g)
{
	return vm->sla.plug_ahead && vm->can_lend && vm->link_up && vm->is_admitted &&
	       count_owned(vm, g) < vm->sla.nodes[g].max;
}

bool cpu_vcpu_is_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v)
{
	return cpu_is_unowned(v) && v->life_failures == 0 && wants_ahead(vm, v->node);
}

/*
 * A VM that waits for its first core has no home: its vCPUs would run among those of others, and
 * an agent that is restarted could not tell who of them owns the thread (cpu_claim_all()).
 */
static bool has_home(const struct ebb_vm *vm)
{
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		if (vm->vcpus[i].is_startup && vm->vcpus[i].thread != EBB_THREAD_NONE)
			return true;
	return false;
}

bool cpu_vcpu_plugs_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v, usec_t now)
{
	return vm->sla.plug_ahead && v->life == EBB_VCPU_ABSENT && !v->is_granted &&
	       !v->is_declined && v->request < 0 && now >= v->life_retry_at &&
	       wants_ahead(vm, v->node) && has_home(vm) && !is_busy(vm);
}
