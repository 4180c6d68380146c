// SPDX-License-Identifier: GPL-2.0-or-later
/* Units of a keyspace go from node to node while commands run on both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_pairs.h"

#define BITS		4u
#define KEYS		200u
#define LARGE_BYTES	7000000u	/* of large_fill, at least */

static void fill(struct move_client *client)
{
	char line[128];

	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "SET s%u v%u", i, i);
		move_client_expect(client, line, "+OK\r\n");
		snprintf(line, sizeof(line), "SET long%u $%u", i, 100 + i * 40);
		move_client_expect(client, line, "+OK\r\n");
		snprintf(line, sizeof(line), "HSET h%u a %u $300 $2000", i, i);
		move_client_expect(client, line, ":2\r\n");
	}
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(line, sizeof(line), "HSET big f%u %u", i, i);
		move_client_expect(client, line, ":1\r\n");
	}
}

static void expect_all(struct move_client *client)
{
	char line[128], reply[128];

	for (uint32_t i = 0; i < KEYS; i++) {
		snprintf(line, sizeof(line), "GET s%u", i);
		snprintf(reply, sizeof(reply), "$%d\r\nv%u\r\n",
			 snprintf(NULL, 0, "v%u", i), i);
		move_client_expect(client, line, reply);
		snprintf(line, sizeof(line), "STRLEN long%u", i);
		assert_int_equal(move_client_integer(client, line), 100 + i * 40);
		snprintf(line, sizeof(line), "HGET h%u a", i);
		assert_int_equal(move_client_integer(client, line), i);
		snprintf(line, sizeof(line), "HSTRLEN h%u $300", i);
		assert_int_equal(move_client_integer(client, line), 2000);
	}
	assert_int_equal(move_client_integer(client, "HLEN big"), 1000);
	assert_int_equal(move_client_integer(client, "HGET big f777"), 777);
}

static void open_both(struct move_rig *rig)
{
	move_rig_init(rig, BITS);
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	move_rig_connect(rig);
}

static void finish(struct move_rig *rig)
{
	struct move_stats stats;

	move_leave(rig->nodes[0].move, false);
	move_rig_wait_mode(rig, 0, UNITS_ENDED);
	move_rig_wait_mode(rig, 1, UNITS_ALONE);
	move_stats_read(rig->nodes[1].move, &stats);
	assert_int_equal(stats.owned, 1u << BITS);
	move_stats_read(rig->nodes[0].move, &stats);
	assert_true(stats.is_over);
	assert_int_equal(stats.owned, 0);
	assert_int_equal(stats.error, 0);
}

/* What a node gives is at the other as it was, of each kind of key. */
static void test_all_kinds(void **state)
{
	struct move_client a, b;
	struct move_rig rig;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	move_client_expect(&a, "DBSIZE", ":601\r\n");
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	expect_all(&b);
	expect_all(&a);
	move_client_expect(&b, "INCR n", ":1\r\n");
	move_client_expect(&a, "INCR n", ":2\r\n");
	move_client_expect(&b, "DEL n", ":1\r\n");
	finish(&rig);
	expect_all(&b);
	move_client_expect(&b, "DBSIZE", ":601\r\n");
	assert_true(move_client_do(&a, "GET s1"));
	assert_memory_equal(a.out.bytes, "-TRYAGAIN", 9);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* SCAN meets all keys, wherever they are; what needs all at once says that it cannot. */
static void test_all_keys(void **state)
{
	struct move_client a, b;
	uint32_t n = 0, calls = 0;
	unsigned long long cursor = 0;
	struct move_rig rig;
	char line[64];

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(line, sizeof(line), "SET k%u 1", i);
		move_client_expect(&a, line, "+OK\r\n");
	}
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t i = 0; i < 300; i += 7) {
		snprintf(line, sizeof(line), "INCR k%u", i);
		move_client_expect(&b, line, ":2\r\n");
	}
	assert_true(move_client_do(&a, "DBSIZE"));
	assert_memory_equal(a.out.bytes, "-TRYAGAIN", 9);
	assert_true(move_client_do(&b, "KEYS *"));
	assert_memory_equal(b.out.bytes, "-TRYAGAIN", 9);
	assert_true(move_client_do(&b, "RANDOMKEY"));
	assert_memory_equal(b.out.bytes, "-TRYAGAIN", 9);
	do {
		char *at;

		snprintf(line, sizeof(line), "SCAN %llu COUNT 20", cursor);
		assert_true(move_client_do(calls++ % 2 ? &a : &b, line));
		at = (calls % 2 ? &b : &a)->out.bytes;
		assert_memory_equal(at, "*2\r\n$", 5);
		at = strchr(at + 5, '\n') + 1;
		cursor = strtoull(at, &at, 10);
		n += (uint32_t)strtoul(strchr(at, '*') + 1, NULL, 10);
	} while (cursor);
	assert_int_equal(n, 300);
	assert_true(calls >= 1u << BITS);
	move_client_expect(&b, "FLUSHALL", "+OK\r\n");
	finish(&rig);
	move_client_expect(&b, "DBSIZE", ":0\r\n");
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* A large unit goes with little memory, and back; what is changed is most of it. */
static void test_large_unit(void **state)
{
	struct move_client a, b;
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	large_fill(&a);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t i = 0; i < 2; i++) {
		large_check(&b);
		move_client_expect(&b, "HSET large f0 $16000", ":0\r\n");
		large_check(&a);
		move_client_expect(&a, "HSET large f0 $16000", ":0\r\n");
	}
	large_check(&b);
	for (uint32_t i = 0; i < 2; i++) {
		move_stats_read(rig.nodes[i].move, &stats);
		assert_true(stats.bytes_sent > (i ? 2 : 3) * LARGE_BYTES);
		assert_true(stats.backlog_max < LARGE_BYTES / 3);
	}
	finish(&rig);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

#define THREADS		4u
#define TURNS		150u

struct runner {
	pthread_t thread;
	struct move_client client;
	uint32_t seed;
	uint64_t added[PAIRS];
};

/* Pairs of keys in two units, always raised together. */
static void *add_pairs(void *ctx)
{
	struct runner *r = ctx;
	char line[64];

	for (uint32_t i = 0; i < TURNS; i++) {
		uint32_t pair = (uint32_t)rand_r(&r->seed) % PAIRS;

		assert_true(move_client_do(&r->client, "MULTI"));
		snprintf(line, sizeof(line), "INCR a%u", pair);
		assert_true(move_client_do(&r->client, line));
		snprintf(line, sizeof(line), "INCR b%u", pair);
		assert_true(move_client_do(&r->client, line));
		assert_true(move_client_do(&r->client, "EXEC"));
		assert_int_equal(r->client.out.bytes[0], '*');
		r->added[pair]++;
	}
	return NULL;
}

static void test_transactions(void **state)
{
	struct runner runners[THREADS] = { 0 };
	uint64_t all[PAIRS] = { 0 };
	struct move_client b;
	struct move_stats stats;
	struct move_rig rig;
	char line[64];

	(void)state;
	open_both(&rig);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t i = 0; i < THREADS; i++) {
		runners[i].seed = i;
		move_client_open(&runners[i].client, &rig.nodes[i % 2]);
		pthread_create(&runners[i].thread, NULL, add_pairs, &runners[i]);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(runners[i].thread, NULL);
		move_client_close(&runners[i].client);
		for (uint32_t p = 0; p < PAIRS; p++)
			all[p] += runners[i].added[p];
	}
	move_stats_read(rig.nodes[0].move, &stats);
	assert_true(stats.units.taken_back > 0);
	finish(&rig);
	move_client_open(&b, &rig.nodes[1]);
	for (uint32_t p = 0; p < PAIRS; p++) {
		snprintf(line, sizeof(line), "INCRBY a%u 0", p);
		assert_int_equal(move_client_integer(&b, line), all[p]);
		snprintf(line, sizeof(line), "INCRBY b%u 0", p);
		assert_int_equal(move_client_integer(&b, line), all[p]);
	}
	kv_audit(rig.nodes[1].kv);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* A unit that comes is forced to the log at once: requests wait for it. */
static void test_forced_at_once(void **state)
{
	struct move_times times[MOVE_PHASES];
	struct move_client a, b;
	struct move_rig rig;

	(void)state;
	move_rig_init(&rig, BITS);
	for (uint32_t i = 0; i < 2; i++) {
		rig.nodes[i].group_interval_us = 300000;
		move_rig_open(&rig, i);
	}
	move_rig_connect(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(move_client_integer(&b, "INCR n"), 2 * i + 1);
		assert_int_equal(move_client_integer(&a, "INCR n"), 2 * i + 2);
	}
	for (uint32_t i = 0; i < 2; i++) {
		move_times_read(rig.nodes[i].move, times);
		/* One that was wanted while it was on its way away is not timed. */
		assert_true(times[MOVE_TAKEN].n > 0);
		assert_true(times[MOVE_TAKEN].p50_ns < 150e6);
	}
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

static struct oltp_durable_stats log_of(const struct move_node *node)
{
	struct oltp_durable_stats log;

	oltp_durable_stats_read(node->engine, &log);
	return log;
}

/* "WORD k0 v k1 v ..." */
static void name_all(char *line, size_t room, const char *word, const char *value)
{
	size_t n = (size_t)snprintf(line, room, "%s", word);

	for (uint32_t i = 0; i < KEYS; i++)
		n += (size_t)snprintf(line + n, room - n, " k%u%s", i, value);
	assert_true(n < room);
}

/*
 * Units that a request asks for together come together, and are forced together; their records are
 * put many at a time.
 */
static void test_come_together(void **state)
{
	struct move_client a, b;
	struct move_rig rig;
	char line[4096];

	(void)state;
	move_rig_init(&rig, BITS);
	for (uint32_t i = 0; i < 2; i++) {
		rig.nodes[i].group_interval_us = 1000000;
		move_rig_open(&rig, i);
	}
	move_rig_connect(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	name_all(line, sizeof(line), "MSET", " v");
	move_client_expect(&a, line, "+OK\r\n");
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	/* All units have a key or more. */
	name_all(line, sizeof(line), "MGET", "");
	for (uint32_t i = 0; i < 4; i++) {
		struct move_client *client = i % 2 ? &a : &b;
		struct oltp_durable_stats before = log_of(client->node), after;

		assert_true(move_client_do(client, line));
		after = log_of(client->node);
		print_message("%u units in %u groups, %u transactions\n", 1u << BITS,
			      (unsigned int)(after.groups - before.groups),
			      (unsigned int)(after.entries - before.entries));
		assert_true(after.groups - before.groups <= 6);
		assert_true(after.entries - before.entries <= KEYS / 2);
	}
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_large_unit),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_forced_at_once),
		cmocka_unit_test(test_come_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
