// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buffers of workers: see log_private.h. A worker fills one chunk after the other, each of one
 * epoch; the log thread takes those of closed epochs. A lock is taken once per chunk.
 */
#include <errno.h>
#include <stdlib.h>

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
	log_chunks_push(&buffer->chunks, chunk);
	pthread_mutex_unlock(&buffer->lock);
	return 0;
}

void log_buffer_take(struct log_buffer *buffer, uint64_t epoch, struct log_chunk_list *list)
{
	struct log_chunk_list empty;
	struct log_chunk *chunk;

	log_chunks_init(&empty);
	pthread_mutex_lock(&buffer->lock);
	while ((chunk = buffer->chunks.head) && chunk->epoch <= epoch) {
		buffer->chunks.head = chunk->next;
		if (!chunk->next)
			buffer->chunks.tail = &buffer->chunks.head;
		log_chunks_push(chunk->used ? list : &empty, chunk);
	}
	pthread_mutex_unlock(&buffer->lock);
	log_chunks_release(buffer->log, &empty);
}

void log_chunks_release(struct log *log, struct log_chunk_list *list)
{
	struct log_chunk *chunk;

	while ((chunk = list->head)) {
		list->head = chunk->next;
		atomic_fetch_sub_explicit(&chunk->owner->outstanding, chunk->room,
					  memory_order_release);
		log_chunk_drop(log, chunk);
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
	pthread_mutex_destroy(&buffer->lock);
	free(buffer);
}
