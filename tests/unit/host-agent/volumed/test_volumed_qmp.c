/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client of QMP: answers in pieces, those that can not be read, events, and the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "volumed/qmp.h"

struct fixture {
	sd_event *event;
	struct ebb_qmp *qmp;
	int peer;
	unsigned int num_lost, num_events;
};

struct answer {
	unsigned int count;
	json_int_t n;			/* of {"n": n}; -1: it was refused */
	char error[64];
};

static struct fixture f;

static void on_event(void *ctx, const char *name, const json_t *data)
{
	(void)ctx;
	assert_string_equal(name, "BLOCK_EXPORT_DELETED");
	assert_string_equal(json_string_value(json_object_get(data, "id")), "e1");
	f.num_events++;
}

static void on_lost(void *ctx)
{
	(void)ctx;
	f.num_lost++;
}

static void on_answer(void *ctx, const json_t *result, const char *error)
{
	struct answer *a = ctx;

	a->count++;
	a->n = result ? json_integer_value(json_object_get(result, "n")) : -1;
	snprintf(a->error, sizeof(a->error), "%s", error ? error : "");
}

static int set_up(void **state)
{
	struct ebb_qmp_config cfg = { .event = on_event, .lost = on_lost };
	int fds[2];

	(void)state;
	memset(&f, 0, sizeof(f));
	if (sd_event_new(&f.event) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return -1;
	cfg.fd = fds[0];
	f.peer = fds[1];
	return ebb_qmp_create(f.event, &cfg, &f.qmp);
}

static int tear_down(void **state)
{
	(void)state;
	ebb_qmp_destroy(f.qmp);
	close(f.peer);
	sd_event_unref(f.event);
	return 0;
}

static void run(void)
{
	while (sd_event_run(f.event, 0) > 0)
		;
}

static void say(const char *text)
{
	assert_int_equal(write(f.peer, text, strlen(text)), strlen(text));
	run();
}

static void expect_command(const char *text)
{
	char buf[256];
	const ssize_t n = recv(f.peer, buf, sizeof(buf) - 1, MSG_DONTWAIT);

	assert_true(n > 0);
	buf[n] = '\0';
	assert_string_equal(buf, text);
}

/* CPU microseconds that it takes to send so many bytes of one line, in pieces. */
static uint64_t feed(size_t bytes, size_t piece)
{
	static char data[128 << 10];
	struct timespec from, to;

	memset(data, 'x', sizeof(data));
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (size_t sent = 0; sent < bytes; sent += piece) {
		assert_int_equal(write(f.peer, data, piece), piece);
		run();
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
	return (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
}

/* The end of a long answer costs no more to receive than its beginning. */
static void test_long_answer(void **state)
{
	struct answer a = { 0 };
	uint64_t first, last;

	(void)state;
	ebb_qmp_send(f.qmp, "one", NULL, on_answer, &a);
	say("{\"return\": {\"n\": 7, \"text\": \"");
	first = feed(1 << 20, 16 << 10);
	/* Room for 64 MiB is there from 32 MiB on. */
	feed(58 << 20, 128 << 10);
	last = feed(1 << 20, 16 << 10);
	assert_true(last < 8 * first + 5000);
	assert_int_equal(a.count, 0);
	say("\"}}\n{\"event\": \"BLOCK_EXPORT_DELETED\", \"data\": {\"id\": \"e1\"}}\n");
	assert_int_equal(a.n, 7);
	assert_int_equal(f.num_events, 1);
	assert_int_equal(f.num_lost, 0);
}

static void test_answers(void **state)
{
	struct answer first = { 0 }, second = { 0 };

	(void)state;
	say("{\"QMP\": {}}\r\n");
	ebb_qmp_send(f.qmp, "one", NULL, on_answer, &first);
	expect_command("{\"execute\":\"one\"}\n");
	ebb_qmp_send(f.qmp, "two", json_pack("{s:i}", "x", 3), on_answer, &second);
	expect_command("{\"execute\":\"two\",\"arguments\":{\"x\":3}}\n");
	say("{\"return\": {\"n\"");
	assert_int_equal(first.count, 0);
	say(": 7}}\n{\"event\": \"BLOCK_EXPORT_DELETED\", \"data\": {\"id\": \"e1\"}}\n{\"err");
	assert_int_equal(first.count, 1);
	assert_int_equal(first.n, 7);
	assert_int_equal(f.num_events, 1);
	say("or\": {\"class\": \"GenericError\", \"desc\": \"no\"}}\n");
	assert_int_equal(second.n, -1);
	assert_string_equal(second.error, "no");
	assert_int_equal(f.num_lost, 0);
}

/*
 * A counter of the storage daemon may exceed what jansson can hold.  The command fails, the daemon
 * serves on.
 */
static void test_number_too_large(void **state)
{
	struct answer first = { 0 }, second = { 0 };

	(void)state;
	ebb_qmp_send(f.qmp, "one", NULL, on_answer, &first);
	ebb_qmp_send(f.qmp, "two", NULL, on_answer, &second);
	say("{\"return\": {\"n\": 18446744073709551615}}\n{\"return\": {\"n\": 2}}\n");
	assert_int_equal(first.count, 1);
	assert_int_equal(first.n, -1);
	assert_non_null(strstr(first.error, "can not be read"));
	assert_int_equal(second.n, 2);
	assert_int_equal(f.num_lost, 0);
}

static void test_rubbish(void **state)
{
	struct answer late = { 0 };

	(void)state;
	say("GET / HTTP/1.1\r\n");
	assert_int_equal(f.num_lost, 1);
	ebb_qmp_send(f.qmp, "one", NULL, on_answer, &late);
	assert_int_equal(late.count, 1);
	assert_int_equal(late.n, -1);
}

/* Who waits for an answer is told that none comes. */
static void test_end(void **state)
{
	struct answer open = { 0 };

	(void)state;
	ebb_qmp_send(f.qmp, "one", NULL, on_answer, &open);
	shutdown(f.peer, SHUT_WR);
	run();
	assert_int_equal(f.num_lost, 1);
	assert_int_equal(open.count, 0);
	ebb_qmp_destroy(f.qmp);
	f.qmp = NULL;
	assert_int_equal(open.count, 1);
	assert_int_equal(open.n, -1);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers), TEST(long_answer), TEST(number_too_large), TEST(rubbish),
		TEST(end),
	};

	return cmocka_run_group_tests_name("volumed/qmp", tests, NULL, NULL);
}
