// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of memory: which are made, the floors that keep them, and guests that lie. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/floor/control.h"
#include "model/sla.h"
#include "tests/unit/host-agent/core/core_script.h"

/* ---- the control ---------------------------------------------------------- */

#define PROMISED	160u		/* blocks */

static struct floor_control c;

static bool step(uint32_t held, enum ebb_relio_verdict verdict, uint64_t baseline, uint64_t actual)
{
	const struct ebb_relio_interval i = {
		.length = SEC(1), .baseline = baseline, .actual = actual,
	};

	return floor_step(&c, PROMISED, held, verdict, &i);
}

static void calm(uint32_t held, uint32_t times)
{
	while (times-- > 0)
		step(held, EBB_RELIO_GOOD, 1000, 899);
}

static void test_grows(void **state)
{
	(void)state;
	c = (struct floor_control){ .want = 20 };
	/* Within the grain it may be chance. */
	assert_false(step(20, EBB_RELIO_GOOD, 1000, 1036));
	assert_true(step(20, EBB_RELIO_GOOD, 1000, 1037));
	assert_int_equal(c.want, 40);
	/* What it holds beyond its floor is not enough either. */
	assert_true(step(90, EBB_RELIO_GOOD, 1000, 1500));
	assert_int_equal(c.want, 110);
	for (int i = 0; i < 10; i++)
		step(1000, EBB_RELIO_GOOD, 0, 100000);
	assert_int_equal(c.want, PROMISED);
	assert_false(step(1000, EBB_RELIO_GOOD, 0, 100000));
}

static void test_shrinks_slowly(void **state)
{
	(void)state;
	c = (struct floor_control){ .want = PROMISED };
	calm(PROMISED, FLOOR_CALM - 1);
	assert_int_equal(c.want, PROMISED);
	calm(PROMISED, 1);
	assert_int_equal(c.want, PROMISED - 10);
	/* One interval that is not clearly better starts the count anew. */
	calm(PROMISED - 10, FLOOR_CALM - 1);
	assert_false(step(PROMISED - 10, EBB_RELIO_GOOD, 1000, 900));
	calm(PROMISED - 10, FLOOR_CALM - 1);
	assert_int_equal(c.want, PROMISED - 10);
	for (int i = 0; i < 1000; i++)
		calm(0, 1);
	assert_int_equal(c.want, 0);
}

static void test_keeps_what_says_nothing(void **state)
{
	(void)state;
	c = (struct floor_control){ .want = 100 };
	/* With more than the floor, little I/O says nothing of the floor. */
	calm(101, 5 * FLOOR_CALM);
	assert_int_equal(c.want, 100);
	/* Idle, or next to it. */
	for (uint32_t i = 0; i < 5 * FLOOR_CALM; i++)
		assert_false(step(100, EBB_RELIO_GOOD, FLOOR_LEAST_IOS - 1, 0));
	/* What is not believed. */
	for (uint32_t i = 0; i < 5 * FLOOR_CALM; i++)
		assert_false(step(100, EBB_RELIO_DOUBTED, 0, 1000000));
	assert_int_equal(c.want, 100);
	/* Nothing is known: the promise is kept by as much memory. */
	assert_true(step(0, EBB_RELIO_NONE, 0, 0));
	assert_int_equal(c.want, PROMISED);
	/* A smaller promise bounds it at once. */
	assert_true(floor_step(&c, 30, 0, EBB_RELIO_DOUBTED, &(struct ebb_relio_interval){ 0 }));
	assert_int_equal(c.want, 30);
}

static void test_parts_of_nodes(void **state)
{
	struct ebb_sla sla = script_sla("1/1m64-128,1/1m0-192");

	(void)state;
	assert_int_equal(ebb_sla_promised_blocks(&sla, 0), 0);
	sla.reserve_mem_mib = 127;
	/* 64 blocks, one to three. */
	assert_int_equal(ebb_sla_promised_blocks(&sla, 0), 16);
	assert_int_equal(ebb_sla_promised_blocks(&sla, 1), 48);
	sla.reserve_mem_mib = 256;
	assert_int_equal(ebb_sla_promised_blocks(&sla, 0), 32);
	assert_int_equal(ebb_sla_promised_blocks(&sla, 1), 96);
}

/* ---- the core -------------------------------------------------------------- */

static int setup_with(void **state, const struct ebb_policy_ops *policy)
{
	struct script *s;

	script_setup(state);
	s = *state;
	s->can_baseline = true;
	return ebb_state_policy_set(s->state, s->now, policy);
}

static int setup(void **state)
{
	return setup_with(state, &ebb_policy_fair);
}

static int setup_equal(void **state)
{
	return setup_with(state, &ebb_policy_equal);
}

/* Settled, and what devices were told is taken over. */
static void settle(struct script *s)
{
	for (int i = 0; i < 8; i++) {
		s->now += MSEC(20);
		script_settle(s);
		script_took(s, 'a');
		if (script_vm(s, 'b'))
			script_took(s, 'b');
	}
}

static void holds(struct script *s, char vm, uint32_t held_mib)
{
	script_holds(s, vm, held_mib);
	settle(s);
}

static void set_sla(struct script *s, char vm, const struct ebb_sla *sla)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .u.sla_set = *sla };

	memcpy(fact.uuid, script_vm(s, vm)->uuid, sizeof(fact.uuid));
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
	settle(s);
}

static void promise(struct script *s, char vm, uint32_t mib)
{
	struct ebb_sla sla = script_vm(s, vm)->sla;

	sla.reserve_mem_mib = mib;
	set_sla(s, vm, &sla);
}

static uint32_t floor_mib(const struct script *s, char vm)
{
	return script_vm(s, vm)->floor.keep[0] * EBB_BLOCK_MIB;
}

static uint32_t target_mib(const struct script *s, char vm)
{
	return script_vm(s, vm)->pools[0].target * EBB_BLOCK_MIB;
}

static void say(struct script *s, char vm, uint64_t baseline, uint64_t actual)
{
	const struct ebb_vm *v = script_vm(s, vm);

	s->now += SEC(1);
	assert_int_equal(script_baseline(s, vm, v->floor.promised_mib,
					 v->telemetry.baseline_ios + baseline,
					 v->telemetry.actual_ios + actual), 0);
	settle(s);
}

static void test_told(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m64-512");

	sla.reserve_mem_mib = 99;
	s->can_baseline = false;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_SLA));
	/* A driver that can not hear of it hears of nothing, and the promise is kept by memory. */
	assert_int_equal(script_hello(s, 'a', true, true, 0, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1", "cap a 832");
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	script_expect(s, "limits a 1/1 m0/512");
	script_took(s, 'a');
	assert_int_equal(floor_mib(s, 'a'), 100);
	s->can_baseline = true;
	assert_int_equal(script_hello(s, 'a', false, true, 1, ""), 0);
	script_expect(s, "limits a 1/1 m0/512 p100");
	script_took(s, 'a');
	script_expect_nothing(s);
	promise(s, 'a', 0);
	assert_int_equal(floor_mib(s, 'a'), 0);
	assert_int_equal(script_vm(s, 'a')->floor.told_mib, 0);
}

static void expect_node(const struct script *s, uint32_t most, uint32_t allowed,
			uint32_t promised, uint32_t left)
{
	struct ebb_mem_promise_node n;

	ebb_state_mem_promises(s->state, 0, &n);
	assert_int_equal(n.most_bytes >> 20, most);
	assert_int_equal(n.allowed_bytes >> 20, allowed);
	assert_int_equal(n.promised_bytes >> 20, promised);
	assert_int_equal(n.free_bytes >> 20, left);
}

static void test_admission(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m64-1024");
	script_boot(s, 'b', 2, "1/1m64-1024");
	promise(s, 'a', 600);
	assert_int_equal(floor_mib(s, 'a'), 600);
	/* 1024 less two minimums and 600. */
	promise(s, 'b', 298);
	assert_true(script_vm(s, 'b')->floor.is_refused);
	assert_int_equal(script_vm(s, 'b')->floor.short_mib, 296);
	assert_int_equal(floor_mib(s, 'b'), 0);
	assert_true(script_vm(s, 'b')->is_admitted);
	/* What it says it has left to promise is what is promised then. */
	expect_node(s, 896, 896, 600, 296);
	promise(s, 'b', 296);
	expect_node(s, 896, 896, 896, 0);
	assert_int_equal(floor_mib(s, 'b'), 296);
	assert_int_equal(floor_mib(s, 'a'), 600);
	/* More for a would be at the cost of b: both keep what they have. */
	promise(s, 'a', 602);
	assert_true(script_vm(s, 'a')->floor.is_refused);
	assert_int_equal(floor_mib(s, 'a'), 600);
	assert_int_equal(floor_mib(s, 'b'), 296);
	/* What is free again is for those who wait. */
	promise(s, 'b', 0);
	assert_int_equal(floor_mib(s, 'a'), 602);
	/* Nor may a minimum that comes later break it. */
	script_boot(s, 'c', 3, "1/1m298-512");
	assert_false(script_vm(s, 'c')->is_admitted);
	assert_int_equal(floor_mib(s, 'a'), 602);
}

/* Since this was last asked for. */
static uint32_t num_errors(struct script *s, char vm)
{
	uint32_t n = 0;

	while (script_find_record(s, vm, EBB_EVENT_ERROR))
		n++;
	return n;
}

/* A promise holds when more is refused, counts as before, and is raised when there is room. */
static void test_raised(void **state)
{
	struct script *s = *state;
	const struct ebb_vm_floor *a;

	script_boot(s, 'a', 1, "1/1m64-1024");
	script_boot(s, 'b', 2, "1/1m64-1024");
	a = &script_vm(s, 'a')->floor;
	promise(s, 'a', 400);
	promise(s, 'b', 300);
	assert_int_equal(num_errors(s, 'a'), 0);
	promise(s, 'a', 700);
	assert_true(a->is_refused);
	assert_int_equal(a->promised_mib, 400);
	assert_int_equal(a->told_mib, 400);
	assert_int_equal(floor_mib(s, 'a'), 400);
	/* What it has itself is left for it, and not for others. */
	assert_int_equal(a->short_mib, 596);
	expect_node(s, 896, 896, 700, 196);
	promise(s, 'b', 498);
	assert_true(script_vm(s, 'b')->floor.is_refused);
	assert_int_equal(script_vm(s, 'b')->floor.short_mib, 496);
	assert_int_equal(floor_mib(s, 'b'), 300);
	/* Each refusal is told once, however often it is tried again. */
	assert_int_equal(num_errors(s, 'a'), 1);
	promise(s, 'a', 698);
	assert_int_equal(num_errors(s, 'a'), 1);
	/* What it has already is no refusal. */
	promise(s, 'a', 400);
	assert_false(a->is_refused);
	assert_int_equal(a->promised_mib, 400);
	promise(s, 'a', 596);
	assert_false(a->is_refused);
	assert_int_equal(floor_mib(s, 'a'), 596);
	expect_node(s, 896, 896, 896, 0);
	/* Refused, and then it asks for less than it has. */
	promise(s, 'a', 600);
	assert_true(a->is_refused);
	promise(s, 'a', 100);
	assert_false(a->is_refused);
	assert_int_equal(floor_mib(s, 'a'), 100);
	/* b still asks for 498, for which there is room now. */
	assert_int_equal(floor_mib(s, 'b'), 498);
}

/* Where the VM may not have so much memory any more, the promise of before can not be kept. */
static void test_raised_beyond_maximum(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m64-144,1/1m64-964");

	script_finish(s);
	memset(s, 0, sizeof(*s));
	script_init(s, 2, 4, 1, false);
	s->can_baseline = true;
	script_boot(s, 'a', 1, "1/1m64-964,1/1m64-964");
	script_boot(s, 'b', 2, "1/1m0-1024,1/1m0-1024");
	promise(s, 'a', 200);
	assert_int_equal(floor_mib(s, 'a'), 100);
	promise(s, 'b', 1200);
	assert_int_equal(floor_mib(s, 'b'), 600);
	/* It may have 80 on the one node, and asks for more on the other than that has. */
	sla.reserve_mem_mib = 580;
	set_sla(s, 'a', &sla);
	assert_true(script_vm(s, 'a')->floor.is_refused);
	assert_int_equal(floor_mib(s, 'a'), 0);
	sla.reserve_mem_mib = 360;
	set_sla(s, 'a', &sla);
	assert_false(script_vm(s, 'a')->floor.is_refused);
}

/* What a promise that is lowered leaves is for those that wait, the promise itself is not. */
static void test_lowered(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m64-1024");
	script_boot(s, 'b', 2, "1/1m64-1024");
	promise(s, 'b', 600);
	promise(s, 'a', 500);
	assert_true(script_vm(s, 'a')->floor.is_refused);
	promise(s, 'b', 500);
	assert_int_equal(floor_mib(s, 'b'), 500);
	assert_int_equal(floor_mib(s, 'a'), 0);
	promise(s, 'b', 396);
	assert_int_equal(floor_mib(s, 'b'), 396);
	assert_int_equal(floor_mib(s, 'a'), 500);
}

static void test_invalid(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m64-512");
	char text[EBB_TEXT_SIZE];

	sla.reserve_mem_mib = 448;
	assert_int_equal(ebb_sla_check(&sla, &s->host, text), 0);
	sla.reserve_mem_mib = 449;
	assert_int_equal(ebb_sla_check(&sla, &s->host, text), -EINVAL);
	assert_string_equal(text, "reserve-mem is 449: its pools may have 448 MiB beyond min-mib");
}

static void test_restart(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m64-1024");

	script_finish(s);
	script_init_loading(s, 1, 8, 1, false);
	sla.reserve_mem_mib = 500;
	for (char vm = 'a'; vm < 'c'; vm++) {
		assert_int_equal(script_define(s, vm, &sla), 0);
		assert_int_equal(script_found(s, vm, (uint64_t)(vm - 'a' + 1), 0, "0@-"), 0);
	}
	script_loaded(s);
	script_settle(s);
	/* The one that came first has its promise, as before. */
	assert_int_equal(floor_mib(s, 'a'), 500);
	assert_int_equal(floor_mib(s, 'b'), 0);
	assert_true(script_vm(s, 'b')->floor.is_refused);
}

/* The floor follows what the guest needs, and takes memory from the other VM when it grows. */
static void test_floor_moves_memory(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m0-1024");
	script_boot(s, 'b', 2, "1/1m0-1024");
	promise(s, 'a', 320);
	say(s, 'a', 0, 0);
	holds(s, 'a', 320);
	holds(s, 'b', 512);
	/* Much better than promised: it needs less. */
	for (uint32_t held = 320; held > 240; held -= 20) {
		holds(s, 'a', held);
		for (uint32_t i = 0; i < FLOOR_CALM; i++)
			say(s, 'a', 1000, 500);
		assert_int_equal(floor_mib(s, 'a'), held - 20);
	}
	/* It goes no further while the VM has more than its floor. */
	for (uint32_t i = 0; i < 3 * FLOOR_CALM; i++)
		say(s, 'a', 1000, 500);
	assert_int_equal(floor_mib(s, 'a'), 240);
	/* Worse: in the first second its floor is what it holds and a step. */
	say(s, 'a', 1000, 2000);
	assert_int_equal(floor_mib(s, 'a'), 300);
	say(s, 'a', 1000, 2000);
	assert_int_equal(floor_mib(s, 'a'), 320);
	say(s, 'a', 1000, 2000);
	assert_int_equal(floor_mib(s, 'a'), 320);
}

/* With a policy that leaves VMs what they hold, a greedy neighbour gives it back nevertheless. */
static void test_takes_from_the_greedy(void **state)
{
	struct script *s = *state;

	script_boot(s, 'b', 1, "1/1m0-1024");
	holds(s, 'b', 900);
	script_boot(s, 'a', 2, "1/1m0-1024");
	settle(s);
	assert_true(target_mib(s, 'b') >= 900);
	promise(s, 'a', 400);
	assert_true(target_mib(s, 'b') <= 624);
	assert_true(target_mib(s, 'a') >= 400);
	assert_true(script_vm(s, 'b')->pools[0].num_due > 0);
	/* Nothing is taken back of it while it is promised, whatever the other one asks for. */
	holds(s, 'b', 624);
	holds(s, 'a', 400);
	s->now += SEC(300);
	settle(s);
	assert_true(target_mib(s, 'a') >= 400);
}

static void overbook(struct script *s, enum ebb_overbook policy)
{
	struct ebb_state_config cfg = s->cfg;

	cfg.promise.overbook_percent = 200;
	cfg.promise.overbook_policy = policy;
	script_finish(s);
	memset(s, 0, sizeof(*s));
	script_init(s, 1, 8, 1, false);
	ebb_state_destroy(s->state);
	s->cfg.promise = cfg.promise;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	script_loaded(s);
	s->can_baseline = true;
}

static void test_overbooked(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m24-1024");

	overbook(s, EBB_OVERBOOK_PROPORTIONAL);
	script_boot(s, 'a', 1, "1/1m24-1024");
	script_boot(s, 'b', 2, "1/1m0-1024");
	promise(s, 'a', 1000);
	promise(s, 'b', 1000);
	assert_int_equal(floor_mib(s, 'a'), 500);
	assert_int_equal(floor_mib(s, 'b'), 500);
	expect_node(s, 1000, 2000, 2000, 0);
	/* Twice what there is, and no more. */
	script_boot(s, 'c', 3, "1/1m0-1024");
	promise(s, 'c', 2);
	assert_true(script_vm(s, 'c')->floor.is_refused);

	overbook(s, EBB_OVERBOOK_PENALTY);
	sla.reserve_mem_mib = 800;
	sla.penalty = 2;
	script_boot(s, 'a', 1, "1/1m24-1024");
	promise(s, 'a', 800);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_running(s, 'b', 2), 0);
	settle(s);
	assert_int_equal(floor_mib(s, 'b'), 800);
	assert_int_equal(floor_mib(s, 'a'), 176);
}

static void test_liar(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m0-1024");
	script_boot(s, 'b', 2, "1/1m0-1024");
	promise(s, 'a', 320);
	promise(s, 'b', 600);
	/* However badly it says it is served, it gets no more than it was promised. */
	say(s, 'a', 0, 0);
	for (int i = 0; i < 20; i++)
		say(s, 'a', 0, 1000000);
	assert_int_equal(floor_mib(s, 'a'), 320);
	assert_int_equal(floor_mib(s, 'b'), 600);
	assert_false(script_find_record(s, 'a', EBB_EVENT_ERROR));
	/* What no VM can do is told, once. */
	say(s, 'a', 0, 1ull << 40);
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s->record.text, "not believed"));
	say(s, 'a', 0, 1ull << 40);
	s->now += SEC(1);
	assert_int_equal(script_baseline(s, 'a', 320, 0, 0), 0);
	assert_false(script_find_record(s, 'a', EBB_EVENT_ERROR));
	settle(s);
	assert_int_equal(floor_mib(s, 'a'), 320);
	assert_int_equal(floor_mib(s, 'b'), 600);
}

int main(void)
{
#define CASE(test)	cmocka_unit_test_setup_teardown(test, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows),
		cmocka_unit_test(test_shrinks_slowly),
		cmocka_unit_test(test_keeps_what_says_nothing),
		cmocka_unit_test(test_parts_of_nodes),
		CASE(test_told),
		CASE(test_admission),
		CASE(test_raised),
		CASE(test_raised_beyond_maximum),
		CASE(test_lowered),
		CASE(test_invalid),
		CASE(test_restart),
		CASE(test_floor_moves_memory),
		cmocka_unit_test_setup_teardown(test_takes_from_the_greedy, setup_equal,
						script_teardown),
		CASE(test_overbooked),
		CASE(test_liar),
	};

	return cmocka_run_group_tests_name("core_floor", tests, NULL, NULL);
}
