// SPDX-License-Identifier: GPL-2.0-or-later
/* A host without quorum: nothing grows, nobody comes, and what is due comes back (Q1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

static uint32_t limit_mib(const struct script *s, char vm)
{
	return script_vm_pool(s, vm)->limit * EBB_BLOCK_MIB;
}

static void test_cpus(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 2, 0);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 3);
	ebb_state_quorum_set(s->state, s->now, false, EBB_TIME_NEVER);
	assert_true(script_find_record(s, '\0', EBB_EVENT_QUORUM));
	/* The offer of a fourth is withdrawn. */
	script_expect(s, "limits a 3/3");
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "response a 7 nack limit []");
	/* What it gives back it does not get again. */
	assert_int_equal(script_lend(s, 'a', 8, 2, false), 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 2);
	assert_int_equal(script_add(s, 'a', 9, 1, 0, false), 0);
	script_expect(s, "response a 9 nack limit []");
	ebb_state_quorum_set(s->state, s->now, true, EBB_TIME_NEVER);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 4);
	script_grow(s, 'a', 1, 0);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 3);
}

static void test_memory(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m64-512");
	script_settle(s);
	script_holds(s, 'a', 200);
	assert_int_equal(limit_mib(s, 'a'), 512);
	ebb_state_quorum_set(s->state, s->now, false, EBB_TIME_NEVER);
	script_settle(s);
	script_took(s, 'a');
	script_settle(s);
	assert_int_equal(limit_mib(s, 'a'), 200);
	/* Not even its minimum. */
	script_holds(s, 'a', 10);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'a'), 10);
	ebb_state_quorum_set(s->state, s->now, true, EBB_TIME_NEVER);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'a'), 512);
}

static void test_nobody_comes(void **state)
{
	const struct ebb_sla sla = script_sla("1/4m64-512");
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/4");
	ebb_state_quorum_set(s->state, s->now, false, EBB_TIME_NEVER);
	script_settle(s);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_running(s, 'b', 2), 0);
	assert_int_equal(script_hello(s, 'b', true, true, 1, ""), 0);
	script_settle(s);
	assert_false(script_vm(s, 'b')->is_admitted);
	assert_non_null(strstr(script_vm(s, 'b')->error, "quorum"));
	assert_int_equal(limit_mib(s, 'b'), 0);
	ebb_state_quorum_set(s->state, s->now, true, EBB_TIME_NEVER);
	script_settle(s);
	assert_true(script_vm(s, 'b')->is_admitted);
	assert_string_equal(script_vm(s, 'b')->error, "");
	assert_int_equal(limit_mib(s, 'b'), 512);
}

/* What was demanded before is taken at its deadline. */
static void test_demands_go_on(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/8");
	script_grow(s, 'a', 7, 0);
	script_boot(s, 'b', 2, "1/8");
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 4);
	ebb_state_quorum_set(s->state, s->now, false, EBB_TIME_NEVER);
	script_settle(s);
	s->now += SEC(3);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 4);
	/* And stays free. */
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 1);
	ebb_state_quorum_set(s->state, s->now, true, EBB_TIME_NEVER);
	script_settle(s);
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 4);
}

/* An agent that starts without quorum keeps the VMs that it finds, as they are. */
static void test_restart(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	ebb_state_quorum_set(s.state, s.now, false, EBB_TIME_NEVER);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0 1@1"), 0);
	script_loaded(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/2");
	assert_true(script_vm(&s, 'a')->is_admitted);
	script_finish(&s);
}

static void set_sla(struct script *s, char vm, const struct ebb_sla *sla)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_SLA_SET, .uuid = { (uint8_t)vm }, .u.sla_set = *sla,
	};

	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
	script_settle(s);
}

/*
 * An agent that starts makes the promises again that a VM had, also without quorum; but no higher
 * ones later, as for every other VM.
 */
static void test_promises_of_a_found_vm(void **state)
{
	struct ebb_sla sla = script_sla("1/1m64-512");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	script_finish(&s);
	for (uint16_t c = 1; c < 4; c++)
		s.host.cores[c].is_shared = true;
	s.state = ebb_state_create(&s.cfg, &s.host, s.policy);
	assert_non_null(s.state);
	sla.is_shared = true;
	sla.reserve_percent = 20;
	sla.reserve_mem_mib = 100;
	ebb_state_quorum_set(s.state, s.now, false, EBB_TIME_NEVER);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@1"), 0);
	script_loaded(&s);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 20);
	assert_int_equal(script_vm(&s, 'a')->floor.promised_mib, 100);
	sla.reserve_percent = 50;
	sla.reserve_mem_mib = 200;
	set_sla(&s, 'a', &sla);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 20);
	assert_int_equal(script_vm(&s, 'a')->floor.promised_mib, 100);
	ebb_state_quorum_set(s.state, s.now, true, EBB_TIME_NEVER);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 50);
	assert_int_equal(script_vm(&s, 'a')->floor.promised_mib, 200);
	script_finish(&s);
}

/* Who says that there is quorum may die; then it is over, and one who comes back says so again. */
static void test_word_that_ends(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/4");
	script_settle(s);
	ebb_state_quorum_set(s->state, s->now, true, s->now + SEC(60));
	s->now += SEC(40);
	script_settle(s);
	ebb_state_quorum_set(s->state, s->now, true, s->now + SEC(60));
	s->now += SEC(59);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 4);
	assert_false(script_find_record(s, '\0', EBB_EVENT_QUORUM));
	s->now += SEC(1);
	script_settle(s);
	assert_false(ebb_state_has_quorum(s->state));
	assert_true(script_find_record(s, '\0', EBB_EVENT_QUORUM));
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 1);
	ebb_state_quorum_set(s->state, s->now, true, EBB_TIME_NEVER);
	s->now += SEC(86400);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cpus, script_setup, script_teardown),
		cmocka_unit_test_setup_teardown(test_memory, script_setup, script_teardown),
		cmocka_unit_test_setup_teardown(test_nobody_comes, script_setup, script_teardown),
		cmocka_unit_test_setup_teardown(test_demands_go_on, script_setup, script_teardown),
		cmocka_unit_test_setup_teardown(test_word_that_ends, script_setup, script_teardown),
		cmocka_unit_test(test_restart), cmocka_unit_test(test_promises_of_a_found_vm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
