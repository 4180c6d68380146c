/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pools as the device lists them in HELLO and MEM. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "backend/real/linkproto-pools.h"

#define MAX_POOL_BYTES	((uint64_t)EBB_MAX_POOL_MIB << 20)

static int check_bytes(const struct ebb_pool_fact *p, struct ebb_err *err)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} all[] = {
		{ "size", p->size_bytes },
		{ "requested", p->requested_bytes },
		{ "held", p->held_bytes },
		{ "unconfirmed", p->unconfirmed_bytes },
	};

	if (p->size_bytes == 0 || p->size_bytes > MAX_POOL_BYTES)
		return ebb_err_set(err, -EPROTO,
				   "size of pool %u is %" PRIu64 ", should be 1 to %" PRIu64,
				   p->node, p->size_bytes, MAX_POOL_BYTES);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].bytes % p->block_bytes || all[i].bytes > p->size_bytes)
			return ebb_err_set(err, -EPROTO,
					   "%s bytes of pool %u are %" PRIu64 ", should be a "
					   "multiple of %" PRIu32 " up to %" PRIu64, all[i].name,
					   p->node, all[i].bytes, p->block_bytes, p->size_bytes);
	if (p->held_bytes + p->unconfirmed_bytes > p->size_bytes)
		return ebb_err_set(err, -EPROTO,
				   "held and unconfirmed bytes of pool %u are %" PRIu64
				   ", its size is %" PRIu64, p->node,
				   p->held_bytes + p->unconfirmed_bytes, p->size_bytes);
	return 0;
}

static int decode_pool(const struct virtio_ebb_link_pool *in, uint16_t num_nodes,
		       struct ebb_pool_fact *ret, struct ebb_err *err)
{
	*ret = (struct ebb_pool_fact){
		.node = le16toh(in->node),
		.block_bytes = le32toh(in->block_bytes),
		.size_bytes = le64toh(in->size_bytes),
		.requested_bytes = le64toh(in->requested_bytes),
		.held_bytes = le64toh(in->held_bytes),
		.unconfirmed_bytes = le64toh(in->unconfirmed_bytes),
	};
	if (in->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of a pool is %#x",
				   le16toh(in->reserved));
	if (ret->node >= num_nodes)
		return ebb_err_set(err, -EPROTO, "node of a pool is %u, the VM has nodes 0 to %u",
				   ret->node, num_nodes - 1);
	if (ret->block_bytes == 0 || (ret->block_bytes & (ret->block_bytes - 1)))
		return ebb_err_set(err, -EPROTO,
				   "blocks of pool %u have %" PRIu32
				   " bytes, should be a power of two",
				   ret->node, ret->block_bytes);
	return check_bytes(ret, err);
}

static int compare_node(const void *a, const void *b)
{
	const struct ebb_pool_fact *x = a, *y = b;

	return (x->node > y->node) - (x->node < y->node);
}

int ebb_linkproto_decode_pools(const struct virtio_ebb_link_pool *in, uint16_t num_pools,
			       uint16_t num_nodes, struct ebb_pool_fact *ret, struct ebb_err *err)
{
	for (uint16_t i = 0; i < num_pools; i++) {
		int rc = decode_pool(&in[i], num_nodes, &ret[i], err);

		if (rc < 0)
			return rc;
	}
	qsort(ret, num_pools, sizeof(ret[0]), compare_node);
	for (uint16_t i = 1; i < num_pools; i++)
		if (ret[i].node == ret[i - 1].node)
			return ebb_err_set(err, -EPROTO, "two pools have node %u", ret[i].node);
	return 0;
}

int ebb_linkproto_decode_mem(struct ebb_linkproto_parser *p, const void *payload, size_t len,
			     struct ebb_fact_mem *ret, struct ebb_err *err)
{
	const struct virtio_ebb_link_mem *in = payload;
	const uint32_t num = le32toh(in->num_pools);
	struct ebb_pool_fact pools[EBB_MAX_GUEST_NODES];
	int rc;

	if (in->reserved)
		return ebb_err_set(err, -EPROTO, "reserved field of MEM is %#" PRIx32,
				   le32toh(in->reserved));
	if (num == 0 || num != p->num_pools ||
	    len != sizeof(*in) + num * sizeof(struct virtio_ebb_link_pool))
		return ebb_err_set(err, -EPROTO,
				   "MEM of %" PRIu32 " pools has %zu bytes, HELLO listed %u pools",
				   num, len, p->num_pools);
	rc = ebb_linkproto_decode_pools((const void *)(in + 1), p->num_pools, p->num_nodes, pools,
					err);
	if (rc < 0)
		return rc;
	for (uint16_t i = 0; i < p->num_pools; i++)
		if (pools[i].node != p->pools[i].node ||
		    pools[i].block_bytes != p->pools[i].block_bytes ||
		    pools[i].size_bytes != p->pools[i].size_bytes)
			return ebb_err_set(err, -EPROTO,
					   "node, block size or size of pool %u is not as in HELLO",
					   pools[i].node);
	memcpy(p->pools, pools, p->num_pools * sizeof(pools[0]));
	ret->num_pools = p->num_pools;
	ret->pools = p->pools;
	return 0;
}
