/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory for the nodes of ordered indexes: of one size, from blocks of the index memory, which are
 * given back when the engine is closed. At most as many nodes are held as were in use at once, and
 * those that wait for an epoch.
 *
 *	free	-> used		node_pool_alloc
 *	used	-> free		node_pool_give_back: nobody has seen it
 *	used	-> retired	node_pool_retire: nobody finds it any more
 *	retired	-> free		once an epoch has passed (epoch.h)
 */
#ifndef OLTP_NODE_POOL_H
#define OLTP_NODE_POOL_H

#include <pthread.h>
#include <stdint.h>

#include "oltp-engine/src/base/epoch.h"
#include "oltp-engine/src/base/mem.h"

struct tree_node;

struct node_pool {
	struct mem *mem;
	struct epoch *epoch;
	uint32_t node_bytes;
	pthread_mutex_t lock;		/* everything below */
	struct tree_node *free;
	struct tree_node *chunks;	/* the first node of each block chains the blocks */
	uint8_t *chunk_next, *chunk_end;
	/* Some wait for one epoch together; those retired meanwhile will wait for the next. */
	struct tree_node *waiting, *gathered;
	uint32_t n_gathered;
	uint64_t awaited;		/* the epoch that those in waiting wait for */
	uint64_t n_used, n_retired;	/* nodes; a retired one is not used */
};

void node_pool_init(struct node_pool *pool, struct mem *mem, struct epoch *epoch,
		    uint32_t node_bytes);
void node_pool_finish(struct node_pool *pool);

/* NULL: there is no memory. What is in the node is not set. */
struct tree_node *node_pool_alloc(struct node_pool *pool);

/* Accepts NULL. */
void node_pool_give_back(struct node_pool *pool, struct tree_node *node);

void node_pool_retire(struct node_pool *pool, struct tree_node *node);

#endif
