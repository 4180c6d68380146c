// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests of the load generator: which come next, how long they wait, what may be repeated. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/load/decide/counts.h"
#include "oltp-engine/load/decide/figures.h"
#include "oltp-engine/load/decide/mix.h"
#include "oltp-engine/load/decide/queue.h"

#define DRAWS	100000u

static void test_mix_parse(void **state)
{
	static const char *const bad[] = {
		"", "select", "select=", "select=80,", "select=80,select=20", "select=1001",
		"other=1",
		"80/20", "80/20/0/0/0", "80/20/0/", "0/0/0/0", "80/20/0/x", "80/20/0/1001",
		"select=80/20", "select=1/update=2",
		"select=-1", "select=8x", "select=0", ",select=1", "select=1,,update=1", "=1",
	};
	uint32_t weights[LOAD_MIX_KINDS];

	(void)state;
	assert_int_equal(load_mix_parse("select=20,update=40,insert=20,delete=20", weights), 0);
	assert_int_equal(weights[LOAD_SELECT], 20);
	assert_int_equal(weights[LOAD_UPDATE], 40);
	assert_int_equal(weights[LOAD_INSERT], 20);
	assert_int_equal(weights[LOAD_DELETE], 20);
	assert_int_equal(weights[LOAD_GET] + weights[LOAD_SET] + weights[LOAD_COUNT], 0);
	assert_int_equal(load_mix_parse("20/40/15/25", weights), 0);
	assert_int_equal(weights[LOAD_SELECT], 20);
	assert_int_equal(weights[LOAD_UPDATE], 40);
	assert_int_equal(weights[LOAD_INSERT], 15);
	assert_int_equal(weights[LOAD_DELETE], 25);
	assert_int_equal(weights[LOAD_GET] + weights[LOAD_SET] + weights[LOAD_COUNT], 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		weights[0] = 77;
		if (load_mix_parse(bad[i], weights) != -EINVAL || weights[0] != 77)
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void test_draw_keeps_the_mix(void **state)
{
	static const struct load_mix mix = {
		.weights = { [LOAD_SELECT] = 20, [LOAD_UPDATE] = 40, [LOAD_INSERT] = 20,
			     [LOAD_DELETE] = 20 },
		.rows = 1000, .counters = 1,
	};
	uint32_t kinds[LOAD_MIX_KINDS] = { 0 };
	uint64_t next_insert = mix.rows, deleted = mix.rows, most = 0;
	struct load_request r;
	struct load_draw draw;

	(void)state;
	load_draw_init(&draw, &mix, 1);
	for (uint32_t i = 0; i < DRAWS; i++) {
		load_draw_next(&draw, i, &r);
		kinds[r.kind]++;
		assert_int_equal(r.arrived_ns, i);
		assert_int_equal(r.n, LOAD_CRUD_ROWS);
		if (r.kind == LOAD_INSERT) {
			assert_int_equal(r.first, next_insert);
			next_insert += LOAD_CRUD_ROWS;
		} else if (r.kind == LOAD_DELETE) {
			/* What was inserted, in order, each once. */
			assert_int_equal(r.first, deleted);
			if (deleted < next_insert)
				deleted += LOAD_CRUD_ROWS;
		} else {
			assert_true(r.first + r.n <= mix.rows);
			most = r.first > most ? r.first : most;
		}
	}
	assert_int_equal(most, mix.rows - LOAD_CRUD_ROWS);
	assert_in_range(kinds[LOAD_SELECT], DRAWS / 5 - DRAWS / 100, DRAWS / 5 + DRAWS / 100);
	assert_in_range(kinds[LOAD_UPDATE], DRAWS * 2 / 5 - DRAWS / 100,
			DRAWS * 2 / 5 + DRAWS / 100);
	assert_int_equal(kinds[LOAD_GET] + kinds[LOAD_SET] + kinds[LOAD_COUNT], 0);
}

static void test_draw_is_uniform(void **state)
{
	static const struct load_mix mix = {
		.weights = { [LOAD_GET] = 1, [LOAD_COUNT] = 1 }, .rows = 10, .counters = 4,
	};
	uint32_t rows[10] = { 0 }, counters[4] = { 0 };
	struct load_request r;
	struct load_draw draw;

	(void)state;
	load_draw_init(&draw, &mix, 1);
	for (uint32_t i = 0; i < DRAWS; i++) {
		load_draw_next(&draw, 0, &r);
		assert_int_equal(r.n, 1);
		if (r.kind == LOAD_GET)
			rows[r.first]++;
		else
			counters[r.first]++;
	}
	for (uint32_t i = 0; i < 10; i++)
		assert_in_range(rows[i], DRAWS / 20 - DRAWS / 200, DRAWS / 20 + DRAWS / 200);
	for (uint32_t i = 0; i < 4; i++)
		assert_in_range(counters[i], DRAWS / 8 - DRAWS / 100, DRAWS / 8 + DRAWS / 100);
}

/* Few records get most requests, and all fields are updated. */
static void test_draw_of_records(void **state)
{
	static const struct load_mix mix = {
		.weights = { [LOAD_YCSB_READ] = 1, [LOAD_YCSB_UPDATE] = 1 }, .rows = 1000,
		.counters = 1,
	};
	uint32_t records[1000] = { 0 }, fields[LOAD_YCSB_FIELDS] = { 0 }, most = 0;
	struct load_request r;
	struct load_draw draw;

	(void)state;
	load_draw_init(&draw, &mix, 1);
	for (uint32_t i = 0; i < DRAWS; i++) {
		load_draw_next(&draw, 0, &r);
		assert_int_equal(r.n, 1);
		assert_true(r.first < 1000);
		records[r.first]++;
		if (r.kind == LOAD_YCSB_UPDATE)
			fields[r.field]++;
	}
	for (uint32_t i = 0; i < 1000; i++)
		most = records[i] > most ? records[i] : most;
	/* The hottest of 1000 has 1 / 7.5 of all. */
	assert_in_range(most, DRAWS / 9, DRAWS / 6);
	for (uint32_t i = 0; i < LOAD_YCSB_FIELDS; i++)
		assert_in_range(fields[i], DRAWS / 20 - DRAWS / 200, DRAWS / 20 + DRAWS / 200);
}

static void test_queue_drops_what_waited(void **state)
{
	struct load_queue *q = load_queue_create(4, 1000);
	struct load_request r;

	(void)state;
	assert_non_null(q);
	assert_int_equal(load_queue_expires(q), UINT64_MAX);
	assert_false(load_queue_take(q, &r));
	/* Several times around the ring. */
	for (uint64_t i = 0; i < 11; i++) {
		r = (struct load_request){ .arrived_ns = i * 10, .first = i };
		assert_true(load_queue_add(q, &r));
		r.arrived_ns += 5;
		assert_true(load_queue_add(q, &r));
		assert_int_equal(load_queue_expires(q), i * 10 + 1000);
		assert_false(load_queue_drop(q, i * 10 + 999, &r));
		assert_true(load_queue_drop(q, i * 10 + 1000, &r));
		assert_int_equal(r.arrived_ns, i * 10);
		assert_false(load_queue_drop(q, i * 10 + 1000, &r));
		assert_true(load_queue_take(q, &r));
		assert_int_equal(r.arrived_ns, i * 10 + 5);
	}
	load_queue_destroy(q);
	load_queue_destroy(NULL);
}

static void test_queue_order_and_room(void **state)
{
	struct load_queue *q = load_queue_create(3, UINT64_MAX);
	struct load_request r = { .arrived_ns = 5, .first = 1 };

	(void)state;
	assert_true(load_queue_add(q, &r));
	r.first = 2;
	assert_true(load_queue_add(q, &r));
	r.first = 0;
	assert_true(load_queue_return(q, &r));
	assert_false(load_queue_add(q, &r));
	assert_false(load_queue_return(q, &r));
	assert_int_equal(load_queue_length(q), 3);
	assert_int_equal(load_queue_expires(q), UINT64_MAX);
	for (uint64_t i = 0; i < 3; i++) {
		assert_true(load_queue_take(q, &r));
		assert_int_equal(r.first, i);
	}
	load_queue_destroy(q);
}

static void test_what_may_be_repeated(void **state)
{
	struct load_request r = { 0 };

	(void)state;
	for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
		bool changes = kind == LOAD_UPDATE || kind == LOAD_INSERT || kind == LOAD_DELETE ||
			       kind == LOAD_SET || kind == LOAD_COUNT || kind == LOAD_YCSB_UPDATE ||
			       kind == LOAD_NEW_ORDER || kind == LOAD_PAYMENT ||
			       kind == LOAD_DELIVERY;

		r.kind = kind;
		assert_true(load_may_repeat(&r, false));
		assert_int_equal(load_may_repeat(&r, true), !changes);
	}
}

static void test_counts(void **state)
{
	static const struct load_count counts[] = {
		{ .before = 10, .after = 15, .acknowledged = 5 },		/* right */
		{ .before = 0, .after = 7, .acknowledged = 5, .unknown = 2 },	/* all done */
		{ .before = 0, .after = 5, .acknowledged = 5, .unknown = 2 },	/* none done */
		{ .before = 0, .after = 6, .acknowledged = 5, .unknown = 2 },	/* one done */
		{ .before = 0, .after = 3, .acknowledged = 5, .unknown = 2 },	/* 2 lost */
		{ .before = 4, .after = 0, .acknowledged = 1 },			/* 5 lost */
		{ .before = 0, .after = 9, .acknowledged = 5, .unknown = 1 },	/* 3 too many */
	};
	struct load_counts_verdict v;

	(void)state;
	load_counts_judge(counts, 4, &v);
	assert_int_equal(v.lost + v.extra, 0);
	load_counts_judge(counts, 7, &v);
	assert_int_equal(v.acknowledged, 31);
	assert_int_equal(v.unknown, 9);
	assert_int_equal(v.lost, 7);
	assert_int_equal(v.extra, 3);
}

static void test_figures(void **state)
{
	static struct load_figures second, whole;
	struct load_times all = { .done = 0 };

	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		load_figures_done(&second, i % 2, i <= 10 ? LOAD_COUNT : LOAD_GET, i * 1000000,
				  i * 500000);
	second.arrived = 110;
	for (uint32_t i = 0; i < 7; i++)
		load_figures_fail(&second, LOAD_NO_NODE, LOAD_GET, LOAD_FAIL_QUEUE);
	for (uint32_t i = 0; i < 3; i++)
		load_figures_fail(&second, 1, LOAD_COUNT, LOAD_FAIL_WRONG);
	load_figures_add(&whole, &second);
	load_figures_add(&whole, &second);
	assert_int_equal(whole.arrived, 220);
	assert_int_equal(load_figures_failed(&whole), 20);
	assert_int_equal(whole.failed[LOAD_FAIL_QUEUE], 14);
	assert_int_equal(whole.nodes[0].done, 100);
	assert_int_equal(whole.nodes[0].failed, 0);
	assert_int_equal(whole.nodes[1].failed, 6);
	assert_int_equal(whole.kinds[LOAD_GET].failed, 14);
	assert_int_equal(whole.kinds[LOAD_GET].done, 180);
	assert_int_equal(whole.kinds[LOAD_COUNT].failed, 6);
	assert_true(load_times_mean_us(&whole.kinds[LOAD_COUNT]) == 5500);
	/* Node 0 had 2, 4, ... 100 ms, node 1 had 1, 3, ... 99 ms. */
	assert_true(load_times_mean_us(&whole.nodes[0]) == 51000);
	assert_true(load_times_mean_us(&whole.nodes[1]) == 50000);
	assert_true(load_times_service_us(&whole.nodes[0]) == 25500);
	load_times_add(&all, &whole.nodes[0]);
	load_times_add(&all, &whole.nodes[1]);
	assert_int_equal(all.done, 200);
	assert_int_equal(all.max_ns, 100000000);
	assert_true(load_times_quantile_us(&all, 0.5) > 48000 &&
		    load_times_quantile_us(&all, 0.5) < 53000);
	/* The bucket of 100 ms has its middle beyond. */
	assert_true(load_times_quantile_us(&all, 1) <= 100000);
	assert_true(load_times_mean_us(&whole.nodes[2]) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix_parse),
		cmocka_unit_test(test_draw_keeps_the_mix),
		cmocka_unit_test(test_draw_is_uniform),
		cmocka_unit_test(test_draw_of_records),
		cmocka_unit_test(test_queue_drops_what_waited),
		cmocka_unit_test(test_queue_order_and_room),
		cmocka_unit_test(test_what_may_be_repeated),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_figures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
