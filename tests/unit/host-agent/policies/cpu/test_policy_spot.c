// SPDX-License-Identifier: GPL-2.0-or-later
/* The spot policy: what is reserved, lent and taken back; priorities, weights, arrivals. */
#include <string.h>

#include "tests/unit/host-agent/policies/cpu/policy_bench.h"

/* What is reserved and not wanted is lent, all but one; wanted, it comes back. */
static void test_reserved_is_lent(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 16, 1);
	bench_vm(&b, 100, 100, "1/8/8/1/1");
	bench_spot(&b, 100, 100, "1/16/1/16");
	bench_decide(&b);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 1, 14);
	bench_follow(&b);
	b.vms[0].nodes[0].wanted = 5;
	bench_decide(&b);
	assert_plan(&b, 0, 6);
	assert_plan(&b, 1, 10);
	b.vms[0].nodes[0].wanted = 8;
	bench_decide(&b);
	assert_plan(&b, 0, 8);
	assert_plan(&b, 1, 8);
}

/* Whatever the priority and weight of the others: what is reserved comes first. */
static void test_reserved_before_all(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 16, 1);
	bench_spot(&b, 1000, 10000, "1/16/15/16");
	bench_vm(&b, 0, 1, "1/10/16/1/16");
	bench_decide(&b);
	assert_plan(&b, 1, 10);
	assert_plan(&b, 0, 6);
	/* Beyond that a reservation is worth nothing. */
	b.vms[0].nodes[0].wanted = 2;
	bench_decide(&b);
	assert_plan(&b, 1, 13);
	assert_plan(&b, 0, 3);
}

/* More is reserved than there is: by priority, then by weight. */
static void test_overbooked(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 13, 1);
	bench_vm(&b, 100, 100, "1/8/8/8/8");
	bench_vm(&b, 100, 300, "1/8/8/1/8");
	bench_vm(&b, 200, 1, "1/8/8/1/4");
	bench_decide(&b);
	assert_plan(&b, 2, 5);
	/* Six are left beyond the floors: 1.5 and 4.5; who has the odd one keeps it. */
	assert_plan(&b, 0, 3);
	assert_plan(&b, 1, 5);
}

/* Priority of spot VMs, then weight; nobody wants, nobody has. */
static void test_spot_priorities(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 12, 1);
	bench_spot(&b, 100, 100, "1/12/9/12");
	bench_spot(&b, 200, 100, "1/12/1/6");
	bench_spot(&b, 100, 200, "0/12/0/12");
	bench_decide(&b);
	assert_plan(&b, 1, 7);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 2, 3);
	/* The first wants less: those below get more, and the rest is theirs for the asking. */
	b.vms[1].nodes[0].wanted = 1;
	b.vms[0].nodes[0].wanted = 1;
	b.vms[2].nodes[0].wanted = 0;
	bench_decide(&b);
	assert_plan(&b, 1, 9);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 2, 1);
}

/* Of equals who want all, the newest gives up most when others come. */
static void test_newest_loses(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 7, 1);
	bench_spot(&b, 100, 100, "0/7/3/7");
	bench_spot(&b, 100, 100, "0/7/3/7");
	bench_vm(&b, 100, 100, "1/2/2/1/2");
	bench_decide(&b);
	assert_plan(&b, 2, 2);
	assert_plan(&b, 0, 3);
	assert_plan(&b, 1, 2);
	/* It is not taken back and forth: who has the odd one keeps it. */
	b.vms[0].nodes[0].used = 2;
	bench_decide(&b);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 1, 3);
}

static void test_floors_and_drivers(void **state)
{
	static struct bench b;
	struct ebb_plan plan = { .targets = b.targets };

	(void)state;
	bench_init(&b, &ebb_policy_spot, 2, 4, 1);
	bench_spot(&b, 0, 1, "3/4/3/3 0/4/0/0")->has_driver = false;
	bench_vm(&b, 100, 100, "1/4/4/1/4 0/4/4/0/4");
	bench_decide(&b);
	assert_plan(&b, 0, 3, 0);
	assert_plan(&b, 1, 1, 4);
	b.vms[1].nodes[0].floor = 2;
	assert_true(ebb_policy_decide(&ebb_policy_spot, b.state, &b.view, &plan) < 0);
}

static void test_memory(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_spot, 1, 4, 1);
	bench_spot(&b, 0, 100, "1/4/1/1")->nodes[0].mem.ceiling = 100;
	bench_vm(&b, 900, 300, "1/4/4/1/1")->nodes[0].mem.ceiling = 100;
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 25);
	assert_int_equal(b.targets[1].mem[0], 75);
}

/* ---- random views -------------------------------------------------------- */

static uint16_t least(uint16_t a, uint16_t b)
{
	return a < b ? a : b;
}

/*
 * What comes to a guest node in the round of what is reserved, and with what is wanted; more: the
 * one that a VM may have in addition, on one of its nodes.
 */
static uint16_t own(const struct bench *b, uint32_t v, uint16_t g, uint16_t more)
{
	const struct ebb_view_vm_node *n = &b->vms[v].nodes[g];
	const uint16_t claim = least(n->reserved, n->wanted + more);

	return claim > n->floor ? least(claim, bench_top(b, v, g)) : n->floor;
}

static uint16_t claim(const struct bench *b, uint32_t v, uint16_t g, uint16_t more)
{
	return least(b->vms[v].nodes[g].wanted + more, bench_top(b, v, g));
}

/* VM o has nothing on v's node to which v has more right. */
static void check_right(const struct bench *b, uint32_t v, uint16_t g, uint32_t o, uint16_t j)
{
	const uint16_t has = b->targets[v].nodes[g], other = b->targets[o].nodes[j];

	if (has < own(b, v, g, 0)) {
		assert_true(other <= own(b, o, j, 1));
		if (b->vms[o].priority < b->vms[v].priority)
			assert_int_equal(other, b->vms[o].nodes[j].floor);
	}
	if (has < claim(b, v, g, 0)) {
		assert_true(other <= claim(b, o, j, 1));
		if (b->vms[o].priority < b->vms[v].priority)
			assert_true(other <= own(b, o, j, 1));
	}
	/* Nothing is left either, or it would be v's. */
	if (has < bench_top(b, v, g) && b->vms[o].priority < b->vms[v].priority)
		assert_true(other <= claim(b, o, j, 1));
}

static void check_rights(const struct bench *b)
{
	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
			for (uint32_t o = 0; o < b->view.num_vms; o++)
				for (uint16_t j = 0; o != v && j < b->vms[o].num_nodes; j++)
					if (b->vms[v].nodes[g].host_node ==
					    b->vms[o].nodes[j].host_node)
						check_right(b, v, g, o, j);
}

static void check_no_waste(const struct bench *b)
{
	uint32_t sums[EBB_MAX_NODES] = { 0 };

	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
			sums[b->vms[v].nodes[g].host_node] += b->targets[v].nodes[g];
	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++) {
			const uint16_t h = b->vms[v].nodes[g].host_node;

			assert_true(sums[h] == b->view.nodes[h].capacity ||
				    b->targets[v].nodes[g] == bench_top(b, v, g));
		}
}

static void test_random_views(void **state)
{
	uint32_t num_unsettled = 0;
	static struct bench b;

	(void)state;
	b.chance = 7;
	for (int round = 0; round < 4000; round++) {
		bench_random(&b, &ebb_policy_spot);
		bench_decide(&b);
		bench_check_bounds(&b);
		check_rights(&b);
		check_no_waste(&b);
		num_unsettled += !bench_settles(&b);
	}
	assert_in_range(num_unsettled, 0, 4000 / 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reserved_is_lent),
		cmocka_unit_test(test_reserved_before_all),
		cmocka_unit_test(test_overbooked),
		cmocka_unit_test(test_spot_priorities),
		cmocka_unit_test(test_newest_loses),
		cmocka_unit_test(test_floors_and_drivers),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_random_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
