// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests that move no data, flushes above all, in the scheduler of the volume server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/unit/host-agent/volumed/tags_rig.h"

/*
 * Rule 9: a flood of requests that move no data, such as flushes and discards.  One volume is
 * promised bytes only, so that its flood would be due for ever if these cost it no bytes.
 */
static void test_flood_without_data(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 16, (struct ebb_tags_promise){ .reserve_iops = 600 });
	struct client *discards = add(w, 500, (struct ebb_tags_promise){
				.reserve_bytes = 100 * EBB_RATE_UNIT });
	struct client *flushes = add(w, 500, (struct ebb_tags_promise){ .weight = 10000 });
	struct client *limited = add(w, 500, (struct ebb_tags_promise){
				.max_bytes = 50 * EBB_RATE_UNIT, .weight = 10000 });

	(void)state;
	discards->bytes = flushes->bytes = limited->bytes = 0;
	flushes->flow = EBB_TAGS_FLUSHES;
	run(w, 10 * SEC);
	assert_about(a->issued, 6000, 1);
	assert_about(discards->due, 1000, 1);
	assert_about(limited->issued, 500, 2);
	assert_about(flushes->issued, 2500, 3);
	free(w);
}

static struct request *submit_one(struct world *w, struct client *c, unsigned int flow,
				  uint64_t bytes)
{
	struct request *r = new_request(w);

	c->flow = flow;
	c->bytes = bytes;
	submit(w, c, r);
	return r;
}

/* Issued at once and done, or not before *ret_wake. */
static bool is_issued(struct world *w, const struct request *r, uint64_t *ret_wake)
{
	struct request *got = next(w, ret_wake);

	if (!got)
		return false;
	assert_ptr_equal(got, r);
	ebb_tags_done(&w->tags, &got->tags);
	return true;
}

/* Rule 4: a flush does not wait for what a large write has used up, but for other flushes. */
static void test_maximum_of_flushes(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 10,
				.max_iops = 10 });
	struct request *write, *flush;
	uint64_t wake;

	(void)state;
	/* 512 units, at 10 per second. */
	write = submit_one(w, a, 0, 32 << 20);
	assert_true(is_issued(w, write, &wake));
	write = submit_one(w, a, 0, 4096);
	assert_false(is_issued(w, write, &wake));
	assert_int_equal(wake, w->now + 51200 * MSEC - EBB_TAGS_BURST_NSEC);
	for (int i = 0; i < 3; i++) {
		flush = submit_one(w, a, EBB_TAGS_FLUSHES, 0);
		if (i) {
			assert_false(is_issued(w, flush, &wake));
			assert_in_range(wake, w->now + 90 * MSEC, w->now + 100 * MSEC);
			w->now = wake;
		}
		assert_true(is_issued(w, flush, &wake));
	}
	/* Nor do flushes hold back writes. */
	flush = submit_one(w, a, EBB_TAGS_FLUSHES, 0);
	assert_false(is_issued(w, flush, &wake));
	w->now += 60 * SEC;
	assert_non_null(next(w, &wake));
	assert_non_null(next(w, &wake));
	write = submit_one(w, a, 0, 4096);
	assert_false(is_issued(w, write, &wake));
	assert_in_range(wake, w->now + 90 * MSEC, w->now + 100 * MSEC);
	free(w);
}

/* And a write goes that may, while a flush has to wait. */
static void test_maximum_of_flushes_holds_no_write(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){
				.max_bytes = 10 * EBB_RATE_UNIT });
	struct request *flush;
	uint64_t wake;

	(void)state;
	flush = submit_one(w, a, EBB_TAGS_FLUSHES, 0);
	assert_true(is_issued(w, flush, &wake));
	flush = submit_one(w, a, EBB_TAGS_FLUSHES, 0);
	assert_false(is_issued(w, flush, &wake));
	/* Each takes a 16th of the time of a flush.  It is not the turn of their flow. */
	for (int i = 0; i < 5; i++) {
		assert_true(is_issued(w, submit_one(w, a, 0, 4096), &wake));
		w->now += 7 * MSEC;
	}
	assert_false(is_issued(w, flush, &wake));
	/* A drain goes past this maximum, too. */
	ebb_tags_drain_begin(&w->tags, &a->volume, w->now);
	assert_true(is_issued(w, flush, &wake));
	ebb_tags_drain_end(&w->tags, &a->volume, w->now);
	free(w);
}

/*
 * Rule 9: the disk is full, and hundreds of the volume's own writes wait.  A flush that came after
 * them goes with its next turn.
 */
static void test_flush_overtakes_writes(void **state)
{
	struct world *w = world_new(1000);
	struct client *a = add(w, 0, (struct ebb_tags_promise){ .reserve_iops = 100 });
	struct request *first, *flush;
	unsigned int before = 0;
	uint64_t wake;

	(void)state;
	first = submit_one(w, a, 0, 65536);
	assert_ptr_equal(next(w, &wake), first);
	for (int i = 0; i < 500; i++)
		submit_one(w, a, 0, 65536);
	while (next(w, &wake))
		;
	flush = submit_one(w, a, EBB_TAGS_FLUSHES, 0);
	assert_null(next(w, &wake));
	do {
		/* It waits for room only, which one write leaves, whatever becomes of others. */
		w->now += 10 * MSEC;
		ebb_tags_done(&w->tags, &first->tags);
		first = next(w, &wake);
		assert_non_null(first);
		before++;
	} while (first != flush);
	assert_in_range(before, 1, 2);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flood_without_data),
		cmocka_unit_test(test_maximum_of_flushes),
		cmocka_unit_test(test_maximum_of_flushes_holds_no_write),
		cmocka_unit_test(test_flush_overtakes_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
