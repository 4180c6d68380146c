// SPDX-License-Identifier: GPL-2.0-or-later
/* The TPC-C-like procedures: what each does, that they fit together, with and without gates. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/oltp-engine/server/kv/kv_rig.h"
#include "oltp-engine/server/kv/keyspace.h"
#include "oltp-engine/server/kv/private.h"
#include "oltp-engine/server/kv/tpcc/tpcc.h"
#include "oltp-engine/src/base/random.h"

#define WAREHOUSES	2u
#define CUSTOMERS	40u
#define ITEMS		100u
#define SCALE		"40 100 7"	/* and the seed */
#define NUMBERS_MAX	128u
#define UNIT_BITS	8u

/* Numbers of the last reply, one of them an integer or all those of an array. */
static uint32_t numbers_of(const struct resp_out *out, int64_t *ret)
{
	const char *at = out->bytes, *end = out->bytes + out->n;
	uint32_t n = 0;

	while (at < end && n < NUMBERS_MAX) {
		if (*at == '-')
			fail_msg("%.*s", (int)out->n, out->bytes);
		if (*at == ':')
			ret[n++] = strtoll(at + 1, NULL, 10);
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : end;
	}
	return n;
}

static void do_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void do_line(const char *format, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	kv_rig_do(&rig, 0, line);
}

static void load_rows(const char *part, uint32_t w, uint32_t d, uint32_t last)
{
	for (uint32_t from = 1; from <= last; from += 30) {
		do_line("FCALL tpcc_load 0 %s %u %u %u %u " SCALE, part, w, d, from,
			last - from + 1 < 30 ? last - from + 1 : 30);
		expect_last(&rig, "+OK\r\n");
	}
}

static void load_all(void)
{
	for (uint32_t w = 1; w <= WAREHOUSES; w++) {
		do_line("FCALL tpcc_load 0 warehouse %u 1 0 0 " SCALE, w);
		expect_last(&rig, "+OK\r\n");
		load_rows("stock", w, 1, ITEMS);
		for (uint32_t d = 1; d <= 10; d++) {
			do_line("FCALL tpcc_load 0 district %u %u 0 0 " SCALE, w, d);
			expect_last(&rig, "+OK\r\n");
			load_rows("customers", w, d, CUSTOMERS);
			load_rows("orders", w, d, CUSTOMERS);
		}
	}
}

struct sums {
	int64_t violations, ytd, customers_ytd, delivered, balances, next_o, payments, deliveries;
};

/* All conditions, over all tables. */
static struct sums check_all(void)
{
	struct sums s = { 0 };
	int64_t v[NUMBERS_MAX], next_o;

	for (uint32_t w = 1; w <= WAREHOUSES; w++) {
		do_line("FCALL_RO tpcc_check 0 warehouse %u 0 0 0", w);
		assert_int_equal(numbers_of(&rig.out, v), 5);
		s.violations += v[0];
		s.ytd += v[1];
		for (uint32_t d = 1; d <= 10; d++) {
			do_line("FCALL_RO tpcc_check 0 district %u %u 0 0", w, d);
			assert_int_equal(numbers_of(&rig.out, v), 5);
			s.violations += v[0];
			s.next_o += next_o = v[1];
			for (int64_t o = 1; o < next_o; o += 100) {
				do_line("FCALL_RO tpcc_check 0 orders %u %u %lld %lld", w, d,
					(long long)o,
					(long long)(next_o - o < 100 ? next_o - o : 100));
				assert_int_equal(numbers_of(&rig.out, v), 5);
				s.violations += v[0];
				s.delivered += v[2];
			}
			do_line("FCALL_RO tpcc_check 0 customers %u %u 1 %u", w, d, CUSTOMERS);
			assert_int_equal(numbers_of(&rig.out, v), 5);
			s.violations += v[0];
			s.payments += v[1];
			s.balances += v[2];
			s.customers_ytd += v[3];
			s.deliveries += v[4];
		}
	}
	return s;
}

static struct sums expect_consistent(void)
{
	struct sums s = check_all();

	assert_int_equal(s.violations, 0);
	assert_int_equal(s.ytd, s.customers_ytd);
	assert_int_equal(s.balances, s.delivered);
	return s;
}

static int set_up(void **state)
{
	(void)state;
	rig = (struct kv_rig){ .config.rows = 40000 };
	kv_rig_open_with(&rig);
	load_all();
	return 0;
}

static void test_load(void **state)
{
	struct sums s = expect_consistent();

	(void)state;
	assert_int_equal(s.next_o, WAREHOUSES * 10 * (CUSTOMERS + 1));
	assert_int_equal(s.payments, WAREHOUSES * 10 * CUSTOMERS);
	assert_int_equal(s.ytd, (int64_t)WAREHOUSES * 10 * CUSTOMERS * 1000);
	assert_int_equal(kv_rig_integer(&rig, "HLEN tpcc:c:1:1:5"), 4);
	assert_int_equal(kv_rig_integer(&rig, "HLEN tpcc:d:2:10"), 2 + CUSTOMERS * 3 / 10);
	/* A part again changes nothing. */
	load_rows("orders", 1, 3, CUSTOMERS);
	assert_int_equal(expect_consistent().next_o, s.next_o);
}

static void test_one_of_each(void **state)
{
	int64_t v[NUMBERS_MAX], o[NUMBERS_MAX];

	(void)state;
	/* Two lines of one item, one of another warehouse. */
	do_line("FCALL tpcc_new_order 2 tpcc:w:1 tpcc:d:1:2 1 2 7 5 1 3 5 1 4 9 2 10");
	assert_int_equal(numbers_of(&rig.out, v), 2);
	assert_int_equal(v[0], CUSTOMERS + 1);
	assert_true(v[1] > 0);
	do_line("FCALL tpcc_order_status 0 1 2 7 0");
	assert_int_equal(numbers_of(&rig.out, o), 5 + 3 * 5);
	assert_int_equal(o[0], 7);
	assert_int_equal(o[2], CUSTOMERS + 1);
	assert_int_equal(o[4], 0);
	assert_int_equal(o[5], 5);
	assert_int_equal(o[7], 3);
	assert_int_equal(o[16], 2);
	assert_int_equal(o[17], 10);
	/* An item that is not there: nothing has changed. */
	expect_reply(&rig, "FCALL tpcc_new_order 0 1 2 7 5 1 3 101 1 4", "$-1\r\n");
	do_line("FCALL tpcc_order_status 0 1 2 7 0");
	numbers_of(&rig.out, v);
	assert_int_equal(v[2], CUSTOMERS + 1);
	/* By number and by name: name 8 is that of customer 9, as there are 40 of 40. */
	do_line("FCALL tpcc_payment 0 1 2 2 3 4 0 12345");
	assert_int_equal(numbers_of(&rig.out, v), 2);
	assert_int_equal(v[0], 4);
	assert_int_equal(v[1], -13345);
	do_line("FCALL tpcc_payment 0 1 2 1 2 0 8 100");
	numbers_of(&rig.out, v);
	assert_int_equal(v[0], 9);
	assert_int_equal(kv_rig_integer(&rig, "HLEN tpcc:c:1:2:9"), 5);
	expect_consistent();
	/* The oldest of each district. */
	do_line("FCALL tpcc_delivery 0 1 3");
	assert_int_equal(numbers_of(&rig.out, v), 1);
	assert_int_equal(v[0], 10);
	assert_int_equal(expect_consistent().deliveries, 10);
	for (uint32_t i = 0; i < CUSTOMERS * 3 / 10 - 1; i++)
		do_line("FCALL tpcc_delivery 0 1 3");
	/* One district has had one order more. */
	assert_int_equal(kv_rig_integer(&rig, "FCALL tpcc_delivery 0 1 3"), 1);
	assert_int_equal(kv_rig_integer(&rig, "FCALL tpcc_delivery 0 1 3"), 0);
	assert_int_equal(expect_consistent().deliveries, 10 * CUSTOMERS * 3 / 10 + 1);
	assert_int_equal(kv_rig_integer(&rig, "FCALL_RO tpcc_stock_level 0 1 2 0"), 0);
	assert_true(kv_rig_integer(&rig, "FCALL_RO tpcc_stock_level 0 1 2 1000") > 50);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"tpcc_new_order 0 1 2 7", "tpcc_new_order 0 1 2 7 5 1",
		"tpcc_new_order 0 1 11 7 5 1 3",
		"tpcc_new_order 0 0 1 7 5 1 3", "tpcc_new_order 0 1 1 7 5 1 11",
		"tpcc_new_order 0 1 1 41 5 1 1", "tpcc_new_order 0 1 1 x 5 1 1",
		"tpcc_new_order 0 3 1 1 5 1 1", "tpcc_payment 0 1 1 1 1 0 40 5",
		"tpcc_payment 0 1 1 1 1 1 1", "tpcc_delivery 0 1 11", "tpcc_delivery 0 9 1",
		"tpcc_order_status 0 1 1 41 0", "tpcc_stock_level 0 1 1",
		"tpcc_load 0", "tpcc_load 0 stock 1 1 1 201 40 1000 7",
		"tpcc_load 0 stock 1 1 100 2 40 100 7", "tpcc_load 0 stock 1 1 0 2 40 100 7",
		"tpcc_load 0 stock 1 1 4294967295 2 40 100 7",
		"tpcc_load 0 other 1 1 1 1 40 100 7",
		"tpcc_load 0 stock 1 1 1 1 29 100 7", "tpcc_check 0",
		"tpcc_check 0 orders 1 1 1 201",
		"tpcc_check 0 other 1 1 1 1", "tpcc_check 0 warehouse 3 0 0 0",
	};
	char line[128];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(line, sizeof(line), "FCALL %s", bad[i]);
		kv_rig_do(&rig, 0, line);
		if (rig.out.bytes[0] != '-')
			fail_msg("%s: %.*s", line, (int)rig.out.n, rig.out.bytes);
	}
	expect_begins(&rig, "FCALL_RO tpcc_payment 0 1 1 1 1 1 0 5", "-ERR Can not execute");
	expect_consistent();
}

/* A digest of all tables: what SCAN shows, and of each hash all fields. */
static uint64_t digest_all(void)
{
	static const char *const keys[] = {
		"tpcc:w:1", "tpcc:d:1:1", "tpcc:d:1:2", "tpcc:c:1:1:2", "tpcc:s:1:5", "tpcc:s:1:6",
		"tpcc:o:1:1:29", "tpcc:o:1:1:41",
	};
	uint64_t digest = (uint64_t)kv_rig_integer(&rig, "DBSIZE");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		do_line("HGETALL %s", keys[i]);
		for (size_t k = 0; k < rig.out.n; k++)
			digest = random64_mix(digest ^ (uint8_t)rig.out.bytes[k]);
	}
	return digest;
}

/* What is missing shows only after something was changed: that is undone (K2), also in EXEC. */
static void test_undone(void **state)
{
	static const char *const bad[] = {
		"FCALL tpcc_new_order 0 1 1 41 5 1 1 6 1 1",	/* no such customer */
		"FCALL tpcc_payment 0 3 1 1 1 2 0 5",		/* no such warehouse */
		"FCALL tpcc_delivery 0 1 3",			/* no customer in district 2 */
	};
	uint64_t before;
	char line[64];

	(void)state;
	for (uint32_t i = 1; i <= CUSTOMERS; i++) {
		snprintf(line, sizeof(line), "HDEL tpcc:c:1:2:%u a", i);
		assert_int_equal(kv_rig_integer(&rig, line), 1);
	}
	before = digest_all();
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		expect_begins(&rig, bad[i], "-ERR tpcc: tpcc:");
		if (digest_all() != before)
			fail_msg("%s has changed something", bad[i]);
		kv_rig_do(&rig, 0, "MULTI");
		expect_reply(&rig, "SET other 1", "+QUEUED\r\n");
		expect_reply(&rig, bad[i], "+QUEUED\r\n");
		expect_reply(&rig, "SET another 1", "+QUEUED\r\n");
		expect_begins(&rig, "EXEC", "-ERR tpcc: tpcc:");
		assert_int_equal(digest_all(), before);
	}
	/* The reply to EXEC was that error alone, and the session goes on. */
	expect_reply(&rig, "MGET other another", "*2\r\n$-1\r\n$-1\r\n");
	/* One that has changed nothing is an error in its place. */
	kv_rig_do(&rig, 0, "MULTI");
	kv_rig_do(&rig, 0, "SET other 1");
	kv_rig_do(&rig, 0, "FCALL tpcc_delivery 0 1 11");
	expect_reply(&rig, "EXEC", "*2\r\n+OK\r\n-ERR tpcc: no such carrier\r\n");
	expect_reply(&rig, "GET other", "$1\r\n1\r\n");
}

/* Conditions that do not hold are found. */
static void test_check_finds(void **state)
{
	(void)state;
	expect_consistent();
	kv_rig_do(&rig, 0, "HDEL tpcc:o:1:4:40 3");
	expect_begins(&rig, "FCALL_RO tpcc_check 0 orders 1 4 40 1", "-ERR tpcc: tpcc:o:1:4:40");
	kv_rig_do(&rig, 0, "HDEL tpcc:d:1:5 n40");
	assert_int_equal(kv_rig_integer(&rig, "HLEN tpcc:d:1:5"), 13);
	expect_begins(&rig, "FCALL_RO tpcc_check 0 district 1 5 0 0", "*5\r\n:2\r\n");
	kv_rig_do(&rig, 0, "DEL tpcc:c:1:1:3");
	expect_begins(&rig, "FCALL_RO tpcc_check 0 customers 1 1 1 5", "-ERR tpcc: tpcc:c:1:1:3");
	kv_rig_do(&rig, 0, "HDEL tpcc:c:1:1:4 h1");
	expect_begins(&rig, "FCALL_RO tpcc_check 0 customers 1 1 4 1", "-ERR tpcc: tpcc:c:1:1:4");
}

/* ---- each condition, broken ---- */

/* Adds to an integer in the value of a field. */
struct change {
	const char *key, *field;
	size_t at, bytes;
	int64_t by;
};

struct breakage {
	const char *condition;
	struct change changes[2];
	int64_t violations;	/* that the server finds */
	bool are_sums_wrong;	/* which the caller finds */
};

#define IN(type, member)	offsetof(struct type, member), sizeof(((struct type *)0)->member)

/* Of each condition of 3.3.2 that is checked: 1 to 10 and 12. */
static const struct breakage breakages[] = {
	{ "1: W_YTD is the sum of D_YTD",
	  { { "tpcc:d:1:3", "a", IN(tpcc_district, ytd), 1 } }, 1, false },
	{ "2: D_NEXT_O_ID follows the last order",
	  { { "tpcc:d:1:2", "a", IN(tpcc_district, next_o), -1 } }, 3, false },
	{ "3: new orders have no gap",
	  { { "tpcc:d:1:2", "a", IN(tpcc_district, next_delivery), 1 } }, 2, false },
	{ "4, 6: an order has its lines",
	  { { "tpcc:o:1:2:3", "a", IN(tpcc_order, lines), -1 } }, 1, false },
	{ "5: only new orders have no carrier",
	  { { "tpcc:o:1:2:40", "a", IN(tpcc_order, carrier), 1 } }, 1, false },
	{ "7: only lines of new orders have no date",
	  { { "tpcc:o:1:2:40", "2", IN(tpcc_line, delivery_date), 1 } }, 1, false },
	{ "8, 9: W_YTD and D_YTD are what was paid",
	  { { "tpcc:w:1", "a", IN(tpcc_warehouse, ytd), 1 },
	    { "tpcc:d:1:3", "a", IN(tpcc_district, ytd), 1 } }, 0, true },
	{ "8, 9, 10: C_YTD_PAYMENT is what was paid",
	  { { "tpcc:c:1:2:3", "h1", IN(tpcc_history, amount), 1 } }, 1, false },
	{ "10, 12: C_BALANCE is what was delivered and not paid",
	  { { "tpcc:c:1:2:3", "a", IN(tpcc_customer, balance), 1 } }, 0, true },
	{ "10, 12: what was delivered is in C_BALANCE",
	  { { "tpcc:o:1:2:1", "1", IN(tpcc_line, amount), 1 } }, 0, true },
};

static void apply(const struct change *change, int64_t by)
{
	char line[64], value[256];
	struct resp_arg args[] = {
		{ "HSET", 4 }, { change->key, (uint32_t)strlen(change->key) },
		{ change->field, (uint32_t)strlen(change->field) },
		{ value, 0 },
	};
	const char *bytes;
	int64_t number = 0;

	snprintf(line, sizeof(line), "HGET %s %s", change->key, change->field);
	kv_rig_do(&rig, 0, line);
	args[3].n = (uint32_t)strtoul(rig.out.bytes + 1, NULL, 10);
	bytes = (const char *)memchr(rig.out.bytes, '\n', rig.out.n) + 1;
	assert_in_range(args[3].n, change->at + change->bytes, sizeof(value));
	memcpy(value, bytes, args[3].n);
	memcpy(&number, value + change->at, change->bytes);
	number += by;
	memcpy(value + change->at, &number, change->bytes);
	kv_rig_run(&rig, 0, args, 4);
	expect_last(&rig, ":0\r\n");
}

static void test_each_condition(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(breakages) / sizeof(*breakages); i++) {
		const struct breakage *b = &breakages[i];
		struct sums s;

		for (uint32_t k = 0; k < 2 && b->changes[k].key; k++)
			apply(&b->changes[k], b->changes[k].by);
		s = check_all();
		if (s.violations != b->violations ||
		    (s.ytd != s.customers_ytd || s.balances != s.delivered) != b->are_sums_wrong)
			fail_msg("%s: %lld violations, sums %lld %lld, %lld %lld", b->condition,
				 (long long)s.violations, (long long)s.ytd,
				 (long long)s.customers_ytd, (long long)s.balances,
				 (long long)s.delivered);
		for (uint32_t k = 0; k < 2 && b->changes[k].key; k++)
			apply(&b->changes[k], -b->changes[k].by);
		expect_consistent();
	}
}

/* ---- two workers at once ---- */

#define CALLS	1500u

struct client {
	pthread_t thread;
	uint32_t i;
	uint64_t conflicts, orders, payments;
	struct resp_out out;
};

/* Few districts and items, so that they meet. */
static void draw_line(struct random64 *random, char *line, size_t room)
{
	uint32_t d = 1 + (uint32_t)random64_below(random, 2);
	uint32_t w = 1 + (uint32_t)random64_below(random, 2);
	uint32_t item = 1 + (uint32_t)random64_below(random, 5);

	switch (random64_below(random, 10)) {
	case 0: case 1: case 2: case 3:
		snprintf(line, room, "FCALL tpcc_new_order 0 %u %u %u %u %u 1 %u 1 2", w, d,
			 1 + (uint32_t)random64_below(random, 5), item, 3 - w, 6 - item);
		break;
	case 4: case 5: case 6:
		snprintf(line, room, "FCALL tpcc_payment 0 %u %u %u %u %u 3 77", w, d, 3 - w, d,
			 (uint32_t)random64_below(random, 5));
		break;
	case 7:
		snprintf(line, room, "FCALL tpcc_delivery 0 %u 1", w);
		break;
	case 8:
		snprintf(line, room, "FCALL_RO tpcc_order_status 0 %u %u 0 2", w, d);
		break;
	default:
		snprintf(line, room, "FCALL_RO tpcc_stock_level 0 %u %u 15", w, d);
		break;
	}
}

static uint32_t split(char *line, struct resp_arg *args)
{
	char *rest = NULL;
	uint32_t n = 0;

	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		args[n++] = (struct resp_arg){ word, (uint32_t)strlen(word) };
	return n;
}

static void *client_main(void *ctx)
{
	struct client *client = ctx;
	struct random64 random = { client->i };

	resp_out_init(&client->out, 1 << 20);
	for (uint32_t k = 0; k < CALLS; k++) {
		struct resp_arg args[32];
		char line[256];
		enum kv_after after;
		uint64_t epoch;
		bool retry = false;
		uint32_t n;

		draw_line(&random, line, sizeof(line));
		n = split(line, args);
		resp_out_reset(&client->out);
		while (kv_run(rig.sessions[client->i], rig.workers[client->i], args, n, retry,
			      &client->out, &epoch, &after) == OLTP_CONFLICT) {
			retry = true;
			client->conflicts++;
		}
		if (client->out.bytes[0] == '-')
			fail_msg("%.*s", (int)client->out.n, client->out.bytes);
		client->orders += arg_is(&args[1], "TPCC_NEW_ORDER");
		client->payments += arg_is(&args[1], "TPCC_PAYMENT");
	}
	resp_out_finish(&client->out);
	return NULL;
}

static void test_two_workers(void **state)
{
	struct client clients[2] = { { .i = 1 }, { .i = 2 } };
	struct sums before = expect_consistent(), after;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&clients[i].thread, NULL, client_main, &clients[i]),
				 0);
	for (uint32_t i = 0; i < 2; i++)
		pthread_join(clients[i].thread, NULL);
	after = expect_consistent();
	print_message("conflicts: %llu\n",
		      (unsigned long long)(clients[0].conflicts + clients[1].conflicts));
	assert_int_equal(after.next_o - before.next_o, clients[0].orders + clients[1].orders);
	assert_int_equal(after.payments - before.payments,
			 clients[0].payments + clients[1].payments);
	assert_true(after.deliveries > 10);
}

/* ---- units that are not here ---- */

struct gate_rig {
	bool is_closed[1u << UNIT_BITS];
	uint32_t pins[1u << UNIT_BITS];
	uint32_t n_leaves, n_waits;
	bool is_whole;
};

static struct gate_rig gate_rig;

static bool try_pin(struct kv_pins *pins)
{
	uint32_t unit = pins->units[pins->n_pinned];

	if (gate_rig.is_closed[unit])
		return false;
	gate_rig.pins[unit]++;
	pins->n_pinned++;
	return true;
}

static enum kv_gate enter(void *ctx, struct kv_pins *pins)
{
	(void)ctx;
	for (uint32_t i = 1; i < pins->n; i++)
		assert_true(pins->units[i - 1] < pins->units[i]);
	while (pins->n_pinned < pins->n && try_pin(pins))
		;
	pins->state = pins->n_pinned == pins->n ? KV_GATE_IN : KV_GATE_WAIT;
	gate_rig.n_waits += pins->state == KV_GATE_WAIT;
	return pins->state;
}

static bool pin(void *ctx, struct kv_pins *pins)
{
	(void)ctx;
	assert_int_equal(pins->state, KV_GATE_IN);
	assert_int_equal(pins->n, pins->n_pinned + 1);
	return try_pin(pins);
}

static void leave(void *ctx, struct kv_pins *pins)
{
	(void)ctx;
	for (uint32_t i = 0; i < pins->n_pinned; i++) {
		assert_true(gate_rig.pins[pins->units[i]] > 0);
		gate_rig.pins[pins->units[i]]--;
	}
	pins->n_pinned = 0;
	pins->state = KV_GATE_OUT;
	gate_rig.n_leaves++;
}

static bool is_whole(void *ctx)
{
	(void)ctx;
	return gate_rig.is_whole;
}

static const struct kv_gate_ops gate_ops = {
	.enter = enter, .pin = pin, .leave = leave, .is_whole = is_whole,
};

static int set_up_gates(void **state)
{
	(void)state;
	memset(&gate_rig, 0, sizeof(gate_rig));
	rig = (struct kv_rig){ .config = { .rows = 40000, .gate = &gate_ops,
					   .unit_bits = UNIT_BITS } };
	kv_rig_open_with(&rig);
	load_all();
	return 0;
}

static uint32_t unit_of_key(const char *key)
{
	const struct resp_arg name = { key, (uint32_t)strlen(key) };

	return unit_of(rig.kv, keyspace_home(&rig.kv->ks, OWNER_KEYS, &name));
}

static void expect_no_pins(void)
{
	for (uint32_t u = 0; u < 1u << UNIT_BITS; u++)
		assert_int_equal(gate_rig.pins[u], 0);
}

/*
 * A key that the procedure meets as it runs is not here: it waits with no pins but those below,
 * has done nothing, and all that it needs is pinned when it runs again.
 */
static void test_waits_for_what_it_meets(void **state)
{
	static const char line[] = "FCALL tpcc_payment 2 tpcc:w:1 tpcc:d:1:2 1 2 2 3 4 0 500";
	uint32_t unit = unit_of_key("tpcc:c:2:3:4");
	int64_t v[NUMBERS_MAX];

	(void)state;
	expect_no_pins();
	gate_rig.is_closed[unit] = true;
	assert_int_equal(kv_rig_try_line(&rig, 0, line, false), OLTP_OK);
	assert_int_equal(rig.after, KV_WAIT);
	assert_int_equal(rig.out.n, 0);
	assert_int_equal(gate_rig.n_waits, 1);
	for (uint32_t u = unit; u < 1u << UNIT_BITS; u++)
		assert_int_equal(gate_rig.pins[u], 0);
	gate_rig.is_closed[unit] = false;
	assert_int_equal(enter(NULL, &rig.sessions[0]->pins), KV_GATE_IN);
	assert_int_equal(gate_rig.pins[unit], 1);
	assert_int_equal(kv_rig_try_line(&rig, 0, line, true), OLTP_OK);
	assert_int_equal(rig.after, KV_GO_ON);
	numbers_of(&rig.out, v);
	assert_int_equal(v[0], 4);
	assert_int_equal(v[1], -1500);
	expect_no_pins();
	expect_consistent();
	expect_no_pins();
}

/* Units come one after the other, always others than before; also within EXEC. */
static void test_meets_many(void **state)
{
	uint32_t waits = 0;
	bool retry = false;

	(void)state;
	kv_rig_do(&rig, 0, "MULTI");
	kv_rig_do(&rig, 0, "FCALL tpcc_delivery 0 1 5");
	kv_rig_do(&rig, 0, "FCALL tpcc_stock_level 0 1 1 15");
	for (uint32_t u = 0; u < 1u << UNIT_BITS; u++)
		gate_rig.is_closed[u] = true;
	for (;; retry = true) {
		struct kv_pins *pins = &rig.sessions[0]->pins;

		assert_int_equal(kv_rig_try_line(&rig, 0, "EXEC", retry), OLTP_OK);
		if (rig.after != KV_WAIT)
			break;
		waits++;
		assert_int_equal(rig.out.n, 0);
		for (uint32_t i = 0; i < pins->n; i++)
			gate_rig.is_closed[pins->units[i]] = false;
		assert_int_equal(enter(NULL, pins), KV_GATE_IN);
	}
	/* Districts, orders, customers; a district, orders, stock: each time all of a kind. */
	assert_in_range(waits, 4, 6);
	assert_int_equal(memcmp(rig.out.bytes, "*2\r\n:10\r\n", 9), 0);
	expect_no_pins();
	memset(gate_rig.is_closed, 0, sizeof(gate_rig.is_closed));
	expect_consistent();
}

/* Commands that need all units name them once, however many are in one EXEC. */
static void test_all_units_once(void **state)
{
	(void)state;
	gate_rig.is_whole = true;
	kv_rig_do(&rig, 0, "MULTI");
	for (uint32_t i = 0; i < 1000; i++)
		kv_rig_do(&rig, 0, i % 2 ? "DBSIZE" : "EXISTS tpcc:w:1");
	expect_begins(&rig, "EXEC", "*1000\r\n:1\r\n:");
	assert_in_range(rig.sessions[0]->pins.room, 1u << UNIT_BITS, 2000);
	expect_no_pins();
}

int main(void)
{
#define TEST(name, up)	cmocka_unit_test_setup_teardown(name, up, kv_rig_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_load, set_up),
		TEST(test_one_of_each, set_up),
		TEST(test_refused, set_up),
		TEST(test_undone, set_up),
		TEST(test_check_finds, set_up),
		TEST(test_each_condition, set_up),
		TEST(test_two_workers, set_up),
		TEST(test_waits_for_what_it_meets, set_up_gates),
		TEST(test_meets_many, set_up_gates),
		TEST(test_all_units_once, set_up_gates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
