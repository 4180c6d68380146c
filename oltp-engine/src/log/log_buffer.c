// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From transactions to the bytes of a group: see log_private.h. A worker fills one chunk of its
 * buffer after the other, each of one epoch; the log thread takes the chunks of closed epochs and
 * makes a group of them. A lock is taken once per chunk.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "log_private.h"
#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/base/mem.h"
#include "oltp-engine/src/txn/engine.h"

/* Memory for chunks: see log_private.h. */

/* An arena without used chunks is given back when more than so many chunks are free in all. */
#define FREE_CHUNKS_MAX		64u

static struct log_arena *arena_make(void)
{
	struct log_arena *arena = malloc(sizeof(*arena));

	if (!arena)
		return NULL;
	*arena = (struct log_arena){ .data = map_aligned(OLTP_MEM_BLOCK_BYTES) };
	if (!arena->data) {
		free(arena);
		return NULL;
	}
	for (uint32_t i = LOG_ARENA_CHUNKS; i--;) {
		struct log_chunk *chunk = &arena->chunks[i];

		*chunk = (struct log_chunk){
			.arena = arena,
			.next = arena->free,
			.room = LOG_CHUNK_BYTES,
			.data = arena->data + (size_t)i * LOG_CHUNK_BYTES,
		};
		arena->free = chunk;
	}
	arena->n_free = LOG_ARENA_CHUNKS;
	return arena;
}

static void arena_destroy(struct log_arena *arena)
{
	munmap(arena->data, OLTP_MEM_BLOCK_BYTES);
	free(arena);
}

/* Under the lock. From the first arena that has a free chunk, so that the last arenas get free. */
static struct log_chunk *take(struct log *log)
{
	for (struct log_arena *arena = log->arenas; arena; arena = arena->next) {
		struct log_chunk *chunk = arena->free;

		if (!chunk)
			continue;
		arena->free = chunk->next;
		arena->n_free--;
		log->n_free_chunks--;
		return chunk;
	}
	return NULL;
}

/* Under the lock. At the end, so that the chunks of older arenas are used first. */
static void arena_add(struct log *log, struct log_arena *arena)
{
	struct log_arena **at = &log->arenas;

	while (*at)
		at = &(*at)->next;
	*at = arena;
	log->n_free_chunks += arena->n_free;
}

static struct log_chunk *make_large(uint32_t bytes)
{
	struct log_chunk *chunk = malloc(sizeof(*chunk));

	if (!chunk)
		return NULL;
	*chunk = (struct log_chunk){
		.room = (bytes + LOG_BLOCK_BYTES - 1) & ~(LOG_BLOCK_BYTES - 1),
	};
	chunk->data = aligned_alloc(LOG_BLOCK_BYTES, chunk->room);
	if (!chunk->data) {
		free(chunk);
		return NULL;
	}
	return chunk;
}

/* Room for so many bytes at least; besides room and data nothing is set. NULL: out of memory. */
static struct log_chunk *chunk_make(struct log *log, uint32_t bytes)
{
	struct log_arena *arena;
	struct log_chunk *chunk;

	if (bytes > LOG_CHUNK_BYTES)
		return make_large(bytes);
	pthread_mutex_lock(&log->chunks_lock);
	chunk = take(log);
	pthread_mutex_unlock(&log->chunks_lock);
	if (chunk)
		return chunk;
	arena = arena_make();
	if (!arena)
		return NULL;
	pthread_mutex_lock(&log->chunks_lock);
	arena_add(log, arena);
	chunk = take(log);
	pthread_mutex_unlock(&log->chunks_lock);
	return chunk;
}

/* Under the lock: out of the list. */
static void arena_remove(struct log *log, struct log_arena *arena)
{
	struct log_arena **at = &log->arenas;

	while (*at != arena)
		at = &(*at)->next;
	*at = arena->next;
	log->n_free_chunks -= arena->n_free;
}

static void chunk_drop(struct log *log, struct log_chunk *chunk)
{
	struct log_arena *arena = chunk->arena;
	bool is_over;

	if (!arena) {
		free(chunk->data);
		free(chunk);
		return;
	}
	pthread_mutex_lock(&log->chunks_lock);
	chunk->next = arena->free;
	arena->free = chunk;
	arena->n_free++;
	log->n_free_chunks++;
	is_over = arena->n_free == LOG_ARENA_CHUNKS && log->n_free_chunks > FREE_CHUNKS_MAX;
	if (is_over)
		arena_remove(log, arena);
	pthread_mutex_unlock(&log->chunks_lock);
	if (is_over)
		arena_destroy(arena);
}

void log_chunks_finish(struct log *log)
{
	while (log->arenas) {
		struct log_arena *arena = log->arenas;

		log->arenas = arena->next;
		arena_destroy(arena);
	}
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
	buffer->chunk = chunk;
	buffer->chunk_epoch = epoch;
	buffer->room = chunk->room;
	/*
	 * No epoch is announced: if this one is closed, the log thread may take the chunk from here
	 * on.
	 */
	pthread_mutex_lock(&buffer->lock);
	/*
	 * Under the lock: the log thread may be copying the whole entries of an append that it
	 * left.
	 */
	buffer->whole = 0;
	log_chunks_push(&buffer->chunks, chunk);
	pthread_mutex_unlock(&buffer->lock);
	return 0;
}

static void chunk_release(struct log *log, struct log_chunk *chunk)
{
	atomic_fetch_sub_explicit(&chunk->owner->outstanding, chunk->room, memory_order_release);
	chunk_drop(log, chunk);
}

/* Frees the chunk of an append that was left, once its worker does not write to it any more. */
static void left_settle(struct log_buffer *buffer)
{
	if (!buffer->left ||
	    atomic_load_explicit(&buffer->announced, memory_order_acquire) == LOG_LEFT)
		return;
	chunk_release(buffer->log, buffer->left);
	buffer->left = NULL;
}

/* Copies the whole entries of a chunk to whose end the worker is still writing. */
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
 * Under the lock: leaves the append under way, if it has not ended by now. That append writes to
 * the last of the chunks, or to one that was taken before its worker looked at the epoch again.
 * *ret_copy takes the place of the last chunk, if that was left. False: out of memory.
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
		copy = chunk_make(buffer->log, last->room);
		if (!copy)
			return false;
	}
	if (atomic_compare_exchange_strong_explicit(&buffer->announced, &announced, LOG_LEFT,
						    memory_order_acq_rel, memory_order_acquire)) {
		if (last)
			copy_whole(last, buffer->whole, copy);
		*ret_copy = copy;
	} else if (copy) {
		chunk_drop(buffer->log, copy);
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

int log_worker_join(struct oltp_worker *worker)
{
	struct log *log = worker->engine->log;
	struct log_buffer *buffer;

	if (!log)
		return 0;
	buffer = aligned_alloc(CACHE_PAD_BYTES, sizeof(*buffer));
	if (!buffer)
		return -ENOMEM;
	*buffer = (struct log_buffer){ .log = log };
	pthread_mutex_init(&buffer->lock, NULL);
	log_chunks_init(&buffer->chunks);
	pthread_mutex_lock(&log->lock);
	buffer->next = log->buffers;
	log->buffers = buffer;
	pthread_mutex_unlock(&log->lock);
	worker->log = buffer;
	return 0;
}

void log_worker_leave(struct oltp_worker *worker)
{
	struct log_buffer *buffer = worker->log;

	if (!buffer)
		return;
	worker->log = NULL;
	pthread_mutex_lock(&buffer->log->lock);
	buffer->is_orphan = true;
	pthread_mutex_unlock(&buffer->log->lock);
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
		chunk_drop(buffer->log, chunk);
	}
	if (buffer->left)
		chunk_drop(buffer->log, buffer->left);
	pthread_mutex_destroy(&buffer->lock);
	free(buffer);
}

/*
 * Chunks become the bytes of a group: see log_private.h. A chunk that holds much is written from
 * where it is, padded to whole blocks; chunks that hold little are copied together behind the
 * header.
 */

#define GATHER_BYTES		(1u << 20)
/* From here on padding costs less than copying. */
#define IN_PLACE_MIN		(32u << 10)

int log_group_init(struct log_group *group)
{
	group->gather = aligned_alloc(LOG_BLOCK_BYTES, GATHER_BYTES);
	return group->gather ? 0 : -ENOMEM;
}

void log_group_finish(struct log_group *group)
{
	free(group->gather);
}

void log_group_begin(struct log_group *group)
{
	group->gathered = LOG_GROUP_HEADER_BYTES;
	log_chunks_init(&group->in_place);
	log_chunks_init(&group->copied);
	group->csn_first = UINT64_MAX;
	group->csn_last = 0;
	group->n_entries = 0;
	group->bytes = 0;
}

/* Fills the last block up with padding. Returns the new length. */
static uint32_t pad(uint8_t *data, uint32_t used)
{
	uint32_t bytes = -used & (LOG_BLOCK_BYTES - 1);
	struct log_entry *entry = (struct log_entry *)(data + used);

	if (!bytes)
		return used;
	memset(entry, 0, bytes);
	entry->bytes = bytes;
	return used + bytes;
}

void log_group_add(struct log_group *group, struct log_chunk *chunk)
{
	if (chunk->used < IN_PLACE_MIN && chunk->used <= GATHER_BYTES - group->gathered) {
		memcpy(group->gather + group->gathered, chunk->data, chunk->used);
		group->gathered += chunk->used;
		log_chunks_push(&group->copied, chunk);
	} else {
		chunk->used = pad(chunk->data, chunk->used);
		group->bytes += chunk->used;
		log_chunks_push(&group->in_place, chunk);
	}
	group->n_entries += chunk->n_entries;
	if (chunk->csn_first < group->csn_first)
		group->csn_first = chunk->csn_first;
	if (chunk->csn_last > group->csn_last)
		group->csn_last = chunk->csn_last;
}

void log_group_seal(struct log_group *group, const struct log_group_header *header)
{
	struct log_group_header *own = (struct log_group_header *)group->gather;
	uint32_t crc;

	group->gathered = pad(group->gather, group->gathered);
	group->bytes += group->gathered;
	*own = *header;
	memcpy(own->magic, LOG_GROUP_MAGIC, LOG_MAGIC_BYTES);
	own->bytes = group->bytes;
	own->n_entries = group->n_entries;
	own->csn_first = group->csn_first;
	own->csn_last = group->csn_last;
	own->crc32c = 0;
	crc = crc32c(0, group->gather, group->gathered);
	for (const struct log_chunk *chunk = group->in_place.head; chunk; chunk = chunk->next)
		crc = crc32c(crc, chunk->data, chunk->used);
	own->crc32c = crc;
}
