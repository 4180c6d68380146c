// SPDX-License-Identifier: GPL-2.0-or-later
/* The line that says how far things are, and results as tables and as JSON. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "oltp-engine/bench/progress.h"

static void assert_line(const char *expected, const struct bench_progress *of, double seconds)
{
	char text[128];

	progress_format(text, sizeof(text), "loading", of, seconds);
	assert_string_equal(text, expected);
}

static void test_lines(void **state)
{
	(void)state;
	struct bench_progress of = { .unit = "records" };
	char text[16];

	assert_line("oltp: loading, 3 s", NULL, 3);
	assert_line("oltp: loading, 3 s", &of, 3);
	of.total = 1000;
	assert_line("oltp: loading, 3 s: 0 of 1000 records (0%), 0 s left", &of, 3);
	of.done = 250;
	assert_line("oltp: loading, 3 s: 250 of 1000 records (25%), 9 s left", &of, 3);
	of.done = 1000;
	assert_line("oltp: loading, 4 s: 1000 of 1000 records (100%), 0 s left", &of, 4);
	/* More than was known at first. */
	of.done = 1001;
	assert_line("oltp: loading, 4 s", &of, 4);
	progress_format(text, sizeof(text), "loading", &of, 4);
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

static void test_line_comes_and_goes(void **state)
{
	(void)state;
	struct bench_progress of = { .unit = "records", .total = 8, .done = 2 };
	struct timespec pause = { 0, 10000000 };
	time_t end = time(NULL) + 120;
	struct progress *progress;
	size_t bytes = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(out);
	progress = progress_start(out, "loading", &of);
	assert_non_null(progress);
	/* Looked at under the stream's own lock, as it is written by another thread. */
	for (long at = 0; !at && time(NULL) < end; nanosleep(&pause, NULL)) {
		flockfile(out);
		at = ftell(out);
		funlockfile(out);
	}
	progress_stop(progress);
	fclose(out);
	assert_non_null(strstr(text, ": 2 of 8 records (25%)"));
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	free(text);
}

static void test_short_things_have_no_line(void **state)
{
	(void)state;
	size_t bytes = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &bytes);
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	progress_stop(progress_start(out, "loading", NULL));
	clock_gettime(CLOCK_MONOTONIC, &now);
	fclose(out);
	/* On a machine that stood still for two seconds in between, it may be there. */
	if (now.tv_sec - start.tv_sec < 2)
		assert_string_equal(text, "");
	free(text);
	assert_null(progress_start(NULL, "loading", NULL));
	progress_stop(NULL);
	progress_put(NULL, "nobody sees this");
}

static void put_some(struct fields *fields)
{
	fields_u64(fields, "a", UINT64_MAX);
	fields_object_begin(fields, "b");
	fields_i64(fields, "c", -5);
	fields_object_begin(fields, "d");
	fields_object_end(fields);
	fields_bool(fields, "e", true);
	fields_object_end(fields);
	fields_number(fields, "f", 2, 1.5);
	fields_number(fields, "g", 2, 0.0 / 0.0);
	fields_short(fields, "h", 0.25);
	fields_text(fields, "i", "\"\\\n");
	fields_null(fields, "j");
}

static void assert_fields(enum fields_style style, const char *expected)
{
	char text[1024] = "";
	FILE *out = fmemopen(text, sizeof(text), "w");
	struct fields fields;

	assert_non_null(out);
	fields_begin(&fields, out, style);
	put_some(&fields);
	fields_end(&fields);
	fclose(out);
	assert_string_equal(text, expected);
}

static void test_fields(void **state)
{
	(void)state;
	assert_fields(FIELDS_JSON,
		      "{\"a\":18446744073709551615,\"b\":{\"c\":-5,\"d\":{},\"e\":true},"
		      "\"f\":1.50,\"g\":null,\"h\":0.25,\"i\":\"\\\"\\\\\\u000a\",\"j\":null}\n");
	assert_fields(FIELDS_TABLE,
		      "a                                  18446744073709551615\n"
		      "b.c                                -5\n"
		      "b.e                                yes\n"
		      "f                                  1.50\n"
		      "g                                  -\n"
		      "h                                  0.25\n"
		      "i                                  \"\\\n\n"
		      "j                                  -\n");
}

/* Where a line can not be erased, what comes after would be found behind it. */
static void test_only_on_terminals_that_erase(void **state)
{
	const int saved = dup(STDERR_FILENO), master = posix_openpt(O_RDWR | O_NOCTTY);
	int terminal;

	(void)state;
	assert_true(saved >= 0 && master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	setenv("TERM", "linux", 1);
	assert_int_equal(dup2(terminal, STDERR_FILENO), STDERR_FILENO);
	assert_ptr_equal(progress_terminal(false), stderr);
	assert_null(progress_terminal(true));
	setenv("TERM", "dumb", 1);
	assert_null(progress_terminal(false));
	unsetenv("TERM");
	assert_null(progress_terminal(false));
	setenv("TERM", "linux", 1);
	assert_int_equal(dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO),
			 STDERR_FILENO);
	assert_null(progress_terminal(false));
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	close(saved);
	close(terminal);
	close(master);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_line_comes_and_goes),
		cmocka_unit_test(test_short_things_have_no_line),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_only_on_terminals_that_erase),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
