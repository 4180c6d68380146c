// SPDX-License-Identifier: GPL-2.0-or-later
/* See node_pool.h. */
#include "node_pool.h"
#include "tree.h"

/* So many retired nodes that the price of a new epoch does not count. */
#define GATHER_MAX	32u

void node_pool_init(struct node_pool *pool, struct mem *mem, struct epoch *epoch,
		    uint32_t node_bytes)
{
	*pool = (struct node_pool){ .mem = mem, .epoch = epoch, .node_bytes = node_bytes };
	pthread_mutex_init(&pool->lock, NULL);
}

void node_pool_finish(struct node_pool *pool)
{
	while (pool->chunks) {
		struct tree_node *chunk = pool->chunks;

		pool->chunks = chunk->next;
		mem_free(pool->mem, chunk, OLTP_MEM_BLOCK_BYTES);
	}
	pthread_mutex_destroy(&pool->lock);
}

static struct tree_node *list_pop(struct tree_node **list)
{
	struct tree_node *node = *list;

	if (node)
		*list = node->next;
	return node;
}

static void list_push(struct tree_node **list, struct tree_node *node)
{
	node->next = *list;
	*list = node;
}

/* What has waited long enough is free; if there is enough, the next ones begin to wait. */
static void reclaim(struct node_pool *pool)
{
	if (pool->waiting && epoch_has_passed(pool->epoch, pool->awaited)) {
		while (pool->waiting) {
			list_push(&pool->free, list_pop(&pool->waiting));
			pool->n_retired--;
		}
	}
	if (!pool->waiting && pool->n_gathered >= GATHER_MAX) {
		pool->awaited = epoch_advance(pool->epoch);
		pool->waiting = pool->gathered;
		pool->gathered = NULL;
		pool->n_gathered = 0;
	}
}

static struct tree_node *chunk_cut(struct node_pool *pool)
{
	struct tree_node *node;

	if (pool->chunk_next == pool->chunk_end) {
		uint8_t *chunk = mem_alloc(pool->mem, OLTP_MEM_BLOCK_BYTES);

		if (!chunk)
			return NULL;
		list_push(&pool->chunks, (struct tree_node *)chunk);
		pool->chunk_next = chunk + pool->node_bytes;
		pool->chunk_end = chunk + OLTP_MEM_BLOCK_BYTES;
	}
	node = (struct tree_node *)pool->chunk_next;
	pool->chunk_next += pool->node_bytes;
	return node;
}

struct tree_node *node_pool_alloc(struct node_pool *pool)
{
	struct tree_node *node;

	pthread_mutex_lock(&pool->lock);
	if (!pool->free)
		reclaim(pool);
	node = list_pop(&pool->free);
	if (!node)
		node = chunk_cut(pool);
	if (node)
		pool->n_used++;
	pthread_mutex_unlock(&pool->lock);
	return node;
}

void node_pool_give_back(struct node_pool *pool, struct tree_node *node)
{
	if (!node)
		return;
	pthread_mutex_lock(&pool->lock);
	list_push(&pool->free, node);
	pool->n_used--;
	pthread_mutex_unlock(&pool->lock);
}

void node_pool_retire(struct node_pool *pool, struct tree_node *node)
{
	pthread_mutex_lock(&pool->lock);
	list_push(&pool->gathered, node);
	pool->n_gathered++;
	pool->n_retired++;
	pool->n_used--;
	if (pool->n_gathered >= GATHER_MAX)
		reclaim(pool);
	pthread_mutex_unlock(&pool->lock);
}
