// SPDX-License-Identifier: GPL-2.0-or-later
/* Filling the YCSB table, with ordinary transactions on several threads. */
#include <errno.h>
#include <stdlib.h>

#include "oltp-engine/bench/workload.h"
#include "ycsb_private.h"
#include "ycsb_record.h"

#define INSERTS_PER_TXN		32u
#define THREADS_MAX		256u

struct loader {
	struct ycsb *ycsb;
	struct bench_progress *progress;	/* may be NULL */
	pthread_t thread;
	uint64_t first, end;
	enum oltp_rc rc;
};

static enum oltp_rc load_some(struct loader *loader, struct oltp_worker *worker, uint64_t end)
{
	struct oltp_hint hints[INSERTS_PER_TXN];
	uint32_t n = (uint32_t)(end - loader->first);
	struct ycsb_record record;
	enum oltp_rc rc = oltp_txn_begin(worker);

	/* The keys are new: all there is to bring in is their buckets of the index. */
	for (uint32_t i = 0; i < n; i++)
		hints[i] = (struct oltp_hint){ .key = ycsb_key(loader->ycsb, loader->first + i) };
	oltp_txn_prefetch(worker, loader->ycsb->table, hints, n);
	for (uint32_t i = 0; !rc && i < n; i++) {
		uint64_t key = hints[i].key;

		ycsb_record_init(&record, key);
		rc = oltp_txn_insert(worker, loader->ycsb->table, key, &record);
	}
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc)
		oltp_txn_abort(worker);
	return rc;
}

static void *loader_main(void *arg)
{
	struct loader *loader = arg;
	struct oltp_worker *worker;

	if (oltp_worker_create(loader->ycsb->engine, &worker)) {
		loader->rc = OLTP_NO_MEMORY;
		return NULL;
	}
	while (!loader->rc && loader->first < loader->end) {
		uint64_t end = loader->first + INSERTS_PER_TXN;

		end = end < loader->end ? end : loader->end;
		loader->rc = load_some(loader, worker, end);
		/*
		 * No room: others go to disk first, if there is one. Memory moves: also conflicts.
		 */
		if (loader->rc == OLTP_COLD)
			loader->rc = oltp_cold_wait(worker) ?: OLTP_CONFLICT;
		if (loader->rc == OLTP_CONFLICT) {
			loader->rc = OLTP_OK;
			continue;
		}
		if (loader->progress)
			atomic_fetch_add_explicit(&loader->progress->done, end - loader->first,
						  memory_order_relaxed);
		loader->first = end;
	}
	oltp_worker_destroy(worker);
	return NULL;
}

static int error_of(const struct loader *loader)
{
	if (!loader->rc)
		return 0;
	return loader->rc == OLTP_NO_MEMORY ? -ENOMEM : -EIO;
}

int ycsb_load_range(struct ycsb *ycsb, uint64_t first, uint64_t end)
{
	struct loader loader = { .ycsb = ycsb, .first = first, .end = end };

	loader_main(&loader);
	return error_of(&loader);
}

int ycsb_load_with(struct ycsb *ycsb, uint32_t n_threads, struct bench_progress *progress)
{
	struct loader loaders[THREADS_MAX] = { 0 };
	uint64_t records = ycsb->config.records;
	uint32_t n_started = 0;
	int rc = 0;

	if (progress) {
		progress->unit = "records";
		atomic_store_explicit(&progress->total, records, memory_order_release);
	}
	if (n_threads < 1)
		n_threads = 1;
	if (n_threads > THREADS_MAX)
		n_threads = THREADS_MAX;
	for (uint32_t i = 0; i < n_threads; i++) {
		struct loader *loader = &loaders[i];

		loader->ycsb = ycsb;
		loader->progress = progress;
		loader->first = records * i / n_threads;
		loader->end = records * (i + 1) / n_threads;
		rc = -pthread_create(&loader->thread, NULL, loader_main, loader);
		if (rc)
			break;
		n_started++;
	}
	for (uint32_t i = 0; i < n_started; i++) {
		pthread_join(loaders[i].thread, NULL);
		rc = rc ?: error_of(&loaders[i]);
	}
	return rc;
}

int ycsb_load(struct ycsb *ycsb, uint32_t n_threads)
{
	return ycsb_load_with(ycsb, n_threads, NULL);
}
