// SPDX-License-Identifier: GPL-2.0-or-later
/* A node that asks ebb-fenced, both sides; and what comes of others that connect to either. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/server/fence/desk.h"
#include "oltp-engine/server/fence/lines.h"
#include "oltp-engine/server/fence/remote.h"
#include "oltp-engine/server/link.h"

static const struct secret secret = { "a secret of the database", 24 };
static const struct secret other = { "a secret of another one.", 24 };

static struct {
	char address[64];
	int fd;
	pthread_t thread;
	const char *line;	/* said instead of serving; NULL: serve */
	int rc;
	enum move_fence answer;
	struct fence_question asked;
	uint32_t n_asked;
} played;

static enum move_fence ask(void *ctx, const struct fence_question *question)
{
	(void)ctx;
	played.asked = *question;
	played.n_asked++;
	return played.answer;
}

static void *serve_one(void *ctx)
{
	struct fence_desk desk = { .secret = secret, .patience_ms = 300, .ask = ask };
	struct fence_question question;
	enum move_fence answer;
	int fd;

	(void)ctx;
	while ((fd = server_link_accept(played.fd)) < 0)
		usleep(1000);
	if (played.line) {
		(void)fence_write_line(fd, played.line);
		usleep(1000);
	} else {
		played.rc = fence_desk_serve(&desk, fd, &question, &answer);
	}
	close(fd);
	return NULL;
}

static void begin(enum move_fence answer, const char *line)
{
	snprintf(played.address, sizeof(played.address), "unix:/tmp/fence-desk-%d", getpid());
	played.fd = server_link_listen(played.address);
	assert_true(played.fd >= 0);
	played.answer = answer;
	played.line = line;
	played.n_asked = 0;
	assert_int_equal(pthread_create(&played.thread, NULL, serve_one, NULL), 0);
}

static void end(void)
{
	pthread_join(played.thread, NULL);
	close(played.fd);
	unlink(played.address + 5);
}

static enum move_fence call(const struct secret *with, bool fences)
{
	struct fence_remote f = { played.address, with, "a", "b", NULL };
	enum move_fence rc = fences ? fence_remote_ops.fence(&f) : fence_remote_ops.is_fenced(&f);

	end();
	return rc;
}

static void test_answers(void **state)
{
	(void)state;
	for (int i = MOVE_FENCE_LATER; i <= MOVE_FENCE_NONE; i++) {
		begin((enum move_fence)i, NULL);
		assert_int_equal(call(&secret, false), i);
		assert_false(played.asked.fences);
		assert_string_equal(played.asked.own, "a");
		assert_string_equal(played.asked.peer, "b");
		begin((enum move_fence)i, NULL);
		/* Of a fence "none" is no answer. */
		assert_int_equal(call(&secret, true),
				 i == MOVE_FENCE_NONE ? MOVE_FENCE_LATER : i);
		assert_true(played.asked.fences);
		assert_int_equal(played.n_asked, 1);
	}
}

/* Of another database: nobody is asked, and nothing is believed. */
static void test_other_secret(void **state)
{
	(void)state;
	begin(MOVE_FENCE_WON, NULL);
	assert_int_equal(call(&other, true), MOVE_FENCE_LATER);
	assert_int_equal(played.rc, -EACCES);
	assert_int_equal(played.n_asked, 0);
}

/* Servers that are none, or do not know the secret. */
static void test_impostors(void **state)
{
	static const char *const lines[] = {
		"won\n", "EBBFENCE 1 12\n", "error too many connections\n",
		"EBBFENCE 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n",
		("EBBFENCE 1 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
		 "won 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		begin(MOVE_FENCE_WON, lines[i]);
		assert_int_equal(call(&secret, true), MOVE_FENCE_LATER);
	}
}

static void test_nobody(void **state)
{
	struct fence_remote f = { "unix:/nowhere/socket", &secret, "a", "b", NULL };

	(void)state;
	assert_int_equal(fence_remote_ops.is_fenced(&f), MOVE_FENCE_LATER);
	f.address = "not an address";
	assert_int_equal(fence_remote_ops.fence(&f), MOVE_FENCE_LATER);
}

/* What a client that sends these bytes is told. */
static void say(const char *bytes, size_t n, bool closes, int rc, const char *reply)
{
	char line[FENCE_LINE_MAX + 1];
	int64_t until = fence_now_ms() + 5000;
	int fd;

	begin(MOVE_FENCE_WON, NULL);
	fd = server_link_connect(played.address);
	assert_true(fd >= 0);
	assert_int_equal(fence_read_line(fd, until, line), 0);
	if (n)
		assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
	if (closes)
		shutdown(fd, SHUT_WR);
	if (reply) {
		assert_int_equal(fence_read_line(fd, until, line), 0);
		assert_memory_equal(line, reply, strlen(reply));
	}
	end();
	close(fd);
	assert_int_equal(played.rc, rc);
	assert_int_equal(played.n_asked, 0);
}

static void test_bad_clients(void **state)
{
	static char long_line[2 * FENCE_LINE_MAX];

	(void)state;
	memset(long_line, 'x', sizeof(long_line));
	say("GET / HTTP/1.1\r\n", 16, false, -EPROTO, "error a question is");
	say("{\"cmd\":\"fence\"}\n", 16, false, -EPROTO, "error a question is");
	say("is-fenced\0a b\n", 14, false, -EPROTO, "error a question is");
	say("one\ntwo\n", 8, false, -EPROTO, "error a question is");
	say(long_line, sizeof(long_line), false, -E2BIG, "error the line is too long");
	say("fence a", 7, false, -ETIMEDOUT, "error no question came");
	say("", 0, false, -ETIMEDOUT, "error no question came");
	say("fence a", 7, true, -EPIPE, NULL);
	say("", 0, true, -EPIPE, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_other_secret),
		cmocka_unit_test(test_impostors),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_bad_clients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
