// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buffers of workers: see log_private.h. A worker fills one chunk after the other, each of one
 * epoch; the log thread takes those of closed epochs. A lock is taken once per chunk.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log_private.h"

int log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes)
{
	struct log_chunk *chunk = log_chunk_make(buffer->log, bytes);
	uint64_t outstanding;

	if (!chunk)
		return -ENOMEM;
	chunk->epoch = epoch;
	chunk->used = chunk->n_entries = 0;
	chunk->owner = buffer;
	outstanding = atomic_fetch_add_explicit(&buffer->outstanding, chunk->room,
						memory_order_relaxed) + chunk->room;
	buffer->is_full = outstanding >= LOG_OUTSTANDING_MAX;
	buffer->chunk = chunk;
	buffer->chunk_epoch = epoch;
	buffer->room = chunk->room;
	/* The epoch is not announced: if it is closed, the chunk is the log thread's as of here. */
	pthread_mutex_lock(&buffer->lock);
	/* Not before: the log thread may be at the chunk in which an append was left. */
	buffer->whole = 0;
	log_chunks_push(&buffer->chunks, chunk);
	pthread_mutex_unlock(&buffer->lock);
	return 0;
}

static void chunk_release(struct log *log, struct log_chunk *chunk)
{
	atomic_fetch_sub_explicit(&chunk->owner->outstanding, chunk->room, memory_order_release);
	log_chunk_drop(log, chunk);
}

/* What an append that was left wrote to, once its worker does so no more. */
static void left_settle(struct log_buffer *buffer)
{
	if (!buffer->left ||
	    atomic_load_explicit(&buffer->announced, memory_order_acquire) == LOG_LEFT)
		return;
	chunk_release(buffer->log, buffer->left);
	buffer->left = NULL;
}

/* Entries that are whole, of a chunk to whose end the worker is still writing. */
static void copy_whole(const struct log_chunk *chunk, uint32_t bytes, struct log_chunk *copy)
{
	memcpy(copy->data, chunk->data, bytes);
	copy->epoch = chunk->epoch;
	copy->owner = chunk->owner;
	copy->used = bytes;
	copy->n_entries = 0;
	for (uint32_t at = 0; at < bytes;) {
		const struct log_entry *entry = (const struct log_entry *)(copy->data + at);

		if (!copy->n_entries++)
			copy->csn_first = entry->csn;
		copy->csn_last = entry->csn;
		at += entry->bytes;
	}
	atomic_fetch_add_explicit(&copy->owner->outstanding, copy->room, memory_order_relaxed);
}

/*
 * Under the lock: the append under way, if it has not ended by now, is left. It is to the last of
 * the chunks, or to one that was taken before its worker looked at the epoch again. *ret_copy takes
 * the place of the last one, if that was left. False: out of memory.
 */
static bool append_leave(struct log_buffer *buffer, uint64_t epoch, struct log_chunk **ret_copy)
{
	uint64_t announced = atomic_load_explicit(&buffer->announced, memory_order_acquire);
	struct log_chunk *last = buffer->chunks.head, *copy = NULL;

	*ret_copy = NULL;
	if (likely(!announced || announced > epoch))
		return true;
	while (last && last->next)
		last = last->next;
	if (last) {
		copy = log_chunk_make(buffer->log, last->room);
		if (!copy)
			return false;
	}
	if (atomic_compare_exchange_strong_explicit(&buffer->announced, &announced, LOG_LEFT,
						    memory_order_acq_rel, memory_order_acquire)) {
		if (last)
			copy_whole(last, buffer->whole, copy);
		*ret_copy = copy;
	} else if (copy) {
		log_chunk_drop(buffer->log, copy);
	}
	return true;
}

bool log_buffer_take(struct log_buffer *buffer, uint64_t epoch, struct log_chunk_list *list)
{
	struct log_chunk *chunk, *copy;
	struct log_chunk_list empty;

	log_chunks_init(&empty);
	left_settle(buffer);
	pthread_mutex_lock(&buffer->lock);
	if (!append_leave(buffer, epoch, &copy)) {
		pthread_mutex_unlock(&buffer->lock);
		return false;
	}
	while ((chunk = buffer->chunks.head) && chunk->epoch <= epoch) {
		buffer->chunks.head = chunk->next;
		if (!chunk->next)
			buffer->chunks.tail = &buffer->chunks.head;
		if (unlikely(copy && !chunk->next)) {
			buffer->left = chunk;
			chunk = copy;
		}
		log_chunks_push(chunk->used ? list : &empty, chunk);
	}
	pthread_mutex_unlock(&buffer->lock);
	log_chunks_release(buffer->log, &empty);
	return true;
}

void log_chunks_release(struct log *log, struct log_chunk_list *list)
{
	struct log_chunk *chunk;

	while ((chunk = list->head)) {
		list->head = chunk->next;
		chunk_release(log, chunk);
	}
	log_chunks_init(list);
}

int log_buffer_create(struct log *log, struct log_buffer **ret_buffer)
{
	struct log_buffer *buffer = aligned_alloc(CACHE_PAD_BYTES, sizeof(*buffer));

	if (!buffer)
		return -ENOMEM;
	*buffer = (struct log_buffer){ .log = log };
	pthread_mutex_init(&buffer->lock, NULL);
	log_chunks_init(&buffer->chunks);
	pthread_mutex_lock(&log->lock);
	buffer->next = log->buffers;
	log->buffers = buffer;
	pthread_mutex_unlock(&log->lock);
	*ret_buffer = buffer;
	return 0;
}

void log_buffer_leave(struct log_buffer *buffer)
{
	struct log *log;

	if (!buffer)
		return;
	log = buffer->log;
	pthread_mutex_lock(&log->lock);
	buffer->is_orphan = true;
	pthread_mutex_unlock(&log->lock);
}

bool log_buffer_is_empty(const struct log_buffer *buffer)
{
	/* Acquire pairs with the release of chunks: nobody looks at the buffer any more. */
	return !atomic_load_explicit(&buffer->outstanding, memory_order_acquire);
}

void log_buffer_free(struct log_buffer *buffer)
{
	struct log_chunk *chunk;

	while ((chunk = buffer->chunks.head)) {
		buffer->chunks.head = chunk->next;
		log_chunk_drop(buffer->log, chunk);
	}
	if (buffer->left)
		log_chunk_drop(buffer->log, buffer->left);
	pthread_mutex_destroy(&buffer->lock);
	free(buffer);
}
