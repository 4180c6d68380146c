/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate --reserve. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/simulate-print.h"
#include "simulate/reserved.h"

#define SEEDS	5u

/* A tenant's results of all seeds: rates and delays are means, the counters are sums. */
struct row {
	double reserved, mean, p50_ms, p99_ms;
	uint64_t intervals, kept;
	uint64_t violated, others_early, others_promised, slow;
};

static void add(struct row *row, const struct sim_reserved_result *r)
{
	row->reserved += r->reserved / SEEDS;
	row->mean += r->mean / SEEDS;
	row->p50_ms += r->p50_ms / SEEDS;
	row->p99_ms += r->p99_ms / SEEDS;
	row->intervals += r->intervals;
	row->kept += r->kept;
	row->violated += r->meter.violated;
	row->others_early += r->meter.others_early;
	row->others_promised += r->meter.others_promised;
	row->slow += r->meter.slow;
}

static double kept_percent(const struct row *row)
{
	return row->intervals ? 100.0 * (double)row->kept / (double)row->intervals : 100;
}

/* rows: for each tenant */
static int run(struct sim_reserved_case *c, enum sim_reserved_policy policy, uint64_t seed,
	       struct row *rows)
{
	struct sim_reserved_result results[SIM_RESERVED_CASE_TENANTS];

	c->options.policy = policy;
	for (uint32_t i = 0; i < SEEDS; i++) {
		int rc;

		c->options.seed = seed + i;
		rc = sim_reserved_run(&c->options, results);
		if (rc < 0)
			return rc;
		for (uint32_t t = 0; t < c->options.num_tenants; t++)
			add(&rows[t], &results[t]);
	}
	return 0;
}

static void print_row(const char *tenant, const char *policy, const struct row *r)
{
	printf("%-10s %-9s", tenant, policy);
	if (r->reserved > 0)
		printf(" %8.0f %8.1f %7.1f%% %9.2f %9.2f %9llu %9llu %9llu %9llu\n", r->reserved,
		       r->mean, kept_percent(r), r->p50_ms, r->p99_ms,
		       (unsigned long long)r->violated, (unsigned long long)r->others_early,
		       (unsigned long long)r->others_promised, (unsigned long long)r->slow);
	else
		printf(" %8s %8.1f\n", "-", r->mean);
}

static json_t *row_json(const char *tenant, const char *policy, const struct row *r)
{
	return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I}",
			 "tenant", tenant, "policy", policy, "reserved", r->reserved,
			 "mean", r->mean, "kept_percent", kept_percent(r),
			 "delay_p50_ms", r->p50_ms, "delay_p99_ms", r->p99_ms,
			 "violated", (json_int_t)r->violated,
			 "others_early", (json_int_t)r->others_early,
			 "others_promised", (json_int_t)r->others_promised,
			 "slow", (json_int_t)r->slow);
}

/* Prints the case, or adds it to the array. */
static int run_case(enum sim_reserved_case_id id, const struct simulate *s, json_t *cases)
{
	struct row rows[SIM_RESERVED_POLICIES][SIM_RESERVED_CASE_TENANTS] = { 0 };
	json_t *tenants = cases ? json_array() : NULL;
	struct sim_reserved_case c;

	sim_reserved_case(id, s->plan.seconds, &c);
	for (unsigned int p = 0; p < SIM_RESERVED_POLICIES; p++) {
		const int rc = run(&c, p, s->plan.seed, rows[p]);

		if (rc < 0) {
			json_decref(tenants);
			return rc;
		}
	}
	if (!cases) {
		printf("%s%s: %s\n", id ? "\n" : "", c.name, c.text);
		printf("%-10s %-9s %8s %8s %8s %9s %9s %9s %9s %9s %9s\n", "TENANT", "POLICY",
		       "RESERVED", "MEAN", "AT 97%", "P50 ms", "P99 ms", "VIOLATED", "EARLY",
		       "PROMISED", "SLOW");
	}
	for (uint32_t t = 0; t < c.options.num_tenants; t++)
		for (unsigned int p = 0; p < SIM_RESERVED_POLICIES; p++) {
			const char *policy = sim_reserved_policies[p];

			if (cases)
				json_array_append_new(tenants, row_json(c.tenants[t].name, policy,
									&rows[p][t]));
			else
				print_row(c.tenants[t].name, policy, &rows[p][t]);
		}
	if (cases)
		json_array_append_new(cases, json_pack("{s:s, s:s, s:o}", "case", c.name,
						       "about", c.text, "tenants", tenants));
	return 0;
}

int simulate_reserve(const struct simulate *s, bool is_json, struct ebb_err *err)
{
	json_t *cases = is_json ? json_array() : NULL;
	int rc = 0;

	for (unsigned int id = 0; rc == 0 && id < SIM_RESERVED_CASES; id++)
		rc = run_case(id, s, cases);
	if (rc < 0) {
		json_decref(cases);
		return ebb_err_set(err, rc, "--reserve: %s", strerror(-rc));
	}
	if (is_json) {
		json_t *all = json_pack("{s:b, s:i, s:i, s:I, s:o}", "ok", 1, "seconds",
					(int)s->plan.seconds, "seeds", (int)SEEDS, "first_seed",
					(json_int_t)s->plan.seed, "cases", cases);

		ctl_print_json(all);
		json_decref(all);
	}
	return 0;
}
