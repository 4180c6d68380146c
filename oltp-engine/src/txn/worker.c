// SPDX-License-Identifier: GPL-2.0-or-later
/* Workers: their coming and going, and what they count. */
#include <errno.h>
#include <stdlib.h>

#include "engine.h"
#include "node_set.h"

static void worker_free(struct oltp_worker *worker)
{
	free(worker->accesses);
	free(worker->undo);
	free(worker->ahead);
	free(worker->later);
	free(worker->wants);
	free(worker->node_set);
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
	worker->later = calloc(engine->txn_records_max, sizeof(*worker->later));
	worker->undo = aligned_alloc(CACHE_PAD_BYTES,
				     (engine->txn_undo_bytes + CACHE_PAD_BYTES - 1) &
					     ~(CACHE_PAD_BYTES - 1));
	worker->wants = calloc(engine->txn_records_max, sizeof(*worker->wants));
	worker->node_set = calloc(engine->txn_records_max, sizeof(*worker->node_set));
	worker->node = engine->node < 0 ? node_here() : (uint32_t)engine->node;
	if (!worker->accesses || !worker->ahead || !worker->later || !worker->undo ||
	    !worker->wants || !worker->node_set)
		goto out_free;
	rc = engine->ops->worker_open(worker);
	if (rc)
		goto out_free;
	rc = worker_register(worker);
	if (rc)
		goto out_close;
	*ret_worker = worker;
	return 0;

out_close:
	engine->ops->worker_close(worker);
out_free:
	worker_free(worker);
	return rc;
}

void oltp_worker_destroy(struct oltp_worker *worker)
{
	if (!worker)
		return;
	oltp_txn_abort(worker);
	worker->engine->ops->worker_close(worker);
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
