/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker pool: order within a lane, no waiting between lanes, deadlines, ending. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "backend/real/workers.h"
#include "util/clock.h"

#define MAX_JOBS	200
#define PATIENCE_USEC	60000000u	/* a hang, not slowness */

struct fixture {
	sd_event *event;
	struct ebb_workers *workers;
	pthread_mutex_t lock;
	int ran[MAX_JOBS], num_ran;	/* in the order in which they began */
	int done[MAX_JOBS], done_err[MAX_JOBS], num_done;
	int num_released;
	bool gate_open;			/* jobs with a gate wait for it */
};

struct test_job {
	struct ebb_job job;
	struct fixture *f;
	int id, result;
	bool has_gate;
};

static bool is_gate_open(struct fixture *f)
{
	bool open;

	pthread_mutex_lock(&f->lock);
	open = f->gate_open;
	pthread_mutex_unlock(&f->lock);
	return open;
}

static int num_ran(struct fixture *f)
{
	int num;

	pthread_mutex_lock(&f->lock);
	num = f->num_ran;
	pthread_mutex_unlock(&f->lock);
	return num;
}

static int run(struct ebb_job *job)
{
	struct test_job *t = (struct test_job *)job;

	pthread_mutex_lock(&t->f->lock);
	t->f->ran[t->f->num_ran++] = t->id;
	pthread_mutex_unlock(&t->f->lock);
	while (t->has_gate && !is_gate_open(t->f))
		usleep(1000);
	return t->result;
}

static void done(struct ebb_job *job, int err)
{
	struct test_job *t = (struct test_job *)job;

	t->f->done[t->f->num_done] = t->id;
	t->f->done_err[t->f->num_done++] = err;
}

static void release(struct ebb_job *job)
{
	struct test_job *t = (struct test_job *)job;

	t->f->num_released++;
	free(t);
}

static struct test_job *submit_kind(struct fixture *f, uint8_t lane, int id, bool has_gate,
				    usec_t timeout, bool is_urgent)
{
	struct test_job *t = calloc(1, sizeof(*t));

	t->job.lane[0] = lane;
	t->job.deadline = timeout ? ebb_clock_mono_usec() + timeout : EBB_TIME_NEVER;
	t->job.is_urgent = is_urgent;
	t->job.run = run;
	t->job.done = done;
	t->job.release = release;
	t->f = f;
	t->id = id;
	t->has_gate = has_gate;
	t->result = -id;
	ebb_workers_submit(f->workers, &t->job);
	return t;
}

static struct test_job *submit(struct fixture *f, uint8_t lane, int id, bool has_gate,
			       usec_t timeout)
{
	return submit_kind(f, lane, id, has_gate, timeout, false);
}

static void open_gate(struct fixture *f)
{
	pthread_mutex_lock(&f->lock);
	f->gate_open = true;
	pthread_mutex_unlock(&f->lock);
}

/* Run the loop until *counter is num. */
static void wait_for(struct fixture *f, const int *counter, int num)
{
	uint64_t t0 = ebb_clock_mono_usec();

	while (*counter < num && ebb_clock_mono_usec() - t0 < PATIENCE_USEC)
		assert_true(sd_event_run(f->event, 100000) >= 0);
	assert_int_equal(*counter, num);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	pthread_mutex_init(&f->lock, NULL);
	if (sd_event_new(&f->event) < 0 || ebb_workers_create(f->event, 4, &f->workers) < 0)
		return -1;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int rc;

	open_gate(f);
	rc = ebb_workers_destroy(f->workers, PATIENCE_USEC);
	sd_event_unref(f->event);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return rc;
}

static void test_lanes_keep_order(void **state)
{
	struct fixture *f = *state;
	int last[4] = { -1, -1, -1, -1 };

	for (int i = 0; i < MAX_JOBS; i++)
		submit(f, i % 4, i, false, 0);
	wait_for(f, &f->num_released, MAX_JOBS);
	assert_int_equal(f->num_done, MAX_JOBS);
	for (int i = 0; i < MAX_JOBS; i++) {
		int id = f->ran[i];

		assert_true(id > last[id % 4]);
		last[id % 4] = id;
		assert_int_equal(f->done_err[i], -f->done[i]);
	}
}

/* What is stuck holds up its own lane only. */
static void test_stuck_lane(void **state)
{
	struct fixture *f = *state;

	submit(f, 1, 10, true, 0);
	submit(f, 1, 11, false, 0);
	submit(f, 2, 20, false, 0);
	wait_for(f, &f->num_done, 1);
	assert_int_equal(f->done[0], 20);
	usleep(20000);
	assert_int_equal(sd_event_run(f->event, 0), 0);
	open_gate(f);
	wait_for(f, &f->num_done, 3);
	assert_int_equal(f->done[1], 10);
	assert_int_equal(f->done[2], 11);
}

/*
 * A job that begins before its deadline and is stuck from then on.  Returns how many were dropped
 * before that because no thread took them in time.
 */
static int submit_stuck(struct fixture *f, uint8_t lane, int id)
{
	usec_t timeout = 30000;
	int num_dropped = 0;

	submit(f, lane, id, true, timeout);
	while (num_ran(f) == 0) {
		assert_true(sd_event_run(f->event, 1000) >= 0);
		if (num_ran(f) > 0 || f->num_done == num_dropped)
			continue;
		assert_int_equal(f->done_err[num_dropped], -ETIMEDOUT);
		num_dropped++;
		timeout *= 2;
		submit(f, lane, id, true, timeout);
	}
	return num_dropped;
}

static void test_deadlines(void **state)
{
	struct fixture *f = *state;
	int num_dropped = submit_stuck(f, 1, 10);

	submit(f, 1, 11, false, 30000);
	wait_for(f, &f->num_done, num_dropped + 2);
	assert_int_equal(f->done_err[num_dropped], -ETIMEDOUT);
	assert_int_equal(f->done_err[num_dropped + 1], -ETIMEDOUT);
	/* The one that never began is gone, the one that runs is not. */
	assert_int_equal(f->num_released, num_dropped + 1);
	open_gate(f);
	wait_for(f, &f->num_released, num_dropped + 2);
	assert_int_equal(f->num_done, num_dropped + 2);
	assert_int_equal(f->num_ran, 1);
	submit(f, 1, 12, false, 0);
	wait_for(f, &f->num_done, num_dropped + 3);
	assert_int_equal(f->done_err[num_dropped + 2], -12);
}

/* All threads are stuck, and others wait: what is urgent runs all the same, but in its lane. */
static void test_urgent(void **state)
{
	struct fixture *f = *state;

	for (int i = 1; i <= 4; i++)
		submit(f, (uint8_t)i, 10 * i, true, 0);
	while (num_ran(f) < 4)
		usleep(1000);
	submit(f, 5, 50, false, 0);
	submit_kind(f, 6, 60, false, 0, true);
	submit_kind(f, 1, 11, false, 0, true);
	submit_kind(f, 6, 61, false, 0, true);
	wait_for(f, &f->num_done, 2);
	assert_int_equal(f->done[0], 60);
	assert_int_equal(f->done[1], 61);
	usleep(20000);
	assert_int_equal(num_ran(f), 6);
	open_gate(f);
	wait_for(f, &f->num_released, 8);
}

/* While the urgent thread is stuck the others take what is urgent, however it came. */
static void test_urgent_stuck(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 20; i++) {
		submit_kind(f, 1, 10, false, 0, true);
		submit_kind(f, 2, 20, false, 0, true);
		wait_for(f, &f->num_released, 2 * i + 2);
	}
	for (int i = 1; i <= 5; i++)
		submit_kind(f, (uint8_t)i, 10 * i, true, 0, true);
	for (usec_t t0 = ebb_clock_mono_usec();
	     num_ran(f) < 45 && ebb_clock_mono_usec() - t0 < PATIENCE_USEC;)
		usleep(1000);
	assert_int_equal(num_ran(f), 45);
	open_gate(f);
	wait_for(f, &f->num_released, 45);
}

static void test_destroy_drops_queue(void **state)
{
	struct fixture *f = *state;

	submit(f, 1, 10, true, 0);
	submit(f, 1, 11, false, 0);
	while (num_ran(f) == 0)
		usleep(1000);
	assert_int_equal(ebb_workers_destroy(f->workers, 20000), -EBUSY);
	open_gate(f);
	assert_int_equal(ebb_workers_destroy(f->workers, PATIENCE_USEC), 0);
	f->workers = NULL;
	assert_int_equal(f->num_released, 2);
	assert_int_equal(f->num_done, 0);
	assert_int_equal(f->num_ran, 1);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lanes_keep_order),
		TEST(stuck_lane),
		TEST(deadlines),
		TEST(urgent),
		TEST(urgent_stuck),
		TEST(destroy_drops_queue),
	};

	return cmocka_run_group_tests_name("io/workers", tests, NULL, NULL);
}
