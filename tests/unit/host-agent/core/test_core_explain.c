// SPDX-License-Identifier: GPL-2.0-or-later
/* What `explain` says in each situation: the reason, the numbers, and what comes next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/host-agent/core/core_script.h"

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
	assert_string_equal(ebb_class_name(EBB_CLASS_SPOT), "spot");
}

static void test_memory(void **state)
{
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };
	struct ebb_explain e;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/1m64-1024");
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_GUEST_MEM_ADD);
	assert_int_equal(e.bytes, 1 << 30);
	assert_true(says(&e, "node 0: 1024 MiB more are on offer (0 held, limit 1024)"));
	assert_true(says(&e, "holds 0 MiB of pool memory, limit 1024, "
			     "goal 1024 (min 64, max 1024"));
	script_pool(&s, 'a', 0, 1024, 1000, 0);
	assert_int_equal(script_mem(&s, 'a'), 0);
	script_boot(&s, 'b', 2, "1/1m0-1024");
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_GUEST_MEM_RELEASE);
	assert_int_equal(e.bytes, 488 << 20);
	assert_true(e.until > s.now && e.until <= s.now + MSEC(300));
	assert_true(says(&e, "the guest has to give back 488 of 1000 MiB (limit 512); "
			     "memory above 512 is revoked in 0.30 s"));
	e = explain(&s, 'b');
	assert_int_equal(e.wait, EBB_WAIT_GUEST_MEM_ADD);
	assert_true(says(&e, "policy fair wants it to have 512 MiB, 24 can be promised now; "
			     "waiting for memory of host node 0"));
	assert_true(says(&e, "  a holds 1000 MiB, limit 512; the rest is revoked from"));
	script_pool(&s, 'a', 0, 512, 512, 488);
	assert_int_equal(script_mem(&s, 'a'), 0);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_true(says(&e, "the guest has not confirmed that it uses 488 revoked MiB no more"));
	/* A limit that its device has not confirmed holds up others. */
	set.u.sla_set = script_sla("1/1m64-256");
	assert_int_equal(ebb_state_report(s.state, s.now, &set), 0);
	script_expect(&s, "limits a 1/1 m512/256!300");
	script_pool(&s, 'a', 0, 512, 0, 0);
	assert_int_equal(script_mem(&s, 'a'), 0);
	script_expect(&s, "limits a 1/1 m0/256");
	e = explain(&s, 'b');
	assert_true(says(&e, "  a may take up to 512 MiB, limit 256, until its device has "
			     "confirmed"));
	/* A device without the pool. */
	s.pools[0][0].size_bytes = 0;
	assert_int_equal(script_hello(&s, 'a', true, true, 1, ""), 0);
	script_settle(&s);
	e = explain(&s, 'a');
	assert_int_equal(e.wait, EBB_WAIT_SLA);
	assert_true(says(&e, "node 0: its device has no pool that fits the domain"));
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_demand),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
