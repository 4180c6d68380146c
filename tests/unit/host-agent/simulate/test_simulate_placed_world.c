// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated cluster, with decisions of this test. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulate/placed.h"

static struct sim_place_traces traces;

struct told {
	uint32_t least_free;		/* new VMs: to the host with most memory; else host 0 */
	bool is_strict;			/* what does not fit host 0 is refused */
	bool is_moving;			/* RESOLVE: all VMs of host 0 to host 1 */
	uint32_t breaks;		/* a rule of decisions; 0: none */
	uint64_t calls[3];
	uint64_t databases, sum;	/* over all databases seen, a sum that tells them apart */
	uint64_t highest;
	uint32_t most_vms;
	double most_reserved;
	uint64_t over;			/* resources of hosts exceeded at RESOLVE */
	uint64_t moved, moved_new;
	double disruption_s;
};

static uint32_t emptiest(const struct sim_place_world *w, const double *extra)
{
	uint32_t best = 0;

	for (uint32_t h = 1; h < w->options->num_hosts; h++)
		if (w->load[h][PLACE_MEMORY] + extra[h] <
		    w->load[best][PLACE_MEMORY] + extra[best])
			best = h;
	return best;
}

/* What must be true whenever a decision is asked for. */
static void check(const struct sim_place_world *w, struct told *t)
{
	double load[8][PLACE_N_RESOURCES] = { { 0 } };
	double reserved = 0;

	for (uint32_t i = 0; i < w->num_vms; i++) {
		const struct sim_place_vm *vm = &w->vms[i];

		assert_true(sim_place_age(w, vm) < vm->of.life);
		assert_true(i == 0 || vm->id > w->vms[i - 1].id);
		reserved += sim_place_classes[vm->of.class].vcpus;
		for (int r = 0; vm->host >= 0 && r < PLACE_N_RESOURCES; r++)
			load[vm->host][r] += vm->use[r];
	}
	for (uint32_t h = 0; h < w->options->num_hosts; h++)
		for (int r = 0; r < PLACE_N_RESOURCES; r++)
			assert_float_equal(load[h][r], w->load[h][r], 1e-3);
	t->most_reserved = fmax(t->most_reserved, reserved);
	t->most_vms = w->num_vms > t->most_vms ? w->num_vms : t->most_vms;
}

static void see_new(const struct sim_place_world *w, struct told *t, int32_t *hosts)
{
	double extra[8] = { 0 };

	for (uint32_t i = 0; i < w->num_vms; i++) {
		const struct sim_place_vm *vm = &w->vms[i];

		if (vm->host >= 0)
			continue;
		assert_int_equal(vm->born, w->step);
		if (vm->database > t->highest) {
			t->highest = vm->database;
			t->databases++;
			t->sum += vm->database * (vm->of.life + vm->of.class);
		}
		hosts[i] = t->least_free ? (int32_t)emptiest(w, extra) : 0;
		if (t->is_strict &&
		    w->load[0][PLACE_MEMORY] > w->hosts[0].capacity[PLACE_MEMORY] / 2)
			hosts[i] = -1;
		if (hosts[i] >= 0)
			extra[hosts[i]] += vm->use[PLACE_MEMORY];
	}
}

static int decide(void *ctx, enum sim_place_task task, const struct sim_place_world *w,
		  int32_t *hosts)
{
	struct told *t = ctx;

	t->calls[task]++;
	check(w, t);
	if (task == SIM_PLACE_NEW)
		see_new(w, t, hosts);
	if (task == SIM_PLACE_RESOLVE)
		for (uint32_t h = 0; h < w->options->num_hosts; h++)
			for (int r = 0; r < PLACE_N_RESOURCES; r++)
				t->over += w->load[h][r] > w->hosts[h].capacity[r];
	for (uint32_t i = 0; task == SIM_PLACE_RESOLVE && t->is_moving && i < w->num_vms; i++) {
		const struct sim_place_vm *vm = &w->vms[i];

		if (vm->host != 0)
			continue;
		hosts[i] = 1;
		t->moved++;
		t->moved_new += sim_place_age(w, vm) < 144;
		t->disruption_s += vm->is_active ? 30 + vm->use[PLACE_DISK] / 250 +
						   vm->use[PLACE_MEMORY] / 1000 : 0;
	}
	switch (t->breaks) {
	case 1:
		hosts[0] = (int32_t)w->options->num_hosts;
		break;
	case 2:
		hosts[0] = -2;
		break;
	case 3:
		hosts[0] = task == SIM_PLACE_NEW && w->vms[0].host >= 0 ? w->vms[0].host ^ 1 : 0;
		break;
	case 4:
		return -ENOMEM;
	}
	return 0;
}

static struct sim_place_options options(struct told *t)
{
	return (struct sim_place_options){
		.num_hosts = 4, .upgrade_domains = 2, .fault_domains = 2, .days = 7, .ratio = 1.5,
		.seed = 1, .traces = &traces, .decide = decide, .ctx = t,
	};
}

static void run(const struct sim_place_options *o, struct sim_place_result *ret)
{
	assert_int_equal(sim_place_run(o, ret), 0);
}

static void test_fills_and_stays_full(void **state)
{
	struct told t = { .least_free = 1 };
	struct sim_place_options o = options(&t);
	struct sim_place_result r;

	(void)state;
	run(&o, &r);
	assert_true(t.most_reserved <= 4 * SIM_PLACE_HOST_VCPUS * 1.5);
	/* A database that does not fit waits: the largest has 24 vCPUs. */
	assert_in_range(1000 * r.days[6].reserved, 1500 - 24000 / 256 - 20, 1500);
	assert_true(r.days[0].reserved < 0.6 * r.days[6].reserved);
	assert_true(r.all.deleted > 0 && r.all.refused == 0);
	assert_int_equal(r.all.admitted, t.databases);
	assert_true(r.all.used[PLACE_MEMORY] < r.all.reserved && r.all.used[PLACE_MEMORY] > 0.2);
	sim_place_result_finish(&r);
}

/* Sums of what days show are what the whole shows. */
static void test_counts(void **state)
{
	struct told t = { .is_moving = true };
	struct sim_place_options o = options(&t);
	struct sim_place_result r;
	uint64_t violations = 0, failovers = 0;

	(void)state;
	run(&o, &r);
	for (uint32_t d = 0; d < r.num_days; d++) {
		violations += r.days[d].violations;
		failovers += r.days[d].failovers;
	}
	assert_true(t.over > 0 && t.moved > 0 && t.moved_new > 0 && t.moved_new < t.moved);
	assert_int_equal(r.all.violations, violations);
	assert_int_equal(violations, t.over);
	assert_int_equal(r.all.failovers, failovers);
	assert_int_equal(failovers, t.moved);
	assert_int_equal(r.all.failovers_new, t.moved_new);
	assert_float_equal(r.all.disruption_s, t.disruption_s, 1);
	assert_true(r.all.disruption_s < r.all.failover_s);
	assert_true(t.calls[SIM_PLACE_RESOLVE] > 0 && t.calls[SIM_PLACE_BALANCE] == 0);
	sim_place_result_finish(&r);
}

/* A violation that nobody ends counts in each step. */
static void test_violations_last(void **state)
{
	struct told t = { 0 };
	struct sim_place_options o = options(&t);
	struct sim_place_result r;

	(void)state;
	run(&o, &r);
	assert_int_equal(r.all.violations, t.over);
	assert_int_equal(r.all.failovers, 0);
	assert_true(r.days[6].violations >= 144);
	sim_place_result_finish(&r);
}

/* What is refused is counted, and placed where it is least bad: nobody gains by refusing. */
static void test_refused(void **state)
{
	struct told strict = { .is_strict = true }, all = { .least_free = 1 }, worst = { 0 };
	struct sim_place_options o = options(&strict);
	struct sim_place_result r, of_all, of_worst;

	(void)state;
	run(&o, &r);
	o.ctx = &all;
	run(&o, &of_all);
	o.ctx = &worst;
	run(&o, &of_worst);
	assert_true(r.all.refused > 0 && r.all.refused < r.all.admitted);
	assert_int_equal(of_all.all.refused, 0);
	assert_int_equal(r.all.admitted, strict.databases);
	assert_int_equal(r.all.admitted, of_all.all.admitted);
	assert_int_equal(strict.sum, all.sum);
	for (int k = 0; k < PLACE_N_RESOURCES; k++)
		assert_float_equal(r.all.used[k], of_all.all.used[k], 1e-9);
	print_message("violations: %llu, all on one host %llu\n",
		      (unsigned long long)r.all.violations,
		      (unsigned long long)of_worst.all.violations);
	assert_true(r.all.violations < of_worst.all.violations / 2);
	sim_place_result_finish(&r);
	sim_place_result_finish(&of_worst);
	sim_place_result_finish(&of_all);
}

/* A replica that is refused still keeps away from the others. */
static int refuse(void *ctx, enum sim_place_task task, const struct sim_place_world *w,
		  int32_t *hosts)
{
	uint32_t *pairs = ctx;

	(void)task;
	(void)hosts;
	for (uint32_t i = 1; i < w->num_vms; i++) {
		const struct sim_place_vm *a = &w->vms[i - 1], *b = &w->vms[i];

		if (a->database != b->database || a->host < 0)
			continue;
		assert_int_not_equal(w->hosts[a->host].fault_domain,
				     w->hosts[b->host].fault_domain);
		assert_int_not_equal(w->hosts[a->host].upgrade_domain,
				     w->hosts[b->host].upgrade_domain);
		(*pairs)++;
	}
	return 0;
}

static void test_refused_replicas(void **state)
{
	struct told t = { 0 };
	struct sim_place_options o = options(&t);
	struct sim_place_result r;
	uint32_t pairs = 0;

	(void)state;
	o.num_hosts = 8;
	o.upgrade_domains = 4;
	o.fault_domains = 4;
	o.days = 2;
	o.decide = refuse;
	o.ctx = &pairs;
	run(&o, &r);
	assert_int_equal(r.all.refused, r.all.admitted);
	assert_true(pairs > 0);
	sim_place_result_finish(&r);
}

/* Whatever is decided, the same databases come in the same order. */
static void test_same_databases(void **state)
{
	struct told one = { .least_free = 1 }, two = { .is_moving = true }, other = { 0 };
	struct sim_place_options o = options(&one);
	struct sim_place_result a, b;

	(void)state;
	run(&o, &a);
	o.ctx = &two;
	run(&o, &b);
	assert_int_equal(one.databases, two.databases);
	assert_int_equal(one.sum, two.sum);
	sim_place_result_finish(&a);
	/* All of it the same again. */
	o.ctx = &other;
	other.is_moving = true;
	run(&o, &a);
	assert_memory_equal(&a.all, &b.all, sizeof(a.all));
	sim_place_result_finish(&a);
	sim_place_result_finish(&b);
	other = (struct told){ .least_free = 1 };
	o.seed = 2;
	run(&o, &a);
	assert_int_not_equal(one.sum, other.sum);
	sim_place_result_finish(&a);
}

static void test_balance(void **state)
{
	struct told t = { .least_free = 1 };
	struct sim_place_options o = options(&t);
	struct sim_place_result r;

	(void)state;
	o.balance_steps = 72;
	run(&o, &r);
	assert_in_range(t.calls[SIM_PLACE_BALANCE], 13, 14);
	sim_place_result_finish(&r);
}

static void test_broken_rules(void **state)
{
	(void)state;
	for (uint32_t rule = 1; rule <= 4; rule++) {
		struct told t = { .least_free = 1, .breaks = rule };
		struct sim_place_options o = options(&t);
		struct sim_place_result r;

		assert_int_equal(sim_place_run(&o, &r), rule == 4 ? -ENOMEM : -EINVAL);
		assert_null(r.days);
	}
}

static void test_options(void **state)
{
	struct told t = { 0 };
	struct sim_place_options bad[] = {
		options(&t), options(&t), options(&t), options(&t), options(&t), options(&t),
	};
	struct sim_place_result r;

	(void)state;
	bad[0].num_hosts = 0;
	bad[1].fault_domains = 5;
	bad[2].days = 0;
	bad[3].ratio = -1;
	bad[4].traces = NULL;
	bad[5].ratio = NAN;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(sim_place_run(&bad[i], &r), -EINVAL);
}

static int make_traces(void **state)
{
	(void)state;
	return sim_place_traces_make(1, 100, &traces);
}

static int free_traces(void **state)
{
	(void)state;
	sim_place_traces_finish(&traces);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fills_and_stays_full),
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_violations_last),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_refused_replicas),
		cmocka_unit_test(test_same_databases),
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_broken_rules),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, make_traces, free_traces);
}
