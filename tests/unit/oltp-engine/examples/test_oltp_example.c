// SPDX-License-Identifier: GPL-2.0-or-later
/* The example program does what it says. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static void test_bank(void **state)
{
	(void)state;
	static const char expected[] =
		"bank: 1000 accounts in 10 branches, 10000000 cents, 0 overdrawn\n"
		"bank: all is there\n"
		"bank: 1 worker\n"
		"bank: 2 workers\n"
		"bank: 1 worker\n"
		"bank: 1000 accounts in 10 branches, 10000000 cents, 0 overdrawn\n"
		"bank: all is there\n";
	char self[PATH_MAX] = "", command[2 * PATH_MAX], text[1024] = "";
	FILE *pipe;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "'%s/../bin/oltp-example-bank'", self);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	text[fread(text, 1, sizeof(text) - 1, pipe)] = 0;
	assert_int_equal(pclose(pipe), 0);
	assert_string_equal(text, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
