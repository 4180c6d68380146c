// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tables: room for records, in blocks from the memory source. Workers carve records from a block of
 * their own, so the table's lock is taken once per block.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"

#define RECORD_BYTES_MAX	(1u << 20)
#define CAPACITY_MAX		(1ull << 32)

int oltp_table_create(struct oltp_engine *engine, uint32_t record_bytes, uint64_t capacity,
		      struct oltp_table **ret_table)
{
	struct oltp_table *table;
	size_t stride;
	int rc;

	if (!engine || !record_bytes || record_bytes > RECORD_BYTES_MAX || !capacity ||
	    capacity > CAPACITY_MAX)
		return -EINVAL;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	/* Freed records are chained through their data. */
	stride = sizeof(struct record) +
		 (record_bytes < sizeof(void *) ? sizeof(void *) : record_bytes);
	table->engine = engine;
	table->record_bytes = record_bytes;
	table->stride = (uint32_t)((stride + CACHE_LINE_BYTES - 1) & ~(CACHE_LINE_BYTES - 1ul));
	table->chunk_bytes = (uint32_t)mem_round(table->stride);
	rc = index_init(&table->index, &engine->mem, capacity);
	if (rc)
		goto out_free;
	pthread_mutex_init(&table->lock, NULL);

	pthread_mutex_lock(&engine->lock);
	if (engine->n_tables == OLTP_TABLES_MAX) {
		rc = -ENOSPC;
	} else {
		table->id = engine->n_tables;
		engine->tables[engine->n_tables++] = table;
	}
	pthread_mutex_unlock(&engine->lock);
	if (rc) {
		table_destroy(table);
		return rc;
	}
	*ret_table = table;
	return 0;

out_free:
	free(table);
	return rc;
}

void table_destroy(struct oltp_table *table)
{
	for (size_t i = 0; i < table->chunks.n; i++)
		mem_free(&table->engine->mem, table->chunks.chunks[i], table->chunk_bytes);
	free(table->chunks.chunks);
	index_finish(&table->index);
	pthread_mutex_destroy(&table->lock);
	free(table);
}

static int chunk_list_reserve(struct chunk_list *list)
{
	size_t room = list->room ? list->room * 2 : 64;
	void **chunks;

	if (list->n < list->room)
		return 0;
	chunks = realloc(list->chunks, room * sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	list->chunks = chunks;
	list->room = room;
	return 0;
}

/* Freed records first, then what another worker left over, then a new block. */
static bool cache_refill(struct oltp_table *table, struct record_cache *cache)
{
	bool refilled = true;

	pthread_mutex_lock(&table->lock);
	if (table->free_records) {
		cache->free_records = table->free_records;
		table->free_records = NULL;
	} else if (table->rooms) {
		cache->next = (uint8_t *)table->rooms;
		cache->end = table->rooms->end;
		table->rooms = table->rooms->next;
	} else {
		void *chunk = NULL;

		if (!chunk_list_reserve(&table->chunks))
			chunk = mem_alloc(&table->engine->mem, table->chunk_bytes);
		if (chunk) {
			table->chunks.chunks[table->chunks.n++] = chunk;
			cache->next = chunk;
			cache->end = cache->next + table->chunk_bytes;
		}
		refilled = chunk;
	}
	pthread_mutex_unlock(&table->lock);
	return refilled;
}

static struct record *free_next(struct record *record)
{
	return *(struct record **)record->data;
}

static void free_push(struct record **list, struct record *record)
{
	*(struct record **)record->data = *list;
	*list = record;
}

/*
 * A reader that found the record before it was freed may hold its lock for the moment it needs to
 * see that; then a record further down the list is taken.
 */
static struct record *free_pop(struct record **list, uint64_t ts)
{
	uint64_t seen;

	for (; *list; list = (struct record **)(*list)->data) {
		struct record *record = *list;

		if (lock_try_exclusive(&record->lock, ts, &seen)) {
			*list = free_next(record);
			return record;
		}
	}
	return NULL;
}

struct record *table_record_alloc(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key)
{
	struct record_cache *cache = &worker->caches[table->id];
	struct record *record;

	do {
		record = free_pop(&cache->free_records, worker->ts);
		if (record)
			break;
		if ((size_t)(cache->end - cache->next) >= table->stride) {
			record = (struct record *)cache->next;
			cache->next += table->stride;
			atomic_store_explicit(&record->lock, LOCK_WRITER | worker->ts,
					      memory_order_relaxed);
			break;
		}
	} while (cache_refill(table, cache));
	if (record)
		atomic_store_explicit(&record->key, key, memory_order_relaxed);
	return record;
}

void table_record_free(struct oltp_worker *worker, struct oltp_table *table, struct record *record)
{
	free_push(&worker->caches[table->id].free_records, record);
	lock_release_exclusive(&record->lock);
}

void table_caches_return(struct oltp_worker *worker)
{
	struct oltp_engine *engine = worker->engine;
	uint32_t n_tables;

	pthread_mutex_lock(&engine->lock);
	n_tables = engine->n_tables;
	pthread_mutex_unlock(&engine->lock);
	for (uint32_t i = 0; i < n_tables; i++) {
		struct oltp_table *table = engine->tables[i];
		struct record_cache *cache = &worker->caches[i];

		pthread_mutex_lock(&table->lock);
		while (cache->free_records) {
			struct record *record = cache->free_records;

			cache->free_records = free_next(record);
			free_push(&table->free_records, record);
		}
		if ((size_t)(cache->end - cache->next) >= table->stride) {
			struct room *room = (struct room *)cache->next;

			room->end = cache->end;
			room->next = table->rooms;
			table->rooms = room;
		}
		pthread_mutex_unlock(&table->lock);
	}
}

struct scan {
	int (*fn)(void *ctx, uint64_t key, const void *record);
	void *ctx;
};

static int scan_record(void *ctx, struct record *record)
{
	const struct scan *scan = ctx;

	return scan->fn(scan->ctx, atomic_load(&record->key), record->data);
}

int oltp_table_scan(struct oltp_table *table,
		    int (*fn)(void *ctx, uint64_t key, const void *record), void *ctx)
{
	struct scan scan = { fn, ctx };

	return index_scan(&table->index, scan_record, &scan);
}
