// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buffers of workers: see log_private.h. A worker fills one chunk after the other, each of one
 * epoch; the log thread takes those of closed epochs. A lock is taken once per chunk.
 */
#include <errno.h>
#include <stdlib.h>

#include "log_private.h"

/* What is kept for the next time. */
#define FREE_CHUNKS_MAX		64u

static struct log_chunk *chunk_make(struct log *log, uint32_t bytes)
{
	struct log_chunk *chunk = NULL;

	if (bytes <= LOG_CHUNK_BYTES) {
		pthread_mutex_lock(&log->chunks_lock);
		chunk = log->free_chunks;
		if (chunk) {
			log->free_chunks = chunk->next;
			log->n_free_chunks--;
		}
		pthread_mutex_unlock(&log->chunks_lock);
	}
	if (chunk)
		return chunk;
	chunk = malloc(sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->room = bytes <= LOG_CHUNK_BYTES ? LOG_CHUNK_BYTES :
		      (bytes + LOG_BLOCK_BYTES - 1) & ~(LOG_BLOCK_BYTES - 1);
	chunk->data = aligned_alloc(LOG_BLOCK_BYTES, chunk->room);
	if (!chunk->data) {
		free(chunk);
		return NULL;
	}
	return chunk;
}

static void chunk_destroy(struct log_chunk *chunk)
{
	free(chunk->data);
	free(chunk);
}

int log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes)
{
	struct log_chunk *chunk = chunk_make(buffer->log, bytes);
	uint64_t outstanding;

	if (!chunk)
		return -ENOMEM;
	chunk->epoch = epoch;
	chunk->used = chunk->n_entries = 0;
	chunk->owner = buffer;
	outstanding = atomic_fetch_add_explicit(&buffer->outstanding, chunk->room,
						memory_order_relaxed) + chunk->room;
	buffer->is_full = outstanding >= LOG_OUTSTANDING_MAX;
	pthread_mutex_lock(&buffer->lock);
	log_chunks_push(&buffer->chunks, chunk);
	pthread_mutex_unlock(&buffer->lock);
	buffer->chunk = chunk;
	buffer->chunk_epoch = epoch;
	buffer->room = chunk->room;
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
		pthread_mutex_lock(&log->chunks_lock);
		if (chunk->room == LOG_CHUNK_BYTES && log->n_free_chunks < FREE_CHUNKS_MAX) {
			chunk->next = log->free_chunks;
			log->free_chunks = chunk;
			log->n_free_chunks++;
			chunk = NULL;
		}
		pthread_mutex_unlock(&log->chunks_lock);
		if (chunk)
			chunk_destroy(chunk);
	}
	log_chunks_init(list);
}

void log_chunks_finish(struct log *log)
{
	while (log->free_chunks) {
		struct log_chunk *chunk = log->free_chunks;

		log->free_chunks = chunk->next;
		chunk_destroy(chunk);
	}
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
		chunk_destroy(chunk);
	}
	pthread_mutex_destroy(&buffer->lock);
	free(buffer);
}
