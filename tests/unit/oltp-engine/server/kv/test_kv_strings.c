// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Strings and numbers: every command with what it answers, as Redis 7.0.15 does. Each test runs
 * with the whole hash, and with one cut to two bits, so that every key collides with others (K4).
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

static void test_get_and_set(void **state)
{
	(void)state;
	expect_reply(&rig, "GET a", "$-1\r\n");
	expect_reply(&rig, "SET a 1", "+OK\r\n");
	expect_reply(&rig, "get a", "$1\r\n1\r\n");
	expect_reply(&rig, "SET a 22", "+OK\r\n");
	expect_reply(&rig, "Get a", "$2\r\n22\r\n");
	expect_reply(&rig, "SET b \"\"", "+OK\r\n");
	expect_reply(&rig, "GET b", "$0\r\n\r\n");
	expect_reply(&rig, "SET \"\" x", "+OK\r\n");
	expect_reply(&rig, "GET \"\"", "$1\r\nx\r\n");
	expect_reply(&rig, "EXISTS a b c \"\" a", ":4\r\n");
	expect_reply(&rig, "DBSIZE", ":3\r\n");
	expect_reply(&rig, "DEL a c a", ":1\r\n");
	expect_reply(&rig, "GET a", "$-1\r\n");
	expect_reply(&rig, "UNLINK b \"\"", ":2\r\n");
	expect_reply(&rig, "DBSIZE", ":0\r\n");
	expect_reply(&rig, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
	expect_reply(&rig, "GET a b", "-ERR wrong number of arguments for 'get' command\r\n");
}

static void test_options_of_set(void **state)
{
	(void)state;
	expect_reply(&rig, "SET a 1 XX", "$-1\r\n");
	expect_reply(&rig, "SET a 1 NX", "+OK\r\n");
	expect_reply(&rig, "SET a 2 nx", "$-1\r\n");
	expect_reply(&rig, "SET a 3 xx", "+OK\r\n");
	expect_reply(&rig, "SET a 4 GET", "$1\r\n3\r\n");
	expect_reply(&rig, "SET b 4 GET", "$-1\r\n");
	expect_reply(&rig, "SET b 5 NX GET", "$1\r\n4\r\n");
	expect_reply(&rig, "GET b", "$1\r\n4\r\n");
	expect_reply(&rig, "SET c 5 XX GET", "$-1\r\n");
	expect_reply(&rig, "EXISTS c", ":0\r\n");
	expect_reply(&rig, "SET a 1 NX XX", "-ERR syntax error\r\n");
	expect_reply(&rig, "SET a 1 KEEPTTL", "-ERR syntax error\r\n");
	expect_reply(&rig, "SET a 1 EX", "-ERR syntax error\r\n");
	expect_begins(&rig, "SET a 1 EX 10", "-ERR keys do not expire");
	expect_reply(&rig, "GET a", "$1\r\n4\r\n");
	expect_reply(&rig, "SETNX a 5", ":0\r\n");
	expect_reply(&rig, "SETNX d 5", ":1\r\n");
	expect_reply(&rig, "GETSET d 6", "$1\r\n5\r\n");
	expect_reply(&rig, "GETSET e 7", "$-1\r\n");
	expect_reply(&rig, "GETDEL d", "$1\r\n6\r\n");
	expect_reply(&rig, "GETDEL d", "$-1\r\n");
	expect_reply(&rig, "DBSIZE", ":3\r\n");
}

static void test_many_at_once(void **state)
{
	(void)state;
	expect_reply(&rig, "MSET a 1 b 2 c 3 a 4", "+OK\r\n");
	expect_reply(&rig, "MGET a b x c", "*4\r\n$1\r\n4\r\n$1\r\n2\r\n$-1\r\n$1\r\n3\r\n");
	expect_reply(&rig, "MSETNX d 1 a 2", ":0\r\n");
	expect_reply(&rig, "EXISTS d", ":0\r\n");
	expect_reply(&rig, "MSETNX d 1 e 2 d 3", ":1\r\n");
	expect_reply(&rig, "MGET d e", "*2\r\n$1\r\n3\r\n$1\r\n2\r\n");
	expect_reply(&rig, "MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n");
	expect_reply(&rig, "MSETNX a 1 b",
		     "-ERR wrong number of arguments for 'msetnx' command\r\n");
	expect_reply(&rig, "HSET h f v", ":1\r\n");
	expect_reply(&rig, "MGET h a", "*2\r\n$-1\r\n$1\r\n4\r\n");
	expect_reply(&rig, "DBSIZE", ":6\r\n");
}

static void test_parts(void **state)
{
	(void)state;
	expect_reply(&rig, "APPEND a Hello", ":5\r\n");
	expect_reply(&rig, "APPEND a World", ":10\r\n");
	expect_reply(&rig, "APPEND a \"\"", ":10\r\n");
	expect_reply(&rig, "STRLEN a", ":10\r\n");
	expect_reply(&rig, "STRLEN b", ":0\r\n");
	expect_reply(&rig, "GETRANGE a 0 3", "$4\r\nHell\r\n");
	expect_reply(&rig, "GETRANGE a -3 -1", "$3\r\nrld\r\n");
	expect_reply(&rig, "GETRANGE a 0 -1", "$10\r\nHelloWorld\r\n");
	expect_reply(&rig, "GETRANGE a 5 100", "$5\r\nWorld\r\n");
	expect_reply(&rig, "GETRANGE a 5 2", "$0\r\n\r\n");
	expect_reply(&rig, "GETRANGE a 10 20", "$0\r\n\r\n");
	expect_reply(&rig, "GETRANGE a -100 -8", "$3\r\nHel\r\n");
	expect_reply(&rig, "GETRANGE a -1 -100", "$0\r\n\r\n");
	expect_reply(&rig, "GETRANGE b 0 -1", "$0\r\n\r\n");
	expect_reply(&rig, "SUBSTR a 0 0", "$1\r\nH\r\n");
	expect_reply(&rig, "GETRANGE a x 1", "-ERR value is not an integer or out of range\r\n");
	expect_reply(&rig, "SETRANGE a 5 Redis", ":10\r\n");
	expect_reply(&rig, "GET a", "$10\r\nHelloRedis\r\n");
	expect_reply(&rig, "SETRANGE b 2 x", ":3\r\n");
	assert_int_equal(kv_rig_integer(&rig, "STRLEN b"), 3);
	kv_rig_do(&rig, 0, "GET b");
	assert_memory_equal(rig.out.bytes, "$3\r\n\0\0x\r\n", 9);
	expect_reply(&rig, "SETRANGE c 5 \"\"", ":0\r\n");
	expect_reply(&rig, "EXISTS c", ":0\r\n");
	expect_reply(&rig, "SETRANGE a -1 x", "-ERR offset is out of range\r\n");
	expect_reply(&rig, "SETRANGE a 16384 x",
		     "-ERR string exceeds maximum allowed size (16384 bytes)\r\n");
	expect_reply(&rig, "SETRANGE a 16383 x", ":16384\r\n");
	kv_rig_do(&rig, 0, "GETRANGE a 16382 16383");
	assert_memory_equal(rig.out.bytes, "$2\r\n\0x\r\n", 8);
}

static void test_numbers(void **state)
{
	(void)state;
	expect_reply(&rig, "INCR n", ":1\r\n");
	expect_reply(&rig, "INCRBY n 41", ":42\r\n");
	expect_reply(&rig, "DECR n", ":41\r\n");
	expect_reply(&rig, "DECRBY n 50", ":-9\r\n");
	expect_reply(&rig, "GET n", "$2\r\n-9\r\n");
	expect_reply(&rig, "SET n 9223372036854775806", "+OK\r\n");
	expect_reply(&rig, "INCR n", ":9223372036854775807\r\n");
	expect_reply(&rig, "INCR n", "-ERR increment or decrement would overflow\r\n");
	expect_reply(&rig, "GET n", "$19\r\n9223372036854775807\r\n");
	expect_reply(&rig, "SET n -9223372036854775808", "+OK\r\n");
	expect_reply(&rig, "DECR n", "-ERR increment or decrement would overflow\r\n");
	expect_reply(&rig, "DECRBY n -9223372036854775808", "-ERR decrement would overflow\r\n");
	expect_reply(&rig, "INCRBY n 9223372036854775808",
		     "-ERR value is not an integer or out of range\r\n");
	const char *const bad[] = { "x", "1x", "01", "+1", "-0", "--1", "1.0", "\"\"" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char line[64];

		snprintf(line, sizeof(line), "SET s %s", bad[i]);
		expect_reply(&rig, line, "+OK\r\n");
		expect_reply(&rig, "INCR s", "-ERR value is not an integer or out of range\r\n");
		snprintf(line, sizeof(line), "INCRBY n %s", bad[i]);
		expect_reply(&rig, line, "-ERR value is not an integer or out of range\r\n");
	}
	expect_reply(&rig, "INCRBYFLOAT f 10.5", "$4\r\n10.5\r\n");
	expect_reply(&rig, "INCRBYFLOAT f 0.1", "$4\r\n10.6\r\n");
	expect_reply(&rig, "INCRBYFLOAT f -5", "$3\r\n5.6\r\n");
	expect_reply(&rig, "SET f 5.0e3", "+OK\r\n");
	expect_reply(&rig, "INCRBYFLOAT f 2.0e2", "$4\r\n5200\r\n");
	expect_reply(&rig, "INCRBYFLOAT f x", "-ERR value is not a valid float\r\n");
	expect_reply(&rig, "INCRBYFLOAT s 1", "-ERR value is not a valid float\r\n");
	expect_reply(&rig, "INCRBYFLOAT f inf",
		     "-ERR increment would produce NaN or Infinity\r\n");
	expect_reply(&rig, "INCRBYFLOAT g 0", "$1\r\n0\r\n");
}

static void test_wrong_type(void **state)
{
	(void)state;
	const char *const lines[] = {
		"GET h", "GETSET h 1", "GETDEL h", "APPEND h 1", "STRLEN h", "GETRANGE h 0 1",
		"SETRANGE h 0 x", "INCR h", "DECR h", "INCRBY h 1", "INCRBYFLOAT h 1",
		"SET h 1 GET",
	};

	expect_reply(&rig, "HSET h f v", ":1\r\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect_reply(&rig, lines[i], WRONGTYPE);
	expect_reply(&rig, "HGET h f", "$1\r\nv\r\n");
	expect_reply(&rig, "TYPE h", "+hash\r\n");
	/* SET replaces whatever was there. */
	expect_reply(&rig, "SET h 1", "+OK\r\n");
	expect_reply(&rig, "TYPE h", "+string\r\n");
	expect_reply(&rig, "TYPE x", "+none\r\n");
	expect_reply(&rig, "HGET h f", WRONGTYPE);
	expect_reply(&rig, "DBSIZE", ":1\r\n");
	expect_reply(&rig, "DEL h", ":1\r\n");
	expect_reply(&rig, "HLEN h", ":0\r\n");
}

/* Every size of a name with every size of a value that lies at a bound of some class. */
static void test_sizes(void **state)
{
	(void)state;
	const uint32_t names[] = { 1, 71, 72, 73, 87, 88, 89, 239, 240, 241, 511, 512 };
	const uint32_t values[] = { 0, 1, 15, 87, 88, 151, 152, 239, 240, 241, 496, 497, 1008, 1009,
				    2032, 2033, 4080, 4081, 8176, 8177, 16000, 16383, 16384 };
	const size_t n_names = sizeof(names) / sizeof(names[0]);
	const size_t n_values = sizeof(values) / sizeof(values[0]);
	char line[128], reply[64];

	for (size_t i = 0; i < n_names; i++) {
		for (size_t k = 0; k < n_values; k++) {
			/* From the last one to this one, and from this one to a small one. */
			for (int again = 0; again < 2; again++) {
				snprintf(line, sizeof(line), "SET $%u $%u", names[i], values[k]);
				expect_reply(&rig, line, "+OK\r\n");
				snprintf(line, sizeof(line), "GET $%u", names[i]);
				kv_rig_do(&rig, 0, line);
				snprintf(reply, sizeof(reply), "$%u\r\n", values[k]);
				assert_memory_equal(rig.out.bytes, reply, strlen(reply));
				assert_int_equal(rig.out.n, strlen(reply) + values[k] + 2);
				char number[16];
				uint32_t digits = (uint32_t)snprintf(number, sizeof(number), "%u,",
								     values[k]);

				for (uint32_t b = 0; b < values[k]; b++)
					assert_int_equal(rig.out.bytes[strlen(reply) + b],
							 number[b % digits]);
				snprintf(line, sizeof(line), "SET $%u 12", names[i]);
				expect_reply(&rig, line, "+OK\r\n");
				snprintf(line, sizeof(line), "APPEND $%u 3", names[i]);
				expect_reply(&rig, line, ":3\r\n");
			}
		}
		snprintf(line, sizeof(line), "GET $%u", names[i]);
		expect_reply(&rig, line, "$3\r\n123\r\n");
	}
	assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), (int64_t)n_names);
	for (size_t i = 0; i < n_names; i += 2) {
		snprintf(line, sizeof(line), "DEL $%u", names[i]);
		expect_reply(&rig, line, ":1\r\n");
	}
	for (size_t i = 0; i < n_names; i++) {
		snprintf(line, sizeof(line), "GET $%u", names[i]);
		expect_reply(&rig, line, i % 2 ? "$3\r\n123\r\n" : "$-1\r\n");
	}
	expect_reply(&rig, "SET $513 x", "-ERR key exceeds maximum allowed size (512 bytes)\r\n");
	expect_reply(&rig, "GET $513", "-ERR key exceeds maximum allowed size (512 bytes)\r\n");
	expect_reply(&rig, "MSET a b $513 x",
		     "-ERR key exceeds maximum allowed size (512 bytes)\r\n");
	expect_reply(&rig, "SET a $16385",
		     "-ERR string exceeds maximum allowed size (16384 bytes)\r\n");
	expect_reply(&rig, "MSET a 1 b $16385",
		     "-ERR string exceeds maximum allowed size (16384 bytes)\r\n");
	expect_reply(&rig, "EXISTS a b", ":0\r\n");
	expect_reply(&rig, "SET a $16384", "+OK\r\n");
	expect_reply(&rig, "APPEND a x",
		     "-ERR string exceeds maximum allowed size (16384 bytes)\r\n");
	assert_int_equal(kv_rig_integer(&rig, "STRLEN a"), 16384);
}

/* A reply that cannot be shown: the command has had no effect, and the next one is answered. */
static void test_reply_without_room(void **state)
{
	(void)state;
	const struct resp_arg getset[] = { { "GETSET", 6 }, { "a", 1 }, { "x", 1 } };
	struct resp_out small;
	enum kv_after after;
	uint64_t epoch;

	expect_reply(&rig, "SET a $2000", "+OK\r\n");
	resp_out_init(&small, 1000);
	resp_out_simple(&small, "first");
	assert_int_equal(kv_run(rig.sessions[0], rig.workers[0], getset, 3, false, &small, &epoch,
				&after), OLTP_OK);
	assert_false(small.has_failed);
	assert_memory_equal(small.bytes, "+first\r\n-ERR the reply is too large", 34);
	expect_reply(&rig, "STRLEN a", ":2000\r\n");
	resp_out_finish(&small);
	/* Not even for that. */
	resp_out_init(&small, 20);
	assert_int_equal(kv_run(rig.sessions[0], rig.workers[0], getset, 3, false, &small, &epoch,
				&after), OLTP_OK);
	assert_true(small.has_failed);
	expect_reply(&rig, "STRLEN a", ":2000\r\n");
	resp_out_finish(&small);
}

/* Against a model, for long: keys are made, changed and removed in any order. */
static void test_as_a_model(void **state)
{
	(void)state;
	enum { KEYS = 40 };
	static char values[KEYS][64];
	bool is_there[KEYS] = { false };
	uint64_t random = 88172645463325252ull;
	int64_t n = 0;

	for (uint32_t i = 0; i < 6000; i++) {
		uint32_t key;
		char line[192], reply[128];

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		key = (uint32_t)(random >> 8) % KEYS;
		switch (random % 4) {
		case 0:
			snprintf(line, sizeof(line), "DEL key:%u", key);
			expect_reply(&rig, line, is_there[key] ? ":1\r\n" : ":0\r\n");
			n -= is_there[key];
			is_there[key] = false;
			break;
		case 1:
			n += !is_there[key];
			is_there[key] = true;
			snprintf(values[key], sizeof(values[key]), "%u", i);
			snprintf(line, sizeof(line), "SET key:%u %u", key, i);
			expect_reply(&rig, line, "+OK\r\n");
			break;
		default:
			snprintf(line, sizeof(line), "GET key:%u", key);
			snprintf(reply, sizeof(reply), "$%zu\r\n%.63s\r\n", strlen(values[key]),
				 values[key]);
			expect_reply(&rig, line, is_there[key] ? reply : "$-1\r\n");
			break;
		}
		assert_int_equal(kv_rig_integer(&rig, "DBSIZE"), n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST_WHOLE_AND_CUT(test_get_and_set),
		KV_TEST_WHOLE_AND_CUT(test_options_of_set),
		KV_TEST_WHOLE_AND_CUT(test_many_at_once),
		KV_TEST_WHOLE_AND_CUT(test_parts),
		KV_TEST_WHOLE_AND_CUT(test_numbers),
		KV_TEST_WHOLE_AND_CUT(test_wrong_type),
		KV_TEST_WHOLE_AND_CUT(test_sizes),
		KV_TEST_WHOLE_AND_CUT(test_reply_without_room),
		KV_TEST_WHOLE_AND_CUT(test_as_a_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
