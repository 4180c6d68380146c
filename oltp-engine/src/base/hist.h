/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Latency histogram: sixteen buckets to the power of two, so a quantile is within 1/32 of the
 * truth. Pure but for hist_record, which one thread calls while others read, and hist_add.
 */
#ifndef OLTP_HIST_H
#define OLTP_HIST_H

#include <stdatomic.h>
#include <stdint.h>

#define HIST_SUB_BITS	4u
#define HIST_MAX_BITS	40u	/* 2^40 ns are 18 minutes; what is longer counts as that */
#define HIST_BUCKETS	((HIST_MAX_BITS - HIST_SUB_BITS + 1) << HIST_SUB_BITS)

struct hist {
	_Atomic uint64_t counts[HIST_BUCKETS];
};

/* A copy, to add up and to take differences of. */
struct hist_view {
	uint64_t counts[HIST_BUCKETS];
};

uint32_t hist_bucket_of(uint64_t value_ns);

/* The middle of a bucket. */
double hist_bucket_ns(uint32_t bucket);

void hist_record(struct hist *hist, uint64_t value_ns);

/*
 * The time since start_ns; 0 if that lies ahead: a transaction that was taken while the rate
 * changed may have arrived a little later than now.
 */
static inline void hist_record_since(struct hist *hist, uint64_t start_ns, uint64_t now_ns)
{
	hist_record(hist, now_ns > start_ns ? now_ns - start_ns : 0);
}

/* The same n times, by any thread. */
void hist_add(struct hist *hist, uint64_t value_ns, uint32_t n);

/* view += hist */
void hist_view_add(struct hist_view *view, const struct hist *hist);

/* view -= older */
void hist_view_sub(struct hist_view *view, const struct hist_view *older);

uint64_t hist_view_count(const struct hist_view *view);

/* quantile in [0, 1]; 0 for an empty view. */
double hist_view_quantile_ns(const struct hist_view *view, double quantile);

#endif
