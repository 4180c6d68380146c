// SPDX-License-Identifier: GPL-2.0-or-later
/* What is told, noted and explained of a brokering of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/host-agent/core/broker/broker_rig.h"

/* ---- what is told and noted ------------------------------------------------ */

static void test_cutoff(void **state)
{
	struct script *s = *state;

	/* One that nothing is demanded of is told none. */
	told.cutoff[0] = told.cutoff[1] = 55;
	told.target_mib[0] = 300;
	rig_decide_again(s);
	script_expect(s, "limits a 1/1 m400/300!300<55");
	/* The demand stays as it is although the next plan says nothing of values. */
	told.cutoff[0] = told.cutoff[1] = 0;
	script_took(s, 'a');
	rig_decide_again(s);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->pools[0].told_cutoff, 55);
	/* Another plan may say something else. */
	told.cutoff[0] = 70;
	rig_decide_again(s);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->pools[0].told_cutoff, 70);
	/* Met: nothing is to go any more. */
	rig_holds(s, 'a', 300);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->pools[0].told_cutoff, 0);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->vom.cutoff[0], 0);
}

static void test_record(void **state)
{
	struct script *s = *state;
	const struct ebb_brokered *b;
	usec_t told_at;

	/* 970 of 1024 MiB are in use, the threshold is at 920. */
	told.target_mib[2] = 170;
	s->can_vom = false;
	script_boot(s, 'c', 3, "1/1m0-1024");
	rig_settle(s);
	rig_holds(s, 'c', 170);
	rig_ask(s);
	told_at = s->now;
	script_vom(s, 'a', rig_seq(s), "0:1000/150 0:5000000/250");
	script_vom(s, 'b', rig_seq(s), "0:40000000/400");
	script_settle(s);
	while (script_find_record(s, 'a', EBB_EVENT_BROKER))
		;
	told.target_mib[0] = 250;
	told.cutoff[0] = 5000000;
	s->now += SEC(3);
	rig_decide_again(s);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(s->record.bytes, 150 << 20);
	assert_int_equal(s->record.node, 0);
	assert_int_equal(s->record.broker.cutoff, 5000000);
	assert_int_equal(s->record.broker.num_others, 2);
	assert_int_equal(s->record.broker.age, s->record.at - told_at);
	assert_int_equal(s->record.broker.high, 40000000);
	assert_true(s->record.broker.low <= 40000000);
	assert_string_equal(s->record.text,
			    "asked for 150 of 400 MiB, memory worth less than 5.00 ms/s per MiB "
			    "first (as it says); 2 others on host node 0 keep memory worth at "
			    "least 960 ns/s per MiB to 40.00 ms/s per MiB");
	b = &script_vm(s, 'a')->vom.brokered[0];
	assert_int_equal(b->at, s->record.at);
	assert_int_equal(b->asked, 75);
	assert_int_equal(b->held, 200);
	assert_int_equal(b->keeps_from, 5000000);
	b = &script_vm(s, 'b')->vom.brokered[0];
	assert_int_equal(b->at, s->record.at);
	assert_int_equal(b->asked, 0);
	assert_int_equal(b->keeps_from, 40000000);
	assert_int_equal(ebb_state_broker(s->state)->num_brokered[0], 1);
	/* The same plan once more is no other brokering. */
	rig_decide_again(s);
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(ebb_state_broker(s->state)->num_brokered[0], 1);
	/* Asked for by size alone, and only because there is too little. */
	told.target_mib[0] = 240;
	told.cutoff[0] = 0;
	rig_holds(s, 'a', 250);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
}

/*
 * Who gave is kept down until the cool-down is over: the policy decides then, though nothing
 * happens any more and memory is not short.
 */
static void test_cool_down_ends(void **state)
{
	struct script *s = *state;
	unsigned before;

	/* 970 of 1024 MiB are in use, the threshold is at 920; then 820. */
	told.target_mib[2] = 170;
	script_boot(s, 'c', 3, "1/1m0-1024");
	rig_settle(s);
	rig_holds(s, 'c', 170);
	told.target_mib[0] = 250;
	rig_decide_again(s);
	rig_settle(s);
	rig_holds(s, 'a', 250);
	s->now += RIG_REVIEW_USEC;
	rig_settle(s);
	/* Meanwhile it has nothing to decide. */
	before = told.num_decided;
	s->now += SEC(30);
	script_settle(s);
	assert_int_equal(told.num_decided, before);
	s->now += SEC(30);
	script_settle(s);
	assert_int_equal(told.num_decided, before + 1);
	/* Once. */
	s->now += SEC(300);
	script_settle(s);
	assert_int_equal(told.num_decided, before + 1);
}

/*
 * A policy that wants to ask first keeps everybody's memory meanwhile.  Where nobody can tell
 * anything there is no meanwhile, and a demand that stays keeps its deadline.
 */
static void test_nobody_to_ask(void **state)
{
	struct script *s = *state;
	const struct ebb_vm_pool *p = &script_vm(s, 'b')->pools[0];
	usec_t due_at;

	s->can_vom = false;
	assert_int_equal(script_hello(s, 'a', false, true, 1, ""), 0);
	assert_int_equal(script_hello(s, 'b', false, true, 1, ""), 0);
	told.target_mib[0] = told.target_mib[1] = 500;
	rig_decide_again(s);
	rig_settle(s);
	rig_holds(s, 'a', 500);
	rig_holds(s, 'b', 500);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_balloon), 0);
	rig_settle(s);
	assert_int_equal(p->num_due, 1);
	due_at = p->due[0].at;
	s->now += MSEC(100);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_vom), 0);
	rig_settle(s);
	assert_int_equal(p->num_due, 1);
	assert_int_equal(p->due[0].at, due_at);
	assert_int_equal(p->due[0].limit, p->limit);
	assert_int_equal(ebb_state_broker(s->state)->num_asks, 1);
}

static bool says(const struct ebb_explain *e, const char *text)
{
	for (uint32_t i = 0; i < e->num_lines; i++)
		if (strstr(e->lines[i], text))
			return true;
	return false;
}

static struct ebb_explain explain(const struct script *s, char vm)
{
	struct ebb_explain e;

	ebb_explain_vm(s->state, script_vm(s, vm), s->now, &e);
	return e;
}

static void test_explain(void **state)
{
	struct script *s = *state;
	struct ebb_explain e;

	e = explain(s, 'a');
	assert_true(says(&e, "host node 0: 800 of 1024 MiB are in use; above 920 policy told "
			 "takes memory back down to 818"));
	told.target_mib[2] = 170;
	s->can_vom = false;
	script_boot(s, 'c', 3, "1/1m170-1024");
	rig_settle(s);
	rig_holds(s, 'c', 170);
	rig_ask(s);
	e = explain(s, 'a');
	assert_true(says(&e, "; guests are being asked now"));
	script_vom(s, 'a', rig_seq(s), "0:0/50 0:1000/100 0:5000000/250");
	script_vom(s, 'b', rig_seq(s), "0:40000000/400");
	script_settle(s);
	told.target_mib[0] = 250;
	told.cutoff[0] = 5000000;
	rig_decide_again(s);
	script_settle(s);
	rig_holds(s, 'a', 360);
	s->now += SEC(3);
	script_settle(s);
	e = explain(s, 'a');
	assert_true(says(&e, "s ago memory of host node 0 was short; asked for 150 of 400 MiB, "
			 "memory worth less than 5.00 ms/s per MiB first; it has given 40"));
	assert_true(says(&e, "  b was asked for 0 of 400 MiB: it keeps memory worth at least "
			 "40.00 ms/s per MiB (weight 100)"));
	assert_true(says(&e, "  c was asked for 0 of 170 MiB, its minimum: it keeps"));
	assert_true(says(&e, "of its 360 MiB 10 are unused, half are worth at most "
			 "5.00 ms/s per MiB, all at most 5.00 ms/s per MiB, as it said"));
	assert_true(says(&e, "930 of 1024 MiB are in use"));
	assert_true(says(&e, "; not before 5"));
	assert_int_equal(ebb_vm_given(script_vm(s, 'a'), 0), 20);
	e = explain(s, 'b');
	assert_true(says(&e, "not asked for any of its 400 MiB, worth from 40.00 ms/s per MiB"));
	assert_true(says(&e, "  a was asked for 150 of 400 MiB: it keeps memory worth at least "
			 "5.00 ms/s per MiB (weight "));
	e = explain(s, 'c');
	assert_true(says(&e, "not asked for any of its 170 MiB, which is its minimum"));
	assert_true(says(&e, "its guest has not said what its 170 MiB are worth and can not"));
	/* More than was asked for is not to be thanked for. */
	rig_holds(s, 'a', 100);
	assert_int_equal(ebb_vm_given(script_vm(s, 'a'), 0), 75);
	/* Where the policy does not go by it nothing is said of it. */
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	e = explain(s, 'a');
	assert_false(says(&e, "are in use"));
}

static void test_record_without_values(void **state)
{
	struct script *s = *state;

	told.target_mib[0] = 550;
	rig_decide_again(s);
	rig_settle(s);
	rig_holds(s, 'a', 550);
	s->now += RIG_REVIEW_USEC;
	script_settle(s);
	told.target_mib[0] = 500;
	rig_decide_again(s);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_BROKER));
	assert_int_equal(s->record.bytes, 50 << 20);
	assert_int_equal(s->record.broker.cutoff, 0);
	assert_int_equal(s->record.broker.age, EBB_TIME_NEVER);
	assert_string_equal(s->record.text,
			    "asked for 50 of 550 MiB by policy told, by size alone; 1 others hold "
			    "memory of host node 0");
	/* A policy that does not go by what is used does not broker. */
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	script_settle(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_BROKER));
}

static void test_values_for_people(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} cases[] = {
		{ 0, "nothing" }, { 1, "1 ns/s per MiB" }, { 999, "999 ns/s per MiB" },
		{ 1000, "1.00 us/s per MiB" }, { 3200000, "3.20 ms/s per MiB" },
		{ 1500000000, "1.50 s/s per MiB" }, { EBB_VOM_VALUE_MAX, "1099.51 s/s per MiB" },
	};
	char text[EBB_VALUE_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ebb_value_print(cases[i].value, text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_CASE(test_cutoff),
		RIG_CASE(test_record),
		RIG_CASE(test_cool_down_ends),
		RIG_CASE(test_nobody_to_ask),
		RIG_CASE(test_explain),
		RIG_CASE(test_record_without_values),
		cmocka_unit_test(test_values_for_people),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
