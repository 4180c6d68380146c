// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Random worlds: VMs come and go, reboot, ask, give back or stay silent,
 * libvirt fails, and the agent is restarted, for 10^5 steps in all.  Every
 * moment is checked against the shadow model (world-check.c).  Now and then
 * the world calms down: then every VM must have exactly what the policy says,
 * and under the fair policy that must be fair by an independent measure.
 *
 * EBB_SIM_SEED=n runs that seed alone, EBB_SIM_TRACE=1 prints everything.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"

#define NUM_SEEDS	24u
#define NUM_STEPS	10000u	/* things that happen, of each seed: above 10^5 together */
#define CALM_EVERY	3000u

struct dice {
	uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t below)
{
	d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((d->state >> 33) % below);
}

/* ---- an independent measure of fairness ---------------------------------- */

static uint32_t left_on(const struct world *w, uint16_t h)
{
	uint32_t sum = ebb_state_node_capacity(w->state, h);

	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = w->vms[i].is_running ? world_vm(w, i) : NULL;

		for (uint16_t g = 0; vm && vm->is_admitted && g < vm->sla.num_nodes; g++)
			if (vm->sla.nodes[g].host_node == h && !vm->sla.is_shared)
				sum -= vm->nodes[g].held;
	}
	return sum;
}

static uint32_t held_total(const struct ebb_vm *vm)
{
	struct ebb_vm_totals t;

	ebb_vm_totals(vm, &t);
	return t.held;
}

static void complain(struct world *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void complain(struct world *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->failure, sizeof(w->failure), format, args);
	va_end(args);
}

/* VM i could take a core on host node h; k has one to give there. */
static void check_envy(struct world *w, unsigned i, unsigned k, uint16_t h)
{
	const struct ebb_vm *a = world_vm(w, i), *b = world_vm(w, k);
	const uint64_t has = held_total(a), other = held_total(b);

	for (uint16_t g = 0; g < b->sla.num_nodes; g++) {
		const struct ebb_sla_node *sla = &b->sla.nodes[g];

		if (sla->host_node == h && b->nodes[g].held > sla->startup &&
		    (other - 1) * a->sla.weight > (has + 1) * b->sla.weight)
			complain(w, "unfair: vm%u has %u of weight %u, vm%u %u of %u", i,
				 (unsigned)has, a->sla.weight, k, (unsigned)other, b->sla.weight);
	}
}

static bool takes_part(const struct world *w, unsigned i)
{
	return w->vms[i].is_running && world_vm(w, i)->is_admitted && !w->vms[i].sla.is_shared;
}

/*
 * Nobody who could take one more CPU on a node should find there a core that
 * is free, or one of a VM that has, weight for weight, more than one core more.
 */
static void check_fair(struct world *w)
{
	for (unsigned i = 0; i < WORLD_VMS; i++) {
		const struct ebb_vm *vm = takes_part(w, i) ? world_vm(w, i) : NULL;

		for (uint16_t g = 0; vm && g < vm->sla.num_nodes; g++) {
			const uint16_t h = vm->sla.nodes[g].host_node;

			if (vm->nodes[g].held == vm->sla.nodes[g].max)
				continue;
			if (left_on(w, h) > 0)
				complain(w, "unfair: vm%u could take a free core of node %u", i, h);
			for (unsigned k = 0; k < WORLD_VMS; k++)
				if (k != i && takes_part(w, k))
					check_envy(w, i, k, h);
		}
	}
}

/* Blocks that the VM holds and could hold on a host node, in all its guest nodes there. */
static void mem_on(const struct ebb_vm *vm, uint16_t h, uint64_t *ret_held, uint64_t *ret_floor,
		   uint64_t *ret_ceiling)
{
	*ret_held = *ret_floor = *ret_ceiling = 0;
	for (uint16_t g = 0; g < vm->sla.num_nodes; g++) {
		if (vm->sla.nodes[g].host_node != h)
			continue;
		*ret_held += vm->pools[g].held;
		*ret_floor += vm->sla.nodes[g].mem_min + vm->floor.keep[g];
		*ret_ceiling += vm->sla.nodes[g].mem_max;
	}
}

/* The same for memory, each node of the host by itself. */
static void check_mem_fair(struct world *w)
{
	for (uint16_t h = 0; h < w->host.num_nodes; h++)
		for (unsigned i = 0; i < WORLD_VMS; i++) {
			uint64_t has, floor, ceiling, other;
			uint64_t left = w->host.pool_blocks[h];

			if (!takes_part(w, i))
				continue;
			for (unsigned k = 0; k < WORLD_VMS; k++)
				if (w->vms[k].is_running) {
					mem_on(world_vm(w, k), h, &other, &floor, &ceiling);
					left -= other;
				}
			mem_on(world_vm(w, i), h, &has, &floor, &ceiling);
			if (has == ceiling)
				continue;
			if (left > 0)
				complain(w, "unfair: vm%u could take free memory of node %u", i, h);
			for (unsigned k = 0; k < WORLD_VMS; k++) {
				if (k == i || !takes_part(w, k))
					continue;
				mem_on(world_vm(w, k), h, &other, &floor, &ceiling);
				if (other > floor &&
				    (other - 1) * world_vm(w, i)->sla.mem_weight >
					    (has + 1) * world_vm(w, k)->sla.mem_weight)
					complain(w, "unfair: vm%u has %u blocks, vm%u %u", i,
						 (unsigned)has, k, (unsigned)other);
			}
		}
}

/* ---- a policy without sense ----------------------------------------------- */

static uint32_t scatter(uint32_t a, uint32_t b, uint32_t below)
{
	uint32_t x = a * 2654435761u ^ b * 2246822519u;

	return (x ^ x >> 15) * 2654435761u % below;
}

/* A histogram is in order, of this node, and about what is held there: neither more nor less. */
static bool is_histogram(const struct ebb_view_mem *m, uint16_t g)
{
	uint64_t kib = 0;

	for (uint32_t i = 0; i < m->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &m->buckets[i];

		if (b->node != g || b->kib == 0 || b->value > EBB_VOM_VALUE_MAX ||
		    (i > 0 && b->value < b[-1].value))
			return false;
		kib += b->kib;
	}
	return kib == m->held * (EBB_BLOCK_BYTES >> 10);
}

/* The first that was not, or "". */
static char bad_histogram[128];

static void check_histograms(const struct ebb_view *view)
{
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_mem *m = &view->vms[v].nodes[g].mem;

			if (view->vom_asked_at && !bad_histogram[0] && !is_histogram(m, g))
				snprintf(bad_histogram, sizeof(bad_histogram),
					 "histogram of VM %u node %u with %u blocks: %u buckets",
					 v, g, m->held, m->num_buckets);
		}
}

/*
 * Any goals, some of them out of bounds, threads and cut-offs here and there; other ones every
 * second.
 */
static int scatter_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	const uint32_t second = (uint32_t)(view->now / EBB_USEC_PER_SEC);

	(void)st;
	check_histograms(view);
	ret_plan->asks_vom = scatter(second, 99, 2);
	for (uint16_t h = 0; h < view->num_nodes; h++)
		ret_plan->use_threads[h] = scatter(second, h, 2);
	for (uint32_t v = 0; v < view->num_vms; v++)
		for (uint16_t g = 0; g < view->vms[v].num_nodes; g++) {
			const struct ebb_view_vm_node *n = &view->vms[v].nodes[g];

			if (n->reserved < n->floor || n->reserved > n->ceiling ||
			    n->wanted < n->floor || n->wanted > n->ceiling)
				return -EINVAL;
			ret_plan->targets[v].nodes[g] =
				(uint16_t)scatter(second + v, g, n->ceiling + 2u);
			ret_plan->targets[v].mem[g] = scatter(second + v, g, n->mem.ceiling + 2u);
			ret_plan->targets[v].mem_cutoff[g] = scatter(second + v, g, 3);
		}
	return 0;
}

static const struct ebb_policy_ops scatter_policy = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "scatter",
	.decide = scatter_decide,
	.mem_review_usec = 50 * EBB_USEC_PER_MSEC,
};

static const struct ebb_policy_ops *random_policy(struct dice *d)
{
	static const struct ebb_policy_ops *const policies[] = {
		&ebb_policy_fair, &ebb_policy_fair, &ebb_policy_fair, &ebb_policy_strict,
		&ebb_policy_spot, &ebb_policy_isolate, &ebb_policy_isolate, &scatter_policy,
		&ebb_policy_vom, &ebb_policy_equal, &scatter_policy, &scatter_policy,
		&ebb_policy_vom, &ebb_policy_proportional, &ebb_policy_balloon,
	};

	return policies[roll(d, sizeof(policies) / sizeof(policies[0]))];
}

/* ---- random worlds ------------------------------------------------------- */

static struct ebb_sla random_sla(struct dice *d, const struct ebb_host *host)
{
	struct ebb_sla sla = {
		.class = (enum ebb_class)roll(d, EBB_CLASS_MAX),
		.priority = (uint16_t)(100 * roll(d, 3)),
		.weight = roll(d, 3) ? 100 : 50 + roll(d, 400),
		.deadline_ms = 10 + roll(d, 3000),
		.mem_weight = roll(d, 3) ? 100 : 50 + roll(d, 400),
		.io = { .weight = 100, .penalty = 1 },
		.mem_deadline_ms = 10 + roll(d, 3000),
		.num_nodes = (uint16_t)(1 + roll(d, host->num_nodes)),
		.tier = (uint16_t)roll(d, VIRTIO_EBB_TIER_MAX),
		.plug_ahead = roll(d, 3) == 0,
	};

	for (uint16_t g = 0; g < sla.num_nodes; g++) {
		sla.nodes[g].host_node = (uint16_t)(roll(d, 4) ? g : roll(d, host->num_nodes));
		sla.nodes[g].startup = (uint16_t)(g == 0 ? 1 + roll(d, 2) : roll(d, 2));
		sla.nodes[g].max = (uint16_t)(sla.nodes[g].startup + roll(d, 9));
		sla.nodes[g].reserved = sla.nodes[g].startup;
		if (sla.class == EBB_CLASS_RESERVED)
			sla.nodes[g].reserved += (uint16_t)roll(
				d, sla.nodes[g].max - sla.nodes[g].startup + 1u);
		if (roll(d, 4)) {
			sla.nodes[g].mem_min = roll(d, 3) ? 0 : roll(d, 40);
			sla.nodes[g].mem_max = sla.nodes[g].mem_min + roll(d, 300);
		}
		/* Every other one of those that may hold more is promised half of that. */
		if (sla.nodes[0].mem_max % 2)
			sla.reserve_mem_mib += sla.nodes[g].mem_max - sla.nodes[g].mem_min;
	}
	return sla;
}

static bool has_shared(const struct ebb_host *host)
{
	return host->cores[host->num_cores - 1].is_shared;
}

/* It gets its startup set only, more than its part of the shared cores. */
static void share(struct dice *d, struct ebb_sla *sla)
{
	sla->is_shared = true;
	for (uint16_t g = 0; g < sla->num_nodes; g++)
		sla->nodes[g].startup = sla->nodes[g].reserved = sla->nodes[g].max =
			(uint16_t)((g == 0) + roll(d, 4));
	/* Together more than there is; some have no promise. */
	sla->reserve_percent = sla->nodes[0].max % 2 ? 40 * sla->nodes[0].max : 0;
	sla->penalty = sla->nodes[0].max;
}

static enum ebb_fake_guest random_guest(struct dice *d)
{
	static const enum ebb_fake_guest guests[] = {
		EBB_FAKE_GREEDY, EBB_FAKE_GREEDY, EBB_FAKE_RANDOM, EBB_FAKE_RANDOM,
		EBB_FAKE_RANDOM, EBB_FAKE_RANDOM, EBB_FAKE_SILENT, EBB_FAKE_SILENT,
		EBB_FAKE_IDLE, EBB_FAKE_NO_DRIVER,
	};

	return guests[roll(d, sizeof(guests) / sizeof(guests[0]))];
}

static void disturb(struct world *w, struct dice *d, unsigned num_vms)
{
	const unsigned i = roll(d, num_vms);
	struct world_vm *v = &w->vms[i];

	if (!v->is_defined) {
		struct ebb_sla sla = random_sla(d, &w->host);

		if (has_shared(&w->host) && roll(d, 2))
			share(d, &sla);

		world_define(w, i, &sla, random_guest(d));
		return;
	}
	if (!v->is_running) {
		if (roll(d, 6) == 0)
			world_undefine(w, i);
		else
			world_start(w, i);
		return;
	}
	switch (roll(d, 10)) {
	case 0:
		world_kill(w, i);
		break;
	case 1:
		world_reboot(w, i);
		break;
	case 2:
		world_agent_restart(w);
		break;
	case 3:
		w->policy = random_policy(d);
		ebb_state_policy_set(w->state, w->now, w->policy);
		break;
	default:
		ebb_fake_vm_behave(w->fake, w->now, v->uuid, random_guest(d));
		break;
	}
}

static void set_failures(struct world *w, uint32_t permille)
{
	ebb_fake_set_failures(w->fake, permille, permille, permille);
}

static void calm_down(struct world *w)
{
	set_failures(w, 0);
	/* Those that broker memory never come to rest among guests that take all there is. */
	if (w->policy == &scatter_policy || w->policy == &ebb_policy_spot ||
	    w->policy->mem_review_usec > 0) {
		w->policy = &ebb_policy_fair;
		ebb_state_policy_set(w->state, w->now, w->policy);
	}
	for (unsigned i = 0; i < WORLD_VMS; i++)
		if (w->vms[i].is_running) {
			w->vms[i].undisturbed_since = w->now;
			ebb_fake_vm_behave(w->fake, w->now, w->vms[i].uuid, EBB_FAKE_GREEDY);
		}
	/* Longest back-off, longest deadline, and time to act on it. */
	world_run_until(w, w->now + 60 * EBB_USEC_PER_SEC);
	world_check_settled(w);
	if (w->policy == &ebb_policy_fair && !w->failure[0])
		check_fair(w);
	if (w->policy == &ebb_policy_fair && !w->failure[0] && !w->has_no_pools)
		check_mem_fair(w);
}

/* What happened in all seeds together. */
struct sums {
	uint64_t steps, grants, lends, mem_offers, mem_releases, revoked;
	uint64_t voms, brokered, cutoffs, violations, moves;
	uint64_t rebalanced, throttled;
};

/* VMs compute where they are, now and then something else. */
static void compute(struct world *w, struct dice *d, usec_t *at)
{
	if (w->now < *at + EBB_USEC_PER_SEC || !ebb_state_is_loaded(w->state))
		return;
	if (roll(d, 10) == 0)
		for (unsigned i = 0; i < WORLD_VMS; i++)
			if (w->vms[i].is_defined && roll(d, 2))
				ebb_fake_vm_load(w->fake, w->vms[i].uuid,
						 (uint16_t)(1 + roll(d, roll(d, 2) ? 1000 : 200)));
	ebb_fake_load_run(w->fake, w->now, w->now - *at, w->host.share_permille);
	*at = w->now;
}

static void run_seed(uint64_t seed, struct sums *sums)
{
	static struct world w;
	struct dice d = { .state = seed * 0x9e3779b97f4a7c15ull };
	struct ebb_fake_config cfg;
	struct ebb_host host;
	uint64_t step;
	usec_t computed_at = 0;
	unsigned num_vms;

	for (int i = 0; i < 8; i++)
		roll(&d, 2);
	num_vms = 4 + roll(&d, 16);
	assert_int_equal(ebb_host_emulate(1 + roll(&d, 4), 4 + roll(&d, 8), 1 + roll(&d, 2), 250,
					  &host), 0);
	for (uint16_t n = 0; n < host.num_nodes; n++)
		host.pool_blocks[n] = roll(&d, 8) ? 64 + roll(&d, 900) : 0;
	if (seed % 3 == 1)
		for (uint16_t c = 0; c < host.num_cores; c++)
			host.cores[c].is_shared = c + 1u >= host.num_cores ||
						  host.cores[c + 1].node != host.cores[c].node ||
						  c % 4 == 1;
	ebb_fake_config_default(&cfg);
	cfg.seed = seed;
	cfg.has_no_cap = seed % 6 == 5;
	cfg.lend_permille = seed % 5 == 0 ? 0 : 700;
	cfg.has_no_pools = seed % 12 == 7;
	cfg.vom_permille = seed % 4 == 0 ? 300 : 1000;
	world_init(&w, &host, &cfg, &ebb_policy_fair, roll(&d, 3) == 0 && host.num_threads > 1);
	w.trace = getenv("EBB_SIM_TRACE") != NULL;
	set_failures(&w, roll(&d, 2) ? 50 : 0);
	for (step = 0; step < NUM_STEPS && !w.failure[0]; step++) {
		/* Where nothing happens by itself any more, something is made to. */
		if (!world_step(&w, w.now + EBB_USEC_PER_SEC) || roll(&d, 40) == 0)
			disturb(&w, &d, num_vms);
		if (has_shared(&host))
			compute(&w, &d, &computed_at);
		if (step % CALM_EVERY == CALM_EVERY - 1) {
			calm_down(&w);
			set_failures(&w, roll(&d, 2) ? 50 : 0);
		}
	}
	printf("seed %2llu: %u nodes, %u cores, %u threads, %2u VMs: %llu steps, %.0f s, "
	       "%llu facts, %llu actions, %llu grants, %llu lends, %llu times forced, "
	       "%llu memory offers, %llu releases, %llu blocks revoked%s%s\n",
	       (unsigned long long)seed, host.num_nodes, host.num_cores, host.num_threads, num_vms,
	       (unsigned long long)step, (double)w.now / EBB_USEC_PER_SEC,
	       (unsigned long long)w.num_facts, (unsigned long long)w.num_actions,
	       (unsigned long long)w.num_grants, (unsigned long long)w.num_lends,
	       (unsigned long long)w.num_forced,
	       (unsigned long long)w.num_mem_offers, (unsigned long long)w.num_mem_releases,
	       (unsigned long long)w.num_revoked,
	       w.failure[0] ? ": " : "", w.failure);
	sums->steps += step;
	sums->grants += w.num_grants;
	sums->lends += w.num_lends;
	sums->mem_offers += w.num_mem_offers;
	sums->mem_releases += w.num_mem_releases;
	sums->revoked += w.num_revoked;
	sums->voms += w.num_voms;
	sums->brokered += w.num_brokered;
	sums->violations += w.num_violations;
	sums->moves += w.num_moves;
	sums->cutoffs += w.num_cutoffs;
	sums->rebalanced += w.num_rebalanced;
	sums->throttled += w.num_throttled;
	if (!w.failure[0] && bad_histogram[0])
		snprintf(w.failure, sizeof(w.failure), "%s", bad_histogram);
	world_finish(&w);
	if (w.failure[0])
		fail_msg("seed %llu, step %llu, at %llu us: %s", (unsigned long long)seed,
			 (unsigned long long)step, (unsigned long long)w.now, w.failure);
}

static void test_random_worlds(void **state)
{
	const char *only = getenv("EBB_SIM_SEED");
	struct sums sums = { 0 };

	(void)state;
	if (only) {
		run_seed(strtoull(only, NULL, 10), &sums);
		return;
	}
	for (uint64_t seed = 1; seed <= NUM_SEEDS; seed++)
		run_seed(seed, &sums);
	printf("%llu steps, %llu grants, %llu lends, %llu memory offers, %llu releases, "
	       "%llu blocks revoked, %llu histograms, %llu brokerings, %llu cut-offs, "
	       "%llu violations, %llu moves\n",
	       (unsigned long long)sums.steps, (unsigned long long)sums.grants,
	       (unsigned long long)sums.lends,
	       (unsigned long long)sums.mem_offers, (unsigned long long)sums.mem_releases,
	       (unsigned long long)sums.revoked, (unsigned long long)sums.voms,
	       (unsigned long long)sums.brokered, (unsigned long long)sums.cutoffs,
	       (unsigned long long)sums.violations, (unsigned long long)sums.moves);
	printf("%llu moves of VMs between shared cores, %llu throttles\n",
	       (unsigned long long)sums.rebalanced, (unsigned long long)sums.throttled);
	/* A simulation in which nothing happens proves nothing. */
	assert_true(sums.rebalanced > 10);
	assert_true(sums.throttled > 10);
	assert_true(sums.steps >= 100000);
	assert_true(sums.grants > 1000);
	assert_true(sums.lends > 1000);
	assert_true(sums.mem_offers > 1000);
	assert_true(sums.mem_releases > 1000);
	assert_true(sums.revoked > 1000);
	assert_true(sums.voms > 150);
	assert_true(sums.brokered > 100);
	assert_true(sums.violations > 100);
	assert_true(sums.moves > 20);
	assert_true(sums.cutoffs > 300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_worlds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
