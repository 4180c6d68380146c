// SPDX-License-Identifier: GPL-2.0-or-later
/* Record slots in blocks: see storage.h. */
#include <errno.h>
#include <string.h>

#include "lock.h"
#include "oltp-engine/src/base/util.h"
#include "storage.h"
#include "table.h"

#define PAGE_BYTES	4096u

void slabs_init(struct slab slabs[SLAB_PARTS])
{
	for (uint32_t part = 0; part < SLAB_PARTS; part++)
		pthread_mutex_init(&slabs[part].lock, NULL);
}

void slabs_finish(struct slab slabs[SLAB_PARTS])
{
	for (uint32_t part = 0; part < SLAB_PARTS; part++)
		pthread_mutex_destroy(&slabs[part].lock);
}

static struct slab *slab_of(const struct block *block)
{
	return &block->table->slabs[block->node][block->part];
}

/* False: it has another state by now: the host may revoke a block at any moment (revoked.h). */
static bool change_state(struct block *block, enum block_state from, enum block_state to)
{
	return atomic_compare_exchange_strong_explicit(&block->state, &from, to,
						       memory_order_relaxed, memory_order_relaxed);
}

static void partial_add(struct slab *slab, struct block *block)
{
	block->is_partial = true;
	block->prev = NULL;
	block->next = slab->partial;
	if (block->next)
		block->next->prev = block;
	slab->partial = block;
}

static void partial_remove(struct slab *slab, struct block *block)
{
	block->is_partial = false;
	if (block->prev)
		block->prev->next = block->next;
	else
		slab->partial = block->next;
	if (block->next)
		block->next->prev = block->prev;
}

/* What the slab counts as free of the block. */
static void count_free(struct slab *slab, struct block *block, uint32_t n)
{
	counter_add(&slab->n_free, (uint64_t)n - block->n_free);
	block->n_free = n;
}

static uint32_t slot_of(const struct block *block, const struct record *record)
{
	return (uint32_t)(((const uint8_t *)record - block->addr) / block->table->stride);
}

/* From the worker's number, which is part of its timestamps; the manager's is 0. */
static uint32_t part_of(uint64_t ts)
{
	return (uint32_t)ts % SLAB_PARTS;
}

/*
 * A reader that found a record before its insert was taken back may hold its lock for the moment it
 * needs to see that; then the next slot is taken.
 */
static struct record *block_alloc(struct block *block, uint64_t ts)
{
	uint32_t n_words = (block->n_slots + 63) / 64;
	bool passed = false;
	uint64_t seen;

	for (uint32_t w = block->first_word; w < n_words; w++) {
		uint32_t n_bits = w == n_words - 1 && block->n_slots % 64 ? block->n_slots % 64 :
									    64;
		uint64_t all = n_bits == 64 ? UINT64_MAX : (1ull << n_bits) - 1;

		for (uint64_t free = ~block->used[w] & all; free; free &= free - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(free);
			struct record *record = table_record(block, w * 64 + bit);

			if (!lock_try_exclusive(&record->lock, ts, &seen)) {
				passed = true;
				continue;
			}
			block->used[w] |= 1ull << bit;
			block->n_used++;
			if (!passed)
				block->first_word = w;
			return record;
		}
	}
	return NULL;
}

static struct record *slab_alloc(struct slab *slab, uint64_t ts)
{
	struct record *record = NULL;

	/* While memory is short most slabs have none: their locks are not taken in vain. */
	if (!counter_read(&slab->n_free))
		return NULL;
	pthread_mutex_lock(&slab->lock);
	for (struct block *block = slab->partial, *next; block && !record; block = next) {
		next = block->next;
		/* storage_block_forget will take it off the list. */
		if (block->state == BLOCK_REVOKED)
			continue;
		record = block_alloc(block, ts);
		if (!record)
			continue;
		counter_add(&slab->n_used, 1);
		count_free(slab, block, block->n_free - 1);
		if (block->n_used == block->n_slots)
			partial_remove(slab, block);
	}
	pthread_mutex_unlock(&slab->lock);
	return record;
}

/* From the worker's own part first. */
static struct record *node_alloc(struct oltp_table *table, uint32_t node, uint64_t ts)
{
	struct record *record = NULL;

	for (uint32_t i = 0; !record && i < SLAB_PARTS; i++)
		record = slab_alloc(&table->slabs[node][(part_of(ts) + i) % SLAB_PARTS], ts);
	return record;
}

struct record *storage_slot_alloc_present(struct oltp_table *table, uint32_t node, uint64_t ts)
{
	struct record *record = node_alloc(table, node, ts);

	for (uint32_t other = 0; !record && other < OLTP_NODES_MAX; other++)
		record = node_alloc(table, other, ts);
	return record;
}

/* Takes a block for the slab and opens it. False: there is none. */
static bool slab_grow(struct storage *storage, struct oltp_table *table, uint32_t node,
		      uint32_t part)
{
	struct block *block = storage_block_take(storage, table, node, part);
	struct slab *slab;

	if (!block)
		return false;
	/* Touches all pages now, so that no page fault happens under the slab's lock. */
	for (size_t at = 0; at < OLTP_MEM_BLOCK_BYTES; at += PAGE_BYTES)
		*(volatile uint8_t *)(block->addr + at) = 0;
	for (uint32_t slot = 0; block->is_dirty && slot < block->n_slots; slot++)
		atomic_store_explicit(&table_record(block, slot)->lock, 0, memory_order_relaxed);
	slab = slab_of(block);
	atomic_fetch_or_explicit(&table->slab_nodes, 1u << block->node, memory_order_relaxed);
	pthread_mutex_lock(&slab->lock);
	if (change_state(block, BLOCK_UNUSED, BLOCK_OPEN)) {
		count_free(slab, block, block->n_slots);
		partial_add(slab, block);
	}
	pthread_mutex_unlock(&slab->lock);
	return true;
}

struct record *storage_slot_alloc(struct storage *storage, struct oltp_table *table, uint32_t node,
				  uint64_t ts)
{
	uint32_t part = part_of(ts);
	struct record *record;

	do {
		/* If memory is bounded, free slots of other parts come before a new block. */
		record = storage->ops ? node_alloc(table, node, ts) :
					slab_alloc(&table->slabs[node][part], ts);
	} while (!record && slab_grow(storage, table, node, part));
	/* The table may have free slots on another node, or in a block that another worker took. */
	return record ?: storage_slot_alloc_present(table, node, ts);
}

bool storage_grow(struct storage *storage, struct oltp_table *table, uint32_t node)
{
	return slab_grow(storage, table, node, part_of(LOCK_TS_MANAGER));
}

static void slot_clear(struct slab *slab, struct block *block, uint32_t slot)
{
	/* The whole block has gone out of the books. */
	if (block->is_forgotten)
		return;
	block->used[slot / 64] &= ~(1ull << slot % 64);
	block->n_used--;
	if (slot / 64 < block->first_word)
		block->first_word = slot / 64;
	counter_add(&slab->n_used, -1ull);
	if (block->state != BLOCK_OPEN)
		return;
	count_free(slab, block, block->n_free + 1);
	if (!block->is_partial)
		partial_add(slab, block);
}

void storage_slot_free(struct storage *storage, struct record *record)
{
	struct block *block = storage_block_of(storage, record);
	struct slab *slab = slab_of(block);

	pthread_mutex_lock(&slab->lock);
	slot_clear(slab, block, slot_of(block, record));
	pthread_mutex_unlock(&slab->lock);
}

struct block *storage_block_of(const struct storage *storage, const void *addr)
{
	return block_map_get(&storage->map, addr);
}

/* Each count is in a cache line of its own, and most machines have few of the nodes. */
static bool has_slabs(const struct oltp_table *table, uint32_t node)
{
	return atomic_load_explicit(&table->slab_nodes, memory_order_relaxed) >> node & 1;
}

uint64_t storage_free_slots(const struct oltp_table *table)
{
	uint64_t n = 0;

	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++) {
		if (!has_slabs(table, node))
			continue;
		for (uint32_t part = 0; part < SLAB_PARTS; part++)
			n += counter_read(&table->slabs[node][part].n_free);
	}
	return n;
}

uint64_t storage_used_slots_node(const struct oltp_table *table, uint32_t node)
{
	uint64_t n = 0;

	if (!has_slabs(table, node))
		return 0;
	for (uint32_t part = 0; part < SLAB_PARTS; part++)
		n += counter_read(&table->slabs[node][part].n_used);
	return n;
}

uint64_t storage_used_slots(const struct oltp_table *table)
{
	uint64_t n = 0;

	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		n += storage_used_slots_node(table, node);
	return n;
}

static uint32_t copy_used(const struct block *block, uint64_t *ret_used)
{
	memcpy(ret_used, block->used, (block->n_slots + 63) / 64 * sizeof(*ret_used));
	return block->n_used;
}

uint32_t storage_block_close(struct block *block, uint64_t *ret_used)
{
	struct slab *slab = slab_of(block);
	uint32_t n;

	pthread_mutex_lock(&slab->lock);
	if (change_state(block, BLOCK_OPEN, BLOCK_CLOSED)) {
		count_free(slab, block, 0);
		if (block->is_partial)
			partial_remove(slab, block);
	}
	n = copy_used(block, ret_used);
	pthread_mutex_unlock(&slab->lock);
	return n;
}

uint32_t storage_block_look(struct block *block, uint64_t *ret_used)
{
	struct slab *slab = slab_of(block);
	uint32_t n;

	pthread_mutex_lock(&slab->lock);
	n = copy_used(block, ret_used);
	pthread_mutex_unlock(&slab->lock);
	return n;
}

void storage_block_reopen(struct block *block)
{
	struct slab *slab = slab_of(block);

	pthread_mutex_lock(&slab->lock);
	if (change_state(block, BLOCK_CLOSED, BLOCK_OPEN)) {
		count_free(slab, block, block->n_slots - block->n_used);
		if (block->n_used < block->n_slots)
			partial_add(slab, block);
	}
	pthread_mutex_unlock(&slab->lock);
}

void storage_block_forget(struct block *block)
{
	struct slab *slab = slab_of(block);

	pthread_mutex_lock(&slab->lock);
	block->is_forgotten = true;
	count_free(slab, block, 0);
	counter_add(&slab->n_used, -(uint64_t)block->n_used);
	if (block->is_partial)
		partial_remove(slab, block);
	pthread_mutex_unlock(&slab->lock);
}

bool storage_block_retire(struct storage *storage, struct block *block)
{
	struct slab *slab = slab_of(block);
	bool is_empty;

	pthread_mutex_lock(&slab->lock);
	is_empty = !block->n_used && change_state(block, BLOCK_CLOSED, BLOCK_UNUSED);
	pthread_mutex_unlock(&slab->lock);
	if (is_empty)
		storage_block_drop(storage, block);
	return is_empty;
}
