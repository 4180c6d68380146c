// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_checkpoint.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cold_checkpoint.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/txn/engine.h"

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
	memcpy(block->checks, rows->checks, rows->n * sizeof(*rows->checks));
	for (uint32_t i = 0; i < rows->n; i++)
		atomic_init(&block->keys[i], rows->keys[i]);
	block->number = number;
	block->table = rows->table;
	block->base = rows->offset - offsetof(struct cold_head, key);
	block->stride = rows->row_bytes;
	block->n = rows->n;
	atomic_store_explicit(&block->live, rows->n, memory_order_relaxed);
	atomic_fetch_add_explicit(&cold->books_bytes, books_bytes(block), memory_order_relaxed);
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
static void replace(struct cold *cold, const struct index_ref *ref, uint64_t stub)
{
	struct cold_block *before = cold_stub_block(cold, ref->entry);

	index_ref_move(ref, stub);
	atomic_fetch_sub_explicit(&cold->counters.records, 1, memory_order_relaxed);
	cold_block_unlive(cold, before, 1);
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
		if (rc == -EEXIST) {
			replace(cold, &ref, stub);
			rc = 0;
		}
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
		part.n = rows->n - first < COLD_SLOTS_MAX ? rows->n - first : COLD_SLOTS_MAX;
		rc = block_add(cold, &part);
	}
	return rc;
}

static uint64_t blocks_count(const struct cold *cold)
{
	return atomic_load_explicit(&cold->checkpoint.n_blocks, memory_order_acquire);
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
	atomic_fetch_sub_explicit(&cold->books_bytes, books_bytes(block), memory_order_relaxed);
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
