// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dividing offers and demands: the rules one by one, and the invariants of
 * divide.h on random VMs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/monitord/divide.h"
#include "tests/lib/chance.h"

#define MAX_APPS	8
#define RANDOM_VMS	10000
#define RANDOM_STEPS	6
#define FULL_BYTES	(1ull << 40)
#define BLOCK		(2ull << 20)
#define MS		1000000ull
#define T0		(1000 * MS)

struct vm {
	struct ebb_view view;
	struct ebb_divide_app apps[MAX_APPS];
	struct ebb_divide_app *order[MAX_APPS];
	size_t num;
};

static void vm_init(struct vm *vm, size_t num_apps)
{
	memset(vm, 0, sizeof(*vm));
	vm->view.num_nodes = 1;
	vm->view.nodes[0].hotplugged = 1000;
	vm->num = num_apps;
	for (size_t i = 0; i < MAX_APPS; i++)
		vm->order[i] = &vm->apps[i];
}

static uint64_t vm_divide(struct vm *vm, uint32_t offer, uint32_t demand, uint64_t now_ns)
{
	vm->view.nodes[0].offer = offer;
	vm->view.nodes[0].demand = demand;
	return ebb_divide(&vm->view, vm->order, vm->num, now_ns);
}

static struct ebb_divide_node *node_of(struct vm *vm, size_t app, enum ebb_divide_kind kind,
				       uint32_t node)
{
	return &vm->apps[app].nodes[kind][node];
}

static struct ebb_divide_node *cpu(struct vm *vm, size_t app, uint32_t node)
{
	return node_of(vm, app, EBB_DIVIDE_CPU, node);
}

static struct ebb_divide_node *mem(struct vm *vm, size_t app, uint32_t node)
{
	return node_of(vm, app, EBB_DIVIDE_MEM, node);
}

static void offers_are(struct vm *vm, uint32_t a, uint32_t b, uint32_t c)
{
	assert_int_equal(cpu(vm, 0, 0)->offered, a);
	assert_int_equal(cpu(vm, 1, 0)->offered, b);
	assert_int_equal(cpu(vm, 2, 0)->offered, c);
}

static void demands_are(struct vm *vm, uint32_t a, uint32_t b, uint32_t c)
{
	assert_int_equal(cpu(vm, 0, 0)->demanded, a);
	assert_int_equal(cpu(vm, 1, 0)->demanded, b);
	assert_int_equal(cpu(vm, 2, 0)->demanded, c);
}

static void offer_is_even_and_the_rest_goes_by_registration(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	vm_divide(&vm, 6, 0, T0);
	offers_are(&vm, 2, 2, 2);
	vm_divide(&vm, 7, 0, T0);
	offers_are(&vm, 3, 2, 2);
	vm_divide(&vm, 2, 0, T0);
	offers_are(&vm, 1, 1, 0);
}

static void offer_levels_what_is_owned(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	cpu(&vm, 0, 0)->claimed = 4;
	cpu(&vm, 1, 0)->claimed = 1;
	vm_divide(&vm, 4, 0, T0);
	offers_are(&vm, 0, 2, 2);
}

static void demand_comes_from_the_richest(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	cpu(&vm, 0, 0)->claimed = 1;
	cpu(&vm, 1, 0)->claimed = 4;
	cpu(&vm, 2, 0)->claimed = 3;
	vm_divide(&vm, 0, 1, T0);
	demands_are(&vm, 0, 1, 0);
	vm_divide(&vm, 0, 3, T0);
	demands_are(&vm, 0, 2, 1);
	vm_divide(&vm, 0, 100, T0);
	demands_are(&vm, 1, 4, 3);
}

static void demand_of_equals_comes_from_the_last(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	for (int i = 0; i < 3; i++)
		cpu(&vm, i, 0)->claimed = 2;
	vm_divide(&vm, 0, 1, T0);
	demands_are(&vm, 0, 0, 1);
}

static void claims_above_what_is_hotplugged_are_cut(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	vm.view.nodes[0].hotplugged = 3;
	cpu(&vm, 0, 0)->claimed = UINT32_MAX;
	cpu(&vm, 1, 0)->claimed = 1;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(cpu(&vm, 0, 0)->owned, 3);
	demands_are(&vm, 1, 0, 0);
	/* Only as long as that is so. */
	cpu(&vm, 0, 0)->claimed = 5;
	vm.view.nodes[0].hotplugged = 4;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(cpu(&vm, 0, 0)->owned, 4);
	vm.view.nodes[0].hotplugged = 6;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(cpu(&vm, 0, 0)->owned, 5);
}

static void untaken_offer_goes_to_the_others(void **state)
{
	const uint64_t patience_ns = EBB_DIVIDE_PATIENCE_MS * MS;
	struct vm vm;
	uint64_t due_ns;

	(void)state;
	vm_init(&vm, 3);
	due_ns = vm_divide(&vm, 3, 0, T0);
	offers_are(&vm, 1, 1, 1);
	assert_int_equal(due_ns, T0 + patience_ns);

	/* The first takes one; the others do nothing. */
	cpu(&vm, 0, 0)->claimed = 1;
	vm_divide(&vm, 2, 0, T0 + 500 * MS);
	offers_are(&vm, 0, 1, 1);
	vm_divide(&vm, 2, 0, T0 + patience_ns - 1);
	offers_are(&vm, 0, 1, 1);
	vm_divide(&vm, 2, 0, T0 + patience_ns);
	offers_are(&vm, 2, 0, 0);

	/* When it does nothing either, everybody is asked again. */
	vm_divide(&vm, 2, 0, T0 + 2 * patience_ns);
	offers_are(&vm, 0, 1, 1);
}

static void passed_over_application_that_moves_is_asked_again(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	vm_divide(&vm, 2, 0, T0);
	cpu(&vm, 0, 0)->claimed = 1;
	vm_divide(&vm, 2, 0, T0 + 1000 * MS);
	vm_divide(&vm, 2, 0, T0 + 2000 * MS);
	offers_are(&vm, 2, 0, 0);
	cpu(&vm, 1, 0)->claimed = 1;
	vm_divide(&vm, 2, 0, T0 + 2100 * MS);
	offers_are(&vm, 1, 1, 0);
}

static void end_of_an_offer_forgives_all(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	vm_divide(&vm, 1, 0, T0);
	offers_are(&vm, 1, 0, 0);
	vm_divide(&vm, 1, 0, T0 + 2000 * MS);
	offers_are(&vm, 0, 1, 0);
	vm_divide(&vm, 0, 0, T0 + 2100 * MS);
	vm_divide(&vm, 1, 0, T0 + 2200 * MS);
	offers_are(&vm, 1, 0, 0);
}

static void absent_application_gets_nothing_and_gives_last(void **state)
{
	const uint64_t absent_ns = EBB_DIVIDE_ABSENT_MS * MS;
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	vm.apps[0].silent_since_ns = T0;
	cpu(&vm, 0, 0)->claimed = 5;
	cpu(&vm, 1, 0)->claimed = 2;
	assert_int_equal(vm_divide(&vm, 2, 0, T0 + 1), T0 + absent_ns);
	offers_are(&vm, 0, 2, 0);
	vm_divide(&vm, 0, 1, T0 + absent_ns - 1);
	demands_are(&vm, 1, 0, 0);
	vm_divide(&vm, 0, 1, T0 + absent_ns);
	demands_are(&vm, 0, 1, 0);
	vm_divide(&vm, 0, 3, T0 + absent_ns);
	demands_are(&vm, 1, 2, 0);

	/* It is back. */
	vm.apps[0].silent_since_ns = 0;
	vm_divide(&vm, 0, 1, T0 + absent_ns + 1);
	demands_are(&vm, 1, 0, 0);
}

static void nobody_gets_anything_when_all_are_absent(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 1);
	vm.apps[0].silent_since_ns = T0;
	vm_divide(&vm, 4, 0, T0 + EBB_DIVIDE_ABSENT_MS * MS);
	offers_are(&vm, 0, 0, 0);
}

static void lone_application_is_offered_for_ever(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 1);
	for (uint64_t t = T0; t < T0 + 10000 * MS; t += 700 * MS) {
		assert_true(vm_divide(&vm, 3, 0, t) == UINT64_MAX);
		offers_are(&vm, 3, 0, 0);
	}
}

static void no_application_at_all(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 0);
	assert_true(vm_divide(&vm, 5, 0, T0) == UINT64_MAX);
	assert_true(vm_divide(&vm, 0, 5, T0) == UINT64_MAX);
}

/* ---- several nodes ---- */

static void two_nodes(struct vm *vm, uint32_t offer_0, uint32_t offer_1, uint32_t demand_0,
		      uint32_t demand_1, uint64_t now_ns)
{
	vm->view.num_nodes = 2;
	vm->view.nodes[1].node = 1;
	vm->view.nodes[1].hotplugged = 1000;
	vm->view.nodes[1].offer = offer_1;
	vm->view.nodes[1].demand = demand_1;
	vm_divide(vm, offer_0, demand_0, now_ns);
}

static void offers_are_level_in_the_whole_vm(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	/* The odd one of a node does not go to the first each time. */
	two_nodes(&vm, 1, 1, 0, 0, T0);
	offers_are(&vm, 1, 0, 0);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 0);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 1);

	/* Who has much elsewhere gets less here. */
	vm_init(&vm, 2);
	cpu(&vm, 0, 1)->claimed = 3;
	two_nodes(&vm, 5, 0, 0, 0, T0);
	offers_are(&vm, 1, 4, 0);
}

static void demands_level_the_whole_vm(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	cpu(&vm, 0, 0)->claimed = 2;
	cpu(&vm, 0, 1)->claimed = 4;
	cpu(&vm, 1, 0)->claimed = 3;
	/* The first has less here, but more altogether. */
	two_nodes(&vm, 0, 0, 2, 0, T0);
	demands_are(&vm, 2, 0, 0);
	two_nodes(&vm, 0, 0, 3, 0, T0);
	demands_are(&vm, 2, 1, 0);
	two_nodes(&vm, 0, 0, 1, 1, T0);
	demands_are(&vm, 1, 0, 0);
	assert_int_equal(cpu(&vm, 0, 1)->demanded, 1);
}

/* Two applications and seven CPUs on two nodes; one of the two is slow. */
static void slow_application_keeps_its_part(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	two_nodes(&vm, 3, 4, 0, 0, T0);
	offers_are(&vm, 2, 1, 0);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 2);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 2);
	/* The second takes 1.9 seconds for each move, and works node by node. */
	cpu(&vm, 0, 0)->claimed = 2;
	two_nodes(&vm, 1, 4, 0, 0, T0 + 100 * MS);
	cpu(&vm, 0, 1)->claimed = 2;
	two_nodes(&vm, 1, 2, 0, 0, T0 + 200 * MS);
	cpu(&vm, 1, 0)->claimed = 1;
	two_nodes(&vm, 0, 2, 0, 0, T0 + 1900 * MS);
	two_nodes(&vm, 0, 2, 0, 0, T0 + 3700 * MS);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 0);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 2);
	/* It says that it waits for the host. */
	vm.apps[1].is_adding = true;
	two_nodes(&vm, 0, 2, 0, 0, T0 + 3800 * MS);
	vm.apps[1].silent_since_ns = T0 + 3800 * MS;
	two_nodes(&vm, 0, 2, 0, 0, T0 + 9000 * MS);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 0);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 2);
	/* Not for ever. */
	two_nodes(&vm, 0, 2, 0, 0, T0 + EBB_DIVIDE_NODE_PATIENCE_MS * MS);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 2);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 0);
}

static void application_that_ignores_a_node_is_passed_over_there(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	/* The first moves all the time, but never there. */
	for (int second = 0; second < EBB_DIVIDE_NODE_PATIENCE_MS / 1000; second++) {
		cpu(&vm, 0, 0)->claimed = 1 + second % 2;
		cpu(&vm, 1, 1)->claimed = 1 + second % 2;
		two_nodes(&vm, 0, 2, 0, 0, T0 + 1000 * MS * second);
		assert_int_equal(cpu(&vm, 0, 1)->offered, 1);
		assert_int_equal(cpu(&vm, 1, 1)->offered, 1);
	}
	two_nodes(&vm, 0, 2, 0, 0, T0 + EBB_DIVIDE_NODE_PATIENCE_MS * MS);
	assert_int_equal(cpu(&vm, 0, 1)->offered, 0);
	assert_int_equal(cpu(&vm, 1, 1)->offered, 2);
}

/* ---- memory ---- */

static void mem_set(struct vm *vm, uint64_t offer_bytes, uint64_t demand_bytes)
{
	vm->view.nodes[0].mem_block_bytes = BLOCK;
	vm->view.nodes[0].mem_leased_bytes = FULL_BYTES;
	vm->view.nodes[0].mem_offer_bytes = offer_bytes;
	vm->view.nodes[0].mem_demand_bytes = demand_bytes;
}

static void memory_is_divided_in_blocks(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	mem_set(&vm, 512 * BLOCK, 0);
	mem(&vm, 0, 0)->claimed = 100 * BLOCK;
	vm_divide(&vm, 3, 0, T0);
	assert_true(mem(&vm, 0, 0)->offered == 104 * BLOCK);
	assert_true(mem(&vm, 1, 0)->offered == 204 * BLOCK);
	assert_true(mem(&vm, 2, 0)->offered == 204 * BLOCK);
	offers_are(&vm, 1, 1, 1);

	mem_set(&vm, 0, 151 * BLOCK);
	mem(&vm, 1, 0)->claimed = 200 * BLOCK;
	vm_divide(&vm, 3, 0, T0);
	assert_true(mem(&vm, 0, 0)->demanded == 25 * BLOCK);
	assert_true(mem(&vm, 1, 0)->demanded == 126 * BLOCK);
	assert_true(mem(&vm, 2, 0)->demanded == 0);
	assert_true(mem(&vm, 2, 0)->offered == 0);
}

static void memory_and_cpus_have_patience_of_their_own(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	mem_set(&vm, 2 * BLOCK, 0);
	vm_divide(&vm, 2, 0, T0);
	cpu(&vm, 0, 0)->claimed = 1;
	vm_divide(&vm, 1, 0, T0 + 1000 * MS);
	mem(&vm, 1, 0)->claimed = BLOCK;
	mem_set(&vm, BLOCK, 0);
	vm_divide(&vm, 1, 0, T0 + 1500 * MS);
	vm_divide(&vm, 1, 0, T0 + EBB_DIVIDE_PATIENCE_MS * MS);
	offers_are(&vm, 1, 0, 0);
	assert_true(mem(&vm, 0, 0)->offered == 0);
	assert_true(mem(&vm, 1, 0)->offered == BLOCK);
}

static void claims_above_what_is_leased_are_cut(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	mem_set(&vm, 0, 3 * BLOCK);
	vm.view.nodes[0].mem_leased_bytes = 4 * BLOCK;
	mem(&vm, 0, 0)->claimed = 1ull << 52;
	mem(&vm, 1, 0)->claimed = BLOCK;
	vm_divide(&vm, 0, 0, T0);
	assert_true(mem(&vm, 0, 0)->owned == 4 * BLOCK);
	assert_true(mem(&vm, 0, 0)->demanded == 3 * BLOCK);
	/* Blocks of the pool may be larger than those that the claim was made in. */
	vm.view.nodes[0].mem_block_bytes = 2 * BLOCK;
	mem(&vm, 0, 0)->claimed = 3 * BLOCK;
	vm_divide(&vm, 0, 0, T0);
	assert_true(mem(&vm, 0, 0)->owned == 2 * BLOCK);
}

static void terabytes_take_no_time(void **state)
{
	struct ebb_divide_app *order[EBB_DIVIDE_MAX_APPS];
	static struct ebb_divide_app apps[EBB_DIVIDE_MAX_APPS];
	struct ebb_view view = { .num_nodes = EBB_MAX_NODES };

	(void)state;
	for (size_t a = 0; a < EBB_DIVIDE_MAX_APPS; a++)
		order[a] = &apps[a];
	for (uint32_t node = 0; node < EBB_MAX_NODES; node++) {
		view.nodes[node].node = node;
		view.nodes[node].mem_block_bytes = BLOCK;
		view.nodes[node].mem_leased_bytes = 1ull << 52;
		view.nodes[node].mem_offer_bytes = 1ull << 52;
		view.nodes[node].mem_demand_bytes = 1ull << 52;
		for (size_t a = 0; a < EBB_DIVIDE_MAX_APPS; a++)
			apps[a].nodes[EBB_DIVIDE_MEM][node].claimed = (1ull << 52) - a * BLOCK;
	}
	/* A loop over blocks would take hours, and the test its timeout. */
	ebb_divide(&view, order, EBB_DIVIDE_MAX_APPS, T0);
	for (uint32_t node = 0; node < EBB_MAX_NODES; node++) {
		uint64_t offered = 0, demanded = 0;

		for (size_t a = 0; a < EBB_DIVIDE_MAX_APPS; a++) {
			offered += apps[a].nodes[EBB_DIVIDE_MEM][node].offered;
			demanded += apps[a].nodes[EBB_DIVIDE_MEM][node].demanded;
		}
		assert_true(offered == 1ull << 52);
		assert_true(demanded == 1ull << 52);
	}
}

/* ---- random ---- */

static uint64_t step_of(const struct ebb_view_node *v, enum ebb_divide_kind kind)
{
	return kind == EBB_DIVIDE_CPU ? 1 : v->mem_block_bytes;
}

struct total {
	uint64_t with_offers;
	uint64_t left;
	int last_offer;			/* index of the node in the view; -1: none */
	int last_demand;
};

static struct total total_of(struct vm *vm, size_t app, enum ebb_divide_kind kind)
{
	struct total t = { .last_offer = -1, .last_demand = -1 };

	for (uint32_t i = 0; i < vm->view.num_nodes; i++) {
		const struct ebb_divide_node *n = node_of(vm, app, kind, vm->view.nodes[i].node);

		t.with_offers += n->owned + n->offered;
		t.left += n->owned - n->demanded;
		if (n->offered)
			t.last_offer = (int)i;
		if (n->demanded)
			t.last_demand = (int)i;
	}
	return t;
}

static void sums_hold(struct vm *vm, uint32_t i, enum ebb_divide_kind kind, uint64_t now_ns)
{
	const struct ebb_view_node *v = &vm->view.nodes[i];
	uint64_t offer = kind == EBB_DIVIDE_CPU ? v->offer : v->mem_offer_bytes;
	uint64_t demand = kind == EBB_DIVIDE_CPU ? v->demand : v->mem_demand_bytes;
	uint64_t offered = 0, demanded = 0, owned = 0, kept_by_present = 0;
	bool is_anybody_here = false, does_absent_give = false;

	for (size_t a = 0; a < vm->num; a++) {
		const struct ebb_divide_node *n = node_of(vm, a, kind, v->node);
		bool is_absent = ebb_divide_is_absent(&vm->apps[a], now_ns);

		offered += n->offered;
		demanded += n->demanded;
		owned += n->owned;
		is_anybody_here |= !is_absent;
		does_absent_give |= is_absent && n->demanded > 0;
		kept_by_present += is_absent ? 0 : n->owned - n->demanded;
		assert_true(n->demanded <= n->owned);			/* D3 */
		assert_true(!is_absent || n->offered == 0);		/* D4 */
		assert_true(n->offered % step_of(v, kind) == 0);
		assert_true(n->demanded % step_of(v, kind) == 0);
	}
	assert_true(offered == (is_anybody_here ? offer : 0));		/* D1 */
	assert_true(demanded == (demand < owned ? demand : owned));	/* D2 */
	assert_true(!does_absent_give || kept_by_present == 0);		/* D6 */
}

static void levels_hold(struct vm *vm, size_t a, size_t b, enum ebb_divide_kind kind,
			uint64_t now_ns)
{
	struct total ta = total_of(vm, a, kind), tb = total_of(vm, b, kind);
	bool is_absent = ebb_divide_is_absent(&vm->apps[a], now_ns);
	bool is_b_absent = ebb_divide_is_absent(&vm->apps[b], now_ns);
	const struct ebb_divide_node *n;
	const struct ebb_view_node *v;

	if (ta.last_offer >= 0 && !is_b_absent) {			/* D5 */
		v = &vm->view.nodes[ta.last_offer];
		if (!node_of(vm, b, kind, v->node)->is_passed)
			assert_true(ta.with_offers <= tb.with_offers + step_of(v, kind));
	}
	if (ta.last_demand >= 0 && !is_absent && !is_b_absent) {	/* D6 */
		v = &vm->view.nodes[ta.last_demand];
		n = node_of(vm, b, kind, v->node);
		if (n->owned > n->demanded)
			assert_true(ta.left + step_of(v, kind) >= tb.left);
	}
}

static void facts_change(struct vm *vm, uint64_t now_ns)
{
	for (uint32_t i = 0; i < vm->view.num_nodes; i++) {
		struct ebb_view_node *v = &vm->view.nodes[i];
		uint32_t what = roll(4);

		v->offer = what == 0 ? roll(12) : 0;
		v->demand = what == 1 ? roll(12) : 0;
		v->hotplugged = roll(4) ? 1000 : roll(8);
		/* Not always of the same size, and now and then huge. */
		v->mem_block_bytes = roll(8) ? BLOCK : 4 * BLOCK;
		v->mem_offer_bytes = what == 2 ? roll(700) : 0;
		v->mem_offer_bytes <<= roll(9) ? 0 : 20;
		v->mem_offer_bytes *= v->mem_block_bytes;
		v->mem_demand_bytes = what == 3 ? roll(700) : 0;
		v->mem_demand_bytes *= v->mem_block_bytes;
		v->mem_leased_bytes = roll(4) ? FULL_BYTES : roll(500) * BLOCK;
		for (size_t a = 0; a < vm->num; a++) {
			if (roll(2))
				cpu(vm, a, v->node)->claimed = roll(10);
			if (roll(2))
				mem(vm, a, v->node)->claimed = roll(300) * BLOCK;
		}
	}
	for (size_t a = 0; a < vm->num; a++) {
		if (roll(4) == 0)
			vm->apps[a].silent_since_ns = roll(2) ? now_ns : 0;
		vm->apps[a].is_adding = roll(6) == 0;
	}
}

static void invariants_hold_on_random_vms(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < RANDOM_VMS; seed++) {
		uint64_t now_ns = T0;
		struct vm vm;

		chance = seed;
		vm_init(&vm, roll(MAX_APPS + 1));
		vm.view.num_nodes = 1 + roll(3);
		/* Node numbers need not be positions. */
		for (uint32_t i = 0; i < vm.view.num_nodes; i++)
			vm.view.nodes[i].node = 3 * i;
		for (int step = 0; step < RANDOM_STEPS; step++) {
			facts_change(&vm, now_ns);
			assert_true(ebb_divide(&vm.view, vm.order, vm.num, now_ns) > now_ns);
			for (int kind = 0; kind < EBB_DIVIDE_KINDS; kind++) {
				for (uint32_t i = 0; i < vm.view.num_nodes; i++)
					sums_hold(&vm, i, (enum ebb_divide_kind)kind, now_ns);
				for (size_t ab = 0; ab < vm.num * vm.num; ab++)
					levels_hold(&vm, ab / vm.num, ab % vm.num,
						    (enum ebb_divide_kind)kind, now_ns);
			}
			now_ns += roll(3000) * MS;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offer_is_even_and_the_rest_goes_by_registration),
		cmocka_unit_test(offer_levels_what_is_owned),
		cmocka_unit_test(demand_comes_from_the_richest),
		cmocka_unit_test(demand_of_equals_comes_from_the_last),
		cmocka_unit_test(claims_above_what_is_hotplugged_are_cut),
		cmocka_unit_test(untaken_offer_goes_to_the_others),
		cmocka_unit_test(passed_over_application_that_moves_is_asked_again),
		cmocka_unit_test(end_of_an_offer_forgives_all),
		cmocka_unit_test(absent_application_gets_nothing_and_gives_last),
		cmocka_unit_test(nobody_gets_anything_when_all_are_absent),
		cmocka_unit_test(lone_application_is_offered_for_ever),
		cmocka_unit_test(no_application_at_all),
		cmocka_unit_test(offers_are_level_in_the_whole_vm),
		cmocka_unit_test(demands_level_the_whole_vm),
		cmocka_unit_test(slow_application_keeps_its_part),
		cmocka_unit_test(application_that_ignores_a_node_is_passed_over_there),
		cmocka_unit_test(memory_is_divided_in_blocks),
		cmocka_unit_test(memory_and_cpus_have_patience_of_their_own),
		cmocka_unit_test(claims_above_what_is_leased_are_cut),
		cmocka_unit_test(terabytes_take_no_time),
		cmocka_unit_test(invariants_hold_on_random_vms),
	};

	return cmocka_run_group_tests_name("ebb_divide", tests, NULL, NULL);
}
