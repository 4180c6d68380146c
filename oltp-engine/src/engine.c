// SPDX-License-Identifier: GPL-2.0-or-later
/* Opening and closing an engine, and the coming and going of its workers. */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"

#define TXN_RECORDS_DEFAULT	128u
#define TXN_UNDO_DEFAULT	(64u << 10)
/* Keeps a mistyped limit from asking for gigabytes per worker. */
#define TXN_RECORDS_LIMIT	65536u

int oltp_engine_open(const struct oltp_config *config, struct oltp_engine **ret_engine)
{
	static const struct oltp_config defaults = { .node = -1 };
	struct oltp_engine *engine;

	if (!config)
		config = &defaults;
	if (!lock_scheme_get(config->cc) || config->txn_records_max > TXN_RECORDS_LIMIT ||
	    (config->mem && (!config->mem->alloc || !config->mem->free)))
		return -EINVAL;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->scheme = lock_scheme_get(config->cc);
	engine->txn_records_max = config->txn_records_max ?: TXN_RECORDS_DEFAULT;
	engine->txn_undo_bytes = config->txn_undo_bytes ?: TXN_UNDO_DEFAULT;
	mem_init(&engine->mem, config->mem, config->mem_ctx, config->node);
	pthread_mutex_init(&engine->lock, NULL);
	*ret_engine = engine;
	return 0;
}

void oltp_engine_close(struct oltp_engine *engine)
{
	if (!engine)
		return;
	for (uint32_t i = 0; i < engine->n_tables; i++)
		table_destroy(engine->tables[i]);
	mem_finish(&engine->mem);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

static void worker_free(struct oltp_worker *worker)
{
	free(worker->accesses);
	free(worker->undo);
	free(worker->ahead);
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
		engine->workers[number] = worker;
	}
	pthread_mutex_unlock(&engine->lock);
	return number ? 0 : -ENOSPC;
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
	if (!worker->accesses || !worker->ahead || !worker->undo)
		goto out_free;
	rc = worker_register(worker);
	if (rc)
		goto out_free;
	*ret_worker = worker;
	return 0;

out_free:
	worker_free(worker);
	return rc;
}

void oltp_worker_destroy(struct oltp_worker *worker)
{
	if (!worker)
		return;
	oltp_txn_abort(worker);
	table_caches_return(worker);
	pthread_mutex_lock(&worker->engine->lock);
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
	ret_stats->accesses = counter_read(&worker->accesses_committed);
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
		return "transaction touches more records or saves more bytes than configured";
	case OLTP_NO_MEMORY:
		return "no memory for a new record";
	case OLTP_INVALID:
		return "invalid argument, or no transaction to act on";
	}
	return "unknown result";
}
