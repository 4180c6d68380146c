// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables: creating them, new and freed records. Where records are is the storage manager's. */
#include <errno.h>
#include <stdlib.h>

#include "oltp-engine/src/log/log_core.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/ordered.h"

#define RECORD_BYTES_MAX	(1u << 20)
#define CAPACITY_MAX		(1ull << 32)

int oltp_table_create(struct oltp_engine *engine, uint32_t record_bytes, uint64_t capacity,
		      struct oltp_table **ret_table)
{
	struct oltp_table *table;
	size_t stride;
	uint32_t id;
	int rc;

	if (!engine || !record_bytes || record_bytes > RECORD_BYTES_MAX || !capacity ||
	    capacity > CAPACITY_MAX)
		return -EINVAL;
	table = calloc(1, sizeof(*table));
	if (!table)
		return -ENOMEM;
	stride = sizeof(struct record) + record_bytes;
	table->engine = engine;
	table->record_bytes = record_bytes;
	table->stride = (uint32_t)((stride + CACHE_LINE_BYTES - 1) & ~(CACHE_LINE_BYTES - 1ul));
	rc = index_init(&table->index, &engine->mem, capacity);
	if (rc)
		goto out_free;
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		shelves_init(table->shelves[node]);
	cold_table_init(table);

	pthread_mutex_lock(&engine->lock);
	id = tables_count(engine);
	if (id == OLTP_TABLES_MAX)
		rc = -ENOSPC;
	else if (engine->log)
		rc = log_table_created(engine->log, id, record_bytes);
	if (!rc) {
		table->id = id;
		engine->tables[id] = table;
		/* Whoever counts it sees all of it. */
		atomic_store_explicit(&engine->n_tables, id + 1, memory_order_release);
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
	ordered_destroy(table);
	index_finish(&table->index);
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		shelves_finish(table->shelves[node]);
	free(table);
}

struct record *table_record_alloc(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key)
{
	struct record *record = storage_slot_alloc(&table->engine->storage, table, worker->node,
						   worker->ts);

	if (record)
		atomic_store_explicit(&record->key, key, memory_order_relaxed);
	return record;
}

void table_record_free(struct oltp_worker *worker, struct record *record)
{
	storage_slot_free(&worker->engine->storage, record);
	lock_release_exclusive(&record->lock, worker->stamp);
}
