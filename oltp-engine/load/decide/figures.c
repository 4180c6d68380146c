// SPDX-License-Identifier: GPL-2.0-or-later
/* See figures.h. */
#include "figures.h"

#define NS_PER_US	1e3

static void add_time(struct load_times *t, uint64_t response_ns, uint64_t service_ns)
{
	t->hist.counts[hist_bucket_of(response_ns)]++;
	t->done++;
	t->sum_ns += response_ns;
	t->service_ns += service_ns;
	if (response_ns > t->max_ns)
		t->max_ns = response_ns;
}

void load_figures_done(struct load_figures *figures, uint32_t node, enum load_kind kind,
		       uint64_t response_ns, uint64_t service_ns)
{
	add_time(&figures->nodes[node], response_ns, service_ns);
	add_time(&figures->kinds[kind], response_ns, service_ns);
}

void load_figures_fail(struct load_figures *figures, uint32_t node, enum load_kind kind,
		       enum load_failure why)
{
	figures->failed[why]++;
	figures->kinds[kind].failed++;
	if (node != LOAD_NO_NODE)
		figures->nodes[node].failed++;
}

void load_times_add(struct load_times *sum, const struct load_times *times)
{
	for (uint32_t i = 0; times->done && i < HIST_BUCKETS; i++)
		sum->hist.counts[i] += times->hist.counts[i];
	sum->done += times->done;
	sum->failed += times->failed;
	sum->sum_ns += times->sum_ns;
	sum->service_ns += times->service_ns;
	if (times->max_ns > sum->max_ns)
		sum->max_ns = times->max_ns;
}

void load_figures_add(struct load_figures *whole, const struct load_figures *part)
{
	whole->arrived += part->arrived;
	whole->sent += part->sent;
	whole->repeated += part->repeated;
	for (uint32_t i = 0; i < LOAD_FAILURES; i++)
		whole->failed[i] += part->failed[i];
	for (uint32_t i = 0; i < LOAD_NODES_MAX; i++)
		load_times_add(&whole->nodes[i], &part->nodes[i]);
	for (uint32_t i = 0; i < LOAD_KINDS; i++)
		load_times_add(&whole->kinds[i], &part->kinds[i]);
}

static double mean_us(uint64_t sum_ns, uint64_t n)
{
	return n ? (double)sum_ns / (double)n / NS_PER_US : 0;
}

double load_times_mean_us(const struct load_times *times)
{
	return mean_us(times->sum_ns, times->done);
}

double load_times_service_us(const struct load_times *times)
{
	return mean_us(times->service_ns, times->done);
}

double load_times_quantile_us(const struct load_times *times, double quantile)
{
	double ns = hist_view_quantile_ns(&times->hist, quantile);

	return (ns < (double)times->max_ns ? ns : (double)times->max_ns) / NS_PER_US;
}

uint64_t load_figures_failed(const struct load_figures *figures)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < LOAD_FAILURES; i++)
		n += figures->failed[i];
	return n;
}
