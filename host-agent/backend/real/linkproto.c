/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parser half of the link protocol.  The length of a payload is checked against its type before
 * any of it is stored, so that a peer can not make the agent hold more than one largest HELLO.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/linkproto.h"
#include "backend/real/linkproto-account.h"
#include "backend/real/linkproto-pools.h"
#include "backend/real/linkproto-vom.h"

#define HDR_BYTES	sizeof(struct virtio_ebb_link_hdr)

void ebb_linkproto_parser_init(struct ebb_linkproto_parser *p)
{
	memset(p, 0, sizeof(*p));
	p->need = HDR_BYTES;
}

void ebb_linkproto_parser_finish(struct ebb_linkproto_parser *p)
{
	free(p->frame);
	ebb_linkproto_parser_init(p);
}

bool ebb_linkproto_is_idle(const struct ebb_linkproto_parser *p)
{
	return p->have == 0 && !p->failed;
}

static bool is_zero(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		if (p[i])
			return false;
	return true;
}

/* Of the frames that carry lists; whether what is in them fits is seen later. */
static bool is_list_len(uint32_t len, size_t head)
{
	return len >= head && len <= VIRTIO_EBB_LINK_MAX_LEN && (len - head) % 8 == 0;
}

static int check_header(const struct virtio_ebb_link_hdr *h, bool has_hello, struct ebb_err *err)
{
	uint32_t magic = le32toh(h->magic), len = le32toh(h->len);
	uint16_t proto = le16toh(h->proto), type = le16toh(h->type);
	size_t want;

	if (magic != VIRTIO_EBB_LINK_MAGIC)
		return ebb_err_set(err, -EPROTO, "magic is %#" PRIx32 ", should be %#x", magic,
				   VIRTIO_EBB_LINK_MAGIC);
	if (proto != VIRTIO_EBB_LINK_PROTO)
		return ebb_err_set(err, -EPROTO, "protocol version is %u, this agent speaks %u",
				   proto, VIRTIO_EBB_LINK_PROTO);
	if (h->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of the header is %#" PRIx32,
				   le32toh(h->reserved));
	if (!has_hello && type != VIRTIO_EBB_LINK_HELLO)
		return ebb_err_set(err, -EPROTO, "first frame is of type %u, should be HELLO",
				   type);
	switch (type) {
	case VIRTIO_EBB_LINK_HELLO:
		if (!is_list_len(len, sizeof(struct virtio_ebb_link_hello)))
			return ebb_err_set(err, -EPROTO, "HELLO has a payload of %" PRIu32 " bytes",
					   len);
		return 0;
	case VIRTIO_EBB_LINK_REQUEST:
		want = sizeof(struct virtio_ebb_link_request);
		break;
	case VIRTIO_EBB_LINK_TELEMETRY:
		/* Which kind it is shows in the payload. */
		if (ebb_linkproto_is_vom_len(len))
			return 0;
		want = sizeof(struct virtio_ebb_telemetry);
		break;
	case VIRTIO_EBB_LINK_ACCOUNT:
		want = sizeof(struct virtio_ebb_link_account);
		break;
	case VIRTIO_EBB_LINK_MEM:
		if (!is_list_len(len, sizeof(struct virtio_ebb_link_mem)))
			return ebb_err_set(err, -EPROTO, "MEM has a payload of %" PRIu32 " bytes",
					   len);
		return 0;
	default:
		return ebb_err_set(err, -EPROTO, "frame type %u is none that a device sends", type);
	}
	if (len != want)
		return ebb_err_set(err, -EPROTO, "frame of type %u has a payload of %" PRIu32
				   " bytes, should be %zu", type, len, want);
	return 0;
}

/* The rules for a CPU that hold in every message. */
static int decode_cpu(const struct virtio_ebb_link_cpu *in, uint16_t num_nodes, uint32_t max_cpus,
		      struct ebb_hello_cpu *ret, struct ebb_err *err)
{
	uint32_t vcpu = le32toh(in->vcpu);
	uint16_t node = le16toh(in->cpu.node), flags = le16toh(in->cpu.flags);

	if (in->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of a CPU is %#" PRIx32,
				   le32toh(in->reserved));
	if (vcpu >= max_cpus)
		return ebb_err_set(err, -EPROTO, "vCPU %" PRIu32 " is named, max_cpus is %" PRIu32,
				   vcpu, max_cpus);
	if (in->cpu.hv_cpu_id == 0)
		return ebb_err_set(err, -EPROTO, "hv_cpu_id of vCPU %" PRIu32 " is 0", vcpu);
	if (node >= num_nodes)
		return ebb_err_set(err, -EPROTO,
				   "node of vCPU %" PRIu32 " is %u, the VM has nodes 0 to %u", vcpu,
				   node, num_nodes - 1);
	if (flags & ~VIRTIO_EBB_CPU_F_ALL)
		return ebb_err_set(err, -EPROTO, "unknown flags %#x of vCPU %" PRIu32, flags, vcpu);
	if ((flags & VIRTIO_EBB_CPU_F_STARTUP) &&
	    (flags & (VIRTIO_EBB_CPU_F_FORCED | VIRTIO_EBB_CPU_F_LENT)))
		return ebb_err_set(err, -EPROTO, "startup vCPU %" PRIu32 " is flagged as %s", vcpu,
				   flags & VIRTIO_EBB_CPU_F_LENT ? "lent" : "forced");
	if ((flags & VIRTIO_EBB_CPU_F_LENT) && (flags & VIRTIO_EBB_CPU_F_FORCED))
		return ebb_err_set(err, -EPROTO, "vCPU %" PRIu32 " is flagged as lent and forced",
				   vcpu);
	if ((flags & VIRTIO_EBB_CPU_F_PARKED) && !(flags & VIRTIO_EBB_CPU_F_LENT))
		return ebb_err_set(err, -EPROTO, "vCPU %" PRIu32 " is flagged as parked, not as "
				   "lent", vcpu);
	ret->vcpu = vcpu;
	ret->flags = flags;
	return 0;
}

static int compare_vcpu(const void *a, const void *b)
{
	const struct ebb_hello_cpu *x = a, *y = b;

	return (x->vcpu > y->vcpu) - (x->vcpu < y->vcpu);
}

static int decode_hello_cpus(struct ebb_linkproto_parser *p, const struct virtio_ebb_link_cpu *in,
			     const struct ebb_fact_hello *h, struct ebb_err *err)
{
	bool has_startup = false;
	int rc;

	for (uint32_t i = 0; i < h->num_cpus; i++) {
		rc = decode_cpu(&in[i], h->num_nodes, h->max_cpus, &p->cpus[i], err);
		if (rc < 0)
			return rc;
		has_startup |= p->cpus[i].flags & VIRTIO_EBB_CPU_F_STARTUP;
	}
	if (!has_startup)
		return ebb_err_set(err, -EPROTO, "no CPU in HELLO is of the startup set");
	qsort(p->cpus, h->num_cpus, sizeof(p->cpus[0]), compare_vcpu);
	for (uint32_t i = 1; i < h->num_cpus; i++)
		if (p->cpus[i].vcpu == p->cpus[i - 1].vcpu)
			return ebb_err_set(err, -EPROTO, "vCPU %u is twice in HELLO",
					   p->cpus[i].vcpu);
	return 0;
}

static int decode_hello(struct ebb_linkproto_parser *p, const void *payload, size_t len,
			struct ebb_linkproto_msg *ret, struct ebb_err *err)
{
	const struct virtio_ebb_link_hello *in = payload;
	uint32_t flags = le32toh(in->flags), num_cpus = le32toh(in->num_cpus);
	const struct virtio_ebb_link_cpu *cpus = (const void *)(in + 1);
	struct ebb_fact_hello h = {
		.has_driver = flags & VIRTIO_EBB_HELLO_F_DRIVER,
		.can_lend = flags & VIRTIO_EBB_HELLO_F_LEND,
		.can_vom = flags & VIRTIO_EBB_HELLO_F_VOM,
		.can_leave = flags & VIRTIO_EBB_HELLO_F_LEAVE,
		.can_baseline = flags & VIRTIO_EBB_HELLO_F_BASELINE,
		.can_account = flags & VIRTIO_EBB_HELLO_F_ACCOUNT,
		.num_nodes = le16toh(in->num_nodes),
		.max_cpus = le32toh(in->max_cpus),
		.generation = le64toh(in->generation),
		.resets = le64toh(in->resets),
		.num_cpus = num_cpus,
		.cpus = p->cpus,
		.num_pools = le16toh(in->num_pools),
		.pools = p->pools,
	};
	int rc;

	if (flags & ~(VIRTIO_EBB_HELLO_F_DRIVER | VIRTIO_EBB_HELLO_F_LEND |
		      VIRTIO_EBB_HELLO_F_VOM | VIRTIO_EBB_HELLO_F_LEAVE |
		      VIRTIO_EBB_HELLO_F_BASELINE | VIRTIO_EBB_HELLO_F_ACCOUNT))
		return ebb_err_set(err, -EPROTO, "unknown flags %#" PRIx32 " in HELLO", flags);
	if ((h.can_lend || h.can_vom || h.can_leave || h.can_baseline) && !h.has_driver)
		return ebb_err_set(err, -EPROTO, "HELLO says that no driver runs, and that it can "
				   "%s", h.can_lend ? "lend" : h.can_vom ? "tell values" :
				   h.can_leave ? "unplug what leaves" : "simulate a cache");
	if (h.num_nodes == 0 || h.num_nodes > VIRTIO_EBB_MAX_NODES)
		return ebb_err_set(err, -EPROTO, "num_nodes in HELLO is %u, should be 1 to %u",
				   h.num_nodes, VIRTIO_EBB_MAX_NODES);
	if (h.max_cpus > EBB_MAX_VCPUS)
		return ebb_err_set(err, -EPROTO,
				   "max_cpus in HELLO is %" PRIu32 ", should be at most %u",
				   h.max_cpus, EBB_MAX_VCPUS);
	if (h.num_pools > h.num_nodes)
		return ebb_err_set(err, -EPROTO, "num_pools in HELLO is %u, num_nodes is %u",
				   h.num_pools, h.num_nodes);
	if (len != sizeof(*in) + (uint64_t)num_cpus * sizeof(cpus[0]) +
			   h.num_pools * sizeof(struct virtio_ebb_link_pool))
		return ebb_err_set(err, -EPROTO,
				   "HELLO of %" PRIu32 " CPUs and %u pools has %zu bytes", num_cpus,
				   h.num_pools, len);
	if (num_cpus > h.max_cpus)
		return ebb_err_set(err, -EPROTO,
				   "num_cpus in HELLO is %" PRIu32 ", max_cpus is %" PRIu32,
				   num_cpus, h.max_cpus);
	rc = decode_hello_cpus(p, cpus, &h, err);
	if (rc == 0)
		rc = ebb_linkproto_decode_pools((const void *)(cpus + num_cpus), h.num_pools,
						h.num_nodes, p->pools, err);
	if (rc < 0)
		return rc;
	p->has_hello = true;
	p->num_nodes = h.num_nodes;
	p->max_cpus = h.max_cpus;
	p->num_pools = h.num_pools;
	memcpy(ret->uuid, in->uuid, sizeof(ret->uuid));
	ret->u.hello = h;
	return 0;
}

static int decode_add(const struct virtio_ebb_link_request *in, uint16_t num_nodes,
		      struct ebb_fact_request *r, struct ebb_err *err)
{
	uint16_t flags = le16toh(in->req.flags);

	r->count = le16toh(in->req.u.cpu_add.count);
	r->node = le16toh(in->req.u.cpu_add.node);
	r->allow_ht = flags & VIRTIO_EBB_ADD_F_ALLOW_HT;
	if (flags & ~VIRTIO_EBB_ADD_F_ALLOW_HT)
		return ebb_err_set(err, -EPROTO, "unknown flags %#x in CPU_ADD", flags);
	if (in->req.u.cpu_add.reserved ||
	    !is_zero(&in->req.u.words[1], 3 * sizeof(in->req.u.words[0])))
		return ebb_err_set(err, -EPROTO, "a reserved field of CPU_ADD is not zero");
	if (!is_zero(&in->cpu, sizeof(in->cpu)))
		return ebb_err_set(err, -EPROTO, "CPU_ADD names a CPU");
	if (r->count == 0 || r->count > VIRTIO_EBB_MAX_REQ_CPUS)
		return ebb_err_set(err, -EPROTO, "count in CPU_ADD is %u, should be 1 to %u",
				   r->count, VIRTIO_EBB_MAX_REQ_CPUS);
	if (r->node >= num_nodes && r->node != VIRTIO_EBB_NODE_ANY)
		return ebb_err_set(err, -EPROTO, "node in CPU_ADD is %u, the VM has nodes 0 to %u",
				   r->node, num_nodes - 1);
	return 0;
}

/* CPU_REMOVE and CPU_LEND: a CPU that the VM has. */
static int decode_named(const struct virtio_ebb_link_request *in,
			const struct ebb_linkproto_parser *p, const char *name, uint16_t known,
			struct ebb_fact_request *r, struct ebb_err *err)
{
	uint16_t flags = le16toh(in->req.flags);
	struct ebb_hello_cpu cpu;
	int rc;

	VIRTIO_EBB_ASSERT(offsetof(struct virtio_ebb_req, u.cpu_remove.hv_cpu_id) ==
			  offsetof(struct virtio_ebb_req, u.cpu_lend.hv_cpu_id),
			  "both name the CPU in the same place");
	if (flags & ~known)
		return ebb_err_set(err, -EPROTO, "unknown flags %#x in %s", flags, name);
	if (!is_zero(&in->req.u.words[1], 3 * sizeof(in->req.u.words[0])))
		return ebb_err_set(err, -EPROTO, "a reserved field of %s is not zero", name);
	if (in->req.u.cpu_remove.hv_cpu_id != in->cpu.cpu.hv_cpu_id)
		return ebb_err_set(err, -EPROTO, "%s names two different CPUs", name);
	rc = decode_cpu(&in->cpu, p->num_nodes, p->max_cpus, &cpu, err);
	if (rc == 0)
		r->vcpu = cpu.vcpu;
	return rc;
}

static int decode_request(const struct ebb_linkproto_parser *p, const void *payload,
			  struct ebb_fact_request *ret, struct ebb_err *err)
{
	const struct virtio_ebb_link_request *in = payload;
	struct ebb_fact_request r = {
		.tag = le64toh(in->req.tag),
		.type = le16toh(in->req.type),
	};
	int rc;

	if (in->req.reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of a request is %#" PRIx32,
				   le32toh(in->req.reserved));
	switch (r.type) {
	case VIRTIO_EBB_REQ_CPU_ADD:
		rc = decode_add(in, p->num_nodes, &r, err);
		break;
	case VIRTIO_EBB_REQ_CPU_REMOVE:
		rc = decode_named(in, p, "CPU_REMOVE", 0, &r, err);
		break;
	case VIRTIO_EBB_REQ_CPU_LEND:
		rc = decode_named(in, p, "CPU_LEND", VIRTIO_EBB_LEND_F_PARK, &r, err);
		r.park = le16toh(in->req.flags) & VIRTIO_EBB_LEND_F_PARK;
		break;
	default:
		return ebb_err_set(err, -EPROTO, "request type %u is none for an agent", r.type);
	}
	if (rc == 0)
		*ret = r;
	return rc;
}

static int decode_totals(const void *payload, size_t len, struct ebb_telemetry *ret,
			 struct ebb_err *err)
{
	const struct virtio_ebb_telemetry *in = payload;

	if (len != sizeof(*in))
		return ebb_err_set(err, -EPROTO, "telemetry of totals has %zu bytes, should be %zu",
				   len, sizeof(*in));
	if (in->reserved || in->reserved2)
		return ebb_err_set(err, -EPROTO, "a reserved field of telemetry is not zero");
	*ret = (struct ebb_telemetry){
		.num_apps = le16toh(in->num_apps),
		.interval_ms = le32toh(in->interval_ms),
		.committed = le64toh(in->committed),
		.aborted = le64toh(in->aborted),
		.failed = le64toh(in->failed),
		.accesses = le64toh(in->accesses),
		.p50_us = le32toh(in->p50_us),
		.p95_us = le32toh(in->p95_us),
		.p99_us = le32toh(in->p99_us),
		.workers = le32toh(in->workers),
		.cpus_online = le32toh(in->cpus_online),
		.cpu_permille = le32toh(in->cpu_permille),
		.mem_total_bytes = le64toh(in->mem_total_bytes),
		.mem_available_bytes = le64toh(in->mem_available_bytes),
		.baseline_ios = le64toh(in->baseline_ios),
		.actual_ios = le64toh(in->actual_ios),
		.baseline_mib = le32toh(in->baseline_mib),
	};
	return 0;
}

static int decode_telemetry(const struct ebb_linkproto_parser *p, void *payload, size_t len,
			    struct ebb_linkproto_msg *ret, struct ebb_err *err)
{
	/* Every kind begins with its type. */
	uint16_t type = le16toh(*(const __le16 *)payload);

	switch (type) {
	case VIRTIO_EBB_TELEMETRY_TOTALS:
		return decode_totals(payload, len, &ret->u.telemetry, err);
	case VIRTIO_EBB_TELEMETRY_VOM:
		ret->is_vom = true;
		return ebb_linkproto_decode_vom(payload, len, p->num_nodes, &ret->u.vom, err);
	default:
		return ebb_err_set(err, -EPROTO, "telemetry type %u is unknown", type);
	}
}

static int decode_frame(struct ebb_linkproto_parser *p, struct ebb_linkproto_msg *ret,
			struct ebb_err *err)
{
	const struct virtio_ebb_link_hdr *h = (const void *)p->frame;
	uint8_t *payload = p->frame + HDR_BYTES;
	struct ebb_linkproto_msg msg = { .type = le16toh(h->type) };
	int rc;

	switch (msg.type) {
	case VIRTIO_EBB_LINK_HELLO:
		rc = decode_hello(p, payload, p->have - HDR_BYTES, &msg, err);
		break;
	case VIRTIO_EBB_LINK_REQUEST:
		rc = decode_request(p, payload, &msg.u.request, err);
		break;
	case VIRTIO_EBB_LINK_ACCOUNT:
		rc = ebb_linkproto_decode_account(payload, &msg.u.account, err);
		break;
	case VIRTIO_EBB_LINK_MEM:
		rc = ebb_linkproto_decode_mem(p, payload, p->have - HDR_BYTES, &msg.u.mem, err);
		break;
	default:
		rc = decode_telemetry(p, payload, p->have - HDR_BYTES, &msg, err);
	}
	if (rc == 0)
		*ret = msg;
	return rc;
}

static int reserve_frame(struct ebb_linkproto_parser *p, size_t size)
{
	uint8_t *frame;

	if (size <= p->size)
		return 0;
	frame = realloc(p->frame, size);
	if (!frame)
		return -ENOMEM;
	p->frame = frame;
	p->size = size;
	return 0;
}

int ebb_linkproto_parse(struct ebb_linkproto_parser *p, const void *data, size_t len,
			size_t *ret_used, struct ebb_linkproto_msg *ret_msg, struct ebb_err *err)
{
	const struct virtio_ebb_link_hdr *h;
	size_t used = 0;
	int rc = 0;

	if (p->failed)
		return ebb_err_set(err, -EPROTO, "the connection has failed before");
	*ret_used = 0;
	for (;;) {
		size_t n = p->need - p->have;

		rc = reserve_frame(p, p->need);
		if (rc < 0)
			return rc;
		if (n > len - used)
			n = len - used;
		memcpy(p->frame + p->have, (const uint8_t *)data + used, n);
		p->have += n;
		used += n;
		*ret_used = used;
		if (p->have < p->need)
			return 0;
		if (p->have > HDR_BYTES)
			break;
		h = (const void *)p->frame;
		rc = check_header(h, p->has_hello, err);
		if (rc < 0) {
			p->failed = true;
			return rc;
		}
		p->need = HDR_BYTES + le32toh(h->len);
	}
	rc = decode_frame(p, ret_msg, err);
	if (rc < 0) {
		p->failed = rc == -EPROTO;
		return rc;
	}
	p->have = 0;
	p->need = HDR_BYTES;
	return 1;
}
