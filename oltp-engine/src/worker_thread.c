// SPDX-License-Identifier: GPL-2.0-or-later
/* The life of one pool worker: attach, transactions until asked to stop, detach. */
#include <time.h>

#include "worker_pool.h"

/* After n conflicts in a row: a random pause below 2^n turns, n at most this. */
#define BACKOFF_BITS_MAX	10u

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void back_off(uint32_t tries, uint64_t *random)
{
	uint32_t bits = tries < BACKOFF_BITS_MAX ? tries : BACKOFF_BITS_MAX;

	/* xorshift64: any spread will do, as long as two workers do not keep step. */
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	for (uint64_t turns = *random & ((1u << bits) - 1); turns; turns--)
		cpu_relax();
}

/* One transaction, as often as it takes. */
static enum oltp_rc run_to_end(struct pool_worker *pw, void *local, uint64_t *random)
{
	const struct oltp_workload *workload = &pw->pool->workload;
	enum oltp_rc rc = workload->run(local, false);

	for (uint32_t tries = 1; rc == OLTP_CONFLICT; tries++) {
		counter_add(&pw->conflicts, 1);
		back_off(tries, random);
		rc = workload->run(local, true);
	}
	return rc;
}

static void run_until_stopped(struct pool_worker *pw, void *local)
{
	uint64_t random = 0x9e3779b97f4a7c15ull * (pw->cpu + 1);
	uint32_t mask = pw->pool->latency_every - 1;

	for (uint32_t n = 0; !atomic_load_explicit(&pw->stop, memory_order_relaxed); n++) {
		bool measured = (n & mask) == 0;
		uint64_t start_ns = measured ? clock_ns(CLOCK_MONOTONIC) : 0;

		if (run_to_end(pw, local, &random)) {
			counter_add(&pw->failed, 1);
			continue;
		}
		counter_add(&pw->committed, 1);
		if (measured)
			hist_record(&pw->hist, clock_ns(CLOCK_MONOTONIC) - start_ns);
	}
}

static void report_start(struct pool_worker *pw, int rc)
{
	pthread_mutex_lock(&pw->lock);
	pw->start_rc = rc;
	pw->is_started = true;
	pthread_cond_signal(&pw->started);
	pthread_mutex_unlock(&pw->lock);
}

void *pool_worker_main(void *arg)
{
	struct pool_worker *pw = arg;
	const struct oltp_workload *workload = &pw->pool->workload;
	void *local;
	int rc;

	/* Created here, on the CPU that will use it: first touch places its memory. */
	rc = oltp_worker_create(pw->pool->engine, &pw->worker);
	if (rc) {
		report_start(pw, rc);
		return NULL;
	}
	rc = workload->attach(workload->ctx, pw->worker, &local);
	report_start(pw, rc);
	if (!rc) {
		run_until_stopped(pw, local);
		counter_add(&pw->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
		workload->detach(local);
	}
	return NULL;
}
