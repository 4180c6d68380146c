// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists of CPUs and schedules on the command line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "oltp-engine/bench/options.h"

static void test_good_lists(void **state)
{
	(void)state;
	uint32_t cpus[8];

	assert_int_equal(bench_parse_cpus("0", cpus, 8), 1);
	assert_int_equal(cpus[0], 0);
	assert_int_equal(bench_parse_cpus("5,0-2,7", cpus, 8), 5);
	assert_memory_equal(cpus, ((uint32_t[]){ 5, 0, 1, 2, 7 }), 5 * sizeof(*cpus));
	assert_int_equal(bench_parse_cpus("0-7", cpus, 8), 8);
	assert_int_equal(bench_parse_cpus("65535", cpus, 8), 1);
}

static void test_bad_lists(void **state)
{
	(void)state;
	static const char *const bad[] = { "", ",", "1,", ",1", "1-", "-1", "2-1", "1,1", "0-3,2",
					   "a", "1 ", " 1", "1;2", "0x1", "+1", "0-8", "65536",
					   "99999999999999999999", "1--2", "1-2-3" };
	uint32_t cpus[8];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bench_parse_cpus(bad[i], cpus, 8), -EINVAL);
}

static void test_schedules(void **state)
{
	(void)state;
	static const char *const bad[] = { "", ":", "1", "1:", ":1", "1:2,", ",1:2", "2:1,1:1",
					   "1:1,1:2", "-1:5", "1:-5", "1:5x", "x", "1;5", "1:5;2:6",
					   "1:99999999999999999999" };
	struct bench_mem_step steps[BENCH_MEM_STEPS_MAX];
	char long_list[8 * (BENCH_MEM_STEPS_MAX + 1)] = "";

	assert_int_equal(bench_parse_schedule("5:512", steps), 1);
	assert_int_equal(bench_parse_schedule("0:0,2.5:1024,10:3", steps), 3);
	assert_true(steps[1].t_s == 2.5);
	assert_int_equal(steps[1].mib, 1024);
	assert_int_equal(steps[2].mib, 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bench_parse_schedule(bad[i], steps), -EINVAL);
	for (uint32_t i = 0; i <= BENCH_MEM_STEPS_MAX; i++)
		sprintf(long_list + strlen(long_list), "%s%u:1", i ? "," : "", i);
	assert_int_equal(bench_parse_schedule(long_list, steps), -EINVAL);
}

static void test_steps(void **state)
{
	(void)state;
	static const char *const bad[] = { "", ":", "1", "1:", ":1", "1:2,", ",1:2", "2:1,1:1",
					   "1:1,1:2", "-1:5", "1:-5", "1:5x", "x", "1:nan",
					   "1:inf", "1:0.9999995" };
	char long_list[8 * (BENCH_STEPS_MAX + 1)] = "";
	struct bench_steps steps = { .n = 77 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(bench_parse_steps(bad[i], 0.999999, &steps), -EINVAL);
	for (uint32_t i = 0; i <= BENCH_STEPS_MAX; i++)
		sprintf(long_list + strlen(long_list), "%s%u:0", i ? "," : "", i);
	assert_int_equal(bench_parse_steps(long_list, 1, &steps), -EINVAL);
	/* What is wrong changes nothing. */
	assert_int_equal(steps.n, 77);
	assert_int_equal(bench_parse_steps("0:0.5,2.5:0.99,10:0", 0.999999, &steps), 0);
	assert_int_equal(steps.n, 3);
	assert_true(steps.steps[1].t_s == 2.5);
	assert_true(steps.steps[1].value == 0.99);
	assert_true(steps.steps[2].value == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lists),
		cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_schedules),
		cmocka_unit_test(test_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
