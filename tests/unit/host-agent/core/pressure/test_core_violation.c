// SPDX-License-Identifier: GPL-2.0-or-later
/* Resources beyond their thresholds, and who should move for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "core/internal.h"
#include "core/pressure/move.h"
#include "tests/unit/host-agent/core/core_script.h"

/* ---- when ------------------------------------------------------------------ */

static const struct ebb_violation_rule rule = {
	.threshold = 90, .target = 80, .failover = 95, .window = SEC(5), .cooldown = SEC(60),
};

static void test_window(void **state)
{
	struct ebb_violation v;

	(void)state;
	ebb_violation_clear(&v);
	assert_int_equal(ebb_violation_step(&v, &rule, 90, SEC(1)), 0);
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(1)), EBB_TIME_NEVER);
	assert_int_equal(ebb_violation_step(&v, &rule, 91, SEC(2)), 0);
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(2)), SEC(7));
	/* A break: it counts from anew. */
	assert_int_equal(ebb_violation_step(&v, &rule, 90, SEC(6)), 0);
	assert_int_equal(ebb_violation_step(&v, &rule, 91, SEC(7)), 0);
	assert_int_equal(ebb_violation_step(&v, &rule, 91, SEC(12) - 1), 0);
	assert_int_equal(ebb_violation_step(&v, &rule, 93, SEC(12)), 1);
	assert_int_equal(v.count, 1);
	assert_int_equal(ebb_violation_step(&v, &rule, 94, SEC(13)), 0);
	/* Between target and threshold nothing ends for a cool-down. */
	assert_int_equal(ebb_violation_step(&v, &rule, 81, SEC(14)), 0);
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(14)), SEC(74));
	assert_int_equal(ebb_violation_step(&v, &rule, 80, SEC(20)), 0);
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(20)), SEC(25));
	assert_int_equal(ebb_violation_step(&v, &rule, 79, SEC(25)), -1);
	assert_int_equal(v.peak, 94);
	assert_false(v.is_on);
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(25)), EBB_TIME_NEVER);
}

/* One that comes to rest below the threshold is over, even if not at the target. */
static void test_rest(void **state)
{
	struct ebb_violation v;

	(void)state;
	ebb_violation_clear(&v);
	ebb_violation_step(&v, &rule, 91, SEC(1));
	assert_int_equal(ebb_violation_step(&v, &rule, 91, SEC(6)), 1);
	assert_int_equal(ebb_violation_step(&v, &rule, 85, SEC(10)), 0);
	assert_int_equal(ebb_violation_step(&v, &rule, 85, SEC(70) - 1), 0);
	assert_int_equal(ebb_violation_step(&v, &rule, 85, SEC(70)), -1);
}

static void test_calls(void **state)
{
	struct ebb_violation v;

	(void)state;
	ebb_violation_clear(&v);
	ebb_violation_step(&v, &rule, 92, SEC(1));
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(100)));
	ebb_violation_step(&v, &rule, 92, SEC(6));
	/* A cool-down after it began. */
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(66) - 1));
	assert_true(ebb_violation_calls_move(&v, &rule, SEC(66)));
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(6)), SEC(66));
	/* Not above it all the time: from when it rose again. */
	ebb_violation_step(&v, &rule, 85, SEC(30));
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(66)));
	ebb_violation_step(&v, &rule, 91, SEC(40));
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(100) - 1));
	assert_true(ebb_violation_calls_move(&v, &rule, SEC(100)));
	/* Beyond failover: after the window, and then once in a cool-down. */
	ebb_violation_step(&v, &rule, 96, SEC(50));
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(55) - 1));
	assert_true(ebb_violation_calls_move(&v, &rule, SEC(55)));
	v.moved_at = SEC(55);
	assert_false(ebb_violation_calls_move(&v, &rule, SEC(115) - 1));
	assert_true(ebb_violation_calls_move(&v, &rule, SEC(115)));
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(56)), SEC(115));
	assert_int_equal(ebb_violation_until(&v, &rule, SEC(115)), EBB_TIME_NEVER);
}

/* ---- who ------------------------------------------------------------------- */

#define MIB	(1ull << 20)

static void test_choose(void **state)
{
	/* a and b; the first is the better one. */
	static const struct {
		struct ebb_move_candidate a, b;
		enum ebb_move_why why;
	} all[] = {
		{ { 100, 900, 900, 900 * MIB, 1 }, { 0, 1, 0, 1, 2 }, EBB_MOVE_ALONE },
		{ { 100, 900, 900, 900 * MIB, 1 }, { 99, 1, 0, 1, 2 }, EBB_MOVE_RELIEF },
		{ { 50, 900, 900, 900 * MIB, 1 }, { 49, 1, 0, 1, 2 }, EBB_MOVE_RELIEF },
		{ { 100, 1, 900, 900 * MIB, 1 }, { 500, 2, 0, 1, 2 }, EBB_MOVE_WEIGHT },
		{ { 100, 1, 99, 900 * MIB, 1 }, { 500, 1, 100, 1, 2 }, EBB_MOVE_IDLE },
		{ { 100, 1, 900, 511 * MIB, 1 }, { 500, 1, 100, 512 * MIB, 2 }, EBB_MOVE_STATE },
		{ { 100, 1, 100, 900 * MIB, 1 }, { 500, 1, 101, 512 * MIB, 2 },
		  EBB_MOVE_ACTIVITY },
		{ { 100, 1, 100, 900 * MIB, 2 }, { 100, 1, 100, 512 * MIB, 1 },
		  EBB_MOVE_NEWEST },
	};
	enum ebb_move_why why;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const struct ebb_move_candidate there[] = { all[i].a, all[i].b };
		const struct ebb_move_candidate back[] = { all[i].b, all[i].a };

		if (ebb_move_choose(there, 2, 100, &why) != 0 || why != all[i].why)
			fail_msg("case %zu: %s", i, ebb_move_why_text(why));
		if (ebb_move_choose(back, 2, 100, &why) != 1 || why != all[i].why)
			fail_msg("case %zu, back: %s", i, ebb_move_why_text(why));
	}
	assert_int_equal(ebb_move_choose(&all[0].b, 1, 100, &why), -1);
	assert_int_equal(ebb_move_choose(NULL, 0, 100, &why), -1);
}

static void test_names(void **state)
{
	(void)state;
	assert_string_equal(ebb_pressed_code_name(ebb_pressed_code(EBB_PRESSED_MEMORY, false)),
			    "memory-begin");
	assert_string_equal(ebb_pressed_code_name(ebb_pressed_code(EBB_PRESSED_CPU, true)),
			    "cpu-end");
	assert_string_equal(ebb_pressed_code_name(ebb_pressed_code(EBB_PRESSED_CORE, false)),
			    "core-begin");
	assert_string_equal(ebb_pressed_code_name(2 * EBB_PRESSED_MAX), "?");
	assert_string_equal(ebb_pressed_name(EBB_PRESSED_CORE), "core");
	assert_string_equal(ebb_pressed_name(EBB_PRESSED_MAX), "?");
}

/* ---- in the core ----------------------------------------------------------- */

/* Of 1024 MiB: threshold 920, target 818, failover 972. */
static int greedy_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	for (uint32_t v = 0; v < view->num_vms; v++) {
		ret_plan->targets[v].nodes[0] = view->vms[v].nodes[0].ceiling;
		ret_plan->targets[v].mem[0] = view->vms[v].nodes[0].mem.ceiling;
	}
	return 0;
}

static const struct ebb_policy_ops greedy_policy = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "greedy",
	.decide = greedy_decide,
	.mem_review_usec = EBB_USEC_PER_SEC,
};

static void begin(struct script *s)
{
	script_init(s, 1, 4, 1, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &greedy_policy), 0);
}

static void boot(struct script *s, char vm, uint64_t order, const char *nodes, uint32_t weight)
{
	struct ebb_sla sla = script_sla(nodes);

	sla.weight = sla.mem_weight = weight;
	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_running(s, vm, order), 0);
	assert_int_equal(script_hello(s, vm, true, true, 1, ""), 0);
	script_settle(s);
}

/* The guest has plugged or unplugged as its limit allows, and the device says so. */
static void holds(struct script *s, char vm, uint32_t held_mib)
{
	script_holds(s, vm, held_mib);
	script_settle(s);
}

static void pass(struct script *s, usec_t usec)
{
	s->now += usec;
	script_settle(s);
}

/* Settling takes some time, too. */
#define SLACK	MSEC(20)

static bool is_on(const struct script *s, enum ebb_pressed pressed)
{
	return ebb_state_violation(s->state, pressed, 0)->is_on;
}

static bool should_move(const struct script *s, char vm)
{
	return script_vm(s, vm)->move.is_on;
}

static void expect_host(struct script *s, const char *code, const char *text)
{
	assert_true(script_find_record(s, 0, EBB_EVENT_VIOLATION));
	assert_string_equal(ebb_pressed_code_name(s->record.code), code);
	assert_string_equal(s->record.text, text);
	assert_int_equal(s->record.node, 0);
}

static void expect_move(struct script *s, char vm, const char *code, const char *text)
{
	assert_true(script_find_record(s, vm, EBB_EVENT_MOVE));
	assert_string_equal(ebb_pressed_code_name(s->record.code), code);
	assert_string_equal(s->record.text, text);
}

static bool is_explained(struct script *s, char vm, const char *text)
{
	struct ebb_explain e;
	bool is_said = false;

	ebb_explain_vm(s->state, script_vm(s, vm), s->now, &e);
	for (uint32_t i = 0; i < e.num_lines; i++)
		is_said = is_said || strstr(e.lines[i], text);
	return is_said;
}

static int setup(void **state)
{
	begin(script_new(state));
	return 0;
}

static void test_memory(void **state)
{
	struct script *s = *state;

	boot(s, 'a', 1, "1/1m0-512", 100);
	boot(s, 'b', 2, "1/1m0-512", 100);
	holds(s, 'a', 500);
	holds(s, 'b', 420);
	pass(s, SEC(30));
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
	holds(s, 'b', 422);
	pass(s, SEC(5) - SLACK);
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
	/* It begins by itself: nothing needs to happen but time. */
	pass(s, SLACK);
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	expect_host(s, "memory-begin",
		    "memory of node 0: 922 of 1024 MiB held (90%), above 90% for 5 s; most by "
		    "a 500, b 422");
	assert_int_equal(s->record.bytes, 922 * MIB);
	assert_int_equal(s->record.total_usec, 0);
	holds(s, 'a', 512);
	holds(s, 'a', 396);
	pass(s, SEC(5));
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
	expect_host(s, "memory-end",
		    "memory of node 0: 818 of 1024 MiB held (79%), after 5 s; at most it was 91%");
	assert_int_equal(s->record.total_usec / SEC(1), 5);
	assert_false(script_find_record(s, 0, EBB_EVENT_VIOLATION));
}

/* Three VMs hold 978 MiB of 1024: above failover, 160 more than the target. */
static void crowd(struct script *s)
{
	begin(s);
	boot(s, 'a', 1, "1/1m0-512", 100);
	boot(s, 'b', 2, "1/1m0-316", 50);
	boot(s, 'c', 3, "1/1m0-150", 10);
	holds(s, 'a', 512);
	holds(s, 'b', 316);
	holds(s, 'c', 150);
}

static int setup_crowd(void **state)
{
	crowd(script_new(state));
	return 0;
}

static void test_move(void **state)
{
	struct script *s = *state;

	pass(s, SEC(5));
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	/* The lightest would not relieve it. */
	assert_true(should_move(s, 'b'));
	assert_false(should_move(s, 'a') || should_move(s, 'c'));
	expect_move(s, 'b', "memory-begin",
		    "should move to another host: that frees 316 of 160 MiB needed of the memory "
		    "of node 0; weight 50, in use, 572 MiB to take along; others that help as "
		    "much weigh more");
	assert_int_equal(s->record.bytes, 572 * MIB);
	assert_int_equal(s->record.node, 0);
	assert_true(is_explained(s, 'b', "should move to another host"));
	assert_false(is_explained(s, 'a', "should move"));
	/* It is enough: nobody else, however long it lasts. */
	pass(s, SEC(300));
	assert_false(should_move(s, 'a') || should_move(s, 'c'));
	/* The pressure goes, and so does the need. */
	holds(s, 'a', 300);
	pass(s, SEC(5));
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
	assert_false(should_move(s, 'b'));
	expect_move(s, 'b', "memory-end", "need not move any more: the pressure is over");
	assert_int_equal(s->record.total_usec / SEC(1), 305);
}

/* Not beyond failover: only once it has outlived a cool-down. */
static void test_lasting(void **state)
{
	struct script *s = *state;

	holds(s, 'a', 500);
	pass(s, SEC(5));
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	pass(s, SEC(60) - SLACK);
	assert_false(should_move(s, 'b') || should_move(s, 'a') || should_move(s, 'c'));
	pass(s, SLACK);
	/* 148 are needed, and the lightest has them. */
	assert_true(should_move(s, 'c'));
	assert_true(script_find_record(s, 'c', EBB_EVENT_MOVE));
	/* It has left: that is told, and without it there is no pressure. */
	assert_int_equal(script_simple(s, 'c', EBB_FACT_VM_STOPPED), 0);
	script_settle(s);
	expect_move(s, 'c', "memory-end", "need not move any more: it has left, or stopped");
	assert_false(should_move(s, 'c'));
	pass(s, SEC(5));
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
}

static void test_not_again(void **state)
{
	struct script *s = *state;

	pass(s, SEC(5));
	assert_true(should_move(s, 'b'));
	holds(s, 'b', 100);
	pass(s, SEC(5));
	assert_false(is_on(s, EBB_PRESSED_MEMORY));
	assert_false(should_move(s, 'b'));
	/* Back again, but nobody is told twice within a cool-down. */
	holds(s, 'b', 316);
	pass(s, SEC(5));
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	assert_false(should_move(s, 'a') || should_move(s, 'b') || should_move(s, 'c'));
	pass(s, SEC(50) - 2 * SLACK);
	assert_false(should_move(s, 'a') || should_move(s, 'b') || should_move(s, 'c'));
	pass(s, 2 * SLACK);
	assert_true(should_move(s, 'b'));
}

/* Who gives back most of what it was named for need not go; another one may have to, later. */
static void test_shrunk(void **state)
{
	struct script *s = *state;

	pass(s, SEC(5));
	assert_true(script_find_record(s, 'b', EBB_EVENT_MOVE));
	holds(s, 'a', 400);
	holds(s, 'c', 150);
	holds(s, 'b', 158);
	assert_true(should_move(s, 'b'));
	holds(s, 'b', 156);
	assert_false(should_move(s, 'b'));
	expect_move(s, 'b', "memory-end",
		    "need not move any more: it would free less than half of that now");
}

/* A policy that hands all memory out on purpose does not have anybody move; nor one VM alone. */
static void test_no_move(void **state)
{
	struct script *s = *state;

	pass(s, SEC(5));
	assert_true(should_move(s, 'b'));
	assert_true(script_find_record(s, 'b', EBB_EVENT_MOVE));
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &ebb_policy_fair), 0);
	script_settle(s);
	expect_move(s, 'b', "memory-end",
		    "need not move any more: no other VM waits for its resources");
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	pass(s, SEC(200));
	assert_false(should_move(s, 'a') || should_move(s, 'b') || should_move(s, 'c'));
	script_finish(s);

	begin(s);
	boot(s, 'a', 1, "1/1m0-1000", 100);
	boot(s, 'b', 2, "1/1", 1);
	holds(s, 'a', 1000);
	pass(s, SEC(200));
	assert_true(is_on(s, EBB_PRESSED_MEMORY));
	assert_false(should_move(s, 'a') || should_move(s, 'b'));
}

/* ---- CPUs ------------------------------------------------------------------ */

/* Two VMs with two of four cores each, at 250 thousandths; "a" wants a third. */
static void compute(struct script *s, char vm, unsigned seconds, unsigned ms_each)
{
	char times[64];

	snprintf(times, sizeof(times), "0:%u/0 1:%u/0", seconds * ms_each, seconds * ms_each);
	assert_int_equal(script_cpu_times(s, vm, times), 0);
}

/* Every second, for so long; "a" and "b" compute so many ms a second on each CPU. */
static void run_for(struct script *s, unsigned *seconds, unsigned count, unsigned ms_a,
		    unsigned ms_b)
{
	for (unsigned i = 0; i < count; i++) {
		s->now += SEC(1);
		++*seconds;
		compute(s, 'a', *seconds, ms_a);
		compute(s, 'b', *seconds, ms_b);
		script_settle(s);
	}
}

static void test_cpus(void **state)
{
	const uint32_t share = 250;
	struct script *s = *state;
	unsigned t = 0;

	assert_int_equal(s->host.share_permille, share);
	boot(s, 'a', 1, "2/3", 100);
	boot(s, 'b', 2, "2/3", 50);
	run_for(s, &t, 40, 150, 200);
	assert_false(is_on(s, EBB_PRESSED_CPU));
	t = 0;
	script_finish(s);

	begin(s);
	boot(s, 'a', 1, "2/3", 100);
	boot(s, 'b', 2, "2/3", 50);
	run_for(s, &t, 16, 200, 210);
	assert_false(is_on(s, EBB_PRESSED_CPU));
	run_for(s, &t, 1, 200, 210);
	assert_true(is_on(s, EBB_PRESSED_CPU));
	expect_host(s, "cpu-begin", "CPUs of node 0: 0.82 of 1.00 used (81%), above 75% for 15 s; "
		    "most by b 0.42, a 0.40");
	/* Well used, and nobody is short. */
	run_for(s, &t, 100, 200, 210);
	assert_false(should_move(s, 'a') || should_move(s, 'b'));
	/* Now "a" does: its limit is its ceiling, so it is for the cores that are not there. */
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	run_for(s, &t, 1, 200, 210);
	assert_true(should_move(s, 'b'));
	expect_move(s, 'b', "cpu-begin",
		    "should move to another host: that frees 0.42 of 0.07 CPUs needed of the CPUs "
		    "of node 0; weight 50, in use, 256 MiB to take along; others that help as "
		    "much weigh more");
	/* It is not for long that a wish counts. */
	run_for(s, &t, 11, 200, 210);
	assert_false(should_move(s, 'b'));
}

/* Two VMs with a driver that fill what they have; whether one should move is up to the ceiling. */
static bool moves_when_full(struct script *s, const char *nodes, unsigned ms_b)
{
	unsigned t = 0;

	script_finish(s);
	begin(s);
	boot(s, 'a', 1, "2/2", 100);
	boot(s, 'b', 2, nodes, 100);
	run_for(s, &t, 200, 240, ms_b);
	assert_true(is_on(s, EBB_PRESSED_CPU));
	return should_move(s, 'a') || should_move(s, 'b');
}

/* A VM that says nothing, but fills all CPUs that it may have, is short if it could have more. */
static void test_short(void **state)
{
	struct script *s = *state;

	assert_true(moves_when_full(s, "2/3", 215));
	assert_false(moves_when_full(s, "2/3", 210));
	assert_false(moves_when_full(s, "2/2", 240));
	/* The third CPU is there, and "b" does not take it. */
	script_finish(s);
	script_init(s, 1, 5, 1, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &greedy_policy), 0);
	boot(s, 'a', 1, "2/2", 100);
	boot(s, 'b', 2, "2/3", 100);
	for (unsigned t = 0; t < 200;)
		run_for(s, &t, 1, 250, 250);
	assert_true(is_on(s, EBB_PRESSED_CPU));
	assert_false(should_move(s, 'a') || should_move(s, 'b'));
}

static void test_throttled(void **state)
{
	struct script *s = *state;
	unsigned t = 0;

	boot(s, 'a', 1, "2/3", 100);
	boot(s, 'b', 2, "2/3", 50);
	run_for(s, &t, 30, 100, 10);
	pressure_report_throttle(&s->state->pressure, 0, true);
	run_for(s, &t, 16, 100, 10);
	/* A VM that does next to nothing is no help. */
	assert_true(is_on(s, EBB_PRESSED_CPU));
	assert_true(should_move(s, 'a'));
	expect_host(s, "cpu-begin", "CPUs of node 0: 0.22 of 1.00 used (21%), and its VMs are "
		    "throttled; most by a 0.20, b 0.02");
	pressure_report_throttle(&s->state->pressure, 0, false);
	run_for(s, &t, 16, 100, 10);
	assert_false(is_on(s, EBB_PRESSED_CPU));
	assert_false(should_move(s, 'a'));
}

static void test_core(void **state)
{
	const struct ebb_violation *v;
	struct script *s = *state;

	s->now += SEC(100);
	v = ebb_state_violation(s->state, EBB_PRESSED_CORE, 2);
	pressure_report_core(&s->state->pressure, s->now, 2, 850, 850, "a 45%, b 40%");
	assert_false(v->is_on);
	pressure_report_core(&s->state->pressure, s->now, 2, 970, 970, "a 60%, b 37%");
	assert_true(v->is_on);
	expect_host(s, "core-begin", "core 2, which VMs share: 97% of its time used over 15 s, "
		    "above 85%; a 60%, b 37%");
	s->now += SEC(15);
	pressure_report_core(&s->state->pressure, s->now, 2, 990, 990, "a 60%, b 39%");
	s->now += SEC(15);
	pressure_report_core(&s->state->pressure, s->now, 2, 600, 600, "");
	assert_false(v->is_on);
	expect_host(s, "core-end", "core 2: 60% of its time used, after 30 s; at most it was 99%");
	pressure_report_core(&s->state->pressure, s->now, 2, 0, 0, "");
	assert_false(script_find_record(s, 0, EBB_EVENT_VIOLATION));
	assert_null(ebb_state_violation(s->state, EBB_PRESSED_CORE, 4));
	assert_null(ebb_state_violation(s->state, EBB_PRESSED_CPU, 1));
}

/* Other programs take time of the core: what it is judged by is told beside what was used. */
static void test_core_beside_others(void **state)
{
	const struct ebb_violation *v;
	struct script *s = *state;

	s->now += SEC(100);
	v = ebb_state_violation(s->state, EBB_PRESSED_CORE, 1);
	pressure_report_core(&s->state->pressure, s->now, 1, 990, 770, "a 39%, b 38%");
	assert_true(v->is_on);
	assert_int_equal(v->level, 990);
	expect_host(s, "core-begin", "core 1, which VMs share: 99% of its time used or waited for "
		    "(77% used) over 15 s, above 85%; a 39%, b 38%");
	s->now += SEC(15);
	pressure_report_core(&s->state->pressure, s->now, 1, 800, 700, "");
	assert_false(v->is_on);
	expect_host(s, "core-end", "core 1: 80% of its time used or waited for (70% used), after "
		    "15 s; at most it was 99%");
}

#define BEGUN(name)	cmocka_unit_test_setup_teardown(name, setup, script_teardown)
#define CROWD(name)	cmocka_unit_test_setup_teardown(name, setup_crowd, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),	  cmocka_unit_test(test_rest),
		cmocka_unit_test(test_calls),	  cmocka_unit_test(test_choose),
		cmocka_unit_test(test_names),	  BEGUN(test_memory),
		CROWD(test_move),	  CROWD(test_lasting),
		CROWD(test_not_again),	  CROWD(test_no_move),
		CROWD(test_shrunk),	  BEGUN(test_cpus),	  BEGUN(test_short),
		BEGUN(test_throttled),
		BEGUN(test_core),
		BEGUN(test_core_beside_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
