// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hashes: every command with what it answers, as Redis 7.0.15 does, but for the order of fields;
 * and large ones, which are removed little by little. With the whole hash and with two bits of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"

static void test_fields(void **state)
{
	(void)state;
	expect_reply(&rig, "HGET h a", "$-1\r\n");
	expect_reply(&rig, "HSET h a 1", ":1\r\n");
	expect_reply(&rig, "HSET h a 2 b 3 b 4", ":1\r\n");
	expect_reply(&rig, "HGET h a", "$1\r\n2\r\n");
	expect_reply(&rig, "HGET h b", "$1\r\n4\r\n");
	expect_reply(&rig, "HGET h c", "$-1\r\n");
	expect_reply(&rig, "HLEN h", ":2\r\n");
	expect_reply(&rig, "HMSET h c 5 d 6", "+OK\r\n");
	expect_reply(&rig, "HMGET h a x d", "*3\r\n$1\r\n2\r\n$-1\r\n$1\r\n6\r\n");
	expect_reply(&rig, "HMGET x a b", "*2\r\n$-1\r\n$-1\r\n");
	expect_reply(&rig, "HEXISTS h a", ":1\r\n");
	expect_reply(&rig, "HEXISTS h x", ":0\r\n");
	expect_reply(&rig, "HEXISTS x a", ":0\r\n");
	expect_reply(&rig, "HSTRLEN h a", ":1\r\n");
	expect_reply(&rig, "HSTRLEN h x", ":0\r\n");
	expect_reply(&rig, "HSETNX h a 9", ":0\r\n");
	expect_reply(&rig, "HSETNX h e 9", ":1\r\n");
	expect_reply(&rig, "HSETNX i e 9", ":1\r\n");
	expect_reply(&rig, "HDEL h a b x a", ":2\r\n");
	expect_reply(&rig, "HLEN h", ":3\r\n");
	expect_reply(&rig, "HDEL h c d e", ":3\r\n");
	/* The last field takes the key with it. */
	expect_reply(&rig, "EXISTS h", ":0\r\n");
	expect_reply(&rig, "HDEL h c", ":0\r\n");
	expect_reply(&rig, "DBSIZE", ":1\r\n");
	expect_reply(&rig, "HSET h a", "-ERR wrong number of arguments for 'hset' command\r\n");
	expect_reply(&rig, "HSET h a 1 b", "-ERR wrong number of arguments for 'hset' command\r\n");
	expect_reply(&rig, "HMSET h a 1 b",
		     "-ERR wrong number of arguments for 'hmset' command\r\n");
	expect_reply(&rig, "HSET h a 1 $513 2",
		     "-ERR field exceeds maximum allowed size (512 bytes)\r\n");
	expect_reply(&rig, "HSET h a 1 b $16385",
		     "-ERR string exceeds maximum allowed size (16384 bytes)\r\n");
	expect_reply(&rig, "EXISTS h", ":0\r\n");
	expect_reply(&rig, "HGET i $513", "$-1\r\n");
}

static void test_numbers(void **state)
{
	(void)state;
	expect_reply(&rig, "HINCRBY h n 5", ":5\r\n");
	expect_reply(&rig, "HINCRBY h n -7", ":-2\r\n");
	expect_reply(&rig, "HINCRBY h n x", "-ERR value is not an integer or out of range\r\n");
	expect_reply(&rig, "HSET h s abc big 9223372036854775807", ":2\r\n");
	expect_reply(&rig, "HINCRBY h s 1", "-ERR hash value is not an integer\r\n");
	expect_reply(&rig, "HINCRBY h big 1", "-ERR increment or decrement would overflow\r\n");
	expect_reply(&rig, "HINCRBYFLOAT h n 1.25", "$5\r\n-0.75\r\n");
	expect_reply(&rig, "HINCRBYFLOAT h f 3", "$1\r\n3\r\n");
	expect_reply(&rig, "HINCRBYFLOAT h s 1", "-ERR hash value is not a float\r\n");
	expect_reply(&rig, "HINCRBYFLOAT h n x", "-ERR value is not a valid float\r\n");
	expect_reply(&rig, "HINCRBY i n x", "-ERR value is not an integer or out of range\r\n");
	expect_reply(&rig, "HLEN h", ":4\r\n");
	expect_reply(&rig, "DBSIZE", ":1\r\n");
}

static void test_wrong_type(void **state)
{
	(void)state;
	const char *const lines[] = {
		"HSET s f v", "HMSET s f v", "HSETNX s f v", "HGET s f", "HMGET s f", "HGETALL s",
		"HKEYS s", "HVALS s", "HLEN s", "HDEL s f", "HEXISTS s f", "HSTRLEN s f",
		"HINCRBY s f 1", "HINCRBYFLOAT s f 1", "HSCAN s 0",
	};

	expect_reply(&rig, "SET s v", "+OK\r\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect_reply(&rig, lines[i], WRONGTYPE);
	expect_reply(&rig, "GET s", "$1\r\nv\r\n");
}

static void test_all_fields(void **state)
{
	(void)state;
	expect_reply(&rig, "HGETALL h", "*0\r\n");
	expect_reply(&rig, "HKEYS h", "*0\r\n");
	expect_reply(&rig, "HVALS h", "*0\r\n");
	expect_reply(&rig, "HSET h f v", ":1\r\n");
	expect_reply(&rig, "HGETALL h", "*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
	expect_reply(&rig, "HKEYS h", "*1\r\n$1\r\nf\r\n");
	expect_reply(&rig, "HVALS h", "*1\r\n$1\r\nv\r\n");
	expect_begins(&rig, "HELLO 3", "%7\r\n");
	expect_reply(&rig, "HGETALL h", "%1\r\n$1\r\nf\r\n$1\r\nv\r\n");
	expect_reply(&rig, "HGETALL x", "%0\r\n");
	expect_reply(&rig, "HGET x f", "_\r\n");
}

static void make_hash(const char *key, uint32_t n_fields)
{
	char line[64];

	for (uint32_t i = 0; i < n_fields; i++) {
		snprintf(line, sizeof(line), "HSET %s field%u %u", key, i, i);
		kv_rig_do(&rig, 0, line);
	}
}

static void test_large_hash_is_removed_bit_by_bit(void **state)
{
	const uint32_t n_fields = *(const uint32_t *)*state ? 300 : 2000;
	char line[64], reply[32];
	uint32_t n[4];

	make_hash("h", n_fields);
	kv_rig_count_rows(n);
	assert_int_equal(n[ROW_FIELD], n_fields);
	snprintf(reply, sizeof(reply), "*%u\r\n$", 2 * n_fields);
	expect_begins(&rig, "HGETALL h", reply);
	snprintf(reply, sizeof(reply), "*%u\r\n$", n_fields);
	expect_begins(&rig, "HKEYS h", reply);
	expect_reply(&rig, "DEL h", ":1\r\n");
	/* At once for all who look, though most rows are still there. */
	expect_reply(&rig, "HLEN h", ":0\r\n");
	expect_reply(&rig, "HGET h field1", "$-1\r\n");
	expect_reply(&rig, "HGETALL h", "*0\r\n");
	kv_rig_count_rows(n);
	assert_true(n[ROW_FIELD] > n_fields / 2);
	/* A new one of the same name has none of the old fields. */
	expect_reply(&rig, "HSET h field1 new", ":1\r\n");
	expect_reply(&rig, "HLEN h", ":1\r\n");
	expect_reply(&rig, "HGETALL h", "*2\r\n$6\r\nfield1\r\n$3\r\nnew\r\n");
	for (uint32_t i = 0; i < n_fields / 8; i++) {
		snprintf(line, sizeof(line), "GET x%u", i);
		expect_reply(&rig, line, "$-1\r\n");
	}
	kv_rig_count_rows(n);
	assert_int_equal(n[ROW_FIELD], 1);
	assert_int_equal(n[ROW_HASH], 1);
	/* Nothing is left to be done. */
	assert_int_equal(rig.kv->meta.n_dead, 0);
	if (!*(const uint32_t *)*state)
		assert_int_equal(n[ROW_GONE], 0);
}

/* A field that cannot be read from disk fails one request, not all that come. */
static void test_dead_hash_rests_after_a_failure(void **state)
{
	(void)state;
	uint32_t before[4], after[4];

	make_hash("h", 200);
	expect_reply(&rig, "DEL h", ":1\r\n");
	assert_int_equal(rig.kv->meta.n_dead, 1);
	kv_give_up(rig.sessions[0], OLTP_IO, &rig.out);
	kv_rig_count_rows(before);
	expect_reply(&rig, "GET x", "$-1\r\n");
	kv_rig_count_rows(after);
	assert_int_equal(after[ROW_FIELD], before[ROW_FIELD]);
	/* Until the next one dies. */
	make_hash("i", 200);
	expect_reply(&rig, "DEL i", ":1\r\n");
	for (uint32_t i = 0; i < 50; i++)
		expect_reply(&rig, "GET x", "$-1\r\n");
	kv_rig_count_rows(after);
	assert_int_equal(after[ROW_FIELD], 0);
}

static void test_small_hash_is_removed_at_once(void **state)
{
	uint32_t n[4];

	make_hash("h", 100);
	expect_reply(&rig, "SET h x", "+OK\r\n");
	kv_rig_count_rows(n);
	assert_int_equal(n[ROW_FIELD], 0);
	assert_int_equal(n[ROW_HASH], 0);
	assert_int_equal(n[ROW_STRING], 1);
	if (!*(const uint32_t *)*state)
		assert_int_equal(n[ROW_GONE], 0);
	expect_reply(&rig, "DBSIZE", ":1\r\n");
}

/* Two hashes and a key whose fields have the same names. */
static void test_owners_are_apart(void **state)
{
	(void)state;
	expect_reply(&rig, "HSET h1 f 1", ":1\r\n");
	expect_reply(&rig, "HSET h2 f 2", ":1\r\n");
	expect_reply(&rig, "SET f 3", "+OK\r\n");
	expect_reply(&rig, "DEL h1", ":1\r\n");
	expect_reply(&rig, "HGET h2 f", "$1\r\n2\r\n");
	expect_reply(&rig, "GET f", "$1\r\n3\r\n");
	expect_reply(&rig, "HGET h1 f", "$-1\r\n");
}

static void test_sizes(void **state)
{
	(void)state;
	const uint32_t sizes[] = { 0, 1, 71, 72, 73, 87, 88, 89, 240, 241, 512 };
	const size_t n = sizeof(sizes) / sizeof(sizes[0]);
	char line[128], reply[64];

	for (size_t key = 1; key < n; key += 3) {
		for (size_t i = 0; i < n; i++) {
			snprintf(line, sizeof(line), "HSET $%u $%u $%zu", sizes[key], sizes[i],
				 16384 - i);
			expect_reply(&rig, line, ":1\r\n");
			snprintf(line, sizeof(line), "HSET $%u $%u v%zu", sizes[key], sizes[i], i);
			expect_reply(&rig, line, ":0\r\n");
		}
		for (size_t i = 0; i < n; i++) {
			snprintf(line, sizeof(line), "HGET $%u $%u", sizes[key], sizes[i]);
			snprintf(reply, sizeof(reply), "$%u\r\nv%zu\r\n", i < 10 ? 2 : 3, i);
			expect_reply(&rig, line, reply);
		}
		snprintf(line, sizeof(line), "HLEN $%u", sizes[key]);
		assert_int_equal(kv_rig_integer(&rig, line), (int64_t)n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KV_TEST_WHOLE_AND_CUT(test_fields),
		KV_TEST_WHOLE_AND_CUT(test_numbers),
		KV_TEST_WHOLE_AND_CUT(test_wrong_type),
		KV_TEST_WHOLE_AND_CUT(test_all_fields),
		KV_TEST_WHOLE_AND_CUT(test_large_hash_is_removed_bit_by_bit),
		KV_TEST_WHOLE_AND_CUT(test_dead_hash_rests_after_a_failure),
		KV_TEST_WHOLE_AND_CUT(test_small_hash_is_removed_at_once),
		KV_TEST_WHOLE_AND_CUT(test_owners_are_apart),
		KV_TEST_WHOLE_AND_CUT(test_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
