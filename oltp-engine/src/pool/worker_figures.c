// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the workers of a pool did. Nothing of a worker that has left is lost: its totals and
 * latencies stay in those of the pool.
 */
#include <stdlib.h>

#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/txn/engine.h"
#include "worker_pool.h"

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
	totals->waits += stats.waits;
	totals->wounds += stats.wounds;
}

void pool_figures_keep(struct oltp_pool *pool, const struct pool_worker *pw,
		       struct oltp_totals *ret_totals)
{
	totals_add(&pool->gone_totals, pw);
	hist_view_add(&pool->gone_hist, &pw->hist);
	pool->gone_idles += counter_read(&pw->idles);
	pool->gone_stalled_ns += counter_read(&pw->stalled_ns);
	if (ret_totals) {
		*ret_totals = (struct oltp_totals){ 0 };
		totals_add(ret_totals, pw);
	}
}

void acks_push(struct acks *acks, uint64_t epoch, uint64_t start_ns)
{
	uint32_t at = (acks->first + acks->n - 1) % ACKS_EPOCHS;

	if (!acks->n || acks->epochs[at].epoch != epoch) {
		at = (acks->first + acks->n++) % ACKS_EPOCHS;
		acks->epochs[at].epoch = epoch;
		acks->epochs[at].n = 0;
		acks->epochs[at].n_starts = 0;
	}
	acks->epochs[at].n++;
	if (!start_ns)
		return;
	acks->epochs[at].n_starts++;
	acks->starts[(acks->first_start + acks->n_starts++) % ACKS_STARTS] = start_ns;
}

static void acks_measure(struct acks *acks, uint32_t n, uint64_t now_ns, struct hist *hist)
{
	for (uint32_t i = 0; hist && i < n; i++)
		hist_record_since(hist,
				  acks->starts[(acks->first_start + i) % ACKS_STARTS], now_ns);
	acks->first_start = (acks->first_start + n) % ACKS_STARTS;
	acks->n_starts -= n;
}

uint64_t acks_take(struct acks *acks, uint64_t durable, uint64_t now_ns, struct hist *hist)
{
	uint64_t taken = 0;

	while (acks_are_due(acks, durable)) {
		taken += acks->epochs[acks->first].n;
		acks_measure(acks, acks->epochs[acks->first].n_starts, now_ns, hist);
		acks->first = (acks->first + 1) % ACKS_EPOCHS;
		acks->n--;
	}
	return taken;
}

static void acks_collect(struct oltp_pool *pool)
{
	uint64_t durable = oltp_durable_epoch(pool->engine);
	struct acks **at, *acks;

	for (at = &pool->orphans; (acks = *at);) {
		pool->gone_totals.committed += acks_take(acks, durable, 0, NULL);
		if (acks->n && log_state(pool->engine->log) == LOG_FAILED) {
			uint64_t n = acks_take(acks, UINT64_MAX, 0, NULL);

			pool->gone_totals.failed += n;
			pool->gone_totals.failed_io += n;
		}
		if (acks->n) {
			at = &acks->next;
		} else {
			*at = acks->next;
			free(acks);
		}
	}
}

void pool_acks_adopt(struct oltp_pool *pool, struct acks *acks)
{
	if (!acks)
		return;
	acks->next = pool->orphans;
	pool->orphans = acks;
	acks_collect(pool);
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
	/* A rate that was set for a time in the past may have lowered the count. */
	if (seconds > 0 && count.arrived > pool->last_arrived)
		sample->offered_ps = (double)(count.arrived - pool->last_arrived) / seconds;
	pool->last_arrived = count.arrived;
}

void oltp_pool_sample(struct oltp_pool *pool, uint64_t now_ns, struct oltp_sample *ret_sample)
{
	struct hist_view hist = pool->gone_hist, diff;
	struct oltp_totals totals;
	double seconds = 0;

	acks_collect(pool);
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
