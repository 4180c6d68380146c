/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics over HTTP, by clients that behave and by clients that do not. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "daemon/http.h"
#include "util/clock.h"
#include "util/log.h"

#define LIMIT_USEC	(60 * 1000000ull)	/* for what must come on any machine */
#define LONG_USEC	(3600 * 1000000ull)	/* does not end within a test */
#define SHORT_USEC	(200 * 1000ull)
#define GET		"GET /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n"
#define TEXT		"# TYPE a gauge\na 1\n# EOF\n"
#define BIG		((size_t)8 << 20)

struct fixture {
	sd_event *event;
	struct ebb_http *http;
	size_t bytes;		/* of the text; 0: TEXT */
	bool is_poor;		/* there is no memory for it */
	int num_texts;
};

static char *text_of(void *ctx)
{
	struct fixture *f = ctx;
	char *text;

	f->num_texts++;
	if (f->is_poor)
		return NULL;
	if (!f->bytes)
		return strdup(TEXT);
	text = malloc(f->bytes + 1);
	memset(text, 'x', f->bytes);
	text[f->bytes] = '\0';
	return text;
}

static void start(struct fixture *f, uint64_t life_usec, uint64_t fresh_usec)
{
	struct ebb_http_config cfg = {
		.text = text_of, .ctx = f, .life_usec = life_usec, .fresh_usec = fresh_usec,
	};
	struct ebb_err err = { "" };

	assert_int_equal(ebb_http_address("127.0.0.1:0", &cfg.addr, &err), 0);
	assert_true(sd_event_new(&f->event) >= 0);
	if (ebb_http_create(f->event, &cfg, &f->http, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_not_equal(ebb_http_port(f->http), 0);
}

static void end(struct fixture *f)
{
	ebb_http_destroy(f->http);
	sd_event_unref(f->event);
}

static int connect_client(const struct fixture *f)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(ebb_http_port(f->http)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* One turn of the loop; it must come back, whatever clients do. */
static void turn(struct fixture *f)
{
	assert_true(sd_event_run(f->event, 10000) >= 0);
}

/* All that comes until the end of the connection. */
static const char *hear(struct fixture *f, int fd, const char *what)
{
	uint64_t t0 = ebb_clock_mono_usec();
	static char buf[8192];
	size_t len = 0;

	while (ebb_clock_mono_usec() - t0 < LIMIT_USEC) {
		ssize_t n = recv(fd, buf + len, sizeof(buf) - 1 - len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno == ECONNRESET)) {
			buf[len] = '\0';
			close(fd);
			return buf;
		}
		if (n > 0)
			len += n;
		else
			turn(f);
	}
	fail_msg("no end of the answer: %s", what);
	return NULL;
}

static const char *ask(struct fixture *f, const char *request)
{
	int fd = connect_client(f);

	say(fd, request);
	return hear(f, fd, request);
}

/* Where lives are short: a machine that stands still for a while may have let this one end. */
static const char *ask_again(struct fixture *f, const char *request)
{
	uint64_t t0 = ebb_clock_mono_usec();
	const char *answer;

	do
		answer = ask(f, request);
	while (!*answer && ebb_clock_mono_usec() - t0 < LIMIT_USEC);
	return answer;
}

static void wait_clients(struct fixture *f, unsigned int num, const char *what)
{
	uint64_t t0 = ebb_clock_mono_usec();

	while (ebb_http_num_clients(f->http) != num) {
		if (ebb_clock_mono_usec() - t0 > LIMIT_USEC)
			fail_msg("%s: %u clients, not %u", what, ebb_http_num_clients(f->http),
				 num);
		turn(f);
	}
}

static void expect(const char *answer, const char *words)
{
	if (!strcasestr(answer, words))
		fail_msg("\"%s\" is not in: %s", words, answer);
}

static const char *body_of(const char *answer)
{
	const char *at = strstr(answer, "\r\n\r\n");

	assert_non_null(at);
	return at + 4;
}

static void test_get(void **state)
{
	struct fixture f = { 0 };
	const char *answer;

	(void)state;
	start(&f, LONG_USEC, 0);
	answer = ask(&f, GET);
	expect(answer, "HTTP/1.1 200 OK\r\n");
	expect(answer, "\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
	       "charset=utf-8\r\n");
	expect(answer, "\r\nConnection: close\r\n");
	assert_string_equal(body_of(answer), TEXT);
	/* As curl, Prometheus and old clients ask. */
	assert_string_equal(body_of(ask(&f, "GET /metrics?x=1 HTTP/1.1\r\nHost: ebb\r\n"
					"Accept: application/openmetrics-text;version=1.0.0\r\n"
					"Accept-Encoding: gzip\r\n\r\n")), TEXT);
	assert_string_equal(body_of(ask(&f, "GET /metrics HTTP/1.0\r\n\r\n")), TEXT);
	assert_int_equal(f.num_texts, 3);
	wait_clients(&f, 0, "after the answers");
	end(&f);
}

static void test_head(void **state)
{
	struct fixture f = { 0 };
	const char *answer;
	char length[64];

	(void)state;
	start(&f, LONG_USEC, 0);
	answer = ask(&f, "HEAD /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n");
	snprintf(length, sizeof(length), "\r\nContent-Length: %zu\r\n", strlen(TEXT));
	expect(answer, "HTTP/1.1 200 OK\r\n");
	expect(answer, length);
	expect(answer, "\r\nContent-Type: application/openmetrics-text;");
	assert_string_equal(body_of(answer), "");
	end(&f);
}

static void test_refused(void **state)
{
	static const char *const elsewhere[] = {
		"GET / HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"GET /metrics/ HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"GET //metrics HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"GET /../metrics HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: ebb\r\nContent-Length: 0\r\n\r\n",
	};
	static const char *const otherwise[] = {
		"POST /metrics HTTP/1.1\r\nHost: ebb\r\nContent-Length: 3\r\n\r\nabc",
		/* It is not waited for. */
		"PUT /metrics HTTP/1.1\r\nHost: ebb\r\nContent-Length: 1000000000\r\n\r\n",
		"DELETE /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"OPTIONS /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n",
		"get /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n",
	};
	struct fixture f = { 0 };

	(void)state;
	start(&f, LONG_USEC, 0);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		expect(ask(&f, elsewhere[i]), "HTTP/1.1 404 ");
	for (size_t i = 0; i < sizeof(otherwise) / sizeof(otherwise[0]); i++) {
		const char *answer = ask(&f, otherwise[i]);

		expect(answer, "HTTP/1.1 405 ");
		expect(answer, "\r\nAllow: GET, HEAD\r\n");
	}
	assert_int_equal(f.num_texts, 0);
	f.is_poor = true;
	expect(ask(&f, GET), "HTTP/1.1 503 ");
	f.is_poor = false;
	assert_string_equal(body_of(ask(&f, GET)), TEXT);
	end(&f);
}

/* Whatever comes, the next one is served. */
static void test_garbage(void **state)
{
	static const char *const requests[] = {
		"\r\n\r\n\r\n", "garbage\r\n\r\n", "\x16\x03\x01\x02", "GET\r\n\r\n",
		"GET /metrics HTTP/9.9\r\n\r\n", "GET /metrics HTTP/1.1\r\n: x\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: ebb\r\nContent-Length: -1\r\n\r\n",
		"GET /%00metrics HTTP/1.1\r\nHost: ebb\r\n\r\n", "GET %%%% HTTP/1.1\r\n\r\n",
	};
	struct fixture f = { 0 };
	char *huge = malloc(1 << 20);
	int fd;

	(void)state;
	/* Some of it is a beginning, for all that libmicrohttpd knows. */
	start(&f, SHORT_USEC, 0);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		fd = connect_client(&f);
		say(fd, requests[i]);
		shutdown(fd, SHUT_WR);
		hear(&f, fd, requests[i]);
	}
	/* libmicrohttpd forgives some of them. */
	f.num_texts = 0;
	/* A head without an end: refused when it is too long, not stored. */
	memset(huge, 'a', (1 << 20) - 1);
	huge[(1 << 20) - 1] = '\0';
	fd = connect_client(&f);
	say(fd, "GET /metrics HTTP/1.1\r\nHost: ");
	while (send(fd, huge, 4096, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		turn(&f);
	hear(&f, fd, "a head without an end");
	free(huge);
	assert_int_equal(f.num_texts, 0);
	assert_string_equal(body_of(ask_again(&f, GET)), TEXT);
	wait_clients(&f, 0, "after garbage");
	end(&f);
}

/* Half a request and silence, a byte now and then, and nothing at all. */
static void test_slow_to_ask(void **state)
{
	uint64_t t0 = ebb_clock_mono_usec();
	struct fixture f = { 0 };
	int half, drip, mute;

	(void)state;
	start(&f, SHORT_USEC, 0);
	half = connect_client(&f);
	drip = connect_client(&f);
	mute = connect_client(&f);
	say(half, "GET /metrics HT");
	say(drip, "GET /metrics HTTP/1.1\r\nX: ");
	wait_clients(&f, 3, "three that are slow");
	while (send(drip, "x", 1, MSG_NOSIGNAL) == 1) {
		if (ebb_clock_mono_usec() - t0 > LIMIT_USEC)
			fail_msg("who sends a byte now and then is never cut off");
		turn(&f);
	}
	assert_string_equal(hear(&f, half, "half a request"), "");
	assert_string_equal(hear(&f, mute, "nothing"), "");
	close(drip);
	wait_clients(&f, 0, "their time is over");
	assert_int_equal(f.num_texts, 0);
	end(&f);
}

/* Who does not read what was asked for holds up nobody, and is cut off. */
static void test_slow_to_read(void **state)
{
	struct fixture f = { .bytes = BIG };
	int slow[3];

	(void)state;
	start(&f, SHORT_USEC, LONG_USEC);
	for (size_t i = 0; i < 3; i++) {
		slow[i] = connect_client(&f);
		say(slow[i], GET);
	}
	wait_clients(&f, 3, "three that do not read");
	wait_clients(&f, 0, "their time is over");
	/* All of them, and this one, had the same. */
	expect(ask_again(&f, "HEAD /metrics HTTP/1.1\r\nHost: ebb\r\n\r\n"),
	       "Content-Length: 8388608");
	assert_int_equal(f.num_texts, 1);
	for (size_t i = 0; i < 3; i++)
		close(slow[i]);
	end(&f);
}

/* A client that has a place is served while others are silent; those beyond the limit wait. */
static void test_many(void **state)
{
	enum { MANY = 3 * EBB_HTTP_MAX_CLIENTS };
	struct fixture f = { 0 };
	int silent[MANY], good;

	(void)state;
	start(&f, SHORT_USEC * 5, LONG_USEC);
	for (size_t i = 0; i < EBB_HTTP_MAX_CLIENTS - 1; i++) {
		silent[i] = connect_client(&f);
		say(silent[i], "GET /");
	}
	assert_string_equal(body_of(ask_again(&f, GET)), TEXT);
	for (size_t i = EBB_HTTP_MAX_CLIENTS - 1; i < MANY; i++)
		silent[i] = connect_client(&f);
	good = connect_client(&f);
	say(good, GET);
	for (unsigned int i = 0; i < 20; i++) {
		turn(&f);
		assert_in_range(ebb_http_num_clients(f.http), 0, EBB_HTTP_MAX_CLIENTS);
	}
	/* The turn of those behind them comes. */
	hear(&f, good, "behind silent ones");
	assert_string_equal(body_of(ask_again(&f, GET)), TEXT);
	assert_int_equal(f.num_texts, 1);
	for (size_t i = 0; i < MANY; i++)
		close(silent[i]);
	wait_clients(&f, 0, "all have gone");
	end(&f);
}

static int on_urgent(sd_event_source *s, int fd, uint32_t revents, void *arg)
{
	(void)s;
	(void)fd;
	(void)revents;
	++*(int *)arg;
	return 0;
}

/* What else is due in the loop comes first. */
static void test_behind_all_else(void **state)
{
	struct fixture f = { 0 };
	sd_event_source *s = NULL;
	int num_urgent = 0, fd, busy = eventfd(1, EFD_CLOEXEC);

	(void)state;
	start(&f, LONG_USEC, 0);
	/* It is never read, so there is always something to do. */
	assert_true(sd_event_add_io(f.event, &s, busy, EPOLLIN, on_urgent, &num_urgent) >= 0);
	fd = connect_client(&f);
	say(fd, GET);
	for (int i = 0; i < 100; i++)
		turn(&f);
	assert_int_equal(num_urgent, 100);
	assert_int_equal(f.num_texts, 0);
	sd_event_source_disable_unref(s);
	close(busy);
	assert_string_equal(body_of(hear(&f, fd, "nothing else is due")), TEXT);
	end(&f);
}

/* Everything is given back, whoever is still there. */
static void test_end(void **state)
{
	struct fixture f = { .bytes = BIG };
	struct ebb_http_config cfg = { .text = text_of, .ctx = &f, .life_usec = LONG_USEC };
	struct ebb_http *other = NULL;
	struct ebb_err err = { "" };
	char address[32];
	int fds[2];

	(void)state;
	start(&f, LONG_USEC, LONG_USEC);
	fds[0] = connect_client(&f);
	fds[1] = connect_client(&f);
	say(fds[0], GET);
	wait_clients(&f, 2, "two that stay");
	snprintf(address, sizeof(address), "127.0.0.1:%u", ebb_http_port(f.http));
	assert_int_equal(ebb_http_address(address, &cfg.addr, &err), 0);
	assert_int_equal(ebb_http_create(f.event, &cfg, &other, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "in use"));
	ebb_http_destroy(f.http);
	/* At once again, with old connections around. */
	assert_int_equal(ebb_http_create(f.event, &cfg, &f.http, &err), 0);
	close(fds[0]);
	close(fds[1]);
	end(&f);
	ebb_http_destroy(NULL);
}

static void test_address(void **state)
{
	static const char *const bad[] = {
		"", ":", "127.0.0.1", "127.0.0.1:", ":9750", "127.0.0.1:65536", "127.0.0.1:-1",
		"127.0.0.1: 1", "127.0.0.1:1x", "localhost:9750", "::1:9750", "[::1]", "[::1",
		"[:9750", "[]:9750", "]:9750", "[::1]x:9750", "[127.0.0.1]:9750", "127.1:9750",
		"127.0.0.1:99999999999999999999",
		"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]:1",
	};
	struct sockaddr_storage a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	struct ebb_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = '\0';
		if (ebb_http_address(bad[i], &a, &err) != -EINVAL || !strstr(err.text, bad[i]) ||
		    !strstr(err.text, "127.0.0.1:9750"))
			fail_msg("%s: %s", bad[i], err.text);
	}
	assert_int_equal(ebb_http_address("192.0.2.7:9750", &a, &err), 0);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(ntohl(in->sin_addr.s_addr), 0xc0000207);
	assert_int_equal(ntohs(in->sin_port), 9750);
	assert_int_equal(ebb_http_address("[::]:65535", &a, &err), 0);
	assert_int_equal(in6->sin6_family, AF_INET6);
	assert_memory_equal(&in6->sin6_addr, &in6addr_any, sizeof(in6addr_any));
	assert_int_equal(ntohs(in6->sin6_port), 65535);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get), cmocka_unit_test(test_head),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_slow_to_ask), cmocka_unit_test(test_slow_to_read),
		cmocka_unit_test(test_many), cmocka_unit_test(test_behind_all_else),
		cmocka_unit_test(test_end), cmocka_unit_test(test_address),
	};

	ebb_log_set_level(LOG_ERR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
