// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opening and closing an engine, its tables and their ordered indexes. This file knows all
 * rooms; they know only what is below them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/base/checksum.h"
#include "oltp-engine/src/cold/admit.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/cold/fetch.h"
#include "oltp-engine/src/index/tree.h"
#include "oltp-engine/src/io/volume.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/memory/idle.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp-engine/src/recovery/checkpoint.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/ordered.h"
#include "oltp-engine/src/txn/revoked.h"

#define TXN_RECORDS_DEFAULT	128u
#define TXN_UNDO_DEFAULT	(64u << 10)
/* Keep a mistyped limit from asking for gigabytes per worker. */
#define TXN_RECORDS_LIMIT	65536u
#define TXN_UNDO_LIMIT		(1u << 30)
#define RECORD_BYTES_MAX	(1u << 20)
#define CAPACITY_MAX		(1ull << 32)

static void worker_close(struct oltp_worker *worker)
{
	fetcher_leave(worker->fetcher);
	log_worker_leave(worker);
}

static const struct txn_ops txn_ops = {
	.worker_open = log_worker_join,
	.worker_close = worker_close,
	.begin = log_begin,
	.commit = log_append,
	.cold_used = buffered_used,
	.cold_deleted = buffered_deleted,
};

static void table_destroy(struct oltp_table *table)
{
	while (table->n_ordered)
		free(table->ordered[--table->n_ordered]);
	index_finish(&table->index);
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		slabs_finish(table->slabs[node]);
	free(table);
}

/* Where the log is: in the volume, which is opened, or in the folder. */
static int files_open(struct oltp_engine *engine, const struct oltp_config *config,
		      struct io_files *ret_io)
{
	struct io_files io = io_files_real(IO_LOG, &engine->io_meters);
	int rc;

	if ((config->log_dir && config->volume) || (config->volume_read_only && !config->volume) ||
	    (config->volume_checks && (!config->volume || config->volume_read_only)) ||
	    (config->volume_cold && (!config->volume || config->volume_read_only ||
				     config->cold_dir)))
		return -EINVAL;
	if (config->log_io)
		io = (struct io_files){ config->log_io, config->log_io_ctx, IO_LOG,
					&engine->io_meters };
	if (config->volume) {
		rc = volume_open(&io, config->volume, !config->volume_read_only, &engine->volume);
		if (!rc && !config->volume_read_only)
			rc = cold_file_discard(engine->volume);
		if (rc)
			return rc;
		io.ops = &volume_ops;
		io.ctx = engine->volume;
	}
	*ret_io = io;
	return 0;
}

int oltp_engine_open(const struct oltp_config *config, struct oltp_engine **ret_engine)
{
	static const struct oltp_config defaults = { .node = -1 };
	struct oltp_engine *engine;
	struct io_files io;
	int rc;

	if (!config)
		config = &defaults;
	if (!lock_scheme_get(config->cc) || config->txn_records_max > TXN_RECORDS_LIMIT ||
	    config->txn_undo_bytes > TXN_UNDO_LIMIT || config->node >= (int)OLTP_NODES_MAX ||
	    (config->mem && (!config->mem->alloc || !config->mem->free)) ||
	    (config->blocks && (!config->blocks->add || !config->blocks->release)))
		return -EINVAL;
	engine = aligned_alloc(CACHE_PAD_BYTES, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	memset(engine, 0, sizeof(*engine));
	engine->ops = &txn_ops;
	engine->scheme = lock_scheme_get(config->cc);
	engine->txn_records_max = config->txn_records_max ?: TXN_RECORDS_DEFAULT;
	engine->txn_undo_bytes = config->txn_undo_bytes ?: TXN_UNDO_DEFAULT;
	engine->node = config->node;
	engine->idle_half_ms = config->idle_half_ms ?: IDLE_HALF_MS;
	epoch_init(&engine->epoch);
	epoch_join(&engine->epoch, 0, &engine->manager_announced);
	mem_init(&engine->mem, config->mem, config->mem_ctx, config->node);
	pthread_mutex_init(&engine->lock, NULL);
	promise_init(&engine->promise);
	node_pool_init(&engine->leaves, &engine->mem, &engine->epoch, TREE_LEAF_BYTES);
	node_pool_init(&engine->inners, &engine->mem, &engine->epoch, TREE_INNER_BYTES);
	room_init(&engine->room);
	rc = storage_init(&engine->storage, config->blocks, config->blocks_ctx, &engine->mem);
	if (!rc)
		rc = files_open(engine, config, &io);
	if (!rc && (config->cold_dir || config->volume_cold))
		rc = cold_create(engine, config->cold_dir, config->cold_bytes_max, &engine->cold);
	if (!rc && (engine->cold || config->blocks))
		rc = manager_create(engine, &engine->manager);
	if (!rc && config->durability != OLTP_DURABILITY_OFF)
		rc = log_open(engine, config, &io, config->volume ?: config->log_dir,
			      &engine->log);
	if (!rc && engine->log)
		rc = checkpointer_create(engine, config, &engine->checkpointer);
	if (rc) {
		oltp_engine_close(engine);
		return rc;
	}
	*ret_engine = engine;
	return 0;
}

void oltp_engine_close(struct oltp_engine *engine)
{
	if (!engine)
		return;
	checkpointer_destroy(engine->checkpointer);
	manager_destroy(engine->manager);
	/* The log's files are gone after it. */
	cold_checkpoint_close(engine->cold);
	log_close(engine->log);
	for (uint32_t i = 0; i < tables_count(engine); i++)
		table_destroy(engine->tables[i]);
	storage_finish(&engine->storage);
	room_finish(&engine->room);
	revoked_finish(engine);
	cold_destroy(engine->cold);
	volume_close(engine->volume);
	node_pool_finish(&engine->leaves);
	node_pool_finish(&engine->inners);
	mem_finish(&engine->mem);
	epoch_finish(&engine->epoch);
	promise_finish(&engine->promise);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

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
	table = aligned_alloc(CACHE_PAD_BYTES, sizeof(*table));
	if (!table)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	stride = sizeof(struct record) + record_bytes;
	table->engine = engine;
	table->record_bytes = record_bytes;
	table->stride = (uint32_t)((stride + CACHE_LINE_BYTES - 1) & ~(CACHE_LINE_BYTES - 1ul));
	rc = index_init(&table->index, &engine->mem, capacity);
	if (rc)
		goto out_free;
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++)
		slabs_init(table->slabs[node]);
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
		/* Pairs with tables_count: a thread that counts the table sees all of it. */
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

static bool index_config_is_valid(const struct oltp_table *table,
				  const struct oltp_index_config *config)
{
	if (config->n_key_spans > OLTP_KEY_SPANS_MAX || (config->key_of && !config->n_key_spans))
		return false;
	for (uint32_t i = 0; i < config->n_key_spans; i++) {
		const struct oltp_span *span = &config->key_spans[i];

		if (span->offset > table->record_bytes ||
		    span->bytes > table->record_bytes - span->offset)
			return false;
	}
	return true;
}

/* Cold ones are not counted by table: those of another one are reason enough. */
static bool may_have_records(const struct oltp_table *table)
{
	const struct cold *cold = table->engine->cold;

	return storage_used_slots(table) || (cold && counter_read(&cold->counters.records));
}

/* An index that is not by primary key. */
static void keyed_add(struct oltp_table *table, const struct oltp_index_config *config)
{
	const uint32_t how[] = { config->key_version, config->n_key_spans };
	uint32_t check = crc32c(table->keyed_check, how, sizeof(how));

	for (uint32_t i = 0; i < config->n_key_spans; i++) {
		const struct oltp_span *span = &config->key_spans[i];
		const uint32_t where[] = { span->offset, span->bytes };

		check = crc32c(check, where, sizeof(where));
		table->key_spans[table->n_key_spans++] = *span;
	}
	table->keyed_check = check;
	table->n_keyed++;
}

int oltp_index_create(struct oltp_table *table, const struct oltp_index_config *config,
		      struct oltp_index **ret_index)
{
	static const struct oltp_index_config primary = { .is_unique = true };
	struct oltp_engine *engine = table->engine;
	struct oltp_index *index;
	int rc;

	if (!config)
		config = &primary;
	if (!index_config_is_valid(table, config))
		return -EINVAL;
	if (table->n_ordered == OLTP_INDEXES_MAX)
		return -ENOSPC;
	if (may_have_records(table))
		return -EBUSY;
	index = calloc(1, sizeof(*index));
	if (!index)
		return -ENOMEM;
	*index = (struct oltp_index){ .table = table, .key_of = config->key_of,
				      .ctx = config->ctx,
				      .is_unique = !config->key_of || config->is_unique };
	rc = tree_init(&index->tree, &engine->leaves, &engine->inners);
	if (rc) {
		free(index);
		return rc;
	}
	if (config->key_of)
		keyed_add(table, config);
	table->ordered[table->n_ordered++] = index;
	*ret_index = index;
	return 0;
}

const char *oltp_strerror(enum oltp_rc rc)
{
	switch (rc) {
	case OLTP_OK:
		return "success";
	case OLTP_CONFLICT:
		return "conflict with another transaction: abort and run again";
	case OLTP_NOT_FOUND:
		return "no such key";
	case OLTP_EXISTS:
		return "key exists";
	case OLTP_FULL:
		return "transaction touches or notes more, or saves more bytes, than configured";
	case OLTP_NO_MEMORY:
		return "no memory for a new record";
	case OLTP_COLD:
		return "a record is on disk: abort, fetch and run again";
	case OLTP_IO:
		return "a record could not be read from disk";
	case OLTP_LOST:
		return "a record was lost with memory that the host took";
	case OLTP_INVALID:
		return "invalid argument, or no transaction to act on";
	}
	return "unknown result";
}
