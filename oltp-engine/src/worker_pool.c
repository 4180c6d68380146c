// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The worker pool: starts and stops pinned workers and adds up what they did. Nothing of a worker
 * that has left is lost: its totals and latencies stay in those of the pool.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "worker_pool.h"

#define LATENCY_EVERY_DEFAULT	64u

int oltp_pool_create(const struct oltp_pool_config *config, struct oltp_pool **ret_pool)
{
	uint32_t every = config->latency_every ?: LATENCY_EVERY_DEFAULT;
	struct oltp_pool *pool;

	if (!config->engine || !config->workload || !config->workload->attach ||
	    !config->workload->run || !config->workload->detach || (every & (every - 1)))
		return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->engine = config->engine;
	pool->workload = *config->workload;
	pool->latency_every = every;
	pool->no_pin = config->no_pin;
	pool->arrivals = config->arrivals;
	*ret_pool = pool;
	return 0;
}

void oltp_pool_destroy(struct oltp_pool *pool)
{
	if (!pool)
		return;
	for (uint32_t i = 0; i < pool->n_workers; i++)
		oltp_pool_stop(pool, pool->workers[i]->cpu);
	while (pool->n_workers)
		oltp_pool_remove(pool, pool->workers[pool->n_workers - 1]->cpu, NULL);
	free(pool->workers);
	free(pool);
}

/* Index of the worker, or n_workers. */
static uint32_t find(const struct oltp_pool *pool, uint32_t cpu)
{
	uint32_t i = 0;

	while (i < pool->n_workers && pool->workers[i]->cpu != cpu)
		i++;
	return i;
}

/* The thread is born on its CPU, so it never runs, or touches memory, anywhere else. */
static int thread_create(struct pool_worker *pw)
{
	size_t set_bytes = CPU_ALLOC_SIZE(pw->cpu + 1);
	pthread_attr_t attr;
	cpu_set_t *set;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	if (!pw->pool->no_pin) {
		set = CPU_ALLOC(pw->cpu + 1);
		if (!set) {
			rc = ENOMEM;
			goto out_attr;
		}
		CPU_ZERO_S(set_bytes, set);
		CPU_SET_S(pw->cpu, set_bytes, set);
		rc = pthread_attr_setaffinity_np(&attr, set_bytes, set);
		CPU_FREE(set);
		if (rc)
			goto out_attr;
	}
	rc = pthread_create(&pw->thread, &attr, pool_worker_main, pw);
out_attr:
	pthread_attr_destroy(&attr);
	return -rc;
}

static int wait_started(struct pool_worker *pw)
{
	int rc;

	pthread_mutex_lock(&pw->lock);
	while (!pw->is_started)
		pthread_cond_wait(&pw->started, &pw->lock);
	rc = pw->start_rc;
	pthread_mutex_unlock(&pw->lock);
	return rc;
}

/* The thread has ended or was never started. */
static void worker_free(struct pool_worker *pw)
{
	oltp_worker_destroy(pw->worker);
	pthread_cond_destroy(&pw->started);
	pthread_mutex_destroy(&pw->lock);
	free(pw);
}

static int make_room(struct oltp_pool *pool)
{
	uint32_t room = pool->room ? pool->room * 2 : 16;
	struct pool_worker **workers;

	if (pool->n_workers < pool->room)
		return 0;
	workers = realloc(pool->workers, room * sizeof(struct pool_worker *));
	if (!workers)
		return -ENOMEM;
	pool->workers = workers;
	pool->room = room;
	return 0;
}

/* Starts the thread and lists the worker, attached or not; wait_worker must follow. */
static int begin_worker(struct oltp_pool *pool, uint32_t cpu)
{
	struct pool_worker *pw;
	int rc;

	if (find(pool, cpu) < pool->n_workers)
		return -EEXIST;
	rc = make_room(pool);
	if (rc)
		return rc;
	pw = aligned_alloc(CACHE_PAD_BYTES, sizeof(*pw));
	if (!pw)
		return -ENOMEM;
	memset(pw, 0, sizeof(*pw));
	pw->pool = pool;
	pw->cpu = cpu;
	pthread_mutex_init(&pw->lock, NULL);
	pthread_cond_init(&pw->started, NULL);
	rc = thread_create(pw);
	if (rc)
		worker_free(pw);
	else
		pool->workers[pool->n_workers++] = pw;
	return rc;
}

/* Until it has attached; one that could not is gone afterwards. */
static int wait_worker(struct oltp_pool *pool, uint32_t cpu)
{
	uint32_t i = find(pool, cpu);
	struct pool_worker *pw = pool->workers[i];
	int rc = wait_started(pw);

	if (rc) {
		pthread_join(pw->thread, NULL);
		pool->workers[i] = pool->workers[--pool->n_workers];
		worker_free(pw);
	}
	return rc;
}

int oltp_pool_add(struct oltp_pool *pool, uint32_t cpu)
{
	int rc;

	oltp_pool_add_all(pool, &cpu, 1, &rc);
	return rc;
}

void oltp_pool_add_all(struct oltp_pool *pool, const uint32_t *cpus, uint32_t n, int *ret_rcs)
{
	for (uint32_t i = 0; i < n; i++)
		ret_rcs[i] = begin_worker(pool, cpus[i]);
	for (uint32_t i = 0; i < n; i++) {
		if (!ret_rcs[i])
			ret_rcs[i] = wait_worker(pool, cpus[i]);
	}
}

int oltp_pool_stop(struct oltp_pool *pool, uint32_t cpu)
{
	uint32_t i = find(pool, cpu);

	if (i == pool->n_workers)
		return -ENOENT;
	/* Nothing is handed over by the flag; the join in oltp_pool_remove orders the rest. */
	atomic_store_explicit(&pool->workers[i]->stop, true, memory_order_relaxed);
	return 0;
}

static void totals_add(struct oltp_totals *totals, const struct pool_worker *pw)
{
	struct oltp_worker_stats stats;

	totals->committed += counter_read(&pw->committed);
	totals->conflicts += counter_read(&pw->conflicts);
	totals->failed += counter_read(&pw->failed);
	totals->failed_io += counter_read(&pw->failed_io);
	totals->failed_lost += counter_read(&pw->failed_lost);
	totals->cpu_ns += counter_read(&pw->cpu_ns);
	oltp_worker_stats_read(pw->worker, &stats);
	totals->accesses += stats.accesses;
	totals->colds += stats.colds;
}

int oltp_pool_remove(struct oltp_pool *pool, uint32_t cpu, struct oltp_totals *ret_totals)
{
	uint32_t i = find(pool, cpu);
	struct pool_worker *pw;

	if (i == pool->n_workers)
		return -ENOENT;
	oltp_pool_stop(pool, cpu);
	pw = pool->workers[i];
	pthread_join(pw->thread, NULL);
	totals_add(&pool->gone_totals, pw);
	hist_view_add(&pool->gone_hist, &pw->hist);
	pool->gone_idles += counter_read(&pw->idles);
	pool->gone_stalled_ns += counter_read(&pw->stalled_ns);
	if (ret_totals) {
		*ret_totals = (struct oltp_totals){ 0 };
		totals_add(ret_totals, pw);
	}
	pool->workers[i] = pool->workers[--pool->n_workers];
	worker_free(pw);
	return 0;
}

uint32_t oltp_pool_count(const struct oltp_pool *pool)
{
	return pool->n_workers;
}

void oltp_pool_totals(const struct oltp_pool *pool, struct oltp_totals *ret_totals)
{
	*ret_totals = pool->gone_totals;
	for (uint32_t i = 0; i < pool->n_workers; i++)
		totals_add(ret_totals, pool->workers[i]);
}

void pool_progress_read(const struct oltp_pool *pool, struct pool_progress *ret_progress)
{
	*ret_progress = (struct pool_progress){ pool->gone_totals.committed, pool->gone_stalled_ns,
						pool->gone_idles };
	for (uint32_t i = 0; i < pool->n_workers; i++) {
		ret_progress->committed += counter_read(&pool->workers[i]->committed);
		ret_progress->stalled_ns += counter_read(&pool->workers[i]->stalled_ns);
		ret_progress->idles += counter_read(&pool->workers[i]->idles);
	}
}

static void sample_fill(struct oltp_sample *sample, double seconds,
			const struct oltp_totals *from, const struct oltp_totals *to,
			const struct hist_view *hist)
{
	*sample = (struct oltp_sample){
		.interval_s = seconds,
		.p50_us = hist_view_quantile_ns(hist, 0.50) / 1e3,
		.p95_us = hist_view_quantile_ns(hist, 0.95) / 1e3,
		.p99_us = hist_view_quantile_ns(hist, 0.99) / 1e3,
		.measured = hist_view_count(hist),
		.totals = *to,
	};
	if (seconds > 0) {
		sample->tps = (double)(to->committed - from->committed) / seconds;
		sample->aborts_ps = (double)(to->conflicts - from->conflicts) / seconds;
	}
}

void oltp_pool_whole(const struct oltp_pool *pool, struct oltp_sample *ret_sample)
{
	const struct oltp_totals none = { 0 };

	sample_fill(ret_sample, (double)(pool->last_sample_ns - pool->first_sample_ns) / 1e9, &none,
		    &pool->last_totals, &pool->last_hist);
	ret_sample->workers = pool->n_workers;
}

static void sample_arrivals(struct oltp_pool *pool, uint64_t now_ns, double seconds,
			    struct oltp_sample *sample)
{
	struct arrivals_count count;

	if (!pool->arrivals)
		return;
	arrivals_count(pool->arrivals, now_ns, &count);
	sample->queue = count.waiting;
	/* A rate that was set for a time in the past may have made it fewer. */
	if (seconds > 0 && count.arrived > pool->last_arrived)
		sample->offered_ps = (double)(count.arrived - pool->last_arrived) / seconds;
	pool->last_arrived = count.arrived;
}

void oltp_pool_sample(struct oltp_pool *pool, uint64_t now_ns, struct oltp_sample *ret_sample)
{
	struct hist_view hist = pool->gone_hist, diff;
	struct oltp_totals totals;
	double seconds = 0;

	oltp_pool_totals(pool, &totals);
	for (uint32_t i = 0; i < pool->n_workers; i++)
		hist_view_add(&hist, &pool->workers[i]->hist);
	diff = hist;
	hist_view_sub(&diff, &pool->last_hist);
	/* The first call only starts the interval: the pool does not read a clock. */
	if (pool->first_sample_ns)
		seconds = (double)(now_ns - pool->last_sample_ns) / 1e9;
	else
		pool->first_sample_ns = now_ns;
	sample_fill(ret_sample, seconds, &pool->last_totals, &totals, &diff);
	sample_arrivals(pool, now_ns, seconds, ret_sample);
	ret_sample->workers = pool->n_workers;
	pool->last_sample_ns = now_ns;
	pool->last_totals = totals;
	pool->last_hist = hist;
}
