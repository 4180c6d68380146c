// SPDX-License-Identifier: GPL-2.0-or-later
/* The arbiter against arbitrary wishes, and the core under a hostile policy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/arbiter.h"
#include "tests/lib/chance.h"
#include "tests/unit/host-agent/core/core_script.h"

static struct ebb_level_part room[12];

static void test_even_cut(void **state)
{
	const uint32_t capacity = 10;
	struct ebb_arbiter_entry e[3] = {
		{ .floor = 1, .ceiling = 9, .used = 1, .wanted = 9 },
		{ .floor = 4, .ceiling = 9, .used = 4, .wanted = 2 },
		{ .floor = 1, .ceiling = 9, .used = 1, .wanted = 9 },
	};

	(void)state;
	assert_int_equal(ebb_arbiter_clamp(capacity, e, room, 3), 3);
	assert_int_equal(e[0].target, 3);
	assert_int_equal(e[1].target, 4);
	assert_int_equal(e[2].target, 3);
}

static void test_freed_before_given(void **state)
{
	const uint32_t capacity = 8;
	struct ebb_arbiter_entry e[2] = {
		{ .floor = 1, .ceiling = 8, .used = 8, .target = 4, .limit = 8 },
		{ .floor = 1, .ceiling = 8, .used = 1, .target = 4, .limit = 0 },
	};

	(void)state;
	/* Startup sets may exceed a node for a moment; then nothing is on offer. */
	ebb_arbiter_limits(capacity, e, room, 2);
	assert_int_equal(e[0].limit, 4);
	assert_int_equal(e[1].limit, 1);
	e[0].used = 7;
	ebb_arbiter_limits(capacity, e, room, 2);
	assert_int_equal(e[1].limit, 1);
	e[0].used = 6;
	ebb_arbiter_limits(capacity, e, room, 2);
	assert_int_equal(e[1].limit, 2);
	e[0].used = 4;
	ebb_arbiter_limits(capacity, e, room, 2);
	assert_int_equal(e[0].limit, 4);
	assert_int_equal(e[1].limit, 4);
}

static void test_offers_are_kept(void **state)
{
	const uint32_t capacity = 8;
	struct ebb_arbiter_entry e[2] = {
		{ .floor = 1, .ceiling = 8, .used = 1, .target = 6, .limit = 6 },
		{ .floor = 1, .ceiling = 8, .used = 1, .target = 6, .limit = 1 },
	};

	(void)state;
	ebb_arbiter_limits(capacity, e, room, 2);
	assert_int_equal(e[0].limit, 6);
	assert_int_equal(e[1].limit, 2);
}

static void test_random_wishes(void **state)
{
	(void)state;
	for (int round = 0; round < 60000; round++) {
		const uint32_t capacity = 1 + roll(24);
		struct ebb_arbiter_entry e[12];
		const size_t count = 1 + roll(roll(2) ? 4 : 12);
		uint32_t floors = 0, targets = 0, promised = 0, used = 0;
		bool exceeds = false, wants = false;

		for (size_t i = 0; i < count; i++) {
			uint32_t floor = roll(3);

			if (floors + floor > capacity)
				floor = 0;
			floors += floor;
			e[i] = (struct ebb_arbiter_entry){
				.floor = floor, .ceiling = floor + roll(12),
				.wanted = roll(roll(2) ? 16 : 65536),
				.limit = roll(roll(2) ? 16 : 65536),
			};
			e[i].used = floor + roll(e[i].ceiling - floor + 3u);
		}
		ebb_arbiter_clamp(capacity, e, room, count);
		ebb_arbiter_limits(capacity, e, room, count);
		for (size_t i = 0; i < count; i++) {
			assert_in_range(e[i].target, e[i].floor, e[i].ceiling);
			assert_in_range(e[i].limit, e[i].floor, e[i].ceiling);
			/* Never above the goal unless that is what is used already. */
			assert_true(e[i].limit <= e[i].target || e[i].limit <= e[i].used);
			targets += e[i].target;
			used += e[i].used;
			promised += e[i].limit > e[i].used ? e[i].limit : e[i].used;
			exceeds = exceeds || e[i].limit > e[i].used;
			wants = wants || e[i].limit < e[i].target;
		}
		assert_true(targets <= capacity);
		assert_true(promised <= capacity || (promised == used && !exceeds));
		/* What is free is on offer to those who are to have it. */
		assert_true(!wants || promised >= capacity);
	}
}

static int hostile_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
			ret_plan->targets[v].nodes[g] = (uint16_t)roll(65536);
	return roll(4) ? 0 : -EIO;
}

static const struct ebb_policy_ops hostile = {
	.abi = EBB_POLICY_ABI, .size = sizeof(struct ebb_policy_ops), .name = "hostile",
	.decide = hostile_decide,
};

static void test_hostile_policy(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 6, 1, false);
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &hostile), 0);
	for (uint64_t order = 1; order < 400; order++) {
		const char vm = (char)('a' + order % 3);
		uint32_t promised = 0;

		if (script_vm(&s, vm) && script_vm(&s, vm)->is_running) {
			script_add(&s, vm, order, (uint16_t)(1 + roll(4)), 0, false);
			script_settle(&s);
			if (roll(3) == 0)
				script_simple(&s, vm, EBB_FACT_VM_STOPPED);
		} else {
			script_boot(&s, vm, order, "1/4");
		}
		/* Long enough for every demand to end. */
		s.now += SEC(1);
		script_settle(&s);
		for (char c = 'a'; c <= 'c'; c++) {
			const struct ebb_vm *v = script_vm(&s, c);
			uint32_t used = 0;

			if (!v || !v->is_running)
				continue;
			for (uint16_t i = 0; i < v->num_vcpus; i++)
				used += v->vcpus[i].thread != EBB_THREAD_NONE;
			assert_in_range(v->nodes[0].limit, 1, 4);
			assert_true(used >= 1);
			promised += used > v->nodes[0].limit ? used : v->nodes[0].limit;
		}
		assert_true(promised <= 6);
	}
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_even_cut),
		cmocka_unit_test(test_freed_before_given),
		cmocka_unit_test(test_offers_are_kept),
		cmocka_unit_test(test_random_wishes),
		cmocka_unit_test(test_hostile_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
