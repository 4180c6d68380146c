// SPDX-License-Identifier: GPL-2.0-or-later
/* The virtio-ebb device of a simulated VM and its link, as linux/virtio_ebb.h has them. */
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static const usec_t reconnect_usec[2] = { 100 * EBB_USEC_PER_MSEC, 200 * EBB_USEC_PER_MSEC };

/* When a message that is sent now arrives: after all those before it. */
static usec_t arrival(struct ebb_fake *f, usec_t now, usec_t *last)
{
	const usec_t at = now + fake_between(f, f->cfg.link_usec);

	*last = at > *last ? at : *last;
	return *last;
}

static struct fake_hello *make_hello(const struct fake_vm *vm, bool is_first)
{
	struct fake_hello *hello = calloc(1, sizeof(*hello));
	struct ebb_fact_hello *h;

	if (!hello)
		return NULL;
	h = &hello->h;
	h->is_first = is_first;
	h->has_driver = vm->has_driver;
	h->can_lend = vm->has_driver && vm->can_lend;
	h->can_vom = vm->has_driver && vm->can_vom;
	h->num_nodes = vm->sla.num_nodes;
	h->max_cpus = vm->num_vcpus;
	h->generation = vm->has_limits ? vm->limits.generation : 0;
	h->resets = vm->resets;
	h->cpus = hello->cpus;
	for (uint16_t i = 0; i < vm->num_vcpus; i++) {
		const struct ebb_fake_vcpu *v = &vm->vcpus[i].pub;

		if (!v->is_startup && !v->is_granted)
			continue;
		hello->cpus[h->num_cpus].vcpu = i;
		hello->cpus[h->num_cpus++].flags =
			(uint16_t)((v->is_startup ? VIRTIO_EBB_CPU_F_STARTUP : 0) |
				   (v->is_forced ? VIRTIO_EBB_CPU_F_FORCED : 0) |
				   (v->is_lent ? VIRTIO_EBB_CPU_F_LENT : 0) |
				   (v->is_parked ? VIRTIO_EBB_CPU_F_PARKED : 0));
	}
	h->pools = hello->pools;
	h->num_pools = fake_mem_list(vm, hello->pools);
	return hello;
}

void fake_device_mem(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	struct fake_event *e;

	if (!vm->is_connected)
		return;
	e = fake_event_add(f, arrival(f, now, &vm->to_agent_at), FAKE_EVENT_MEM, vm);
	if (e)
		e->hello = make_hello(vm, false);
}

void fake_device_vom(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	struct fake_event *e;

	if (!vm->is_connected || !fake_vom_is_asked(vm))
		return;
	e = fake_event_add(f, arrival(f, now, &vm->to_agent_at), FAKE_EVENT_VOM, vm);
	if (e)
		e->vom = fake_vom_make(f, vm);
}

void fake_device_hello(struct ebb_fake *f, usec_t now, struct fake_vm *vm, bool is_first)
{
	struct fake_event *e;

	if (!vm->is_connected)
		return;
	e = fake_event_add(f, arrival(f, now, &vm->to_agent_at), FAKE_EVENT_HELLO, vm);
	if (e)
		e->hello = make_hello(vm, is_first);
}

void fake_device_connect(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	if (vm->is_connected || !vm->is_running || !f->has_agent)
		return;
	vm->is_connected = true;
	vm->connection++;
	fake_device_hello(f, now, vm, true);
}

void fake_device_disconnect(struct ebb_fake *f, usec_t now, struct fake_vm *vm, bool report)
{
	struct ebb_fact fact = { .type = EBB_FACT_LINK_LOST };

	if (!vm->is_connected)
		return;
	vm->is_connected = vm->is_welcome = false;
	/* Messages that are under way on the old connection never arrive. */
	vm->connection++;
	/* Completed with BUSY; the guest tries again when it thinks next. */
	memset(vm->requests, 0, sizeof(vm->requests));
	fake_event_add(f, now + fake_between(f, reconnect_usec), FAKE_EVENT_CONNECT, vm);
	if (report)
		fake_report(f, now, vm, &fact);
	fake_guest_wake(f, now, vm);
}

void fake_device_reset(struct ebb_fake *f, usec_t now, struct fake_vm *vm)
{
	vm->resets++;
	vm->has_driver = false;
	vm->reset_at = now;
	for (uint16_t i = 0; i < vm->num_vcpus; i++)
		vm->vcpus[i].pub.is_parked = false;
	memset(vm->requests, 0, sizeof(vm->requests));
	fake_device_hello(f, now, vm, false);
}

void fake_device_request(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			 const struct ebb_fact_request *request)
{
	struct fake_event *e;

	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++) {
		struct fake_request *q = &vm->requests[i];

		if (q->is_used)
			continue;
		q->is_used = true;
		q->r = *request;
		q->r.tag = ++f->next_tag;
		q->sent_at = now;
		e = fake_event_add(f, arrival(f, now, &vm->to_agent_at), FAKE_EVENT_REQUEST, vm);
		if (e)
			e->request = q->r;
		return;
	}
}

void fake_device_submit(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			const struct ebb_action *action)
{
	struct fake_event *e;

	if (!vm->is_connected)
		return;
	if (action->type == EBB_ACTION_LINK_CLOSE) {
		fake_device_disconnect(f, now, vm, false);
		return;
	}
	e = fake_event_add(f, arrival(f, now, &vm->to_device_at), FAKE_EVENT_TO_DEVICE, vm);
	if (e)
		e->action = *action;
}

static struct fake_request *find_request(struct fake_vm *vm, uint64_t tag)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].is_used && vm->requests[i].r.tag == tag)
			return &vm->requests[i];
	return NULL;
}

static void granted(struct ebb_fake *f, struct fake_vm *vm, uint16_t vcpu,
		    const struct fake_request *q)
{
	struct ebb_fake_vcpu *v;

	if (vcpu >= vm->num_vcpus) {
		fake_violate(f, vm, "vCPU %u is granted, there are %u", vcpu, vm->num_vcpus);
		return;
	}
	v = &vm->vcpus[vcpu].pub;
	if (v->is_startup || (v->is_granted && !v->is_lent) || !v->is_plugged)
		fake_violate(f, vm, "vCPU %u is granted and is %s", vcpu,
			     v->is_startup ? "startup" : v->is_granted ? "granted" : "absent");
	if (q->r.node != EBB_NODE_ANY && v->node != q->r.node)
		fake_violate(f, vm, "vCPU %u is on node %u, asked for %u", vcpu, v->node,
			     q->r.node);
	v->is_granted = true;
	v->is_forced = v->is_given_back = v->is_lent = v->is_parked = false;
	vm->vcpus[vcpu].granted = ++f->next_grant;
}

/* The guest has asked for its removal, too. */
static bool is_removing(const struct fake_vm *vm, uint16_t vcpu)
{
	for (int i = 0; i < VIRTIO_EBB_MAX_INFLIGHT; i++)
		if (vm->requests[i].is_used && vm->requests[i].r.vcpu == vcpu &&
		    vm->requests[i].r.type == VIRTIO_EBB_REQ_CPU_REMOVE)
			return true;
	return false;
}

static void lent(struct ebb_fake *f, struct fake_vm *vm, const struct ebb_fact_request *q)
{
	struct ebb_fake_vcpu *v = &vm->vcpus[q->vcpu].pub;

	if (v->is_startup || !v->is_granted)
		fake_violate(f, vm, "vCPU %u is lent and is %s", q->vcpu,
			     v->is_startup ? "startup" : "not the guest's");
	if (v->is_alone)
		fake_violate(f, vm, "vCPU %u still has its core, its lending was acknowledged",
			     q->vcpu);
	v->is_lent = true;
	v->is_parked = q->park;
	v->is_forced = false;
	v->is_given_back = is_removing(vm, q->vcpu);
}

/* A vCPU that is nobody's becomes the guest's, as a lent one. */
static void handed_over(struct ebb_fake *f, struct fake_vm *vm, uint16_t vcpu)
{
	struct ebb_fake_vcpu *v = &vm->vcpus[vcpu].pub;

	if (v->is_granted || v->is_startup || !v->is_plugged || !vm->has_driver || !vm->can_lend)
		return;
	if (v->is_alone)
		fake_violate(f, vm, "vCPU %u is handed over as lent and has a core", vcpu);
	v->is_granted = v->is_lent = true;
	v->is_forced = v->is_given_back = v->is_parked = false;
}

static void flags_changed(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			  const struct ebb_action_cpu_flags *c)
{
	struct ebb_fake_vcpu *v = &vm->vcpus[c->vcpu].pub;

	if (c->flags & ~(VIRTIO_EBB_CPU_F_FORCED | VIRTIO_EBB_CPU_F_LENT))
		fake_violate(f, vm, "vCPU %u gets the flags %#x", c->vcpu, c->flags);
	if (c->flags == VIRTIO_EBB_CPU_F_LENT)
		handed_over(f, vm, c->vcpu);
	else if (v->is_granted && !v->is_lent)
		v->is_forced = c->flags & VIRTIO_EBB_CPU_F_FORCED;
	fake_guest_wake(f, now, vm);
}

static void response(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
		     const struct ebb_action_response *r)
{
	struct fake_request *q = find_request(vm, r->tag);

	if (!q || now > q->sent_at + FAKE_DEVICE_TIMEOUT) {
		if (r->tag > f->next_tag || r->tag == 0)
			fake_violate(f, vm, "answer to tag %llu, which was never used",
				     (unsigned long long)r->tag);
		if (q)
			q->is_used = false;
		fake_device_hello(f, now, vm, false);
		return;
	}
	if (r->type != q->r.type || r->count > VIRTIO_EBB_MAX_REQ_CPUS ||
	    (r->count > 0) != (r->type == VIRTIO_EBB_REQ_CPU_ADD && r->status == VIRTIO_EBB_ACK) ||
	    (r->status == VIRTIO_EBB_ACK) != (r->reason == VIRTIO_EBB_REASON_NONE))
		fake_violate(f, vm, "malformed answer: type %u status %u reason %u count %u",
			     r->type, r->status, r->reason, r->count);
	if (r->type == VIRTIO_EBB_REQ_CPU_ADD) {
		if (r->count > q->r.count)
			fake_violate(f, vm, "%u CPUs granted, %u asked for", r->count, q->r.count);
		for (uint16_t i = 0; i < r->count && i < VIRTIO_EBB_MAX_REQ_CPUS; i++)
			granted(f, vm, r->cpus[i].vcpu, q);
	} else if (r->type == VIRTIO_EBB_REQ_CPU_LEND && r->status == VIRTIO_EBB_ACK) {
		lent(f, vm, &q->r);
	} else if (r->status == VIRTIO_EBB_ACK) {
		struct ebb_fake_vcpu *v = &vm->vcpus[q->r.vcpu].pub;

		if (v->is_plugged)
			fake_violate(f, vm, "vCPU %u is still there, its removal was acknowledged",
				     q->r.vcpu);
		v->is_granted = v->is_forced = v->is_given_back = false;
		v->is_lent = v->is_parked = false;
	}
	q->is_used = false;
	fake_guest_wake(f, now, vm);
}

void fake_device_receive(struct ebb_fake *f, usec_t now, struct fake_vm *vm,
			 const struct ebb_action *action)
{
	const struct ebb_action_cpu_flags *c = &action->u.cpu_flags;

	if (!vm->is_welcome && action->type != EBB_ACTION_WELCOME)
		fake_violate(f, vm, "%d before WELCOME", action->type);
	switch (action->type) {
	case EBB_ACTION_WELCOME:
		vm->is_welcome = action->u.welcome.status == VIRTIO_EBB_ACK;
		if (!vm->is_welcome)
			fake_device_disconnect(f, now, vm, true);
		break;
	case EBB_ACTION_RESPONSE:
		response(f, now, vm, &action->u.response);
		break;
	case EBB_ACTION_LIMITS:
		if (vm->has_limits && action->u.limits.generation <= vm->limits.generation)
			fake_violate(f, vm, "generation %llu after %llu",
				     (unsigned long long)action->u.limits.generation,
				     (unsigned long long)vm->limits.generation);
		vm->limits = action->u.limits;
		vm->has_limits = true;
		if (vm->limits.vom_seq && !vm->can_vom)
			fake_violate(f, vm, "asked for histogram %u", vm->limits.vom_seq);
		for (uint16_t g = 0; g < vm->limits.num_nodes; g++)
			if (vm->limits.nodes[g].tier && !vm->can_lend)
				fake_violate(f, vm, "told tier %u", vm->limits.nodes[g].tier);
		fake_mem_limits(f, now, vm, &action->u.limits);
		fake_guest_wake(f, now, vm);
		break;
	case EBB_ACTION_REVOKE:
		fake_mem_revoke(f, now, vm, &action->u.pool);
		break;
	case EBB_ACTION_CPU_FLAGS:
		if (c->vcpu < vm->num_vcpus)
			flags_changed(f, now, vm, c);
		break;
	default:
		break;
	}
}
