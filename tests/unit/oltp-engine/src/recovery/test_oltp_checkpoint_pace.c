// SPDX-License-Identifier: GPL-2.0-or-later
/* When a checkpoint is written and when it waits: K1 to K3 of checkpoint_pace.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "oltp-engine/src/recovery/checkpoint_pace.h"

#define MIB	(1ull << 20)
#define GIB	(1ull << 30)
#define MS	1000000ull
#define SECOND	1000000000ull

/* In the midst of one: half is written, between both lines, and no group is. */
static const struct checkpoint_pace_facts half = {
	.since_ns = 3 * SECOND,
	.bytes = 2 * GIB,
	.bytes_all = 4 * GIB,
	.log_bytes = 300 * MIB,
	.log_bytes_max = 1024 * MIB,
	.usual_ns = MS,
};

static void writes(const struct checkpoint_pace_facts *f)
{
	struct checkpoint_pace pace = checkpoint_pace(f);

	assert_int_equal(pace.what, CHECKPOINT_PACE_WRITE);
	assert_int_equal(pace.ns, 0);
}

static uint64_t waits(const struct checkpoint_pace_facts *f, enum checkpoint_pace_what what)
{
	struct checkpoint_pace pace = checkpoint_pace(f);

	assert_int_equal(pace.what, what);
	assert_in_range(pace.ns, 1, CHECKPOINT_PACE_LOOK_NS);
	return pace.ns;
}

static void test_between_the_lines_groups_go_first(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	writes(&f);
	f.is_group_written = true;
	f.group_ns = MS / 2;
	assert_int_equal(waits(&f, CHECKPOINT_PACE_GROUP), CHECKPOINT_PACE_GROUP_NS);
	f.held_ns = CHECKPOINT_PACE_GROUP_NS - 1;
	assert_int_equal(waits(&f, CHECKPOINT_PACE_GROUP), 1);
	/* One group follows the other: each buffer has its turn all the same. */
	f.held_ns = CHECKPOINT_PACE_GROUP_NS;
	writes(&f);
	f.held_ns = CHECKPOINT_PACE_GROUP_NS + 1;
	writes(&f);
}

static void test_slow_groups_are_given_more_time(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	f.group_ns = CHECKPOINT_PACE_SLOW_TIMES * MS;
	writes(&f);
	f.group_ns++;
	waits(&f, CHECKPOINT_PACE_GROUP);
	f.held_ns = CHECKPOINT_PACE_SLOW_NS - 1;
	waits(&f, CHECKPOINT_PACE_GROUP);
	f.held_ns++;
	writes(&f);
	f.is_group_written = true;
	writes(&f);
	/* What is usual is not known: nothing is slow. */
	f.usual_ns = 0;
	f.held_ns = CHECKPOINT_PACE_GROUP_NS;
	writes(&f);
}

static void test_below_the_urgent_line_nothing_is_waited_for(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	f.is_group_written = true;
	f.group_ns = SECOND;
	f.bytes_per_s = MIB;
	/* With half of it written, the line is where the log has grown by 5/8. */
	f.log_bytes = 640 * MIB + 1;
	writes(&f);
	f.log_bytes = 640 * MIB;
	waits(&f, CHECKPOINT_PACE_TIME);
	f.bytes_per_s = 0;
	waits(&f, CHECKPOINT_PACE_GROUP);
	/* No line before a quarter. */
	f.bytes = 0;
	f.log_bytes = 256 * MIB;
	waits(&f, CHECKPOINT_PACE_GROUP);
	f.log_bytes++;
	writes(&f);
}

static void test_a_log_that_is_too_long_is_urgent_whatever_was_guessed(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	f.is_group_written = true;
	f.bytes = 5 * GIB;
	f.log_bytes = f.log_bytes_max - 1;
	waits(&f, CHECKPOINT_PACE_GROUP);
	f.log_bytes++;
	writes(&f);
	f.bytes_all = 0;
	writes(&f);
}

static void test_above_the_target_it_waits_for_the_log(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	/* Half of it with a quarter of the growth, and what may be ahead. */
	f.log_bytes = 256 * MIB;
	f.bytes += CHECKPOINT_PACE_AHEAD_BYTES;
	writes(&f);
	f.bytes += 64;
	waits(&f, CHECKPOINT_PACE_TIME);
	f.log_bytes += 8;
	writes(&f);
	/* A log that does not grow holds nothing up for ever. */
	f.log_bytes = 0;
	waits(&f, CHECKPOINT_PACE_TIME);
	f.since_ns = 2 * GIB / CHECKPOINT_PACE_BYTES_PER_S * SECOND;
	f.bytes = 2 * GIB + CHECKPOINT_PACE_AHEAD_BYTES + CHECKPOINT_PACE_BYTES_PER_S / 1000;
	assert_in_range(waits(&f, CHECKPOINT_PACE_TIME), MS - 1000, MS + 1);
	f.since_ns += MS;
	writes(&f);
}

static void test_whoever_waits_for_it_gets_it_soon(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	f.log_bytes = 0;
	f.is_awaited = true;
	writes(&f);
	/* But the log goes first, and so does what the user has said. */
	f.is_group_written = true;
	waits(&f, CHECKPOINT_PACE_GROUP);
	f.bytes_per_s = 16 * MIB;
	waits(&f, CHECKPOINT_PACE_TIME);
}

static void test_a_rate_holds_whatever_the_log_does(void **state)
{
	struct checkpoint_pace_facts f = half;

	(void)state;
	f.bytes_per_s = 64 * MIB;
	f.bytes = 3 * 64 * MIB + CHECKPOINT_PACE_AHEAD_BYTES;
	f.log_bytes = 0;
	writes(&f);
	/* A millisecond's worth. */
	f.bytes += 64 * MIB / 1000;
	assert_in_range(waits(&f, CHECKPOINT_PACE_TIME), MS - 1000, MS + 1000);
	f.log_bytes = 256 * MIB;
	waits(&f, CHECKPOINT_PACE_TIME);
	/* Far ahead of it: looked at again all the same. */
	f.bytes = 4 * GIB;
	assert_int_equal(waits(&f, CHECKPOINT_PACE_TIME), CHECKPOINT_PACE_LOOK_NS);
}

/*
 * A disk, buffers and a log that grows, in steps of one buffer each: if the disk can do it within
 * three quarters of the log's growth, the checkpoint is done when the next one is due.
 */
static void test_it_is_done_in_time(void **state)
{
	static const uint64_t log_per_s[] = { 0, 8 * MIB, 100 * MIB, 400 * MIB };
	static const uint64_t disk_per_s[] = { 2200 * MIB, 4 * GIB, 8 * GIB };
	const uint64_t buffer = 256 << 10;

	(void)state;
	for (uint32_t l = 0; l < 4; l++) {
		for (uint32_t d = 0; d < 3; d++) {
			struct checkpoint_pace_facts f = { .bytes_all = 4 * GIB,
							   .log_bytes_max = GIB,
							   .usual_ns = MS };

			while (f.bytes < f.bytes_all) {
				struct checkpoint_pace pace;

				/* The worst there is: a group is always being written. */
				f.is_group_written = log_per_s[l];
				f.group_ns = f.is_group_written ? 2 * MS : 0;
				pace = checkpoint_pace(&f);
				if (pace.what == CHECKPOINT_PACE_WRITE) {
					f.bytes += buffer;
					f.held_ns = 0;
					pace.ns = buffer * SECOND / disk_per_s[d];
				} else {
					f.held_ns += pace.ns;
				}
				f.since_ns += pace.ns;
				f.log_bytes = (uint64_t)((double)log_per_s[l] *
							 (double)f.since_ns / 1e9);
			}
			assert_true(f.log_bytes <= f.log_bytes_max + 4 * MIB);
			assert_true(f.since_ns <= 4 * GIB / CHECKPOINT_PACE_BYTES_PER_S * SECOND);
			/* And not in a hurry: not before the target line is. */
			assert_true(f.log_bytes >= f.log_bytes_max / 2 - MIB ||
				    f.since_ns >= (4 * GIB - 2 * MIB) /
					    CHECKPOINT_PACE_BYTES_PER_S * SECOND);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_between_the_lines_groups_go_first),
		cmocka_unit_test(test_slow_groups_are_given_more_time),
		cmocka_unit_test(test_below_the_urgent_line_nothing_is_waited_for),
		cmocka_unit_test(test_a_log_that_is_too_long_is_urgent_whatever_was_guessed),
		cmocka_unit_test(test_above_the_target_it_waits_for_the_log),
		cmocka_unit_test(test_whoever_waits_for_it_gets_it_soon),
		cmocka_unit_test(test_a_rate_holds_whatever_the_log_does),
		cmocka_unit_test(test_it_is_done_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
