/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate --shared. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "cli/ctl.h"
#include "cli/simulate-print.h"
#include "simulate/shared.h"

#define SEEDS		5u
#define NUM_VMS		200u
/* Of demands that are made up: rows to draw from, and a day of values in each. */
#define ROWS		4000u
#define COLUMNS		288u

struct pair {
	struct sim_shared_result fixed, moving;
	struct sim_shared_result promised; /* with --reserve-percent: moves, keeps promises */
};

static uint64_t cpu_nsec(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static double part(double a, double b)
{
	return b > 0 ? a / b : a > 0 ? 1 : 0;
}

static double hot_part(const struct pair *p)
{
	return part((double)p->moving.num_hot, (double)p->fixed.num_hot);
}

static double done_part(const struct pair *p)
{
	return part((double)p->moving.committed, (double)p->fixed.committed);
}

static double p99_part(const struct pair *p)
{
	return part(p->moving.p99_ms, p->fixed.p99_ms);
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct pair *pairs, double (*of)(const struct pair *p))
{
	double values[SEEDS];

	for (unsigned i = 0; i < SEEDS; i++)
		values[i] = of(&pairs[i]);
	qsort(values, SEEDS, sizeof(values[0]), compare);
	return values[SEEDS / 2];
}

/* CPU time that was due by promises and not given, as a part of what was due. */
static double missing_part(const struct sim_shared_result *r)
{
	return r->promise.promised ? (double)r->promise.violated / (double)r->promise.promised : 0;
}

/* ---- a table ---- */

static void print_row(uint64_t seed, const char *how, const struct sim_shared_result *r,
		      double seconds)
{
	printf("%4llu  %-10s %7llu %11.0f %7.0f %7.0f %7.0f %11.4f %9llu %11.0f %8.0f\n",
	       (unsigned long long)seed, how, (unsigned long long)r->num_hot,
	       (double)r->committed / seconds, r->p50_ms, r->p95_ms, r->p99_ms,
	       r->moves_per_window, (unsigned long long)r->num_early, r->look_median_usec,
	       r->look_max_usec);
}

static void print_table(const struct sim_shared_options *o, const char *from,
			const struct pair *pairs)
{
	printf("%u VMs of %u, %u or %u vCPUs on %u nodes of %u shared cores, %u s; demands %s; "
	       "cores used %.0f%%\n\n", o->num_vms, o->vcpus > 1 ? o->vcpus / 2 : 1, o->vcpus,
	       2u * o->vcpus, o->num_nodes, o->cores_per_node, o->seconds, from,
	       100 * pairs[0].fixed.use);
	puts("SEED  CORES          HOT THROUGHPUT  P50 ms  P95 ms  P99 ms MOVES/VM/W.     EARLY "
	     "DECISION us   MOST us");
	for (unsigned i = 0; i < SEEDS; i++) {
		print_row(o->seed + i, "static", &pairs[i].fixed, o->seconds);
		print_row(o->seed + i, "rebalanced", &pairs[i].moving, o->seconds);
		if (o->reserve_percent)
			print_row(o->seed + i, "promised", &pairs[i].promised, o->seconds);
	}
	printf("\nRebalanced against static, median: hot core-intervals %.1f%%, throughput "
	       "%+.1f%%, p99 %+.1f%%\n", 100 * median(pairs, hot_part),
	       100 * (median(pairs, done_part) - 1), 100 * (median(pairs, p99_part) - 1));
}

static void print_promise(uint64_t seed, const char *how, const struct sim_shared_result *r)
{
	printf("%4llu  %-10s %8u %8u %10llu %8llu %9.2f%% %10.1f\n", (unsigned long long)seed, how,
	       r->num_promised, r->num_refused, (unsigned long long)r->promise.num_intervals,
	       (unsigned long long)r->promise.num_violations, 100 * missing_part(r),
	       (double)r->promise.unclear / EBB_USEC_PER_SEC);
}

static void print_promises(const struct sim_shared_options *o, const struct pair *pairs)
{
	printf("\nOne VM of four is promised %u%% of a core for each vCPU; static and rebalanced "
	       "do not keep that\n\n", o->reserve_percent);
	puts("SEED  CORES      PROMISED  REFUSED  INTERVALS   BROKEN    MISSING  UNCLEAR s");
	for (unsigned i = 0; i < SEEDS; i++) {
		print_promise(o->seed + i, "static", &pairs[i].fixed);
		print_promise(o->seed + i, "rebalanced", &pairs[i].moving);
		print_promise(o->seed + i, "promised", &pairs[i].promised);
	}
}

/* ---- JSON ---- */

static json_t *result_json(const struct sim_shared_result *r, double seconds)
{
	return json_pack("{s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:f, s:I, s:I, s:f, s:f, s:f}",
			 "intervals", (json_int_t)r->num_intervals,
			 "hot_core_intervals", (json_int_t)r->num_hot,
			 "throughput", (double)r->committed / seconds,
			 "p50_ms", r->p50_ms, "p95_ms", r->p95_ms, "p99_ms", r->p99_ms,
			 "vcpu_moves", (json_int_t)r->num_moves,
			 "vm_moves", (json_int_t)r->num_vm_moves,
			 "moves_per_vm_and_window", r->moves_per_window,
			 "early_moves", (json_int_t)r->num_early,
			 "throttled", (json_int_t)r->num_throttled,
			 "decision_median_us", r->look_median_usec,
			 "decision_max_us", r->look_max_usec, "used", r->use);
}

static json_t *promise_json(const struct sim_shared_result *r)
{
	return json_pack("{s:i, s:i, s:I, s:I, s:f, s:f, s:f, s:f}",
			 "promised_vms", (int)r->num_promised, "refused_vms", (int)r->num_refused,
			 "intervals", (json_int_t)r->promise.num_intervals,
			 "violations", (json_int_t)r->promise.num_violations,
			 "promised_s", (double)r->promise.promised / EBB_USEC_PER_SEC,
			 "violated_s", (double)r->promise.violated / EBB_USEC_PER_SEC,
			 "unclear_s", (double)r->promise.unclear / EBB_USEC_PER_SEC,
			 "missing_part", missing_part(r));
}

/* With --reserve-percent, of a seed. */
static void add_promises(json_t *seed, const struct pair *p, double seconds)
{
	json_object_set_new(seed, "promised", result_json(&p->promised, seconds));
	json_object_set_new(seed, "promises", json_pack("{s:o, s:o, s:o}",
			    "static", promise_json(&p->fixed),
			    "rebalanced", promise_json(&p->moving),
			    "promised", promise_json(&p->promised)));
}

static void print_json(const struct sim_shared_options *o, const char *from,
		       const struct pair *pairs)
{
	json_t *seeds = json_array(), *all;

	for (unsigned i = 0; i < SEEDS; i++) {
		json_t *seed = json_pack(
			"{s:I, s:o, s:o, s:f, s:f, s:f}", "seed", (json_int_t)(o->seed + i),
			"static", result_json(&pairs[i].fixed, o->seconds),
			"rebalanced", result_json(&pairs[i].moving, o->seconds),
			"hot_part", hot_part(&pairs[i]), "throughput_part", done_part(&pairs[i]),
			"p99_part", p99_part(&pairs[i]));

		if (o->reserve_percent)
			add_promises(seed, &pairs[i], o->seconds);
		json_array_append_new(seeds, seed);
	}
	all = json_pack("{s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:o, s:{s:f, s:f, s:f}}", "ok", 1,
			"vms", (int)o->num_vms, "vcpus", o->vcpus, "nodes", o->num_nodes,
			"cores_per_node", o->cores_per_node, "seconds", (int)o->seconds,
			"window_s", (int)(o->config.window / EBB_USEC_PER_SEC), "demand", from,
			"seeds", seeds, "median",
			"hot_part", median(pairs, hot_part), "throughput_part",
			median(pairs, done_part), "p99_part", median(pairs, p99_part));
	ctl_print_json(all);
	json_decref(all);
}

/* ---- */

static int run(struct sim_shared_options o, struct pair *pairs)
{
	for (unsigned i = 0; i < SEEDS; i++, o.seed++) {
		int rc;

		o.is_static = true;
		rc = sim_shared_run(&o, &pairs[i].fixed);
		o.is_static = false;
		if (rc == 0)
			rc = sim_shared_run(&o, &pairs[i].moving);
		o.is_kept = true;
		if (rc == 0 && o.reserve_percent)
			rc = sim_shared_run(&o, &pairs[i].promised);
		o.is_kept = false;
		if (rc < 0)
			return rc;
	}
	return 0;
}

int simulate_shared(const struct simulate *s, bool is_json, struct ebb_err *err)
{
	const struct ebb_host *host = &s->options.host;
	struct sim_shared_options o = {
		.kind = SIM_SHARED_TRACE, .num_nodes = host->num_nodes,
		.cores_per_node = (uint16_t)(host->num_threads / host->num_nodes),
		.num_vms = s->has_vms ? s->plan.num_vms : NUM_VMS,
		.vcpus = (uint16_t)s->vcpus, .seconds = s->plan.seconds, .seed = s->plan.seed,
		.reserve_percent = s->reserve_percent, .clock = cpu_nsec,
	};
	struct pair *pairs = calloc(SEEDS, sizeof(*pairs));
	struct sim_demand demand = { 0 };
	int rc = -ENOMEM;

	ebb_share_config_default(&o.config);
	o.config.window = s->window_s * EBB_USEC_PER_SEC;
	if (pairs && s->demand)
		rc = sim_demand_load(s->demand, &demand, err);
	else if (pairs)
		rc = sim_demand_generate(s->plan.seed, ROWS, COLUMNS, &demand);
	o.demand = &demand;
	if (rc == 0) {
		rc = run(o, pairs);
		if (rc == -EINVAL)
			ebb_err_set(err, rc, "--shared: at least 45 s, 2 VMs and 2 cores, as many "
				    "cores as the largest VM has vCPUs, and at most %u vCPUs",
				    EBB_SHARE_MAX_VCPUS);
	}
	if (rc == -ENOMEM)
		ebb_err_set(err, rc, "out of memory");
	if (rc == 0 && is_json)
		print_json(&o, s->demand ? s->demand : "made up", pairs);
	else if (rc == 0)
		print_table(&o, s->demand ? s->demand : "made up", pairs);
	if (rc == 0 && !is_json && o.reserve_percent)
		print_promises(&o, pairs);
	sim_demand_finish(&demand);
	free(pairs);
	return rc;
}
