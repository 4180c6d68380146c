// SPDX-License-Identifier: GPL-2.0-or-later
/* Plans: what is found, against the optimum and the baselines, and why. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "place/internal.h"
#include "tests/lib/test_full.h"
#include "tests/unit/host-agent/place/place_exact.h"
#include "tests/unit/host-agent/place/place_rig.h"
#include "util/random.h"

static void assert_keeps_all(const struct place *p)
{
	for (uint32_t i = 0; i < p->n_items; i++) {
		assert_true(p->items[i].host >= 0);
		assert_int_equal(place_check(p, &p->items[i], (uint32_t)p->items[i].host, NULL,
					     NULL), 0);
	}
}

/* Small clusters of all kinds: full and over-full ones, new VMs, domains, sets. */
static void test_annealing_finds_the_optimum(void **state)
{
	const uint32_t n_clusters = test_full(40, 20);
	uint32_t n_solved = 0;

	(void)state;
	for (uint32_t i = 0; i < n_clusters; i++) {
		uint32_t n_hosts = 2 + i % 3, n_vms = 6 + i % 4;
		struct rig *rig = rig_create(n_hosts, n_vms, 0.95 * n_vms / n_hosts, 500 + i);
		struct place_limit limit = { .seed = i, .steps = 20000 };
		struct place *p, *q;
		struct place_score found, best;
		struct place_refusal refusal;

		for (uint32_t h = 0; h < n_hosts; h++)
			rig->hosts[h].fault_domain = rig->hosts[h].upgrade_domain = -1;
		for (uint32_t vm = 0; vm < n_vms && i % 4 == 1; vm++)
			rig->vms[vm].host = -1;
		rig->vms[0].affinity = rig->vms[1].affinity = i % 5 == 2;
		rig->vms[2].anti_affinity = rig->vms[3].anti_affinity = i % 5 == 3;
		rig->vms[4].may_move = i % 3 != 0;
		p = rig_place(rig);
		q = rig_place(rig);
		if (!place_exact(p, 10000000)) {
			n_solved++;
			assert_keeps_all(p);
			assert_int_equal(place_anneal(q, &limit, NULL, &refusal), 0);
			assert_keeps_all(q);
			place_score(p, &best);
			place_score(q, &found);
			assert_true(found.value >= best.value * (1 - 1e-9));
			if (found.value > best.value * 1.05)
				fail_msg("cluster %u: %f, optimum %f", i, found.value, best.value);
		}
		place_destroy(p);
		place_destroy(q);
		rig_destroy(rig);
	}
	print_message("%u of %u clusters have a plan\n", n_solved, n_clusters);
	assert_true(n_solved * 2 >= n_clusters);
}

static void test_exact_knows_its_limits(void **state)
{
	struct rig *rig = rig_create(3, 9, 4, 1);
	struct place *p = rig_place(rig);

	(void)state;
	assert_int_equal(place_exact(p, 5), -E2BIG);
	for (uint32_t vm = 0; vm < 9; vm++)
		assert_int_equal(place_host_of(p, vm), vm % 3);
	place_destroy(p);
	rig->vms[4].use[PLACE_MEMORY] = 1e6;
	p = rig_place(rig);
	assert_int_equal(place_exact(p, 10000000), -ENOENT);
	for (uint32_t vm = 0; vm < 9; vm++)
		assert_int_equal(place_host_of(p, vm), vm % 3);
	place_destroy(p);
	rig_destroy(rig);
}

static uint64_t tick(void *ctx)
{
	return (*(uint64_t *)ctx)++;
}

static void test_same_seed_same_plan(void **state)
{
	struct rig *rig = rig_create(10, 200, 17, 2);
	struct place *plans[3];
	struct place_score before, after;
	uint64_t steps, clock = 5;
	struct place_refusal refusal;
	uint32_t n_other = 0;

	(void)state;
	rig->config.future = 4;
	for (uint32_t i = 0; i < 3; i++) {
		struct place_limit limit = { .seed = 1 + i / 2, .steps = 30000 };

		plans[i] = rig_place(rig);
		place_score(plans[i], &before);
		assert_int_equal(place_anneal(plans[i], &limit, &steps, &refusal), 0);
		assert_int_equal(steps, 30000);
		place_score(plans[i], &after);
		assert_true(after.value < before.value && after.n_moves > 0);
		assert_keeps_all(plans[i]);
	}
	for (uint32_t vm = 0; vm < 200; vm++) {
		assert_int_equal(place_host_of(plans[0], vm), place_host_of(plans[1], vm));
		n_other += place_host_of(plans[0], vm) != place_host_of(plans[2], vm);
	}
	assert_true(n_other > 0);
	/* A clock ends it, too. */
	rig_reset(plans[0]);
	assert_int_equal(place_anneal(plans[0], &(struct place_limit){ .usec = 100, .now = tick,
								      .ctx = &clock },
				      &steps, &refusal), 0);
	assert_in_range(steps, 5000, 7000);
	assert_int_equal(place_anneal(plans[0], &(struct place_limit){ .seed = 1 }, NULL, &refusal),
			 -EINVAL);
	for (uint32_t i = 0; i < 3; i++)
		place_destroy(plans[i]);
	rig_destroy(rig);
}

/* The plan that looks ahead has fewer expected violations than that of the PLB. */
static void test_looking_ahead_lowers_the_risk(void **state)
{
	struct rig *rig = rig_create(20, 400, 19, 3);
	struct place_limit limit = { .seed = 1, .steps = 50000 };
	struct place *plb, *ahead, *judge;
	struct place_score of_plb, of_ahead;
	struct place_refusal refusal;

	(void)state;
	for (uint32_t vm = 0; vm < 400; vm++)
		rig->vms[vm].host = -1;
	ahead = rig_place(rig);
	judge = rig_place(rig);
	rig->config.look_ahead = false;
	plb = rig_place(rig);
	assert_int_equal(place_anneal(ahead, &limit, NULL, &refusal), 0);
	assert_int_equal(place_anneal(plb, &limit, NULL, &refusal), 0);
	assert_keeps_all(plb);
	assert_keeps_all(ahead);
	place_score(ahead, &of_ahead);
	for (uint32_t vm = 0; vm < 400; vm++)
		place_put(judge, vm, place_host_of(plb, vm));
	place_score(judge, &of_plb);
	print_message("violations expected: PLB %.2f, looking ahead %.2f\n", of_plb.violations,
		      of_ahead.violations);
	assert_true(of_plb.violations > 1.5 * of_ahead.violations);
	place_destroy(plb);
	place_destroy(ahead);
	place_destroy(judge);
	rig_destroy(rig);
}

/* The bound that ends the look at hosts early ends it at the best one. */
static void test_a_new_vm_goes_to_the_best_host(void **state)
{
	struct rig *rig = rig_create(30, 600, 18, 4);
	struct place *p;

	(void)state;
	for (uint32_t vm = 0; vm < 600; vm += 40)
		rig->vms[vm].host = -1;
	p = rig_place(rig);
	for (uint32_t vm = 0; vm < 600; vm += 40) {
		struct change change = { .item = p->vms[vm].item, .other = PLACE_NONE };
		struct place_refusal refusal;
		uint32_t best_host = 0;
		double best = INFINITY;

		for (change.to = 0; change.to < 30; change.to++) {
			double value = place_eval(p, &change, INFINITY, false);

			if (!place_check(p, &p->items[change.item], change.to, NULL, NULL) &&
			    value < best) {
				best = value;
				best_host = change.to;
			}
		}
		assert_int_equal(place_new(p, vm, &refusal), 0);
		assert_int_equal(place_host_of(p, vm), best_host);
		assert_int_equal(place_new(p, vm, &refusal), -EINVAL);
	}
	place_destroy(p);
	rig_destroy(rig);
}

static void test_rules_of_the_baselines(void **state)
{
	struct place_config config = plain_config();
	const struct place_host hosts[] = { plain_host(1000, 1000, 1000),
					    plain_host(1000, 1000, 1000),
					    plain_host(1000, 1000, 1000) };
	struct place_vm vms[] = { plain_vm(0, 100, 300, 0), plain_vm(1, 500, 0, 0),
				  plain_vm(2, 300, 100, 0) };
	struct place *p;
	struct place_refusal refusal;

	(void)state;
	vms[0].host = 0;
	vms[1].host = 1;
	p = plain_create(&config, NULL, hosts, 3, vms, 3);
	assert_int_equal(place_first_fit(p, &refusal), 0);
	assert_int_equal(place_host_of(p, 2), 0);
	rig_reset(p);
	assert_int_equal(place_host_of(p, 2), -1);
	assert_int_equal(place_best_fit(p, &refusal), 0);
	assert_int_equal(place_host_of(p, 2), 1);
	rig_reset(p);
	assert_int_equal(place_worst_fit(p, &refusal), 0);
	assert_int_equal(place_host_of(p, 2), 2);
	place_destroy(p);
}

/* A host over its capacity makes the PLB move a VM, and with move costs an idle one. */
static void test_move_costs_spare_active_vms(void **state)
{
	struct place_config config = plain_config();
	const struct place_host hosts[] = { plain_host(1000, 10000, 100000),
					    plain_host(1000, 10000, 100000) };
	struct place_vm vms[3];
	struct place_limit limit = { .seed = 1, .steps = 2000 };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		vms[i] = plain_vm(i, 400, 1000, 1000);
		vms[i].host = 0;
		vms[i].is_active = i != 1;
	}
	for (int is_weighted = 0; is_weighted < 2; is_weighted++) {
		struct place *p;
		struct place_refusal refusal;
		struct place_score score;

		config.move_costs = is_weighted;
		p = plain_create(&config, NULL, hosts, 2, vms, 3);
		place_score(p, &score);
		assert_float_equal(score.excess, 0.2, 1e-9);
		assert_int_equal(place_anneal(p, &limit, NULL, &refusal), 0);
		place_score(p, &score);
		assert_int_equal(score.n_moves, 1);
		assert_true(score.excess == 0 && score.moves == 1);
		if (is_weighted)
			assert_int_equal(place_host_of(p, 1), 1);
		place_destroy(p);
	}
	/* With all active the one move counts more, and if the idle one may not move, too. */
	config.move_costs = true;
	for (int is_pinned = 0; is_pinned < 2; is_pinned++) {
		struct place *p;
		struct place_refusal refusal;
		struct place_score score;

		vms[1].is_active = !is_pinned;
		vms[1].may_move = !is_pinned;
		p = plain_create(&config, NULL, hosts, 2, vms, 3);
		assert_int_equal(place_anneal(p, &limit, NULL, &refusal), 0);
		place_score(p, &score);
		assert_true(score.n_moves == 1 && score.moves == config.cost.weight[2]);
		assert_true(!is_pinned || place_host_of(p, 1) == 0);
		place_destroy(p);
	}
}

/*
 * Repair needs no luck: whatever the seed, and with next to no search, the cheapest VM that is
 * enough leaves for the best host.
 */
static void test_relief_is_the_best_move(void **state)
{
	struct place_config config = plain_config();
	const struct place_host hosts[] = { plain_host(1000, 10000, 100000),
					    plain_host(1000, 10000, 100000),
					    plain_host(1000, 10000, 100000),
					    plain_host(1000, 10000, 100000) };
	/* Host 0 has 150 too much.  The idle VMs are cheap, and one of them is enough. */
	struct place_vm vms[] = { plain_vm(0, 400, 1000, 1000), plain_vm(1, 100, 1000, 1000),
				  plain_vm(2, 200, 1000, 1000), plain_vm(3, 450, 1000, 1000),
				  plain_vm(4, 500, 1000, 1000), plain_vm(5, 200, 1000, 1000),
				  plain_vm(6, 600, 1000, 1000) };

	(void)state;
	for (uint32_t i = 0; i < 7; i++) {
		vms[i].host = i < 4 ? 0 : (int32_t)i - 3;
		vms[i].is_active = i != 1 && i != 2;
	}
	for (uint64_t seed = 1; seed <= 20; seed++) {
		const struct place_limit limit = { .seed = seed, .steps = 1 };
		struct place_refusal refusal;
		struct place *p = plain_create(&config, NULL, hosts, 4, vms, 7);

		assert_int_equal(place_anneal(p, &limit, NULL, &refusal), 0);
		for (uint32_t vm = 0; vm < 7; vm++)
			assert_int_equal(place_host_of(p, vm), vm == 2 ? 2 : vms[vm].host);
		place_destroy(p);
	}
}

/*
 * What a violation will cost later does not depend on who may move now: else plans in which few VMs
 * may move look as if each violation cost the most, and a move now next to nothing.
 */
static void test_expected_failovers_of_pinned_vms(void **state)
{
	struct place_config config = place_config_default();
	const struct place_host host = plain_host(1000, 1000, 1000);
	struct place_vm vm = plain_vm(0, 100, 1, 1);
	struct hand hand = { 0 };
	struct place_traces *traces;

	(void)state;
	hand_add(&hand, 0, PLACE_PRIMARY, 2 * RIG_DAY, 0, 2000, 1, 1);
	traces = hand_traces(&hand, 1);
	vm.host = 0;
	for (int may_move = 0; may_move < 2; may_move++) {
		struct place_score score;
		struct place *p;

		vm.may_move = may_move;
		p = plain_create(&config, traces, &host, 1, &vm, 1);
		place_score(p, &score);
		assert_float_equal(score.violations, 1, 1e-9);
		assert_float_equal(score.expected, config.cost.weight[PLACE_COST_LOW], 1e-9);
		place_destroy(p);
	}
	place_traces_destroy(traces);
}

/* ---- what makes a placement impossible ---- */

struct refused {
	const char *name;
	enum place_constraint constraint;
	struct place_host hosts[3];
	struct place_vm vms[3];		/* the last is to be placed */
};

static void fill_refused(struct refused *r, enum place_constraint constraint)
{
	*r = (struct refused){ .constraint = constraint };
	for (uint32_t i = 0; i < 3; i++) {
		r->hosts[i] = plain_host(1000, 1000, 1000);
		r->hosts[i].fault_domain = (int32_t)i;
		r->hosts[i].upgrade_domain = (int32_t)i;
		r->vms[i] = plain_vm(i, 100, 100, 100);
		r->vms[i].host = i < 2 ? (int32_t)i : -1;
		r->vms[i].anti_affinity = 1;
	}
	/* VMs of the set keep it off two hosts, what is asked for keeps it off the third. */
	switch (constraint) {
	case PLACE_HOST_CLOSED:
		r->hosts[2].state = PLACE_HOST_OTHER_VERSION;
		break;
	case PLACE_FLOOR:
		r->vms[2].floor[PLACE_DISK] = 1100;
		break;
	case PLACE_CAPACITY:
		r->vms[2].use[PLACE_CPU] = 1100;
		break;
	case PLACE_FAULT_DOMAIN:
		r->hosts[2].fault_domain = 1;
		break;
	case PLACE_UPGRADE_DOMAIN:
		r->hosts[2].upgrade_domain = 0;
		break;
	default:
		break;
	}
}

/* What is too large for one host is too large for all. */
static bool is_everywhere(enum place_constraint constraint)
{
	return constraint == PLACE_FLOOR || constraint == PLACE_CAPACITY;
}

static void test_the_constraint_is_named(void **state)
{
	const enum place_constraint all[] = { PLACE_HOST_CLOSED, PLACE_FLOOR, PLACE_CAPACITY,
					      PLACE_FAULT_DOMAIN, PLACE_UPGRADE_DOMAIN };
	struct place_config config = plain_config();

	(void)state;
	for (uint32_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct place_limit limit = { .seed = 1, .steps = 100 };
		struct refused r;
		struct place *p;

		fill_refused(&r, all[i]);
		/* Each search says the same. */
		for (int how = 0; how < 5; how++) {
			struct place_refusal refusal = { 0 };
			int rc;

			p = plain_create(&config, NULL, r.hosts, 3, r.vms, 3);
			/* They may not make room, either. */
			p->items[0].pinned = 0;
			p->items[1].pinned = 1;
			rc = how == 0 ? place_new(p, 2, &refusal) :
			     how == 1 ? place_first_fit(p, &refusal) :
			     how == 2 ? place_best_fit(p, &refusal) :
			     how == 3 ? place_worst_fit(p, &refusal) :
					place_anneal(p, &limit, NULL, &refusal);
			assert_int_equal(rc, -EBUSY);
			assert_int_equal(refusal.vm, 2);
			assert_int_equal(refusal.hosts[all[i]],
					 is_everywhere(all[i]) ? 3 : 1);
			assert_int_equal(refusal.hosts[PLACE_ANTI_AFFINITY], 2);
			assert_int_equal(place_host_of(p, 2), -1);
			if (all[i] == PLACE_FLOOR)
				assert_int_equal(refusal.resource, PLACE_DISK);
			if (is_everywhere(all[i]))
				assert_int_equal(refusal.constraint, all[i]);
			place_destroy(p);
		}
	}
}

/* Two of three hosts have a VM of the set, the third is closed: the set is to blame. */
static void test_what_rules_out_most_is_to_blame(void **state)
{
	struct place_config config = plain_config();
	struct place_refusal refusal;
	struct refused r;
	struct place *p;

	(void)state;
	fill_refused(&r, PLACE_HOST_CLOSED);
	p = plain_create(&config, NULL, r.hosts, 3, r.vms, 3);
	assert_int_equal(place_new(p, 2, &refusal), -EBUSY);
	assert_int_equal(refusal.constraint, PLACE_ANTI_AFFINITY);
	assert_string_equal(place_constraint_name(refusal.constraint), "anti-affinity");
	place_destroy(p);
	/* Without the set the open hosts can take it. */
	r.vms[2].anti_affinity = 0;
	p = plain_create(&config, NULL, r.hosts, 3, r.vms, 3);
	assert_int_equal(place_new(p, 2, &refusal), 0);
	assert_true(place_host_of(p, 2) < 2);
	place_destroy(p);
	/* Nothing but closed hosts. */
	r.hosts[0].state = PLACE_HOST_SILENT;
	r.hosts[1].state = PLACE_HOST_SILENT;
	p = plain_create(&config, NULL, r.hosts, 3, r.vms, 3);
	assert_int_equal(place_new(p, 2, &refusal), -EBUSY);
	assert_int_equal(refusal.constraint, PLACE_HOST_CLOSED);
	assert_int_equal(refusal.hosts[PLACE_HOST_CLOSED], 3);
	/* Who is there may stay. */
	assert_int_equal(place_host_of(p, 0), 0);
	place_destroy(p);
}

/* Affinity sets move as one, sets apart keep hosts and domains apart, pinned VMs stay. */
static void test_sets_are_kept(void **state)
{
	struct rig *rig = rig_create(10, 100, 8.6, 6);
	struct place_limit limit = { .seed = 3, .steps = 30000 };
	struct place_refusal refusal;
	struct place_score score;
	struct place *p;

	(void)state;
	rig->config.future = 4;
	for (uint32_t vm = 0; vm < 20; vm++)
		rig->vms[vm].affinity = 1 + vm / 2;
	for (uint32_t vm = 20; vm < 60; vm++)
		rig->vms[vm].anti_affinity = 1 + (vm - 20) / 4;
	for (uint32_t vm = 60; vm < 80; vm++)
		rig->vms[vm].may_move = false;
	for (uint32_t vm = 0; vm < 60; vm++)
		rig->vms[vm].host = -1;
	p = rig_place(rig);
	assert_int_equal(place_anneal(p, &limit, NULL, &refusal), 0);
	assert_keeps_all(p);
	for (uint32_t vm = 0; vm < 20; vm += 2)
		assert_int_equal(place_host_of(p, vm), place_host_of(p, vm + 1));
	for (uint32_t a = 20; a < 60; a++) {
		for (uint32_t b = 20; b < a; b++) {
			const struct place_host *x = &rig->hosts[place_host_of(p, a)];
			const struct place_host *y = &rig->hosts[place_host_of(p, b)];

			if ((a - 20) / 4 == (b - 20) / 4)
				assert_true(x != y && x->fault_domain != y->fault_domain &&
					    x->upgrade_domain != y->upgrade_domain);
		}
	}
	for (uint32_t vm = 60; vm < 80; vm++)
		assert_int_equal(place_host_of(p, vm), vm % 10);
	place_score(p, &score);
	assert_int_equal(score.n_unplaced, 0);
	place_destroy(p);
	rig_destroy(rig);
}

static void test_reasons(void **state)
{
	struct rig *rig = rig_create(10, 150, 18, 7);
	struct place_reason reasons[10];
	struct place_score before, after;
	struct place *p;
	double value = 0;

	(void)state;
	rig->hosts[3].state = PLACE_HOST_SILENT;
	rig->vms[5].anti_affinity = rig->vms[7].anti_affinity = 9;
	p = rig_place(rig);
	place_score(p, &before);
	assert_int_equal(place_explain(p, 5, reasons), 0);
	place_score(p, &after);
	assert_float_equal(before.value, after.value, 1e-9);
	assert_true(reasons[0].is_chosen && reasons[0].host == 5);
	assert_float_equal(reasons[0].score.value, before.value, 1e-9);
	assert_true(reasons[0].risk_with == place_host_risk(p, 5));
	for (uint32_t i = 1; i < 10; i++) {
		const struct place_reason *r = &reasons[i];

		assert_false(r->is_chosen);
		assert_true(r->risk_with >= r->risk_without);
		if (r->host == 3)
			assert_true(r->constraints & 1u << PLACE_HOST_CLOSED);
		if (r->host == 7)
			assert_true(r->constraints & 1u << PLACE_ANTI_AFFINITY);
		/* The other host of that fault domain. */
		if (r->host == 2)
			assert_true(r->constraints & 1u << PLACE_FAULT_DOMAIN);
		if (r->constraints)
			continue;
		assert_true(i == 1 || (!reasons[i - 1].constraints && r->score.value >= value));
		assert_int_equal(r->score.n_moves, 1);
		assert_true(r->room >= 0);
		value = r->score.value;
	}
	assert_int_equal(place_explain(p, 150, reasons), -EINVAL);
	place_destroy(p);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_annealing_finds_the_optimum),
		cmocka_unit_test(test_exact_knows_its_limits),
		cmocka_unit_test(test_same_seed_same_plan),
		cmocka_unit_test(test_looking_ahead_lowers_the_risk),
		cmocka_unit_test(test_a_new_vm_goes_to_the_best_host),
		cmocka_unit_test(test_rules_of_the_baselines),
		cmocka_unit_test(test_move_costs_spare_active_vms),
		cmocka_unit_test(test_relief_is_the_best_move),
		cmocka_unit_test(test_expected_failovers_of_pinned_vms),
		cmocka_unit_test(test_the_constraint_is_named),
		cmocka_unit_test(test_what_rules_out_most_is_to_blame),
		cmocka_unit_test(test_sets_are_kept),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
