// SPDX-License-Identifier: GPL-2.0-or-later
/* From which files recovery starts, and which folders it refuses: R1 to R4 of recover_plan.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/src/recovery/recover_plan.h"

#define FILES_MAX	8u

struct folder {
	struct plan_segment segments[FILES_MAX];
	struct plan_checkpoint checkpoints[FILES_MAX];
	size_t n_segments, n_checkpoints;
};

static struct plan_files files_of(struct folder *folder)
{
	return (struct plan_files){
		.segments = folder->segments,
		.checkpoints = folder->checkpoints,
		.n_segments = folder->n_segments,
		.n_checkpoints = folder->n_checkpoints,
	};
}

static int plan(struct folder folder, struct recover_plan *ret_plan, char *why)
{
	struct plan_files files = files_of(&folder);

	return recover_plan(&files, ret_plan, why);
}

static struct recover_plan good(struct folder folder)
{
	char why[RECOVER_WHY_BYTES] = "";
	struct recover_plan p;

	assert_int_equal(plan(folder, &p, why), 0);
	return p;
}

/* The complaint names the file. */
static void bad(struct folder folder, const char *what)
{
	struct recover_plan p = { .first_group = 77 };
	char why[RECOVER_WHY_BYTES] = "";

	assert_int_equal(plan(folder, &p, why), -EUCLEAN);
	assert_int_equal(p.first_group, 77);
	if (!strstr(why, what))
		fail_msg("'%s' does not say '%s'", why, what);
}

static void test_empty(void **state)
{
	(void)state;
	struct recover_plan p = good((struct folder){ .n_segments = 0 });

	assert_false(p.has_checkpoint);
	assert_int_equal(p.segment, 0);
	assert_int_equal(p.first_group, 1);
	assert_int_equal(p.least_group, 0);
}

static void test_whole_log(void **state)
{
	(void)state;
	/* In the order in which a folder lists them: any. */
	struct recover_plan p = good((struct folder){
		.segments = { { 2, true, 40 }, { 3, true, 90 }, { 1, true, 1 } },
		.n_segments = 3,
	});

	assert_false(p.has_checkpoint);
	assert_int_equal(p.segment, 0);
	assert_int_equal(p.first_group, 1);
	assert_int_equal(p.least_group, 0);
}

static void test_newest_checkpoint(void **state)
{
	(void)state;
	struct recover_plan p = good((struct folder){
		.segments = { { 1, true, 1 }, { 2, true, 40 }, { 3, true, 90 }, { 4, true, 91 } },
		.n_segments = 4,
		.checkpoints = { { 1, true, 5, 9 }, { 2, true, 89, 95 } },
		.n_checkpoints = 2,
	});

	assert_true(p.has_checkpoint);
	assert_int_equal(p.checkpoint, 0);
	assert_int_equal(p.segment, 1);
	assert_int_equal(p.first_group, 89);
	assert_int_equal(p.least_group, 95);
}

/* Older segments are recycled one by one; what is left of them is of no account. */
static void test_recycled_segments(void **state)
{
	(void)state;
	struct recover_plan p = good((struct folder){
		.segments = { { 1, false, 0 }, { 4, true, 90 }, { 5, true, 120 } },
		.n_segments = 3,
		.checkpoints = { { 7, true, 90, 91 } },
		.n_checkpoints = 1,
	});

	assert_int_equal(p.segment, 1);
}

/* A start that did not get as far as a group, and one after it: both begin with the same group. */
static void test_starts_without_groups(void **state)
{
	(void)state;
	struct folder folder = {
		.segments = { { 1, true, 1 }, { 2, true, 9 }, { 3, true, 9 }, { 4, true, 9 } },
		.n_segments = 4,
	};
	struct plan_files files = files_of(&folder);

	assert_int_equal(good(folder).segment, 0);
	folder.checkpoints[0] = (struct plan_checkpoint){ 1, true, 9, 8 };
	folder.n_checkpoints = 1;
	assert_int_equal(good(folder).segment, 3);
	/* What comes late into the first one does not count. */
	assert_int_equal(recover_segment_end(&files, 0), 9);
	assert_int_equal(recover_segment_end(&files, 1), 9);
	assert_true(recover_segment_end(&files, 3) == UINT64_MAX);
}

/* Prepared, and then came a crash; in the first place or in any other. */
static void test_segments_never_begun(void **state)
{
	(void)state;
	struct folder folder = {
		.segments = { { 1, true, 1 }, { 2, false, 0 }, { 3, true, 9 }, { 4, false, 0 } },
		.n_segments = 4,
	};
	struct plan_files files = files_of(&folder);

	assert_int_equal(good(folder).segment, 0);
	assert_int_equal(recover_good_segment(&files, 1), 2);
	assert_int_equal(recover_segment_end(&files, 0), 9);
	assert_true(recover_segment_end(&files, 2) == UINT64_MAX);
	assert_int_equal(recover_good_segment(&files, 3), 4);
	folder.segments[0].is_good = folder.segments[2].is_good = false;
	assert_int_equal(good(folder).segment, 4);
	assert_int_equal(good(folder).first_group, 1);
	/* A checkpoint of before the first group, and one that had groups before it. */
	folder.checkpoints[0] = (struct plan_checkpoint){ 1, true, 1, 0 };
	folder.n_checkpoints = 1;
	assert_true(good(folder).has_checkpoint);
	assert_int_equal(good(folder).segment, 4);
	folder.checkpoints[0] = (struct plan_checkpoint){ 1, true, 9, 8 };
	bad(folder, "checkpoint-0000000000000001 needs the log from group 9");
}

static void test_log_begins_too_late(void **state)
{
	(void)state;
	struct folder folder = { .segments = { { 3, true, 40 } }, .n_segments = 1 };

	bad(folder, "log-0000000000000003 begins with group 40");
	folder.checkpoints[0] = (struct plan_checkpoint){ 1, true, 39, 45 };
	folder.n_checkpoints = 1;
	bad(folder, "checkpoint-0000000000000001 needs the log from group 39");
	folder.n_segments = 0;
	bad(folder, "checkpoint-0000000000000001 needs the log from group 39");
}

static void test_groups_that_go_back(void **state)
{
	(void)state;
	bad((struct folder){ .segments = { { 1, true, 1 }, { 2, true, 40 }, { 3, true, 39 } },
			     .n_segments = 3 }, "log-0000000000000003 begins with group 39");
}

static void test_damaged_checkpoint(void **state)
{
	(void)state;
	struct folder folder = {
		.segments = { { 1, true, 1 }, { 2, true, 40 } },
		.n_segments = 2,
		.checkpoints = { { 1, true, 5, 9 }, { 2, false, 0, 0 } },
		.n_checkpoints = 2,
	};

	/* The one before it, as long as its log is there. */
	assert_int_equal(good(folder).first_group, 5);
	/* All of the log says the same. */
	folder.checkpoints[0].is_good = false;
	assert_false(good(folder).has_checkpoint);
	folder.segments[0].first_group = 2;
	bad(folder, "checkpoint-0000000000000002 is damaged");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_whole_log),
		cmocka_unit_test(test_newest_checkpoint),
		cmocka_unit_test(test_recycled_segments),
		cmocka_unit_test(test_starts_without_groups),
		cmocka_unit_test(test_segments_never_begun),
		cmocka_unit_test(test_log_begins_too_late),
		cmocka_unit_test(test_groups_that_go_back),
		cmocka_unit_test(test_damaged_checkpoint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
