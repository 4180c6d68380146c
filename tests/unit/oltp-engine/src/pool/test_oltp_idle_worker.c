// SPDX-License-Identifier: GPL-2.0-or-later
/* Workers with nothing to do: they sleep until something is to be expected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "oltp-engine/src/pool/worker_pool.h"

#define SECOND	1000000000ull
#define FAR	(1ull << 62)

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static int nothing_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)worker;
	*ret_local = ctx;
	return 0;
}

static enum oltp_rc nothing_run(void *local, uint32_t slot, bool retry)
{
	(void)local, (void)slot, (void)retry;
	return OLTP_OK;
}

static void nothing_detach(void *local)
{
	(void)local;
}

static const struct oltp_workload nothing = {
	.attach = nothing_attach, .run = nothing_run, .detach = nothing_detach,
};

/* All rates are of the future, so that nothing is due however slow the machine is. */
static void test_next_arrival_is_by_the_rates(void **state)
{
	(void)state;
	struct arrivals_view view = { 0 };
	struct oltp_arrivals *a;

	assert_int_equal(oltp_arrivals_create(&a), 0);
	assert_int_equal(arrivals_next(a, &view), 0);
	assert_int_equal(oltp_arrivals_set_rate(a, 0, FAR), 0);
	assert_true(arrivals_next(a, &view) == UINT64_MAX);
	assert_int_equal(oltp_arrivals_set_rate(a, 4, FAR + SECOND), 0);
	assert_true(arrivals_next(a, &view) == FAR + SECOND + SECOND / 4);
	/* A quarter of one at the first rate, the rest of it at another. */
	assert_int_equal(oltp_arrivals_set_rate(a, 1, FAR + SECOND + SECOND / 16), 0);
	assert_true(arrivals_next(a, &view) == FAR + SECOND + SECOND / 16 + 3 * SECOND / 4);
	assert_int_equal(oltp_arrivals_set_rate(a, 0, FAR + SECOND + SECOND / 8), 0);
	assert_true(arrivals_next(a, &view) == UINT64_MAX);
	assert_null(view.rate);
	oltp_arrivals_destroy(a);
}

static uint64_t idles_of(const struct oltp_pool *pool)
{
	struct pool_progress progress;

	pool_progress_read(pool, &progress);
	return progress.idles;
}

/*
 * So that an engine without work leaves its CPUs to those who share them with it.  It would sleep
 * for ever: the test hangs if a rate or the order to stop does not wake it.
 */
static void test_sleeps_until_called(void **state)
{
	(void)state;
	struct oltp_arrivals *arrivals;
	struct oltp_engine *engine;
	struct oltp_pool *pool;
	uint64_t before;

	assert_int_equal(oltp_arrivals_create(&arrivals), 0);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, 1), 0);
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = engine,
								      .workload = &nothing,
								      .no_pin = true,
								      .latency_every = 1,
								      .arrivals = arrivals },
					  &pool), 0);
	assert_int_equal(oltp_pool_add(pool, 0), 0);
	before = idles_of(pool);
	sleep_ms(200);
	/* When it begins, and for no reason now and then. */
	assert_true(idles_of(pool) - before <= 3);
	/* It sees a rate that is set meanwhile, and that it is to stop. */
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 1000, now_ns()), 0);
	for (struct oltp_sample sample = { 0 }; sample.totals.committed < 10; sleep_ms(1))
		oltp_pool_sample(pool, now_ns(), &sample);
	assert_int_equal(oltp_arrivals_set_rate(arrivals, 0, now_ns()), 0);
	assert_int_equal(oltp_pool_remove(pool, 0, NULL), 0);
	oltp_pool_destroy(pool);
	oltp_engine_close(engine);
	oltp_arrivals_destroy(arrivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_next_arrival_is_by_the_rates),
		cmocka_unit_test(test_sleeps_until_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
