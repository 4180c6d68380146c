// SPDX-License-Identifier: GPL-2.0-or-later
/* Policies for CPUs and for memory pair as one likes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/policy.h"

#define VMS	3

static struct ebb_view_vm vms[VMS];
static struct ebb_view view;

/* The first VM has arrived first; all want all CPUs and all memory of a node. */
static void set_up(void)
{
	memset(vms, 0, sizeof(vms));
	view = (struct ebb_view){
		.now = EBB_USEC_PER_SEC, .cooldown = EBB_USEC_PER_SEC, .num_nodes = 1,
		.nodes = { { .capacity = 9, .num_cores = 9, .num_threads = 9, .mem_capacity = 90,
			     .mem_threshold = 90, .mem_target = 80 } },
		.num_vms = VMS, .vms = vms,
	};
	for (uint32_t v = 0; v < VMS; v++) {
		vms[v] = (struct ebb_view_vm){
			.order = v + 1, .class = EBB_CLASS_RESERVED, .weight = 100,
			.mem_weight = 100, .has_driver = true, .num_nodes = 1,
		};
		vms[v].nodes[0] = (struct ebb_view_vm_node){
			.floor = 1, .ceiling = 9, .reserved = 9, .wanted = 9, .used = 1,
			.mem = { .floor = 3, .ceiling = 90, .used = 3, .held = 3 },
		};
	}
}

static void decide(const char *name, struct ebb_plan_vm *ret)
{
	static uint64_t state[EBB_POLICY_STATE_MAX / 8];
	const struct ebb_policy_ops *ops = ebb_policy_find(name);
	struct ebb_plan plan = { .targets = ret };

	assert_true(ebb_policy_usable(ops));
	assert_string_equal(ops->name, name);
	memset(state, 0, sizeof(state));
	memset(ret, 0, VMS * sizeof(ret[0]));
	assert_int_equal(ebb_policy_decide(ops, state, &view, &plan), 0);
}

static void test_each_has_its_half(void **state)
{
	struct ebb_plan_vm fair[VMS], strict[VMS], pair[VMS];

	(void)state;
	set_up();
	decide("fair", fair);
	decide("strict", strict);
	assert_int_not_equal(fair[0].nodes[0], strict[0].nodes[0]);
	assert_int_not_equal(fair[0].mem[0], strict[0].mem[0]);
	decide("fair+strict", pair);
	for (uint32_t v = 0; v < VMS; v++) {
		assert_int_equal(pair[v].nodes[0], fair[v].nodes[0]);
		assert_int_equal(pair[v].mem[0], strict[v].mem[0]);
	}
	decide("strict+fair", pair);
	for (uint32_t v = 0; v < VMS; v++) {
		assert_int_equal(pair[v].nodes[0], strict[v].nodes[0]);
		assert_int_equal(pair[v].mem[0], fair[v].mem[0]);
	}
}

/* One word stands for a pair. */
static void test_aliases(void **state)
{
	static const char *const all[][2] = {
		{ "fair", "fair+fair" }, { "strict", "strict+strict" },
		{ "isolate", "isolate+fair" }, { "spot", "spot+fair" }, { "vom", "fair+vom" },
		{ "equal", "fair+equal" }, { "proportional", "fair+proportional" },
		{ "balloon", "fair+balloon" },
	};
	struct ebb_plan_vm one[VMS], other[VMS];

	(void)state;
	set_up();
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		decide(all[i][0], one);
		decide(all[i][1], other);
		assert_memory_equal(one, other, sizeof(one));
		assert_int_equal(ebb_policy_find(all[i][0])->mem_review_usec,
				 ebb_policy_find(all[i][1])->mem_review_usec);
	}
}

static void test_all_pairs(void **state)
{
	static const char *const cpus[] = { "fair", "strict", "isolate", "spot" };
	static const char *const mem[] = {
		"fair", "strict", "vom", "equal", "proportional", "balloon",
	};
	struct ebb_plan_vm plan[VMS];
	char name[64];

	(void)state;
	set_up();
	for (size_t c = 0; c < sizeof(cpus) / sizeof(cpus[0]); c++)
		for (size_t m = 0; m < sizeof(mem) / sizeof(mem[0]); m++) {
			snprintf(name, sizeof(name), "%s+%s", cpus[c], mem[m]);
			decide(name, plan);
		}
	assert_null(ebb_policy_find("vom+fair"));
	assert_null(ebb_policy_find("fair+"));
	assert_null(ebb_policy_find("+"));
	assert_null(ebb_policy_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_has_its_half),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_all_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
