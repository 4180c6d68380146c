// SPDX-License-Identifier: GPL-2.0-or-later
/* The manual pages name the options that the programs have, and no others. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define NAMES_MAX	128u
#define NAME_BYTES	64u

struct names {
	uint32_t n;
	char names[NAMES_MAX][NAME_BYTES];
};

static const char name_chars[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

static bool names_have(const struct names *names, const char *name)
{
	for (uint32_t i = 0; i < names->n; i++) {
		if (!strcmp(names->names[i], name))
			return true;
	}
	return false;
}

static void names_add(struct names *names, const char *at)
{
	size_t length = strspn(at, name_chars);
	char name[NAME_BYTES];

	assert_in_range(length, 1, NAME_BYTES - 1);
	memcpy(name, at, length);
	name[length] = 0;
	if (names_have(names, name))
		return;
	assert_true(names->n < NAMES_MAX);
	strcpy(names->names[names->n++], name);
}

/* "  -w, --workload=NAME   what to run" or "      --seed=N": no text stands so far to the left. */
static void read_help(const char *program, struct names *ret_names)
{
	char self[PATH_MAX] = "", command[2 * PATH_MAX], line[512];
	FILE *pipe;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	*strrchr(self, '/') = 0;
	snprintf(command, sizeof(command), "COLUMNS=100 '%s/../bin/%s' --help", self, program);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char *at = line + strspn(line, " ");

		if (at - line > 6 || *at != '-')
			continue;
		if (at[1] != '-')
			at += 4;
		if (!strncmp(at, "--", 2))
			names_add(ret_names, at + 2);
	}
	assert_int_equal(pclose(pipe), 0);
	/* It was a help text. */
	assert_true(names_have(ret_names, "help"));
}

/* "Fl \-workload", anywhere. */
static void read_page(const char *program, struct names *ret_names)
{
	static const char mark[] = "Fl \\-";
	char path[PATH_MAX], line[512];
	FILE *page;

	snprintf(path, sizeof(path), "oltp-engine/man/%s.1", program);
	page = fopen(path, "r");
	if (!page)
		fail_msg("%s: not there; tests run in the root of the sources", path);
	while (fgets(line, sizeof(line), page)) {
		for (char *at = line; (at = strstr(at, mark)); at += strlen(mark))
			names_add(ret_names, at + strlen(mark));
	}
	fclose(page);
}

static uint32_t missing(const char *what, const struct names *from, const struct names *in)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < from->n; i++) {
		if (names_have(in, from->names[i]))
			continue;
		print_error("%s: --%s\n", what, from->names[i]);
		n++;
	}
	return n;
}

static void assert_same_options(const char *program)
{
	static struct names help, page;

	memset(&help, 0, sizeof(help));
	memset(&page, 0, sizeof(page));
	read_help(program, &help);
	read_page(program, &page);
	print_message("%s: %u options\n", program, help.n);
	assert_int_equal(missing("not in the manual page", &help, &page) +
			 missing("not in --help", &page, &help), 0);
}

static void test_bench(void **state)
{
	(void)state;
	assert_same_options("oltp-bench");
}

static void test_index_bench(void **state)
{
	(void)state;
	assert_same_options("oltp-index-bench");
}

static void test_check(void **state)
{
	(void)state;
	assert_same_options("oltp-check");
}

static void test_history(void **state)
{
	(void)state;
	assert_same_options("oltp-history");
}

static void test_server(void **state)
{
	(void)state;
	assert_same_options("oltp-server");
}

static void test_node(void **state)
{
	(void)state;
	assert_same_options("oltp-node");
}

static void test_load(void **state)
{
	(void)state;
	assert_same_options("oltp-load");
}

static void test_volume(void **state)
{
	(void)state;
	assert_same_options("oltp-volume");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bench),
		cmocka_unit_test(test_index_bench),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_node),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
