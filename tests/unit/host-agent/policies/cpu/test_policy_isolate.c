// SPDX-License-Identifier: GPL-2.0-or-later
/* The isolate policy: sockets, hyperthreads, sharing, and that VMs stay where they are. */
#include <string.h>

#include "tests/unit/host-agent/policies/cpu/policy_bench.h"

/* Bits: sockets on which the VM has more than its floor. */
static uint16_t sockets(const struct bench *b, uint32_t v)
{
	uint16_t set = 0;

	for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
		if (b->targets[v].nodes[g] > b->vms[v].nodes[g].floor)
			set |= (uint16_t)(1u << b->vms[v].nodes[g].host_node);
	return set;
}

/* A VM that can be everywhere, with one CPU to begin with on node `home` of 4. */
static void wide(struct bench *b, uint16_t home)
{
	struct ebb_view_vm *vm = bench_vm(b, 100, 100,
					  "0/72/72/0/0 0/72/72/0/0 0/72/72/0/0 0/72/72/0/0");

	vm->nodes[home].floor = vm->nodes[home].used = vm->nodes[home].wanted = 1;
}

/* Figure 7: one VM on two sockets of 18 cores, then two. */
static void test_paper(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 2, 18, 2);
	bench_vm(&b, 100, 100, "1/36/36/1/1 0/36/36/0/0");
	bench_decide(&b);
	assert_plan(&b, 0, 18, 18);
	assert_false(b.use_threads[0] || b.use_threads[1]);
	bench_follow(&b);
	bench_vm(&b, 100, 100, "0/36/36/0/0 1/36/36/1/1");
	bench_decide(&b);
	assert_plan(&b, 0, 36, 0);
	assert_plan(&b, 1, 0, 36);
	assert_true(b.use_threads[0] && b.use_threads[1]);
	/* The second leaves: all sockets, core by core. */
	bench_follow(&b);
	bench_remove(&b, 1);
	bench_decide(&b);
	assert_plan(&b, 0, 18, 18);
	assert_false(b.use_threads[0] || b.use_threads[1]);
}

/* A third shares a socket: cores only there, by weight. */
static void test_sharing(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 2, 18, 2);
	bench_vm(&b, 100, 100, "1/36/36/1/1 0/36/36/0/0");
	bench_vm(&b, 100, 100, "0/36/36/0/0 1/36/36/1/1");
	bench_decide(&b);
	bench_follow(&b);
	bench_vm(&b, 100, 200, "0/36/36/0/0 1/36/36/1/1");
	bench_decide(&b);
	assert_plan(&b, 0, 36, 0);
	assert_plan(&b, 1, 0, 6);
	assert_plan(&b, 2, 0, 12);
	assert_true(b.use_threads[0]);
	assert_false(b.use_threads[1]);
	/* The first leaves: one of the other two takes its socket, and the first of them stays. */
	bench_follow(&b);
	bench_remove(&b, 0);
	bench_decide(&b);
	assert_plan(&b, 0, 0, 17);
	assert_plan(&b, 1, 36, 1);
	assert_true(b.use_threads[0]);
	assert_false(b.use_threads[1]);
}

/* Startup sets on somebody else's socket stay, and the hyperthreads there idle. */
static void test_foreign_floor(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 2, 4, 2);
	bench_vm(&b, 100, 100, "2/8/8/2/2 0/8/8/0/0");
	bench_vm(&b, 100, 100, "1/8/8/1/1 0/8/8/0/0");
	bench_decide(&b);
	assert_plan(&b, 0, 3, 0);
	assert_plan(&b, 1, 1, 8);
	assert_false(b.use_threads[0]);
	assert_true(b.use_threads[1]);
}

/* One who can be on one socket only gets it, and its owner moves. */
static void test_displaced(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 3, 4, 1);
	bench_vm(&b, 100, 100, "1/4/4/1/1 0/4/4/0/0 0/0/0/0/0");
	bench_vm(&b, 100, 100, "0/0/0/0/0 1/4/4/1/1 0/4/4/0/0");
	bench_decide(&b);
	bench_follow(&b);
	bench_vm(&b, 100, 100, "1/4/4/1/1");
	bench_decide(&b);
	assert_plan(&b, 0, 1, 3, 0);
	assert_plan(&b, 1, 0, 1, 4);
	assert_plan(&b, 2, 3);
}

/* A VM has its sockets, booting or not. */
static void test_without_driver(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 2, 4, 2);
	bench_vm(&b, 100, 100, "1/8/8/1/1 0/8/8/0/0");
	bench_vm(&b, 100, 100, "0/8/8/0/0 1/8/8/1/1")->has_driver = false;
	bench_decide(&b);
	assert_plan(&b, 0, 8, 0);
	assert_plan(&b, 1, 0, 1);
}

/* One to six VMs on four sockets, who come and go: those who stay do not change places. */
static void test_stays(void **state)
{
	static struct bench b;
	uint16_t before[3];

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 4, 36, 2);
	wide(&b, 0);
	bench_decide(&b);
	assert_int_equal(sockets(&b, 0), 15);
	bench_follow(&b);
	wide(&b, 1);
	bench_decide(&b);
	assert_int_equal(__builtin_popcount(sockets(&b, 0)), 2);
	assert_int_equal(sockets(&b, 0) | sockets(&b, 1), 15);
	assert_int_equal(sockets(&b, 0) & sockets(&b, 1), 0);
	assert_int_equal(bench_total(&b, 0), 144);
	bench_follow(&b);
	before[0] = sockets(&b, 0);
	before[1] = sockets(&b, 1);
	wide(&b, 2);
	bench_decide(&b);
	assert_int_equal(sockets(&b, 2), 4);
	assert_int_equal(sockets(&b, 0) & ~before[0], 0);
	assert_int_equal(sockets(&b, 1) & ~before[1], 0);
	bench_follow(&b);
	before[0] = sockets(&b, 0);
	before[1] = sockets(&b, 1);
	before[2] = sockets(&b, 2);
	wide(&b, 3);
	wide(&b, 0);
	wide(&b, 1);
	bench_decide(&b);
	for (uint32_t v = 0; v < 4; v++)
		assert_int_equal(sockets(&b, v), 1 << v);
	assert_int_equal(bench_total(&b, 0), 18);
	assert_int_equal(bench_total(&b, 4), 18);
	assert_int_equal(bench_total(&b, 2), 72);
	bench_follow(&b);
	/* The last three leave again: nobody has less than before, on the same sockets. */
	for (int i = 0; i < 3; i++)
		bench_remove(&b, 3);
	bench_decide(&b);
	for (uint32_t v = 0; v < 3; v++)
		assert_int_equal(sockets(&b, v) & 1 << v, 1 << v);
	assert_int_equal(sockets(&b, 0) | sockets(&b, 1) | sockets(&b, 2), 15);
	assert_int_equal(before[2], 4);
}

static void test_memory(void **state)
{
	static struct bench b;

	(void)state;
	bench_init(&b, &ebb_policy_isolate, 2, 4, 1);
	bench_vm(&b, 0, 100, "1/4/4/1/1 0/4/4/0/0")->nodes[0].mem.ceiling = 100;
	bench_vm(&b, 0, 300, "1/4/4/1/1 0/4/4/0/0")->nodes[0].mem.ceiling = 100;
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 25);
	assert_int_equal(b.targets[1].mem[0], 75);
}

/* ---- random views -------------------------------------------------------- */

/* Where threads count, one VM alone has anything. */
static void check_threads(const struct bench *b)
{
	for (uint16_t h = 0; h < b->view.num_nodes; h++) {
		uint32_t vms = 0;

		for (uint32_t v = 0; v < b->view.num_vms; v++) {
			bool has = false;

			for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
				has = has || (b->vms[v].nodes[g].host_node == h &&
					      b->targets[v].nodes[g] > 0);
			vms += has;
		}
		assert_true(!b->use_threads[h] || (vms <= 1 && b->view.num_vms > 1));
	}
}

static void test_random_views(void **state)
{
	uint32_t num_unsettled = 0;
	static struct bench b;

	(void)state;
	b.chance = 11;
	for (int round = 0; round < 4000; round++) {
		bench_random(&b, &ebb_policy_isolate);
		bench_decide(&b);
		bench_check_bounds(&b);
		check_threads(&b);
		num_unsettled += !bench_settles(&b);
	}
	assert_in_range(num_unsettled, 0, 4000 / 200);
}

/*
 * VMs that can be everywhere, on sockets of any number: each socket has its VMs, numbers of sockets
 * differ by one at most, and nobody loses a socket because somebody leaves.
 */
static void test_random_hosts(void **state)
{
	static struct bench b;

	(void)state;
	b.chance = 13;
	for (int round = 0; round < 500; round++) {
		const uint16_t nodes = (uint16_t)(2 + bench_roll(&b, 15));
		const uint32_t vms = 1 + bench_roll(&b, nodes);
		int fewest = EBB_MAX_NODES, most = 0;
		uint16_t all = 0, before[BENCH_VMS];
		uint32_t gone;

		bench_init(&b, &ebb_policy_isolate, nodes, 8, 2);
		for (uint32_t v = 0; v < vms; v++) {
			struct ebb_view_vm *vm = bench_vm(&b, 100, 100, "0/16/16/0/0");

			vm->num_nodes = nodes;
			for (uint16_t g = 0; g < nodes; g++) {
				vm->nodes[g] = vm->nodes[0];
				vm->nodes[g].host_node = g;
			}
			vm->nodes[v].floor = vm->nodes[v].used = 1;
			bench_decide(&b);
			bench_follow(&b);
		}
		for (uint32_t v = 0; v < vms; v++) {
			const int num = __builtin_popcount(sockets(&b, v));

			assert_int_equal(all & sockets(&b, v), 0);
			all |= before[v] = sockets(&b, v);
			fewest = num < fewest ? num : fewest;
			most = num > most ? num : most;
		}
		assert_int_equal(all, (1u << nodes) - 1);
		assert_true(most - fewest <= 1);
		gone = bench_roll(&b, vms);
		bench_remove(&b, gone);
		bench_decide(&b);
		for (uint32_t v = 0; v + 1 < vms; v++)
			assert_int_equal(before[v + (v >= gone)] & ~sockets(&b, v), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_sharing),
		cmocka_unit_test(test_foreign_floor),
		cmocka_unit_test(test_displaced),
		cmocka_unit_test(test_without_driver),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_random_views),
		cmocka_unit_test(test_random_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
