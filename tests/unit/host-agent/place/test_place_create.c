// SPDX-License-Identifier: GPL-2.0-or-later
/* Traces and clusters that are given: what is taken, and what is refused with a reason. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/place/place_rig.h"

/* ---- traces ---- */

static struct place_problem refused_traces(const struct place_grid *grid, uint32_t n_classes,
					   const struct hand *hand)
{
	struct place_problem problem;
	struct place_traces *traces = (void *)&problem;

	assert_int_equal(place_traces_create(grid, n_classes, hand->traces, hand->n, &traces,
					     &problem), -EINVAL);
	assert_ptr_equal(traces, &problem);
	return problem;
}

static void test_bad_values_of_traces(void **state)
{
	const struct {
		float value;
		enum place_fault fault;
	} bad[] = {
		{ NAN, PLACE_FAULT_HOLE },
		{ -1, PLACE_FAULT_NEGATIVE },
		{ INFINITY, PLACE_FAULT_TOO_BIG },
		{ 2e12f, PLACE_FAULT_TOO_BIG },
	};
	struct place_grid grid = place_grid_default();
	struct hand hand = { 0 };
	float *at;

	(void)state;
	hand_add(&hand, 0, PLACE_PRIMARY, RIG_DAY, 0, 1, 1, 1);
	hand_add(&hand, 0, PLACE_PRIMARY, RIG_DAY, 0, 1, 1, 1);
	at = (float *)&hand.traces[1].demand[77 * PLACE_N_RESOURCES + PLACE_MEMORY];
	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct place_problem problem;

		*at = bad[i].value;
		problem = refused_traces(&grid, 1, &hand);
		assert_int_equal(problem.fault, bad[i].fault);
		assert_int_equal(problem.index, 1);
		assert_int_equal(problem.step, 77);
		assert_int_equal(problem.resource, PLACE_MEMORY);
	}
	*at = 0;
	place_traces_destroy(hand_traces(&hand, 1));
}

static void test_bad_traces(void **state)
{
	struct place_grid grid = place_grid_default(), other = grid;
	struct hand hand = { 0 };

	(void)state;
	hand_add(&hand, 0, PLACE_PRIMARY, RIG_DAY, 0, 1, 1, 1);
	hand.traces[0].step_seconds = 300;
	assert_int_equal(refused_traces(&grid, 1, &hand).fault, PLACE_FAULT_INTERVAL);
	hand.traces[0].step_seconds = RIG_STEP;
	hand.traces[0].class = 1;
	assert_int_equal(refused_traces(&grid, 1, &hand).fault, PLACE_FAULT_CLASS);
	hand.traces[0].class = 0;
	hand.traces[0].role = PLACE_N_ROLES;
	assert_int_equal(refused_traces(&grid, 1, &hand).fault, PLACE_FAULT_ROLE);
	hand.traces[0].role = PLACE_PRIMARY;
	hand.traces[0].steps = RIG_DAY - 1;
	assert_int_equal(refused_traces(&grid, 1, &hand).fault, PLACE_FAULT_SHORT);
	hand.traces[0].steps = 0;
	hand.traces[0].was_deleted = true;
	assert_int_equal(refused_traces(&grid, 1, &hand).fault, PLACE_FAULT_SHORT);
	hand.traces[0].steps = RIG_DAY;
	assert_int_equal(refused_traces(&grid, PLACE_CLASSES_MAX + 1, &hand).fault,
			 PLACE_FAULT_COUNT);
	other.slots = 0;
	assert_int_equal(refused_traces(&other, 1, &hand).fault, PLACE_FAULT_SETTING);
	other = grid;
	other.slot_steps = 7;
	assert_int_equal(refused_traces(&other, 1, &hand).fault, PLACE_FAULT_SETTING);
	other.slot_steps = 0;
	assert_int_equal(refused_traces(&other, 1, &hand).fault, PLACE_FAULT_SETTING);
	place_traces_destroy(hand_traces(&hand, 1));
	place_traces_destroy(NULL);
}

/* Ten VMs reach 1 to 10 within a day, and more later: nine of ten do not exceed 9. */
static void test_reserve_is_the_90th_percentile_of_the_first_day(void **state)
{
	struct hand hand = { 0 };
	struct place_traces *traces;
	double reserve[PLACE_N_RESOURCES];

	(void)state;
	for (int i = 10; i >= 1; i--) {
		float *at;

		hand_add(&hand, 0, PLACE_PRIMARY, 2 * RIG_DAY, 0, 0, 5, 500);
		at = (float *)hand.traces[hand.n - 1].demand;
		at[(RIG_DAY - 1) * PLACE_N_RESOURCES + PLACE_CPU] = (float)i;
		at[RIG_DAY * PLACE_N_RESOURCES + PLACE_CPU] = 100;
	}
	hand_add(&hand, 0, PLACE_SECONDARY, RIG_DAY, 0, 3, 2, 1);
	hand_add(&hand, 2, PLACE_PRIMARY, RIG_DAY, 0, 4, 2, 1);
	traces = hand_traces(&hand, 3);
	assert_int_equal(place_reserve(traces, 0, PLACE_PRIMARY, reserve), 0);
	assert_float_equal(reserve[PLACE_CPU], 9, 1e-6);
	assert_float_equal(reserve[PLACE_MEMORY], 5, 1e-6);
	assert_float_equal(reserve[PLACE_DISK], 500, 1e-6);
	assert_int_equal(place_reserve(traces, 0, PLACE_SECONDARY, reserve), 0);
	assert_float_equal(reserve[PLACE_CPU], 3, 1e-6);
	/* Nothing is known of its secondaries. */
	assert_int_equal(place_reserve(traces, 2, PLACE_SECONDARY, reserve), 0);
	assert_float_equal(reserve[PLACE_CPU], 4, 1e-6);
	assert_int_equal(place_reserve(traces, 1, PLACE_PRIMARY, reserve), -ENOENT);
	assert_int_equal(place_reserve(traces, 3, PLACE_PRIMARY, reserve), -ENOENT);
	assert_int_equal(place_reserve(traces, 0, PLACE_N_ROLES, reserve), -EINVAL);
	place_traces_destroy(traces);
}

/* ---- clusters ---- */

static struct place_problem refused(const struct rig *rig)
{
	struct place_problem problem;
	struct place *p = (void *)&problem;

	assert_int_equal(place_create(&rig->config, rig->traces, rig->hosts, rig->n_hosts,
				      rig->vms, rig->n_vms, &p, &problem), -EINVAL);
	assert_ptr_equal(p, &problem);
	return problem;
}

static void test_bad_hosts_and_vms(void **state)
{
	struct rig *rig = rig_create(3, 10, 5, 1);
	struct place_problem problem;
	struct place_vm *vm = &rig->vms[4];
	double *const amounts[] = { &vm->use[PLACE_CPU], &vm->peak[PLACE_CPU],
				    &vm->reserve[PLACE_CPU], &vm->floor[PLACE_CPU] };

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		double kept = *amounts[i];

		*amounts[i] = -1;
		problem = refused(rig);
		assert_int_equal(problem.fault, PLACE_FAULT_NEGATIVE);
		assert_int_equal(problem.index, 4);
		*amounts[i] = NAN;
		assert_int_equal(refused(rig).fault, PLACE_FAULT_HOLE);
		*amounts[i] = kept;
	}
	rig->vms[5].host = 3;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_HOST);
	rig->vms[5].host = -2;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_HOST);
	rig->vms[5].host = 0;
	rig->vms[5].class = RIG_CLASSES;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_CLASS);
	rig->vms[5].class = 0;
	rig->vms[5].role = PLACE_N_ROLES;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_ROLE);
	rig->vms[5].role = PLACE_PRIMARY;
	rig->hosts[2].capacity[PLACE_DISK] = 0;
	problem = refused(rig);
	assert_int_equal(problem.fault, PLACE_FAULT_NEGATIVE);
	assert_int_equal(problem.index, 2);
	assert_int_equal(problem.resource, PLACE_DISK);
	rig->hosts[2].capacity[PLACE_DISK] = 1e6;
	rig->hosts[2].state = PLACE_N_HOST_STATES;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->hosts[2].state = PLACE_HOST_OPEN;
	rig->n_hosts = 0;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_HOST);
	rig->n_hosts = 3;
	place_destroy(rig_place(rig));
	place_destroy(NULL);
	rig_destroy(rig);
}

static void test_bad_settings(void **state)
{
	struct rig *rig = rig_create(3, 10, 5, 1);
	struct place_config good = rig->config;
	struct place_traces *traces = rig->traces;

	(void)state;
	rig->config.samples = 0;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config.samples = PLACE_SAMPLES_MAX + 1;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config = good;
	rig->config.future = NAN;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config = good;
	rig->config.weight[0] = -1;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	memset(rig->config.weight, 0, sizeof(good.weight));
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config = good;
	rig->config.cost.weight[2] = 0;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config = good;
	rig->config.cost.limit[0] = rig->config.cost.limit[1] + 1;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config = good;
	rig->traces = NULL;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_SETTING);
	rig->config.look_ahead = false;
	place_destroy(rig_place(rig));
	rig->traces = traces;
	rig_destroy(rig);
}

static void test_sets_that_cannot_be(void **state)
{
	struct rig *rig = rig_create(3, 10, 5, 1);

	(void)state;
	rig->vms[1].affinity = rig->vms[2].affinity = 7;
	rig->vms[1].anti_affinity = rig->vms[2].anti_affinity = 8;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_AFFINITY);
	rig->vms[2].anti_affinity = 9;
	rig->vms[1].may_move = rig->vms[2].may_move = false;
	assert_int_equal(refused(rig).fault, PLACE_FAULT_PINNED);
	rig->vms[2].may_move = true;
	place_destroy(rig_place(rig));
	rig_destroy(rig);
}

/* VMs that must be together and are not: the pinned one draws the other. */
static void test_affinity_sets_are_brought_together(void **state)
{
	struct rig *rig = rig_create(3, 10, 5, 1);
	struct place_score score;
	struct place *p;

	(void)state;
	rig->vms[1].affinity = rig->vms[2].affinity = 7;
	rig->vms[2].may_move = false;
	p = rig_place(rig);
	assert_int_equal(place_host_of(p, 1), 2);
	assert_int_equal(place_host_of(p, 2), 2);
	assert_int_equal(place_origin_of(p, 1), 1);
	place_score(p, &score);
	assert_int_equal(score.n_moves, 1);
	assert_true(score.moves > 0);
	assert_int_equal(place_put(p, 1, 0), 0);
	assert_int_equal(place_host_of(p, 2), 0);
	assert_int_equal(place_put(p, 1, 3), -EINVAL);
	assert_int_equal(place_put(p, 10, 0), -EINVAL);
	assert_int_equal(place_host_of(p, 10), -1);
	place_destroy(p);
	rig_destroy(rig);
}

/* VMs that are added make what a cluster with all of them is. */
static void test_adding_is_as_having(void **state)
{
	struct rig *rig = rig_create(5, 110, 18, 3);
	struct place_problem problem;
	struct place_refusal refusal;
	struct place_score a, b;
	struct place *all, *p;

	(void)state;
	for (uint32_t vm = 0; vm < 110; vm++) {
		rig->vms[vm].affinity = vm % 10 == 1 ? vm / 40 + 1 : 0;
		rig->vms[vm].anti_affinity = vm % 10 == 2 ? vm + 1 : 0;
	}
	/* A set that is on one host, as the first of it is there. */
	for (uint32_t vm = 1; vm < 110; vm += 10)
		rig->vms[vm].host = 1;
	all = rig_place(rig);
	rig->n_vms = 60;
	p = rig_place(rig);
	for (uint32_t vm = 60; vm < 110; vm++) {
		uint32_t index;

		/* Those of a set may come without a host. */
		if (rig->vms[vm].affinity) {
			double load[PLACE_N_RESOURCES];

			place_host_load(p, 1, load);
			if (load[PLACE_MEMORY] + rig->vms[vm].use[PLACE_MEMORY] >
			    rig->hosts[1].capacity[PLACE_MEMORY])
				fail_msg("the host of the set is full");
		}
		assert_int_equal(place_add(p, &rig->vms[vm], &index, &problem, &refusal), 0);
		assert_int_equal(index, vm);
	}
	assert_int_equal(place_n_vms(p), 110);
	place_score(all, &a);
	place_score(p, &b);
	assert_float_equal(a.value, b.value, 1e-6 * a.value);
	for (uint32_t h = 0; h < 5; h++)
		assert_true(place_host_risk(p, h) == place_host_risk(all, h));
	for (uint32_t vm = 0; vm < 110; vm++)
		assert_int_equal(place_host_of(p, vm), place_host_of(all, vm));
	place_destroy(all);
	place_destroy(p);
	rig_destroy(rig);
}

static void test_adding_is_refused(void **state)
{
	struct rig *rig = rig_create(3, 6, 2.4, 1);
	struct place_vm vm = rig->vms[0];
	struct place_problem problem;
	struct place_refusal refusal;
	struct place_score before, after;
	struct place *p;
	uint32_t index = 77;

	(void)state;
	rig->vms[4].affinity = 5;
	rig->vms[1].anti_affinity = 6;
	p = rig_place(rig);
	place_score(p, &before);
	vm.use[PLACE_CPU] = -1;
	assert_int_equal(place_add(p, &vm, &index, &problem, &refusal), -EINVAL);
	assert_int_equal(problem.fault, PLACE_FAULT_NEGATIVE);
	/* It must be where VM 4 is, and there is no room. */
	vm = rig->vms[0];
	vm.id = 100;
	vm.host = -1;
	vm.affinity = 5;
	vm.use[PLACE_DISK] = 1e9;
	assert_int_equal(place_add(p, &vm, &index, &problem, &refusal), -EBUSY);
	assert_int_equal(refusal.constraint, PLACE_CAPACITY);
	assert_int_equal(refusal.resource, PLACE_DISK);
	/* Nor may it be beside VM 1, which is there. */
	vm.use[PLACE_DISK] = 1;
	vm.use[PLACE_CPU] = 1;
	vm.use[PLACE_MEMORY] = 1;
	vm.anti_affinity = 6;
	assert_int_equal(place_add(p, &vm, &index, &problem, &refusal), -EBUSY);
	assert_int_equal(refusal.constraint, PLACE_ANTI_AFFINITY);
	place_score(p, &after);
	assert_int_equal(place_n_vms(p), 6);
	assert_float_equal(before.value, after.value, 1e-9 * before.value);
	assert_int_equal(index, 77);
	vm.anti_affinity = 0;
	assert_int_equal(place_add(p, &vm, &index, &problem, &refusal), 0);
	assert_int_equal(index, 6);
	assert_int_equal(place_host_of(p, 6), 1);
	place_destroy(p);
	rig_destroy(rig);
}

static void test_all_has_a_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < PLACE_N_FAULTS; i++)
		assert_true(strlen(place_fault_name(i)) > 3);
	for (uint32_t i = 0; i < PLACE_N_CONSTRAINTS; i++)
		assert_true(strlen(place_constraint_name(i)) > 3);
	for (uint32_t i = 0; i < PLACE_N_RESOURCES; i++)
		assert_non_null(place_resources[i].name);
	assert_string_equal(place_fault_name(PLACE_N_FAULTS), "unknown fault");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_values_of_traces),
		cmocka_unit_test(test_bad_traces),
		cmocka_unit_test(test_reserve_is_the_90th_percentile_of_the_first_day),
		cmocka_unit_test(test_bad_hosts_and_vms),
		cmocka_unit_test(test_bad_settings),
		cmocka_unit_test(test_sets_that_cannot_be),
		cmocka_unit_test(test_affinity_sets_are_brought_together),
		cmocka_unit_test(test_adding_is_as_having),
		cmocka_unit_test(test_adding_is_refused),
		cmocka_unit_test(test_all_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
