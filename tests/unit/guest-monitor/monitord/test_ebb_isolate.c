// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is kept to the startup set and who is let go, and the kernel's two ways to
 * write sets of CPUs.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/monitord/isolate.h"

static struct ebb_isolate_set set_of(const char *list)
{
	struct ebb_isolate_set set;

	assert_int_equal(ebb_isolate_list_parse(list, &set), 0);
	return set;
}

static bool is_narrowed(const char *startup, const char *online, const char *allowed)
{
	struct ebb_isolate_cpus cpus = { set_of(startup), set_of(online), set_of("0-191") };
	struct ebb_isolate_set set = set_of(allowed);

	return ebb_isolate_must_narrow(&cpus, &set);
}

static bool is_let_go(const char *startup, const char *online, const char *allowed, bool is_engine)
{
	struct ebb_isolate_cpus cpus = { set_of(startup), set_of(online), set_of("0-191") };
	struct ebb_isolate_set set = set_of(allowed);

	return ebb_isolate_must_let_go(&cpus, &set, is_engine);
}

static void who_may_run_anywhere_is_narrowed(void **state)
{
	(void)state;
	assert_true(is_narrowed("0-1", "0-3", "0-191"));
	assert_true(is_narrowed("0-1", "0-3", "0-3"));
	assert_true(is_narrowed("0", "0,64,190", "0,64,190"));
	/* Before any CPU has come, nobody can be told from somebody who asked for these. */
	assert_true(is_narrowed("0-1", "0-1", "0-1"));
}

static void who_asks_for_certain_cpus_gets_them(void **state)
{
	(void)state;
	assert_false(is_narrowed("0-1", "0-3", "2"));
	assert_false(is_narrowed("0-1", "0-3", "2-3"));
	assert_false(is_narrowed("0-1", "0-3", "0"));
	/* As is who has been narrowed already, and an engine's thread on either kind of CPU. */
	assert_false(is_narrowed("0-1", "0-3", "0-1"));
	assert_false(is_narrowed("0-1", "0-3", "0-2"));
	assert_false(is_narrowed("0", "0,64,190", "0,64"));
}

static void nothing_is_done_without_startup_cpus(void **state)
{
	(void)state;
	assert_false(is_narrowed("", "0-3", "0-3"));
	assert_false(is_narrowed("0-1", "2-3", "2-3"));
	assert_false(is_let_go("", "0-3", "", false));
	assert_false(is_let_go("0-1", "2-3", "0-1", false));
}

static void who_was_narrowed_is_let_go(void **state)
{
	(void)state;
	assert_true(is_let_go("0-1", "0-3", "0-1", false));
	/* CPU 1 is offline, so that Linux may not name it. */
	assert_true(is_let_go("0-1", "0,2-3", "0", false));
	assert_true(is_let_go("0-1", "0,2-3", "0-1", false));
}

static void who_was_not_narrowed_stays(void **state)
{
	(void)state;
	assert_false(is_let_go("0-1", "0-3", "0", false));
	assert_false(is_let_go("0-1", "0-3", "0-2", false));
	assert_false(is_let_go("0-1", "0-3", "2", false));
	assert_false(is_let_go("0-1", "0-3", "0-3", false));
}

static void engines_are_not_let_go(void **state)
{
	(void)state;
	assert_false(is_let_go("0-1", "0-3", "0-1", true));
}

static void narrowed_and_let_go_are_opposites(void **state)
{
	struct ebb_isolate_cpus cpus = { set_of("0-2"), set_of("0-9"), set_of("0-15") };

	(void)state;
	assert_true(ebb_isolate_must_narrow(&cpus, &cpus.possible));
	assert_false(ebb_isolate_must_narrow(&cpus, &cpus.startup));
	assert_true(ebb_isolate_must_let_go(&cpus, &cpus.startup, false));
	assert_false(ebb_isolate_must_let_go(&cpus, &cpus.possible, false));
}

static void lists_are_read(void **state)
{
	struct ebb_isolate_set set = set_of("0-2,64,8191\n"), expected = { { 0 } };

	(void)state;
	for (uint32_t cpu = 0; cpu < 3; cpu++)
		ebb_isolate_set_add(&expected, cpu);
	ebb_isolate_set_add(&expected, 64);
	ebb_isolate_set_add(&expected, 8191);
	ebb_isolate_set_add(&expected, 8192);
	assert_memory_equal(&set, &expected, sizeof(set));
	assert_int_equal(expected.words[0], 7);
	assert_int_equal(expected.words[1], 1);
	assert_int_equal(expected.words[127], 1ull << 63);
	set = set_of("\n");
	memset(&expected, 0, sizeof(expected));
	assert_memory_equal(&set, &expected, sizeof(set));
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const texts[] = {
		"x", "1-", "-1", "3-1", "1,,2", "1,", ",1", "8192", "0-8192", "99999999999", "1 2",
	};
	struct ebb_isolate_set set;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(ebb_isolate_list_parse(texts[i], &set), -EINVAL);
}

static void masks_are_read_and_written(void **state)
{
	static const struct {
		const char *list, *mask;
	} cases[] = {
		{ "0", "1" },
		{ "", "0" },
		{ "0-3", "f" },
		{ "0-31", "ffffffff" },
		{ "32", "1,00000000" },
		{ "1,64-67", "f,00000000,00000002" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ebb_isolate_set expected = set_of(cases[i].list), set;
		char text[EBB_ISOLATE_TEXT_BYTES];

		ebb_isolate_mask_format(&expected, text);
		assert_string_equal(text, cases[i].mask);
		strcat(text, "\n");
		assert_int_equal(ebb_isolate_mask_parse(text, &set), 0);
		assert_memory_equal(&set, &expected, sizeof(set));
	}
}

static void the_largest_mask_fits(void **state)
{
	struct ebb_isolate_set full = set_of("0-8191"), set;
	char text[EBB_ISOLATE_TEXT_BYTES], more[EBB_ISOLATE_TEXT_BYTES + 1];

	(void)state;
	ebb_isolate_mask_format(&full, text);
	assert_int_equal(strlen(text), EBB_ISOLATE_TEXT_BYTES - 3);
	assert_int_equal(ebb_isolate_mask_parse(text, &set), 0);
	assert_memory_equal(&set, &full, sizeof(set));
	more[0] = '0';
	strcpy(more + 1, text);
	assert_int_equal(ebb_isolate_mask_parse(more, &set), -EINVAL);
}

static void what_is_no_mask_is_refused(void **state)
{
	static const char *const texts[] = { "", "\n", ",", "g", "0x1", "-1", "1 2" };
	struct ebb_isolate_set set;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(ebb_isolate_mask_parse(texts[i], &set), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_may_run_anywhere_is_narrowed),
		cmocka_unit_test(who_asks_for_certain_cpus_gets_them),
		cmocka_unit_test(nothing_is_done_without_startup_cpus),
		cmocka_unit_test(who_was_narrowed_is_let_go),
		cmocka_unit_test(who_was_not_narrowed_stays),
		cmocka_unit_test(engines_are_not_let_go),
		cmocka_unit_test(narrowed_and_let_go_are_opposites),
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(masks_are_read_and_written),
		cmocka_unit_test(the_largest_mask_fits),
		cmocka_unit_test(what_is_no_mask_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
