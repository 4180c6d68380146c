// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The /proc parsers on sample text, and CPU use over a window.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/monitord/proc.h"

#define SEC	1000000000ull

static char path[64];

static const char *file_of(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	assert_int_equal(fclose(f), 0);
	return path;
}

static int path_make(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/ebb-proc.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int path_remove(void **state)
{
	(void)state;
	return unlink(path);
}

static void cpu_sums_what_is_busy(void **state)
{
	struct ebb_proc_cpu cpu;

	(void)state;
	assert_int_equal(ebb_proc_cpu_read(file_of(
		"cpu  100 20 30 4000 500 6 7 80 9 10\n"
		"cpu0 50 10 15 2000 250 3 3 40 0 0\n"
		"cpu3 50 10 15 2000 250 3 4 40 0 0\n"
		"intr 34859 9 0 0\n"
		"ctxt 1990473\n"
		"cpu9 this one comes too late to count\n"), &cpu), 0);
	assert_int_equal(cpu.busy_ticks, 100 + 20 + 30 + 6 + 7);
	assert_int_equal(cpu.cpus_online, 2);
}

static void cpu_needs_a_whole_total_and_a_cpu(void **state)
{
	struct ebb_proc_cpu cpu;

	(void)state;
	assert_int_equal(ebb_proc_cpu_read(file_of(""), &cpu), -ENODATA);
	assert_int_equal(ebb_proc_cpu_read(file_of("cpu0 1 2 3 4 5 6 7\n"), &cpu), -ENODATA);
	assert_int_equal(ebb_proc_cpu_read(file_of("cpu  1 2 3 4 5 6 7\n"), &cpu), -ENODATA);
	assert_int_equal(ebb_proc_cpu_read(file_of("cpu  1 2 3 4 5 6\ncpu0 1\n"), &cpu), -ENODATA);
	assert_int_equal(ebb_proc_cpu_read(file_of("cpu  1 2 -3 4 5 6 7\ncpu0 1\n"), &cpu),
			 -ENODATA);
	assert_int_equal(ebb_proc_cpu_read(file_of(
		"cpu  1 2 3 4 5 6 99999999999999999999999\ncpu0 1\n"), &cpu), -ENODATA);
	assert_int_equal(ebb_proc_cpu_read("/nonexistent/stat", &cpu), -ENOENT);
}

static void cpu_of_this_machine(void **state)
{
	struct ebb_proc_cpu cpu;

	(void)state;
	assert_int_equal(ebb_proc_cpu_read("/proc/stat", &cpu), 0);
	assert_int_equal(cpu.cpus_online, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(cpu.busy_ticks > 0);
}

static void mem_reads_two_lines_anywhere(void **state)
{
	struct ebb_proc_mem mem;

	(void)state;
	assert_int_equal(ebb_proc_mem_read(file_of(
		"MemTotal:       16303428 kB\n"
		"MemFree:          123456 kB\n"
		"MemAvailable:    9876543 kB\n"
		"Buffers:               0 kB\n"), &mem), 0);
	assert_int_equal(mem.total_bytes, 16303428ull * 1024);
	assert_int_equal(mem.available_bytes, 9876543ull * 1024);
	assert_int_equal(ebb_proc_mem_read(file_of("MemAvailable: 1 kB\nMemTotal: 2 kB"), &mem), 0);
	assert_int_equal(mem.total_bytes, 2048);
	assert_int_equal(mem.available_bytes, 1024);
}

static void mem_needs_both(void **state)
{
	struct ebb_proc_mem mem;

	(void)state;
	assert_int_equal(ebb_proc_mem_read(file_of(""), &mem), -ENODATA);
	assert_int_equal(ebb_proc_mem_read(file_of("MemTotal: 5 kB\n"), &mem), -ENODATA);
	assert_int_equal(ebb_proc_mem_read(file_of("MemTotal: x\nMemAvailable: 5 kB\n"), &mem),
			 -ENODATA);
	assert_int_equal(ebb_proc_mem_read(file_of(
		"MemTotal: 18446744073709551615 kB\nMemAvailable: 5 kB\n"), &mem), -ENODATA);
	assert_int_equal(ebb_proc_mem_read("/nonexistent/meminfo", &mem), -ENOENT);
}

static void mem_of_this_machine(void **state)
{
	struct ebb_proc_mem mem;

	(void)state;
	assert_int_equal(ebb_proc_mem_read("/proc/meminfo", &mem), 0);
	assert_true(mem.available_bytes > 0);
	assert_true(mem.total_bytes >= mem.available_bytes);
}

static void usage_needs_two_samples(void **state)
{
	struct ebb_usage usage = { .num = 0 };

	(void)state;
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 0);
	ebb_usage_add(&usage, 5 * SEC, 1000);
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 0);
	/* Half a second in which 75 of 100 ticks a second were used: one and a half CPUs. */
	ebb_usage_add(&usage, 5 * SEC + SEC / 2, 1075);
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 1500);
}

static void usage_covers_the_window(void **state)
{
	struct ebb_usage usage = { .num = 0 };
	uint64_t ticks = 0;

	(void)state;
	/* Idle for long, longer than the ring remembers; then two CPUs for a second. */
	for (int i = 0; i < 200; i++)
		ebb_usage_add(&usage, SEC + i * SEC / 4, ticks);
	for (int i = 200; i < 204; i++)
		ebb_usage_add(&usage, SEC + i * SEC / 4, ticks += 50);
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 2000);
	assert_int_equal(ebb_usage_permille(&usage, 2 * SEC, 100), 1000);
	assert_int_equal(ebb_usage_permille(&usage, 1, 100), 2000);
	ebb_usage_add(&usage, SEC + 204 * SEC / 4, ticks);
	assert_int_equal(ebb_usage_permille(&usage, 1, 100), 0);
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 1500);
}

static void usage_bears_counters_that_go_back(void **state)
{
	struct ebb_usage usage = { .num = 0 };

	(void)state;
	ebb_usage_add(&usage, SEC, 1000);
	ebb_usage_add(&usage, 2 * SEC, 999);
	assert_int_equal(ebb_usage_permille(&usage, SEC, 100), 0);
	ebb_usage_add(&usage, 2 * SEC, 1999);
	assert_int_equal(ebb_usage_permille(&usage, 1, 100), 9990);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_sums_what_is_busy),
		cmocka_unit_test(cpu_needs_a_whole_total_and_a_cpu),
		cmocka_unit_test(cpu_of_this_machine),
		cmocka_unit_test(mem_reads_two_lines_anywhere),
		cmocka_unit_test(mem_needs_both),
		cmocka_unit_test(mem_of_this_machine),
		cmocka_unit_test(usage_needs_two_samples),
		cmocka_unit_test(usage_covers_the_window),
		cmocka_unit_test(usage_bears_counters_that_go_back),
	};

	return cmocka_run_group_tests_name("ebb_proc", tests, path_make, path_remove);
}
