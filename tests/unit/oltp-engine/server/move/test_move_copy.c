// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Records go ahead of their units while commands run on these: what the target has in the end is
 * what the source had, whatever was written, removed, lost or refused meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_pairs.h"

#define BITS		3u
#define KEYS		2000u
#define FIELDS		40u

static const struct precopy_config fast = {
	.bytes_per_s = 1u << 30, .timeout_ns = 20000000000ull, .pause_ns = 100000000,
	.rounds_max = 30,
};

static void open_both(struct move_rig *rig)
{
	move_rig_init(rig, BITS);
	move_rig_open(rig, 0);
	move_rig_open(rig, 1);
	move_rig_connect(rig);
}

static struct move_copy_stats copy_stats(struct move_rig *rig)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[0].move, &stats);
	return stats.copy;
}

static void wait_copied(struct move_rig *rig)
{
	for (uint32_t i = 0; i < 30000 && !copy_stats(rig).has_stopped; i++)
		usleep(1000);
	assert_true(copy_stats(rig).has_stopped);
}

/* Shares the database and copies it; clients may run. */
static void copy_all(struct move_rig *rig, const struct precopy_config *config)
{
	move_share(rig->nodes[0].move);
	move_rig_wait_mode(rig, 0, UNITS_SHARED);
	move_copy(rig->nodes[0].move, config);
	wait_copied(rig);
}

static void leave(struct move_rig *rig)
{
	move_leave(rig->nodes[0].move, true);
	move_rig_wait_mode(rig, 0, UNITS_ENDED);
	move_rig_wait_mode(rig, 1, UNITS_ALONE);
}

static void set(struct move_client *client, uint32_t key, uint32_t value)
{
	char line[64];

	snprintf(line, sizeof(line), "SET s%u %u", key, value);
	move_client_expect(client, line, "+OK\r\n");
}

static void expect(struct move_client *client, uint32_t key, uint32_t value)
{
	char line[64];

	snprintf(line, sizeof(line), "GET s%u", key);
	assert_int_equal(move_client_integer(client, line), value);
}

static void fill(struct move_client *client)
{
	char line[128];

	for (uint32_t i = 0; i < KEYS; i++)
		set(client, i, i);
	for (uint32_t i = 0; i < 20; i++) {
		for (uint32_t f = 0; f < FIELDS; f++) {
			snprintf(line, sizeof(line), "HSET h%u f%u %u", i, f, i * f);
			move_client_expect(client, line, ":1\r\n");
		}
	}
}

static uint64_t records_sent(struct move_rig *rig)
{
	struct move_stats stats;

	move_stats_read(rig->nodes[0].move, &stats);
	return stats.records_sent;
}

/* Each kind of change after the copy; only what has changed is sent with the units. */
static void test_changes(void **state)
{
	struct move_client a, b;
	struct move_rig rig;
	uint64_t before;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	copy_all(&rig, &fast);
	assert_true(copy_stats(&rig).is_at_once);
	assert_true(copy_stats(&rig).pages > 500);
	before = records_sent(&rig);
	assert_true(before >= KEYS);
	for (uint32_t i = 0; i < 10; i++)
		set(&a, i, 7000 + i);
	move_client_expect(&a, "DEL s10 s11", ":2\r\n");
	move_client_expect(&a, "SET new 5", "+OK\r\n");
	move_client_expect(&a, "HSET h0 f1 77 more 1", ":1\r\n");
	move_client_expect(&a, "HDEL h1 f0 f1", ":2\r\n");
	move_client_expect(&a, "DEL h2", ":1\r\n");
	move_client_expect(&a, "MULTI", "+OK\r\n");
	move_client_expect(&a, "INCR s20", "+QUEUED\r\n");
	move_client_expect(&a, "GET s21", "+QUEUED\r\n");
	move_client_expect(&a, "EXEC", "*2\r\n:21\r\n$2\r\n21\r\n");
	assert_true(move_client_do(&a, "FCALL ycsb_update 1 s22 5"));
	leave(&rig);
	/* Some pages have more than the key that has changed. */
	assert_in_range(copy_stats(&rig).stale_pages, 14, 20);
	assert_in_range(records_sent(&rig) - before, 14, 400);
	for (uint32_t i = 0; i < 10; i++)
		expect(&b, i, 7000 + i);
	for (uint32_t i = 12; i < KEYS; i++)
		expect(&b, i, i == 20 ? 21 : i);
	move_client_expect(&b, "EXISTS s10 s11 h2", ":0\r\n");
	assert_int_equal(move_client_integer(&b, "GET new"), 5);
	assert_int_equal(move_client_integer(&b, "HGET h0 f1"), 77);
	assert_int_equal(move_client_integer(&b, "HLEN h0"), FIELDS + 1);
	assert_int_equal(move_client_integer(&b, "HLEN h1"), FIELDS - 2);
	assert_int_equal(move_client_integer(&b, "HGET h19 f39"), 19 * 39);
	assert_int_equal(move_client_integer(&b, "DBSIZE"), KEYS - 2 + 1 + 19);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* All keys removed after the copy: none of them comes back. */
static void test_flush(void **state)
{
	struct move_client a, b;
	struct move_rig rig;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	copy_all(&rig, &fast);
	move_client_expect(&a, "FLUSHALL", "+OK\r\n");
	set(&a, 3, 4);
	leave(&rig);
	assert_int_equal(move_client_integer(&b, "DBSIZE"), 1);
	expect(&b, 3, 4);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

struct writer {
	pthread_t thread;
	struct move_client client;
	uint32_t values[KEYS];	/* acknowledged */
	bool is_gone[KEYS];
	_Atomic uint64_t n;
	_Atomic bool is_over;
};

/* Writes, removes and grows keys of its own until it is told that the database has gone. */
static void *write_all(void *ctx)
{
	struct writer *w = ctx;
	uint32_t seed = 5;
	char line[64];

	for (; !w->is_over; w->n++) {
		uint32_t key = (uint32_t)rand_r(&seed) % KEYS, value = (uint32_t)rand_r(&seed);
		bool goes = value % 8 == 0;

		if (key % 16 == 0)
			snprintf(line, sizeof(line), goes ? "DEL g%u" : "HSET g%u f%u %u", key,
				 value % 50, value);
		else
			snprintf(line, sizeof(line), goes ? "DEL s%u" : "SET s%u %u", key, value);
		if (!move_client_do(&w->client, line) || w->client.out.bytes[0] == '-')
			return NULL;
		w->values[key] = value;
		w->is_gone[key] = goes;
	}
	return NULL;
}

static void check_writer(const struct writer *w, struct move_client *client)
{
	char line[64];

	for (uint32_t key = 0; key < KEYS; key++) {
		if (!w->values[key] || key % 16 == 0)
			continue;
		if (!w->is_gone[key]) {
			expect(client, key, w->values[key]);
			continue;
		}
		snprintf(line, sizeof(line), "EXISTS s%u", key);
		assert_int_equal(move_client_integer(client, line), 0);
	}
	/* The last field that was set in a hash that is there. */
	for (uint32_t key = 0; key < KEYS; key += 16) {
		if (!w->values[key])
			continue;
		snprintf(line, sizeof(line), "EXISTS g%u", key);
		assert_int_equal(move_client_integer(client, line), !w->is_gone[key]);
		if (w->is_gone[key])
			continue;
		snprintf(line, sizeof(line), "HGET g%u f%u", key, w->values[key] % 50);
		assert_int_equal(move_client_integer(client, line), w->values[key]);
	}
}

/* A client writes all the time, with the link cut so many times; what it was told is there. */
static void run_writer(uint32_t cuts, bool at_once)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct move_client b;
	struct move_rig rig;
	struct move_stats stats;

	assert_non_null(w);
	open_both(&rig);
	move_client_open(&w->client, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&w->client);
	w->client.gives_up = &w->is_over;
	pthread_create(&w->thread, NULL, write_all, w);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	move_copy(rig.nodes[0].move, &fast);
	for (uint32_t i = 0; i < cuts; i++) {
		usleep(3000 + 7000 * i);
		move_rig_part(&rig);
		move_rig_connect(&rig);
	}
	wait_copied(&rig);
	for (uint32_t i = 0; i < 30000 && w->n < 200; i++)
		usleep(1000);
	assert_true(w->n >= 200);
	move_leave(rig.nodes[0].move, at_once);
	move_rig_wait_mode(&rig, 0, UNITS_ENDED);
	move_rig_wait_mode(&rig, 1, UNITS_ALONE);
	w->is_over = true;
	pthread_join(w->thread, NULL);
	check_writer(w, &b);
	move_stats_read(rig.nodes[0].move, &stats);
	assert_true(stats.copy.stale_pages > 0);
	assert_true(stats.leave_ns > 0);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&w->client);
	move_client_close(&b);
	move_rig_close_both(&rig);
	free(w);
}

static void test_writer(void **state)
{
	(void)state;
	run_writer(0, true);
	run_writer(0, false);
}

static void test_cuts(void **state)
{
	(void)state;
	run_writer(4, true);
}

/* Units that went to the target for a client there, and came back, come whole. */
static void test_units_that_went(void **state)
{
	struct move_client a, b;
	struct move_rig rig;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	copy_all(&rig, &fast);
	for (uint32_t i = 0; i < 50; i++)
		set(i % 2 ? &a : &b, i, 100000 + i);
	for (uint32_t i = 0; i < 50; i++)
		expect(i % 2 ? &b : &a, i, 100000 + i);
	set(&a, 60, 3);
	leave(&rig);
	for (uint32_t i = 0; i < KEYS; i++)
		expect(&b, i, i < 50 ? 100000 + i : i == 60 ? 3 : i);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

#define LARGE		10000u	/* fields: read in many transactions */
#define AT_ONCE		400u

/* Adds and removes a field of a large hash. */
static void *change_large(void *ctx)
{
	struct writer *w = ctx;

	for (; !w->is_over; w->n++) {
		const char *line = w->n % 2 ? "HDEL large more" : "HSET large more 1";

		if (!move_client_do(&w->client, line) || w->client.out.bytes[0] == '-')
			return NULL;
		w->values[0] = !(w->n % 2);
	}
	return NULL;
}

/* A hash that changes while it is read does not fit together: it is not sent so. */
static void test_torn(void **state)
{
	struct writer *w = calloc(1, sizeof(*w));
	struct move_client b;
	struct move_stats stats;
	struct move_rig rig;
	char line[AT_ONCE * 16];

	(void)state;
	assert_non_null(w);
	open_both(&rig);
	move_client_open(&w->client, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	for (uint32_t i = 0; i < LARGE;) {
		int n = snprintf(line, sizeof(line), "HSET large");

		for (uint32_t end = i + AT_ONCE; i < end; i++)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " f%u 1", i);
		assert_int_equal(move_client_integer(&w->client, line), AT_ONCE);
	}
	w->client.gives_up = &w->is_over;
	pthread_create(&w->thread, NULL, change_large, w);
	copy_all(&rig, &fast);
	/* Copied again and again while it changes. */
	for (uint32_t i = 0; i < 10; i++) {
		move_copy(rig.nodes[0].move, &fast);
		usleep(20000);
		wait_copied(&rig);
	}
	leave(&rig);
	w->is_over = true;
	pthread_join(w->thread, NULL);
	assert_true(w->n > 10);
	assert_int_equal(move_client_integer(&b, "HLEN large"), LARGE + w->values[0]);
	move_stats_read(rig.nodes[1].move, &stats);
	assert_int_equal(stats.error, 0);
	snprintf(line, sizeof(line), "*%u\r\n", LARGE + w->values[0]);
	assert_true(move_client_do(&b, "HKEYS large"));
	assert_memory_equal(b.out.bytes, line, strlen(line));
	move_client_close(&w->client);
	move_client_close(&b);
	move_rig_close_both(&rig);
	free(w);
}

/* Units that come while copying goes on: what came with them has no marks, so they go whole. */
static void test_units_that_came(void **state)
{
	struct precopy_config slow = fast;
	struct move_client a, b;
	struct move_rig rig;

	(void)state;
	slow.bytes_per_s = 400000;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t i = 0; i < 20; i++)
		set(&b, i, 100000 + i);
	move_copy(rig.nodes[0].move, &slow);
	for (uint32_t i = 0; i < 1000 && !copy_stats(&rig).pages; i++)
		usleep(1000);
	for (uint32_t i = 0; i < 20; i++)
		expect(&a, i, 100000 + i);
	for (uint32_t i = 30; i < 50; i++)
		set(&a, i, 100000 + i);
	wait_copied(&rig);
	leave(&rig);
	for (uint32_t i = 0; i < KEYS; i++)
		expect(&b, i, i < 20 || (i >= 30 && i < 50) ? 100000 + i : i);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* An adaptive move: clients of both nodes go on after the copy, and units go to and fro. */
static void test_then_on_demand(void **state)
{
	const struct precopy_config ahead = {
		.bytes_per_s = 1u << 30, .timeout_ns = 20000000000ull, .rounds_max = 1,
		.is_in_order = true,
	};
	struct move_client a, b;
	struct move_rig rig;
	uint64_t before;

	(void)state;
	open_both(&rig);
	move_client_open(&a, &rig.nodes[0]);
	move_client_open(&b, &rig.nodes[1]);
	fill(&a);
	copy_all(&rig, &ahead);
	before = records_sent(&rig);
	assert_true(before >= KEYS);
	for (uint32_t i = 0; i < 40; i++)
		set(&a, i, 5000 + i);
	for (uint32_t i = 0; i < 40; i++)
		set(&b, i, 6000 + i);
	move_client_expect(&b, "DEL s50", ":1\r\n");
	for (uint32_t i = 0; i < 40; i++)
		set(&a, i, 7000 + i);
	move_client_expect(&a, "EXISTS s50", ":0\r\n");
	for (uint32_t i = 0; i < 40; i++)
		expect(&b, i, 7000 + i);
	/* Pages have some four keys, and a unit 250. */
	assert_in_range(records_sent(&rig) - before, 40, 1000);
	leave(&rig);
	for (uint32_t i = 0; i < KEYS; i++) {
		if (i != 50)
			expect(&b, i, i < 40 ? 7000 + i : i);
	}
	assert_int_equal(move_client_integer(&b, "DBSIZE"), KEYS + 20 - 1);
	kv_audit(rig.nodes[1].kv);
	move_client_close(&a);
	move_client_close(&b);
	move_rig_close_both(&rig);
}

/* Room for a part: the rest comes with the units. No time: all of it. */
static void test_part(void **state)
{
	static const struct precopy_config configs[] = {
		{ .bytes_per_s = 1u << 30, .bytes_max = 20000, .timeout_ns = 20000000000ull,
		  .pause_ns = 1000, .rounds_max = 30 },
		{ .bytes_per_s = 1u << 30, .timeout_ns = 0, .pause_ns = 1, .rounds_max = 30 },
		{ .bytes_per_s = 100000, .timeout_ns = 100000000, .pause_ns = 1, .rounds_max = 30 },
	};

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		struct move_client a, b;
		struct move_copy_stats stats;
		struct move_rig rig;

		open_both(&rig);
		move_client_open(&a, &rig.nodes[0]);
		move_client_open(&b, &rig.nodes[1]);
		fill(&a);
		copy_all(&rig, &configs[i]);
		stats = copy_stats(&rig);
		assert_false(stats.is_at_once);
		assert_int_equal(stats.reason, i == 0 ? PRECOPY_FEW : PRECOPY_TIMEOUT);
		/* How much goes in some time depends on the machine; what may go does not. */
		assert_in_range(stats.bytes, i == 0 ? 20000 : 0, i == 1 ? 0 : 25000);
		move_leave(rig.nodes[0].move, false);
		move_rig_wait_mode(&rig, 1, UNITS_ALONE);
		for (uint32_t key = 0; key < KEYS; key++)
			expect(&b, key, key);
		assert_int_equal(move_client_integer(&b, "DBSIZE"), KEYS + 20);
		kv_audit(rig.nodes[1].kv);
		move_client_close(&a);
		move_client_close(&b);
		move_rig_close_both(&rig);
	}
}

/*
 * Power is lost at either node, or both, at any moment of copying and of the hand-over, while
 * clients of both raise pairs of keys.
 */
static void test_power(void **state)
{
	struct pairs *pairs = calloc(1, sizeof(*pairs));
	struct move_stats stats;
	struct move_rig rig;

	(void)state;
	assert_non_null(pairs);
	open_both(&rig);
	move_share(rig.nodes[0].move);
	move_rig_wait_mode(&rig, 0, UNITS_SHARED);
	for (uint32_t round = 1; round <= 12; round++) {
		uint32_t dead = round % 4;

		pairs_begin(pairs, &rig, round);
		usleep(20000);
		move_copy(rig.nodes[0].move, &fast);
		usleep(round * 7919 % 40000);
		/* A node that died forgets that it was to leave; then it takes units again. */
		if (round % 3 == 0 && dead & 1)
			move_leave(rig.nodes[0].move, true);
		usleep(round * 104729 % 3000);
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				fault_disk_lose_power_at(rig.nodes[i].disk, 0);
		}
		usleep(3000);
		pairs_end(pairs);
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_close(&rig, i, true);
		}
		for (uint32_t i = 0; i < 2; i++) {
			if (dead & 1u << i)
				move_rig_open(&rig, i);
		}
		move_rig_connect(&rig);
	}
	move_stats_read(rig.nodes[0].move, &stats);
	if (stats.mode == UNITS_SHARED) {
		usleep(100000);
		move_copy(rig.nodes[0].move, &fast);
		wait_copied(&rig);
		move_leave(rig.nodes[0].move, true);
	}
	pairs_check_at_target(pairs, &rig);
	free(pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_cuts),
		cmocka_unit_test(test_units_that_went),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_units_that_came),
		cmocka_unit_test(test_then_on_demand),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_power),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
