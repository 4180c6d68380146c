// SPDX-License-Identifier: GPL-2.0-or-later
/* VMs that share cores, from the CPU times of their threads to throttles (decisions: balance.c). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

#define WINDOW	SEC(15)

struct sharing {
	struct script s;
	unsigned used_ms[2], waited_ms[2];
};

/* Each uses so many thousandths of a core for a window; cores are a quarter of a real CPU. */
static void advance(struct sharing *sh, unsigned a, unsigned b)
{
	const unsigned window_ms = WINDOW / EBB_USEC_PER_MSEC;
	char text[48];

	sh->used_ms[0] += a * window_ms / 4000;
	sh->used_ms[1] += b * window_ms / 4000;
	sh->s.now += WINDOW;
	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "0:%u/0+%u", sh->used_ms[i], sh->waited_ms[i]);
		assert_int_equal(script_cpu_times(&sh->s, (char)('a' + i), text), 0);
	}
}

static void run(struct sharing *sh, unsigned a, unsigned b)
{
	advance(sh, a, b);
	script_settle(&sh->s);
}

/* Cores 1 to shared are shared cores; the vCPUs of VMs a and b are on the first of them. */
static void begin_with(struct sharing *sh, uint16_t shared)
{
	struct script *s = &sh->s;

	*sh = (struct sharing){ 0 };
	script_init_loading(s, 1, 1u + shared, 1, false);
	script_finish(s);
	for (uint16_t c = 1; c <= shared; c++)
		s->host.cores[c].is_shared = true;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
	script_loaded(s);
	for (char vm = 'a'; vm <= 'b'; vm++) {
		struct ebb_sla sla = script_sla("1/1");

		sla.is_shared = true;
		assert_int_equal(script_define(s, vm, &sla), 0);
		assert_int_equal(script_found(s, vm, (uint64_t)vm, s->now, "0@1"), 0);
	}
	script_settle(s);
	run(sh, 0, 0);
}

static void begin(struct sharing *sh)
{
	begin_with(sh, 1);
}

static void demand_is(struct sharing *sh, unsigned demand)
{
	struct ebb_shared_thread thread;

	assert_true(ebb_state_shared_thread(sh->s.state, 1, &thread));
	/* Windows are a little longer than what ran in them: until all is settled. */
	assert_in_range(thread.demand, demand * 97 / 100, demand);
}

static bool is_hot(struct sharing *sh)
{
	struct ebb_shared_thread thread;

	assert_true(ebb_state_shared_thread(sh->s.state, 1, &thread));
	return thread.is_hot;
}

static bool is_throttled(struct sharing *sh)
{
	return script_vm(&sh->s, 'a')->share.throttled || script_vm(&sh->s, 'b')->share.throttled;
}

/* Nothing helps in two windows: each is held to its half. It wants as much as before. */
static void test_throttled_where_the_host_can(void **state)
{
	(void)state;
	struct sharing sh;

	begin(&sh);
	run(&sh, 500, 500);
	demand_is(&sh, 1000);
	assert_false(is_throttled(&sh));
	run(&sh, 500, 500);
	run(&sh, 500, 500);
	assert_true(is_throttled(&sh));
	run(&sh, 462, 462);
	demand_is(&sh, 1000);
	script_finish(&sh.s);
}

/* Where it can not, what they use is what they want, and no violation is made of it. */
static void test_no_throttle_where_the_host_cannot(void **state)
{
	(void)state;
	struct sharing sh;

	begin(&sh);
	run(&sh, 500, 500);
	advance(&sh, 500, 500);
	script_expect(&sh.s, "throttle a 462", "throttle b 462");
	script_done(&sh.s, EBB_ACTION_THROTTLE, 'a', 0, -EOPNOTSUPP);
	script_done(&sh.s, EBB_ACTION_THROTTLE, 'b', 0, -EOPNOTSUPP);
	script_settle(&sh.s);
	run(&sh, 400, 390);
	demand_is(&sh, 790);
	run(&sh, 500, 500);
	run(&sh, 500, 500);
	assert_false(is_throttled(&sh));
	assert_int_equal(script_vm(&sh.s, 'a')->share.throttle, 0);
	script_finish(&sh.s);
}

/*
 * An emulated core that is used up makes its threads wait for the rest of its period.  So they wait
 * for most of the time, and that alone says nothing.
 */
static void test_waiting_on_an_emulated_core(void **state)
{
	(void)state;
	struct sharing sh;

	begin(&sh);
	sh.waited_ms[0] += 3000;
	run(&sh, 400, 300);
	demand_is(&sh, 700);
	assert_false(is_hot(&sh));
	/* Other programs take of the core, and both are ready all the time. */
	sh.waited_ms[0] += 13800;
	sh.waited_ms[1] += 13800;
	run(&sh, 300, 300);
	assert_true(is_hot(&sh));
	script_finish(&sh.s);
}

/* A vCPU that could not be moved counts where it still is. */
static void test_a_move_fails(void **state)
{
	(void)state;
	struct sharing sh;
	struct script *s = &sh.s;

	begin_with(&sh, 2);
	advance(&sh, 490, 500);
	script_expect(s, "home a 0 @2");
	script_done(s, EBB_ACTION_HOME, 'a', 0, -EIO);
	assert_int_equal(script_found(s, 'a', 'a', s->now + 1, "0@1"), 0);
	advance(&sh, 490, 500);
	/* For some windows it is not tried again: it counts as moved. */
	script_expect(s, "home b 0 @2");
	assert_true(is_hot(&sh));
	script_done(s, EBB_ACTION_HOME, 'b', 0, 0);
	run(&sh, 490, 500);
	assert_false(is_hot(&sh));
	script_finish(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_throttled_where_the_host_can),
		cmocka_unit_test(test_no_throttle_where_the_host_cannot),
		cmocka_unit_test(test_waiting_on_an_emulated_core),
		cmocka_unit_test(test_a_move_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
