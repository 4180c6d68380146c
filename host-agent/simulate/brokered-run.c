// SPDX-License-Identifier: GPL-2.0-or-later
/* The host, the policy and the databases under one clock: see brokered.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "simulate/brokered.h"

/* Blocks, as in the paper: data, what a cold one has, what a warm one has (its minimum). */
#define GIB		512u
#define DATA		(50u * GIB)
#define COLD		(22u * GIB)
#define MINIMUM		(3u * GIB)
#define PAIR		(26u * GIB)	/* of the capacity, for one of each */
#define THRESHOLD_PCT	96u
#define TARGET_PCT	92u
#define COOLDOWN_S	60u
#define READS		10000.0
#define RAN_S		7200.0
/* Blocks that a guest can give back in a second. */
#define GIVES		128.0

struct world {
	const struct brokered_options *options;
	const struct ebb_policy_ops *policy;
	struct brokered_db *dbs;
	struct ebb_view_vm *vms;
	struct ebb_plan_vm *targets;
	struct ebb_vom_bucket *buckets;	/* BROKERED_SAMPLES of each VM */
	uint64_t *state;
	double *warm, *cold;		/* accesses, by second */
	struct ebb_view view;
	bool was_short[EBB_MAX_NODES];
};

static bool is_cold(uint32_t v, const struct world *w)
{
	return v / w->options->num_nodes % 2 == 0;
}

static struct ebb_view_mem *mem_of(const struct world *w, uint32_t v)
{
	return &w->vms[v].nodes[0].mem;
}

/* As much more or less by chance. */
static double about(struct brokered_db *db, double value, double part)
{
	return value * (1 - part + 2 * part * brokered_db_chance(db));
}

static void set_up(struct world *w)
{
	const struct brokered_options *o = w->options;
	struct brokered_db dice = { .chance = o->seed };

	w->view = (struct ebb_view){
		.cooldown = COOLDOWN_S * EBB_USEC_PER_SEC, .num_nodes = o->num_nodes,
		.num_vms = o->num_vms, .vms = w->vms,
	};
	for (uint32_t v = 0; v < o->num_vms; v++) {
		const uint16_t h = (uint16_t)(v % o->num_nodes);
		const double data = about(&dice, DATA, 0.2);
		/* Half of them each. */
		const double theta = brokered_db_chance(&dice) < 0.5 ?
					     0 : about(&dice, 0.8, 0.1);

		brokered_db_init(&w->dbs[v], data, theta, about(&dice, READS, 0.2),
				 is_cold(v, w) ? COLD : MINIMUM, o->seed * 10007 + v);
		w->vms[v] = (struct ebb_view_vm){
			.order = v + 1, .weight = EBB_WEIGHT_DEFAULT,
			.mem_weight = EBB_WEIGHT_DEFAULT, .has_driver = true, .num_nodes = 1,
		};
		w->vms[v].nodes[0] = (struct ebb_view_vm_node){
			.host_node = h,
			.mem = { .floor = MINIMUM, .ceiling = (uint32_t)data },
		};
		w->view.nodes[h].mem_capacity += PAIR / 2;
	}
	for (uint16_t h = 0; h < o->num_nodes; h++) {
		struct ebb_view_node *n = &w->view.nodes[h];

		n->mem_threshold = (uint32_t)((uint64_t)n->mem_capacity * THRESHOLD_PCT / 100);
		n->mem_target = (uint32_t)((uint64_t)n->mem_capacity * TARGET_PCT / 100);
	}
}

/* Before: all ran with what they have for long, then the large ones were idle. */
static void warm_up(struct world *w)
{
	for (uint32_t v = 0; v < w->options->num_vms; v++) {
		struct brokered_db *db = &w->dbs[v];

		db->load = 1;
		for (unsigned s = 0; s < 300; s++)
			brokered_db_run(db, is_cold(v, w) ? COLD : MINIMUM);
		brokered_db_settle(db, RAN_S);
		if (!is_cold(v, w))
			continue;
		db->load = 0;
		brokered_db_pause(db, BROKERED_IDLE_S);
	}
}

static void look(struct world *w, struct brokered_result *ret)
{
	double used[EBB_MAX_NODES] = { 0 };

	for (uint32_t v = 0; v < w->options->num_vms; v++) {
		struct ebb_view_mem *mem = mem_of(w, v);

		mem->held = mem->used = (uint32_t)ceil(w->dbs[v].sum_held);
		used[w->vms[v].nodes[0].host_node] += mem->held;
	}
	for (uint16_t h = 0; h < w->options->num_nodes; h++)
		ret->worst_used = fmax(ret->worst_used, used[h] / w->view.nodes[h].mem_capacity);
}

static int decide(struct world *w, struct brokered_result *ret)
{
	struct ebb_plan plan = { .targets = w->targets };
	bool is_short[EBB_MAX_NODES] = { false };
	int rc;

	memset(w->targets, 0, w->options->num_vms * sizeof(*w->targets));
	rc = ebb_policy_decide(w->policy, w->state, &w->view, &plan);
	if (rc < 0)
		return rc;
	for (uint32_t v = 0; v < w->options->num_vms; v++) {
		mem_of(w, v)->target = w->targets[v].mem[0];
		if (mem_of(w, v)->held > mem_of(w, v)->target)
			is_short[w->vms[v].nodes[0].host_node] = true;
	}
	for (uint16_t h = 0; h < w->options->num_nodes; h++)
		ret->num_brokered += is_short[h] && !w->was_short[h];
	memcpy(w->was_short, is_short, sizeof(is_short));
	w->view.vom_is_open = plan.asks_vom;
	if (plan.asks_vom) {
		w->view.vom_asked_at = w->view.now;
		ret->num_asked++;
	}
	return 0;
}

/* All that were asked answer within the second. */
static void answer(struct world *w)
{
	for (uint32_t v = 0; w->view.vom_is_open && v < w->options->num_vms; v++) {
		struct ebb_view_mem *mem = mem_of(w, v);

		mem->buckets = &w->buckets[v * BROKERED_SAMPLES];
		mem->num_buckets = brokered_db_tell(&w->dbs[v], w->options->idle_half_s,
						    &w->buckets[v * BROKERED_SAMPLES]);
		mem->vom_at = w->view.now;
	}
	w->view.vom_is_open = false;
}

/* One second. Free memory goes to databases that grow; memory given back is free a second later. */
static void run_second(struct world *w, unsigned s)
{
	double room[EBB_MAX_NODES], wish[EBB_MAX_NODES] = { 0 };
	const double most = READS / 100;

	for (uint16_t h = 0; h < w->options->num_nodes; h++)
		room[h] = w->view.nodes[h].mem_capacity;
	for (uint32_t v = 0; v < w->options->num_vms; v++) {
		const double more = mem_of(w, v)->target - w->dbs[v].sum_held;

		room[w->vms[v].nodes[0].host_node] -= w->dbs[v].sum_held;
		wish[w->vms[v].nodes[0].host_node] += fmin(most, fmax(more, 0));
	}
	for (uint32_t v = 0; v < w->options->num_vms; v++) {
		const uint16_t h = w->vms[v].nodes[0].host_node;
		struct brokered_db *db = &w->dbs[v];
		const double more = mem_of(w, v)->target - db->sum_held;
		double may = db->sum_held, did;

		if (more < 0)
			brokered_db_give(db, fmin(GIVES, -more));
		else if (wish[h] > 0)
			may += fmin(most, more) * fmin(1, fmax(room[h], 0) / wish[h]);
		did = brokered_db_run(db, fmin(may, more < 0 ? db->sum_held : may));
		*(is_cold(v, w) ? &w->cold[s] : &w->warm[s]) += did;
	}
}

static int by_size(const void *x, const void *y)
{
	const double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Of the moving averages of the seconds from `from` to before `to`; sorted in place of them. */
static double percentile(const double *values, unsigned from, unsigned to, unsigned percent)
{
	double averages[BROKERED_LENGTH_S];
	unsigned num = 0;

	for (unsigned s = from; s < to; s++) {
		const unsigned first = s + 1 > from + BROKERED_AVERAGE_S ?
					       s + 1 - BROKERED_AVERAGE_S : from;
		double sum = 0;

		for (unsigned i = first; i <= s; i++)
			sum += values[i];
		averages[num++] = sum / (s + 1 - first);
	}
	qsort(averages, num, sizeof(averages[0]), by_size);
	return averages[(num - 1) * percent / 100];
}

static int run(struct world *w, struct brokered_result *ret)
{
	const uint32_t pairs = w->options->num_vms / 2;

	set_up(w);
	warm_up(w);
	for (unsigned s = 0; s < BROKERED_LENGTH_S; s++) {
		int rc;

		/* The clock of the core is never 0. */
		w->view.now = (1000 + s) * EBB_USEC_PER_SEC;
		for (uint32_t v = 0; v < w->options->num_vms && s == BROKERED_RESTART_S; v++) {
			*(is_cold(v, w) ? &ret->cold_mib : &ret->warm_mib) +=
				w->dbs[v].sum_held * EBB_BLOCK_MIB / pairs;
			w->dbs[v].load = 1;
		}
		look(w, ret);
		rc = decide(w, ret);
		if (rc < 0)
			return rc;
		answer(w);
		run_second(w, s);
		for (uint32_t v = 0; v < w->options->num_vms; v++)
			if (!(w->dbs[v].load > 0))
				brokered_db_pause(&w->dbs[v], 1);
	}
	ret->ramp_median = percentile(w->warm, 0, BROKERED_RAMP_S, 50);
	ret->ramp_p95 = percentile(w->warm, 0, BROKERED_RAMP_S, 95);
	ret->restart_median = percentile(w->cold, BROKERED_RESTART_S, BROKERED_LENGTH_S, 50);
	return 0;
}

int brokered_run(const struct brokered_options *options, const struct ebb_policy_ops *policy,
		 struct brokered_result *ret)
{
	const uint32_t n = options->num_vms;
	struct world w = {
		.options = options, .policy = policy,
		.dbs = calloc(n, sizeof(*w.dbs)), .vms = calloc(n, sizeof(*w.vms)),
		.targets = calloc(n, sizeof(*w.targets)),
		.buckets = calloc((size_t)n * BROKERED_SAMPLES, sizeof(*w.buckets)),
		.state = calloc(1, EBB_POLICY_STATE_MAX),
		.warm = calloc(BROKERED_LENGTH_S, sizeof(*w.warm)),
		.cold = calloc(BROKERED_LENGTH_S, sizeof(*w.cold)),
	};
	int rc = -ENOMEM;

	*ret = (struct brokered_result){ .policy = policy->name };
	if (w.dbs && w.vms && w.targets && w.buckets && w.state && w.warm && w.cold)
		rc = run(&w, ret);
	free(w.dbs);
	free(w.vms);
	free(w.targets);
	free(w.buckets);
	free(w.state);
	free(w.warm);
	free(w.cold);
	return rc;
}
