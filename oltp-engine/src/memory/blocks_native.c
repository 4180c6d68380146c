// SPDX-License-Identifier: GPL-2.0-or-later
/* A provider of blocks without a host: anonymous memory under a limit. See oltp.h. */
#include <errno.h>
#include <numaif.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "oltp-engine/src/base/mem.h"
#include "oltp.h"

struct oltp_blocks_native {
	uint32_t node;
	pthread_mutex_t lock;	/* all below */
	struct oltp_engine *engine;
	uint64_t limit_bytes, held_bytes;
};

/* Only a wish: where there is no such node, any memory will do. */
static void prefer_node(void *addr, uint64_t bytes, uint32_t node)
{
	unsigned long mask = 1ul << node;

	mbind(addr, bytes, MPOL_PREFERRED, &mask, sizeof(mask) * 8, 0);
}

static int native_add(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr,
		      uint64_t *ret_bytes)
{
	struct oltp_blocks_native *blocks = ctx;
	uint64_t room;
	void *addr;
	int rc = -ENOMEM;

	pthread_mutex_lock(&blocks->lock);
	room = blocks->limit_bytes > blocks->held_bytes ?
		       (blocks->limit_bytes - blocks->held_bytes) & ~(OLTP_MEM_BLOCK_BYTES - 1) : 0;
	if (node != blocks->node)
		room = 0;
	bytes = bytes < room ? bytes : room;
	addr = bytes ? map_aligned(bytes) : NULL;
	if (addr) {
		prefer_node(addr, bytes, node);
		blocks->held_bytes += bytes;
		*ret_addr = addr;
		*ret_bytes = bytes;
		rc = 0;
	}
	pthread_mutex_unlock(&blocks->lock);
	return rc;
}

static void native_release(void *ctx, void *addr, uint64_t bytes)
{
	struct oltp_blocks_native *blocks = ctx;

	munmap(addr, bytes);
	pthread_mutex_lock(&blocks->lock);
	blocks->held_bytes -= bytes;
	pthread_mutex_unlock(&blocks->lock);
}

const struct oltp_block_ops oltp_blocks_native_ops = {
	.add = native_add,
	.release = native_release,
};

int oltp_blocks_native_create(uint64_t limit_bytes, uint32_t node,
			      struct oltp_blocks_native **ret_blocks)
{
	struct oltp_blocks_native *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		return -ENOMEM;
	blocks->node = node;
	blocks->limit_bytes = limit_bytes;
	pthread_mutex_init(&blocks->lock, NULL);
	*ret_blocks = blocks;
	return 0;
}

void oltp_blocks_native_attach(struct oltp_blocks_native *blocks, struct oltp_engine *engine)
{
	pthread_mutex_lock(&blocks->lock);
	blocks->engine = engine;
	pthread_mutex_unlock(&blocks->lock);
	oltp_memory_limit(engine, blocks->node, blocks->limit_bytes, 0);
}

void oltp_blocks_native_set_limit(struct oltp_blocks_native *blocks, uint64_t limit_bytes,
				  uint64_t deadline_ns)
{
	struct oltp_engine *engine;

	pthread_mutex_lock(&blocks->lock);
	blocks->limit_bytes = limit_bytes;
	engine = blocks->engine;
	pthread_mutex_unlock(&blocks->lock);
	/* Not under the lock: the engine calls the hooks under one of its own. */
	if (engine)
		oltp_memory_limit(engine, blocks->node, limit_bytes, deadline_ns);
}

uint64_t oltp_blocks_native_held(struct oltp_blocks_native *blocks)
{
	uint64_t bytes;

	pthread_mutex_lock(&blocks->lock);
	bytes = blocks->held_bytes;
	pthread_mutex_unlock(&blocks->lock);
	return bytes;
}

void oltp_blocks_native_destroy(struct oltp_blocks_native *blocks)
{
	if (!blocks)
		return;
	pthread_mutex_destroy(&blocks->lock);
	free(blocks);
}
