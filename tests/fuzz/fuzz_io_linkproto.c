/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: whatever a device sends, the parser gives messages that keep the rules of the
 * header, or fails for good.  The first byte of the input chooses in which pieces the rest arrives;
 * both ways of cutting must give the same result.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/linkproto.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pools(const struct ebb_pool_fact *p, uint16_t num, uint16_t num_nodes)
{
	REQUIRE(num <= num_nodes);
	for (uint16_t i = 0; i < num; i++) {
		REQUIRE(p[i].node < num_nodes && (i == 0 || p[i].node > p[i - 1].node));
		REQUIRE(p[i].block_bytes && !(p[i].block_bytes & (p[i].block_bytes - 1)));
		REQUIRE(p[i].size_bytes > 0 &&
			p[i].size_bytes <= (uint64_t)EBB_MAX_POOL_MIB << 20);
		REQUIRE(p[i].requested_bytes <= p[i].size_bytes);
		REQUIRE(p[i].held_bytes + p[i].unconfirmed_bytes <= p[i].size_bytes);
		REQUIRE((p[i].size_bytes | p[i].requested_bytes | p[i].held_bytes |
			 p[i].unconfirmed_bytes) % p[i].block_bytes == 0);
	}
}

static void check_vom(const struct ebb_fact_vom *v, uint16_t num_nodes)
{
	REQUIRE(v->num_buckets <= EBB_MAX_VOM_BUCKETS);
	for (uint32_t i = 0; i < v->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &v->buckets[i];

		REQUIRE(b->kib > 0 && b->node < num_nodes);
		REQUIRE(i == 0 || b->node > b[-1].node ||
			(b->node == b[-1].node && b->value > b[-1].value));
	}
}

static void check_flags(uint16_t flags)
{
	const uint16_t without = VIRTIO_EBB_CPU_F_STARTUP | VIRTIO_EBB_CPU_F_FORCED;

	REQUIRE(!(flags & ~VIRTIO_EBB_CPU_F_ALL));
	REQUIRE(!(flags & VIRTIO_EBB_CPU_F_LENT) || !(flags & without));
	REQUIRE(!(flags & VIRTIO_EBB_CPU_F_PARKED) || (flags & VIRTIO_EBB_CPU_F_LENT));
	REQUIRE((flags & without) != without);
}

static void check_msg(const struct ebb_linkproto_msg *m, uint16_t *num_nodes, uint32_t *max_cpus)
{
	const struct ebb_fact_hello *h = &m->u.hello;
	const struct ebb_fact_request *r = &m->u.request;

	switch (m->type) {
	case VIRTIO_EBB_LINK_HELLO:
		REQUIRE(h->num_nodes >= 1 && h->num_nodes <= VIRTIO_EBB_MAX_NODES);
		REQUIRE(h->max_cpus <= EBB_MAX_VCPUS);
		REQUIRE(h->num_cpus >= 1 && h->num_cpus <= h->max_cpus);
		REQUIRE(h->has_driver || !(h->can_lend || h->can_vom));
		for (uint32_t i = 0; i < h->num_cpus; i++) {
			check_flags(h->cpus[i].flags);
			REQUIRE(h->cpus[i].vcpu < h->max_cpus);
			REQUIRE(i == 0 || h->cpus[i].vcpu > h->cpus[i - 1].vcpu);
		}
		check_pools(h->pools, h->num_pools, h->num_nodes);
		*num_nodes = h->num_nodes;
		*max_cpus = h->max_cpus;
		break;
	case VIRTIO_EBB_LINK_REQUEST:
		REQUIRE(*num_nodes > 0);
		REQUIRE(!r->park || r->type == VIRTIO_EBB_REQ_CPU_LEND);
		if (r->type == VIRTIO_EBB_REQ_CPU_REMOVE || r->type == VIRTIO_EBB_REQ_CPU_LEND) {
			REQUIRE(r->vcpu < *max_cpus);
			break;
		}
		REQUIRE(r->type == VIRTIO_EBB_REQ_CPU_ADD);
		REQUIRE(r->count >= 1 && r->count <= VIRTIO_EBB_MAX_REQ_CPUS);
		REQUIRE(r->node < *num_nodes || r->node == VIRTIO_EBB_NODE_ANY);
		break;
	case VIRTIO_EBB_LINK_MEM:
		REQUIRE(*num_nodes > 0 && m->u.mem.num_pools > 0);
		check_pools(m->u.mem.pools, m->u.mem.num_pools, *num_nodes);
		break;
	case VIRTIO_EBB_LINK_ACCOUNT:
		REQUIRE(*num_nodes > 0 && m->u.account.writer != 0);
		REQUIRE(m->u.account.mem.num_unclear <= 1ull << 62);
		break;
	default:
		REQUIRE(m->type == VIRTIO_EBB_LINK_TELEMETRY);
		REQUIRE(*num_nodes > 0);
		if (m->is_vom)
			check_vom(&m->u.vom, *num_nodes);
	}
}

/* Returns the number of messages, or minus that minus 1 when the stream failed. */
static long run(const uint8_t *data, size_t size, size_t piece)
{
	struct ebb_linkproto_parser p;
	struct ebb_linkproto_msg msg;
	struct ebb_err err;
	uint16_t num_nodes = 0;
	uint32_t max_cpus = 0;
	long num = 0;
	int rc = 0;

	ebb_linkproto_parser_init(&p);
	while (size && rc >= 0) {
		size_t n = piece < size ? piece : size, used;

		while (n) {
			rc = ebb_linkproto_parse(&p, data, n, &used, &msg, &err);
			if (rc < 0)
				break;
			REQUIRE(used <= n && (rc == 1 || used == n));
			data += used;
			size -= used;
			n -= used;
			if (rc == 1) {
				check_msg(&msg, &num_nodes, &max_cpus);
				num++;
			}
		}
	}
	if (rc < 0) {
		REQUIRE(rc == -EPROTO && err.text[0]);
		REQUIRE(ebb_linkproto_parse(&p, data, size, &(size_t){ 0 }, &msg, &err) == -EPROTO);
		num = -num - 1;
	}
	ebb_linkproto_parser_finish(&p);
	return num;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	REQUIRE(run(data + 1, size - 1, data[0] % 64 + 1) == run(data + 1, size - 1, 1 << 20));
	return 0;
}
