/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The load of a calibration, on a server that the test plays: one that answers, and that hangs. */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>
#include "util/clock.h"
#include "volumed/probe.h"

#define BYTES		4096u
#define BLOCKS		64u
#define NO_LIMIT	UINT32_MAX

struct fixture {
	char folder[64], path[96];
	int listen_fd;
	pthread_t thread;
	bool greets, lets_in;		/* else it is silent from there on */
	uint32_t replies;		/* before it is silent */
};

static struct fixture f;

static bool get(int fd, void *data, size_t len)
{
	return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

static void put(int fd, const void *data, size_t len)
{
	(void)!send(fd, data, len, MSG_NOSIGNAL);
}

static void put_number(int fd, uint64_t number, size_t len)
{
	const uint64_t big = htobe64(number << (64 - 8 * len));

	put(fd, &big, len);
}

/* What a client asks for with its name of three bytes. */
static bool handshake(int fd)
{
	char ask[20 + 3];

	if (!f.greets)
		return false;
	put(fd, "NBDMAGICIHAVEOPT\0\3", 18);
	if (!get(fd, ask, sizeof(ask)) || !f.lets_in)
		return false;
	put_number(fd, BLOCKS * BYTES, 8);
	put_number(fd, 0, 2);
	return true;
}

static void reply(int fd, const char request[28])
{
	static const char data[BYTES];

	put_number(fd, 0x67446698u, 4);
	put_number(fd, 0, 4);
	put(fd, request + 8, 8);
	put(fd, data, sizeof(data));
}

static void *serve(void *arg)
{
	const int fd = accept(f.listen_fd, NULL, NULL);
	char request[28], byte;

	if (handshake(fd))
		for (uint32_t n = 0; n < f.replies && get(fd, request, sizeof(request)); n++)
			reply(fd, request);
	/* Silent, until the client gives up. */
	while (recv(fd, &byte, 1, 0) == 1)
		;
	close(fd);
	return arg;
}

static int set_up(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)state;
	f = (struct fixture){ .folder = "/tmp/test_volumed_probe.XXXXXX", .greets = true,
			      .lets_in = true, .replies = NO_LIMIT };
	if (!mkdtemp(f.folder))
		return -1;
	snprintf(f.path, sizeof(f.path), "%s/sock", f.folder);
	strcpy(addr.sun_path, f.path);
	f.listen_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	return bind(f.listen_fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(f.listen_fd, 8);
}

static int tear_down(void **state)
{
	(void)state;
	close(f.listen_fd);
	unlink(f.path);
	return rmdir(f.folder);
}

static int probe(uint64_t usec, uint64_t patience_usec, struct ebb_knee_point *ret,
		 struct ebb_err *err)
{
	const struct ebb_probe p = {
		.path = f.path, .export = "vol", .depth = 4, .bytes = BYTES, .usec = usec,
		.patience_usec = patience_usec,
	};
	int rc;

	assert_int_equal(pthread_create(&f.thread, NULL, serve, NULL), 0);
	rc = ebb_probe_run(&p, ret, err);
	pthread_join(f.thread, NULL);
	return rc;
}

static void test_measures(void **state)
{
	struct ebb_knee_point point;
	struct ebb_err err = { "" };
	int rc = -ETIME;

	(void)state;
	/* On a busy machine nothing may end in so short a time. */
	for (uint64_t usec = 50000; rc == -ETIME && usec < 30000000; usec *= 4)
		rc = probe(usec, 60000000, &point, &err);
	assert_int_equal(rc, 0);
	assert_int_equal(point.depth, 4);
	assert_true(point.iops > 0);
}

static void expect_hang(void)
{
	const uint64_t from = ebb_clock_mono_usec();
	struct ebb_knee_point point;
	struct ebb_err err = { "" };

	assert_int_equal(probe(50000, 1000000, &point, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "reading at depth 4: no answer in 1 s"));
	assert_true(ebb_clock_mono_usec() - from >= 900000);
}

/* Wherever the server falls silent, the client gives up. */
static void test_hangs(void **state)
{
	(void)state;
	f.replies = 9;
	expect_hang();
	f.replies = 0;
	expect_hang();
	f.lets_in = false;
	expect_hang();
	f.greets = false;
	expect_hang();
}

/* So many clients wait that connecting waits, too. */
static void test_no_connection(void **state)
{
	const struct ebb_probe p = {
		.path = f.path, .export = "vol", .depth = 4, .bytes = BYTES, .usec = 50000,
		.patience_usec = 1000000,
	};
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct ebb_knee_point point;
	struct ebb_err err = { "" };
	int fds[4];

	(void)state;
	strcpy(addr.sun_path, f.path);
	assert_int_equal(listen(f.listen_fd, 1), 0);
	for (size_t i = 0; i < 4; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)connect(fds[i], (struct sockaddr *)&addr, sizeof(addr));
	}
	assert_int_equal(ebb_probe_run(&p, &point, &err), -ETIMEDOUT);
	for (size_t i = 0; i < 4; i++)
		close(fds[i]);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(measures), TEST(hangs), TEST(no_connection),
	};

	return cmocka_run_group_tests_name("volumed/probe", tests, NULL, NULL);
}
