// SPDX-License-Identifier: BSD-3-Clause
/*
 * Statistics, to the monitor and back.
 */
#include <errno.h>
#include <string.h>

#include "handle.h"

#define STATS_TIMEOUT_MS	1000

void ebb_baseline_set(struct ebb *ebb, uint32_t mib, uint64_t baseline_ios, uint64_t actual_ios)
{
	pthread_mutex_lock(&ebb->lock);
	ebb->baseline_mib = mib;
	ebb->baseline_ios = baseline_ios;
	ebb->actual_ios = actual_ios;
	pthread_mutex_unlock(&ebb->lock);
}

int ebb_report(struct ebb *ebb, const struct ebb_stats *stats)
{
	union ebb_msg msg;

	ebb_msg_init(&msg, EBB_MSG_REPORT, 0);
	pthread_mutex_lock(&ebb->lock);
	msg.report.baseline_mib = ebb->baseline_mib;
	msg.report.counters.baseline_ios = ebb->baseline_ios;
	msg.report.counters.actual_ios = ebb->actual_ios;
	pthread_mutex_unlock(&ebb->lock);
	msg.report.counters.committed = stats->committed;
	msg.report.counters.aborted = stats->aborted;
	msg.report.counters.failed = stats->failed;
	msg.report.counters.accesses = stats->accesses;
	msg.report.p50_us = stats->p50_us;
	msg.report.p95_us = stats->p95_us;
	msg.report.p99_us = stats->p99_us;
	msg.report.workers = stats->workers;
	msg.report.interval_ms = stats->interval_ms;
	return ebb_link_report(&ebb->link, &msg.report);
}

int ebb_stats_get(struct ebb *ebb, const char *name, struct ebb_stats *ret)
{
	struct ebb_msg_stats m;
	int r;

	if (!name)
		name = "";
	else if (!ebb_msg_name_is_valid(name))
		return -ENOENT;
	r = ebb_link_stats(&ebb->link, name, STATS_TIMEOUT_MS, &m);
	if (r < 0)
		return r;
	memset(ret, 0, sizeof(*ret));
	ret->committed = m.counters.committed;
	ret->aborted = m.counters.aborted;
	ret->failed = m.counters.failed;
	ret->accesses = m.counters.accesses;
	ret->p50_us = m.p50_us;
	ret->p95_us = m.p95_us;
	ret->p99_us = m.p99_us;
	ret->workers = m.workers;
	ret->interval_ms = m.interval_ms;
	ret->committed_ps = m.committed_ps;
	ret->aborted_ps = m.aborted_ps;
	ret->accesses_ps = m.accesses_ps;
	ret->cpu_permille = m.cpu_permille;
	ret->cpus_online = m.cpus_online;
	ret->mem_total_bytes = m.mem_total_bytes;
	ret->mem_available_bytes = m.mem_available_bytes;
	return 0;
}
