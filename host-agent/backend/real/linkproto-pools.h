/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pools in HELLO and MEM; private to linkproto*.c.  Both return 0 or -EPROTO with err. */
#ifndef EBB_IO_LINKPROTO_POOLS_H
#define EBB_IO_LINKPROTO_POOLS_H

#include "backend/real/linkproto.h"

/* ret: num_pools entries, sorted by node; undefined after an error. */
int ebb_linkproto_decode_pools(const struct virtio_ebb_link_pool *in, uint16_t num_pools,
			       uint16_t num_nodes, struct ebb_pool_fact *ret, struct ebb_err *err);

/* The payload of MEM, len bytes, at least as long as its fixed part. */
int ebb_linkproto_decode_mem(struct ebb_linkproto_parser *p, const void *payload, size_t len,
			     struct ebb_fact_mem *ret, struct ebb_err *err);

#endif
