// SPDX-License-Identifier: GPL-2.0-or-later
/* See promised.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/floor/control.h"
#include "core/promise/cache.h"
#include "simulate/brokered.h"
#include "simulate/promised.h"

#define GIB		512u		/* blocks */
#define CAPACITY	(24u * GIB)
#define MINIMUM		(1u * GIB)
#define PROMISED	(PROMISED_MIB / EBB_BLOCK_MIB)
#define DATA		(24u * GIB)
#define DATA_OTHERS	(50u * GIB)
#define THETA		0.8
#define LOAD		0.5
#define READS		10000.0
#define COOLDOWN_S	60u
#define SETTLED_S	600u
/* Blocks that a guest can give back in a second. */
#define GIVES		128.0
#define MAX_VMS		(1u + PROMISED_MAX_OTHERS)

/* VM 0 is the one that is promised something. */
struct world {
	const struct promised_options *options;
	const struct ebb_policy_ops *policy;
	uint32_t num_vms;
	struct brokered_db dbs[MAX_VMS];
	struct brokered_db cache;	/* the one that is promised */
	struct ebb_view_vm vms[MAX_VMS];
	struct ebb_plan_vm targets[MAX_VMS];
	struct ebb_vom_bucket buckets[MAX_VMS][BROKERED_SAMPLES];
	uint64_t state[EBB_POLICY_STATE_MAX / 8];
	struct ebb_view view;
	double baseline, actual, accesses; /* counters of the guest */
	struct floor_control control;
	struct ebb_relio seen;
	uint64_t owed;
};

static struct ebb_view_mem *mem_of(struct world *w, uint32_t v)
{
	return &w->vms[v].nodes[0].mem;
}

static void settle(struct brokered_db *db, double blocks)
{
	for (unsigned s = 0; s < SETTLED_S; s++)
		brokered_db_run(db, blocks);
	brokered_db_settle(db, SETTLED_S);
}

static void set_up(struct world *w)
{
	w->num_vms = 1 + w->options->num_others;
	w->control.want = PROMISED;
	w->view = (struct ebb_view){
		.cooldown = COOLDOWN_S * EBB_USEC_PER_SEC, .num_nodes = 1,
		.num_vms = w->num_vms, .vms = w->vms,
		.nodes[0] = {
			.mem_capacity = CAPACITY, .mem_threshold = CAPACITY / 100 * 96,
			.mem_target = CAPACITY / 100 * 92,
		},
	};
	for (uint32_t v = 0; v < w->num_vms; v++) {
		const double data = v == 0 ? DATA : DATA_OTHERS;
		const double has = v == 0 ? MINIMUM + PROMISED : MINIMUM;

		brokered_db_init(&w->dbs[v], data, THETA, READS, has, w->options->seed * 101 + v);
		w->dbs[v].load = v == 0 ? LOAD : 1;
		settle(&w->dbs[v], has);
		w->vms[v] = (struct ebb_view_vm){
			.order = v + 1, .weight = EBB_WEIGHT_DEFAULT,
			.mem_weight = EBB_WEIGHT_DEFAULT, .has_driver = true, .num_nodes = 1,
		};
		mem_of(w, v)->ceiling = (uint32_t)data;
	}
	/* The minimum is what a database needs besides, so it is no part of the promise. */
	brokered_db_init(&w->cache, DATA, THETA, READS, MINIMUM + PROMISED, w->options->seed);
	w->cache.load = LOAD;
	settle(&w->cache, MINIMUM + PROMISED);
}

static int decide(struct world *w)
{
	struct ebb_plan plan = { .targets = w->targets };
	int rc;

	for (uint32_t v = 0; v < w->num_vms; v++) {
		struct ebb_view_mem *mem = mem_of(w, v);

		mem->held = mem->used = (uint32_t)ceil(w->dbs[v].sum_held);
		mem->floor = MINIMUM;
		if (v == 0 && w->options->is_kept)
			mem->floor += w->control.want;
	}
	memset(w->targets, 0, sizeof(w->targets));
	rc = ebb_policy_decide(w->policy, w->state, &w->view, &plan);
	if (rc < 0)
		return rc;
	w->view.vom_is_open = plan.asks_vom;
	if (plan.asks_vom)
		w->view.vom_asked_at = w->view.now;
	for (uint32_t v = 0; v < w->num_vms; v++) {
		struct ebb_view_mem *mem = mem_of(w, v);

		/* As the arbiter does. */
		mem->target = w->targets[v].mem[0] > mem->floor ? w->targets[v].mem[0] : mem->floor;
		if (!plan.asks_vom)
			continue;
		mem->buckets = w->buckets[v];
		mem->num_buckets = brokered_db_tell(&w->dbs[v], BROKERED_IDLE_HALF_S,
						    w->buckets[v]);
		mem->vom_at = w->view.now;
	}
	w->view.vom_is_open = false;
	return 0;
}

/*
 * One second: databases that grow get free memory; memory that is given back is free in the next
 * second.
 */
static void run_second(struct world *w, struct promised_result *ret)
{
	double room = CAPACITY, wish = 0, missed;

	for (uint32_t v = 0; v < w->num_vms; v++) {
		room -= w->dbs[v].sum_held;
		wish += fmax(mem_of(w, v)->target - w->dbs[v].sum_held, 0);
	}
	for (uint32_t v = 0; v < w->num_vms; v++) {
		struct brokered_db *db = &w->dbs[v];
		const double more = mem_of(w, v)->target - db->sum_held;
		double may = db->sum_held, did;

		missed = brokered_db_missed(db);
		if (more < 0)
			brokered_db_give(db, fmin(GIVES, -more));
		else if (wish > 0)
			may += more * fmin(1, fmax(room, 0) / wish);
		did = brokered_db_run(db, more < 0 ? db->sum_held : may);
		if (v > 0) {
			ret->others += did / PROMISED_LENGTH_S;
			continue;
		}
		w->accesses += did;
		w->actual += did * missed;
		w->baseline += did * brokered_db_missed(&w->cache);
		brokered_db_access(&w->cache, did, MINIMUM + PROMISED);
	}
}

/* The guest reports: the control sets the floor, the meter judges. */
static void report(struct world *w, struct promised_result *ret)
{
	const struct ebb_telemetry t = {
		.baseline_mib = PROMISED_MIB, .baseline_ios = (uint64_t)w->baseline,
		.actual_ios = (uint64_t)w->actual, .accesses = (uint64_t)w->accesses,
	};
	const double held = w->dbs[0].sum_held - MINIMUM;
	enum ebb_relio_verdict verdict;
	struct ebb_relio_interval i;
	struct promise_outcome o;

	verdict = ebb_relio_take(&w->seen, w->view.now, PROMISED_MIB, &t, &i);
	floor_step(&w->control, PROMISED, held > 0 ? (uint32_t)held : 0, verdict, &i);
	if (verdict == EBB_RELIO_NONE)
		return;
	promise_reckon_cache(&i, verdict, &w->owed, &o);
	ret->num_violations += o.violated > 0;
}

int promised_run(const struct promised_options *options, const struct ebb_policy_ops *policy,
		 struct promised_result *ret)
{
	struct world *w;
	int rc = 0;

	if (options->num_others == 0 || options->num_others > PROMISED_MAX_OTHERS)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->options = options;
	w->policy = policy;
	*ret = (struct promised_result){ .policy = policy->name, .least_floor_mib = PROMISED_MIB };
	set_up(w);
	for (unsigned s = 0; s < PROMISED_LENGTH_S && rc == 0; s++) {
		/* The clock of the core is never 0. */
		w->view.now = (1000 + s) * EBB_USEC_PER_SEC;
		rc = decide(w);
		run_second(w, ret);
		report(w, ret);
		ret->mib += w->dbs[0].sum_held * EBB_BLOCK_MIB / PROMISED_LENGTH_S;
		ret->least_floor_mib = fmin(ret->least_floor_mib,
					    (double)w->control.want * EBB_BLOCK_MIB);
	}
	ret->relative_io = (w->actual - w->baseline) / w->baseline;
	free(w);
	return rc;
}
