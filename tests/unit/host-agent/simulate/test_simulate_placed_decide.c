// SPDX-License-Identifier: GPL-2.0-or-later
/* Placers on a small simulated cluster: the rules that each of them keeps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulate/placed-decide.h"
#include "simulate/placed-oracle.h"

static struct sim_place_traces traces;
static struct sim_place_earlier *earlier;

struct watch {
	struct sim_place_decider decider;
	uint64_t resolved, moved, pairs;
};

static bool is_over(const struct sim_place_world *w, uint32_t host, const int32_t *hosts)
{
	double load[PLACE_N_RESOURCES] = { 0 };

	for (uint32_t i = 0; i < w->num_vms; i++)
		for (int r = 0; hosts[i] == (int32_t)host && r < PLACE_N_RESOURCES; r++)
			load[r] += w->vms[i].use[r];
	for (int r = 0; r < PLACE_N_RESOURCES; r++)
		if (load[r] > w->hosts[host].capacity[r] * (1 + 1e-9))
			return true;
	return false;
}

/* Replicas of a database share no host and no domain. */
static void check_replicas(const struct sim_place_world *w, const int32_t *hosts, struct watch *t)
{
	for (uint32_t i = 0; i < w->num_vms; i++)
		for (uint32_t k = i + 1; k < w->num_vms &&
					 w->vms[k].database == w->vms[i].database; k++) {
			const struct place_host *a, *b;

			if (hosts[i] < 0 || hosts[k] < 0)
				continue;
			a = &w->hosts[hosts[i]];
			b = &w->hosts[hosts[k]];
			assert_int_not_equal(a->fault_domain, b->fault_domain);
			assert_int_not_equal(a->upgrade_domain, b->upgrade_domain);
			t->pairs++;
		}
}

static int decide(void *ctx, enum sim_place_task task, const struct sim_place_world *w,
		  int32_t *hosts)
{
	struct watch *t = ctx;
	const int rc = sim_place_decision(&t->decider, task, w, hosts);

	if (rc < 0)
		return rc;
	check_replicas(w, hosts, t);
	for (uint32_t i = 0; i < w->num_vms; i++) {
		if (task == SIM_PLACE_NEW || hosts[i] == w->vms[i].host)
			continue;
		/* Only hosts that are over lose VMs, and none is over because of one that came. */
		assert_true(sim_place_is_over(w, (uint32_t)w->vms[i].host));
		assert_false(is_over(w, (uint32_t)hosts[i], hosts));
		t->moved++;
	}
	t->resolved += task == SIM_PLACE_RESOLVE;
	return 0;
}

static void run(const char *placer, struct watch *t, struct sim_place_result *ret)
{
	const struct sim_place_options o = {
		.num_hosts = 10, .upgrade_domains = 10, .fault_domains = 5, .days = 6,
		.ratio = 2.1, .seed = 1, .traces = &traces, .decide = decide, .ctx = t,
	};

	*t = (struct watch){ .decider = {
		.placer = sim_place_placer_find(placer), .earlier = earlier, .seed = 1,
		.samples = 20, .candidates = 200 } };
	assert_non_null(t->decider.placer);
	assert_int_equal(sim_place_run(&o, ret), 0);
}

static void test_rules(void **state)
{
	(void)state;
	for (uint32_t i = 0; sim_place_placer_at(i); i++) {
		const char *name = sim_place_placer_at(i)->name;
		struct sim_place_result r;
		struct watch t;

		run(name, &t, &r);
		if (!t.pairs || !r.all.admitted || t.moved != r.all.failovers)
			fail_msg("%s: %llu pairs, %llu databases, %llu moves", name,
				 (unsigned long long)t.pairs, (unsigned long long)r.all.admitted,
				 (unsigned long long)t.moved);
		/* Fits that fill one host after the other see hosts run short. */
		if (sim_place_placer_at(i)->search == SIM_PLACE_FIRST_FIT)
			assert_true(t.resolved > 0 && t.moved > 0);
		sim_place_result_finish(&r);
	}
	assert_null(sim_place_placer_find("none"));
}

static void test_same_seed_same_result(void **state)
{
	struct sim_place_result a, b;
	struct watch t;

	(void)state;
	run("prv+mc+aru", &t, &a);
	run("prv+mc+aru", &t, &b);
	assert_memory_equal(&a.all, &b.all, sizeof(a.all));
	sim_place_result_finish(&a);
	sim_place_result_finish(&b);
}

/* Room for new VMs makes a difference, but it turns no database away. */
static void test_reserves_give_way(void **state)
{
	struct sim_place_result with, without;
	struct watch t;

	(void)state;
	run("plb+aru", &t, &with);
	run("plb", &t, &without);
	assert_true(memcmp(&with.all, &without.all, sizeof(with.all)) != 0);
	assert_int_equal(with.all.admitted, without.all.admitted);
	assert_true(with.all.refused <= without.all.refused + 1);
	sim_place_result_finish(&with);
	sim_place_result_finish(&without);
}

/* ---- the oracle ---- */

#define STEPS	(2 * SIM_PLACE_DAY)

/* The one window that can be drawn for a VM is what it will use. */
static int ask_oracle(void *ctx, enum sim_place_task task, const struct sim_place_world *w,
		      int32_t *hosts)
{
	struct place_config config = place_config_default();
	uint32_t *deleted = ctx;

	(void)task;
	config.samples = 1;
	for (uint32_t i = 0; i < w->num_vms; i++)
		hosts[i] = hosts[i] < 0 ? (int32_t)(w->vms[i].id % 4) : hosts[i];
	for (uint32_t i = 0; w->step % 36 == 0 && i < w->num_vms; i++) {
		struct sim_place_vm vm = w->vms[i];
		struct sim_place_world one = *w;
		struct place_vm in = { .age = 1, .peak = { 1, 1, 1 } };
		double most[PLACE_N_RESOURCES] = { 0 };
		struct place_traces *known;
		struct place_problem problem;
		struct place_risk risk;

		one.vms = &vm;
		one.num_vms = 1;
		for (uint32_t k = 0; k < STEPS && sim_place_age(w, &vm) + k < vm.of.life; k++) {
			double use[PLACE_N_RESOURCES];

			sim_place_use(&vm.of, w->options->traces, vm.is_secondary, vm.born,
				      sim_place_age(w, &vm) + k, use);
			for (int r = 0; r < PLACE_N_RESOURCES; r++)
				most[r] = use[r] > most[r] ? use[r] : most[r];
		}
		*deleted += sim_place_age(w, &vm) + STEPS >= vm.of.life;
		assert_int_equal(sim_place_oracle(&one, STEPS, &in, &known), 0);
		for (int over = 0; over < 2; over++) {
			double capacity[PLACE_N_RESOURCES];

			for (int r = 0; r < PLACE_N_RESOURCES; r++)
				capacity[r] = most[r] * (over ? 0.999 : 1.001) + 0.01;
			assert_int_equal(place_risk(&config, known, capacity, &in, 1, &risk,
						    &problem), 0);
			assert_true(risk.probability == (over && most[PLACE_DISK] > 100));
		}
		place_traces_destroy(known);
	}
	return 0;
}

static void test_oracle_knows(void **state)
{
	uint32_t deleted = 0;
	const struct sim_place_options o = {
		.num_hosts = 4, .upgrade_domains = 4, .fault_domains = 4, .days = 3, .ratio = 1,
		.seed = 1, .traces = &traces, .decide = ask_oracle, .ctx = &deleted,
	};
	struct sim_place_result r;

	(void)state;
	assert_int_equal(sim_place_run(&o, &r), 0);
	assert_true(deleted > 0);
	sim_place_result_finish(&r);
}

static int make(void **state)
{
	(void)state;
	if (sim_place_traces_make(1, 200, &traces) < 0)
		return -1;
	return sim_place_earlier_create(&traces, 2, 1, &earlier);
}

static int end(void **state)
{
	(void)state;
	sim_place_earlier_destroy(earlier);
	sim_place_traces_finish(&traces);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_same_seed_same_result),
		cmocka_unit_test(test_reserves_give_way),
		cmocka_unit_test(test_oracle_knows),
	};

	return cmocka_run_group_tests(tests, make, end);
}
