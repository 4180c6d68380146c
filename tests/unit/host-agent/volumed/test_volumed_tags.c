// SPDX-License-Identifier: GPL-2.0-or-later
/* What volumes get: promises, spare capacity, and what breaks when too much is promised. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/host-agent/volumed/tags_rig.h"

/* ---- promises ---- */

/* Rules 1 to 3: two that are promised something, and a flood that gets the rest. */
static void test_reservations_hold_beside_a_flood(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 200 });
	struct client *flood = add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });

	(void)state;
	run(w, 10 * SEC);
	assert_about(a->issued, 6000, 1);
	assert_about(b->issued, 2000, 1);
	assert_about(flood->issued, 2000, 3);
	assert_int_equal(flood->due, 0);
	assert_in_range(w->most_at_disk, DEPTH, DEPTH + BEYOND);
	free(w);
}

/* Every second of it, not only the mean. */
static void test_each_second_holds(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600 });
	uint64_t before;

	(void)state;
	for (int i = 0; i < 20; i++)
		add(w, 64, (struct ebb_tags_promise){ .weight = 1000 });
	run(w, SEC);
	for (int second = 0; second < 10; second++) {
		before = a->issued;
		run(w, SEC);
		assert_true(a->issued - before >= 597);
	}
	free(w);
}

static void test_promise_changes_at_once(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 1 });
	struct ebb_tags_promise p = { .reserve_iops = 700, .weight = 1, .penalty = 1 };
	uint64_t before;

	(void)state;
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	/* In the middle between two deadlines of the old promise. */
	run(w, 3 * SEC + SEC / 3);
	assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	before = a->issued;
	run(w, 100 * MSEC);
	assert_about(a->issued - before, 70, 5);
	p.reserve_iops = 100;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	before = a->issued;
	run(w, 100 * MSEC);
	assert_in_range(a->issued - before, 9, 12);
	free(w);
}

/* A promise that is set again and again is worth no more than one that stays. */
static void test_promise_set_often(void **state)
{
	struct world *w = world_new(1000);
	struct ebb_tags_promise p = { .reserve_iops = 100, .weight = 1, .penalty = 1 };
	struct client *a = add(w, 16, p);

	(void)state;
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	for (int i = 0; i < 1000; i++) {
		run(w, MSEC);
		assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	}
	assert_in_range(a->due, 95, 102);
	free(w);
}

static void test_size_is_charged(void **state)
{
	struct world *w = world_new(10000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .max_iops = 100,
				.weight = 10000 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_bytes = 100 << 20 });
	struct client *c = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 512 });

	(void)state;
	a->bytes = c->bytes = 32 << 20;
	b->bytes = 1 << 20;
	add(w, 100, (struct ebb_tags_promise){ .weight = 10000 });
	run(w, 20 * SEC);
	/* 512 units of 64 KiB each, at 100 per second: one in 5.12 s. */
	assert_about(a->issued, 4, 25);
	assert_about(b->due, 2000, 1);
	assert_in_range(c->due, 20, 21);
	free(w);
}

/* Promised both requests and bytes: what keeps within both. */
static void test_both_rates(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 100,
				.reserve_bytes = 1 << 30 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 500,
				.reserve_bytes = 64 * 4096 });

	(void)state;
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	run(w, 10 * SEC);
	assert_about(a->due, 1000, 1);
	assert_about(b->due, 640, 1);
	free(w);
}

/* ---- spare capacity ---- */

static void test_spare_goes_by_weight(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .weight = 300 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .weight = 100 });

	(void)state;
	run(w, 4 * SEC);
	assert_about(a->issued, 3000, 1);
	assert_about(b->issued, 1000, 2);
	free(w);
}

/* What a request has cost with a low weight does not hold up those with a higher one. */
static void test_weight_rises_at_once(void **state)
{
	struct ebb_tags_promise p = { .weight = 1, .penalty = 1 };
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .weight = 10000 });
	struct client *b = add(w, 16, p);
	uint64_t before;

	(void)state;
	run(w, SEC);
	assert_true(b->issued > 0);
	p.weight = 10000;
	before = a->issued;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &b->volume, &p, w->now), 0);
	b->issued = 0;
	run(w, 2 * SEC);
	assert_about(b->issued, 1000, 2);
	assert_about(a->issued - before, 1000, 2);
	free(w);
}

/* By size, not by number. */
static void test_spare_is_charged_by_size(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .weight = 100 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .weight = 100 });

	(void)state;
	b->bytes = 8 * 65536;
	run(w, 16 * SEC);
	assert_about(a->issued, 8000, 1);
	assert_about(b->issued, 1000, 1);
	free(w);
}

/* Rule 2: nobody else wants the disk, so a reservation is no maximum. */
static void test_spare_is_used(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 10 });

	(void)state;
	run(w, SEC);
	assert_about(a->issued, 1000, 2);
	free(w);
}

/* Spare capacity that a volume had does not count against its reservation later. */
static void test_spare_is_no_debt(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 500 });
	uint64_t before;

	(void)state;
	run(w, 10 * SEC);
	add(w, 1000, (struct ebb_tags_promise){ .weight = 10000 });
	before = a->issued;
	run(w, SEC);
	assert_true(a->issued - before >= 490);
	free(w);
}

/* Rule 5: a volume that used no spare capacity for a while has not saved it. */
static void test_spare_is_not_saved(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .weight = 100 });
	struct client *late;
	uint64_t before;

	(void)state;
	run(w, 10 * SEC);
	late = add(w, 16, (struct ebb_tags_promise){ .weight = 100 });
	before = a->issued;
	run(w, 2 * SEC);
	assert_about(a->issued - before, 1000, 2);
	assert_about(late->issued, 1000, 2);
	free(w);
}

/* Rule 5: nor has it saved slots. */
static void test_pauses_give_no_credit(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 500 });

	(void)state;
	a->on_usec = a->off_usec = 500000;
	add(w, 100, (struct ebb_tags_promise){ .weight = 10000 });
	run(w, 10 * SEC);
	/* What waits at the end of a burst is still sent: up to 16 requests each time. */
	assert_in_range(a->issued, 2490, 2500 + 10 * 17);
	free(w);
}

/* The disk never idles while a request waits that no maximum holds back. */
static void test_work_conserving(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 3, (struct ebb_tags_promise){ .reserve_iops = 7 });
	struct client *b = add(w, 3, (struct ebb_tags_promise){ .weight = 1 });

	(void)state;
	add(w, 4, (struct ebb_tags_promise){ .max_iops = 5 });
	run(w, 10 * SEC);
	assert_about(a->issued + b->issued, 10000 - 50, 1);
	assert_int_equal(w->tags.in_flight + w->tags.waiting, 10);
	free(w);
}

/* ---- overbooked ---- */

/* Rule 6. */
static void test_overbooked_is_proportional(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 200 });
	struct client *flood = add(w, 64, (struct ebb_tags_promise){ .weight = 10000 });
	struct client *late;
	uint64_t before;

	(void)state;
	run(w, 20 * SEC);
	assert_about(a->issued, 6000, 2);
	assert_about(b->issued, 2000, 2);
	assert_true(flood->issued <= 40);
	/* One that was idle has its part at once, and does not wait until others caught up. */
	late = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 800 });
	before = a->issued;
	run(w, 2 * SEC);
	assert_about(late->issued, 400, 10);
	assert_about(a->issued - before, 300, 10);
	free(w);
}

/*
 * A client that pauses for a moment, again and again, loses that moment and not more: it has
 * requests that wait for about three quarters of the time, in which 300 per second are its part.
 */
static void test_overbooked_with_short_pauses(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 10, (struct ebb_tags_promise){ .reserve_iops = 600 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 200 });

	(void)state;
	a->on_usec = 100000;
	a->off_usec = 40000;
	run(w, 14 * SEC);
	assert_true(a->issued >= 3150);
	assert_true(b->issued >= 1750);
	free(w);
}

/* What was due while the disk could not do it does not keep others out for long afterwards. */
static void test_overbooked_is_over(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600 });
	struct client *flood = add(w, 64, (struct ebb_tags_promise){ .weight = 10000 });
	struct ebb_tags_promise p = a->volume.promise;

	(void)state;
	run(w, 100 * SEC);
	p.reserve_iops = 100;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	flood->issued = 0;
	run(w, SEC);
	assert_true(flood->issued >= 270);
	free(w);
}

static void test_overbooked_by_penalty(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 300,
				.penalty = 10 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 300 });
	struct client *c = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 300 });

	(void)state;
	set_policy(w, EBB_TAGS_PENALTY);
	run(w, 20 * SEC);
	assert_about(a->issued, 6000, 2);
	/* Of equal penalties the earlier slot counts. */
	assert_about(b->issued, 1000, 3);
	assert_about(c->issued, 1000, 3);
	free(w);
}

/* What the costlier promises left undone is given up, and keeps nobody out afterwards. */
static void test_penalty_gives_up(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 400,
				.penalty = 10 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 300 });
	struct client *flood = add(w, 64, (struct ebb_tags_promise){ .weight = 10000 });
	struct ebb_tags_promise p = a->volume.promise;

	(void)state;
	set_policy(w, EBB_TAGS_PENALTY);
	run(w, 20 * SEC);
	p.reserve_iops = 0;
	assert_int_equal(ebb_tags_volume_set(&w->tags, &a->volume, &p, w->now), 0);
	b->issued = flood->issued = 0;
	run(w, SEC);
	assert_in_range(b->issued, 300, 345);
	assert_true(flood->issued >= 50);
	free(w);
}

static void test_policy_can_go_back(void **state)
{
	struct world *w = world_new(400);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 400,
				.penalty = 10 });
	struct client *b = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 400 });
	uint64_t before;

	(void)state;
	set_policy(w, EBB_TAGS_PENALTY);
	run(w, 10 * SEC);
	assert_true(b->issued < 100);
	set_policy(w, EBB_TAGS_PROPORTIONAL);
	before = a->issued;
	run(w, 10 * SEC);
	assert_about(a->issued - before, 2000, 3);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reservations_hold_beside_a_flood),
		cmocka_unit_test(test_each_second_holds),
		cmocka_unit_test(test_promise_changes_at_once),
		cmocka_unit_test(test_promise_set_often),
		cmocka_unit_test(test_size_is_charged),
		cmocka_unit_test(test_both_rates),
		cmocka_unit_test(test_spare_goes_by_weight),
		cmocka_unit_test(test_weight_rises_at_once),
		cmocka_unit_test(test_spare_is_charged_by_size),
		cmocka_unit_test(test_spare_is_used),
		cmocka_unit_test(test_spare_is_no_debt),
		cmocka_unit_test(test_spare_is_not_saved),
		cmocka_unit_test(test_pauses_give_no_credit),
		cmocka_unit_test(test_work_conserving),
		cmocka_unit_test(test_overbooked_is_proportional),
		cmocka_unit_test(test_overbooked_with_short_pauses),
		cmocka_unit_test(test_overbooked_is_over),
		cmocka_unit_test(test_overbooked_by_penalty),
		cmocka_unit_test(test_penalty_gives_up),
		cmocka_unit_test(test_policy_can_go_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
