// SPDX-License-Identifier: GPL-2.0-or-later
/* How many connections move in each second of a relocation: rates, stages, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oltp-engine/relocate/drain.h"

#define SECOND_NS	1000000000ull
#define NO_LIMIT	UINT64_MAX

static const struct drain_config plain = { .speed_percent = 100, .limit_ns = NO_LIMIT };

/* Response times in us, of 100 requests each; 0: no requests. */
static struct drain_facts facts_of(uint32_t left, uint64_t source_us, uint64_t target_us)
{
	return (struct drain_facts){
		.left = left,
		.source = { source_us ? 100 : 0, source_us * 100000 },
		.target = { target_us ? 100 : 0, target_us * 100000 },
	};
}

/* Returns the seconds until all have moved. */
static uint32_t run(const struct drain_config *config, uint32_t connections, uint64_t source_us,
		    uint64_t target_us)
{
	uint32_t left = connections, seconds = 0;
	struct drain drain;

	drain_start(&drain, connections, 7);
	for (; left; seconds++) {
		struct drain_facts facts = facts_of(left, source_us, target_us);
		uint32_t n = drain_step(&drain, config, &facts, 7 + seconds * SECOND_NS);

		assert_true(n <= left && seconds < 10000);
		left -= n;
	}
	return seconds;
}

/* 25 s, 17 s, 13 s and 6 s for the four stages of 200. */
static void two_hundred_take_a_minute(void **state)
{
	(void)state;
	assert_int_equal(run(&plain, 200, 10, 10), 61);
	assert_int_equal(run(&plain, 200, 0, 0), 61);
	assert_int_equal(run(&plain, 10, 10, 10), 10);
	assert_int_equal(run(&plain, 1, 10, 10), 1);
	for (uint32_t n = 10; n <= 200; n++) {
		uint32_t seconds = run(&plain, n, 10, 10);

		assert_true(seconds >= 10 && seconds <= 61);
	}
}

static void rates_grow_by_stage(void **state)
{
	static const struct {
		uint32_t left, n;
	} steps[] = { { 200, 2 }, { 151, 2 }, { 150, 3 }, { 101, 3 }, { 100, 4 }, { 51, 4 },
		      { 50, 8 }, { 1, 1 } };

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct drain_facts facts = facts_of(steps[i].left, 10, 10);
		struct drain drain;

		drain_start(&drain, 200, 0);
		assert_int_equal(drain_step(&drain, &plain, &facts, 0), steps[i].n);
		assert_int_equal(drain.percent, 100);
	}
}

/* Connections in 4 s, as quarters are carried over. */
static uint32_t four_seconds(uint32_t left, uint64_t source_us, uint64_t target_us)
{
	struct drain_facts facts = facts_of(left, source_us, target_us);
	struct drain drain;
	uint32_t n = 0;

	drain_start(&drain, 200, 0);
	for (uint32_t s = 0; s < 4; s++)
		n += drain_step(&drain, &plain, &facts, s * SECOND_NS);
	return n;
}

static void a_slow_target_throttles_but_in_the_last_stage(void **state)
{
	static const uint32_t lefts[] = { 200, 150, 100 }, rates[] = { 2, 3, 4 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(four_seconds(lefts[i], 10, 19), 4 * rates[i]);
		assert_int_equal(four_seconds(lefts[i], 10, 20), 2 * rates[i]);
		assert_int_equal(four_seconds(lefts[i], 10, 29), 2 * rates[i]);
		assert_int_equal(four_seconds(lefts[i], 10, 30), rates[i]);
		assert_int_equal(four_seconds(lefts[i], 1, 1000000), rates[i]);
	}
	assert_int_equal(four_seconds(50, 10, 30), 32);
	assert_int_equal(four_seconds(50, 10, 1000000), 32);
}

static void a_slow_source_doubles_in_every_stage(void **state)
{
	static const uint32_t lefts[] = { 200, 150, 100, 50 }, rates[] = { 2, 3, 4, 8 };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(four_seconds(lefts[i], 11, 10), 8 * rates[i]);
		assert_int_equal(four_seconds(lefts[i], 10, 10), 4 * rates[i]);
	}
	assert_int_equal(run(&plain, 200, 11, 10), 31);
}

static void what_is_left_over_counts_next_second(void **state)
{
	static const uint32_t expected[] = { 0, 0, 0, 1, 0, 0, 0, 1 };
	struct drain_facts facts = facts_of(10, 10, 30);
	struct drain drain;

	(void)state;
	drain_start(&drain, 10, 0);
	for (uint32_t s = 0; s < 8; s++)
		assert_int_equal(drain_step(&drain, &plain, &facts, s * SECOND_NS), expected[s]);
}

/* A second of which one side says nothing is neither throttled nor hurried. */
static void no_facts_no_adjustment(void **state)
{
	(void)state;
	assert_int_equal(four_seconds(200, 0, 30), 8);
	assert_int_equal(four_seconds(200, 30, 0), 8);
	assert_int_equal(four_seconds(200, 0, 0), 8);
}

static void speed_scales(void **state)
{
	struct drain_config config = plain;

	(void)state;
	config.speed_percent = 400;
	assert_int_equal(run(&config, 200, 10, 10), 16);
	config.speed_percent = 50;
	assert_int_equal(run(&config, 200, 10, 10), 122);
	config.speed_percent = DRAIN_SPEED_PERCENT_MAX;
	assert_int_equal(run(&config, UINT32_MAX, 10, 10), 1);
}

static void fixed_rates_do_not_adapt(void **state)
{
	struct drain_config config = plain;

	(void)state;
	config.fixed_per_s = 10;
	assert_int_equal(run(&config, 200, 10, 1000), 20);
	assert_int_equal(run(&config, 200, 1000, 10), 20);
}

static void after_the_limit_all_go(void **state)
{
	struct drain_config config = plain;
	struct drain_facts facts = facts_of(200, 10, 10);
	struct drain drain;

	(void)state;
	config.limit_ns = 5 * SECOND_NS;
	drain_start(&drain, 200, 0);
	assert_int_equal(drain_step(&drain, &config, &facts, 5 * SECOND_NS - 1), 2);
	assert_false(drain_is_over(&drain, &config, 5 * SECOND_NS - 1));
	assert_true(drain_is_over(&drain, &config, 5 * SECOND_NS));
	/* Those that were told and are still here, too, and within the same second. */
	facts.leaving = 150;
	assert_int_equal(drain_step(&drain, &config, &facts, 5 * SECOND_NS), 200);
	facts.left = 0;
	assert_int_equal(drain_step(&drain, &config, &facts, 5 * SECOND_NS), 0);
	config.limit_ns = 0;
	assert_int_equal(run(&config, 200, 10, 10), 1);
}

static void seconds_are_kept(void **state)
{
	struct drain_facts facts = facts_of(200, 10, 10);
	struct drain drain;

	(void)state;
	drain_start(&drain, 200, 0);
	assert_int_equal(drain_step(&drain, &plain, &facts, 0), 2);
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS - 1), 0);
	/* A step that is late does not make the next one late. */
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS * 3 / 2), 2);
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS * 2), 2);
	/* Seconds that were missed are not made up for. */
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS * 60), 2);
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS * 60 + 1), 0);
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS * 61), 2);
}

static void those_that_are_leaving_are_not_told_again(void **state)
{
	struct drain_facts facts = facts_of(50, 10, 10);
	struct drain drain;

	(void)state;
	drain_start(&drain, 200, 0);
	facts.leaving = 45;
	assert_int_equal(drain_step(&drain, &plain, &facts, 0), 5);
	facts.leaving = 50;
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS), 0);
	facts.leaving = 60;
	assert_int_equal(drain_step(&drain, &plain, &facts, 2 * SECOND_NS), 0);
}

/* Connections that come to the source meanwhile count from then on. */
static void more_may_come(void **state)
{
	struct drain_facts facts = facts_of(400, 10, 10);
	struct drain drain;

	(void)state;
	drain_start(&drain, 0, 0);
	assert_int_equal(drain_step(&drain, &plain, &facts, 0), 4);
	facts.left = 300;
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS), 6);
}

static void times_may_be_anything(void **state)
{
	struct drain_facts facts = facts_of(200, 10, 10);
	struct drain drain;

	(void)state;
	drain_start(&drain, 200, 0);
	facts.source = (struct drain_times){ 1, UINT64_MAX };
	facts.target = (struct drain_times){ 1, UINT64_MAX };
	assert_int_equal(drain_step(&drain, &plain, &facts, 0), 2);
	facts.source.total_ns = 1;
	assert_int_equal(drain_step(&drain, &plain, &facts, SECOND_NS), 0);
	assert_int_equal(drain.percent, 25);
	facts.source = (struct drain_times){ UINT64_MAX, 1 };
	drain_start(&drain, 200, 0);
	assert_int_equal(drain_step(&drain, &plain, &facts, 0), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_hundred_take_a_minute),
		cmocka_unit_test(rates_grow_by_stage),
		cmocka_unit_test(a_slow_target_throttles_but_in_the_last_stage),
		cmocka_unit_test(a_slow_source_doubles_in_every_stage),
		cmocka_unit_test(what_is_left_over_counts_next_second),
		cmocka_unit_test(no_facts_no_adjustment),
		cmocka_unit_test(speed_scales),
		cmocka_unit_test(fixed_rates_do_not_adapt),
		cmocka_unit_test(after_the_limit_all_go),
		cmocka_unit_test(seconds_are_kept),
		cmocka_unit_test(those_that_are_leaving_are_not_told_again),
		cmocka_unit_test(more_may_come),
		cmocka_unit_test(times_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
