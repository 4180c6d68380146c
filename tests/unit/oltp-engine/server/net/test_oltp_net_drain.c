// SPDX-License-Identifier: GPL-2.0-or-later
/* Connections that go to another node: net_drain, and what it goes by. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>
#include <cmocka.h>

#include "net_rig.h"
#include "oltp-engine/src/base/clock.h"

#define SECOND	1000000000ull

/*
 * Clients go: who speaks version 3 is told, the others are closed when they are in no transaction,
 * and nobody new is let in.
 */
static void test_drain(void **state)
{
	static const char push[] = ">3\r\n$12\r\nebb-relocate\r\n$9\r\n1.2.3.4:5\r\n:1\r\n";
	struct net_rig *rig = *state;
	struct net_stats stats;
	int new, old, late, observer;

	net_rig_open(rig, 1);
	new = net_rig_connect(rig, true);
	old = net_rig_connect(rig, false);
	net_rig_say(new, "HELLO 3\r\n");
	net_rig_expect(new, "+OK\r\n");
	/* One that looks on is no client, and stays. */
	observer = net_rig_connect(rig, false);
	net_rig_say(observer, "OBSERVE\r\n");
	net_rig_expect(observer, "+OK\r\n");
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.clients, 2);
	net_rig_say(old, "MULTI\r\n");
	net_rig_expect(old, "+OK\r\n");
	assert_int_equal(net_drain(rig->front, "", 1), -EINVAL);
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 0), 0);
	net_rig_expect_silence(new, 100);
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 2), 0);
	net_rig_expect(new, push);
	net_rig_expect_silence(old, 100);
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.told, 2);
	/* Who comes now may say what a restricted session may, and is no client. */
	late = net_rig_connect(rig, true);
	net_rig_say(late, "HELLO 3\r\n");
	net_rig_expect(late, "+OK\r\n");
	net_rig_say(late, "ECHO a\r\n");
	net_rig_expect(late, "-ERR this database moves to another node\r\n");
	net_rig_expect_end(late);
	late = net_rig_connect(rig, true);
	net_rig_say(late, "HELLO 3\r\n");
	net_rig_expect(late, "+OK\r\n");
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.clients, 2);
	assert_int_equal(stats.told, 2);
	net_rig_say(old, "EXEC\r\n");
	net_rig_expect(old, "+OK\r\n");
	net_rig_expect_end(old);
	/* It is told once, serves on, and is closed if it stays. */
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 2), 0);
	net_rig_say(new, "ECHO a\r\n");
	net_rig_expect(new, "$1\r\na\r\n");
	usleep(3100000);
	net_rig_say(new, "ECHO b\r\n");
	net_rig_expect(new, "$1\r\nb\r\n");
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 0), 0);
	net_rig_expect_end(new);
	/* So is who has come meanwhile and does nothing. */
	net_rig_expect_end(late);
	net_rig_say(observer, "ECHO o\r\n");
	net_rig_expect(observer, "$1\r\no\r\n");
	net_rig_say(observer, "SERVE\r\n");
	net_rig_expect(observer, "+OK\r\n");
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.clients, 1);
	close(observer);
	assert_int_equal(net_drain(rig->front, NULL, 0), 0);
	late = net_rig_connect(rig, true);
	net_rig_say(late, "ECHO a\r\n");
	net_rig_expect(late, "$1\r\na\r\n");
	close(late);
}

/* So many clients have a request that is not answered; the sum of their ages. */
static uint64_t wait_open(struct net_rig *rig, uint32_t n)
{
	struct net_stats stats;

	do {
		usleep(1000);
		net_stats_read(rig->front, &stats);
	} while (stats.open != n);
	return stats.open_ns;
}

/* A request counts with its age until its reply is sent, whatever it waits for. */
static void test_unanswered(void **state)
{
	struct net_rig *rig = *state;
	uint64_t first, second;
	int a, b;

	rig->log->config.durability = OLTP_DURABILITY_COMMIT;
	net_rig_open(rig, 1);
	a = net_rig_connect(rig, true);
	b = net_rig_connect(rig, true);
	/* Half a request is none. */
	net_rig_say(b, "ECHO b\r\nECH");
	net_rig_expect(b, "$1\r\nb\r\n");
	assert_int_equal(wait_open(rig, 0), 0);
	/* For keys of another node, at one worker and at the next. */
	net_rig_say(a, "ECHO a\r\nWAIT\r\n");
	net_rig_expect(a, "$1\r\na\r\n");
	first = wait_open(rig, 1);
	usleep(30000);
	second = wait_open(rig, 1);
	assert_in_range(second - first, 30000000, 20 * SECOND);
	assert_in_range(second, second - first, 60 * SECOND);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, NULL), 0);
	assert_int_equal(oltp_pool_add(rig->pool, 3), 0);
	net_rig_say(b, "O b\r\n");
	net_rig_expect(b, "$1\r\nb\r\n");
	assert_true(wait_open(rig, 1) > second);
	kv_stub_let_in(rig->kv);
	net_rig_expect(a, "+OK\r\n");
	assert_int_equal(wait_open(rig, 0), 0);
	/* For the log; a client that was closed waits for nothing. */
	net_rig_say(a, "INC 1\r\n");
	net_rig_expect(a, ":1\r\n");
	log_fake_set(&rig->log->fake, LOG_FAKE_HOLD);
	net_rig_say(a, "INC 1\r\n");
	log_fake_wait_held(&rig->log->fake);
	net_rig_say(b, "GET 1\r\n");
	assert_true(wait_open(rig, 2) > 0);
	log_fake_set(&rig->log->fake, LOG_FAKE_EIO);
	net_rig_expect_end(a);
	net_rig_expect_end(b);
	assert_int_equal(wait_open(rig, 0), 0);
	close(a);
	close(b);
}

/* A drain that ends before a client has gone: it stays, and is told anew by the next one. */
static void test_drain_ends(void **state)
{
	static const char push[] = ">3\r\n$12\r\nebb-relocate\r\n$9\r\n1.2.3.4:5\r\n:1\r\n";
	struct net_rig *rig = *state;
	struct net_stats stats;
	int new, old;

	net_rig_open(rig, 1);
	new = net_rig_connect(rig, true);
	old = net_rig_connect(rig, false);
	net_rig_say(new, "HELLO 3\r\n");
	net_rig_expect(new, "+OK\r\n");
	net_rig_say(old, "MULTI\r\n");
	net_rig_expect(old, "+OK\r\n");
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 2), 0);
	net_rig_expect(new, push);
	assert_int_equal(net_drain(rig->front, NULL, 0), 0);
	net_rig_say(old, "EXEC\r\n");
	net_rig_expect(old, "+OK\r\n");
	usleep(3100000);
	net_rig_expect_silence(old, 100);
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.told, 0);
	/* Not closed because the other push was long ago. */
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 0), 0);
	net_rig_expect_silence(new, 100);
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 2), 0);
	net_rig_expect(new, push);
	net_rig_expect_end(old);
}

static void wait_for_attempts(struct net_rig *rig, uint64_t n)
{
	while (kv_stub_attempts(rig->kv) < n)
		usleep(1000);
}

/* A request that waits for another node is not run for a client that has gone. */
static void test_gone_while_it_waits(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	uint64_t attempts;

	net_rig_open(rig, 1);
	for (uint32_t is_tcp = 0; is_tcp < 2; is_tcp++) {
		int fd = net_rig_connect(rig, is_tcp);

		attempts = kv_stub_attempts(rig->kv);
		net_rig_say(fd, "WAIT\r\n");
		wait_for_attempts(rig, attempts + 1);
		/* It is there, and waits on. */
		kv_stub_wake(rig->kv);
		wait_for_attempts(rig, attempts + 2);
		net_stats_read(rig->front, &stats);
		assert_int_equal(stats.clients, 1);
		close(fd);
		kv_stub_wake(rig->kv);
		wait_for_attempts(rig, attempts + 3);
		for (uint32_t i = 0; i < 20000 && stats.clients; i++) {
			usleep(1000);
			net_stats_read(rig->front, &stats);
		}
		assert_int_equal(stats.clients, 0);
		assert_int_equal(kv_stub_sessions(rig->kv), 0);
	}
	attempts = kv_stub_attempts(rig->kv);
	kv_stub_let_in(rig->kv);
	usleep(20000);
	assert_int_equal(kv_stub_attempts(rig->kv), attempts);
}

/*
 * The client goes while its request, which has waited, is run again; that request then has to wait
 * once more, and need not any more before that is known. Nothing is left of the connection.
 */
static void test_gone_while_it_runs_again(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int fd, other;

	net_rig_open(rig, 1);
	kv_stub_lock(rig->kv, true);
	fd = net_rig_connect(rig, false);
	other = net_rig_connect(rig, false);
	/* More than the socket takes: that this cannot be sent tells that the client has gone. */
	net_rig_say(fd, "BIG 900000\r\nMEET\r\n");
	wait_for_attempts(rig, 1);
	kv_stub_wake(rig->kv);
	wait_for_attempts(rig, 3);
	close(fd);
	usleep(50000);
	kv_stub_lock(rig->kv, false);
	for (uint32_t i = 0; i < 200; i++) {
		net_rig_say(other, "ECHO a\r\n");
		net_rig_expect(other, "$1\r\na\r\n");
	}
	do {
		usleep(1000);
		net_stats_read(rig->front, &stats);
	} while (stats.clients > 1);
	assert_int_equal(stats.clients, 1);
	assert_int_equal(kv_stub_sessions(rig->kv), 1);
	close(other);
}

/*
 * A client that reads nothing waits with its requests, but not with one that has waited for keys of
 * another node and has them now: others wait for these.
 */
static void test_reads_nothing_and_waits(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int fd;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, false);
	net_rig_say(fd, "HELLO 3\r\n");
	net_rig_expect(fd, "+OK\r\n");
	/* More than the socket takes, and almost as much as is collected behind that. */
	net_rig_say(fd, "BIG 900000\r\nBIG 524270\r\nWAIT\r\n");
	wait_for_attempts(rig, 1);
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 1), 0);
	do {
		usleep(1000);
		net_stats_read(rig->front, &stats);
	} while (stats.told != 1);
	kv_stub_let_in(rig->kv);
	for (uint32_t i = 0; i < 5000 && kv_stub_attempts(rig->kv) < 2; i++)
		usleep(1000);
	assert_int_equal(kv_stub_attempts(rig->kv), 2);
	close(fd);
}

/* A drain ends while no worker has the connections: they do not go afterwards either. */
static void test_drain_ends_without_workers(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int old, late;

	net_rig_open(rig, 1);
	old = net_rig_connect(rig, false);
	net_rig_say(old, "MULTI\r\n");
	net_rig_expect(old, "+OK\r\n");
	assert_int_equal(net_drain(rig->front, "1.2.3.4:5", 1), 0);
	do {
		usleep(1000);
		net_stats_read(rig->front, &stats);
	} while (stats.told != 1);
	late = net_rig_connect(rig, false);
	net_rig_say(late, "HELLO 2\r\n");
	net_rig_expect(late, "+OK\r\n");
	assert_int_equal(oltp_pool_remove(rig->pool, 0, NULL), 0);
	assert_int_equal(net_drain(rig->front, NULL, 0), 0);
	assert_int_equal(oltp_pool_add(rig->pool, 3), 0);
	/* Who came meanwhile comes again. */
	net_rig_expect_end(late);
	net_stats_read(rig->front, &stats);
	assert_int_equal(stats.told, 0);
	net_rig_say(old, "EXEC\r\nECHO a\r\n");
	net_rig_expect(old, "+OK\r\n$1\r\na\r\n");
	net_rig_expect_silence(old, 100);
	close(late);
	close(old);
}

/* A request that had to wait for another node need not wait for the log's interval as well. */
static void test_durable_at_once(void **state)
{
	struct net_rig *rig = *state;
	uint64_t begun_ns;
	int fd;

	rig->log->config.durability = OLTP_DURABILITY_COMMIT;
	rig->log->config.group_interval_us = 1000000;
	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, false);
	begun_ns = clock_now_ns();
	for (uint64_t i = 0; i < 6; i++) {
		uint64_t attempts = kv_stub_attempts(rig->kv);

		kv_stub_shut(rig->kv);
		net_rig_say(fd, "WAIT\r\n");
		wait_for_attempts(rig, attempts + 1);
		kv_stub_let_in(rig->kv);
		net_rig_expect(fd, "+OK\r\n");
	}
	/* More than 5 s without. */
	assert_true(clock_now_ns() - begun_ns < 4 * SECOND);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_drain, net_rig_setup, net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_unanswered, net_rig_setup, net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_drain_ends, net_rig_setup, net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_it_waits, net_rig_setup,
						net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_gone_while_it_runs_again, net_rig_setup,
						net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_reads_nothing_and_waits, net_rig_setup,
						net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_drain_ends_without_workers, net_rig_setup,
						net_rig_teardown),
		cmocka_unit_test_setup_teardown(test_durable_at_once, net_rig_setup,
						net_rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
