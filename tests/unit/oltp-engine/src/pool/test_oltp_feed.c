// SPDX-License-Identifier: GPL-2.0-or-later
/* A worker whose transactions come from outside: when it sleeps, wakes, stops and gives up. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/src/pool/worker_pool.h"

#define SECOND	1000000000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* A feed of numbers: odd ones meet a conflict until they are let through. */
struct feed {
	int fd;				/* wakes */
	_Atomic uint32_t fed, let_through;
	_Atomic uint32_t ran, conflicts, stops, given_up, waits, late_calls;
	_Atomic int gave_rc;
	bool is_odd[OLTP_TICKETS];	/* by slot */
	uint32_t taken;
};

static int feed_attach(void *ctx, struct oltp_worker *worker, void **ret_local)
{
	(void)worker;
	*ret_local = ctx;
	return 0;
}

static enum oltp_rc feed_run(void *local, uint32_t slot, bool retry)
{
	struct feed *f = local;

	if (!retry)
		f->is_odd[slot] = f->taken++ % 2;
	f->late_calls += !retry && f->stops;
	if (f->is_odd[slot] && !f->let_through) {
		f->conflicts++;
		return OLTP_CONFLICT;
	}
	f->ran++;
	return OLTP_OK;
}

static void feed_detach(void *local)
{
	(void)local;
}

static bool feed_ready(void *local)
{
	struct feed *f = local;

	f->late_calls += f->stops;
	return f->taken < f->fed;
}

static void feed_wait(void *local, uint64_t until_ns)
{
	struct feed *f = local;
	struct pollfd poll_fd = { .fd = f->fd, .events = POLLIN };
	eventfd_t n;

	f->late_calls += f->stops;
	f->waits++;
	assert_true(until_ns == UINT64_MAX);
	if (poll(&poll_fd, 1, -1) == 1)
		(void)eventfd_read(f->fd, &n);
}

static void feed_wake(void *local)
{
	struct feed *f = local;

	(void)eventfd_write(f->fd, 1);
}

static void feed_stop(void *local)
{
	struct feed *f = local;

	f->stops++;
}

static void feed_give_up(void *local, uint32_t slot, enum oltp_rc rc)
{
	struct feed *f = local;

	(void)slot;
	f->given_up++;
	f->gave_rc = (int)rc;
}

static const struct oltp_feed feed_ops = {
	.ready = feed_ready, .wait = feed_wait, .wake = feed_wake, .stop = feed_stop,
	.give_up = feed_give_up,
};

struct rig {
	struct feed feed;
	struct oltp_workload workload;
	struct oltp_engine *engine;
	struct oltp_pool *pool;
};

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	if (!rig)
		return -1;
	rig->feed.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rig->workload = (struct oltp_workload){ .attach = feed_attach, .run = feed_run,
						.detach = feed_detach, .ctx = &rig->feed };
	assert_int_equal(oltp_engine_open(NULL, &rig->engine), 0);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = rig->engine,
								      .workload = &rig->workload,
								      .feed = &feed_ops,
								      .no_pin = true },
					  &rig->pool), 0);
	assert_int_equal(oltp_pool_add(rig->pool, 0), 0);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	oltp_pool_destroy(rig->pool);
	oltp_engine_close(rig->engine);
	close(rig->feed.fd);
	free(rig);
	return 0;
}

static void wait_for(const _Atomic uint32_t *counter, uint32_t n)
{
	while (*counter < n)
		usleep(1000);
}

/* The test hangs if nothing wakes the worker. */
static void test_sleeps_until_it_is_fed_or_stopped(void **state)
{
	struct rig *rig = *state;
	struct oltp_sample sample;

	wait_for(&rig->feed.waits, 1);
	usleep(100000);
	assert_int_equal(rig->feed.waits, 1);
	rig->feed.let_through = 1;
	rig->feed.fed = 10;
	feed_wake(&rig->feed);
	wait_for(&rig->feed.ran, 10);
	oltp_pool_sample(rig->pool, now_ns(), &sample);
	wait_for(&rig->feed.waits, 2);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, NULL), 0);
	assert_int_equal(rig->feed.stops, 1);
	assert_int_equal(rig->feed.late_calls, 0);
	oltp_pool_sample(rig->pool, now_ns(), &sample);
	assert_int_equal(sample.totals.committed, 10);
}

/* What meets conflicts does not keep others from running, and ends before the worker does. */
static void test_conflicts_let_others_go_first(void **state)
{
	struct rig *rig = *state;
	struct oltp_totals totals;

	rig->feed.fed = 9;
	feed_wake(&rig->feed);
	wait_for(&rig->feed.ran, 5);
	wait_for(&rig->feed.conflicts, 20);
	assert_int_equal(rig->feed.ran, 5);
	assert_int_equal(oltp_pool_stop(rig->pool, 0), 0);
	wait_for(&rig->feed.stops, 1);
	rig->feed.let_through = 1;
	assert_int_equal(oltp_pool_remove(rig->pool, 0, &totals), 0);
	assert_int_equal(rig->feed.ran, 9);
	assert_int_equal(totals.committed, 9);
	assert_int_equal(totals.failed, 0);
	assert_int_equal(rig->feed.given_up, 0);
	assert_int_equal(rig->feed.late_calls, 0);
}

/* When its time is over the feed gets back what did not end, and nothing counts as failed. */
static void test_gives_up_at_the_deadline(void **state)
{
	struct rig *rig = *state;
	struct oltp_totals totals;

	rig->feed.fed = 9;
	feed_wake(&rig->feed);
	wait_for(&rig->feed.ran, 5);
	assert_int_equal(oltp_pool_stop_by(rig->pool, 0, now_ns() + SECOND / 50), 0);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, &totals), 0);
	assert_int_equal(rig->feed.given_up, 4);
	assert_int_equal(rig->feed.gave_rc, OLTP_COLD);
	assert_int_equal(totals.committed, 5);
	assert_int_equal(totals.failed, 0);
	assert_int_equal(rig->feed.late_calls, 0);
}

/* Each hook is required, and nothing else brings transactions. */
static void test_what_is_refused(void **state)
{
	struct rig *rig = *state;
	struct oltp_feed ops = feed_ops;
	struct oltp_pool_config config = { .engine = rig->engine, .workload = &rig->workload,
					   .feed = &ops };
	struct oltp_pool *pool;

	ops.wait = NULL;
	assert_int_equal(oltp_pool_create(&config, &pool), -EINVAL);
	ops = feed_ops;
	ops.give_up = NULL;
	assert_int_equal(oltp_pool_create(&config, &pool), -EINVAL);
	ops = feed_ops;
	assert_int_equal(oltp_arrivals_create(&config.arrivals), 0);
	assert_int_equal(oltp_pool_create(&config, &pool), -EINVAL);
	oltp_arrivals_destroy(config.arrivals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sleeps_until_it_is_fed_or_stopped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_conflicts_let_others_go_first, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_gives_up_at_the_deadline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
