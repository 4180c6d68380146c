// SPDX-License-Identifier: GPL-2.0-or-later
/* The network front with real sockets: guarantees N1 to N5 of net.h, by number. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "net_rig.h"

#define SECOND	1000000000ull

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

/* Waits until a number of the front's is as large as that; hangs if it never is. */
#define WAIT_FOR(rig, field, least) \
	do { \
		usleep(1000); \
		net_stats_read((rig)->front, &stats); \
	} while (stats.field < (least))

/* ---- N1: one answer for each request, in order ---- */

static void test_n1_answers(void **state)
{
	struct net_rig *rig = *state;

	net_rig_open(rig, 1);
	for (int is_tcp = 0; is_tcp < 2; is_tcp++) {
		int fd = net_rig_connect(rig, is_tcp);

		net_rig_say(fd, "ECHO hello\r\n");
		net_rig_expect(fd, "$5\r\nhello\r\n");
		net_rig_say(fd, "*2\r\n$3\r\nINC\r\n$1\r\n1\r\nNONE\r\n\r\n*0\r\nECHO a\r\n");
		net_rig_expect(fd, is_tcp ? ":2\r\n" : ":1\r\n");
		net_rig_expect(fd, "-ERR unknown command\r\n$1\r\na\r\n");
		net_rig_say(fd, "QUIT\r\nECHO b\r\n");
		net_rig_expect(fd, "+OK\r\n");
		net_rig_expect_end(fd);
	}
}

/* Whatever the pieces in which a request comes. */
static void test_n1_byte_by_byte(void **state)
{
	static const char request[] = "*2\r\n$4\r\nECHO\r\n$2\r\nab\r\nECHO cd\r\n";
	struct net_rig *rig = *state;
	int fd;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, true);
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		net_rig_put(fd, request + i, 1);
		usleep(500);
	}
	net_rig_expect(fd, "$2\r\nab\r\n$2\r\ncd\r\n");
	close(fd);
}

/* A client that sends everything before it reads, and says that it sends no more. */
static void test_n1_pipeline_then_half_closed(void **state)
{
	struct net_rig *rig = *state;
	char text[64];
	int fd;

	net_rig_open(rig, 2);
	fd = net_rig_connect(rig, false);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "*2\r\n$4\r\nECHO\r\n$5\r\n%05d\r\n", i);
		net_rig_say(fd, text);
	}
	shutdown(fd, SHUT_WR);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof(text), "$5\r\n%05d\r\n", i);
		net_rig_expect(fd, text);
	}
	net_rig_expect_end(fd);
}

/* Requests that are run again, here and by other means, keep their place. */
static void test_n1_requests_that_are_run_again(void **state)
{
	struct net_rig *rig = *state;
	int fd;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, true);
	net_rig_say(fd, "ECHO a\r\nCONFLICT 3\r\nECHO b\r\nAGAIN 200\r\nECHO c\r\n");
	net_rig_say(fd, "CONFLICT 20000\r\nCOLD\r\nECHO d\r\n");
	net_rig_expect(fd, "$1\r\na\r\n+OK\r\n$1\r\nb\r\n+OK\r\n$1\r\nc\r\n+OK\r\n-ERR given up: ");
	net_rig_expect(fd, oltp_strerror(OLTP_INVALID));
	net_rig_expect(fd, "\r\n$1\r\nd\r\n");
	close(fd);
}

/* Malformed at any byte: an error and the end for this client, and nobody else notices. */
static void test_n1_malformed(void **state)
{
	static const char request[] = "*2\r\n$4\r\nECHO\r\n$2\r\nab\r\n";
	struct net_rig *rig = *state;
	struct net_stats stats;
	uint32_t n_bad = 0;
	int other;

	net_rig_open(rig, 2);
	other = net_rig_connect(rig, true);
	for (size_t i = 0; i < sizeof(request) - 1; i++) {
		char bad[sizeof(request)];
		int fd = net_rig_connect(rig, i % 2);

		/* Some bytes may be anything: those of the name and of the text. */
		if ((i >= 8 && i < 12) || (i >= 18 && i < 20)) {
			close(fd);
			continue;
		}
		memcpy(bad, request, sizeof(request));
		bad[i] = '\x01';
		net_rig_put(fd, bad, sizeof(request) - 1);
		/* Without "*" it is a line, and the rest are more of them. */
		net_rig_expect(fd, i == 0 ? "-ERR unknown command\r\n" :
					    "-ERR Protocol error: ");
		shutdown(fd, SHUT_WR);
		net_rig_expect_end(fd);
		n_bad += i > 0;
		net_rig_say(other, "ECHO x\r\n");
		net_rig_expect(other, "$1\r\nx\r\n");
	}
	WAIT_FOR(rig, protocol_errors, n_bad);
	assert_int_equal(stats.protocol_errors, n_bad);
	close(other);
}

/* ---- N2: held replies ---- */

static void test_n2_held_until_durable(void **state)
{
	struct net_rig *rig = *state;
	int a, b, c;

	rig->log->config.durability = OLTP_DURABILITY_COMMIT;
	net_rig_open(rig, 1);
	a = net_rig_connect(rig, true);
	b = net_rig_connect(rig, false);
	c = net_rig_connect(rig, true);
	net_rig_say(a, "INC 1\r\n");
	net_rig_expect(a, ":1\r\n");
	log_fake_set(&rig->log->fake, LOG_FAKE_HOLD);
	net_rig_say(a, "ECHO first\r\nINC 1\r\nECHO a\r\n");
	log_fake_wait_held(&rig->log->fake);
	/* Its effect is seen, but not to be told either. */
	net_rig_say(c, "GET 1\r\n");
	net_rig_expect_silence(a, 100);
	net_rig_expect_silence(c, 0);
	/* N5: what depends on nothing is answered meanwhile. */
	net_rig_say(b, "ECHO b\r\n");
	net_rig_expect(b, "$1\r\nb\r\n");
	/* More of the same connection waits behind. */
	net_rig_say(a, "ECHO later\r\n");
	net_rig_expect_silence(a, 50);
	log_fake_set(&rig->log->fake, LOG_FAKE_WRITE);
	net_rig_expect(a, "$5\r\nfirst\r\n:2\r\n$1\r\na\r\n$5\r\nlater\r\n");
	net_rig_expect(c, ":2\r\n");
	close(a);
	close(b);
	close(c);
}

/* What became of a request is not known then, so it is not answered. */
static void test_n2_the_log_fails(void **state)
{
	struct net_rig *rig = *state;
	char byte;
	int a, b;

	rig->log->config.durability = OLTP_DURABILITY_COMMIT;
	net_rig_open(rig, 1);
	a = net_rig_connect(rig, true);
	b = net_rig_connect(rig, true);
	/* So that the rows of the rig are on disk, and the write that is held is that of INC. */
	net_rig_say(a, "INC 1\r\n");
	net_rig_expect(a, ":1\r\n");
	log_fake_set(&rig->log->fake, LOG_FAKE_HOLD);
	net_rig_say(a, "INC 1\r\n");
	log_fake_wait_held(&rig->log->fake);
	log_fake_set(&rig->log->fake, LOG_FAKE_EIO);
	assert_int_equal(recv(a, &byte, 1, 0), 0);
	net_rig_say(b, "ECHO b\r\nINC 1\r\n");
	net_rig_expect(b, "$1\r\nb\r\n-");
	close(a);
	close(b);
}

/* ---- N3: workers come and go ---- */

#define MOVED_CLIENTS	12u

struct busy {
	struct net_rig *rig;
	_Atomic bool *is_over;
	uint32_t number;
	uint64_t n_inc, n_echo;
};

/* Pipelines of counters and of large replies, each checked. */
static void *busy_client(void *arg)
{
	struct busy *busy = arg;
	int fd = net_rig_connect(busy->rig, busy->number % 2);
	uint64_t n = 0;
	char *big = malloc(70000);

	assert_non_null(big);
	memset(big, 'x', 60000);
	memcpy(big + 60000, "\r\n", 3);
	while (!*busy->is_over) {
		char text[512];
		size_t at = 0;
		uint32_t depth = 1 + (uint32_t)(n + busy->number) % 8;

		for (uint32_t i = 0; i < depth; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "INC %u\r\nECHO %06lu\r\n", busy->number,
					       (unsigned long)(busy->n_echo + i));
		if (n % 16 == busy->number)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "BIG 60000\r\n");
		net_rig_put(fd, text, at);
		for (uint32_t i = 0; i < depth; i++) {
			snprintf(text, sizeof(text), ":%lu\r\n$6\r\n%06lu\r\n",
				 (unsigned long)++busy->n_inc, (unsigned long)busy->n_echo++);
			net_rig_expect(fd, text);
		}
		if (n % 16 == busy->number) {
			net_rig_expect(fd, "$60000\r\n");
			net_rig_expect(fd, big);
		}
		n++;
	}
	free(big);
	close(fd);
	return NULL;
}

static void run_busy(struct net_rig *rig, void (*meanwhile)(struct net_rig *rig))
{
	struct busy busy[MOVED_CLIENTS];
	pthread_t threads[MOVED_CLIENTS];
	_Atomic bool is_over = false;

	for (uint32_t i = 0; i < MOVED_CLIENTS; i++) {
		busy[i] = (struct busy){ .rig = rig, .is_over = &is_over, .number = i };
		assert_int_equal(pthread_create(&threads[i], NULL, busy_client, &busy[i]), 0);
	}
	meanwhile(rig);
	is_over = true;
	for (uint32_t i = 0; i < MOVED_CLIENTS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(busy[i].n_inc > 0);
	}
}

static void come_and_go(struct net_rig *rig)
{
	uint64_t end_ns = now_ns() + 2 * SECOND;
	uint32_t i = 0;

	/* One of the three is missing at any time; now and then two, or all. */
	while (now_ns() < end_ns) {
		usleep(5000);
		assert_int_equal(oltp_pool_remove(rig->pool, i % 3, NULL), 0);
		if (i % 4 == 0)
			assert_int_equal(oltp_pool_remove(rig->pool, (i + 1) % 3, NULL), 0);
		if (i % 8 == 0)
			assert_int_equal(oltp_pool_remove(rig->pool, (i + 2) % 3, NULL), 0);
		usleep(2000);
		assert_int_equal(oltp_pool_add(rig->pool, i % 3), 0);
		if (i % 4 == 0)
			assert_int_equal(oltp_pool_add(rig->pool, (i + 1) % 3), 0);
		if (i % 8 == 0)
			assert_int_equal(oltp_pool_add(rig->pool, (i + 2) % 3), 0);
		i++;
	}
	assert_true(i > 10);
}

static void test_n3_workers_come_and_go(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;

	net_rig_open(rig, 3);
	run_busy(rig, come_and_go);
	net_stats_read(rig->front, &stats);
	assert_true(stats.moved > 50);
	assert_int_equal(stats.protocol_errors, 0);
}

static void test_n3_with_held_replies(void **state)
{
	struct net_rig *rig = *state;

	rig->log->config.durability = OLTP_DURABILITY_COMMIT;
	net_rig_open(rig, 3);
	run_busy(rig, come_and_go);
}

/* A worker that starts gets its part of the connections. */
static void test_n3_a_new_worker_takes_part(void **state)
{
	struct net_rig *rig = *state;
	struct oltp_totals totals;
	struct net_stats stats;
	int fds[20];

	net_rig_open(rig, 1);
	for (int i = 0; i < 20; i++) {
		fds[i] = net_rig_connect(rig, true);
		net_rig_say(fds[i], "ECHO a\r\n");
		net_rig_expect(fds[i], "$1\r\na\r\n");
	}
	assert_int_equal(oltp_pool_add(rig->pool, 1), 0);
	WAIT_FOR(rig, moved, 10);
	for (int i = 0; i < 20; i++) {
		net_rig_say(fds[i], "ECHO b\r\n");
		net_rig_expect(fds[i], "$1\r\nb\r\n");
	}
	assert_int_equal(oltp_pool_remove(rig->pool, 1, &totals), 0);
	assert_int_equal(totals.committed, 10);
	for (int i = 0; i < 20; i++) {
		net_rig_say(fds[i], "ECHO c\r\n");
		net_rig_expect(fds[i], "$1\r\nc\r\n");
		close(fds[i]);
	}
}

/* A request that its worker has no time for is run again by another. */
static void test_n3_a_request_goes_on_elsewhere(void **state)
{
	struct net_rig *rig = *state;
	struct oltp_totals totals;
	uint64_t attempts;
	int a, b;

	net_rig_open(rig, 1);
	a = net_rig_connect(rig, true);
	b = net_rig_connect(rig, true);
	kv_stub_lock(rig->kv, true);
	net_rig_say(a, "ECHO a\r\nLOCKED\r\nECHO b\r\n");
	/* Others are served meanwhile. */
	net_rig_say(b, "ECHO c\r\n");
	net_rig_expect(b, "$1\r\nc\r\n");
	while (!kv_stub_attempts(rig->kv))
		usleep(1000);
	assert_int_equal(oltp_pool_stop_by(rig->pool, 0, now_ns() + SECOND / 100), 0);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, &totals), 0);
	assert_int_equal(totals.failed, 0);
	attempts = kv_stub_attempts(rig->kv);
	assert_int_equal(oltp_pool_add(rig->pool, 5), 0);
	while (kv_stub_attempts(rig->kv) == attempts)
		usleep(1000);
	kv_stub_lock(rig->kv, false);
	net_rig_expect(a, "$1\r\na\r\n+OK\r\n$1\r\nb\r\n");
	close(a);
	close(b);
}

/* A request waits for keys of another node; its worker ends meanwhile. */
static void test_n3_a_wait(void **state)
{
	struct net_rig *rig = *state;
	struct net_pauses pauses;
	int a, b;

	net_rig_open(rig, 1);
	a = net_rig_connect(rig, true);
	b = net_rig_connect(rig, true);
	net_rig_say(a, "ECHO a\r\nWAIT\r\nECHO b\r\n");
	net_rig_expect(a, "$1\r\na\r\n");
	net_rig_say(b, "ECHO c\r\n");
	net_rig_expect(b, "$1\r\nc\r\n");
	while (!kv_stub_attempts(rig->kv))
		usleep(1000);
	assert_int_equal(oltp_pool_stop(rig->pool, 0), 0);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, NULL), 0);
	assert_int_equal(oltp_pool_add(rig->pool, 5), 0);
	while (kv_stub_attempts(rig->kv) == 1)
		usleep(1000);
	usleep(50000);
	kv_stub_let_in(rig->kv);
	net_rig_expect(a, "+OK\r\n$1\r\nb\r\n");
	assert_int_equal(kv_stub_attempts(rig->kv), 3);
	/* Its pause is known, that of other requests is none. */
	net_pauses_read(rig->front, &pauses);
	assert_int_equal(pauses.n, 1);
	assert_true(pauses.max_ns >= 50000000 && pauses.p50_ns >= 48000000);
	close(a);
	close(b);
}

/* A worker ends while a client does not read what is sent to it: hangs if it waits for that. */
static void test_n3_a_blocked_send(void **state)
{
	struct net_rig *rig = *state;
	const uint32_t n = 20, bytes = 100000;
	char *big = malloc(bytes + 3);
	struct net_stats stats;
	int fd;

	assert_non_null(big);
	memset(big, 'x', bytes);
	memcpy(big + bytes, "\r\n", 3);
	net_rig_open(rig, 2);
	fd = net_rig_connect(rig, false);
	for (uint32_t i = 0; i < n; i++)
		net_rig_say(fd, "BIG 100000\r\n");
	WAIT_FOR(rig, requests, 6);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(oltp_pool_remove(rig->pool, i % 2, NULL), 0);
		assert_int_equal(oltp_pool_add(rig->pool, i % 2), 0);
	}
	for (uint32_t i = 0; i < n; i++) {
		net_rig_expect(fd, "$100000\r\n");
		net_rig_expect(fd, big);
	}
	close(fd);
	free(big);
}

/* Without workers clients wait; with none for good they are closed at the end. */
static void test_n3_without_workers(void **state)
{
	struct net_rig *rig = *state;
	int fd;

	net_rig_open(rig, 0);
	fd = net_rig_connect(rig, true);
	net_rig_say(fd, "ECHO a\r\n");
	net_rig_expect_silence(fd, 50);
	assert_int_equal(oltp_pool_add(rig->pool, 0), 0);
	net_rig_expect(fd, "$1\r\na\r\n");
	assert_int_equal(oltp_pool_remove(rig->pool, 0, NULL), 0);
	net_rig_say(fd, "ECHO b\r\n");
	net_rig_expect_silence(fd, 50);
	close(fd);
}

/* ---- N4: limits ---- */

/* It is not read from while it does not read, others are served, and nothing of its own is lost. */
static void test_n4_slow_reader(void **state)
{
	struct net_rig *rig = *state;
	const uint32_t n = 400, bytes = 50000;
	char *big = malloc(bytes + 3), *requests = calloc(n, 12);
	struct net_stats stats;
	int slow, other;

	assert_non_null(big);
	assert_non_null(requests);
	memset(big, 'x', bytes);
	memcpy(big + bytes, "\r\n", 3);
	for (uint32_t i = 0; i < n; i++)
		strcat(requests, "BIG 50000\r\n");
	net_rig_open(rig, 1);
	slow = net_rig_connect(rig, false);
	other = net_rig_connect(rig, true);
	/* At once: a unix socket takes 278 sends, and the server reads none while it is paused. */
	net_rig_say(slow, requests);
	usleep(100000);
	net_rig_say(other, "ECHO a\r\n");
	net_rig_expect(other, "$1\r\na\r\n");
	net_stats_read(rig->front, &stats);
	/* 20 MB were asked for. Run were those that fit into two buffers and the socket. */
	assert_true(stats.requests * bytes < 2 * rig->config.output_bytes_max + (1 << 20));
	for (uint32_t i = 0; i < n; i++) {
		net_rig_expect(slow, "$50000\r\n");
		net_rig_expect(slow, big);
	}
	close(slow);
	close(other);
	free(requests);
	free(big);
}

static void test_n4_replies_have_a_limit(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int fd;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, true);
	net_rig_say(fd, "ECHO a\r\nBIG 2000000\r\nECHO b\r\n");
	net_rig_expect_end(fd);
	WAIT_FOR(rig, overflows, 1);
	assert_int_equal(stats.overflows, 1);
}

static void test_n4_requests_have_a_limit(void **state)
{
	struct net_rig *rig = *state;
	const uint32_t n = rig->config.request_bytes_max;
	char *text = malloc(n), head[64];
	int fd;

	assert_non_null(text);
	memset(text, 'y', n);
	net_rig_open(rig, 1);
	/* As large as it may be: in and out again. */
	fd = net_rig_connect(rig, true);
	snprintf(head, sizeof(head), "*2\r\n$4\r\nECHO\r\n$%u\r\n", n - 100);
	net_rig_say(fd, head);
	net_rig_put(fd, text, n - 100);
	net_rig_say(fd, "\r\nECHO a\r\n");
	snprintf(head, sizeof(head), "$%u\r\n", n - 100);
	net_rig_expect(fd, head);
	text[n - 100] = '\0';
	net_rig_expect(fd, text);
	net_rig_expect(fd, "\r\n$1\r\na\r\n");
	/* More is refused before it has come. */
	snprintf(head, sizeof(head), "*2\r\n$4\r\nECHO\r\n$%u\r\n", n);
	net_rig_say(fd, head);
	net_rig_expect(fd, "-ERR Protocol error: too big request\r\n");
	net_rig_expect_end(fd);
	free(text);
}

static void test_n4_idle_clients_are_closed(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int idle, busy;

	rig->config.idle_seconds_max = 3;
	net_rig_open(rig, 1);
	idle = net_rig_connect(rig, true);
	busy = net_rig_connect(rig, true);
	do {
		net_rig_say(busy, "ECHO a\r\n");
		net_rig_expect(busy, "$1\r\na\r\n");
		usleep(50000);
		net_stats_read(rig->front, &stats);
	} while (!stats.idle_closed);
	net_rig_expect_end(idle);
	net_rig_say(busy, "ECHO a\r\n");
	net_rig_expect(busy, "$1\r\na\r\n");
	close(busy);
}

static void test_n4_clients_max(void **state)
{
	struct net_rig *rig = *state;
	struct net_stats stats;
	int fds[5], fd;

	rig->config.clients_max = 5;
	net_rig_open(rig, 2);
	for (int i = 0; i < 5; i++) {
		fds[i] = net_rig_connect(rig, i % 2);
		net_rig_say(fds[i], "ECHO a\r\n");
		net_rig_expect(fds[i], "$1\r\na\r\n");
	}
	fd = net_rig_connect(rig, true);
	net_rig_expect(fd, "-ERR max number of clients reached\r\n");
	net_rig_expect_end(fd);
	/* Others go on, and one may take the place of one that has gone. */
	net_rig_say(fds[1], "ECHO a\r\n");
	net_rig_expect(fds[1], "$1\r\na\r\n");
	close(fds[0]);
	do {
		usleep(1000);
		net_stats_read(rig->front, &stats);
	} while (stats.clients == 5);
	assert_int_equal(stats.rejected, 1);
	fds[0] = net_rig_connect(rig, true);
	net_rig_say(fds[0], "ECHO a\r\n");
	net_rig_expect(fds[0], "$1\r\na\r\n");
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}

/* ---- N5: nobody waits for others ---- */

/* A client with an endless pipeline does not keep others from being served. */
static void *flood(void *arg)
{
	char text[8000];
	size_t at = 0;
	int fd = *(int *)arg;

	while (at + 10 < sizeof(text))
		at += (size_t)sprintf(text + at, "INC 1\r\n");
	while (send(fd, text, at, MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void *drain(void *arg)
{
	char bytes[65536];

	while (recv(*(int *)arg, bytes, sizeof(bytes), 0) > 0)
		;
	return NULL;
}

static void test_n5_a_flood(void **state)
{
	struct net_rig *rig = *state;
	pthread_t sender, reader;
	int fd, other;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, false);
	other = net_rig_connect(rig, true);
	assert_int_equal(pthread_create(&sender, NULL, flood, &fd), 0);
	assert_int_equal(pthread_create(&reader, NULL, drain, &fd), 0);
	usleep(50000);
	for (int i = 0; i < 50; i++) {
		net_rig_say(other, "ECHO a\r\n");
		net_rig_expect(other, "$1\r\na\r\n");
	}
	shutdown(fd, SHUT_RDWR);
	pthread_join(sender, NULL);
	pthread_join(reader, NULL);
	close(fd);
	close(other);
}

/* A worker without requests sleeps. */
static void test_n5_an_idle_worker_uses_no_cpu(void **state)
{
	struct net_rig *rig = *state;
	struct oltp_totals totals;
	int fd;

	net_rig_open(rig, 1);
	fd = net_rig_connect(rig, true);
	net_rig_say(fd, "ECHO a\r\n");
	net_rig_expect(fd, "$1\r\na\r\n");
	usleep(500000);
	assert_int_equal(oltp_pool_remove(rig->pool, 0, &totals), 0);
	assert_true(totals.cpu_ns < SECOND / 20);
	close(fd);
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, net_rig_setup, net_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_n1_answers),
		RIG_TEST(test_n1_byte_by_byte),
		RIG_TEST(test_n1_pipeline_then_half_closed),
		RIG_TEST(test_n1_requests_that_are_run_again),
		RIG_TEST(test_n1_malformed),
		RIG_TEST(test_n2_held_until_durable),
		RIG_TEST(test_n2_the_log_fails),
		RIG_TEST(test_n3_workers_come_and_go),
		RIG_TEST(test_n3_with_held_replies),
		RIG_TEST(test_n3_a_new_worker_takes_part),
		RIG_TEST(test_n3_a_request_goes_on_elsewhere),
		RIG_TEST(test_n3_a_wait),
		RIG_TEST(test_n3_a_blocked_send),
		RIG_TEST(test_n3_without_workers),
		RIG_TEST(test_n4_slow_reader),
		RIG_TEST(test_n4_replies_have_a_limit),
		RIG_TEST(test_n4_requests_have_a_limit),
		RIG_TEST(test_n4_idle_clients_are_closed),
		RIG_TEST(test_n4_clients_max),
		RIG_TEST(test_n5_a_flood),
		RIG_TEST(test_n5_an_idle_worker_uses_no_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
