// SPDX-License-Identifier: GPL-2.0-or-later
/* What `explain` says in each situation: the reason, the numbers, and what comes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/core_script.h"

static struct ebb_explain explain(const struct script *s, char vm)
{
	struct ebb_explain e;

	ebb_explain_vm(s->state, script_vm(s, vm), s->now, &e);
	assert_true(e.num_lines >= 1 && e.num_lines <= EBB_EXPLAIN_LINES);
	return e;
}

static bool says(const struct ebb_explain *e, const char *text)
{
	for (uint32_t i = 0; i < e->num_lines; i++)
		if (strstr(e->lines[i], text))
			return true;
	for (uint32_t i = 0; i < e->num_lines; i++)
		print_error("  %s\n", e->lines[i]);
	return false;
}

static void test_states(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct ebb_explain e;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_START);
	assert_int_equal(script_running(&s, 'a', 1), 0);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_LINK);
	assert_int_equal(script_hello(&s, 'a', true, false, 0, ""), 0);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_DRIVER);
	assert_int_equal(script_hello(&s, 'a', false, true, 1, ""), 0);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_GUEST_ADD);
	assert_int_equal(e.node, 0);
	assert_int_equal(e.cpus, 3);
	assert_true(says(&e, "3 more CPUs are on offer (1 held, limit 4)"));
	assert_int_equal(script_add(&s, 'a', 1, 3, 0, false), 0);
	script_expect(&s, "plug a 1", "plug a 2", "plug a 3");
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_HOST);
	assert_int_equal(e.until, s.now + s.cfg.request_usec);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_NOTHING);
	assert_int_equal(e.until, EBB_TIME_NEVER);
	assert_true(says(&e, "holds 4 CPUs, limit 4, goal 4 of policy fair"));
	script_finish(&s);
}

static void test_demand(void **state)
{
	const struct ebb_sla sla = script_sla("1/4"), huge = script_sla("9/9");
	struct ebb_explain e;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 3, 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	assert_int_equal(script_running(&s, 'b', 2), 0);
	assert_int_equal(script_hello(&s, 'b', true, true, 1, ""), 0);
	script_expect(&s, "limits a 4/2!300", "welcome b ack", "limits b 1/1", "home b 0 @1");
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_GUEST_REMOVE);
	assert_int_equal(e.cpus, 2);
	assert_int_equal(e.until, s.now + MSEC(300));
	assert_true(says(&e, "2 of 4 CPUs (limit 2); the first goes home by force in 0.30 s"));
	e = explain(&s, 'b');
	assert_int_equal(e.wait, EBB_WAIT_FLOOR);
	assert_true(says(&e, "policy fair wants it to have 2, 1 can be promised now"));
	assert_true(says(&e, "a uses 4, limit 2; its CPUs go home from 0.30 s on"));
	assert_int_equal(e.until, s.now + MSEC(300));
	s.now += MSEC(300);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_true(says(&e, "let a deadline pass"));
	/* Never admitted: says so and why. */
	assert_int_equal(script_define(&s, 'c', &huge), 0);
	assert_int_equal(script_running(&s, 'c', 3), 0);
	script_settle(&s);
	e = explain(&s, 'c');
	assert_int_equal(e.wait, EBB_WAIT_SLA);
	assert_true(says(&e, "needs 9 cores on host node 0, which has 4"));
	script_finish(&s);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = 0; i < EBB_WAIT_MAX; i++)
		assert_string_not_equal(ebb_wait_name((enum ebb_wait)i), "?");
	assert_string_equal(ebb_wait_name(EBB_WAIT_MAX), "?");
	for (int i = 0; i < EBB_EVENT_MAX; i++)
		assert_string_not_equal(ebb_event_name((enum ebb_event)i), "?");
	for (int i = 0; i < EBB_ACTION_MAX; i++)
		assert_string_not_equal(ebb_action_name((enum ebb_action_type)i), "?");
	for (int i = 0; i < EBB_FACT_MAX; i++)
		assert_string_not_equal(ebb_fact_name((enum ebb_fact_type)i), "?");
	for (uint16_t i = 0; i < VIRTIO_EBB_REASON_MAX; i++)
		assert_string_not_equal(ebb_reason_name(i), "?");
	assert_string_equal(ebb_reason_name(VIRTIO_EBB_REASON_MAX), "?");
	assert_int_equal(ebb_class_from_name("spot"), EBB_CLASS_SPOT);
	assert_int_equal(ebb_class_from_name("reserved"), EBB_CLASS_RESERVED);
	assert_int_equal(ebb_class_from_name("Spot"), EBB_CLASS_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_demand),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
