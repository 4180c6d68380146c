// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening and closing an engine, and the coming and going of its workers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/cold/fetch.h"
#include "oltp-engine/src/index/tree.h"
#include "oltp-engine/src/log/log_append.h"
#include "oltp-engine/src/log/log_core.h"
#include "oltp-engine/src/memory/idle.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp-engine/src/recovery/checkpoint.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/lost.h"
#include "oltp-engine/src/txn/notes.h"

#define TXN_RECORDS_DEFAULT	128u
#define TXN_UNDO_DEFAULT	(64u << 10)
/* Keeps a mistyped limit from asking for gigabytes per worker. */
#define TXN_RECORDS_LIMIT	65536u

int oltp_engine_open(const struct oltp_config *config, struct oltp_engine **ret_engine)
{
	static const struct oltp_config defaults = { .node = -1 };
	struct oltp_engine *engine;
	int rc;

	if (!config)
		config = &defaults;
	if (!lock_scheme_get(config->cc) || config->txn_records_max > TXN_RECORDS_LIMIT ||
	    config->node >= (int)OLTP_NODES_MAX ||
	    (config->mem && (!config->mem->alloc || !config->mem->free)) ||
	    (config->blocks && (!config->blocks->add || !config->blocks->release)))
		return -EINVAL;
	engine = aligned_alloc(CACHE_PAD_BYTES, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	memset(engine, 0, sizeof(*engine));
	engine->scheme = lock_scheme_get(config->cc);
	engine->txn_records_max = config->txn_records_max ?: TXN_RECORDS_DEFAULT;
	engine->txn_undo_bytes = config->txn_undo_bytes ?: TXN_UNDO_DEFAULT;
	engine->node = config->node;
	engine->idle_half_ms = config->idle_half_ms ?: IDLE_HALF_MS;
	epoch_init(&engine->epoch);
	epoch_join(&engine->epoch, 0, &engine->manager_announced);
	mem_init(&engine->mem, config->mem, config->mem_ctx, config->node);
	pthread_mutex_init(&engine->lock, NULL);
	node_pool_init(&engine->leaves, &engine->mem, &engine->epoch, TREE_LEAF_BYTES);
	node_pool_init(&engine->inners, &engine->mem, &engine->epoch, TREE_INNER_BYTES);
	room_init(&engine->room);
	rc = storage_init(&engine->storage, config->blocks, config->blocks_ctx, &engine->mem);
	if (!rc && config->cold_dir)
		rc = cold_create(engine, config->cold_dir, config->cold_bytes_max, &engine->cold);
	if (!rc && (config->cold_dir || config->blocks))
		rc = manager_create(engine, &engine->manager);
	if (!rc && config->durability != OLTP_DURABILITY_OFF)
		rc = log_open(engine, config, &engine->log);
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
	log_close(engine->log);
	for (uint32_t i = 0; i < tables_count(engine); i++)
		table_destroy(engine->tables[i]);
	storage_finish(&engine->storage);
	room_finish(&engine->room);
	lost_finish(engine);
	cold_destroy(engine->cold);
	node_pool_finish(&engine->leaves);
	node_pool_finish(&engine->inners);
	mem_finish(&engine->mem);
	epoch_finish(&engine->epoch);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

static void worker_free(struct oltp_worker *worker)
{
	free(worker->accesses);
	free(worker->undo);
	free(worker->ahead);
	free(worker->wants);
	free(worker->notes);
	free(worker);
}

/*
 * Gives the worker its number, and a clock no older than anybody's: a newcomer that counted from
 * zero would win every conflict for as long as it takes to catch up.
 */
static int worker_register(struct oltp_worker *worker)
{
	struct oltp_engine *engine = worker->engine;
	uint64_t clock = 1;
	uint32_t number = 0;

	pthread_mutex_lock(&engine->lock);
	for (uint32_t i = 1; i <= OLTP_WORKERS_MAX; i++) {
		struct oltp_worker *other = engine->workers[i];

		if (!other) {
			number = number ?: i;
		} else {
			uint64_t theirs = counter_read(&other->clock);

			clock = theirs > clock ? theirs : clock;
		}
	}
	if (number) {
		worker->number = number;
		atomic_init(&worker->clock, clock);
		worker->slot = lock_book_slot(&engine->locks, number);
		lock_book_enter(&engine->locks, number);
		epoch_join(&engine->epoch, number, &worker->announced);
		engine->workers[number] = worker;
		if (number > engine->workers_end)
			engine->workers_end = number;
	}
	pthread_mutex_unlock(&engine->lock);
	return number ? 0 : -ENOSPC;
}

/* Of the thread that creates the worker, which is pinned where it matters. */
static uint32_t node_here(void)
{
	unsigned int cpu, node;

	return getcpu(&cpu, &node) ? 0 : node % OLTP_NODES_MAX;
}

int oltp_worker_create(struct oltp_engine *engine, struct oltp_worker **ret_worker)
{
	struct oltp_worker *worker;
	int rc = -ENOMEM;

	worker = aligned_alloc(CACHE_PAD_BYTES, sizeof(*worker));
	if (!worker)
		return -ENOMEM;
	*worker = (struct oltp_worker){ .engine = engine };
	worker->accesses = calloc(engine->txn_records_max, sizeof(*worker->accesses));
	worker->ahead = calloc(engine->txn_records_max, sizeof(*worker->ahead));
	worker->undo = aligned_alloc(CACHE_PAD_BYTES,
				     (engine->txn_undo_bytes + CACHE_PAD_BYTES - 1) &
					     ~(CACHE_PAD_BYTES - 1));
	worker->wants = calloc(engine->txn_records_max, sizeof(*worker->wants));
	worker->notes = calloc(engine->txn_records_max, sizeof(*worker->notes));
	worker->node = engine->node < 0 ? node_here() : (uint32_t)engine->node;
	if (!worker->accesses || !worker->ahead || !worker->undo || !worker->wants ||
	    !worker->notes)
		goto out_free;
	rc = engine->log ? log_buffer_create(engine->log, &worker->log) : 0;
	if (!rc)
		rc = worker_register(worker);
	if (rc)
		goto out_free;
	*ret_worker = worker;
	return 0;

out_free:
	log_buffer_leave(worker->log);
	worker_free(worker);
	return rc;
}

void oltp_worker_destroy(struct oltp_worker *worker)
{
	if (!worker)
		return;
	oltp_txn_abort(worker);
	fetcher_leave(worker->fetcher);
	log_buffer_leave(worker->log);
	pthread_mutex_lock(&worker->engine->lock);
	epoch_quit(&worker->engine->epoch, worker->number);
	worker->engine->workers[worker->number] = NULL;
	pthread_mutex_unlock(&worker->engine->lock);
	worker_free(worker);
}

void oltp_worker_stats_read(const struct oltp_worker *worker, struct oltp_worker_stats *ret_stats)
{
	ret_stats->commits = counter_read(&worker->commits);
	ret_stats->aborts = counter_read(&worker->aborts);
	ret_stats->conflicts = counter_read(&worker->conflicts);
	ret_stats->waits = counter_read(&worker->waits);
	ret_stats->wounds = counter_read(&worker->wounds);
	ret_stats->accesses = counter_read(&worker->accesses_committed);
	ret_stats->colds = counter_read(&worker->colds);
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
