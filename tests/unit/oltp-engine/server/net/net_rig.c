// SPDX-License-Identifier: GPL-2.0-or-later
/* See net_rig.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "net_rig.h"

static void *accept_clients(void *arg)
{
	struct net_rig *rig = arg;
	int fds[NET_LISTENERS_MAX];
	uint32_t n = net_fds(rig->front, fds);

	while (!rig->is_closing) {
		struct pollfd polls[NET_LISTENERS_MAX];

		for (uint32_t i = 0; i < n; i++)
			polls[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		poll(polls, n, 20);
		for (uint32_t i = 0; i < n; i++) {
			if (polls[i].revents)
				net_accept(rig->front, fds[i]);
		}
	}
	return NULL;
}

int net_rig_setup(void **state)
{
	struct net_rig *rig = calloc(1, sizeof(*rig));
	void *log;

	if (!rig || log_rig_setup(&log))
		return -1;
	rig->log = log;
	rig->log->config.durability = OLTP_DURABILITY_OFF;
	rig->config = (struct net_config){ .clients_max = 200, .request_bytes_max = 256 << 10,
					   .output_bytes_max = 1 << 20 };
	*state = rig;
	return 0;
}

void net_rig_open(struct net_rig *rig, uint32_t n_workers)
{
	struct oltp_workload workload;

	log_rig_open(rig->log);
	for (uint64_t key = 0; key < NET_RIG_ROWS; key++)
		assert_int_equal(log_rig_insert(rig->log, key, 0), OLTP_OK);
	rig->kv = kv_stub_create(rig->log->table);
	assert_non_null(rig->kv);
	rig->config.holds_replies = rig->log->config.durability == OLTP_DURABILITY_COMMIT;
	assert_int_equal(net_create(&rig->config, &rig->front), 0);
	assert_int_equal(net_listen_tcp(rig->front, "127.0.0.1:0"), 0);
	snprintf(rig->path, sizeof(rig->path), "%s/sock", rig->log->dir);
	assert_int_equal(net_listen_unix(rig->front, rig->path), 0);
	net_start(rig->front, rig->log->engine, rig->kv);
	workload = net_workload(rig->front);
	assert_int_equal(oltp_pool_create(&(struct oltp_pool_config){ .engine = rig->log->engine,
								      .workload = &workload,
								      .feed = &net_feed,
								      .no_pin = true },
					  &rig->pool), 0);
	for (uint32_t i = 0; i < n_workers; i++)
		assert_int_equal(oltp_pool_add(rig->pool, i), 0);
	assert_int_equal(pthread_create(&rig->acceptor, NULL, accept_clients, rig), 0);
}

int net_rig_teardown(void **state)
{
	struct net_rig *rig = *state;
	void *log = rig->log;
	int rc;

	if (rig->front) {
		rig->is_closing = true;
		pthread_join(rig->acceptor, NULL);
		oltp_pool_destroy(rig->pool);
		net_stop(rig->front);
		/* No connection is forgotten. */
		assert_int_equal(kv_stub_sessions(rig->kv), 0);
		kv_stub_destroy(rig->kv);
		net_destroy(rig->front);
	}
	rc = log_rig_teardown(&log);
	free(rig);
	return rc;
}

int net_rig_connect(const struct net_rig *rig, bool is_tcp)
{
	const struct timeval limit = { .tv_sec = 20 };
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(net_port(rig->front)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(is_tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	strcpy(path.sun_path, rig->path);
	if (is_tcp)
		assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	else
		assert_int_equal(connect(fd, (struct sockaddr *)&path, sizeof(path)), 0);
	return fd;
}

void net_rig_put(int fd, const void *bytes, size_t n)
{
	while (n) {
		ssize_t done = TEMP_FAILURE_RETRY(send(fd, bytes, n, MSG_NOSIGNAL));

		assert_true(done > 0);
		bytes = (const char *)bytes + done;
		n -= (size_t)done;
	}
}

void net_rig_say(int fd, const char *text)
{
	net_rig_put(fd, text, strlen(text));
}

void net_rig_expect(int fd, const char *text)
{
	size_t n = strlen(text), there = 0;
	char *bytes = calloc(1, n + 1);

	assert_non_null(bytes);
	while (there < n) {
		ssize_t got = TEMP_FAILURE_RETRY(recv(fd, bytes + there, n - there, 0));

		assert_true(got > 0);
		there += (size_t)got;
	}
	assert_string_equal(bytes, text);
	free(bytes);
}

void net_rig_expect_silence(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&poll_fd, 1, ms), 0);
}

void net_rig_expect_end(int fd)
{
	char bytes[4096];
	ssize_t n;

	do {
		n = TEMP_FAILURE_RETRY(recv(fd, bytes, sizeof(bytes), 0));
	} while (n > 0);
	/* Whether the rest of its requests was read does not matter. */
	assert_true(n == 0 || errno == ECONNRESET || errno == EPIPE);
	close(fd);
}
