// SPDX-License-Identifier: GPL-2.0-or-later
/* Latency histogram: see hist.h. */
#include "hist.h"
#include "util.h"

#define SUB_COUNT	(1u << HIST_SUB_BITS)

/* Values below SUB_COUNT have a bucket each; above, the top bit and the four below it count. */
uint32_t hist_bucket_of(uint64_t value_ns)
{
	uint32_t top;

	if (value_ns < SUB_COUNT)
		return (uint32_t)value_ns;
	if (value_ns >> HIST_MAX_BITS)
		return HIST_BUCKETS - 1;
	top = 63u - (uint32_t)__builtin_clzll(value_ns);
	return ((top - HIST_SUB_BITS + 1) << HIST_SUB_BITS) +
	       (uint32_t)(value_ns >> (top - HIST_SUB_BITS) & (SUB_COUNT - 1));
}

double hist_bucket_ns(uint32_t bucket)
{
	uint32_t group = bucket >> HIST_SUB_BITS;
	uint64_t low;

	if (group == 0)
		return bucket;
	low = (uint64_t)(SUB_COUNT + (bucket & (SUB_COUNT - 1))) << (group - 1);
	return (double)low + (double)((1ull << (group - 1)) - 1) / 2;
}

void hist_record(struct hist *hist, uint64_t value_ns)
{
	counter_add(&hist->counts[hist_bucket_of(value_ns)], 1);
}

void hist_add(struct hist *hist, uint64_t value_ns, uint32_t n)
{
	atomic_fetch_add_explicit(&hist->counts[hist_bucket_of(value_ns)], n, memory_order_relaxed);
}

void hist_view_add(struct hist_view *view, const struct hist *hist)
{
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		view->counts[i] += counter_read(&hist->counts[i]);
}

void hist_view_sub(struct hist_view *view, const struct hist_view *older)
{
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		view->counts[i] -= older->counts[i];
}

uint64_t hist_view_count(const struct hist_view *view)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		count += view->counts[i];
	return count;
}

double hist_view_quantile_ns(const struct hist_view *view, double quantile)
{
	uint64_t count = hist_view_count(view), below = 0;
	uint64_t wanted = (uint64_t)(quantile * (double)count);

	for (uint32_t i = 0; i < HIST_BUCKETS; i++) {
		below += view->counts[i];
		if (below > wanted || (below && below == count))
			return hist_bucket_ns(i);
	}
	return 0;
}
