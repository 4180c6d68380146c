// SPDX-License-Identifier: GPL-2.0-or-later
/* See block_times.h. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "block_times.h"
#include "oltp-engine/src/base/clock.h"

static double now_ms(void)
{
	return (double)clock_now_ns() / 1e6;
}

static void note(struct block_times *times, struct block_calls *calls, double ms)
{
	pthread_mutex_lock(&times->lock);
	if (calls->n < BLOCK_TIMES_MAX)
		calls->ms[calls->n] = ms;
	calls->n++;
	pthread_mutex_unlock(&times->lock);
}

static int timed_add(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr,
		     uint64_t *ret_bytes)
{
	struct block_times *times = ctx;
	double begin_ms = now_ms();
	int rc = times->ops->add(times->ctx, bytes, node, ret_addr, ret_bytes);

	if (!rc)
		note(times, &times->add, now_ms() - begin_ms);
	return rc;
}

static void timed_release(void *ctx, void *addr, uint64_t bytes)
{
	struct block_times *times = ctx;
	double begin_ms = now_ms();

	times->ops->release(times->ctx, addr, bytes);
	note(times, &times->release, now_ms() - begin_ms);
}

const struct oltp_block_ops block_times_ops = {
	.add = timed_add,
	.release = timed_release,
};

void block_times_init(struct block_times *times, const struct oltp_block_ops *ops, void *ctx)
{
	times->ops = ops;
	times->ctx = ctx;
	pthread_mutex_init(&times->lock, NULL);
	times->add.n = times->release.n = 0;
}

void block_times_finish(struct block_times *times)
{
	pthread_mutex_destroy(&times->lock);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summarize(const struct block_calls *calls, struct oltp_latency_summary *ret)
{
	double ms[BLOCK_TIMES_MAX];
	uint64_t n = calls->n < BLOCK_TIMES_MAX ? calls->n : BLOCK_TIMES_MAX;

	*ret = (struct oltp_latency_summary){ .n = calls->n };
	if (!n)
		return;
	memcpy(ms, calls->ms, n * sizeof(*ms));
	qsort(ms, n, sizeof(*ms), compare);
	ret->median_ms = (ms[(n - 1) / 2] + ms[n / 2]) / 2;
	ret->p95_ms = ms[(n * 95 + 99) / 100 - 1];
}

void block_times_get(struct block_times *times, struct oltp_latency_summary *ret_add,
		     struct oltp_latency_summary *ret_release)
{
	pthread_mutex_lock(&times->lock);
	summarize(&times->add, ret_add);
	summarize(&times->release, ret_release);
	pthread_mutex_unlock(&times->lock);
}
