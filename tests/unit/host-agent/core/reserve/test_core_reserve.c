// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of CPU time: which are made, what is kept where cores are overbooked, and actions. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/promise/promise.h"
#include "core/reserve/admit.h"
#include "tests/unit/host-agent/core/core_script.h"

/* ---- admission ----------------------------------------------------------- */

static void test_admit(void **state)
{
	const uint64_t capacity[EBB_MAX_NODES] = { 1000, 500 };
	struct ebb_promise_ask asks[4] = {
		{ .permille = { 600 } }, { .permille = { 500, 100 } },
		{ .permille = { 300, 200 }, .is_held = true }, { .permille = { 100, 300 } },
	};
	uint64_t promised[EBB_MAX_NODES];

	(void)state;
	ebb_promise_admit(asks, 4, capacity, promised);
	/* What was promised before comes first, and what does not fit takes nothing. */
	assert_true(asks[2].is_promised && asks[0].is_promised);
	assert_false(asks[1].is_promised);
	assert_int_equal(asks[1].short_node, 0);
	assert_int_equal(asks[1].short_left, 100);
	assert_true(asks[3].is_promised);
	assert_int_equal(promised[0], 1000);
	assert_int_equal(promised[1], 500);
}

/* What is refused leaves what was promised before, and takes nothing from others. */
static void test_admit_more(void **state)
{
	const uint64_t capacity[EBB_MAX_NODES] = { 1000, 500 };
	struct ebb_promise_ask asks[4] = {
		/* Its 400 are taken before those of the next one, which is new. */
		{ .permille = { 700 }, .before = { 400 } },
		{ .permille = { 300 } },
		{ .permille = { 350 }, .before = { 300 } },
		/* Less than nothing is left for it: it does not fit the host any more. */
		{ .permille = { 0, 700 }, .before = { 0, 600 } },
	};
	uint64_t promised[EBB_MAX_NODES];

	(void)state;
	ebb_promise_admit(asks, 4, capacity, promised);
	assert_true(asks[0].is_promised && !asks[0].is_kept);
	assert_false(asks[1].is_promised || asks[1].is_kept);
	assert_int_equal(asks[1].short_left, 0);
	assert_true(!asks[2].is_promised && asks[2].is_kept);
	assert_int_equal(asks[2].short_left, 300);
	assert_false(asks[3].is_promised || asks[3].is_kept);
	assert_int_equal(promised[0], 1000);
	assert_int_equal(promised[1], 0);
}

/* ---- the whole core ------------------------------------------------------ */

/* Core 0 is nobody's; the others are shared. */
static void begin(struct script *s, uint16_t shared, const struct ebb_promise_config *promise)
{
	script_init_loading(s, 1, 1u + shared, 1, false);
	script_finish(s);
	s->cfg.promise = *promise;
	for (uint16_t c = 1; c <= shared; c++)
		s->host.cores[c].is_shared = true;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
}

static const struct ebb_promise_config usual = { .overbook_percent = 100 };

static struct ebb_sla sla_of(uint32_t reserve, uint32_t max)
{
	struct ebb_sla sla = script_sla("1/1");

	sla.is_shared = true;
	sla.reserve_percent = reserve;
	sla.max_percent = max;
	return sla;
}

static void start(struct script *s, char vm, uint32_t reserve, uint32_t max)
{
	const struct ebb_sla sla = sla_of(reserve, max);

	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_found(s, vm, (uint64_t)vm, s->now, "0@1"), 0);
}

static void test_actions(void **state)
{
	struct script s;
	struct ebb_sla sla;

	(void)state;
	begin(&s, 1, &usual);
	script_loaded(&s);
	script_settle(&s);
	/* Without promises nothing is asked of the host. */
	start(&s, 'a', 0, 0);
	script_expect(&s, "");
	start(&s, 'b', 50, 0);
	script_expect(&s, "reserve b 0 @1 500/500/0");
	/* One that fails is tried again. */
	script_done(&s, EBB_ACTION_RESERVE, 'b', 0, -EIO);
	script_expect(&s, "");
	s.now += SEC(1);
	script_expect(&s, "reserve b 0 @1 500/500/0");
	script_done(&s, EBB_ACTION_RESERVE, 'b', 0, 0);
	script_expect(&s, "");
	/* The promise of another leaves b what it has; what is left for others changes. */
	start(&s, 'c', 20, 40);
	script_expect(&s, "reserve b 0 @1 500/300/0", "reserve c 0 @1 200/300/400");
	script_done(&s, EBB_ACTION_RESERVE, 'b', 0, 0);
	script_done(&s, EBB_ACTION_RESERVE, 'c', 0, 0);
	/* VMs without a promise change nothing for those with one. */
	start(&s, 'd', 0, 0);
	script_expect(&s, "");
	start(&s, 'e', 0, 10);
	script_expect(&s, "reserve e 0 @1 0/300/100");
	script_done(&s, EBB_ACTION_RESERVE, 'e', 0, 0);
	/* A promise that ends. */
	sla = sla_of(0, 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	script_expect(&s, "reserve b 0 @1 0/800/0", "reserve c 0 @1 200/800/400",
		      "reserve e 0 @1 0/800/100");
	script_finish(&s);
}

static void test_refused(void **state)
{
	const struct ebb_vm *vm;
	struct ebb_promise_node node;
	struct ebb_sla sla;
	struct script s;

	(void)state;
	begin(&s, 1, &usual);
	script_loaded(&s);
	start(&s, 'a', 60, 0);
	start(&s, 'b', 60, 0);
	script_settle(&s);
	vm = script_vm(&s, 'b');
	assert_true(vm->reserve.is_refused);
	assert_int_equal(vm->reserve.promised_percent, 0);
	assert_int_equal(vm->reserve.short_percent, 35);
	assert_int_equal(vm->reserve.short_node, 0);
	assert_true(vm->is_running && vm->is_admitted);
	assert_int_equal(script_vm(&s, 'a')->reserve.keep_permille, 600);
	ebb_state_promises(s.state, 0, &node);
	assert_int_equal(node.most_percent, 95);
	assert_int_equal(node.allowed_percent, 95);
	assert_int_equal(node.promised_percent, 60);
	/* An older VM can not take what a younger one was promised. */
	sla = sla_of(30, 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	script_settle(&s);
	assert_false(vm->reserve.is_refused);
	sla = sla_of(70, 0);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_settle(&s);
	assert_true(script_vm(&s, 'a')->reserve.is_refused);
	assert_int_equal(vm->reserve.keep_permille, 300);
	/* What it was promised before holds, is counted, and is what the ledger goes by. */
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 60);
	assert_int_equal(script_vm(&s, 'a')->reserve.keep_permille, 600);
	assert_int_equal(script_vm(&s, 'a')->reserve.short_percent, 65);
	assert_int_equal(promise_permille(script_vm(&s, 'a')), 600);
	ebb_state_promises(s.state, 0, &node);
	assert_int_equal(node.promised_percent, 90);
	/* Less than it asked for, and more than it has: that fits. */
	sla = sla_of(65, 0);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_settle(&s);
	assert_false(script_vm(&s, 'a')->reserve.is_refused);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 65);
	/* Refused, and then it asks for less than it has. */
	sla = sla_of(90, 0);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 65);
	sla = sla_of(10, 0);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_settle(&s);
	assert_false(script_vm(&s, 'a')->reserve.is_refused);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 10);
	script_finish(&s);
}

/* What a promise that is lowered leaves is for those that wait, the promise itself is not. */
static void test_lowered(void **state)
{
	struct ebb_sla sla = sla_of(50, 0);
	struct script s;

	(void)state;
	begin(&s, 1, &usual);
	script_loaded(&s);
	start(&s, 'b', 60, 0);
	script_settle(&s);
	start(&s, 'a', 50, 0);
	script_settle(&s);
	assert_true(script_vm(&s, 'a')->reserve.is_refused);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'b')->reserve.promised_percent, 50);
	assert_true(script_vm(&s, 'a')->reserve.is_refused);
	sla = sla_of(45, 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'b')->reserve.promised_percent, 45);
	assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 50);
	script_finish(&s);
}

static void test_overbooked(void **state)
{
	static const struct {
		struct ebb_promise_config cfg;
		uint32_t keep_a, keep_b;
	} all[] = {
		{ { 200, EBB_OVERBOOK_PROPORTIONAL }, 475, 475 },
		{ { 200, EBB_OVERBOOK_PENALTY }, 350, 600 },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct ebb_sla sla = sla_of(60, 0);
		struct ebb_promise_node node;
		struct script s;

		begin(&s, 1, &all[i].cfg);
		script_loaded(&s);
		start(&s, 'a', 60, 0);
		sla.penalty = 5;
		assert_int_equal(script_define(&s, 'b', &sla), 0);
		assert_int_equal(script_found(&s, 'b', 'b', s.now, "0@1"), 0);
		script_settle(&s);
		assert_int_equal(script_vm(&s, 'a')->reserve.promised_percent, 60);
		assert_int_equal(script_vm(&s, 'a')->reserve.keep_permille, all[i].keep_a);
		assert_int_equal(script_vm(&s, 'b')->reserve.keep_permille, all[i].keep_b);
		ebb_state_promises(s.state, 0, &node);
		assert_int_equal(node.allowed_percent, 190);
		assert_int_equal(node.promised_percent, 120);
		script_finish(&s);
	}
}

/*
 * libvirt has one level: what promises leave of a core is divided among the others, however many
 * there are.  A maximum is a throttle there.
 */
static void begin_real_loading(struct script *s, uint16_t shared)
{
	begin(s, shared, &usual);
	script_finish(s);
	s->host.is_emulated = false;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
}

static void begin_real(struct script *s)
{
	begin_real_loading(s, 1);
	script_loaded(s);
	script_settle(s);
}

static void test_real_host(void **state)
{
	struct script s;

	(void)state;
	begin_real(&s);
	start(&s, 'a', 0, 0);
	script_expect(&s, "");
	start(&s, 'b', 60, 80);
	script_expect(&s, "shares a 400", "throttle b 800", "shares b 600");
	script_settle(&s);
	start(&s, 'c', 0, 0);
	script_expect(&s, "shares a 200", "shares c 200");
	script_settle(&s);
	start(&s, 'd', 0, 0);
	start(&s, 'e', 0, 0);
	script_expect(&s, "shares a 100", "shares c 100", "shares d 100", "shares e 100");
	script_settle(&s);
	/* The last promise goes: as the domains define. */
	assert_int_equal(script_simple(&s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(&s, "shares a 0", "shares c 0", "shares d 0", "shares e 0");
	script_done(&s, EBB_ACTION_SHARES, 'a', 0, -EOPNOTSUPP);
	assert_true(script_vm(&s, 'a')->reserve.is_missing);
	script_finish(&s);
}

static void promise(struct script *s, char vm, uint32_t reserve)
{
	const struct ebb_sla sla = sla_of(reserve, 0);

	assert_int_equal(script_define(s, vm, &sla), 0);
}

/* Weights that fall come first, though their VMs are the last: c keeps its promise meanwhile. */
static void test_order_of_weights(void **state)
{
	struct script s;

	(void)state;
	begin_real(&s);
	start(&s, 'a', 10, 0);
	start(&s, 'b', 10, 0);
	start(&s, 'c', 30, 0);
	start(&s, 'd', 40, 0);
	script_settle(&s);
	promise(&s, 'a', 25);
	promise(&s, 'b', 30);
	promise(&s, 'd', 5);
	script_expect(&s, "shares d 50");
	script_expect(&s, "");
	script_done(&s, EBB_ACTION_SHARES, 'd', 0, 0);
	script_expect(&s, "shares a 250", "shares b 300");

	/* One that is about to rise is to fall after all: it counts as what is being set. */
	promise(&s, 'a', 20);
	promise(&s, 'd', 10);
	script_expect(&s, "");
	script_done(&s, EBB_ACTION_SHARES, 'b', 0, 0);
	script_expect(&s, "");
	script_done(&s, EBB_ACTION_SHARES, 'a', 0, 0);
	script_expect(&s, "shares a 200");
	script_done(&s, EBB_ACTION_SHARES, 'a', 0, 0);
	script_expect(&s, "shares d 100");
	script_settle(&s);

	/* One that can not be set, or whose VM stops, holds up nobody. */
	promise(&s, 'b', 10);
	promise(&s, 'c', 40);
	script_expect(&s, "shares b 100");
	script_done(&s, EBB_ACTION_SHARES, 'b', 0, -EIO);
	script_expect(&s, "shares c 400");
	script_settle(&s);
	promise(&s, 'd', 5);
	promise(&s, 'a', 25);
	script_expect(&s, "shares d 50");
	assert_int_equal(script_simple(&s, 'd', EBB_FACT_VM_STOPPED), 0);
	script_expect(&s, "shares a 250");
	script_finish(&s);
}

/* After a restart it is not known what is in force: all is said again, also that there is none. */
static void test_restart(void **state)
{
	struct script s;

	(void)state;
	begin(&s, 1, &usual);
	start(&s, 'a', 0, 0);
	start(&s, 'b', 50, 0);
	script_loaded(&s);
	script_expect(&s, "throttle a 0", "reserve a 0 @1 0/500/0", "throttle b 0",
		      "reserve b 0 @1 500/500/0");
	script_finish(&s);
}

/*
 * Weights outlive the agent, and so does one of a promise that has gone meanwhile: all are set.  A
 * host without weights needs none set back, and that is no error.
 */
static void test_restart_on_a_real_host(void **state)
{
	struct script s;

	(void)state;
	begin_real_loading(&s, 1);
	start(&s, 'a', 0, 0);
	start(&s, 'b', 0, 0);
	script_loaded(&s);
	script_expect(&s, "throttle a 0", "shares a 0", "throttle b 0", "shares b 0");
	script_done(&s, EBB_ACTION_SHARES, 'a', 0, 0);
	script_done(&s, EBB_ACTION_SHARES, 'b', 0, -EOPNOTSUPP);
	assert_false(script_vm(&s, 'b')->reserve.is_missing);
	script_settle(&s);
	start(&s, 'c', 60, 0);
	script_expect(&s, "shares a 200", "shares b 200", "shares c 600");
	script_settle(&s);
	script_finish(&s);
}

/* ---- promises that can not be divided evenly ------------------------------ */

static void start_three(struct script *s, char vm, uint32_t reserve, uint32_t max)
{
	struct ebb_sla sla = script_sla("3/3");

	sla.is_shared = true;
	sla.reserve_percent = reserve;
	sla.max_percent = max;
	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_found(s, vm, (uint64_t)vm, s->now, "0@1 1@2 2@3"), 0);
}

/* The parts are all of the promise together, and no vCPU's maximum is below its part. */
static void test_uneven(void **state)
{
	struct script s;

	(void)state;
	begin(&s, 3, &usual);
	script_loaded(&s);
	script_settle(&s);
	start_three(&s, 'a', 50, 50);
	script_expect(&s, "reserve a 0 @1 167/833/167", "reserve a 1 @2 167/833/167",
		      "reserve a 2 @3 166/834/166");
	assert_int_equal(script_vm(&s, 'a')->reserve.keep_permille, 500);
	script_settle(&s);
	/* A promise too small for each to have a thousandth is kept as far as there are some. */
	start_three(&s, 'b', 1, 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'b')->reserve.keep_permille, 10);
	script_finish(&s);
}

static void test_uneven_on_a_real_host(void **state)
{
	struct script s;

	(void)state;
	begin_real_loading(&s, 3);
	script_loaded(&s);
	script_settle(&s);
	start_three(&s, 'a', 50, 50);
	script_expect(&s, "throttle a 167", "shares a 500");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_admit),
		cmocka_unit_test(test_admit_more),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_lowered),
		cmocka_unit_test(test_overbooked),
		cmocka_unit_test(test_real_host),
		cmocka_unit_test(test_order_of_weights),
		cmocka_unit_test(test_restart),
		cmocka_unit_test(test_restart_on_a_real_host),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_uneven_on_a_real_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
