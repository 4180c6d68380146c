// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests of RESP: whatever the pieces in which they come, the result is the same. Each case is
 * parsed in one piece, cut in two at every byte, and byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/server/resp/parse.h"

static const struct resp_limits limits = {
	.args_max = 16, .bulk_bytes_max = 64, .request_bytes_max = 256,
};

/* Results as text: "GET|key;" for a request, "" for none, "!text" for an error. */
struct outcome {
	char text[4096];
	size_t n;
};

static void put(struct outcome *o, const char *bytes, size_t n)
{
	assert_true(o->n + n < sizeof(o->text));
	memcpy(o->text + o->n, bytes, n);
	o->n += n;
	o->text[o->n] = '\0';
}

static void put_request(struct outcome *o, const struct resp_parser *p)
{
	for (uint32_t i = 0; i < p->n_args; i++) {
		put(o, p->args[i].bytes, p->args[i].n);
		put(o, i + 1 < p->n_args ? "|" : "", i + 1 < p->n_args);
	}
	put(o, ";", 1);
}

/*
 * Parses bytes [*from, n) as a connection does; each time in memory of its own that is just as
 * large, so that a read beyond it is found by the address sanitizer.
 */
static enum resp_result feed(struct resp_parser *p, const char *all, size_t n, size_t *from,
			     struct outcome *o)
{
	for (;;) {
		size_t there = n - *from, used;
		char *copy = malloc(there ? there : 1);
		enum resp_result result;

		assert_non_null(copy);
		memcpy(copy, all + *from, there);
		result = resp_parse(p, copy, there, &used);
		if (result == RESP_REQUEST) {
			assert_true(used > 0 && used <= there);
			put_request(o, p);
		} else {
			assert_int_equal(used, 0);
		}
		free(copy);
		if (result != RESP_REQUEST)
			return result;
		*from += used;
	}
}

static void end(struct resp_parser *p, enum resp_result result, struct outcome *o)
{
	size_t used;

	if (result == RESP_ERROR) {
		put(o, "!", 1);
		put(o, p->error, strlen(p->error));
		assert_int_equal(resp_parse(p, "PING\r\n", 6, &used), RESP_ERROR);
	}
	resp_parser_finish(p);
}

static void expect_split(const char *bytes, size_t n, size_t first, size_t piece,
			 const char *expected)
{
	enum resp_result result = RESP_MORE;
	struct outcome o = { .n = 0 };
	struct resp_parser p;
	size_t from = 0;

	resp_parser_init(&p, &limits);
	for (size_t there = first; result == RESP_MORE; there += piece) {
		there = there < n ? there : n;
		result = feed(&p, bytes, there, &from, &o);
		if (there == n)
			break;
	}
	end(&p, result, &o);
	assert_string_equal(o.text, expected);
}

static void expect_bytes(const char *bytes, size_t n, const char *expected)
{
	for (size_t first = 0; first <= n; first++)
		expect_split(bytes, n, first, n, expected);
	expect_split(bytes, n, 1, 1, expected);
}

static void expect(const char *text, const char *expected)
{
	expect_bytes(text, strlen(text), expected);
}

static void test_arrays(void **state)
{
	(void)state;
	expect("*1\r\n$4\r\nPING\r\n", "PING;");
	expect("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n", "GET|key;");
	expect("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\n\r\n\r\n", "SET||\r\n;");
	expect("*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n*1\r\n$4\r\nPING\r\n", "GET|key;PING;");
	/* Nothing to answer. */
	expect("*0\r\n", ";");
	expect("*-1\r\n*1\r\n$1\r\na\r\n", ";a;");
	/* Bytes of any value. */
	expect_bytes("*1\r\n$3\r\n\xff\x01*\r\n", 13, "\xff\x01*;");
	/* Not complete. */
	expect("*2\r\n$3\r\nGET\r\n$3\r\nke", "");
	expect("", "");
}

static void test_inline(void **state)
{
	(void)state;
	expect("PING\r\n", "PING;");
	expect("PING\n", "PING;");
	expect("  set  a\tb \r\n", "set|a|b;");
	expect("\r\n\r\nPING\r\n", ";;PING;");
	expect("   \r\n", ";");
	expect("set a \"b c\\n\\x41\\\"\\q\"\r\n", "set|a|b c\nA\"q;");
	expect("set a 'b \\' \\n'\r\n", "set|a|b ' \\n;");
	expect("set \"\" x\"y\"\r\n", "set||xy;");
	expect("set a \"\\xZZ\\x4\"\r\n", "set|a|xZZx4;");
	expect("PING\r\n*1\r\n$4\r\nPING\r\nPING\r\n", "PING;PING;PING;");
	expect("set a \"b\r\n", "!ERR Protocol error: unbalanced quotes in request");
	expect("set a \"b\\\r\n", "!ERR Protocol error: unbalanced quotes in request");
	expect("set a \"b\"c\r\n", "!ERR Protocol error: unbalanced quotes in request");
	expect("set a 'b\r\n", "!ERR Protocol error: unbalanced quotes in request");
	expect("a b c d e f g h i j k l m n o p q\r\n", "!ERR Protocol error: too many arguments");
	expect("POST / HTTP/1.1\r\n", "!ERR Protocol error: this is no HTTP server");
	expect("x y\r\nHost: a\r\n", "x|y;!ERR Protocol error: this is no HTTP server");
}

static void test_errors_of_arrays(void **state)
{
	static const char count[] = "!ERR Protocol error: invalid multibulk length";
	static const char length[] = "!ERR Protocol error: invalid bulk length";
	static const char crlf[] = "!ERR Protocol error: expected CRLF behind a bulk string";

	(void)state;
	expect("*\r\n", count);
	expect("*a\r\n", count);
	expect("*+1\r\n", count);
	expect("*01\r\n", count);
	expect("*-0\r\n", count);
	expect("*-\r\n", count);
	expect("* 1\r\n", count);
	expect("*1\n", count);
	expect("*17\r\n", count);
	expect("*18446744073709551617\r\n", count);
	expect("*1\r\n$-1\r\n", length);
	expect("*1\r\n$\r\n", length);
	expect("*1\r\n$1x\r\n", length);
	expect("*1\r\n$1\n", length);
	expect("*1\r\n$65\r\n", length);
	expect("*1\r\n$4294967297\r\n", length);
	expect("*1\r\nPING\r\n", "!ERR Protocol error: expected '$', got 'P'");
	expect("*1\r\n\r\n", "!ERR Protocol error: expected '$', got '?'");
	expect("*2\r\n$1\r\na\r\n*1\r\n", "!ERR Protocol error: expected '$', got '*'");
	expect("*1\r\n$1\r\nabc", crlf);
	expect("*1\r\n$1\r\na\rc", crlf);
	/* What came before is answered. */
	expect("PING\r\n*1\r\n$1\r\nabc", "PING;!ERR Protocol error: expected CRLF behind a bulk "
	       "string");
}

static void test_whole_requests_have_a_limit(void **state)
{
	static const char bulk[] = "$64\r\n0123456789abcdef0123456789abcdef0123456789abcdef01234567"
				   "89abcdef\r\n";
	char text[512] = "*4\r\n";
	char line[300];

	(void)state;
	for (int i = 0; i < 4; i++)
		strcat(text, bulk);
	expect(text, "!ERR Protocol error: too big request");
	/* Of three there is one; the fourth is another request. */
	memcpy(text, "*3\r\n", 4);
	text[4 + 3 * (sizeof(bulk) - 1)] = '\0';
	strcat(text, "PING\r\n");
	for (size_t first = 0; first <= strlen(text); first++) {
		struct outcome o = { .n = 0 };
		struct resp_parser p;
		size_t from = 0;

		resp_parser_init(&p, &limits);
		assert_int_equal(feed(&p, text, first, &from, &o), RESP_MORE);
		assert_int_equal(feed(&p, text, strlen(text), &from, &o), RESP_MORE);
		assert_int_equal(from, strlen(text));
		assert_string_equal(o.text + o.n - 5, "PING;");
		resp_parser_finish(&p);
	}
	memset(line, 'x', sizeof(line));
	expect_bytes(line, sizeof(line), "!ERR Protocol error: too big request");
}

/* With limits like those of a server. */
static void expect_too_long(const char *start, const char *expected)
{
	const struct resp_limits wide = { .args_max = 1u << 20, .bulk_bytes_max = 1u << 20,
					  .request_bytes_max = 1u << 24 };
	const size_t n = RESP_INLINE_MAX + 16;
	char *text = malloc(n);
	struct resp_parser p;
	size_t used;

	assert_non_null(text);
	memset(text, '1', n);
	memcpy(text, start, strlen(start));
	resp_parser_init(&p, &wide);
	assert_int_equal(resp_parse(&p, text, RESP_INLINE_MAX / 2, &used), RESP_MORE);
	assert_int_equal(resp_parse(&p, text, n, &used), RESP_ERROR);
	assert_string_equal(p.error, expected);
	resp_parser_finish(&p);
	/* The same if its end comes with it. */
	text[n - 1] = '\n';
	resp_parser_init(&p, &wide);
	assert_int_equal(resp_parse(&p, text, n, &used), RESP_ERROR);
	assert_string_equal(p.error, expected);
	resp_parser_finish(&p);
	free(text);
}

static void test_lines_have_a_limit(void **state)
{
	(void)state;
	expect_too_long("x", "ERR Protocol error: too big inline request");
	expect_too_long("*1", "ERR Protocol error: too big mbulk count string");
	expect_too_long("*1\r\n$1", "ERR Protocol error: too big bulk count string");
}

/* A request may announce a million arguments; memory comes with those that are there. */
static void test_memory_follows_what_has_come(void **state)
{
	const struct resp_limits wide = { .args_max = 1u << 20, .bulk_bytes_max = 1u << 20,
					  .request_bytes_max = 1u << 24 };
	static const char start[] = "*1048576\r\n$1\r\na\r\n";
	struct resp_parser p;
	char *text;
	size_t used, n = 0;

	(void)state;
	resp_parser_init(&p, &wide);
	assert_int_equal(resp_parse(&p, start, sizeof(start) - 1, &used), RESP_MORE);
	assert_true(p.room <= 8);
	resp_parser_finish(&p);
	/* And goes with the request. */
	text = malloc(16384);
	assert_non_null(text);
	n = (size_t)sprintf(text, "*1000\r\n");
	for (int i = 0; i < 1000; i++)
		n += (size_t)sprintf(text + n, "$1\r\n%d\r\n", i % 10);
	resp_parser_init(&p, &wide);
	assert_int_equal(resp_parse(&p, text, n, &used), RESP_REQUEST);
	assert_int_equal(p.n_args, 1000);
	assert_int_equal(*p.args[999].bytes, '9');
	assert_int_equal(resp_parse(&p, "PING\r\n", 6, &used), RESP_REQUEST);
	assert_true(p.n_args == 1 && p.room <= 8);
	resp_parser_finish(&p);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_errors_of_arrays),
		cmocka_unit_test(test_whole_requests_have_a_limit),
		cmocka_unit_test(test_lines_have_a_limit),
		cmocka_unit_test(test_memory_follows_what_has_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
