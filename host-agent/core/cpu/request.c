// SPDX-License-Identifier: GPL-2.0-or-later
/* CPU_ADD and CPU_REMOVE, from the request to the answer; CPU_LEND is in lend.c. */
#include <errno.h>

#include "core/cpu/internal.h"

uint16_t cpu_status_of(uint16_t reason)
{
	switch (reason) {
	case VIRTIO_EBB_REASON_NONE:
		return VIRTIO_EBB_ACK;
	case VIRTIO_EBB_REASON_CAPACITY:
	case VIRTIO_EBB_REASON_TIMEOUT:
	case VIRTIO_EBB_REASON_IN_PROGRESS:
		return VIRTIO_EBB_BUSY;
	default:
		return VIRTIO_EBB_NACK;
	}
}

void cpu_refuse(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_request *f, uint16_t reason, const char *text)
{
	const struct ebb_action_response response = {
		.tag = f->tag, .type = f->type, .status = cpu_status_of(reason), .reason = reason,
	};
	struct ebb_record *r = core_gather_refuse(s->env, vm, now, reason);

	if (r) {
		r->node = f->type == VIRTIO_EBB_REQ_CPU_ADD ? f->node : EBB_NODE_ANY;
		r->asked = f->type == VIRTIO_EBB_REQ_CPU_ADD ? f->count : 1;
		r->code = reason;
		core_text(r->text, "%s", text);
	}
	core_respond(s->env, vm, &response);
}

int cpu_request_slot(const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].phase == EBB_REQUEST_FREE)
			return i;
	return -1;
}

static bool tag_in_use(const struct ebb_vm *vm, uint64_t tag)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].phase != EBB_REQUEST_FREE && vm->requests[i].tag == tag)
			return true;
	return false;
}

/* ---- CPU_ADD ------------------------------------------------------------ */

/*
 * A vCPU to grant on the guest node: one that is lent, for it needs no more than
 * a core; else one that is still plugged though nobody holds it, else one to
 * plug.  One that the guest once failed to eject may still go at any time, so it
 * is not granted again, unless the guest has said since that it keeps it.
 */
static int pick_vcpu(const struct ebb_vm *vm, uint16_t g, usec_t now, uint16_t *ret_vcpu)
{
	int unowned = -1, absent = -1;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		if (v->node != g || v->is_startup || v->request >= 0 || v->life_action)
			continue;
		if (v->is_granted && (!v->is_lent || !vm->can_lend || v->is_suspect))
			continue;
		if (v->is_lent && v->life == EBB_VCPU_PLUGGED) {
			*ret_vcpu = i;
			return 0;
		}
		if (unowned < 0 && cpu_is_unowned(v) && v->life_failures == 0 &&
		    !v->place_action)
			unowned = i;
		if (absent < 0 && v->life == EBB_VCPU_ABSENT && now >= v->life_retry_at)
			absent = i;
	}
	if (unowned < 0 && absent < 0)
		return -EBUSY;
	*ret_vcpu = (uint16_t)(unowned >= 0 ? unowned : absent);
	return 0;
}

/* CPUs that the guest has or is getting on the node, with a core or forced, but not lent. */
static uint16_t count_taken(const struct ebb_vm *vm, uint16_t g)
{
	uint16_t taken = 0;

	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_vcpu *v = &vm->vcpus[i];

		taken += v->node == g && (v->is_startup || (v->is_granted && !v->is_lent) ||
					  v->request >= 0);
	}
	return taken;
}

/* One CPU on guest node g: what to take, or the reason why not. */
static uint16_t pick_on_node(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g,
			     bool allow_ht, usec_t now, uint16_t *ret_vcpu, uint16_t *ret_thread)
{
	const struct ebb_vm_node *n = &vm->nodes[g];

	if (count_taken(vm, g) >= vm->sla.nodes[g].max)
		return VIRTIO_EBB_REASON_CEILING;
	if (n->used >= n->limit)
		return VIRTIO_EBB_REASON_LIMIT;
	if (pick_vcpu(vm, g, now, ret_vcpu) < 0)
		return VIRTIO_EBB_REASON_CAPACITY;
	*ret_thread = vm->vcpus[*ret_vcpu].thread;
	if (*ret_thread == EBB_THREAD_NONE)
		*ret_thread = cpu_pick_thread(s, vm, g, allow_ht);
	return *ret_thread == EBB_THREAD_NONE ? VIRTIO_EBB_REASON_CAPACITY :
						VIRTIO_EBB_REASON_NONE;
}

/* Of the reasons of several nodes, the one that leaves most hope is told. */
static uint16_t milder(uint16_t a, uint16_t b)
{
	static const uint16_t mildest_first[] = {
		VIRTIO_EBB_REASON_CAPACITY, VIRTIO_EBB_REASON_LIMIT, VIRTIO_EBB_REASON_CEILING,
	};

	for (size_t i = 0; i < sizeof(mildest_first) / sizeof(mildest_first[0]); i++)
		if (a == mildest_first[i] || b == mildest_first[i])
			return mildest_first[i];
	return a;
}

/* One CPU anywhere: on the node where most is on offer. */
static uint16_t pick_anywhere(const struct cpu_room *s, const struct ebb_vm *vm, bool allow_ht,
			      usec_t now, uint16_t *ret_vcpu, uint16_t *ret_thread)
{
	uint16_t result = VIRTIO_EBB_REASON_CEILING;
	int best = -1;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		const int offered = vm->nodes[g].limit - vm->nodes[g].used;
		uint16_t vcpu, thread, reason;

		reason = pick_on_node(s, vm, g, allow_ht, now, &vcpu, &thread);
		if (reason != VIRTIO_EBB_REASON_NONE) {
			if (best < 0)
				result = milder(result, reason);
		} else if (offered > best) {
			best = offered;
			result = VIRTIO_EBB_REASON_NONE;
			*ret_vcpu = vcpu;
			*ret_thread = thread;
		}
	}
	return result;
}

static const char *refusal_text(const struct ebb_vm *vm, const struct ebb_fact_request *f,
				uint16_t reason, char *text)
{
	uint32_t used = 0, limit = 0, max = 0;

	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (f->node != EBB_NODE_ANY && f->node != g)
			continue;
		used += vm->nodes[g].used;
		limit += vm->nodes[g].limit;
		max += vm->sla.nodes[g].max;
	}
	core_text(text, "asked for %u CPUs: %u used, limit %u, ceiling %u: %s", f->count, used,
		  limit, max, ebb_reason_name(reason));
	return text;
}

/*
 * Reserves vCPUs and threads for the request, as many as there are; returns why there are no more,
 * which is NONE if all that were asked for are reserved.
 */
static uint16_t reserve(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, int slot)
{
	struct ebb_request *q = cpu_own_request(vm, slot);
	uint16_t vcpu, thread;

	q->reason = VIRTIO_EBB_REASON_NONE;
	while (q->num_vcpus < q->asked) {
		q->reason = q->node == EBB_NODE_ANY ?
				    pick_anywhere(s, vm, q->allow_ht, now, &vcpu, &thread) :
				    pick_on_node(s, vm, q->node, q->allow_ht, now, &vcpu, &thread);
		if (q->reason != VIRTIO_EBB_REASON_NONE)
			break;
		cpu_own_vcpu(vm, vcpu)->request = (int8_t)slot;
		cpu_own_vcpu(vm, vcpu)->force = EBB_FORCE_NONE;
		if (vm->vcpus[vcpu].thread == EBB_THREAD_NONE)
			cpu_vcpu_take(s, vm, vcpu, thread);
		q->vcpus[q->num_vcpus++] = vcpu;
		cpu_count(s, vm);
	}
	if (q->num_vcpus > 0)
		core_conduct_granted(vm);
	return q->reason;
}

static bool is_leaving_on(const struct cpu_room *s, uint16_t host_node)
{
	core_set_for_each(i, &s->env->on[host_node]) {
		const struct ebb_vm *vm = s->env->active[i];

		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == host_node &&
			    cpu_leaving(vm, g, s->env->now) > 0)
				return true;
	}
	return false;
}

/* Does a core of the guest node's host node (of any, if g is so) become free shortly? */
static bool is_offered_in_advance(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g)
{
	for (uint16_t i = 0; i < vm->sla.num_nodes; i++)
		if ((g == EBB_NODE_ANY || g == i) && vm->nodes[i].used < vm->nodes[i].limit &&
		    is_leaving_on(s, vm->sla.nodes[i].host_node))
			return true;
	return false;
}

static int request_add(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		       const struct ebb_fact_request *f)
{
	char text[EBB_TEXT_SIZE];
	struct ebb_request *q;
	struct ebb_record *r;
	uint16_t reason;
	const int slot = cpu_request_slot(vm);

	if (f->count == 0 || f->count > VIRTIO_EBB_MAX_REQ_CPUS)
		return -EINVAL;
	r = core_gather_request(s->env, vm, now);
	if (r) {
		r->node = f->node;
		r->cpus = r->asked = f->count;
		core_text(r->text, "asks for %u CPUs%s", f->count,
			  f->allow_ht ? ", hyperthreads will do" : "");
	}
	if (f->node != EBB_NODE_ANY && f->node >= vm->sla.num_nodes) {
		core_text(text, "no guest node %u, allowed are 0 to %u", f->node,
			  vm->sla.num_nodes - 1);
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_NODE, text);
		return 0;
	}
	if (slot < 0) {
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_IN_PROGRESS,
			    "too many requests at once");
		return 0;
	}
	q = cpu_own_request(vm, slot);
	*q = (struct ebb_request){
		.phase = EBB_REQUEST_ADD, .tag = f->tag, .asked = f->count, .node = f->node,
		.allow_ht = f->allow_ht, .received_at = now,
	};
	reason = reserve(s, now, vm, slot);
	if (reason == VIRTIO_EBB_REASON_LIMIT) {
		if (q->num_vcpus == 0)
			core_conduct_refused(now, vm);
		cpu_want(s, now, vm, f->node, (uint16_t)(f->count - q->num_vcpus));
	}
	if (q->num_vcpus > 0)
		return 0;
	/* Less is used than the limit allows, so a core is about to be free. */
	if (reason == VIRTIO_EBB_REASON_CAPACITY && is_offered_in_advance(s, vm, f->node)) {
		q->wait_until = now + CPU_ADVANCE_WAIT_USEC;
		return 0;
	}
	q->phase = EBB_REQUEST_FREE;
	cpu_refuse(s, now, vm, f, reason, refusal_text(vm, f, reason, text));
	return 0;
}

void cpu_requests_retry(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		struct ebb_request *q = cpu_own_request(vm, i);

		if (q->phase != EBB_REQUEST_ADD || !q->wait_until)
			continue;
		reserve(s, now, vm, i);
		if (q->num_vcpus > 0)
			q->wait_until = 0;
	}
}

/* ---- CPU_REMOVE --------------------------------------------------------- */

static void record_release(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
			   uint16_t vcpu, const struct ebb_request *q)
{
	struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_RELEASE);

	r->node = vm->vcpus[vcpu].node;
	r->cpus = q && q->was_held;
	r->asked = 1;
	if (q && q->issued_at) {
		r->agent_usec = q->issued_at - q->received_at;
		r->libvirt_usec = now - q->issued_at;
		r->total_usec = now - q->received_at;
	}
	core_text(r->text, "the guest gave vCPU %u back", vcpu);
}

bool cpu_refuse_return(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		       const struct ebb_fact_request *f, const char *busy)
{
	const struct ebb_vcpu *v = &vm->vcpus[f->vcpu];

	if (v->is_startup)
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_STARTUP,
			   "the vCPU is of the startup set");
	else if (v->request >= 0 || cpu_request_slot(vm) < 0)
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_IN_PROGRESS, busy);
	else if (!v->is_granted)
		cpu_refuse(s, now, vm, f, VIRTIO_EBB_REASON_NOT_HELD,
			   "the VM does not hold the vCPU");
	else
		return false;
	return true;
}

static int request_remove(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
			  const struct ebb_fact_request *f)
{
	const int slot = cpu_request_slot(vm);
	struct ebb_vcpu *v;

	if (f->vcpu >= vm->num_vcpus)
		return -EINVAL;
	if (cpu_refuse_return(s, now, vm, f, "the vCPU is being added or removed"))
		return 0;
	v = cpu_own_vcpu(vm, f->vcpu);
	if (v->life == EBB_VCPU_ABSENT) {
		/* It went before, and that could not be told. */
		const struct ebb_action_response response = {
			.tag = f->tag, .type = f->type, .status = VIRTIO_EBB_ACK,
		};

		v->is_granted = v->is_suspect = v->told_forced = v->is_lent = false;
		v->is_declined = true;
		record_release(s, now, vm, f->vcpu, NULL);
		core_respond(s->env, vm, &response);
	} else {
		core_conduct_back(now, vm, f->vcpu);
		*cpu_own_request(vm, slot) = (struct ebb_request){
			.phase = EBB_REQUEST_REMOVE, .tag = f->tag, .asked = 1,
			.node = v->node, .num_vcpus = 1, .vcpus = { f->vcpu },
			.received_at = now, .was_held = cpu_vcpu_is_held(v),
		};
		v->request = (int8_t)slot;
		v->is_suspect = false;
	}
	return 0;
}

void cpu_request_removed(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			  int err)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	struct ebb_request *q = cpu_own_request(vm, v->request);
	struct ebb_action_response response = {
		.tag = q->tag, .type = VIRTIO_EBB_REQ_CPU_REMOVE, .status = VIRTIO_EBB_ACK,
	};

	v->request = -1;
	if (err == 0) {
		v->is_granted = v->told_forced = v->is_lent = false;
		v->is_declined = true;
		record_release(s, now, vm, vcpu, q);
	} else {
		struct ebb_record *r = core_record(s->env, vm, now, EBB_EVENT_REFUSE);

		/* The guest has stopped using it, so its core is taken all the same. */
		response.reason = err == -EBUSY ? VIRTIO_EBB_REASON_TIMEOUT :
						  VIRTIO_EBB_REASON_HOST;
		response.status = cpu_status_of(response.reason);
		if (!v->is_lent)
			cpu_vcpu_force(s, vm, vcpu, EBB_FORCE_STUCK);
		r->node = v->node;
		r->asked = 1;
		r->code = response.reason;
		r->total_usec = now - q->received_at;
		core_text(r->text, "vCPU %u was not ejected: %s; it goes home", vcpu,
			  err == -EBUSY ? "no answer in time" : "libvirt reports an error");
	}
	q->phase = EBB_REQUEST_FREE;
	core_respond(s->env, vm, &response);
}

/* ---- all ---------------------------------------------------------------- */

int cpu_may_report(const struct ebb_vm *vm, const struct ebb_fact_request *f)
{
	if (!vm->is_running || !vm->link_up)
		return -ENOENT;
	return tag_in_use(vm, f->tag) ? -EINVAL : 0;
}

int cpu_report(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
	       const struct ebb_fact_request *f)
{
	int rc;

	core_touch(s->env, vm);
	cpu_own(vm)->silent_since = 0;
	core_conduct_request(now, vm);
	switch (f->type) {
	case VIRTIO_EBB_REQ_CPU_ADD:
		rc = request_add(s, now, vm, f);
		break;
	case VIRTIO_EBB_REQ_CPU_REMOVE:
		rc = request_remove(s, now, vm, f);
		break;
	case VIRTIO_EBB_REQ_CPU_LEND:
		rc = cpu_request_lend(s, now, vm, f);
		break;
	default:
		rc = -EINVAL;
	}
	core_conduct_review(s->env, now, vm);
	return rc;
}

void cpu_request_lose(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, uint16_t reason)
{
	struct ebb_vcpu *v = cpu_own_vcpu(vm, vcpu);
	struct ebb_request *q = cpu_own_request(vm, v->request);
	uint16_t left = 0;

	for (uint16_t i = 0; i < q->num_vcpus; i++)
		if (q->vcpus[i] != vcpu)
			q->vcpus[left++] = q->vcpus[i];
	q->num_vcpus = left;
	q->reason = reason;
	v->request = -1;
	/* Where its thread runs, or may have arrived, the core is kept until it is gone. */
	if (!v->place_action && v->placed != v->thread && v->leaves == EBB_THREAD_NONE &&
	    v->place_failures == 0)
		cpu_vcpu_release(s, vm, vcpu);
	core_touch(s->env, vm);
}

static bool is_ready(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED && !v->place_action && v->thread != EBB_THREAD_NONE &&
	       v->placed == v->thread;
}

static void answer_add(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		       struct ebb_request *q)
{
	struct ebb_action_response response = {
		.tag = q->tag, .type = VIRTIO_EBB_REQ_CPU_ADD, .count = q->num_vcpus,
	};
	struct ebb_record *r =
		core_record(s->env, vm, now, q->num_vcpus ? EBB_EVENT_GRANT : EBB_EVENT_REFUSE);

	response.reason = q->num_vcpus ? VIRTIO_EBB_REASON_NONE : q->reason;
	response.status = cpu_status_of(response.reason);
	for (uint16_t i = 0; i < q->num_vcpus; i++) {
		struct ebb_vcpu *v = cpu_own_vcpu(vm, q->vcpus[i]);

		v->request = -1;
		v->is_granted = true;
		v->told_forced = v->is_lent = v->is_parked = v->is_declined = false;
		v->granted_at = now;
		response.cpus[i].vcpu = q->vcpus[i];
		response.cpus[i].flags =
			ebb_cores_is_ht(&s->cores, v->thread) ? VIRTIO_EBB_CPU_F_HT : 0;
	}
	r->node = q->node;
	r->cpus = q->num_vcpus;
	r->asked = q->asked;
	r->code = q->reason;
	if (q->issued_at) {
		const usec_t plugged_at = q->libvirt_at ? q->libvirt_at : q->issued_at;

		r->agent_usec = q->issued_at - q->received_at;
		r->libvirt_usec = plugged_at - q->issued_at;
		r->place_usec = q->place_at > plugged_at ? q->place_at - plugged_at : 0;
	}
	r->total_usec = now - q->received_at;
	core_text(r->text, "%u of %u CPUs granted%s%s", q->num_vcpus, q->asked,
		  q->num_vcpus < q->asked ? "; no more because of: " : "",
		  q->num_vcpus < q->asked ? ebb_reason_name(q->reason) : "");
	q->phase = EBB_REQUEST_FREE;
	/*
	 * Granted CPUs count as used since they were reserved; an offer that failed is taken back.
	 */
	if (q->num_vcpus == 0)
		core_stale(s->env, vm);
	core_respond(s->env, vm, &response);
}

void cpu_requests_check(struct cpu_room *s, usec_t now, const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		struct ebb_request *q = cpu_own_request(vm, i);
		const bool is_late = now >= q->received_at + s->env->cfg.request_usec;
		bool is_complete = true;

		if (q->phase == EBB_REQUEST_REMOVE && is_late)
			cpu_request_removed(s, now, vm, q->vcpus[0], -EBUSY);
		if (q->phase == EBB_REQUEST_LEND && is_late)
			cpu_request_lent(s, now, vm, q->vcpus[0], -EBUSY);
		if (q->phase != EBB_REQUEST_ADD || (q->wait_until > now && !is_late))
			continue;
		for (int k = q->num_vcpus - 1; k >= 0; k--) {
			if (is_ready(&vm->vcpus[q->vcpus[k]]))
				continue;
			if (is_late)
				cpu_request_lose(s, vm, q->vcpus[k], VIRTIO_EBB_REASON_TIMEOUT);
			else
				is_complete = false;
		}
		if (is_complete)
			answer_add(s, now, vm, q);
	}
}

void cpu_drop(struct cpu_room *s, const struct ebb_vm *vm)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		struct ebb_request *q = cpu_own_request(vm, i);

		if (q->phase == EBB_REQUEST_ADD) {
			while (q->num_vcpus > 0)
				cpu_request_lose(s, vm, q->vcpus[q->num_vcpus - 1],
						  VIRTIO_EBB_REASON_NO_AGENT);
		} else if (q->phase != EBB_REQUEST_FREE) {
			cpu_own_vcpu(vm, q->vcpus[0])->request = -1;
			core_touch(s->env, vm);
		}
		q->phase = EBB_REQUEST_FREE;
	}
}
