// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CPUs from the host: maps libebb's shares to the engine's view of a source. libebb allows one
 * thread to dispatch while another waits in ebb_cpu_add, _lend or _remove, which is how the engine
 * calls a source.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "source_ebb.h"

#define CPUS_MAX	OLTP_WORKERS_MAX

/* As of the last view. */
struct known_cpu {
	uint32_t node;
	enum oltp_tier tier;	/* how it is away, or was last; NONE: not known */
};

struct source_ebb {
	struct source_ebb_config config;
	bool is_gone;
	pthread_mutex_t lock;	/* for known, which both threads use */
	struct known_cpu known[CPUS_MAX];	/* by number */
};

int source_ebb_create(const struct source_ebb_config *config, void **ret_source)
{
	struct source_ebb *source = calloc(1, sizeof(*source));
	int rc;

	if (!source)
		return -ENOMEM;
	rc = -pthread_mutex_init(&source->lock, NULL);
	if (rc) {
		free(source);
		return rc;
	}
	source->config = *config;
	*ret_source = source;
	return 0;
}

void source_ebb_destroy(void *opaque)
{
	struct source_ebb *source = opaque;

	if (!source)
		return;
	pthread_mutex_destroy(&source->lock);
	free(source);
}

static int ebb_startup(void *opaque, struct oltp_cpu *ret_cpus, uint32_t max)
{
	struct source_ebb *source = opaque;
	struct ebb_cpu cpus[CPUS_MAX];
	uint32_t n_startup = 0;
	int n = ebb_cpu_list(source->config.ebb, cpus, CPUS_MAX);

	if (n < 0)
		return n;
	for (int i = 0; i < n && i < (int)CPUS_MAX; i++) {
		if (!(cpus[i].flags & EBB_CPU_STARTUP))
			continue;
		if (n_startup == max)
			return -ENOSPC;
		ret_cpus[n_startup++] = (struct oltp_cpu){ cpus[i].cpu, cpus[i].node };
	}
	return n_startup ? (int)n_startup : -ENXIO;
}

static int ebb_source_fd(void *opaque)
{
	struct source_ebb *source = opaque;

	return source->is_gone ? -1 : ebb_fd(source->config.ebb);
}

/*
 * A CPU that is not listed is not plugged. One in use keeps the tier in which it was away last: an
 * add that has got it may not have asked for the tier yet.
 */
static void know_cpus(struct source_ebb *source, const struct ebb_cpu *cpus, int n)
{
	enum oltp_tier was[CPUS_MAX];

	pthread_mutex_lock(&source->lock);
	for (uint32_t i = 0; i < CPUS_MAX; i++) {
		was[i] = source->known[i].tier;
		source->known[i].tier = OLTP_TIER_UNPLUG;
	}
	for (int i = 0; i < n; i++) {
		struct known_cpu *known;

		if (cpus[i].cpu >= CPUS_MAX)
			continue;
		known = &source->known[cpus[i].cpu];
		known->node = cpus[i].node;
		known->tier = cpus[i].flags & EBB_CPU_PARKED ? OLTP_TIER_PARK :
			      cpus[i].flags & EBB_CPU_LENT ? OLTP_TIER_LEND : was[cpus[i].cpu];
	}
	pthread_mutex_unlock(&source->lock);
}

static int list_forced(struct source_ebb *source, struct oltp_cpu_view *view)
{
	const uint32_t mine = EBB_CPU_OWNED | EBB_CPU_FORCED;
	struct ebb_cpu cpus[CPUS_MAX];
	int n = ebb_cpu_list(source->config.ebb, cpus, CPUS_MAX);

	if (n < 0)
		return n;
	if (n > (int)CPUS_MAX)
		n = (int)CPUS_MAX;
	know_cpus(source, cpus, n);
	for (int i = 0; i < n; i++) {
		/* CPUs that do not fit are seen once these are gone. */
		if ((cpus[i].flags & mine) == mine && view->n_forced < OLTP_MOVE_MAX)
			view->forced[view->n_forced++] = cpus[i].cpu;
	}
	return 0;
}

static int look(struct source_ebb *source, struct oltp_cpu_view *view)
{
	struct ebb_shares shares;
	int rc = ebb_dispatch(source->config.ebb);

	if (rc < 0)
		return rc;
	ebb_shares_get(source->config.ebb, &shares);
	for (uint32_t i = 0; i < shares.num_nodes && i < OLTP_NODES_MAX; i++) {
		view->nodes[view->n_nodes++] = (struct oltp_node_share){
			.node = shares.nodes[i].node,
			.cpus_offered = shares.nodes[i].cpus_offered,
			.cpus_demanded = shares.nodes[i].cpus_demanded,
			.deadline_ns = shares.nodes[i].deadline_ns,
		};
	}
	return list_forced(source, view);
}

/* The engine has its startup CPUs whatever happens to the device, so it carries on. */
static int ebb_view(void *opaque, struct oltp_cpu_view *ret_view)
{
	struct source_ebb *source = opaque;
	struct oltp_cpu_view view = { 0 };
	int rc = source->is_gone ? 0 : look(source, &view);

	if (rc < 0) {
		source->is_gone = true;
		if (source->config.on_gone)
			source->config.on_gone(source->config.ctx, rc);
		view = (struct oltp_cpu_view){ 0 };
	}
	*ret_view = view;
	return 0;
}

static struct known_cpu known_get(struct source_ebb *source, uint32_t cpu)
{
	struct known_cpu known = { .tier = OLTP_TIER_NONE };

	if (cpu >= CPUS_MAX)
		return known;
	pthread_mutex_lock(&source->lock);
	known = source->known[cpu];
	pthread_mutex_unlock(&source->lock);
	return known;
}

static void known_set_tier(struct source_ebb *source, uint32_t cpu, enum oltp_tier tier)
{
	if (cpu >= CPUS_MAX)
		return;
	pthread_mutex_lock(&source->lock);
	source->known[cpu].tier = tier;
	pthread_mutex_unlock(&source->lock);
}

static int ebb_add(void *opaque, uint32_t node, uint32_t count, struct oltp_cpu *ret_cpus,
		   struct oltp_move_times *ret_times)
{
	struct source_ebb *source = opaque;
	struct ebb_cpu cpus[EBB_MAX_REQ_CPUS];
	struct ebb_times times = { 0 };
	int n;

	if (count > EBB_MAX_REQ_CPUS)
		count = EBB_MAX_REQ_CPUS;
	n = ebb_cpu_add(source->config.ebb, count, node,
			source->config.no_ht ? 0 : EBB_ADD_ALLOW_HT, 0, cpus, &times);
	*ret_times = (struct oltp_move_times){ times.host_ns, times.kernel_ns, OLTP_TIER_NONE };
	for (int i = 0; i < n; i++) {
		enum oltp_tier tier = known_get(source, cpus[i].cpu).tier;

		ret_cpus[i] = (struct oltp_cpu){ cpus[i].cpu, cpus[i].node };
		/* The call has waited for the CPU that was farthest away. */
		if (tier > ret_times->tier)
			ret_times->tier = tier;
	}
	return n;
}

/*
 * How to give a CPU back: as the user says, else as the host likes, else by lending, which is
 * quickest.
 */
static enum oltp_tier tier_choose(struct source_ebb *source, uint32_t cpu)
{
	struct known_cpu known = known_get(source, cpu);
	struct ebb_shares shares;

	if (source->config.tier != OLTP_TIER_NONE)
		return source->config.tier;
	ebb_shares_get(source->config.ebb, &shares);
	for (uint32_t i = 0; i < shares.num_nodes; i++) {
		if (shares.nodes[i].node != known.node)
			continue;
		switch (shares.nodes[i].tier) {
		case VIRTIO_EBB_TIER_PARK:
			return OLTP_TIER_PARK;
		case VIRTIO_EBB_TIER_UNPLUG:
			return OLTP_TIER_UNPLUG;
		default:
			return OLTP_TIER_LEND;
		}
	}
	return OLTP_TIER_LEND;
}

static int ebb_remove(void *opaque, uint32_t cpu, struct oltp_move_times *ret_times)
{
	struct source_ebb *source = opaque;
	enum oltp_tier tier = tier_choose(source, cpu);
	struct ebb_times times = { 0 };
	int rc = -EOPNOTSUPP;

	if (tier != OLTP_TIER_UNPLUG)
		rc = ebb_cpu_lend(source->config.ebb, cpu,
				  tier == OLTP_TIER_PARK ? EBB_LEND_PARK : 0, 0, &times);
	if (rc == -EOPNOTSUPP) {
		tier = OLTP_TIER_UNPLUG;
		rc = ebb_cpu_remove(source->config.ebb, cpu, 0, &times);
	}
	if (!rc)
		known_set_tier(source, cpu, tier);
	*ret_times = (struct oltp_move_times){ times.host_ns, times.kernel_ns, tier };
	return rc;
}

/* Latencies of a busy engine are below a microsecond's resolution; 0 would read as "none". */
static uint32_t whole_us(double us)
{
	if (us <= 0)
		return 0;
	return us >= UINT32_MAX ? UINT32_MAX : (uint32_t)us + 1;
}

static int ebb_publish(void *opaque, const struct oltp_sample *sample)
{
	struct source_ebb *source = opaque;
	const struct ebb_stats stats = {
		.committed = sample->totals.committed,
		.aborted = sample->totals.conflicts,
		.failed = sample->totals.failed,
		.accesses = sample->totals.accesses,
		.p50_us = whole_us(sample->p50_us),
		.p95_us = whole_us(sample->p95_us),
		.p99_us = whole_us(sample->p99_us),
		.workers = sample->workers,
		.interval_ms = source->config.interval_ms,
	};

	if (source->is_gone)
		return -ENODEV;
	if (source->config.blocks)
		blocks_ebb_count_ios(source->config.blocks);
	return ebb_report(source->config.ebb, &stats);
}

const struct oltp_cpu_source_ops source_ebb_ops = {
	.startup = ebb_startup,
	.fd = ebb_source_fd,
	.view = ebb_view,
	.add = ebb_add,
	.remove = ebb_remove,
	.publish = ebb_publish,
};
