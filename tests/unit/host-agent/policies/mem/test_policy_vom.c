// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether the vom policy takes what is worth least: against the best that can be done with whole
 * blocks of the histograms (by dynamic programming over VMs), and against the exact 0-1 knapsack of
 * the objects that the histograms were made of.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/host-agent/policies/mem/broker_bench.h"

#define BLOCK_KIB	((uint32_t)(EBB_BLOCK_BYTES >> 10))

static struct broker_bench b;

/* ---- whole blocks -------------------------------------------------------- */

#define MOST_BLOCKS	40u		/* of a VM */

/* Weighted value of the cheapest `blocks` of a VM; in units of value x KiB. */
static uint64_t cost_of(uint32_t v, uint32_t blocks)
{
	const struct ebb_view_mem *mem = &b.vms[v].nodes[0].mem;
	uint64_t need = (uint64_t)blocks * BLOCK_KIB, sum = 0;

	for (uint32_t i = 0; i < mem->num_buckets && need > 0; i++) {
		const uint64_t part = mem->buckets[i].kib < need ? mem->buckets[i].kib : need;

		sum += part * mem->buckets[i].value;
		need -= part;
	}
	return sum * b.vms[v].mem_weight;
}

/* A VM with a histogram that says of all that it holds what it is worth. */
static void add_vm(void)
{
	const uint32_t v = b.view.num_vms;
	const uint32_t held = 1 + (uint32_t)broker_roll(&b, MOST_BLOCKS - 1);
	struct ebb_view_mem *mem = broker_vm(&b, 0, (uint32_t)broker_roll(&b, held + 1), held);
	uint32_t left = held * BLOCK_KIB;
	uint64_t value = 0;

	if (broker_roll(&b, 2))
		b.vms[v].mem_weight = 1 + (uint32_t)broker_roll(&b, 1000);
	mem->buckets = b.buckets[v][0];
	mem->vom_at = b.view.now;
	while (left > 0) {
		const bool is_last = mem->num_buckets == BROKER_BUCKETS - 1;
		uint32_t kib = 1 + (uint32_t)broker_roll(&b, broker_roll(&b, 2) ? 900 : 12000);

		kib = is_last || kib > left ? left : kib;
		/* Means of a block are whole numbers. */
		value += broker_roll(&b, 3) * broker_roll(&b, 50) * BLOCK_KIB;
		b.buckets[v][0][mem->num_buckets++] = (struct ebb_vom_bucket){
			.value = value, .kib = kib,
		};
		left -= kib;
	}
}

/* The least that `blocks` can cost, with no more than gives[] from each. */
static uint64_t least_cost(uint32_t blocks)
{
	static uint64_t best[BROKER_VMS * MOST_BLOCKS + 1];

	for (uint32_t k = 0; k <= blocks; k++)
		best[k] = k ? UINT64_MAX : 0;
	for (uint32_t v = 0; v < b.view.num_vms; v++) {
		const struct ebb_view_mem *mem = &b.vms[v].nodes[0].mem;

		for (uint32_t k = blocks; k > 0; k--)
			for (uint32_t j = 1; j <= k && j <= mem->held - mem->floor; j++)
				if (best[k - j] != UINT64_MAX &&
				    best[k - j] + cost_of(v, j) < best[k])
					best[k] = best[k - j] + cost_of(v, j);
	}
	return best[blocks];
}

static void test_whole_blocks(void **state)
{
	uint32_t brokered = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t cost = 0;
		uint32_t in_use = 0, gives = 0, gave = 0, want;

		b.chance = seed;
		broker_init(&b, &ebb_policy_vom, 1);
		for (uint64_t num = 2 + broker_roll(&b, 18); num > 0; num--)
			add_vm();
		for (uint32_t v = 0; v < b.view.num_vms; v++) {
			in_use += b.vms[v].nodes[0].mem.held;
			gives += b.vms[v].nodes[0].mem.held - b.vms[v].nodes[0].mem.floor;
			b.vms[v].nodes[0].mem.ceiling = b.vms[v].nodes[0].mem.held;
		}
		if (gives < 2)
			continue;
		want = 1 + (uint32_t)broker_roll(&b, gives);
		b.view.nodes[0].mem_capacity = in_use;
		b.view.nodes[0].mem_threshold = in_use - 1;
		b.view.nodes[0].mem_target = in_use - want;
		if (want == in_use)
			continue;
		broker_decide(&b);
		broker_check(&b);
		for (uint32_t v = 0; v < b.view.num_vms; v++) {
			const uint32_t give = b.vms[v].nodes[0].mem.held - b.targets[v].mem[0];

			gave += give;
			cost += cost_of(v, give);
		}
		assert_int_equal(gave, want);
		assert_int_equal(cost, least_cost(want));
		brokered++;
	}
	assert_true(brokered > 50);
}

/* ---- objects ------------------------------------------------------------- */

#define TENANTS		20u
#define OBJECTS		60u		/* of each */
#define UNIT_KIB	256u
#define SEEDS		20u

struct object {
	uint32_t units;
	uint64_t value;			/* per MiB */
};

static struct object objects[TENANTS][OBJECTS];

static int by_value(const void *x, const void *y)
{
	const struct object *p = x, *q = y;

	return p->value != q->value ? (p->value < q->value ? -1 : 1) : 0;
}

static uint64_t worth(const struct object *o)
{
	return o->units * o->value;
}

/* Each tenant with a level of its own, values spread over three powers of ten; by rising value. */
static uint32_t make_objects(void)
{
	uint32_t units = 0;

	for (uint32_t t = 0; t < TENANTS; t++) {
		const uint64_t level = 1 + broker_roll(&b, 100);

		for (uint32_t i = 0; i < OBJECTS; i++) {
			uint64_t value = level * (1 + broker_roll(&b, 1000));

			if (broker_roll(&b, 3) == 0)
				value /= 30;
			objects[t][i] = (struct object){
				.units = 1 + (uint32_t)broker_roll(&b, 16), .value = value,
			};
			units += objects[t][i].units;
		}
		qsort(objects[t], OBJECTS, sizeof(objects[t][0]), by_value);
	}
	return units;
}

/* Equi-depth, of half as many buckets as there are objects. */
static uint32_t tell_objects(uint32_t t)
{
	struct ebb_view_mem *mem = broker_vm(&b, 0, 0, 0);
	uint32_t units = 0;

	mem->buckets = b.buckets[t][0];
	mem->vom_at = b.view.now;
	for (uint32_t i = 0; i < OBJECTS; i += 2) {
		const uint32_t both = objects[t][i].units + objects[t][i + 1].units;

		b.buckets[t][0][mem->num_buckets++] = (struct ebb_vom_bucket){
			.value = objects[t][i + 1].value, .kib = both * UNIT_KIB,
		};
		units += both;
	}
	mem->held = mem->ceiling = (units * UNIT_KIB + BLOCK_KIB - 1) / BLOCK_KIB;
	return mem->held;
}

/* The most that objects of so many units can be worth. */
static uint64_t knapsack(uint32_t units)
{
	uint64_t *best = calloc(units + 1, sizeof(*best)), ret;

	assert_non_null(best);
	for (uint32_t t = 0; t < TENANTS; t++)
		for (uint32_t i = 0; i < OBJECTS; i++) {
			const struct object *o = &objects[t][i];

			for (uint32_t k = units; k >= o->units; k--)
				if (best[k - o->units] + worth(o) > best[k])
					best[k] = best[k - o->units] + worth(o);
		}
	ret = best[units];
	free(best);
	return ret;
}

/* What a tenant keeps that evicts whole objects, the cheapest first, to give so much. */
static uint64_t kept(uint32_t t, uint32_t blocks, uint32_t *ret_units)
{
	uint32_t freed = 0, i = 0;
	uint64_t value = 0;

	for (; i < OBJECTS && freed * UNIT_KIB < blocks * BLOCK_KIB; i++)
		freed += objects[t][i].units;
	for (; i < OBJECTS; i++) {
		value += worth(&objects[t][i]);
		*ret_units += objects[t][i].units;
	}
	return value;
}

static void test_knapsack(void **state)
{
	double worst = 0, sum = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		uint32_t in_use = 0, units, target, kept_units = 0;
		uint64_t greedy = 0, exact;
		double gap;

		b.chance = 1000 + seed;
		broker_init(&b, &ebb_policy_vom, 1);
		units = make_objects();
		for (uint32_t t = 0; t < TENANTS; t++)
			in_use += tell_objects(t);
		/* From 5 to 62% have to go. */
		target = in_use * (98 - 3 * (uint32_t)seed) / 100;
		b.view.nodes[0].mem_capacity = in_use;
		b.view.nodes[0].mem_threshold = in_use - 1;
		b.view.nodes[0].mem_target = target;
		broker_decide(&b);
		broker_check(&b);
		for (uint32_t t = 0; t < TENANTS; t++)
			greedy += kept(t, b.vms[t].nodes[0].mem.held - b.targets[t].mem[0],
				       &kept_units);
		/* The last block of a tenant need not be full. */
		units -= (in_use - target) * BLOCK_KIB / UNIT_KIB;
		assert_true(kept_units <= units);
		exact = knapsack(units);
		assert_true(greedy <= exact);
		gap = 100 * (1 - (double)greedy / (double)exact);
		sum += gap;
		worst = gap > worst ? gap : worst;
	}
	printf("greedy below the exact knapsack of %u objects of %u tenants, %u seeds: "
	       "mean %.3f%%, worst %.3f%%\n", TENANTS * OBJECTS, TENANTS, SEEDS,
	       sum / SEEDS, worst);
	assert_true(worst <= 2);
}

/* Two guest nodes of one VM on one node of the host: the cheaper goes first, wherever it is. */
static void test_two_cells(void **state)
{
	static struct ebb_vom_bucket more[2];
	struct ebb_view_vm *vm = &b.vms[0];

	(void)state;
	broker_init(&b, &ebb_policy_vom, 1);
	broker_vm(&b, 0, 10, 500);
	broker_vm(&b, 0, 100, 100)->ceiling = 100;
	vm->num_nodes = 2;
	vm->nodes[1] = vm->nodes[0];
	vm->nodes[1].mem.held = 400;
	broker_tell(&b, 0, (uint32_t[]){ 3, 50, 8, 450, 0, 0 });
	more[0] = (struct ebb_vom_bucket){ .value = 4, .kib = 100 * BLOCK_KIB, .node = 1 };
	more[1] = (struct ebb_vom_bucket){ .value = 9, .kib = 300 * BLOCK_KIB, .node = 1 };
	vm->nodes[1].mem.buckets = more;
	vm->nodes[1].mem.num_buckets = 2;
	vm->nodes[1].mem.vom_at = b.view.now;
	broker_tell(&b, 1, (uint32_t[]){ 1, 100, 0, 0 });
	broker_decide(&b);
	/* 200: 50 at 3, 100 at 4, 50 at 8; the other VM has its floor alone. */
	assert_int_equal(b.targets[0].mem[0], 400);
	assert_int_equal(b.targets[0].mem[1], 300);
	assert_int_equal(b.targets[1].mem[0], 100);
	assert_int_equal(b.targets[0].mem_cutoff[1], 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_blocks),
		cmocka_unit_test(test_knapsack),
		cmocka_unit_test(test_two_cells),
	};

	return cmocka_run_group_tests_name("policy vom", tests, NULL, NULL);
}
