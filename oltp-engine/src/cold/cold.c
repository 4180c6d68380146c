// SPDX-License-Identifier: GPL-2.0-or-later
/* The books of records on disk: see cold.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cold.h"
#include "cold_checkpoint.h"
#include "fetch.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"

/*
 * Extents that are kept for compaction: one to write to, and one more in case that an extent did
 * not get empty because one of its records was in use all the time.
 */
#define RESERVE		2u

int cold_create(struct oltp_engine *engine, const char *dir, uint64_t bytes_max,
		struct cold **ret_cold)
{
	struct cold *cold = calloc(1, sizeof(*cold));
	int rc;

	if (!cold)
		return -ENOMEM;
	cold->engine = engine;
	rc = dir ? cold_file_open(&cold->file, dir, bytes_max) :
		   cold_file_open_in_volume(&cold->file, engine->volume, bytes_max);
	if (rc) {
		free(cold);
		return rc;
	}
	pthread_mutex_init(&cold->lock, NULL);
	atomic_store_explicit(&cold->books_bytes, sizeof(*cold), memory_order_relaxed);
	*ret_cold = cold;
	return 0;
}

static void block_books_free(struct cold_block *block)
{
	cold_checkpoint_books_free(block);
	free(block->keys);
	free(block->used);
	free(block->checks);
}

void cold_destroy(struct cold *cold)
{
	if (!cold)
		return;
	/* Reads in flight pin blocks. */
	fetchers_left_free(cold);
	for (uint32_t i = 0; i < COLD_LEAVES; i++) {
		struct cold_leaf *leaf = atomic_load_explicit(&cold->leaves[i],
							      memory_order_relaxed);

		for (uint32_t b = 0; leaf && b < COLD_LEAF_BLOCKS; b++)
			block_books_free(&leaf->blocks[b]);
		free(leaf);
	}
	cold_file_close(&cold->file);
	pthread_mutex_destroy(&cold->lock);
	free(cold);
}

struct cold_block *cold_block_get(const struct cold *cold, uint64_t number)
{
	/* Pairs with the release in cold_leaf_make. */
	struct cold_leaf *leaf = atomic_load_explicit(&cold->leaves[number / COLD_LEAF_BLOCKS],
						      memory_order_acquire);

	return &leaf->blocks[number % COLD_LEAF_BLOCKS];
}

struct cold_block *cold_stub_block(const struct cold *cold, uint64_t entry)
{
	return cold_block_get(cold, (entry & INDEX_ADDR_MASK) >> (COLD_SLOT_BITS + 1));
}

uint64_t cold_last_use(const struct cold_block *block, uint32_t slot, uint64_t now)
{
	uint32_t used = atomic_load_explicit(&block->used[slot], memory_order_relaxed);
	uint32_t age = ((uint32_t)now - used) & ~COLD_TAKEN;

	if (!(used & ~COLD_TAKEN))
		return 0;
	/* Modulo 2^31: the larger half of the differences are uses in epochs to come. */
	return age < COLD_TAKEN / 2 ? now - age : now;
}

bool cold_was_taken(const struct cold_block *block, uint32_t slot)
{
	return atomic_load_explicit(&block->used[slot], memory_order_relaxed) & COLD_TAKEN;
}

static bool stub_has_key(void *ctx, uint64_t entry, uint64_t key)
{
	const struct cold_block *block = cold_stub_block(ctx, entry);

	return atomic_load_explicit(&block->keys[cold_stub_slot(entry)], memory_order_relaxed) ==
	       key;
}

void cold_table_init(struct oltp_table *table)
{
	if (table->engine->cold)
		index_stubs_init(&table->index, table->engine->cold, stub_has_key);
}

uint32_t cold_stride(const struct oltp_table *table)
{
	return (uint32_t)((sizeof(struct cold_head) + table->record_bytes + 7) & ~7ul);
}

uint32_t cold_slots(const struct oltp_table *table)
{
	uint32_t n = COLD_EXTENT_BYTES / cold_stride(table);

	return n < COLD_SLOTS_MAX ? n : COLD_SLOTS_MAX;
}

bool cold_has_room(struct cold *cold, const struct oltp_table *table)
{
	/* The last block of an offer is taken, too: an offer that is left seems unwanted. */
	return storage_spare_bytes(&cold->engine->storage) >= OLTP_MEM_BLOCK_BYTES ||
	       storage_free_slots(table) > room_reserved(table) + cold_slots(table);
}

struct cold_place cold_stub_place(const struct cold *cold, uint64_t entry)
{
	const struct cold_block *block = cold_stub_block(cold, entry);
	uint32_t align = block->checks ? COLD_CHECKPOINT_ALIGN : cold->file.align;
	uint64_t mask = align - 1ull;
	uint64_t at = block->base + (uint64_t)cold_stub_slot(entry) * block->stride;
	uint64_t from = at & ~mask, end = at + cold_stride(block->table);

	return (struct cold_place){
		.file = block->checks ? &cold->checkpoint.file : NULL,
		.offset = from,
		.bytes = (uint32_t)(((end + mask) & ~mask) - from),
		.lead = (uint32_t)(at - from),
		.align = align,
	};
}

void *cold_buffer_alloc(const struct cold *cold, size_t bytes)
{
	size_t align = cold->file.align > COLD_CHECKPOINT_ALIGN ? cold->file.align :
								  COLD_CHECKPOINT_ALIGN;

	return aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
}

int cold_leaf_make(struct cold *cold, uint64_t number)
{
	struct cold_leaf *_Atomic *leaf = &cold->leaves[number / COLD_LEAF_BLOCKS];
	struct cold_leaf *new;

	if (atomic_load_explicit(leaf, memory_order_relaxed))
		return 0;
	new = calloc(1, sizeof(*new));
	if (!new)
		return -ENOMEM;
	atomic_fetch_add_explicit(&cold->books_bytes, sizeof(*new), memory_order_relaxed);
	/* Pairs with the acquire in cold_block_get. */
	atomic_store_explicit(leaf, new, memory_order_release);
	return 0;
}

/* A block whose extent was never used. */
static int number_new(struct cold *cold, struct cold_block **ret_block)
{
	uint64_t offset;
	int rc = 0;

	if (cold->n_numbers == COLD_NUMBERS_MAX)
		return -ENOSPC;
	if ((cold->n_numbers + 1) * COLD_EXTENT_BYTES > cold->file.bytes)
		rc = cold_file_grow(&cold->file);
	if (!rc)
		rc = cold_file_place(&cold->file, cold->n_numbers, &offset);
	if (!rc)
		rc = cold_leaf_make(cold, cold->n_numbers);
	if (rc)
		return rc;
	*ret_block = cold_block_get(cold, cold->n_numbers);
	(*ret_block)->number = cold->n_numbers++;
	(*ret_block)->base = offset;
	/* What an opening of the volume before this one has left there never counts. */
	(*ret_block)->generation = cold->file.life << 32;
	return 0;
}

static int keys_reserve(struct cold *cold, struct cold_block *block, uint32_t n)
{
	_Atomic uint64_t *keys;
	_Atomic uint32_t *used;

	if (block->keys_room >= n)
		return 0;
	keys = malloc(n * sizeof(*keys));
	used = malloc(n * sizeof(*used));
	if (!keys || !used) {
		free(keys);
		free(used);
		return -ENOMEM;
	}
	atomic_fetch_add_explicit(&cold->books_bytes,
				  (n - block->keys_room) * (sizeof(*keys) + sizeof(*used)),
				  memory_order_relaxed);
	block_books_free(block);
	block->keys = keys;
	block->used = used;
	block->keys_room = n;
	return 0;
}

static void block_free(struct cold *cold, struct cold_block *block)
{
	block->next = cold->free;
	cold->free = block;
}

static int block_take(struct cold *cold, struct cold_block **ret_block)
{
	if (!cold->free)
		return number_new(cold, ret_block);
	*ret_block = cold->free;
	cold->free = cold->free->next;
	return 0;
}

static int reserve_fill(struct cold *cold)
{
	int rc = 0;

	while (cold->n_reserve < RESERVE) {
		struct cold_block *block;

		rc = block_take(cold, &block);
		if (rc)
			break;
		block->next = cold->reserve;
		cold->reserve = block;
		cold->n_reserve++;
	}
	return rc;
}

int cold_block_alloc(struct cold *cold, struct oltp_table *table, bool is_compaction,
		     struct cold_block **ret_block)
{
	struct cold_block *block;
	int rc;

	pthread_mutex_lock(&cold->lock);
	rc = reserve_fill(cold);
	if (!rc)
		rc = block_take(cold, &block);
	if (rc && is_compaction && cold->n_reserve) {
		block = cold->reserve;
		cold->reserve = block->next;
		cold->n_reserve--;
		rc = 0;
	}
	if (!rc) {
		rc = keys_reserve(cold, block, cold_slots(table));
		if (rc)
			block_free(cold, block);
	}
	if (!rc) {
		cold->n_used++;
		block->table = table;
		block->stride = cold_stride(table);
		block->n = 0;
		block->generation++;
		atomic_store_explicit(&block->lent_ns, 0, memory_order_relaxed);
		*ret_block = block;
	}
	pthread_mutex_unlock(&cold->lock);
	return rc;
}

void cold_block_give_up(struct cold *cold, struct cold_block *block)
{
	pthread_mutex_lock(&cold->lock);
	cold->n_used--;
	block_free(cold, block);
	pthread_mutex_unlock(&cold->lock);
}

void cold_extents_count(struct cold *cold, uint64_t *ret_numbers, uint64_t *ret_used,
			uint64_t *ret_left)
{
	uint64_t used;

	pthread_mutex_lock(&cold->lock);
	*ret_numbers = cold->n_numbers;
	*ret_used = cold->n_used;
	*ret_left = cold_file_extents_max(&cold->file);
	used = cold->n_used + cold->n_reserve;
	*ret_left -= used < *ret_left ? used : *ret_left;
	pthread_mutex_unlock(&cold->lock);
}

void cold_block_unlive(struct cold *cold, struct cold_block *block, uint32_t n)
{
	/* Acquire and release: the thread that retires the block comes after all others. */
	if (!n || atomic_fetch_sub_explicit(&block->live, n, memory_order_acq_rel) != n)
		return;
	pthread_mutex_lock(&cold->lock);
	block->retired = 0;
	block->next = cold->retired;
	cold->retired = block;
	pthread_mutex_unlock(&cold->lock);
}

void cold_evict_begin(struct cold *cold, struct cold_block *block)
{
	atomic_store_explicit(&block->live, block->n, memory_order_relaxed);
	atomic_fetch_add_explicit(&cold->counters.records, block->n, memory_order_relaxed);
}

void cold_evict_end(struct cold *cold, struct cold_block *block, uint32_t n)
{
	struct cold_counters *c = &cold->counters;
	uint32_t n_not = block->n - n;

	atomic_fetch_sub_explicit(&c->records, n_not, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->evicted_records, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->evicted_bytes, (uint64_t)n * block->table->record_bytes,
				  memory_order_relaxed);
	cold_block_unlive(cold, block, n_not);
}

void cold_evict_until(struct cold *cold, const struct oltp_table *table, uint64_t stamp)
{
	atomic_store_explicit(&cold->evicted_stamps[table->id], stamp, memory_order_relaxed);
}

void cold_write_failed(struct cold *cold, struct cold_block *block)
{
	atomic_fetch_add_explicit(&cold->counters.write_errors, 1, memory_order_relaxed);
	cold_block_give_up(cold, block);
}

void cold_read_failed(struct cold *cold)
{
	atomic_fetch_add_explicit(&cold->counters.read_errors, 1, memory_order_relaxed);
}

void cold_buffers_add(struct cold *cold, uint64_t bytes)
{
	atomic_fetch_add_explicit(&cold->buffer_bytes, bytes, memory_order_relaxed);
}

/* Another node may be about to read from it. Where extents run short that node has to ask again. */
static bool is_lent(const struct cold *cold, const struct cold_block *block, uint64_t now_ns)
{
	uint64_t lent_ns = atomic_load_explicit(&block->lent_ns, memory_order_relaxed);

	return lent_ns && !cold->file.is_full && now_ns < lent_ns + COLD_LENT_NS;
}

void cold_reclaim(struct cold *cold)
{
	struct cold_block **at, *block;
	uint64_t epoch, now_ns;

	pthread_mutex_lock(&cold->lock);
	if (!cold->retired)
		goto out_unlock;
	epoch = epoch_advance(&cold->engine->epoch);
	now_ns = clock_now_ns();
	for (at = &cold->retired; (block = *at);) {
		if (!block->retired)
			block->retired = epoch;
		if (atomic_load_explicit(&block->pins, memory_order_acquire) ||
		    !epoch_has_passed(&cold->engine->epoch, block->retired) ||
		    is_lent(cold, block, now_ns)) {
			at = &block->next;
			continue;
		}
		*at = block->next;
		if (block->checks) {
			cold_checkpoint_retire(cold, block);
			continue;
		}
		cold->n_used--;
		block_free(cold, block);
	}
out_unlock:
	pthread_mutex_unlock(&cold->lock);
}

bool cold_pin(struct cold *cold, const struct index_ref *ref)
{
	struct cold_block *block = cold_stub_block(cold, ref->entry);

	atomic_fetch_add_explicit(&block->pins, 1, memory_order_seq_cst);
	if (index_ref_is_live(ref))
		return true;
	cold_unpin(block);
	return false;
}

void cold_unpin(struct cold_block *block)
{
	/* Pairs with the acquire in cold_reclaim: what was read was read before. */
	atomic_fetch_sub_explicit(&block->pins, 1, memory_order_release);
}

static uint64_t seed_of(const struct cold_block *block, uint32_t slot, uint64_t key)
{
	return key ^ (block->number << COLD_SLOT_BITS | slot) * 0xd6e8feb86659fd93ull ^
	       block->generation * 0x9e3779b97f4a7c15ull;
}

bool cold_lend(struct cold *cold, uint64_t entry, uint64_t now_ns, struct oltp_place *ret_place)
{
	struct cold_block *block = cold_stub_block(cold, entry);
	uint32_t slot = cold_stub_slot(entry);

	if (block->checks)
		return false;
	atomic_store_explicit(&block->lent_ns, now_ns, memory_order_relaxed);
	*ret_place = (struct oltp_place){
		.offset = block->base + (uint64_t)slot * block->stride,
		.seed = seed_of(block, slot, atomic_load_explicit(&block->keys[slot],
								  memory_order_relaxed)),
	};
	return true;
}

void cold_record_write(struct cold_block *block, uint32_t slot, uint8_t *buffer, uint64_t key,
		       uint32_t used, const void *data)
{
	uint8_t *at = buffer + (size_t)slot * cold_stride(block->table);

	atomic_store_explicit(&block->keys[slot], key, memory_order_relaxed);
	atomic_store_explicit(&block->used[slot], used, memory_order_relaxed);
	memcpy(at, &(struct cold_head){ .key = key }, sizeof(struct cold_head));
	memcpy(at + sizeof(struct cold_head), data, block->table->record_bytes);
}

static void record_seal(const struct cold_block *block, uint32_t slot, uint8_t *buffer)
{
	uint8_t *at = buffer + (size_t)slot * cold_stride(block->table);
	struct cold_head head;

	memcpy(&head, at, sizeof(head));
	head.check = checksum(at + sizeof(head), block->table->record_bytes,
			      seed_of(block, slot, head.key));
	memcpy(at, &head, sizeof(head));
}

uint32_t cold_block_seal(const struct cold *cold, struct cold_block *block, uint32_t n,
			 uint8_t *buffer)
{
	uint64_t mask = cold->file.align - 1ull;

	for (uint32_t i = 0; i < n; i++)
		record_seal(block, i, buffer);
	block->n = n;
	return (uint32_t)((n * (uint64_t)cold_stride(block->table) + mask) & ~mask);
}

const void *cold_record_check(const struct cold_block *block, uint32_t slot, const uint8_t *at)
{
	struct cold_head head;
	uint64_t key = atomic_load_explicit(&block->keys[slot], memory_order_relaxed);

	if (block->checks)
		return cold_checkpoint_check(block, slot, at);
	memcpy(&head, at, sizeof(head));
	at += sizeof(head);
	if (head.key != key ||
	    head.check != checksum(at, block->table->record_bytes, seed_of(block, slot, key)))
		return NULL;
	return at;
}
