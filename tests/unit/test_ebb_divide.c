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

#define MAX_APPS	8
#define RANDOM_VMS	10000
#define RANDOM_STEPS	6
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

static void offers_are(const struct vm *vm, uint32_t a, uint32_t b, uint32_t c)
{
	assert_int_equal(vm->apps[0].nodes[0].offered, a);
	assert_int_equal(vm->apps[1].nodes[0].offered, b);
	assert_int_equal(vm->apps[2].nodes[0].offered, c);
}

static void demands_are(const struct vm *vm, uint32_t a, uint32_t b, uint32_t c)
{
	assert_int_equal(vm->apps[0].nodes[0].demanded, a);
	assert_int_equal(vm->apps[1].nodes[0].demanded, b);
	assert_int_equal(vm->apps[2].nodes[0].demanded, c);
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
	vm.apps[0].nodes[0].claimed = 4;
	vm.apps[1].nodes[0].claimed = 1;
	vm_divide(&vm, 4, 0, T0);
	offers_are(&vm, 0, 2, 2);
}

static void demand_comes_from_the_richest(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 3);
	vm.apps[0].nodes[0].claimed = 1;
	vm.apps[1].nodes[0].claimed = 4;
	vm.apps[2].nodes[0].claimed = 3;
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
		vm.apps[i].nodes[0].claimed = 2;
	vm_divide(&vm, 0, 1, T0);
	demands_are(&vm, 0, 0, 1);
}

static void claims_above_what_is_hotplugged_are_cut(void **state)
{
	struct vm vm;

	(void)state;
	vm_init(&vm, 2);
	vm.view.nodes[0].hotplugged = 3;
	vm.apps[0].nodes[0].claimed = UINT32_MAX;
	vm.apps[1].nodes[0].claimed = 1;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(vm.apps[0].nodes[0].owned, 3);
	demands_are(&vm, 1, 0, 0);
	/* Only as long as that is so. */
	vm.apps[0].nodes[0].claimed = 5;
	vm.view.nodes[0].hotplugged = 4;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(vm.apps[0].nodes[0].owned, 4);
	vm.view.nodes[0].hotplugged = 6;
	vm_divide(&vm, 0, 1, T0);
	assert_int_equal(vm.apps[0].nodes[0].owned, 5);
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
	vm.apps[0].nodes[0].claimed = 1;
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
	vm.apps[0].nodes[0].claimed = 1;
	vm_divide(&vm, 2, 0, T0 + 1000 * MS);
	vm_divide(&vm, 2, 0, T0 + 2000 * MS);
	offers_are(&vm, 2, 0, 0);
	vm.apps[1].nodes[0].claimed = 1;
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
	vm.apps[0].nodes[0].claimed = 5;
	vm.apps[1].nodes[0].claimed = 2;
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

/* ---- random ---- */

static uint64_t random_state;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(random_state >> 33) % n;
}

static void invariants_hold(const struct vm *vm, uint32_t i, uint64_t now_ns)
{
	const struct ebb_view_node *v = &vm->view.nodes[i];
	uint64_t offered = 0, demanded = 0, owned = 0;
	bool is_anybody_here = false;

	for (size_t a = 0; a < vm->num; a++) {
		const struct ebb_divide_node *n = &vm->apps[a].nodes[v->node];
		bool is_absent = ebb_divide_is_absent(&vm->apps[a], now_ns);

		offered += n->offered;
		demanded += n->demanded;
		owned += n->owned;
		is_anybody_here |= !is_absent;
		assert_true(n->demanded <= n->owned);			/* D3 */
		assert_true(!is_absent || n->offered == 0);		/* D4 */
		for (size_t b = 0; b < vm->num; b++) {
			const struct ebb_divide_node *m = &vm->apps[b].nodes[v->node];
			bool is_b_absent = ebb_divide_is_absent(&vm->apps[b], now_ns);

			if (n->offered > 0 && !is_b_absent && !m->is_passed)	/* D5 */
				assert_true(n->owned + n->offered <= m->owned + m->offered + 1);
			if (n->demanded > 0 && is_absent == is_b_absent)	/* D6 */
				assert_true(n->owned - n->demanded + 1 >= m->owned - m->demanded);
			if (n->demanded > 0 && is_absent && !is_b_absent)
				assert_true(m->owned == m->demanded);
		}
	}
	assert_int_equal(offered, is_anybody_here ? v->offer : 0);	/* D1 */
	assert_int_equal(demanded, v->demand < owned ? v->demand : owned); /* D2 */
}

static void facts_change(struct vm *vm, uint64_t now_ns)
{
	for (uint32_t i = 0; i < vm->view.num_nodes; i++) {
		struct ebb_view_node *v = &vm->view.nodes[i];
		uint32_t what = random_below(3);

		v->offer = what == 0 ? random_below(12) : 0;
		v->demand = what == 1 ? random_below(12) : 0;
		v->hotplugged = random_below(4) ? 1000 : random_below(8);
		for (size_t a = 0; a < vm->num; a++)
			if (random_below(2))
				vm->apps[a].nodes[v->node].claimed = random_below(10);
	}
	for (size_t a = 0; a < vm->num; a++)
		if (random_below(4) == 0)
			vm->apps[a].silent_since_ns = random_below(2) ? now_ns : 0;
}

static void invariants_hold_on_random_vms(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < RANDOM_VMS; seed++) {
		uint64_t now_ns = T0;
		struct vm vm;

		random_state = seed;
		vm_init(&vm, random_below(MAX_APPS + 1));
		vm.view.num_nodes = 1 + random_below(3);
		/* Node numbers need not be positions. */
		for (uint32_t i = 0; i < vm.view.num_nodes; i++)
			vm.view.nodes[i].node = 3 * i;
		for (int step = 0; step < RANDOM_STEPS; step++) {
			facts_change(&vm, now_ns);
			assert_true(ebb_divide(&vm.view, vm.order, vm.num, now_ns) > now_ns);
			for (uint32_t i = 0; i < vm.view.num_nodes; i++)
				invariants_hold(&vm, i, now_ns);
			now_ns += random_below(3000) * MS;
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
		cmocka_unit_test(invariants_hold_on_random_vms),
	};

	return cmocka_run_group_tests_name("ebb_divide", tests, NULL, NULL);
}
