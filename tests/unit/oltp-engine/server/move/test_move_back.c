// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Units go to a node that had them before: only what has changed is sent, and what the node has
 * then is exact. Without the connection, or without memory for the records that were kept, all of
 * them are sent.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_audit.h"
#include "move_pairs.h"
#include "oltp-engine/server/kv/unit.h"

#define BITS		3u
#define KEYS		2000u
#define HASHES		20u
#define FIELDS		40u
#define AT_ONCE		250u

/* Puts of this keyspace that find no memory. */
static struct kv *short_kv;
static _Atomic uint32_t n_short;

int __real_kv_unit_put(struct kv *kv, struct oltp_worker *worker, uint32_t unit,
		       struct kv_unit_put *put, const uint8_t *records, size_t bytes);

int __wrap_kv_unit_put(struct kv *kv, struct oltp_worker *worker, uint32_t unit,
		       struct kv_unit_put *put, const uint8_t *records, size_t bytes)
{
	if (n_short && kv == short_kv) {
		n_short--;
		return -ENOMEM;
	}
	return __real_kv_unit_put(kv, worker, unit, put, records, bytes);
}

struct pair {
	struct move_rig rig;
	struct move_client clients[2];
	uint64_t bytes[2];	/* sent by either node, when take_all was called last */
	int64_t strings[KEYS];	/* -1: removed */
};

static void change(struct pair *p, uint32_t node, uint32_t key, int64_t value)
{
	char line[64];

	if (value < 0)
		snprintf(line, sizeof(line), "DEL s%u", key);
	else
		snprintf(line, sizeof(line), "SET s%u %lld", key, (long long)value);
	move_client_expect(&p->clients[node], line, value < 0 ? ":1\r\n" : "+OK\r\n");
	p->strings[key] = value;
}

static void fill(struct pair *p)
{
	char line[AT_ONCE * 16];

	for (uint32_t i = 0; i < KEYS;) {
		int n = snprintf(line, sizeof(line), "MSET");

		for (uint32_t end = i + AT_ONCE; i < end; i++) {
			n += snprintf(line + n, sizeof(line) - (size_t)n, " s%u %u", i, i);
			p->strings[i] = i;
		}
		move_client_expect(&p->clients[0], line, "+OK\r\n");
	}
	for (uint32_t i = 0; i < HASHES; i++) {
		int n = snprintf(line, sizeof(line), "HSET h%u", i);

		for (uint32_t f = 0; f < FIELDS; f++)
			n += snprintf(line + n, sizeof(line) - (size_t)n, " f%u %u", f, i * f);
		assert_int_equal(move_client_integer(&p->clients[0], line), FIELDS);
	}
}

static void open_pair(struct pair *p)
{
	memset(p, 0, sizeof(*p));
	move_rig_init(&p->rig, BITS);
	move_rig_open(&p->rig, 0);
	move_rig_open(&p->rig, 1);
	move_rig_connect(&p->rig);
	for (uint32_t i = 0; i < 2; i++)
		move_client_open(&p->clients[i], &p->rig.nodes[i]);
	fill(p);
	move_share(p->rig.nodes[0].move);
	move_rig_wait_mode(&p->rig, 0, UNITS_SHARED);
}

static void close_pair(struct pair *p)
{
	for (uint32_t i = 0; i < 2; i++) {
		move_client_close(&p->clients[i]);
		move_rig_close(&p->rig, i, false);
	}
	move_rig_finish(&p->rig);
}

static int put_bulk(char *to, size_t room, int64_t value)
{
	char number[24];

	if (value < 0)
		return snprintf(to, room, "$-1\r\n");
	snprintf(number, sizeof(number), "%lld", (long long)value);
	return snprintf(to, room, "$%zu\r\n%s\r\n", strlen(number), number);
}

/* Checks all strings at that node, which takes all units for it; bytes of records that came. */
static uint64_t take_all(struct pair *p, uint32_t node)
{
	struct move_stats stats;
	uint64_t before = p->bytes[!node];
	char line[AT_ONCE * 16], reply[AT_ONCE * 24];

	for (uint32_t i = 0; i < KEYS;) {
		int n = snprintf(line, sizeof(line), "MGET");
		int k = snprintf(reply, sizeof(reply), "*%u\r\n", AT_ONCE);

		for (uint32_t end = i + AT_ONCE; i < end; i++) {
			n += snprintf(line + n, sizeof(line) - (size_t)n, " s%u", i);
			k += put_bulk(reply + k, sizeof(reply) - (size_t)k, p->strings[i]);
		}
		move_client_expect(&p->clients[node], line, reply);
	}
	move_stats_read(p->rig.nodes[!node].move, &stats);
	p->bytes[!node] = stats.bytes_sent;
	return stats.bytes_sent - before;
}

static void leave(struct pair *p)
{
	move_leave(p->rig.nodes[0].move, false);
	move_rig_wait_mode(&p->rig, 0, UNITS_ENDED);
	move_rig_wait_mode(&p->rig, 1, UNITS_ALONE);
	take_all(p, 1);
	kv_audit(p->rig.nodes[1].kv);
}

/* Of what all records are. */
#define FEW(all)	((all) / 50)

/* Each kind of change at either node, several times there and back. */
static void test_changes(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	uint64_t all;
	char line[64];

	(void)state;
	assert_non_null(p);
	open_pair(p);
	all = take_all(p, 1);
	assert_true(all > KEYS * 16);
	/* Nothing was changed. */
	assert_int_equal(take_all(p, 0), 0);
	for (uint32_t round = 0; round < 6; round++) {
		uint32_t node = round % 2, other = !node;
		struct move_client *at = &p->clients[node], *to = &p->clients[other];
		uint32_t key = 100 * round;

		change(p, node, key, 7000 + round);
		/* There before, and not any more. */
		change(p, node, key + 1, -1);
		/* Gone, and there again. */
		change(p, node, key + 2, -1);
		change(p, node, key + 2, 8000 + round);
		/* Removed here; made anew at the other node by the next round. */
		if (round)
			change(p, node, key - 99, 9000 + round);
		/* New; and one that is not there when the unit goes. */
		move_client_expect(at, "SET new 5", "+OK\r\n");
		move_client_expect(at, "SET brief 5", "+OK\r\n");
		move_client_expect(at, "DEL brief", ":1\r\n");
		/* Fields changed, added, removed; a hash that goes, and that becomes a string. */
		snprintf(line, sizeof(line), "HSET h%u f1 %u", round, 77 + round);
		move_client_expect(at, line, ":0\r\n");
		snprintf(line, sizeof(line), "HSET h%u more %u", round, round);
		move_client_expect(at, line, ":1\r\n");
		snprintf(line, sizeof(line), "HDEL h%u f0", round);
		move_client_expect(at, line, ":1\r\n");
		snprintf(line, sizeof(line), "DEL h%u", 8 + round);
		move_client_expect(at, line, ":1\r\n");
		assert_in_range(take_all(p, other), 1, all / 4);
		assert_int_equal(move_client_integer(to, "GET new"), 5);
		move_client_expect(to, "EXISTS brief", ":0\r\n");
		move_client_expect(to, "DEL new", ":1\r\n");
		for (uint32_t h = 0; h <= round; h++) {
			snprintf(line, sizeof(line), "HGET h%u f1", h);
			assert_int_equal(move_client_integer(to, line), 77 + h);
			snprintf(line, sizeof(line), "HLEN h%u", h);
			assert_int_equal(move_client_integer(to, line), FIELDS);
			snprintf(line, sizeof(line), "EXISTS h%u", 8 + h);
			assert_int_equal(move_client_integer(to, line), 0);
		}
		snprintf(line, sizeof(line), "HGET h7 f%u", round);
		assert_int_equal(move_client_integer(to, line), 7 * round);
	}
	leave(p);
	assert_int_equal(move_client_integer(&p->clients[1], "HLEN h19"), FIELDS);
	close_pair(p);
	free(p);
}

/* One write between two turns costs its page, of which a few have a hash or two. */
static void test_few_bytes(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	uint64_t all, before, sum = 0;

	(void)state;
	assert_non_null(p);
	open_pair(p);
	all = take_all(p, 1);
	for (uint32_t round = 0; round < 20; round++) {
		uint64_t bytes;

		change(p, !(round % 2), round, 100 + round);
		bytes = take_all(p, round % 2);
		assert_true(bytes > 0);
		sum += bytes;
	}
	/* What the source gives at the end of its own accord is no more either. */
	take_all(p, 0);
	change(p, 0, 5, 55);
	before = p->bytes[0];
	leave(p);
	assert_true(p->bytes[0] > before);
	sum += p->bytes[0] - before;
	assert_in_range(sum, 1, 21 * FEW(all));
	close_pair(p);
	free(p);
}

/* All keys are removed at the other node: none of what was kept comes back. */
static void test_flush(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	(void)state;
	assert_non_null(p);
	open_pair(p);
	take_all(p, 1);
	move_client_expect(&p->clients[1], "FLUSHALL", "+OK\r\n");
	for (uint32_t i = 0; i < KEYS; i++)
		p->strings[i] = -1;
	change(p, 1, 3, 4);
	take_all(p, 0);
	leave(p);
	move_client_expect(&p->clients[1], "DBSIZE", ":1\r\n");
	close_pair(p);
	free(p);
}

/* What was kept goes with the connection. */
static void test_cut(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	uint64_t all;

	(void)state;
	assert_non_null(p);
	open_pair(p);
	all = take_all(p, 1);
	move_rig_part(&p->rig);
	change(p, 1, 1, 111);
	move_rig_connect(&p->rig);
	assert_true(take_all(p, 0) > all - FEW(all));
	change(p, 0, 2, 222);
	assert_in_range(take_all(p, 1), 1, FEW(all));
	leave(p);
	close_pair(p);
	free(p);
}

/*
 * Without memory the units that were kept go first, and those that come are taken. They come whole
 * when they are asked back, or, if the peer gives them of its own accord, at the second attempt.
 */
static void test_no_memory(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct move_stats stats;
	uint64_t all;

	(void)state;
	assert_non_null(p);
	for (uint32_t asks = 0; asks < 2; asks++) {
		open_pair(p);
		all = take_all(p, 1);
		take_all(p, 0);
		for (uint32_t i = 0; i < KEYS; i += 20)
			change(p, 0, i, 5000 + i);
		short_kv = p->rig.nodes[1].kv;
		/* As many as units were kept but for the one that comes. */
		n_short = (1u << BITS) - 1;
		if (asks) {
			assert_int_equal(move_client_integer(&p->clients[1], "GET s0"), 5000);
			assert_in_range(take_all(p, 1), all / 2, all);
		} else {
			leave(p);
		}
		move_stats_read(p->rig.nodes[0].move, &stats);
		assert_int_equal(n_short, 0);
		if (asks)
			assert_int_equal(stats.units.refused, 0);
		else
			assert_in_range(stats.units.refused, 1, (1u << BITS) - 1);
		/* Nothing is left to be removed: now a unit has to wait. */
		if (asks) {
			n_short = 1u << BITS;
			take_all(p, 0);
			for (uint32_t i = 0; i < KEYS; i += 20)
				change(p, 0, i, 6000 + i);
			take_all(p, 1);
			leave(p);
		}
		move_stats_read(p->rig.nodes[1].move, &stats);
		assert_int_equal(stats.error, 0);
		n_short = 0;
		close_pair(p);
	}
	free(p);
}

/*
 * Units go back and forth under clients of both nodes that raise pairs of keys, while the
 * connection is cut or power is lost at either node, or both, at any moment.
 */
static void test_power_and_cuts(void **state)
{
	struct pairs *pairs = calloc(1, sizeof(*pairs));
	struct move_rig rig;

	(void)state;
	assert_non_null(pairs);
	move_rig_init(&rig, BITS);
	move_rig_open_both(&rig);
	for (uint32_t round = 1; round <= 20; round++) {
		uint32_t dead = round % 5 == 4 ? 0 : round % 5;

		pairs_begin(pairs, &rig, round);
		usleep(30000 + round * 7919 % 20000);
		for (uint32_t i = 0; !dead && i < 3; i++) {
			move_rig_part(&rig);
			usleep(round * 1237 % 3000);
			move_rig_connect(&rig);
			usleep(20000);
		}
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
		if (dead)
			move_rig_connect(&rig);
	}
	usleep(50000);
	move_leave(rig.nodes[0].move, false);
	pairs_check_at_target(pairs, &rig);
	free(pairs);
}

/*
 * What is watched at one node is changed at the other one, and comes back: EXEC does nothing, also
 * if the value is the same again, and in either direction.
 */
static void test_watched(void **state)
{
	static const struct {
		const char *first, *second;	/* at the other node */
		bool is_changed;
	} cases[] = {
		{ "SET s5 6", "GET s5", true },
		{ "SET s5 5", "GET s5", true },
		{ "DEL s5", "SET s5 5", true },
		{ "GET s5", "GET s6", false },
		{ "SET s6 6", "GET s5", false },
		{ "INCR absent", "GET s5", true },
		{ "INCR absent", "DEL absent", true },
		{ "HSET absent f 1", "HDEL absent f", true },
		{ "HSET h1 f1 1", "GET s5", true },
		{ "HGET h1 f1", "GET s5", false },
	};
	struct pair *p = malloc(sizeof(*p));

	(void)state;
	assert_non_null(p);
	open_pair(p);
	for (uint32_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		struct move_client *here = &p->clients[i % 2], *there = &p->clients[1 - i % 2];
		const char *first = cases[i / 2].first, *second = cases[i / 2].second;

		assert_true(move_client_do(here, "MSET s5 5 s6 5"));
		assert_true(move_client_do(here, "DEL absent"));
		move_client_expect(here, "WATCH s5 absent h1", "+OK\r\n");
		assert_true(move_client_do(there, first));
		assert_true(move_client_do(there, second));
		/* All units of them have been there. */
		assert_true(move_client_do(there, "EXISTS s5 absent h1"));
		move_client_expect(here, "MULTI", "+OK\r\n");
		move_client_expect(here, "PING", "+QUEUED\r\n");
		assert_true(move_client_do(here, "EXEC"));
		here->out.bytes[here->out.n] = '\0';
		if (cases[i / 2].is_changed ? strcmp(here->out.bytes, "*-1\r\n") :
		    strcmp(here->out.bytes, "*1\r\n+PONG\r\n") &&
		    strcmp(here->out.bytes, "*-1\r\n"))
			fail_msg("%s, %s at node %u: %s", first, second, 1 - i % 2,
				 here->out.bytes);
	}
	close_pair(p);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_few_bytes),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_power_and_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
