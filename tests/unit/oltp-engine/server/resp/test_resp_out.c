// SPDX-License-Identifier: GPL-2.0-or-later
/* Replies of RESP2 and RESP3, byte by byte as the protocol's specification has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/server/resp/out.h"

static struct resp_out out;

static int set_up(void **state)
{
	(void)state;
	resp_out_init(&out, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	resp_out_finish(&out);
	return 0;
}

/* What was appended, and nothing else; begins anew. */
static void expect_bytes(const char *text, size_t n)
{
	assert_false(out.has_failed);
	assert_int_equal(out.n, n);
	assert_memory_equal(out.bytes, text, n);
	resp_out_reset(&out);
}

static void expect(const char *text)
{
	expect_bytes(text, strlen(text));
}

static void test_both_versions_have_the_same_basic_types(void **state)
{
	(void)state;
	for (uint8_t version = 2; version <= 3; version++) {
		out.version = version;
		resp_out_simple(&out, "OK");
		expect("+OK\r\n");
		resp_out_error(&out, "ERR no\r\nsuch thing");
		expect("-ERR no  such thing\r\n");
		resp_out_errorf(&out, "ERR %d of '%s'", 7, "x\ny");
		expect("-ERR 7 of 'x y'\r\n");
		resp_out_integer(&out, 0);
		expect(":0\r\n");
		resp_out_integer(&out, INT64_MAX);
		expect(":9223372036854775807\r\n");
		resp_out_integer(&out, INT64_MIN);
		expect(":-9223372036854775808\r\n");
		resp_out_bulk(&out, "a\0b\r\n", 5);
		expect_bytes("$5\r\na\0b\r\n\r\n", 11);
		resp_out_bulk(&out, NULL, 0);
		expect("$0\r\n\r\n");
		resp_out_text(&out, "0123456789ab");
		expect("$12\r\n0123456789ab\r\n");
		resp_out_array(&out, 0);
		expect("*0\r\n");
		resp_out_array(&out, 1234567);
		expect("*1234567\r\n");
	}
}

static void test_what_version_2_lacks(void **state)
{
	(void)state;
	resp_out_null(&out);
	expect("$-1\r\n");
	resp_out_null_array(&out);
	expect("*-1\r\n");
	resp_out_map(&out, 3);
	expect("*6\r\n");
	resp_out_set(&out, 3);
	expect("*3\r\n");
	resp_out_verbatim(&out, "a text", 6);
	expect("$6\r\na text\r\n");
}

static void test_version_3(void **state)
{
	(void)state;
	out.version = 3;
	resp_out_null(&out);
	resp_out_null_array(&out);
	expect("_\r\n_\r\n");
	resp_out_map(&out, 3);
	expect("%3\r\n");
	resp_out_set(&out, 3);
	expect("~3\r\n");
	resp_out_verbatim(&out, "a text", 6);
	expect("=10\r\ntxt:a text\r\n");
	/* A reset empties the buffer; the connection still speaks version 3. */
	assert_int_equal(out.version, 3);
}

static void test_head_in_front(void **state)
{
	(void)state;
	resp_out_text(&out, "before");
	size_t at = out.n;

	for (int i = 0; i < 12; i++)
		resp_out_integer(&out, i % 10);
	resp_out_array_at(&out, at, 12);
	expect("$6\r\nbefore\r\n*12\r\n:0\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n:6\r\n:7\r\n:8\r\n"
	       ":9\r\n:0\r\n:1\r\n");
	resp_out_array_at(&out, 0, 0);
	expect("*0\r\n");
	resp_out_text(&out, "ab");
	at = out.n;
	resp_out_text(&out, "cdefghij");
	resp_out_bulk_at(&out, at, "x", 1);
	resp_out_bulk_at(&out, at, NULL, 0);
	expect("$2\r\nab\r\n$0\r\n\r\n$1\r\nx\r\n$8\r\ncdefghij\r\n");
}

static void test_taken_back(void **state)
{
	(void)state;
	resp_out_simple(&out, "first");
	size_t n = out.n;

	resp_out_simple(&out, "second");
	resp_out_truncate(&out, n);
	resp_out_simple(&out, "third");
	expect("+first\r\n+third\r\n");
	/* From the middle. */
	resp_out_simple(&out, "first");
	resp_out_simple(&out, "second");
	resp_out_simple(&out, "third");
	resp_out_cut(&out, n, n);
	resp_out_cut(&out, n, n + strlen("+second\r\n"));
	expect("+first\r\n+third\r\n");
}

static void test_bound(void **state)
{
	(void)state;
	static char big[4000];

	resp_out_finish(&out);
	resp_out_init(&out, 1000);
	resp_out_simple(&out, "first");
	size_t n = out.n;

	resp_out_bulk(&out, big, sizeof(big));
	assert_true(out.has_failed);
	assert_int_equal(out.n, n);
	/* What would fit is not appended either: the reply has a hole already. */
	resp_out_simple(&out, "second");
	assert_true(out.has_failed);
	assert_int_equal(out.n, n);
	assert_null(resp_out_reserve(&out, 1));
	resp_out_truncate(&out, n);
	assert_false(out.has_failed);
	/* To the last byte. */
	assert_non_null(resp_out_reserve(&out, 1000 - n));
	resp_out_raw(&out, big, 1000 - n);
	assert_int_equal(out.n, 1000);
	assert_false(out.has_failed);
	resp_out_raw(&out, big, 1);
	assert_true(out.has_failed);
	resp_out_truncate(&out, 0);
	resp_out_bulk(&out, big, 1000 - 8);
	assert_int_equal(out.n, 1000);
	assert_false(out.has_failed);
}

static void test_growth_keeps_bytes(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++)
		resp_out_integer(&out, i);
	assert_false(out.has_failed);
	const char *at = out.bytes;

	for (int i = 0; i < 20000; i++) {
		assert_int_equal(*at++, ':');
		int value = 0;

		while (*at != '\r')
			value = value * 10 + *at++ - '0';
		assert_int_equal(value, i);
		at += 2;
	}
	assert_ptr_equal(at, out.bytes + out.n);
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_both_versions_have_the_same_basic_types),
		TEST(test_what_version_2_lacks),
		TEST(test_version_3),
		TEST(test_head_in_front),
		TEST(test_taken_back),
		TEST(test_bound),
		TEST(test_growth_keeps_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
