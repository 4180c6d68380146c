/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The encoder half of the link protocol. */
#include <endian.h>
#include <string.h>
#include "backend/real/linkproto.h"

/* Start a frame with a payload of len zero bytes; returns the payload. */
static void *frame_start(void *buf, uint16_t type, size_t len)
{
	struct virtio_ebb_link_hdr *h = buf;

	memset(buf, 0, sizeof(*h) + len);
	h->magic = htole32(VIRTIO_EBB_LINK_MAGIC);
	h->proto = htole16(VIRTIO_EBB_LINK_PROTO);
	h->type = htole16(type);
	h->len = htole32(len);
	return h + 1;
}

size_t ebb_linkproto_welcome(void *buf, const struct ebb_action_welcome *action)
{
	struct virtio_ebb_link_welcome *w = frame_start(buf, VIRTIO_EBB_LINK_WELCOME, sizeof(*w));

	w->status = htole32(action->status);
	w->reason = htole32(action->reason);
	return sizeof(struct virtio_ebb_link_hdr) + sizeof(*w);
}

size_t ebb_linkproto_response(void *buf, const struct ebb_action_response *action)
{
	struct virtio_ebb_link_response *r;
	struct virtio_ebb_link_cpu *cpu;
	size_t len = sizeof(*r) + action->count * sizeof(*cpu);

	r = frame_start(buf, VIRTIO_EBB_LINK_RESPONSE, len);
	r->tag = htole64(action->tag);
	r->type = htole16(action->type);
	r->status = htole16(action->status);
	r->reason = htole16(action->reason);
	r->count = htole16(action->count);
	cpu = (void *)(r + 1);
	for (uint32_t i = 0; i < action->count; i++) {
		cpu[i].vcpu = htole32(action->cpus[i].vcpu);
		cpu[i].cpu.flags = htole16(action->cpus[i].flags);
	}
	return sizeof(struct virtio_ebb_link_hdr) + len;
}

size_t ebb_linkproto_limits(void *buf, const struct ebb_action_limits *action)
{
	struct virtio_ebb_link_limits *l;
	struct virtio_ebb_limit *node;
	size_t len = sizeof(*l) + action->num_nodes * sizeof(*node);

	l = frame_start(buf, VIRTIO_EBB_LINK_LIMITS, len);
	l->generation = htole64(action->generation);
	l->num_nodes = htole32(action->num_nodes);
	l->vom_seq = htole32(action->vom_seq);
	node = (void *)(l + 1);
	for (uint32_t i = 0; i < action->num_nodes; i++) {
		node[i].node = htole16(i);
		node[i].tier = htole16(action->nodes[i].tier);
		node[i].deadline_ms = htole32(action->nodes[i].deadline_ms);
		node[i].cpus_held = htole32(action->nodes[i].held);
		node[i].cpus_limit = htole32(action->nodes[i].limit);
		node[i].mem_held_bytes = htole64(action->nodes[i].mem_held_bytes);
		node[i].mem_limit_bytes = htole64(action->nodes[i].mem_limit_bytes);
		node[i].mem_deadline_ms = htole32(action->nodes[i].mem_deadline_ms);
		node[i].mem_cutoff = htole64(action->nodes[i].mem_cutoff);
		node[i].mem_promise_mib = htole32(action->nodes[i].mem_promise_mib);
	}
	return sizeof(struct virtio_ebb_link_hdr) + len;
}

size_t ebb_linkproto_cpu_flags(void *buf, const struct ebb_action_cpu_flags *action)
{
	struct virtio_ebb_link_cpu_flags *c = frame_start(buf, VIRTIO_EBB_LINK_CPU, sizeof(*c));

	c->vcpu = htole32(action->vcpu);
	c->flags = htole32(action->flags);
	return sizeof(struct virtio_ebb_link_hdr) + sizeof(*c);
}

static void put_ledger(struct virtio_ebb_link_ledger *out, const struct ebb_ledger *in)
{
	out->metered_usec = htole64(in->metered_usec);
	out->wanted = htole64(in->wanted);
	out->promised = htole64(in->promised);
	out->got = htole64(in->got);
	out->violated = htole64(in->violated);
	out->unclear = htole64(in->unclear);
	out->num_intervals = htole64(in->num_intervals);
	out->num_violations = htole64(in->num_violations);
	out->num_unclear = htole64(in->num_unclear);
}

size_t ebb_linkproto_account(void *buf, const struct ebb_account *action)
{
	struct virtio_ebb_link_account *a =
		frame_start(buf, VIRTIO_EBB_LINK_KEEP_ACCOUNT, sizeof(*a));

	a->writer = htole64(action->writer);
	a->age_usec = htole64(action->age);
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		a->core_usec[k] = htole64(action->core_usec[k]);
		a->mib_usec[k] = htole64(action->mib_usec[k]);
	}
	put_ledger(&a->cpu, &action->cpu);
	put_ledger(&a->mem, &action->mem);
	return sizeof(struct virtio_ebb_link_hdr) + sizeof(*a);
}

size_t ebb_linkproto_revoke(void *buf, const struct ebb_action_pool *action)
{
	struct virtio_ebb_link_revoke *r = frame_start(buf, VIRTIO_EBB_LINK_REVOKE, sizeof(*r));

	r->node = htole16(action->node);
	r->flags = htole16(action->is_leave ? VIRTIO_EBB_REVOKE_F_LEAVE : 0);
	r->target_bytes = htole64(action->bytes);
	return sizeof(struct virtio_ebb_link_hdr) + sizeof(*r);
}
