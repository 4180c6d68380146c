// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists of CPUs and schedules on the command line, and the options of the log. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/options.h"

#define ARGS_MAX	16u

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

static void test_steps(void **state)
{
	(void)state;
	static const char *const bad[] = { "", ":", "1", "1:", ":1", "1:2,", ",1:2", "2:1,1:1",
					   "1:1,1:2", "-1:5", "1:-5", "1:5x", "x", "1:nan",
					   "1:inf", "1:0.9999995", "1;0.5", "1:0.5;2:0.6",
					   "1e300:0", "inf:0", "1:99999999999999999999" };
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

/* A line, which is cut at its blanks. */
static error_t parse(const struct argp *argp, char *line, void *input)
{
	char *argv[ARGS_MAX + 1] = { "test" };
	int argc = 1;

	for (char *at = strtok(line, " "); at; at = strtok(NULL, " ")) {
		assert_true(argc < (int)ARGS_MAX);
		argv[argc++] = at;
	}
	return argp_parse(argp, argc, argv, 0, NULL, input);
}

static error_t parse_log(char *line, struct bench_log_options *ret_options)
{
	*ret_options = (struct bench_log_options){ 0 };
	return parse(&bench_log_argp, line, ret_options);
}

static struct bench_log_options log_options(const char *line)
{
	static char copy[256];	/* what options point to */
	struct bench_log_options options;

	snprintf(copy, sizeof(copy), "%s", line);
	assert_int_equal(parse_log(copy, &options), 0);
	return options;
}

static void test_log_options(void **state)
{
	struct bench_log_options options = log_options("");
	struct oltp_config config = { .node = -1 };

	(void)state;
	bench_log_configure(&options, &config);
	assert_int_equal(config.durability, OLTP_DURABILITY_OFF);
	assert_null(config.log_dir);
	assert_int_equal(config.group_interval_us, 0);
	assert_int_equal(config.checkpoint_mib, 0);
	assert_int_equal(config.checkpoint_mib_s, 0);
	assert_false(options.recover);
	assert_false(options.is_lazy);
	assert_int_equal(log_options("--durability off").durability, OLTP_DURABILITY_OFF);
	options = log_options("--durability=async --log-dir=/a");
	bench_log_configure(&options, &config);
	assert_int_equal(config.durability, OLTP_DURABILITY_ASYNC);
	assert_string_equal(config.log_dir, "/a");
	assert_int_equal(config.group_interval_us, 0);

	options = log_options("--log-dir /some/where --durability commit --group-us 250 "
			      "--checkpoint-mib 5 --checkpoint-mib-s 7 --recover");
	assert_true(options.recover);
	assert_false(options.is_lazy);
	assert_true(log_options("--durability commit --log-dir /a --recover "
				"--lazy-recovery").is_lazy);
	bench_log_configure(&options, &config);
	assert_int_equal(config.durability, OLTP_DURABILITY_COMMIT);
	assert_int_equal(config.group_interval_us, 250);
	assert_int_equal(config.checkpoint_mib, 5);
	assert_int_equal(config.checkpoint_mib_s, 7);
	options = log_options("--durability commit --volume /dev/some --volume-format --force");
	assert_true(options.volume_format && options.is_forced);
	bench_log_configure(&options, &config);
	assert_string_equal(config.volume, "/dev/some");
	assert_null(config.log_dir);
	assert_int_equal(log_options("--group-us 1").group_us, 1);
	assert_int_equal(log_options("--group-us 1000000").group_us, 1000000);
}

/* Of one line of a program with all options of oltp-bench. */
static error_t parse_all(char *line)
{
	struct bench_options options = bench_options_default;

	return parse(&bench_argp, line, &options);
}

static error_t parse_log_alone(char *line)
{
	struct bench_log_options options;

	return parse_log(line, &options);
}

/* A usage error ends the program. */
static int status_of(const char *line, error_t (*parse_line)(char *line))
{
	char copy[256];
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(99);
		snprintf(copy, sizeof(copy), "%s", line);
		_exit(parse_line(copy) ? 98 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_bad_log_options(void **state)
{
	static const char *const bad[] = {
		"--durability",
		"--durability on --log-dir /a",
		"--durability COMMIT --log-dir /a",
		"--durability commit",
		"--durability async",
		"--durability off --log-dir /a",
		"--log-dir /a",
		"--recover",
		"--recover --durability commit",
		"--volume /a",
		"--durability commit --volume /a --log-dir /b",
		"--durability commit --log-dir /a --volume-format",
		"--durability commit --volume /a --volume-format --recover",
		"--durability commit --volume /a --force",
		"--durability commit --log-dir /a --lazy-recovery",
		"--durability commit --log-dir /a --group-us 0",
		"--durability commit --log-dir /a --group-us 1000001",
		"--durability commit --log-dir /a --group-us -5",
		"--durability commit --log-dir /a --group-us 1ms",
		"--durability commit --log-dir /a --checkpoint-mib 0",
		"--durability commit --log-dir /a --checkpoint-mib 4294967296",
		"--durability commit --log-dir /a --checkpoint-mib-s 0",
		"--durability commit --log-dir /a --checkpoint-mib-s x",
	};

	(void)state;
	assert_int_equal(status_of("--durability commit --log-dir /a", parse_log_alone), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (status_of(bad[i], parse_log_alone) != argp_err_exit_status)
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void test_bad_options(void **state)
{
	static const char *const bad[] = {
		"--seed=+5",
		"--seed=-5",
		"--seed=0x5",
		"--mem-schedule 0:5",
		"--cold-volume",
		"--durability commit --volume /a --cold-volume --cold-dir /b",
		"--durability commit --log-dir /a --cold-volume",
		"--memory-mib 8 --mem-schedule 1e300:5",
		"--memory-mib 8 --mem-schedule 0:1e30",
		"--rate-schedule 1e300:5",
		"-w ycsb-d --records 100 --records-max 50",
		"-w ycsb-10 --records-max 200000",
		"-w ycsb-e --records-max 200000 --update 0.5",
		"-w cdb --records-max 200000",
		"-w cdb --scan-rows 5",
		"-w uniform --records-max 200000",
		"-w uniform --scan-rows 5",
		"-w uniform --working-set-schedule 0:0.0001",
		"-w ycsb-a --scan-rows 5",
		"-w tpcc --warehouses 65535",
		"-w tpcc --audit-seconds 1",
	};

	(void)state;
	assert_int_equal(status_of("--seed=18446744073709551615", parse_all), 0);
	assert_int_equal(status_of("--memory-mib 8 --mem-schedule 0:5,2.5:4.5", parse_all), 0);
	assert_int_equal(status_of("-w ycsb-e --records-max 200000 --scan-rows 5", parse_all), 0);
	assert_int_equal(status_of("-w uniform --working-set-schedule 0:0.001", parse_all), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (status_of(bad[i], parse_all) != argp_err_exit_status)
			fail_msg("'%s' was taken", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lists),
		cmocka_unit_test(test_bad_lists),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_log_options),
		cmocka_unit_test(test_bad_log_options),
		cmocka_unit_test(test_bad_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
