// SPDX-License-Identifier: GPL-2.0-or-later
/* Copying ahead of a failover: how fast, and when it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "oltp-engine/relocate/precopy.h"

#define MS	1000000ull
#define PAGE	1000u
#define PAGE_NS	100000ull

/* 100 pages in a pause. */
static const struct precopy_config config = {
	.bytes_per_s = 1000000, .timeout_ns = 60000 * MS, .pause_ns = 100 * PAGE_NS,
	.rounds_max = 20,
};

static void send(struct precopy *p, uint32_t pages)
{
	for (uint32_t i = 0; i < pages; i++)
		precopy_sent(p, PAGE);
}

static enum precopy_reason end_round_at(struct precopy *p, uint64_t written, uint64_t never_sent,
					uint64_t now_ns)
{
	const struct precopy_facts facts = { written, never_sent };

	return precopy_end_round(p, &config, &facts, now_ns);
}

/* Each page took as long as the others. */
static enum precopy_reason end_round(struct precopy *p, uint64_t written, uint64_t never_sent)
{
	return end_round_at(p, written, never_sent, p->start_ns + p->pages * PAGE_NS);
}

/* However often it is asked, so much is sent in a second; what was missed is made up in part. */
static void rate_is_bounded(void **state)
{
	static const uint64_t steps_ns[] = { 10000, 300000, 1 * MS, 7 * MS, 49 * MS };

	(void)state;
	for (size_t i = 0; i < sizeof(steps_ns) / sizeof(steps_ns[0]); i++) {
		struct precopy p;

		precopy_start(&p, 5);
		for (uint64_t now = 5; now < 5 + 10000 * MS; now += steps_ns[i]) {
			while (precopy_allowed(&p, &config, now))
				precopy_sent(&p, PAGE);
		}
		assert_in_range(p.bytes, 9900000, 10000000 + PAGE);
		/* After a pause of 20 s: 50 ms of it, and no more. */
		p.bytes = 0;
		while (precopy_allowed(&p, &config, 30000 * MS))
			precopy_sent(&p, PAGE);
		assert_in_range(p.bytes, 49000, 51000);
	}
}

/* Each round is as long as what was written in the one before: a tenth. */
static void rounds_shrink_until_few_are_left(void **state)
{
	struct precopy p;

	(void)state;
	precopy_start(&p, 0);
	send(&p, 100000);
	assert_int_equal(end_round(&p, 10000, 0), PRECOPY_GOES_ON);
	send(&p, 10000);
	assert_int_equal(end_round(&p, 1000, 0), PRECOPY_GOES_ON);
	assert_int_equal(p.rounds, 3);
	send(&p, 1000);
	assert_int_equal(end_round(&p, 100, 0), PRECOPY_FEW);
	assert_true(p.is_at_once);
	assert_int_equal(p.pages, 111000);
	assert_int_equal(p.rounds, 3);
}

static void nothing_to_do_is_done(void **state)
{
	struct precopy p;

	(void)state;
	precopy_start(&p, 0);
	assert_int_equal(end_round(&p, 0, 0), PRECOPY_FEW);
	assert_true(p.is_at_once);
	/* Nothing was in memory: how long the rest takes is not known. */
	precopy_start(&p, 0);
	assert_int_equal(end_round(&p, 0, 5), PRECOPY_FEW);
	assert_false(p.is_at_once);
}

static void steady_change_ends_it(void **state)
{
	struct precopy p;

	(void)state;
	precopy_start(&p, 0);
	send(&p, 8000);
	assert_int_equal(end_round(&p, 6999, 0), PRECOPY_GOES_ON);
	send(&p, 6999);
	assert_int_equal(end_round(&p, 6125, 0), PRECOPY_STEADY);
	assert_false(p.is_at_once);
}

/* What was never sent does not count as change, but has to be sent. */
static void cold_pages_go_unit_by_unit(void **state)
{
	struct precopy p;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		precopy_start(&p, 0);
		send(&p, 8000);
		assert_int_equal(end_round(&p, 400, 60 + i), PRECOPY_GOES_ON);
		send(&p, 400);
		assert_int_equal(end_round(&p, 40, 60 + i), PRECOPY_FEW);
		assert_int_equal(p.is_at_once, !i);
	}
}

static void time_ends_it(void **state)
{
	struct precopy p;

	(void)state;
	precopy_start(&p, 7);
	send(&p, 8000);
	assert_false(precopy_cuts_round(&p, &config, 7 + config.timeout_ns - 1));
	assert_true(precopy_cuts_round(&p, &config, 7 + config.timeout_ns));
	assert_int_equal(end_round_at(&p, 1000, 0, 7 + config.timeout_ns), PRECOPY_TIMEOUT);
	assert_false(p.is_at_once);
	/* Few are left all the same. */
	precopy_start(&p, 7);
	send(&p, 8000);
	assert_int_equal(end_round_at(&p, 1, 0, 7 + config.timeout_ns), PRECOPY_FEW);
}

static void rounds_end(void **state)
{
	uint64_t pages = 1u << 16;
	struct precopy p;

	(void)state;
	precopy_start(&p, 0);
	for (uint32_t round = 1; round <= config.rounds_max; round++) {
		p.round_pages = pages;
		p.pages += pages;
		pages -= pages / 4;
		assert_int_equal(end_round(&p, pages, 0), round < config.rounds_max ?
				 PRECOPY_GOES_ON : PRECOPY_ROUNDS);
	}
}

/*
 * Pages that take the place of others are sent slower than those of the first round: in the pause,
 * too. So it is not over before one round has shown how slow.
 */
static void slow_pages_go_on(void **state)
{
	uint64_t first_ns = 8000 * PAGE_NS, second_ns = first_ns + 200 * 2 * PAGE_NS;

	(void)state;
	for (uint64_t few = 50; few <= 51; few++) {
		struct precopy p;

		precopy_start(&p, 0);
		send(&p, 8000);
		assert_int_equal(end_round_at(&p, 1, 0, first_ns), PRECOPY_GOES_ON);
		send(&p, 200);
		assert_int_equal(end_round_at(&p, few, 0, second_ns),
				 few == 50 ? PRECOPY_FEW : PRECOPY_GOES_ON);
	}
}

/* Room bounds what is sent first; what is written later replaces what is there. */
static void room_bounds_the_first_round(void **state)
{
	struct precopy_config small = config;
	struct precopy_facts facts = { .written = 200, .never_sent = 5000 };
	struct precopy p;

	(void)state;
	small.bytes_max = 1000 * PAGE;
	precopy_start(&p, 0);
	send(&p, 999);
	assert_false(precopy_cuts_round(&p, &small, 1));
	send(&p, 1);
	assert_true(precopy_cuts_round(&p, &small, 1));
	assert_int_equal(precopy_end_round(&p, &small, &facts, 1000 * PAGE_NS),
			 PRECOPY_GOES_ON);
	assert_false(precopy_cuts_round(&p, &small, 1));
}

static void reasons_have_names(void **state)
{
	(void)state;
	assert_string_equal(precopy_reason_name(PRECOPY_GOES_ON), "");
	for (uint32_t i = 1; i < PRECOPY_REASONS; i++)
		assert_true(*precopy_reason_name((enum precopy_reason)i));
	assert_string_equal(precopy_reason_name(PRECOPY_REASONS), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_bounded),
		cmocka_unit_test(rounds_shrink_until_few_are_left),
		cmocka_unit_test(nothing_to_do_is_done),
		cmocka_unit_test(steady_change_ends_it),
		cmocka_unit_test(cold_pages_go_unit_by_unit),
		cmocka_unit_test(time_ends_it),
		cmocka_unit_test(rounds_end),
		cmocka_unit_test(slow_pages_go_on),
		cmocka_unit_test(room_bounds_the_first_round),
		cmocka_unit_test(reasons_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
