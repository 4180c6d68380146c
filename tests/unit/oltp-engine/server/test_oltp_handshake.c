// SPDX-License-Identifier: GPL-2.0-or-later
/* Two nodes of a relocation greet each other; a stranger who only takes time; a stop. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/handshake.h"
#include "oltp-engine/server/link.h"
#include "oltp-engine/src/base/clock.h"

#define UNIT_BITS	8u

static const uint8_t key[20] = "a secret of the link";
static const struct greeting_link own = { .key = key, .key_bytes = sizeof(key) };

/* With the limit of time that sockets of a link have. */
static void open_pair(int fds[2])
{
	const struct timeval limit = { .tv_sec = 1 };

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_RCVTIMEO, &limit,
					    sizeof(limit)), 0);
}

struct source {
	int fd, rc;
	struct greeting_answer answer;
};

static void *offer(void *ctx)
{
	struct source *source = ctx;
	struct greeting_link link_of_it = own;

	source->rc = handshake_offer(source->fd, &link_of_it,
				     (struct greeting_offer){ .unit_bits = UNIT_BITS,
							      .relocation = 7,
							      .speed_percent = 100 },
				     &source->answer);
	return NULL;
}

static void test_welcome(void **state)
{
	static const uint8_t none[GREETING_VOLUME_BYTES];
	struct greeting_link target = own;
	struct greeting_offer offered;
	struct source source;
	pthread_t thread;
	int fds[2];

	(void)state;
	open_pair(fds);
	source.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, offer, &source), 0);
	assert_int_equal(handshake_take(fds[0], &target, UNIT_BITS, &offered), 0);
	assert_int_equal(offered.relocation, 7);
	assert_int_equal(handshake_answer(fds[0], &target, GREETING_WELCOME, "unix:/b", none), 0);
	pthread_join(thread, NULL);
	assert_int_equal(source.rc, 0);
	assert_string_equal(source.answer.clients, "unix:/b");
	close(fds[0]);
	close(fds[1]);
}

/* What a source would say, part by part, each just before it would be given up. */
static void *trickle(void *ctx)
{
	const struct greeting_hello hello = { .head = greeting_head(GREETING_WELCOME),
					      .has_secret = 1 };
	const size_t bytes = sizeof(hello.head);
	const int fd = *(int *)ctx;

	clock_sleep(800000000);
	(void)!send(fd, &hello, bytes, MSG_NOSIGNAL);
	clock_sleep(800000000);
	(void)!send(fd, (const uint8_t *)&hello + bytes, sizeof(hello) - bytes, MSG_NOSIGNAL);
	return NULL;
}

/* One who does not know the secret keeps the target's thread for a second and no longer. */
static void test_stranger(void **state)
{
	struct greeting_link target = own;
	struct greeting_offer offered;
	uint64_t begun_ns, ns;
	pthread_t thread;
	int fds[2];

	(void)state;
	open_pair(fds);
	begun_ns = clock_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, trickle, &fds[1]), 0);
	assert_int_equal(handshake_take(fds[0], &target, UNIT_BITS, &offered), -ETIMEDOUT);
	ns = clock_now_ns() - begun_ns;
	pthread_join(thread, NULL);
	assert_in_range(ns, 900000000, 2000000000);
	close(fds[0]);
	close(fds[1]);
}

/* Each stop of the process ends recv(2) early; server_link_read() waits on. */
static void test_stopped(void **state)
{
	static const char said[8] = "12345678";
	const pid_t parent = getpid();
	char heard[8];
	int fds[2], status;
	pid_t child;

	(void)state;
	open_pair(fds);
	child = fork();
	if (!child) {
		for (uint32_t i = 0; i < sizeof(said); i++) {
			usleep(20000);
			kill(parent, SIGSTOP);
			usleep(20000);
			kill(parent, SIGCONT);
			(void)!send(fds[1], &said[i], 1, MSG_NOSIGNAL);
		}
		_exit(0);
	}
	assert_int_equal(server_link_read(fds[0], heard, sizeof(heard),
					  clock_now_ns() + 60000000000ull), 0);
	assert_memory_equal(heard, said, sizeof(heard));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_welcome),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
