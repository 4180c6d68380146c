// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_checkpoint.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cold_checkpoint.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/txn/engine.h"

/* Rows of which more has changed are read at once. */
#define PATCH_BYTES_MAX	(64ull << 20)

/* How many buckets of the index are fetched ahead. */
#define AHEAD		16u

int cold_checkpoint_open(struct cold *cold, const struct io_files *io, const char *path,
			 uint64_t number)
{
	struct cold_checkpoint *c = &cold->checkpoint;
	int fd = io_open_direct(io, path, O_RDONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return fd;
	c->file = (struct io_file){ *io, fd };
	c->is_open = true;
	c->n_left = 1;
	/* Pairs with the acquire in cold_checkpoint_number. */
	atomic_store_explicit(&c->number, number, memory_order_release);
	return 0;
}

uint64_t cold_checkpoint_number(const struct cold *cold)
{
	return atomic_load_explicit(&cold->checkpoint.number, memory_order_acquire);
}

static uint64_t books_bytes(const struct cold_block *block)
{
	return (uint64_t)block->n *
	       (sizeof(*block->keys) + sizeof(*block->used) + sizeof(*block->checks));
}

static uint64_t sorts_bytes(const struct cold_block *block)
{
	return block->sorts ? (uint64_t)block->n * block->table->n_keyed * sizeof(uint64_t) : 0;
}

static const uint64_t *sorts_of(const struct cold_block *block, uint32_t slot)
{
	return block->sorts ? block->sorts + (size_t)slot * block->table->n_keyed : NULL;
}

/* A block of at most COLD_SLOTS_MAX rows, with its books; no stub points to it yet. */
static int block_make(struct cold *cold, const struct cold_checkpoint_rows *rows,
		      struct cold_block **ret_block)
{
	uint64_t number = COLD_NUMBERS_MAX + counter_read(&cold->checkpoint.n_blocks);
	struct cold_block *block;
	int rc;

	if (number == (uint64_t)COLD_LEAVES * COLD_LEAF_BLOCKS)
		return -ENOSPC;
	pthread_mutex_lock(&cold->lock);
	rc = cold_leaf_make(cold, number);
	pthread_mutex_unlock(&cold->lock);
	if (rc)
		return rc;
	block = cold_block_get(cold, number);
	block->keys = malloc(rows->n * sizeof(*block->keys));
	block->used = calloc(rows->n, sizeof(*block->used));
	block->checks = malloc(rows->n * sizeof(*block->checks));
	if (!block->keys || !block->used || !block->checks)
		return -ENOMEM;
	if (rows->table->n_keyed) {
		size_t bytes = (size_t)rows->n * rows->table->n_keyed * sizeof(*block->sorts);

		block->sorts = malloc(bytes);
		if (!block->sorts)
			return -ENOMEM;
		memcpy(block->sorts, rows->sorts, bytes);
	}
	memcpy(block->checks, rows->checks, rows->n * sizeof(*rows->checks));
	for (uint32_t i = 0; i < rows->n; i++)
		atomic_init(&block->keys[i], rows->keys[i]);
	block->number = number;
	block->table = rows->table;
	block->base = rows->offset - offsetof(struct cold_head, key);
	block->stride = rows->row_bytes;
	block->n = rows->n;
	atomic_store_explicit(&block->live, rows->n, memory_order_relaxed);
	atomic_fetch_add_explicit(&cold->books_bytes, books_bytes(block) + sorts_bytes(block),
				  memory_order_relaxed);
	atomic_fetch_add_explicit(&cold->counters.records, rows->n, memory_order_relaxed);
	pthread_mutex_lock(&cold->lock);
	cold->checkpoint.n_left++;
	/* Pairs with the acquire in blocks_count: the block is there. */
	atomic_fetch_add_explicit(&cold->checkpoint.n_blocks, 1, memory_order_release);
	pthread_mutex_unlock(&cold->lock);
	*ret_block = block;
	return 0;
}

/*
 * A key that was deleted and added again while the checkpoint was made may have been met twice,
 * the second time as it was later.
 */
static int replace(struct cold *cold, const struct cold_checkpoint_rows *rows, uint32_t later,
		   const struct index_ref *ref, uint64_t stub)
{
	struct cold_block *before = cold_stub_block(cold, ref->entry);
	const size_t at = (size_t)later * rows->table->n_keyed;
	int rc = 0;

	index_ref_move(ref, stub);
	if (rows->replaced)
		rc = rows->replaced(rows->table, rows->keys[later],
				    sorts_of(before, cold_stub_slot(ref->entry)),
				    rows->sorts + at);
	atomic_fetch_sub_explicit(&cold->counters.records, 1, memory_order_relaxed);
	cold_block_unlive(cold, before, 1);
	return rc;
}

static int block_add(struct cold *cold, const struct cold_checkpoint_rows *rows)
{
	struct index *index = &rows->table->index;
	struct cold_block *block;
	int rc = block_make(cold, rows, &block);

	for (uint32_t i = 0; !rc && i < rows->n; i++) {
		uint64_t key = rows->keys[i], stub = cold_stub(block, i), version;
		struct record *existing;
		struct index_ref ref;

		if (i + AHEAD < rows->n)
			index_prefetch(index, index_hash(rows->keys[i + AHEAD]));
		rc = index_insert(index, (struct record *)(uintptr_t)stub, key, index_hash(key),
				  &ref, &existing, &version);
		if (rc == -EEXIST)
			rc = replace(cold, rows, i, &ref, stub);
	}
	return rc;
}

int cold_checkpoint_add(struct cold *cold, const struct cold_checkpoint_rows *rows)
{
	int rc = 0;

	for (uint32_t first = 0; !rc && first < rows->n; first += COLD_SLOTS_MAX) {
		struct cold_checkpoint_rows part = *rows;

		part.offset += (uint64_t)first * rows->row_bytes;
		part.keys += first;
		part.checks += first;
		if (part.sorts)
			part.sorts += (size_t)first * rows->table->n_keyed;
		part.n = rows->n - first < COLD_SLOTS_MAX ? rows->n - first : COLD_SLOTS_MAX;
		rc = block_add(cold, &part);
	}
	return rc;
}

/* A patch: the bytes of a record, then a bit for each that is set. */
static size_t patch_bytes(const struct oltp_table *table)
{
	return table->record_bytes + (table->record_bytes + 7ul) / 8;
}

/* False: there is no memory. */
static bool patches_make(struct cold *cold, struct cold_block *block)
{
	block->patches = calloc(block->n, sizeof(*block->patches));
	if (!block->patches)
		return false;
	block->patch_bytes = block->n * sizeof(*block->patches);
	cold->checkpoint.patch_bytes += block->patch_bytes;
	atomic_fetch_add_explicit(&cold->books_bytes, block->patch_bytes, memory_order_relaxed);
	return true;
}

uint8_t *cold_patch_get(struct cold *cold, uint64_t entry)
{
	uint32_t slot = cold_stub_slot(entry);
	struct cold_block *block;
	size_t bytes;

	if (!(entry & INDEX_STUB) || (entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return NULL;
	block = cold_stub_block(cold, entry);
	if (!block->checks)
		return NULL;
	if (block->patches && block->patches[slot])
		return block->patches[slot];
	bytes = patch_bytes(block->table);
	if (cold->checkpoint.patch_bytes + bytes > PATCH_BYTES_MAX ||
	    (!block->patches && !patches_make(cold, block)))
		return NULL;
	block->patches[slot] = calloc(1, bytes);
	if (!block->patches[slot])
		return NULL;
	block->patch_bytes += bytes;
	cold->checkpoint.patch_bytes += bytes;
	atomic_fetch_add_explicit(&cold->books_bytes, bytes, memory_order_relaxed);
	return block->patches[slot];
}

void cold_patch_set(uint8_t *patch, const struct oltp_table *table, uint32_t offset,
		    const void *data, uint32_t bytes)
{
	uint8_t *is_set = patch + table->record_bytes;

	memcpy(patch + offset, data, bytes);
	for (uint32_t i = offset; i < offset + bytes; i++)
		is_set[i / 8] |= (uint8_t)(1u << i % 8);
}

void cold_patch_apply(const struct cold_block *block, uint32_t slot, uint8_t *data)
{
	const uint32_t n = block->table->record_bytes;
	const uint8_t *patch = block->patches ? block->patches[slot] : NULL;

	for (uint32_t i = 0; patch && i < n; i++) {
		if (patch[n + i / 8] >> i % 8 & 1)
			data[i] = patch[i];
	}
}

void cold_checkpoint_books_free(struct cold_block *block)
{
	free(block->sorts);
	block->sorts = NULL;
	for (uint32_t i = 0; block->patches && i < block->n; i++)
		free(block->patches[i]);
	free(block->patches);
	block->patches = NULL;
	block->patch_bytes = 0;
}

static uint64_t blocks_count(const struct cold *cold)
{
	return atomic_load_explicit(&cold->checkpoint.n_blocks, memory_order_acquire);
}

bool cold_checkpoint_delete(struct cold *cold, struct oltp_table *table, uint64_t hash,
			    const struct index_ref *ref, const uint64_t **ret_sorts)
{
	struct cold_block *block;

	if (!(ref->entry & INDEX_STUB) || (ref->entry & INDEX_ADDR_MASK) == INDEX_REVOKED)
		return false;
	block = cold_stub_block(cold, ref->entry);
	if (!block->checks)
		return false;
	*ret_sorts = sorts_of(block, cold_stub_slot(ref->entry));
	index_remove(&table->index, hash, ref);
	atomic_fetch_sub_explicit(&cold->counters.records, 1, memory_order_relaxed);
	cold_block_unlive(cold, block, 1);
	return true;
}

void cold_checkpoint_redone(struct cold *cold)
{
	const uint64_t n = blocks_count(cold);

	pthread_mutex_lock(&cold->lock);
	for (uint64_t i = 0; i < n; i++) {
		struct cold_block *block = cold_block_get(cold, COLD_NUMBERS_MAX + i);

		if (!block->sorts)
			continue;
		atomic_fetch_sub_explicit(&cold->books_bytes, sorts_bytes(block),
					  memory_order_relaxed);
		free(block->sorts);
		block->sorts = NULL;
	}
	pthread_mutex_unlock(&cold->lock);
}

struct cold_block *cold_checkpoint_take(struct cold *cold, uint64_t *next)
{
	const uint64_t n = blocks_count(cold);
	struct cold_block *found = NULL;

	/* Under the lock it is either retired after it was pinned, or seen to be empty. */
	pthread_mutex_lock(&cold->lock);
	while (!found && *next < n) {
		struct cold_block *block = cold_block_get(cold, COLD_NUMBERS_MAX + (*next)++);

		if (block->is_unreadable ||
		    !atomic_load_explicit(&block->live, memory_order_acquire))
			continue;
		atomic_fetch_add_explicit(&block->pins, 1, memory_order_seq_cst);
		found = block;
	}
	pthread_mutex_unlock(&cold->lock);
	return found;
}

void cold_checkpoint_pass_over(struct cold *cold, struct cold_block *block)
{
	pthread_mutex_lock(&cold->lock);
	block->is_unreadable = true;
	pthread_mutex_unlock(&cold->lock);
}

uint64_t cold_checkpoint_rows(struct cold *cold)
{
	const uint64_t n = blocks_count(cold);
	uint64_t rows = 0;

	for (uint64_t i = 0; i < n; i++)
		rows += atomic_load_explicit(&cold_block_get(cold, COLD_NUMBERS_MAX + i)->live,
					     memory_order_relaxed);
	return rows;
}

uint32_t cold_checkpoint_extent(const struct cold_block *block, uint64_t *ret_offset)
{
	const uint64_t mask = COLD_CHECKPOINT_ALIGN - 1;
	uint64_t from = block->base & ~mask;
	uint64_t end = block->base + (block->n - 1ull) * block->stride + cold_stride(block->table);

	*ret_offset = from;
	return (uint32_t)(((end + mask) & ~mask) - from);
}

const void *cold_checkpoint_check(const struct cold_block *block, uint32_t slot,
				  const uint8_t *at)
{
	uint64_t key;

	at += offsetof(struct cold_head, key);
	memcpy(&key, at, sizeof(key));
	if (key != atomic_load_explicit(&block->keys[slot], memory_order_relaxed) ||
	    crc32c(0, at, block->stride) != block->checks[slot])
		return NULL;
	return at + sizeof(key);
}

/* Under the lock. */
static void close_file(struct cold_checkpoint *c)
{
	if (c->is_open)
		c->file.files.ops->close(c->file.files.ctx, c->file.fd);
	c->is_open = false;
	atomic_store_explicit(&c->number, 0, memory_order_release);
}

/* Under the lock. */
static void one_less(struct cold_checkpoint *c)
{
	if (!--c->n_left)
		close_file(c);
}

void cold_checkpoint_added(struct cold *cold)
{
	pthread_mutex_lock(&cold->lock);
	one_less(&cold->checkpoint);
	pthread_mutex_unlock(&cold->lock);
}

void cold_checkpoint_retire(struct cold *cold, struct cold_block *block)
{
	atomic_fetch_sub_explicit(&cold->books_bytes,
				  books_bytes(block) + sorts_bytes(block) + block->patch_bytes,
				  memory_order_relaxed);
	cold_checkpoint_books_free(block);
	free(block->keys);
	free(block->used);
	free(block->checks);
	block->keys = NULL;
	block->used = NULL;
	block->checks = NULL;
	one_less(&cold->checkpoint);
}

void cold_checkpoint_close(struct cold *cold)
{
	if (!cold)
		return;
	pthread_mutex_lock(&cold->lock);
	close_file(&cold->checkpoint);
	pthread_mutex_unlock(&cold->lock);
}
