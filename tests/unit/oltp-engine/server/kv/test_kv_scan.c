// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Going through keys and fields, and removing them all. K5: what is there all the time is met,
 * whatever comes and goes meanwhile; with the whole hash and with two bits of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"

#define KEYS	300u

static bool seen[KEYS];

static int set_up(void **state)
{
	memset(seen, 0, sizeof(seen));
	return kv_rig_set_up(state);
}

static void make_keys(const char *format)
{
	char line[64];

	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), format, i);
		kv_rig_do(&rig, 0, line);
	}
}

static void test_all_keys_are_met(void **state)
{
	(void)state;
	const char *const options[] = { "", "COUNT 1", "COUNT 7", "COUNT 1000", "MATCH k*",
					"MATCH ?* COUNT 3", "TYPE string" };

	make_keys("SET k%u v");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		memset(seen, 0, sizeof(seen));
		assert_int_equal(kv_rig_scan_all(&rig, "SCAN", options[i], seen, KEYS), KEYS);
	}
	memset(seen, 0, sizeof(seen));
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "TYPE hash", seen, KEYS), 0);
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "TYPE list", seen, KEYS), 0);
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "MATCH k1?", seen, KEYS), 10);
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "MATCH x*", seen, KEYS), 0);
}

static void test_all_fields_are_met(void **state)
{
	(void)state;
	make_keys("HSET h k%u v");
	make_keys("HSET other x%u v");
	assert_int_equal(kv_rig_scan_all(&rig, "HSCAN h", "", seen, KEYS), KEYS);
	memset(seen, 0, sizeof(seen));
	assert_int_equal(kv_rig_scan_all(&rig, "HSCAN h", "COUNT 1", seen, KEYS), KEYS);
	memset(seen, 0, sizeof(seen));
	assert_int_equal(kv_rig_scan_all(&rig, "HSCAN other", "", seen, KEYS), 0);
	assert_int_equal(kv_rig_scan_all(&rig, "HSCAN h", "MATCH k?", seen, KEYS), 10);
	expect_reply(&rig, "HSCAN x 0", "*2\r\n$1\r\n0\r\n*0\r\n");
	expect_reply(&rig, "HSCAN x 18446744073709551615", "*2\r\n$1\r\n0\r\n*0\r\n");
}

/* The keys k are there throughout; between two calls others come, go and change. */
static void test_others_come_and_go(void **state)
{
	(void)state;
	uint64_t random = 88172645463325252ull, cursor = 0;
	uint32_t n = 0;

	make_keys("SET k%u v");
	do {
		char line[64];
		const char *at;

		for (int i = 0; i < 10; i++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			snprintf(line, sizeof(line), "%s x%u v", random % 3 ? "SET" : "HSETNX h",
				 (uint32_t)(random >> 20) % 100);
			kv_rig_do(&rig, 0, line);
			snprintf(line, sizeof(line), "DEL x%u", (uint32_t)(random >> 30) % 100);
			kv_rig_do(&rig, 0, line);
			/* One that stays: a hash instead of a string, and back. */
			snprintf(line, sizeof(line), "SET k%u %s", (uint32_t)(random >> 40) % KEYS,
				 random % 2 ? "$200" : "w");
			kv_rig_do(&rig, 0, line);
		}
		snprintf(line, sizeof(line), "SCAN %llu COUNT 5", (unsigned long long)cursor);
		kv_rig_do(&rig, 0, line);
		*resp_out_reserve(&rig.out, 1) = '\0';
		at = strstr(rig.out.bytes + 5, "\r\n");
		cursor = strtoull(at + 2, NULL, 10);
		while ((at = strstr(at, "\r\nk"))) {
			at += 3;
			n += !seen[atoi(at)];
			seen[atoi(at)] = true;
		}
	} while (cursor);
	assert_int_equal(n, KEYS);
}

static void test_refused(void **state)
{
	(void)state;
	expect_reply(&rig, "SCAN x", "-ERR invalid cursor\r\n");
	expect_reply(&rig, "SCAN 99999999999999999999", "-ERR invalid cursor\r\n");
	expect_reply(&rig, "SCAN 0 COUNT 0", "-ERR syntax error\r\n");
	expect_reply(&rig, "SCAN 0 COUNT", "-ERR syntax error\r\n");
	expect_reply(&rig, "SCAN 0 COUNT x", "-ERR value is not an integer or out of range\r\n");
	expect_reply(&rig, "SCAN 0 FOO 1", "-ERR syntax error\r\n");
	expect_begins(&rig, "SCAN 0 MATCH $1025", "-ERR pattern exceeds");
	expect_begins(&rig, "KEYS $1025", "-ERR pattern exceeds");
	expect_reply(&rig, "HSET h f v", ":1\r\n");
	expect_reply(&rig, "HSCAN h 0 TYPE hash", "-ERR syntax error\r\n");
	expect_reply(&rig, "HSCAN h x", "-ERR invalid cursor\r\n");
}

static void test_keys_and_randomkey(void **state)
{
	(void)state;
	expect_reply(&rig, "RANDOMKEY", "$-1\r\n");
	expect_reply(&rig, "KEYS *", "*0\r\n");
	expect_reply(&rig, "SET key1 v", "+OK\r\n");
	expect_reply(&rig, "KEYS *", "*1\r\n$4\r\nkey1\r\n");
	expect_reply(&rig, "RANDOMKEY", "$4\r\nkey1\r\n");
	expect_reply(&rig, "HSET h a 1 b 2", ":2\r\n");
	expect_reply(&rig, "KEYS key*", "*1\r\n$4\r\nkey1\r\n");
	expect_reply(&rig, "KEYS [a-h]", "*1\r\n$1\r\nh\r\n");
	expect_begins(&rig, "KEYS *", "*2\r\n");
}

static void test_flush(void **state)
{
	char line[64];

	expect_reply(&rig, "FLUSHALL", "+OK\r\n");
	make_keys("SET k%u v");
	make_keys("HSET h k%u v");
	expect_reply(&rig, "HSET small f v", ":1\r\n");
	assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), KEYS + 2);
	expect_reply(&rig, "FLUSHALL", "+OK\r\n");
	assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), 0);
	assert_int_equal(kv_rig_scan_all(&rig, "SCAN", "", seen, KEYS), 0);
	expect_reply(&rig, "HLEN h", ":0\r\n");
	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "GET k%u", i);
		expect_reply(&rig, line, "$-1\r\n");
	}
	expect_reply(&rig, "SET a 1", "+OK\r\n");
	expect_reply(&rig, "FLUSHDB ASYNC", "+OK\r\n");
	expect_reply(&rig, "FLUSHDB FOO", "-ERR syntax error\r\n");
	assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), 0);
	/* In parts: an attempt answers nothing as long as there is more. */
	make_keys("SET k%u v");
	assert_int_equal(kv_rig_try_line(&rig, 0, "FLUSHALL", false), OLTP_OK);
	if (!*(const uint32_t *)*state)
		assert_int_equal(rig.after, KV_AGAIN);
	assert_int_equal(rig.out.n, rig.after == KV_AGAIN ? 0 : 5);
}

int main(void)
{
#define TEST(name) \
	{ #name, name, set_up, kv_rig_tear_down, (void *)(uintptr_t)&kv_rig_whole }, \
	{ #name " (2 bits of hash)", name, set_up, kv_rig_tear_down, \
	  (void *)(uintptr_t)&kv_rig_cut }
	const struct CMUnitTest tests[] = {
		TEST(test_all_keys_are_met),
		TEST(test_all_fields_are_met),
		TEST(test_others_come_and_go),
		TEST(test_refused),
		TEST(test_keys_and_randomkey),
		TEST(test_flush),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
