// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks: where they come from, what becomes of them. See storage.h; slots are in slots.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "storage.h"
#include "table.h"

/*
 * How much to ask the provider for at once. A lease from the host costs a file descriptor, however
 * small it is, so it should not be too small. But blocks that are not needed yet are of no use and
 * are the first to be taken back, so memory grows at most by a part of the held memory.
 */
#define GROW_BYTES	(32ull << 20)
#define GROW_PART	16u
#define RELEASE_AT_ONCE	512u
#define NODE_ANY_UNUSED	OLTP_NODES_MAX

int storage_init(struct storage *storage, const struct oltp_block_ops *ops, void *ctx,
		 struct mem *mem)
{
	storage->ops = ops;
	storage->ctx = ctx;
	storage->mem = mem;
	return -pthread_mutex_init(&storage->lock, NULL);
}

static void provider_release(struct storage *storage, void *addr, uint64_t bytes)
{
	if (storage->ops)
		storage->ops->release(storage->ctx, addr, bytes);
	else
		mem_free(storage->mem, addr, bytes);
}

void storage_finish(struct storage *storage)
{
	for (size_t i = 0; i < storage->n_blocks; i++) {
		struct block *block = storage->blocks[i];

		if (block->state != BLOCK_REVOKED)
			provider_release(storage, block->addr, OLTP_MEM_BLOCK_BYTES);
		free(block->used);
		free(block);
	}
	while (storage->spare) {
		struct block *block = storage->spare;

		storage->spare = block->next;
		free(block);
	}
	free(storage->blocks);
	block_map_finish(&storage->map);
	pthread_mutex_destroy(&storage->lock);
}

/* Takes n blocks of memory into the books, as unused ones. Returns how many it could. */
static size_t books_add(struct storage *storage, uint8_t *addr, size_t n, uint32_t node)
{
	struct node_memory *memory = &storage->nodes[node];
	size_t i;

	for (i = 0; i < n; i++, addr += OLTP_MEM_BLOCK_BYTES) {
		struct block *block = storage->spare;

		if (storage->n_blocks == storage->room) {
			size_t room = storage->room ? storage->room * 2 : 64;
			struct block **blocks = realloc(storage->blocks, room * sizeof(*blocks));

			if (!blocks)
				break;
			storage->blocks = blocks;
			storage->room = room;
		}
		if (block)
			storage->spare = block->next;
		else
			block = malloc(sizeof(*block));
		if (!block)
			break;
		*block = (struct block){ .addr = addr, .node = node, .grant = storage->n_grants,
					 .position = storage->n_blocks, .next = memory->unused };
		if (block_map_set(&storage->map, addr, block)) {
			block->next = storage->spare;
			storage->spare = block;
			break;
		}
		storage->blocks[storage->n_blocks++] = block;
		memory->unused = block;
	}
	memory->held_bytes += i * OLTP_MEM_BLOCK_BYTES;
	memory->unused_bytes += i * OLTP_MEM_BLOCK_BYTES;
	atomic_fetch_add_explicit(&storage->held_bytes, i * OLTP_MEM_BLOCK_BYTES,
				  memory_order_relaxed);
	return i;
}

void storage_limit(struct storage *storage, uint32_t node, uint64_t limit_bytes,
		   uint64_t deadline_ns)
{
	struct node_memory *memory = &storage->nodes[node];

	pthread_mutex_lock(&storage->lock);
	memory->n_limits += limit_bytes != memory->limit_bytes ||
			    deadline_ns != memory->deadline_ns;
	memory->limit_bytes = limit_bytes;
	memory->deadline_ns = deadline_ns;
	memory->is_refused = false;
	pthread_mutex_unlock(&storage->lock);
}

uint64_t storage_demanded(const struct storage *storage, uint32_t node)
{
	const struct node_memory *memory = &storage->nodes[node];

	if (!storage->ops || memory->held_bytes <= memory->limit_bytes ||
	    memory->deadline_ns == OLTP_NO_DEMAND)
		return 0;
	return memory->held_bytes - memory->limit_bytes;
}

/* Bytes that the node's provider would give now. Under the lock. */
static uint64_t offered_bytes(const struct storage *storage, uint32_t node)
{
	const struct node_memory *memory = &storage->nodes[node];

	if (!storage->ops || memory->is_refused || memory->held_bytes >= memory->limit_bytes)
		return 0;
	return memory->limit_bytes - memory->held_bytes;
}

/* At least a block. */
static uint64_t grow_bytes(const struct node_memory *memory)
{
	const uint64_t part = memory->held_bytes / GROW_PART & ~(OLTP_MEM_BLOCK_BYTES - 1);

	if (!memory->held_bytes || part > GROW_BYTES)
		return GROW_BYTES;
	return part ? part : OLTP_MEM_BLOCK_BYTES;
}

static int provider_add(struct storage *storage, uint32_t node)
{
	struct node_memory *memory = &storage->nodes[node];
	uint64_t bytes = OLTP_MEM_BLOCK_BYTES;
	void *addr = NULL;
	size_t n;
	int rc;

	if (!storage->ops) {
		addr = mem_alloc(storage->mem, bytes);
		if (!addr)
			return -ENOMEM;
	} else {
		uint64_t offered = offered_bytes(storage, node) & ~(OLTP_MEM_BLOCK_BYTES - 1);
		uint64_t most = grow_bytes(memory);

		if (!offered)
			return -ENOMEM;
		rc = storage->ops->add(storage->ctx, offered < most ? offered : most, node, &addr,
				       &bytes);
		if (rc) {
			memory->is_refused = true;
			return rc;
		}
	}
	storage->n_grants++;
	n = books_add(storage, addr, bytes / OLTP_MEM_BLOCK_BYTES, node);
	if (n * OLTP_MEM_BLOCK_BYTES < bytes)
		provider_release(storage, (uint8_t *)addr + n * OLTP_MEM_BLOCK_BYTES,
				 bytes - n * OLTP_MEM_BLOCK_BYTES);
	return n ? 0 : -ENOMEM;
}

/* Takes the first one off the list that the host has not taken. */
static struct block *unused_pop(struct node_memory *memory)
{
	struct block **at = &memory->unused, *block;

	while (*at && (*at)->state == BLOCK_REVOKED)
		at = &(*at)->next;
	block = *at;
	if (block)
		*at = block->next;
	return block;
}

/* A node that has some: the one wanted, if possible; NODE_ANY_UNUSED: none. */
static uint32_t pick_node(struct storage *storage, uint32_t wanted, bool (*has)(struct storage *,
									     uint32_t node))
{
	if (has(storage, wanted))
		return wanted;
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++) {
		if (has(storage, node))
			return node;
	}
	return NODE_ANY_UNUSED;
}

static bool node_has_unused(struct storage *storage, uint32_t node)
{
	return storage->nodes[node].unused;
}

static bool node_has_more(struct storage *storage, uint32_t node)
{
	return !provider_add(storage, node);
}

struct block *storage_block_take(struct storage *storage, struct oltp_table *table, uint32_t wanted,
				 uint32_t part)
{
	uint32_t n_slots = OLTP_MEM_BLOCK_BYTES / table->stride;
	uint64_t *used = calloc((n_slots + 63) / 64, sizeof(*used));
	struct block *block = NULL;
	uint32_t node;

	if (!used)
		return NULL;
	pthread_mutex_lock(&storage->lock);
	if (!node_has_unused(storage, wanted) && !node_has_more(storage, wanted))
		node = pick_node(storage, wanted, node_has_unused);
	else
		node = wanted;
	if (node == NODE_ANY_UNUSED && storage->ops)
		node = pick_node(storage, wanted, node_has_more);
	if (node != NODE_ANY_UNUSED) {
		struct node_memory *memory = &storage->nodes[node];

		block = unused_pop(memory);
	}
	if (block) {
		storage->nodes[node].unused_bytes -= OLTP_MEM_BLOCK_BYTES;
		block->table = table;
		block->part = part;
		block->n_slots = n_slots;
		block->n_used = 0;
		block->first_word = 0;
		block->n_free = 0;
		block->used = used;
		block->next = NULL;
	}
	pthread_mutex_unlock(&storage->lock);
	if (!block)
		free(used);
	return block;
}

/* The block is no table's any more: its slots are free, and nobody looks at them (S3). */
void storage_block_drop(struct storage *storage, struct block *block)
{
	struct node_memory *memory = &storage->nodes[block->node];

	pthread_mutex_lock(&storage->lock);
	free(block->used);
	block->used = NULL;
	block->table = NULL;
	block->is_dirty = true;
	block->next = memory->unused;
	memory->unused = block;
	memory->unused_bytes += OLTP_MEM_BLOCK_BYTES;
	pthread_mutex_unlock(&storage->lock);
}

static void books_remove(struct storage *storage, struct block *block)
{
	struct block *last = storage->blocks[--storage->n_blocks];

	storage->blocks[block->position] = last;
	last->position = block->position;
	block_map_set(&storage->map, block->addr, NULL);
	block->next = storage->spare;
	storage->spare = block;
}

static int compare_addrs(const void *a, const void *b)
{
	const struct block *const *x = a, *const *y = b;

	return ((*x)->addr > (*y)->addr) - ((*x)->addr < (*y)->addr);
}

/* Adjacent blocks are released by one call: each call goes to the host. */
static void release_runs(struct storage *storage, struct block **blocks, size_t n)
{
	size_t first = 0;

	qsort(blocks, n, sizeof(struct block *), compare_addrs);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && blocks[i]->grant == blocks[first]->grant &&
		    blocks[i]->addr == blocks[i - 1]->addr + OLTP_MEM_BLOCK_BYTES)
			continue;
		provider_release(storage, blocks[first]->addr, (i - first) * OLTP_MEM_BLOCK_BYTES);
		first = i;
	}
}

uint64_t storage_release_unused(struct storage *storage, uint32_t node, uint64_t bytes)
{
	struct node_memory *memory = &storage->nodes[node];
	struct block *blocks[RELEASE_AT_ONCE];
	uint64_t released = 0;
	size_t n;

	pthread_mutex_lock(&storage->lock);
	do {
		for (n = 0; n < RELEASE_AT_ONCE && released + OLTP_MEM_BLOCK_BYTES <= bytes; n++) {
			blocks[n] = unused_pop(memory);
			if (!blocks[n])
				break;
			released += OLTP_MEM_BLOCK_BYTES;
		}
		release_runs(storage, blocks, n);
		for (size_t i = 0; i < n; i++)
			books_remove(storage, blocks[i]);
	} while (n == RELEASE_AT_ONCE);
	memory->held_bytes -= released;
	memory->unused_bytes -= released;
	atomic_fetch_sub_explicit(&storage->held_bytes, released, memory_order_relaxed);
	pthread_mutex_unlock(&storage->lock);
	return released;
}

IN_SIGBUS_HANDLER bool storage_block_revoke(struct block *block)
{
	return atomic_exchange_explicit(&block->state, BLOCK_REVOKED, memory_order_seq_cst) !=
	       BLOCK_REVOKED;
}

uint64_t storage_forget_revoked(struct storage *storage)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&storage->lock);
	for (size_t i = 0; i < storage->n_blocks; i++) {
		struct block *block = storage->blocks[i];
		struct node_memory *memory = &storage->nodes[block->node];
		struct block **at = &memory->unused;

		if (block->state != BLOCK_REVOKED || block->is_forgotten)
			continue;
		bytes += OLTP_MEM_BLOCK_BYTES;
		memory->held_bytes -= OLTP_MEM_BLOCK_BYTES;
		if (block->table) {
			storage_block_forget(block);
			continue;
		}
		block->is_forgotten = true;
		while (*at != block)
			at = &(*at)->next;
		*at = block->next;
		memory->unused_bytes -= OLTP_MEM_BLOCK_BYTES;
	}
	atomic_fetch_sub_explicit(&storage->held_bytes, bytes, memory_order_relaxed);
	pthread_mutex_unlock(&storage->lock);
	return bytes;
}

uint64_t storage_spare_bytes(struct storage *storage)
{
	uint64_t bytes = 0;

	pthread_mutex_lock(&storage->lock);
	/* What an offer has beyond whole blocks can never be taken. */
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		bytes += storage->nodes[node].unused_bytes +
			 (offered_bytes(storage, node) & ~(OLTP_MEM_BLOCK_BYTES - 1));
	pthread_mutex_unlock(&storage->lock);
	return bytes;
}

int storage_blocks_list(struct storage *storage, struct block ***ret_blocks, size_t *ret_n)
{
	struct block **blocks;
	size_t n = 0;

	pthread_mutex_lock(&storage->lock);
	blocks = malloc((storage->n_blocks + 1) * sizeof(*blocks));
	for (size_t i = 0; blocks && i < storage->n_blocks; i++) {
		if (storage->blocks[i]->table && storage->blocks[i]->state != BLOCK_REVOKED)
			blocks[n++] = storage->blocks[i];
	}
	pthread_mutex_unlock(&storage->lock);
	if (!blocks)
		return -ENOMEM;
	*ret_blocks = blocks;
	*ret_n = n;
	return 0;
}
