/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VM Monitor: what the applications report of themselves, the rates that follow
 * from it, and the sum over all for the host.  Pure: no I/O, no clock.
 *
 * Applications are not trusted to count right.  Invariants:
 *
 *   T1  the counters of an application, and their sums, never decrease
 *   T2  an application that registers again is not counted twice
 *   T3  what an application did stays in the sums after it left
 */
#ifndef EBB_STORE_H
#define EBB_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/virtio_ebb.h>

#include "guest-monitor/proto.h"

/* Latencies and workers of an older report say nothing of now. */
#define EBB_STORE_FRESH_MS	2000

/* Two reports closer together give no rate that means anything. */
#define EBB_STORE_RATE_MIN_MS	10

/* One application. */
struct ebb_store_app {
	struct ebb_msg_counters counters;
	uint32_t p50_us;
	uint32_t p95_us;
	uint32_t p99_us;
	uint32_t workers;
	uint32_t interval_ms;
	uint32_t baseline_mib;
	bool has_report;
	uint64_t reported_ns;
	struct ebb_msg_counters rate_counters; /* where the next rate counts from ... */
	uint64_t rate_ns;		/* ... and when that was */
	double committed_ps;
	double aborted_ps;
	double accesses_ps;
};

/* Of the guest as a whole. */
struct ebb_store_guest {
	uint32_t cpus_online;
	uint32_t cpu_permille;		/* over the last second */
	uint32_t cpu_permille_interval;	/* over the last interval */
	uint64_t mem_total_bytes;
	uint64_t mem_available_bytes;
};

/* counters: what the application had reported before it registered here. */
void ebb_store_hello(struct ebb_store_app *app, const struct ebb_msg_counters *counters,
		     uint64_t now_ns);

/* Adds what is new to sums. */
void ebb_store_report(struct ebb_store_app *app, struct ebb_msg_counters *sums,
		      const struct ebb_msg_report *report, uint64_t now_ns);

/* ret comes from ebb_msg_init(). */
void ebb_store_get(const struct ebb_store_app *app, const struct ebb_store_guest *guest,
		   struct ebb_msg_stats *ret);

/*
 * Latencies are the worst of any application, workers and simulated caches the sum.  has_baseline:
 * VIRTIO_EBB_F_BASELINE is negotiated; without it nothing is said of simulated caches.
 */
void ebb_store_telemetry(const struct ebb_store_app *const apps[], size_t num,
			 const struct ebb_msg_counters *sums, const struct ebb_store_guest *guest,
			 bool has_baseline, uint32_t interval_ms, uint64_t now_ns,
			 struct virtio_ebb_telemetry *ret);

#endif /* EBB_STORE_H */
