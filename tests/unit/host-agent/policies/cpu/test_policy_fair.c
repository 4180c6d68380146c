// SPDX-License-Identifier: GPL-2.0-or-later
/* The fair policy: shares, weights, floors, ceilings, nodes, and that it moves little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/policy.h"
#include "tests/lib/chance.h"

#define MAX_VMS	64

struct bench {
	struct ebb_view view;
	struct ebb_view_vm vms[MAX_VMS];
	struct ebb_plan_vm targets[MAX_VMS];
	uint64_t state[EBB_POLICY_STATE_MAX / 8];
};

static void bench_init(struct bench *b, uint16_t nodes, uint32_t cores)
{
	memset(b, 0, sizeof(*b));
	b->view.num_nodes = nodes;
	b->view.vms = b->vms;
	for (uint16_t n = 0; n < nodes; n++)
		b->view.nodes[n] = (struct ebb_view_node){
			.capacity = cores, .num_cores = cores, .num_threads = cores,
		};
}

/* nodes: floor/ceiling/used of each guest node, on the host node of the same number. */
static void bench_vm(struct bench *b, uint32_t weight, const char *nodes)
{
	struct ebb_view_vm *vm = &b->vms[b->view.num_vms];
	unsigned floor, ceiling, used;
	int n;

	vm->order = ++b->view.num_vms;
	vm->weight = weight;
	vm->has_driver = true;
	while (sscanf(nodes, "%u/%u/%u%n", &floor, &ceiling, &used, &n) == 3) {
		vm->nodes[vm->num_nodes] = (struct ebb_view_vm_node){
			.host_node = vm->num_nodes, .floor = (uint16_t)floor,
			.ceiling = (uint16_t)ceiling, .used = (uint16_t)used,
		};
		vm->num_nodes++;
		nodes += n;
		nodes += strspn(nodes, " ,");
	}
}

static void bench_decide(struct bench *b)
{
	struct ebb_plan plan = { .targets = b->targets };

	memset(b->targets, 0, sizeof(b->targets));
	assert_int_equal(ebb_policy_decide(&ebb_policy_fair, b->state, &b->view, &plan), 0);
}

static uint32_t total(const struct bench *b, uint32_t v)
{
	uint32_t sum = 0;

	for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
		sum += b->targets[v].nodes[g];
	return sum;
}

#define assert_plan(b, v, ...)                                                           \
	do {                                                                             \
		const uint16_t want_[] = { __VA_ARGS__ };                                \
		for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(want_[0]); i_++)         \
			assert_int_equal((b)->targets[v].nodes[i_], want_[i_]);          \
	} while (0)

static void test_alone(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 2, 4);
	bench_vm(&b, 100, "1/4/1 0/4/0");
	bench_decide(&b);
	assert_plan(&b, 0, 4, 4);
	b.vms[0].has_driver = false;
	bench_decide(&b);
	assert_plan(&b, 0, 1, 0);
}

/* The paper's figure 6: one, two, three VMs on two sockets of 18 cores. */
static void test_paper(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 2, 18);
	bench_vm(&b, 100, "1/18/1 0/18/0");
	bench_decide(&b);
	assert_int_equal(total(&b, 0), 36);
	b.vms[0].nodes[0].used = b.vms[0].nodes[1].used = 18;
	bench_vm(&b, 100, "1/18/1 0/18/0");
	bench_decide(&b);
	assert_int_equal(total(&b, 0), 18);
	assert_int_equal(total(&b, 1), 18);
	bench_vm(&b, 100, "1/18/1 0/18/0");
	bench_decide(&b);
	for (uint32_t v = 0; v < 3; v++)
		assert_int_equal(total(&b, v), 12);
}

static void test_weights(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 1, 12);
	bench_vm(&b, 100, "1/12/1");
	bench_vm(&b, 200, "1/12/1");
	bench_vm(&b, 300, "1/12/1");
	bench_decide(&b);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 1, 4);
	assert_plan(&b, 2, 6);
}

static void test_floors_and_ceilings(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 1, 12);
	bench_vm(&b, 100, "6/12/6");	/* more than a third, and it keeps that */
	bench_vm(&b, 100, "1/2/1");	/* cannot use a third */
	bench_vm(&b, 100, "1/12/1");
	bench_decide(&b);
	assert_plan(&b, 0, 6);
	assert_plan(&b, 1, 2);
	assert_plan(&b, 2, 4);
}

static void test_nodes(void **state)
{
	struct bench b;

	(void)state;
	/* b can live on node 0 only, so a has to go to node 1 for its share. */
	bench_init(&b, 2, 4);
	bench_vm(&b, 100, "1/4/4 0/4/0");
	bench_vm(&b, 100, "1/4/1");
	bench_decide(&b);
	assert_plan(&b, 0, 1, 4);
	assert_plan(&b, 1, 3);
}

static void test_chain_of_moves(void **state)
{
	struct bench b;

	(void)state;
	/* Node 0 for c, which has to push a from 0 to 1, and b from 1 to 2. */
	bench_init(&b, 3, 2);
	bench_vm(&b, 100, "0/2/2 0/2/0");
	bench_vm(&b, 100, "0/0/0 0/2/2 0/2/0");
	bench_vm(&b, 100, "0/2/0");
	bench_decide(&b);
	for (uint32_t v = 0; v < 3; v++)
		assert_int_equal(total(&b, v), 2);
	assert_plan(&b, 2, 2);
	assert_plan(&b, 0, 0, 2);
	assert_plan(&b, 1, 0, 0, 2);
}

static void test_keeps_what_is_held(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 2, 4);
	bench_vm(&b, 100, "1/4/1 0/4/3");
	bench_vm(&b, 100, "1/4/3 0/4/1");
	bench_decide(&b);
	assert_plan(&b, 0, 1, 3);
	assert_plan(&b, 1, 3, 1);
	/* The odd core stays with whoever has it, earlier or later. */
	bench_init(&b, 1, 5);
	bench_vm(&b, 100, "1/5/2");
	bench_vm(&b, 100, "1/5/3");
	bench_decide(&b);
	assert_plan(&b, 0, 2);
	assert_plan(&b, 1, 3);
	/* When one more comes, only those that have too much give. */
	bench_init(&b, 1, 9);
	bench_vm(&b, 100, "1/9/5");
	bench_vm(&b, 100, "1/9/4");
	bench_vm(&b, 100, "1/9/1");
	bench_decide(&b);
	for (uint32_t v = 0; v < 3; v++)
		assert_plan(&b, v, 3);
}

/* ---- random views -------------------------------------------------------- */

/* As many VMs as have floors that fit, at most 24. */
static void random_view(struct bench *b)
{
	const uint16_t nodes = (uint16_t)(1 + roll(4));
	const uint32_t cores = 4 + roll(14);
	uint32_t floors[EBB_MAX_NODES] = { 0 };

	bench_init(b, nodes, cores);
	for (int v = 0; v < 24; v++) {
		struct ebb_view_vm *vm = &b->vms[b->view.num_vms];

		memset(vm, 0, sizeof(*vm));
		vm->order = ++b->view.num_vms;
		vm->num_nodes = nodes;
		vm->weight = roll(2) ? 100 : 1 + roll(1000);
		vm->has_driver = roll(8) > 0;
		for (uint16_t g = 0; g < nodes; g++) {
			const uint16_t h = (uint16_t)roll(nodes);
			const uint16_t floor = floors[h] < cores ? (uint16_t)roll(2) : 0;

			floors[h] += floor;
			vm->nodes[g] = (struct ebb_view_vm_node){
				.host_node = h, .floor = floor, .used = floor,
				.ceiling = (uint16_t)(floor + roll(9)),
			};
		}
	}
}

static uint16_t top(const struct bench *b, uint32_t v, uint16_t g)
{
	const struct ebb_view_vm *vm = &b->vms[v];

	return vm->has_driver ? vm->nodes[g].ceiling : vm->nodes[g].floor;
}

/* Within floor, ceiling and capacity, and nothing lies idle that somebody could use. */
static void check_bounds(const struct bench *b, uint16_t node)
{
	uint32_t sum = 0;
	bool can_more = false;

	for (uint32_t v = 0; v < b->view.num_vms; v++)
		for (uint16_t g = 0; g < b->vms[v].num_nodes; g++) {
			const uint16_t t = b->targets[v].nodes[g];

			assert_in_range(t, b->vms[v].nodes[g].floor, top(b, v, g));
			if (b->vms[v].nodes[g].host_node != node)
				continue;
			sum += t;
			can_more = can_more || t < top(b, v, g);
		}
	assert_true(sum <= b->view.nodes[node].capacity);
	assert_true(sum == b->view.nodes[node].capacity || !can_more);
}

/* VM v does not envy VM o: a core from o to v would make the two more unequal. */
static void check_envy(const struct bench *b, uint32_t v, uint32_t o)
{
	const uint64_t weight_v = b->vms[v].weight, weight_o = b->vms[o].weight;

	for (uint16_t g = 0; g < b->vms[v].num_nodes; g++)
		for (uint16_t j = 0; j < b->vms[o].num_nodes; j++) {
			if (b->vms[v].nodes[g].host_node != b->vms[o].nodes[j].host_node ||
			    b->targets[v].nodes[g] >= top(b, v, g) ||
			    b->targets[o].nodes[j] <= b->vms[o].nodes[j].floor)
				continue;
			assert_true((2 * total(b, o) - 1) * weight_v <=
				    (2 * total(b, v) + 1) * weight_o);
		}
}

static void test_random_views(void **state)
{
	struct bench b;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		struct ebb_plan_vm first[MAX_VMS];

		random_view(&b);
		bench_decide(&b);
		for (uint16_t n = 0; n < b.view.num_nodes; n++)
			check_bounds(&b, n);
		for (uint32_t v = 0; v < b.view.num_vms; v++)
			for (uint32_t o = 0; o < b.view.num_vms; o++)
				if (v != o)
					check_envy(&b, v, o);
		/* Asked again when its plan is what is held, it does not change its mind. */
		memcpy(first, b.targets, sizeof(first));
		for (uint32_t v = 0; v < b.view.num_vms; v++)
			for (uint16_t g = 0; g < b.vms[v].num_nodes; g++)
				b.vms[v].nodes[g].used = b.vms[v].nodes[g].target =
					first[v].nodes[g];
		bench_decide(&b);
		assert_memory_equal(b.targets, first, sizeof(first));
	}
}

/* ---- memory -------------------------------------------------------------- */

static void bench_mem(struct bench *b, uint32_t weight, uint16_t host_node, uint32_t floor,
		      uint32_t ceiling, uint32_t used)
{
	struct ebb_view_vm *vm = &b->vms[b->view.num_vms];

	vm->order = ++b->view.num_vms;
	vm->weight = 1;
	vm->mem_weight = weight;
	vm->has_driver = true;
	vm->num_nodes = 1;
	vm->nodes[0].host_node = host_node;
	vm->nodes[0].mem = (struct ebb_view_mem){
		.floor = floor, .ceiling = ceiling, .used = used,
	};
}

static void test_mem_shares(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 2, 4);
	b.view.nodes[0].mem_capacity = 512;
	b.view.nodes[1].mem_capacity = 100;
	bench_mem(&b, 100, 0, 0, 1000, 0);
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 512);
	bench_mem(&b, 300, 0, 0, 1000, 0);
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 128);
	assert_int_equal(b.targets[1].mem[0], 384);
	/* A floor above the share, and a ceiling below it: the others have the rest. */
	bench_mem(&b, 100, 0, 200, 1000, 0);
	bench_mem(&b, 100, 0, 0, 12, 0);
	bench_decide(&b);
	assert_int_equal(b.targets[2].mem[0], 200);
	assert_int_equal(b.targets[3].mem[0], 12);
	assert_int_equal(b.targets[0].mem[0], 75);
	assert_int_equal(b.targets[1].mem[0], 225);
	/* Another node is another matter; no driver: the floor. */
	bench_mem(&b, 100, 1, 5, 1000, 0);
	b.vms[4].has_driver = false;
	bench_mem(&b, 100, 1, 0, 1000, 0);
	bench_decide(&b);
	assert_int_equal(b.targets[4].mem[0], 5);
	assert_int_equal(b.targets[5].mem[0], 95);
	assert_int_equal(b.targets[0].mem[0], 75);
}

/* What does not divide stays where it is. */
static void test_mem_rest(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 1, 4);
	b.view.nodes[0].mem_capacity = 11;
	bench_mem(&b, 100, 0, 0, 100, 3);
	bench_mem(&b, 100, 0, 0, 100, 4);
	bench_mem(&b, 100, 0, 0, 100, 4);
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 3);
	assert_int_equal(b.targets[1].mem[0], 4);
	assert_int_equal(b.targets[2].mem[0], 4);
}

/* Two guest nodes on one node of the host: no more than one VM's share. */
static void test_mem_two_cells(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 1, 4);
	b.view.nodes[0].mem_capacity = 90;
	bench_mem(&b, 100, 0, 0, 10, 0);
	b.vms[0].num_nodes = 2;
	b.vms[0].nodes[1].mem = (struct ebb_view_mem){ .floor = 1, .ceiling = 100 };
	bench_mem(&b, 100, 0, 0, 100, 0);
	bench_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 10);
	assert_int_equal(b.targets[0].mem[1], 35);
	assert_int_equal(b.targets[1].mem[0], 45);
}

static void test_mem_random(void **state)
{
	uint64_t seed = 3;
	struct bench b;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		uint64_t sum = 0, floors = 0, room = 0;

		bench_init(&b, 1, 4);
		chance_step(&seed);
		b.view.nodes[0].mem_capacity = 64 + (uint32_t)(seed >> 40) % 5000;
		for (int v = 0; v < 12; v++) {
			uint32_t floor, more;

			chance_step(&seed);
			floor = (uint32_t)(seed >> 33) % 6;
			more = (uint32_t)(seed >> 36) % 1500;
			bench_mem(&b, 1 + (uint32_t)(seed >> 45) % 500, 0, floor, floor + more,
				  (uint32_t)(seed >> 50) % 100);
			floors += floor;
		}
		assert_true(floors <= 64);
		bench_decide(&b);
		for (int v = 0; v < 12; v++) {
			const struct ebb_view_mem *m = &b.vms[v].nodes[0].mem;
			const uint32_t t = b.targets[v].mem[0];

			assert_in_range(t, m->floor, m->ceiling);
			sum += t;
			room += m->ceiling - t;
			/* Nobody who could have more envies one by more than a block for each. */
			for (int o = 0; o < 12 && t < m->ceiling; o++) {
				const uint32_t other = b.targets[o].mem[0];

				if (other > b.vms[o].nodes[0].mem.floor)
					assert_true((uint64_t)(other - 1) * b.vms[v].mem_weight <=
						    (uint64_t)(t + 1) * b.vms[o].mem_weight);
			}
		}
		assert_true(sum <= b.view.nodes[0].mem_capacity);
		/* Nothing is left while somebody could have it. */
		assert_true(sum == b.view.nodes[0].mem_capacity || room == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),
		cmocka_unit_test(test_paper),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_floors_and_ceilings),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_chain_of_moves),
		cmocka_unit_test(test_keeps_what_is_held),
		cmocka_unit_test(test_random_views),
		cmocka_unit_test(test_mem_shares),
		cmocka_unit_test(test_mem_rest),
		cmocka_unit_test(test_mem_two_cells),
		cmocka_unit_test(test_mem_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
