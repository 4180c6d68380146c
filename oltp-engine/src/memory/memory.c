// SPDX-License-Identifier: GPL-2.0-or-later
/* Limits and cut-offs from the provider of blocks, and figures about memory. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "manager.h"
#include "oltp-engine/src/txn/engine.h"

void oltp_memory_limit(struct oltp_engine *engine, uint32_t node, uint64_t limit_bytes,
		       uint64_t deadline_ns)
{
	if (node >= OLTP_NODES_MAX)
		return;
	storage_limit(&engine->storage, node, limit_bytes, deadline_ns);
	room_wake(&engine->room);
}

void oltp_memory_cutoff(struct oltp_engine *engine, uint32_t node, uint64_t value)
{
	if (node < OLTP_NODES_MAX && engine->manager)
		atomic_store_explicit(&engine->manager->shrink.cutoffs[node], value,
				      memory_order_relaxed);
}

int oltp_memory_node_read(struct oltp_engine *engine, uint32_t node,
			  struct oltp_memory_node *ret_node)
{
	if (node >= OLTP_NODES_MAX)
		return -ENXIO;
	*ret_node = (struct oltp_memory_node){ 0 };
	for (uint32_t i = 0; i < tables_count(engine); i++)
		ret_node->resident_bytes += storage_used_slots_node(engine->tables[i], node) *
					    engine->tables[i]->stride;
	pthread_mutex_lock(&engine->storage.lock);
	ret_node->held_bytes = engine->storage.nodes[node].held_bytes;
	pthread_mutex_unlock(&engine->storage.lock);
	/* The two figures are not of the same moment. */
	if (ret_node->resident_bytes > ret_node->held_bytes)
		ret_node->resident_bytes = ret_node->held_bytes;
	return 0;
}

uint64_t oltp_memory_sample_value(struct oltp_engine *engine,
				  const struct oltp_memory_sample *sample)
{
	double value;

	if (!engine->cold)
		return OLTP_WORTH_ALL;
	if (!sample->reread_ns) {
		reread_want(engine->cold);
		return OLTP_NOT_KNOWN;
	}
	value = (double)sample->reread_ns * oltp_memory_sample_rate(sample) * (1 << 20) /
		sample->bytes;
	return (uint64_t)value;
}

bool oltp_memory_fills(struct oltp_engine *engine)
{
	return manager_fills(engine->manager);
}

void oltp_memory_watch(struct oltp_engine *engine, bool is_on)
{
	if (engine->manager)
		recency_watch(engine->manager->recency, is_on);
}

static void read_storage(struct oltp_engine *engine, struct oltp_memory_stats *stats)
{
	struct storage *storage = &engine->storage;

	pthread_mutex_lock(&storage->lock);
	for (uint32_t node = 0; node < OLTP_NODES_MAX; node++) {
		stats->held_bytes += storage->nodes[node].held_bytes;
		stats->unused_bytes += storage->nodes[node].unused_bytes;
	}
	pthread_mutex_unlock(&storage->lock);
	for (uint32_t i = 0; i < tables_count(engine); i++) {
		uint64_t n = storage_used_slots(engine->tables[i]);

		stats->resident_records += n;
		stats->resident_bytes += n * engine->tables[i]->stride;
	}
}

uint64_t memory_promise_bytes(struct oltp_engine *engine, uint32_t mib)
{
	const uint64_t bytes = (uint64_t)mib << 20;
	struct oltp_memory_stats stats = { 0 };
	uint64_t vacant = 0, n = 0;
	double scale;

	read_storage(engine, &stats);
	scale = stats.resident_bytes ? (double)bytes / (double)stats.resident_bytes : 0;
	for (uint32_t i = 0; i < tables_count(engine); i++) {
		const struct oltp_table *table = engine->tables[i];
		uint64_t slots = storage_used_slots(table);

		n += slots > 0;
		vacant += room_kept((uint64_t)((double)slots * scale)) * table->stride;
	}
	vacant += n ? (n - 1) * OLTP_MEM_BLOCK_BYTES / 2 : 0;
	return bytes - (vacant < bytes / 2 ? vacant : bytes / 2);
}

/* The ages of all records, from those that are watched. Returns how many ages. */
static uint32_t read_ages(struct manager *m, struct oltp_memory_sample *samples,
			  struct promise_age *ret_ages)
{
	uint64_t now_ns = manager_busy_ns(m);
	uint32_t n = recency_read(m->recency, now_ns, 1, samples, OLTP_MEMORY_SAMPLES_MAX);

	for (uint32_t i = 0; i < n; i++)
		ret_ages[i] = (struct promise_age){
			.epoch = samples[i].last_ns == OLTP_NOT_KNOWN ? 0 :
				 recency_epoch(m->recency, now_ns, samples[i].last_ns),
			.bytes = samples[i].stands_for_bytes,
		};
	return n;
}

int oltp_set_mem_promise(struct oltp_engine *engine, uint32_t mib)
{
	struct promise_size size = { .mib = mib, .now = epoch_now(&engine->epoch) };
	struct oltp_memory_sample *samples = NULL;
	int rc = -ENOMEM;

	if (mib == promise_mib(&engine->promise))
		return 0;
	if (!engine->cold)
		return -EOPNOTSUPP;
	size.ios = counter_read(&engine->cold->counters.reads);
	if (mib) {
		samples = malloc(OLTP_MEMORY_SAMPLES_MAX * sizeof(*samples));
		size.ages = malloc(OLTP_MEMORY_SAMPLES_MAX * sizeof(*size.ages));
		if (!samples || !size.ages)
			goto out;
		size.n_ages = read_ages(engine->manager, samples, size.ages);
		size.bytes = memory_promise_bytes(engine, mib);
		size.n_records = manager_records(engine);
	}
	promise_set(&engine->promise, &size);
	rc = 0;
out:
	free(samples);
	free(size.ages);
	return rc;
}

static void read_cold(struct cold *cold, struct oltp_memory_stats *stats)
{
	struct cold_counters *c = &cold->counters;

	stats->maintenance_bytes = counter_read(&cold->books_bytes) +
				   counter_read(&cold->buffer_bytes);
	stats->cold_records = counter_read(&c->records);
	stats->cold_reads = counter_read(&c->reads);
	stats->read_errors = counter_read(&c->read_errors);
	stats->write_errors = counter_read(&c->write_errors);
	stats->evicted_records = counter_read(&c->evicted_records);
	stats->evicted_bytes = counter_read(&c->evicted_bytes);
	stats->merged_records = counter_read(&c->merged_records);
	stats->compacted_records = counter_read(&c->compacted_records);
	stats->merged_bytes = counter_read(&c->merged_bytes);
	pthread_mutex_lock(&cold->lock);
	stats->file_bytes = cold->file.bytes;
	stats->file_used_bytes = cold->n_used * COLD_EXTENT_BYTES;
	pthread_mutex_unlock(&cold->lock);
}

static void read_manager(struct manager *m, struct oltp_memory_stats *stats)
{
	stats->moved_records = counter_read(&m->evict.moved);
	pthread_mutex_lock(&m->lock);
	stats->demands = m->demands;
	stats->answered_bytes = m->answered_bytes;
	stats->unanswered_bytes = m->unanswered_bytes;
	stats->unanswered_demands = m->unanswered_demands;
	stats->last_demand_ns = m->last_demand_ns;
	pthread_mutex_unlock(&m->lock);
}

void oltp_memory_stats_read(struct oltp_engine *engine, struct oltp_memory_stats *ret_stats)
{
	*ret_stats = (struct oltp_memory_stats){ 0 };
	read_storage(engine, ret_stats);
	if (engine->cold)
		read_cold(engine->cold, ret_stats);
	if (engine->manager)
		read_manager(engine->manager, ret_stats);
	promise_read(&engine->promise, ret_stats->cold_reads, &ret_stats->baseline_ios,
		     &ret_stats->actual_ios);
	ret_stats->revoked_bytes = counter_read(&engine->revoked.bytes);
	ret_stats->lost_records = counter_read(&engine->revoked.records);
}

uint32_t oltp_memory_sample_read(struct oltp_engine *engine, struct oltp_memory_sample *ret_samples,
				 uint32_t max)
{
	struct manager *m = engine->manager;

	return m ? recency_read(m->recency, manager_busy_ns(m), manager_expected(m), ret_samples,
				max) : 0;
}

/* Share of the resident bytes whose last use is at least so long ago; also if it is not known. */
static double unused_share(const struct oltp_memory_sample *samples, uint32_t n, uint64_t age_ns)
{
	double all = 0, unused = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!samples[i].is_resident)
			continue;
		all += (double)samples[i].stands_for_bytes;
		if (samples[i].last_ns >= age_ns)
			unused += (double)samples[i].stands_for_bytes;
	}
	return all > 0 ? unused / all : NAN;
}

static void read_rereads(struct cold *cold, struct oltp_memory_recency *recency)
{
	uint64_t reads = counter_read(&cold->counters.reads);
	struct hist_view view = { { 0 } };

	for (uint32_t i = 0; i < OLTP_TABLES_MAX; i++)
		hist_view_add(&view, &cold->rereads[i].cost);
	recency->rereads = hist_view_count(&view);
	recency->reread_p50_ns = hist_view_quantile_ns(&view, 0.5);
	recency->reread_p99_ns = hist_view_quantile_ns(&view, 0.99);
	if (reads)
		recency->reread_cpu_ns = (double)counter_read(&cold->counters.read_cpu_ns) /
					 (double)reads;
}

int oltp_memory_recency_read(struct oltp_engine *engine, struct oltp_memory_recency *ret_recency)
{
	struct oltp_memory_sample *samples = calloc(OLTP_MEMORY_SAMPLES_MAX, sizeof(*samples));
	struct manager *m = engine->manager;
	uint32_t n;

	if (!samples)
		return -ENOMEM;
	n = oltp_memory_sample_read(engine, samples, OLTP_MEMORY_SAMPLES_MAX);
	*ret_recency = (struct oltp_memory_recency){
		.samples = n,
		.unused_1s = unused_share(samples, n, 1000000000ull),
		.unused_10s = unused_share(samples, n, 10000000000ull),
		.unused_60s = unused_share(samples, n, 60000000000ull),
	};
	for (uint32_t i = 0; i < n; i++)
		ret_recency->resident_samples += samples[i].is_resident;
	free(samples);
	if (m) {
		pthread_mutex_lock(&m->recency->lock);
		ret_recency->looks = m->recency->looks;
		ret_recency->look_ns = m->recency->look_ns;
		pthread_mutex_unlock(&m->recency->lock);
	}
	if (engine->cold)
		read_rereads(engine->cold, ret_recency);
	return 0;
}
