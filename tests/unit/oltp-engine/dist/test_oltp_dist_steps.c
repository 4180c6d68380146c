// SPDX-License-Identifier: GPL-2.0-or-later
/* Single steps of two-phase commit's decisions; test_oltp_dist_twophase has all orders of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "oltp-engine/dist/twophase.h"

static const struct dist_times times = { .vote_ns = 1, .ask_ns = 1, .repeat_ns = 1 };

static void all_votes_read_need_no_log(void **state)
{
	struct dist_actions a;
	struct dist_coord c;

	(void)state;
	dist_coord_start(&c, 2, &times, 0, &a);
	assert_int_equal(a.n, 2);
	dist_coord_vote(&c, 0, DIST_VOTE_READ, &a);
	assert_int_equal(a.n, 0);
	dist_coord_vote(&c, 1, DIST_VOTE_READ, &a);
	assert_int_equal(a.n, 3);
	assert_int_equal(a.list[0].what, DIST_ENGINE_COMMIT);
	assert_int_equal(a.list[1].what, DIST_SEND_COMMIT);
	assert_true(dist_coord_is_done(&c));
}

static void votes_that_do_not_come_abort(void **state)
{
	struct dist_actions a;
	struct dist_coord c;

	(void)state;
	dist_coord_start(&c, 2, &times, 5, &a);
	dist_coord_vote(&c, 0, DIST_VOTE_YES, &a);
	dist_coord_tick(&c, &times, 5, &a);
	assert_int_equal(a.n, 0);
	dist_coord_tick(&c, &times, 6, &a);
	assert_int_equal(a.n, 3);
	assert_int_equal(a.list[0].what, DIST_ENGINE_ABORT);
	assert_int_equal(a.list[1].what, DIST_SEND_ABORT);
	/* The one that comes too late is told. */
	dist_coord_vote(&c, 1, DIST_VOTE_YES, &a);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.list[0].what, DIST_SEND_ABORT);
}

static void in_doubt_asks_until_answered(void **state)
{
	struct dist_actions a;
	struct dist_part p;

	(void)state;
	dist_part_restart(&p, 7, &a);
	for (uint64_t now = 7; now < 10; now++) {
		dist_part_tick(&p, &times, now, &a);
		assert_int_equal(a.n, 1);
		assert_int_equal(a.list[0].what, DIST_SEND_QUERY);
		dist_part_tick(&p, &times, now, &a);
		assert_int_equal(a.n, 0);
	}
	dist_part_commit(&p, &a);
	assert_int_equal(a.n, 2);
	assert_int_equal(a.list[0].what, DIST_LOG_COMMIT);
	assert_int_equal(a.list[1].what, DIST_ENGINE_COMMIT);
}

static void peers_that_do_not_exist_are_ignored(void **state)
{
	struct dist_actions a;
	struct dist_coord c;

	(void)state;
	dist_coord_start(&c, 1, &times, 0, &a);
	dist_coord_vote(&c, 1, DIST_VOTE_YES, &a);
	assert_int_equal(a.n, 0);
	dist_coord_lost(&c, 200, &a);
	assert_int_equal(a.n, 0);
	assert_int_equal(c.state, DIST_COORD_PREPARING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_votes_read_need_no_log),
		cmocka_unit_test(votes_that_do_not_come_abort),
		cmocka_unit_test(in_doubt_asks_until_answered),
		cmocka_unit_test(peers_that_do_not_exist_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
