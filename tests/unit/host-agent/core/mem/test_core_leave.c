// SPDX-License-Identifier: GPL-2.0-or-later
/* Pool memory: what a guest is told of before it is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

static void demand(struct script *s, uint32_t held_mib)
{
	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', held_mib);
	script_settle(s);
	script_boot(s, 'b', 2, "1/1m0-1024");
}

/* A guest that can is told shortly before; it leaves, and nothing is taken. */
static void test_leave(void **state)
{
	struct script *s = *state;
	usec_t due;

	s->can_leave = true;
	demand(s, 1024);
	due = script_vm_pool(s, 'a')->due[0].at;
	assert_int_equal(s->wake_at, due - MSEC(30));
	s->now = due - MSEC(30) - 1;
	script_expect_nothing(s);
	s->now = due - MSEC(30);
	script_expect(s, "leave a 0 512");
	script_expect_nothing(s);
	assert_int_equal(s->wake_at, due);
	s->now += MSEC(10);
	script_holds(s, 'a', 700);
	script_expect(s, "cap b 644");
	script_pool(s, 'a', 0, 512, 512, 0);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_expect(s, "limits a 1/1 m512/512", "cap a 832");
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_REVOKE));
	assert_int_equal(s->record.bytes, 512 << 20);
	assert_int_equal(s->record.total_usec, 0);
	assert_non_null(strstr(s->record.text, "512 MiB taken, 0 of them by force"));
	s->now = due + SEC(2);
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_MEM_REVOKE));
	assert_false(script_find_record(s, 'a', EBB_EVENT_MEM_RELEASE));
}

/* What is left at the deadline is taken, and counted. */
static void test_leave_in_part(void **state)
{
	struct script *s = *state;
	usec_t due;

	s->can_leave = true;
	demand(s, 1024);
	due = script_vm_pool(s, 'a')->due[0].at;
	s->now = due - MSEC(7);
	script_expect(s, "leave a 0 512");
	script_holds(s, 'a', 600);
	script_expect(s, "cap b 744");
	script_settle(s);
	s->now = due - 1;
	script_expect_nothing(s);
	s->now = due;
	script_expect(s, "revoke a 0 512");
	script_pool(s, 'a', 0, 512, 512, 88);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_REVOKE));
	assert_int_equal(s->record.bytes, 512 << 20);
	assert_non_null(strstr(s->record.text, "512 MiB taken, 88 of them by force"));
}

/* Taken back and demanded again: the guest is told again.  A new link begins anew. */
static void test_leave_again(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	s->can_leave = true;
	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', 1000);
	script_settle(s);
	for (int i = 0; i < 2; i++) {
		set.u.sla_set = script_sla("1/1m0-500");
		assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
		script_settle(s);
		s->now = script_vm_pool(s, 'a')->due[0].at - MSEC(30);
		script_expect(s, "leave a 0 500");
		set.u.sla_set = script_sla("1/1m0-1024");
		assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
		script_settle(s);
		assert_int_equal(script_vm_pool(s, 'a')->num_due, 0);
	}
	set.u.sla_set = script_sla("1/1m0-500");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_settle(s);
	s->now = script_vm_pool(s, 'a')->due[0].at - MSEC(30);
	script_expect(s, "leave a 0 500");
	/* The next driver knows nothing of it. */
	s->can_leave = false;
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 2, ""), 0);
	script_settle(s);
	s->now = script_vm_pool(s, 'a')->due[0].at - 1;
	script_expect_nothing(s);
	s->now++;
	script_expect(s, "revoke a 0 500");
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_leave),
		TEST(test_leave_in_part),
		TEST(test_leave_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
