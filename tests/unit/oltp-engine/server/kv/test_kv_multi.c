// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * MULTI, EXEC and WATCH, as Redis 7.0.15 answers; whole or not at all (K1, K2), also against other
 * workers.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/src/io/durable_rig.h"
#include "kv_audit.h"
#include "kv_rig.h"
#include "oltp-engine/server/kv/private.h"

static int set_up_scheme(void **state)
{
	rig = (struct kv_rig){ .engine_config.cc = *(const enum oltp_cc *)*state };
	kv_rig_open_with(&rig);
	return 0;
}

#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\r\n"

static void test_queue_and_exec(void **state)
{
	(void)state;
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "SET a 1", "+QUEUED\r\n");
	expect_reply(&rig, "INCR a", "+QUEUED\r\n");
	expect_reply(&rig, "PING", "+QUEUED\r\n");
	expect_reply(&rig, "DBSIZE", "+QUEUED\r\n");
	/* Not yet for others. */
	expect_reply_of(&rig, 1, "GET a", "$-1\r\n");
	assert_true(kv_session_is_busy(rig.sessions[0]));
	expect_reply(&rig, "EXEC", "*4\r\n+OK\r\n:2\r\n+PONG\r\n:1\r\n");
	assert_false(kv_session_is_busy(rig.sessions[0]));
	expect_reply_of(&rig, 1, "GET a", "$1\r\n2\r\n");
	expect_reply(&rig, "EXEC", "-ERR EXEC without MULTI\r\n");
	expect_reply(&rig, "DISCARD", "-ERR DISCARD without MULTI\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "SET a 9", "+QUEUED\r\n");
	expect_reply(&rig, "DISCARD", "+OK\r\n");
	expect_reply(&rig, "GET a", "$1\r\n2\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "MULTI", "-ERR MULTI calls can not be nested\r\n");
	expect_reply(&rig, "WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
}

static void test_errors(void **state)
{
	(void)state;
	/* At queueing: nothing is run. */
	const char *const bad[] = { "GET", "NOSUCH a", "GET $513", "FLUSHALL", "HELLO 3" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_reply(&rig, "MULTI", "+OK\r\n");
		expect_reply(&rig, "SET a 1", "+QUEUED\r\n");
		expect_begins(&rig, bad[i], "-ERR ");
		expect_reply(&rig, "SET b 1", "+QUEUED\r\n");
		expect_reply(&rig, "EXEC", ABORTED);
		expect_reply(&rig, "EXISTS a b", ":0\r\n");
	}
	/* At run time: the others count. */
	expect_reply(&rig, "HSET h f v", ":1\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "SET a 1", "+QUEUED\r\n");
	expect_reply(&rig, "INCR h", "+QUEUED\r\n");
	expect_reply(&rig, "INCR a", "+QUEUED\r\n");
	expect_reply(&rig, "EXEC",
		     "*3\r\n+OK\r\n-WRONGTYPE Operation against a key holding the wrong kind of "
		     "value\r\n:2\r\n");
	expect_reply(&rig, "GET a", "$1\r\n2\r\n");
}

static void test_watch(void **state)
{
	(void)state;
	/* What another does in between, and whether EXEC is to run. */
	const struct {
		const char *watch, *line;
		bool runs;
	} cases[] = {
		{ "WATCH a", "GET a", true },
		{ "WATCH a", "SET b 1", true },
		{ "WATCH a", "SET a 1", false },
		{ "WATCH a", "SETNX a 1", true },
		{ "WATCH a", "INCR a", false },
		{ "WATCH a", "DEL a", false },
		{ "WATCH none", "SET none 1", false },
		{ "WATCH none2", "DEL none2", true },
		{ "WATCH none3", "SET b 1", true },
		{ "WATCH a h", "HSET h f 1", false },
		{ "WATCH h", "HSET h f 1", false },
		{ "WATCH h", "HGET h f", true },
		{ "WATCH h", "HSETNX h f 1", true },
		{ "WATCH h", "HDEL h nosuch", true },
		{ "WATCH h", "HDEL h f", false },
		{ "WATCH h", "HINCRBY h n 1", false },
		{ "WATCH h", "DEL h", false },
		{ "WATCH h", "FLUSHALL", false },
		{ "WATCH a $300", "SET $300 x", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		kv_rig_do(&rig, 0, "SET a 1");
		kv_rig_do(&rig, 0, "DEL h");
		kv_rig_do(&rig, 0, "HSET h f v g v");
		expect_reply(&rig, cases[i].watch, "+OK\r\n");
		kv_rig_do(&rig, 1, cases[i].line);
		expect_reply(&rig, "MULTI", "+OK\r\n");
		expect_reply(&rig, "PING", "+QUEUED\r\n");
		kv_rig_do(&rig, 0, "EXEC");
		if (strcmp(cases[i].runs ? "*1\r\n+PONG\r\n" : "*-1\r\n",
			   (*resp_out_reserve(&rig.out, 1) = '\0', rig.out.bytes)) != 0)
			fail_msg("%s, then %s: %s", cases[i].watch, cases[i].line, rig.out.bytes);
	}
}

static void test_watch_sees_a_key_that_went_and_came(void **state)
{
	(void)state;
	expect_reply(&rig, "SET a 1", "+OK\r\n");
	expect_reply(&rig, "WATCH a", "+OK\r\n");
	expect_reply_of(&rig, 1, "DEL a", ":1\r\n");
	expect_reply_of(&rig, 1, "SET a 1", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*-1\r\n");
	/* The watch has ended with EXEC, as it does with UNWATCH and DISCARD. */
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
	expect_reply(&rig, "WATCH a", "+OK\r\n");
	expect_reply_of(&rig, 1, "SET a 2", "+OK\r\n");
	expect_reply(&rig, "UNWATCH", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
	expect_reply(&rig, "WATCH a", "+OK\r\n");
	expect_reply_of(&rig, 1, "SET a 3", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "DISCARD", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
	/* One's own change counts as well. */
	expect_reply(&rig, "WATCH a", "+OK\r\n");
	expect_reply(&rig, "SET a 4", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*-1\r\n");
}

/* It was not there, and is not there again: strings and hashes, and several ways to go. */
static void test_watch_sees_a_key_that_came_and_went(void **state)
{
	static const char *const cases[][2] = {
		{ "SET c 1", "DEL c" },
		{ "INCR c", "GETDEL c" },
		{ "HSET c f 1", "HDEL c f" },
		{ "HSET c f 1", "DEL c" },
		{ "MSET c 1 $300 1", "DEL c $300" },
		{ "SET c 1", "FLUSHALL" },
	};

	(void)state;
	for (uint32_t i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
		/* One's own change counts as well. */
		uint32_t who = i % 2;

		expect_reply(&rig, "WATCH c", "+OK\r\n");
		kv_rig_do(&rig, who, cases[i / 2][0]);
		kv_rig_do(&rig, who, cases[i / 2][1]);
		expect_reply(&rig, "EXISTS c", ":0\r\n");
		expect_reply(&rig, "MULTI", "+OK\r\n");
		expect_reply(&rig, "PING", "+QUEUED\r\n");
		expect_reply(&rig, "EXEC", "*-1\r\n");
	}
}

static void test_limits(void **state)
{
	(void)state;
	char line[64];

	/* More commands than may be queued. */
	expect_reply(&rig, "MULTI", "+OK\r\n");
	for (uint32_t i = 0; i < KV_QUEUE_COMMANDS; i++)
		expect_reply(&rig, "PING", "+QUEUED\r\n");
	expect_begins(&rig, "PING", "-ERR too many commands");
	expect_reply(&rig, "EXEC", ABORTED);
	/* More bytes. */
	expect_reply(&rig, "MULTI", "+OK\r\n");
	for (uint32_t i = 0; i < KV_QUEUE_BYTES / 16384 - 1; i++)
		expect_reply(&rig, "SET a $16000", "+QUEUED\r\n");
	for (uint32_t i = 0; i < 16; i++)
		kv_rig_do(&rig, 0, "SET a $16384");
	expect_begins(&rig, "SET a $16384", "-ERR too many commands");
	expect_reply(&rig, "EXEC", ABORTED);
	expect_reply(&rig, "EXISTS a", ":0\r\n");
	/* More rows than a transaction can have: none of it counts. */
	for (uint32_t i = 0; i < KV_TXN_RECORDS + 16; i++) {
		snprintf(line, sizeof(line), "HSET h f%u v", i);
		kv_rig_do(&rig, 0, line);
	}
	expect_begins(&rig, "HGETALL h", "-ERR too many or too large keys");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "SET a 1", "+QUEUED\r\n");
	expect_reply(&rig, "HVALS h", "+QUEUED\r\n");
	expect_begins(&rig, "EXEC", "-ERR too many or too large keys");
	expect_reply(&rig, "EXISTS a", ":0\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "EXEC", "*0\r\n");
	/* But it can be removed. */
	expect_reply(&rig, "DEL h", ":1\r\n");
	for (uint32_t i = 0; i <= KV_WATCHES_MAX; i++) {
		snprintf(line, sizeof(line), "WATCH key%u", i);
		expect_begins(&rig, line, i < KV_WATCHES_MAX ? "+OK" : "-ERR too many keys");
	}
}

/* A transaction of worker 3 has the key a locked. */
static void hold_a(void)
{
	const struct resp_arg name = { "a", 1 };
	struct found found;

	assert_int_equal(oltp_txn_begin(rig.workers[3]), OLTP_OK);
	assert_int_equal(keyspace_find(&rig.kv->ks, rig.workers[3], OWNER_KEYS, &name, true,
				       &found), OLTP_OK);
}

/* Somebody else's transaction holds the key: nothing is answered, and it is tried again. */
static void test_conflict(void **state)
{
	(void)state;
	const char *const lines[] = { "GET a", "SET a 5", "INCR a", "DEL a", "MGET b a",
				      "MSET b 1 a 1", "WATCH a" };

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		expect_reply(&rig, "SET a 1", "+OK\r\n");
		expect_reply(&rig, "DEL b", ":0\r\n");
		hold_a();
		assert_int_equal(kv_rig_try_line(&rig, 0, lines[i], false), OLTP_CONFLICT);
		assert_int_equal(kv_rig_try_line(&rig, 0, lines[i], true), OLTP_CONFLICT);
		oltp_txn_abort(rig.workers[3]);
		expect_reply(&rig, "GET a", "$1\r\n1\r\n");
		expect_reply(&rig, "EXISTS b", ":0\r\n");
	}
	/* EXEC keeps what was queued for the next attempt. */
	expect_reply(&rig, "UNWATCH", "+OK\r\n");
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "SET b 7", "+QUEUED\r\n");
	expect_reply(&rig, "INCR a", "+QUEUED\r\n");
	hold_a();
	assert_int_equal(kv_rig_try_line(&rig, 0, "EXEC", false), OLTP_CONFLICT);
	oltp_txn_abort(rig.workers[3]);
	assert_int_equal(kv_rig_try_line(&rig, 0, "EXEC", true), OLTP_OK);
	expect_last(&rig, "*2\r\n+OK\r\n:2\r\n");
	/* What the worker cannot do: the request is given up, the session goes on. */
	expect_reply(&rig, "MULTI", "+OK\r\n");
	expect_reply(&rig, "INCR a", "+QUEUED\r\n");
	hold_a();
	assert_int_equal(kv_rig_try_line(&rig, 0, "EXEC", false), OLTP_CONFLICT);
	oltp_txn_abort(rig.workers[3]);
	kv_give_up(rig.sessions[0], OLTP_IO, &rig.out);
	expect_last(&rig, "-IOERR the disk has failed, for the log or for this key\r\n");
	expect_reply(&rig, "GET a", "$1\r\n2\r\n");
}

/* Threads move amounts between accounts; whoever looks sees all of a move or nothing. */

#define ACCOUNTS	6u
#define MOVES		(1600u / DURABLE_FEWER)	/* even */

struct mover {
	pthread_t thread;
	uint32_t i;
	struct resp_out out;
	uint64_t random;
	bool is_wrong;
};

static void run_line(struct mover *m, const char *line)
{
	struct resp_arg args[16];
	enum kv_after after;
	uint32_t n = 0;
	uint64_t epoch;
	bool retry = false;

	for (const char *at = line; *at; at += strcspn(at, " "), at += *at == ' ') {
		args[n].bytes = at;
		args[n++].n = (uint32_t)strcspn(at, " ");
	}
	resp_out_reset(&m->out);
	while (kv_run(rig.sessions[m->i], rig.workers[m->i], args, n, retry, &m->out, &epoch,
		      &after) || after == KV_AGAIN)
		retry = true;
	*resp_out_reserve(&m->out, 1) = '\0';
}

static void *move(void *arg)
{
	struct mover *m = arg;
	char line[64];

	for (uint32_t i = 0; i < MOVES; i++) {
		uint32_t from, to;

		m->random ^= m->random << 13;
		m->random ^= m->random >> 7;
		m->random ^= m->random << 17;
		from = (uint32_t)(m->random >> 8) % ACCOUNTS;
		to = (uint32_t)(m->random >> 20) % ACCOUNTS;
		run_line(m, "MULTI");
		snprintf(line, sizeof(line), "DECRBY account%u 3", from);
		run_line(m, line);
		snprintf(line, sizeof(line), "HINCRBY hash account%u 3", to);
		run_line(m, line);
		snprintf(line, sizeof(line), "INCR moves%u", m->i);
		run_line(m, line);
		run_line(m, "EXEC");
		m->is_wrong |= strncmp(m->out.bytes, "*3\r\n:", 5) != 0;
	}
	return NULL;
}

/* The sum of all integers in a reply, which are short strings. */
static int64_t sum(const char *reply)
{
	int64_t n = 0;
	const char *at = reply;

	while ((at = strstr(at, "\r\n"))) {
		at += 2;
		if (*at == '-' || (*at >= '0' && *at <= '9'))
			n += strtoll(at, NULL, 10);
	}
	return n;
}

static void *look(void *arg)
{
	struct mover *m = arg;

	for (uint32_t i = 0; i < MOVES; i++) {
		run_line(m, "MULTI");
		run_line(m, "MGET account0 account1 account2 account3 account4 account5");
		run_line(m, "HVALS hash");
		run_line(m, "EXEC");
		m->is_wrong |= sum(m->out.bytes) != 0;
	}
	return NULL;
}

static void test_transfers_of_many_workers(void **state)
{
	(void)state;
	static struct mover movers[KV_RIG_SESSIONS];
	char reply[64];

	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		movers[i] = (struct mover){ .i = i, .random = 88172645463325252ull + i };
		resp_out_init(&movers[i].out, 1 << 20);
		assert_int_equal(pthread_create(&movers[i].thread, NULL, i ? move : look,
						&movers[i]), 0);
	}
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		pthread_join(movers[i].thread, NULL);
		assert_false(movers[i].is_wrong);
		resp_out_finish(&movers[i].out);
	}
	for (uint32_t i = 1; i < KV_RIG_SESSIONS; i++) {
		char line[32];

		snprintf(line, sizeof(line), "INCRBY moves%u 0", i);
		assert_int_equal(kv_rig_integer(&rig, line), MOVES);
	}
	snprintf(reply, sizeof(reply), ":%u\r\n", 3 + ACCOUNTS + 1);
	expect_reply(&rig, "DBSIZE", reply);
}

/* The counters of all threads together: none is lost. */
static void *count(void *arg)
{
	struct mover *m = arg;

	for (uint32_t i = 0; i < MOVES; i++)
		run_line(m, i % 2 ? "INCR n" : "HINCRBY h n 1");
	return NULL;
}

static void test_counting_of_many_workers(void **state)
{
	(void)state;
	static struct mover movers[KV_RIG_SESSIONS];

	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		movers[i] = (struct mover){ .i = i };
		resp_out_init(&movers[i].out, 1 << 20);
		assert_int_equal(pthread_create(&movers[i].thread, NULL, count, &movers[i]), 0);
	}
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		pthread_join(movers[i].thread, NULL);
		resp_out_finish(&movers[i].out);
	}
	assert_int_equal(kv_rig_integer(&rig, "INCRBY n 0"), KV_RIG_SESSIONS * MOVES / 2);
	assert_int_equal(kv_rig_integer(&rig, "HINCRBY h n 0"), KV_RIG_SESSIONS * MOVES / 2);
}

/* Anything at once, on few keys whose hashes collide: the audit says whether all fits together. */
static void *mix(void *arg)
{
	static const char *const forms[] = {
		"SET k%u %u", "SET k%u $%u", "DEL k%u k%u", "HSET k%u f%u v", "HDEL k%u f%u f1",
		"APPEND k%u $%u", "GETDEL k%u", "INCR k%u", "HINCRBY k%u f%u 1", "SCAN 0 COUNT 50",
		"MSET k%u a k%u $300", "RANDOMKEY", "HGETALL k%u", "SETNX k%u $%u", "KEYS *",
	};
	struct mover *m = arg;
	char line[64], long_line[2100];

	for (uint32_t i = 0; i < 3 * MOVES; i++) {
		const char *form, *at;
		uint32_t n;

		m->random ^= m->random << 13;
		m->random ^= m->random >> 7;
		m->random ^= m->random << 17;
		form = forms[(m->random >> 40) % (sizeof(forms) / sizeof(forms[0]))];
		n = (uint32_t)(m->random >> 8) % 1000;
		snprintf(line, sizeof(line), form, (uint32_t)(m->random >> 20) % 12,
			 strchr(form, '$') ? n : n % 12);
		at = strchr(line, '$');
		if (at) {	/* so many letters */
			n = (uint32_t)strtoul(at + 1, NULL, 10);
			snprintf(long_line, sizeof(long_line), "%.*s%0*u", (int)(at - line), line,
				 (int)n + 1, 0u);
		} else {
			snprintf(long_line, sizeof(long_line), "%s", line);
		}
		run_line(m, i % 500 == 499 ? "FLUSHALL" : long_line);
	}
	return NULL;
}

static void test_anything_of_many_workers(void **state)
{
	static struct mover movers[KV_RIG_SESSIONS];

	rig = (struct kv_rig){ .engine_config.cc = *(const enum oltp_cc *)*state,
			       .config.hash_bits = 3 };
	kv_rig_open_with(&rig);
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		movers[i] = (struct mover){ .i = i, .random = 88172645463325252ull + i };
		resp_out_init(&movers[i].out, 1 << 20);
		assert_int_equal(pthread_create(&movers[i].thread, NULL, mix, &movers[i]), 0);
	}
	for (uint32_t i = 0; i < KV_RIG_SESSIONS; i++) {
		pthread_join(movers[i].thread, NULL);
		resp_out_finish(&movers[i].out);
	}
}

int main(void)
{
	static const enum oltp_cc no_wait = OLTP_CC_NO_WAIT, wait_die = OLTP_CC_WAIT_DIE,
				  wound_wait = OLTP_CC_WOUND_WAIT;
#define SCHEME(name, cc) \
	{ #name " (" #cc ")", name, set_up_scheme, kv_rig_tear_down, (void *)(uintptr_t)&cc }
#define MIX(name, cc) \
	{ #name " (" #cc ")", name, NULL, kv_rig_tear_down, (void *)(uintptr_t)&cc }
	const struct CMUnitTest tests[] = {
		KV_TEST(test_queue_and_exec),
		KV_TEST(test_errors),
		KV_TEST(test_watch),
		KV_TEST(test_watch_sees_a_key_that_went_and_came),
		KV_TEST(test_watch_sees_a_key_that_came_and_went),
		KV_TEST(test_limits),
		KV_TEST(test_conflict),
		SCHEME(test_transfers_of_many_workers, no_wait),
		SCHEME(test_transfers_of_many_workers, wait_die),
		SCHEME(test_transfers_of_many_workers, wound_wait),
		SCHEME(test_counting_of_many_workers, no_wait),
		SCHEME(test_counting_of_many_workers, wait_die),
		SCHEME(test_counting_of_many_workers, wound_wait),
		MIX(test_anything_of_many_workers, no_wait),
		MIX(test_anything_of_many_workers, wait_die),
		MIX(test_anything_of_many_workers, wound_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
