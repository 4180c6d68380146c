// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory for chunks: see log_private.h. */
#include <stdlib.h>
#include <sys/mman.h>

#include "log_private.h"
#include "oltp-engine/src/base/map.h"

/* So many may be free before an arena with none in use is given back. */
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

/* Under the lock. The first arena that has any: so the last ones come to be free. */
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

/* Under the lock. At the end: what was in use before is used again first. */
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

struct log_chunk *log_chunk_make(struct log *log, uint32_t bytes)
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

void log_chunk_drop(struct log *log, struct log_chunk *chunk)
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
