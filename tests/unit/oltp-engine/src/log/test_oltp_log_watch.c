// SPDX-License-Identifier: GPL-2.0-or-later
/* Watches: an eventfd is told once when an epoch is on disk, or when the log has failed. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "log_rig.h"
#include "oltp-engine/src/base/clock.h"

#define FOR_EVER_MS	10000

static int open_eventfd(void)
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* How often the eventfd was told since the call before; waits for the first time. */
static uint64_t told(int fd, int wait_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	eventfd_t n = 0;

	if (poll(&poll_fd, 1, wait_ms) == 1)
		assert_int_equal(eventfd_read(fd, &n), 0);
	return n;
}

static void test_told_once_when_the_epoch_is_on_disk(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_watch *watch, *other;
	int fd = open_eventfd(), other_fd = open_eventfd();
	uint64_t epoch;

	rig->config.durability = OLTP_DURABILITY_COMMIT;
	log_rig_open(rig);
	assert_int_equal(oltp_durable_watch_create(rig->engine, fd, &watch), 0);
	assert_int_equal(oltp_durable_watch_create(rig->engine, other_fd, &other), 0);
	log_fake_set(&rig->fake, LOG_FAKE_HOLD);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	epoch = oltp_worker_epoch(rig->w);
	assert_true(oltp_durable_watch_set(watch, epoch));
	assert_true(oltp_durable_watch_set(other, epoch + 1000000));
	log_fake_wait_held(&rig->fake);
	assert_int_equal(told(fd, 50), 0);
	log_fake_set(&rig->fake, LOG_FAKE_WRITE);
	assert_int_equal(told(fd, FOR_EVER_MS), 1);
	assert_true(oltp_durable_epoch(rig->engine) >= epoch);
	/* It is no longer set, and there is nothing to wait for. */
	assert_false(oltp_durable_watch_set(watch, epoch));
	assert_int_equal(log_rig_insert(rig, 2, 1), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	assert_int_equal(told(fd, 50), 0);
	assert_int_equal(told(other_fd, 0), 0);
	oltp_durable_watch_destroy(watch);
	oltp_durable_watch_destroy(other);
	close(fd);
	close(other_fd);
}

static void read_once(struct log_rig *rig, uint64_t key)
{
	const void *record;

	assert_int_equal(oltp_txn_begin(rig->w), OLTP_OK);
	assert_int_equal(oltp_txn_read(rig->w, rig->table, key, &record), OLTP_OK);
	assert_int_equal(oltp_txn_commit(rig->w), OLTP_OK);
}

/*
 * The log thread sleeps when nothing was logged for a while, and a transaction that only read does
 * not wake it; who waits for its epoch must.
 */
static void test_an_idle_log_is_woken(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_watch *watch;
	int fd = open_eventfd();

	rig->config.durability = OLTP_DURABILITY_COMMIT;
	log_rig_open(rig);
	assert_int_equal(oltp_durable_watch_create(rig->engine, fd, &watch), 0);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	for (int i = 0; i < 3; i++) {
		usleep(200000);
		read_once(rig, 1);
		if (oltp_durable_watch_set(watch, oltp_worker_epoch(rig->w)))
			assert_int_equal(told(fd, FOR_EVER_MS), 1);
	}
	oltp_durable_watch_destroy(watch);
	close(fd);
}

static void test_told_when_the_log_fails(void **state)
{
	struct log_rig *rig = *state;
	struct oltp_durable_watch *watch;
	int fd = open_eventfd();
	uint64_t epoch;

	rig->config.durability = OLTP_DURABILITY_COMMIT;
	log_rig_open(rig);
	assert_int_equal(oltp_durable_watch_create(rig->engine, fd, &watch), 0);
	log_fake_set(&rig->fake, LOG_FAKE_HOLD);
	assert_int_equal(log_rig_insert(rig, 1, 1), OLTP_OK);
	epoch = oltp_worker_epoch(rig->w);
	assert_true(oltp_durable_watch_set(watch, epoch));
	log_fake_wait_held(&rig->fake);
	log_fake_set(&rig->fake, LOG_FAKE_EIO);
	assert_int_equal(told(fd, FOR_EVER_MS), 1);
	assert_true(oltp_durable_epoch(rig->engine) < epoch);
	assert_false(oltp_durable_watch_set(watch, epoch));
	assert_int_equal(told(fd, 20), 0);
	oltp_durable_watch_destroy(watch);
	close(fd);
}

/*
 * Who keeps others waiting does not wait for the interval, and however often it has called, others
 * wait for no more than that.
 */
static void test_hurry(void **state)
{
	struct log_rig *rig = *state;
	uint64_t begun_ns;

	rig->config.durability = OLTP_DURABILITY_COMMIT;
	rig->config.group_interval_us = 1000000;
	log_rig_open(rig);
	begun_ns = clock_now_ns();
	for (uint64_t i = 1; i <= 30; i++) {
		assert_int_equal(log_rig_insert(rig, i, 1), OLTP_OK);
		oltp_durable_hurry(rig->engine);
		assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	}
	assert_int_equal(log_rig_insert(rig, 31, 1), OLTP_OK);
	assert_int_equal(oltp_durable_wait(rig->engine, oltp_worker_epoch(rig->w)), 0);
	/* 30 s without either. */
	assert_true(clock_now_ns() - begun_ns < 15000000000ull);
}

static void test_without_a_log_nothing_is_waited_for(void **state)
{
	struct oltp_durable_watch *watch;
	struct oltp_engine *engine;
	int fd = open_eventfd();

	(void)state;
	assert_int_equal(oltp_engine_open(NULL, &engine), 0);
	assert_int_equal(oltp_durable_watch_create(engine, fd, &watch), 0);
	assert_false(oltp_durable_watch_set(watch, 1));
	oltp_durable_hurry(engine);
	oltp_durable_watch_destroy(watch);
	oltp_durable_watch_destroy(NULL);
	oltp_engine_close(engine);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_told_once_when_the_epoch_is_on_disk,
						log_rig_setup, log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_an_idle_log_is_woken, log_rig_setup,
						log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_told_when_the_log_fails, log_rig_setup,
						log_rig_teardown),
		cmocka_unit_test_setup_teardown(test_hurry, log_rig_setup, log_rig_teardown),
		cmocka_unit_test(test_without_a_log_nothing_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
