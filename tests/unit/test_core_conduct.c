// SPDX-License-Identifier: GPL-2.0-or-later
/* Guests that do harm if they can: the neighbour gets its share in time, the verdict is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/core_script.h"

#define DEADLINE_MSEC	300	/* of script_sla() */

/* "a" has taken all four cores, then "b" starts, and two are demanded. */
static void begin(struct script *s)
{
	script_init(s, 1, 4, 1, false);
	s->can_lend = true;
	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 3, 0);
	script_boot(s, 'b', 2, "1/4");
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 4);
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 2);
}

/* "b" has its share, and can take it. */
static void expect_share(struct script *s)
{
	script_settle(s);
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 2);
	if (script_vm(s, 'b')->nodes[0].held < 2)
		script_grow(s, 'b', 1, 0);
	assert_int_equal(script_vm(s, 'b')->nodes[0].held, 2);
}

static void expect_verdict(struct script *s, const char *text)
{
	struct ebb_explain e;
	char verdict[EBB_TEXT_SIZE];
	bool is_said = false;

	assert_int_equal(ebb_vm_verdict(script_vm(s, 'a'), s->now, verdict), text[0] != '\0');
	assert_string_equal(verdict, text);
	ebb_explain_vm(s->state, script_vm(s, 'a'), s->now, &e);
	for (uint32_t i = 0; i < e.num_lines; i++)
		is_said = is_said || strstr(e.lines[i], text);
	assert_true(is_said);
}

static void test_good(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	assert_int_equal(script_lend(&s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(&s, 'a', 51, 2, false), 0);
	expect_share(&s);
	expect_verdict(&s, "");
	script_finish(&s);
}

static void test_silent(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	s.now += MSEC(DEADLINE_MSEC);
	expect_share(&s);
	expect_verdict(&s, "did not answer 2 demands");
	assert_true(script_find_record(&s, 'a', EBB_EVENT_FORCE));
	assert_non_null(strstr(s.record.text, "did not answer 1 demands"));
	/* It does not matter how long it has been silent, nor for ever. */
	s.now += SEC(600);
	expect_verdict(&s, "");
	script_finish(&s);
}

static void test_one_before_the_deadline(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	s.now += MSEC(DEADLINE_MSEC) - 2000;
	assert_int_equal(script_lend(&s, 'a', 50, 3, false), 0);
	script_settle(&s);
	s.now += 2000;
	expect_share(&s);
	expect_verdict(&s, "gave 1 of 2 CPUs only");
	assert_true(script_find_record(&s, 'a', EBB_EVENT_FORCE));
	assert_non_null(strstr(s.record.text, "gave 1 of 2 CPUs only"));
	/* A new boot has done nothing yet. */
	assert_int_equal(script_hello(&s, 'a', false, true, 2, ""), 0);
	script_settle(&s);
	expect_verdict(&s, "");
	script_finish(&s);
}

/* The device has it as lent: the guest may run on it, but on its own home only. */
static void test_keeps_computing(void **state)
{
	struct script s;
	uint16_t vcpu = 0;

	(void)state;
	begin(&s);
	assert_int_equal(script_lend(&s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(&s, 'a', 51, 2, false), 0);
	expect_share(&s);
	for (uint16_t i = 2; i <= 3; i++) {
		const uint16_t runs_on = script_vm(&s, 'a')->vcpus[i].placed;

		assert_ptr_equal(ebb_state_thread_owner(s.state, runs_on, &vcpu),
				 script_vm(&s, 'a'));
		assert_int_equal(vcpu, 0);
	}
	script_finish(&s);
}

static void test_asks_again(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	assert_int_equal(script_lend(&s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(&s, 'a', 51, 2, false), 0);
	script_settle(&s);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(script_add(&s, 'a', 60 + i, 1, 0, true), 0);
		s.now += MSEC(10);
		script_settle(&s);
	}
	expect_share(&s);
	assert_int_equal(script_vm(&s, 'a')->nodes[0].held, 2);
	expect_verdict(&s, "asked 4 times at once for what it had given back");
	script_finish(&s);
}

static void test_alternates(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	assert_int_equal(script_lend(&s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(&s, 'a', 51, 2, false), 0);
	expect_share(&s);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(script_lend(&s, 'a', 100 + i, 1, false), 0);
		script_settle(&s);
		assert_int_equal(script_vm(&s, 'a')->nodes[0].held, 1);
		assert_int_equal(script_vm(&s, 'b')->nodes[0].held, 2);
		assert_int_equal(script_add(&s, 'a', 200 + i, 1, 0, false), 0);
		script_settle(&s);
		assert_int_equal(script_vm(&s, 'a')->nodes[0].held, 2);
		s.now += MSEC(50);
	}
	assert_int_equal(script_vm(&s, 'b')->nodes[0].limit, 2);
	script_finish(&s);
}

static void test_flood(void **state)
{
	struct script s;

	(void)state;
	begin(&s);
	for (uint64_t i = 0; i < 120; i++) {
		assert_int_equal(script_add(&s, 'a', 1000 + i, 8, 0, true), 0);
		s.now += MSEC(2);
		script_settle(&s);
		while (i < 100 && script_find_record(&s, 'a', EBB_EVENT_ERROR))
			assert_non_null(strstr(s.record.text, "flooding: 50 requests within"));
	}
	s.now += MSEC(DEADLINE_MSEC);
	expect_share(&s);
	/* With the one of begin(). */
	expect_verdict(&s, "flooding: 121 requests/s");
	s.now += SEC(3);
	expect_verdict(&s, "did not answer 2 demands");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_one_before_the_deadline),
		cmocka_unit_test(test_keeps_computing),
		cmocka_unit_test(test_asks_again),
		cmocka_unit_test(test_alternates),
		cmocka_unit_test(test_flood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
