// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics of applications: see store.h.
 */
#include <endian.h>
#include <string.h>

#include "store.h"

#define NS_PER_SEC	1000000000.0
#define NS_PER_MS	1000000ull

static uint64_t sum_u64(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static uint32_t sum_u32(uint32_t a, uint32_t b)
{
	return a + b < a ? UINT32_MAX : a + b;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* T1: a counter that went back, or two reports that overtook each other, change nothing. */
static void counter_raise(uint64_t *counter, uint64_t *sum, uint64_t now)
{
	if (now <= *counter)
		return;
	*sum = sum_u64(*sum, now - *counter);
	*counter = now;
}

void ebb_store_hello(struct ebb_store_app *app, const struct ebb_msg_counters *counters,
		     uint64_t now_ns)
{
	memset(app, 0, sizeof(*app));
	app->counters = *counters;
	app->rate_counters = *counters;
	app->rate_ns = now_ns;
}

static void rates_update(struct ebb_store_app *app, bool is_first, uint64_t now_ns)
{
	double seconds = (double)(now_ns - app->rate_ns) / NS_PER_SEC;
	const struct ebb_msg_counters *then = &app->rate_counters;
	bool is_long_enough = now_ns - app->rate_ns >= EBB_STORE_RATE_MIN_MS * NS_PER_MS;

	if (is_long_enough) {
		app->committed_ps = (double)(app->counters.committed - then->committed) / seconds;
		app->aborted_ps = (double)(app->counters.aborted - then->aborted) / seconds;
		app->accesses_ps = (double)(app->counters.accesses - then->accesses) / seconds;
	}
	/* What came before the first report is no part of the rate after it. */
	if (!is_long_enough && !is_first)
		return;
	app->rate_counters = app->counters;
	app->rate_ns = now_ns;
}

void ebb_store_report(struct ebb_store_app *app, struct ebb_msg_counters *sums,
		      const struct ebb_msg_report *report, uint64_t now_ns)
{
	const struct ebb_msg_counters *now = &report->counters;
	bool is_first = !app->has_report;

	counter_raise(&app->counters.committed, &sums->committed, now->committed);
	counter_raise(&app->counters.aborted, &sums->aborted, now->aborted);
	counter_raise(&app->counters.failed, &sums->failed, now->failed);
	counter_raise(&app->counters.accesses, &sums->accesses, now->accesses);
	counter_raise(&app->counters.baseline_ios, &sums->baseline_ios, now->baseline_ios);
	counter_raise(&app->counters.actual_ios, &sums->actual_ios, now->actual_ios);
	app->p50_us = report->p50_us;
	app->p95_us = report->p95_us;
	app->p99_us = report->p99_us;
	app->workers = report->workers;
	app->interval_ms = report->interval_ms;
	app->baseline_mib = report->baseline_mib;
	app->has_report = true;
	app->reported_ns = now_ns;
	rates_update(app, is_first, now_ns);
}

void ebb_store_get(const struct ebb_store_app *app, const struct ebb_store_guest *guest,
		   struct ebb_msg_stats *ret)
{
	ret->counters = app->counters;
	ret->p50_us = app->p50_us;
	ret->p95_us = app->p95_us;
	ret->p99_us = app->p99_us;
	ret->workers = app->workers;
	ret->interval_ms = app->interval_ms;
	ret->committed_ps = app->committed_ps;
	ret->aborted_ps = app->aborted_ps;
	ret->accesses_ps = app->accesses_ps;
	ret->cpu_permille = guest->cpu_permille;
	ret->cpus_online = guest->cpus_online;
	ret->mem_total_bytes = guest->mem_total_bytes;
	ret->mem_available_bytes = guest->mem_available_bytes;
}

void ebb_store_telemetry(const struct ebb_store_app *const apps[], size_t num,
			 const struct ebb_msg_counters *sums, const struct ebb_store_guest *guest,
			 bool has_baseline, uint32_t interval_ms, uint64_t now_ns,
			 struct virtio_ebb_telemetry *ret)
{
	uint32_t p50_us = 0, p95_us = 0, p99_us = 0, workers = 0, covered_ms = 0, mib = 0;

	for (size_t i = 0; i < num; i++) {
		const struct ebb_store_app *app = apps[i];

		if (!app->has_report ||
		    now_ns - app->reported_ns > EBB_STORE_FRESH_MS * NS_PER_MS)
			continue;
		p50_us = max_u32(p50_us, app->p50_us);
		p95_us = max_u32(p95_us, app->p95_us);
		p99_us = max_u32(p99_us, app->p99_us);
		workers = sum_u32(workers, app->workers);
		covered_ms = max_u32(covered_ms, app->interval_ms);
		mib = sum_u32(mib, app->baseline_mib);
	}
	memset(ret, 0, sizeof(*ret));
	ret->type = htole16(VIRTIO_EBB_TELEMETRY_TOTALS);
	ret->num_apps = htole16((uint16_t)num);
	ret->interval_ms = htole32(covered_ms ? covered_ms : interval_ms);
	ret->committed = htole64(sums->committed);
	ret->aborted = htole64(sums->aborted);
	ret->failed = htole64(sums->failed);
	ret->accesses = htole64(sums->accesses);
	ret->p50_us = htole32(p50_us);
	ret->p95_us = htole32(p95_us);
	ret->p99_us = htole32(p99_us);
	ret->workers = htole32(workers);
	ret->cpus_online = htole32(guest->cpus_online);
	ret->cpu_permille = htole32(guest->cpu_permille_interval);
	ret->mem_total_bytes = htole64(guest->mem_total_bytes);
	ret->mem_available_bytes = htole64(guest->mem_available_bytes);
	if (!has_baseline)
		return;
	ret->baseline_ios = htole64(sums->baseline_ios);
	ret->actual_ios = htole64(sums->actual_ios);
	ret->baseline_mib = htole32(mib);
}
