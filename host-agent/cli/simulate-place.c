/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl simulate --place. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ctl.h"
#include "cli/simulate-print.h"
#include "simulate/placed-decide.h"

#define MADE_UP_ROWS	1000u

/* Those of figure 12. */
static const char *const default_placers[] = { "plb", "prv+mc+aru" };

static void print_row(uint64_t seed, const char *placer, const struct sim_place_counts *c)
{
	printf("%4llu  %-11s %10llu %9llu %5llu %10.1f %8llu %7llu %9.3f %6.3f %6.3f %6.3f\n",
	       (unsigned long long)seed, placer, (unsigned long long)c->violations,
	       (unsigned long long)c->failovers, (unsigned long long)c->failovers_new,
	       c->disruption_s / 60, (unsigned long long)c->admitted,
	       (unsigned long long)c->refused, c->reserved, c->used[PLACE_CPU],
	       c->used[PLACE_MEMORY], c->used[PLACE_DISK]);
}

static json_t *counts_json(const struct sim_place_counts *c)
{
	json_t *used = json_object();

	for (unsigned int r = 0; r < PLACE_N_RESOURCES; r++)
		json_object_set_new(used, place_resources[r].name, json_real(c->used[r]));
	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f, s:o}",
			 "violations", (json_int_t)c->violations,
			 "failovers", (json_int_t)c->failovers,
			 "failovers_new", (json_int_t)c->failovers_new,
			 "disruption_s", c->disruption_s, "failover_s", c->failover_s,
			 "admitted", (json_int_t)c->admitted, "refused", (json_int_t)c->refused,
			 "deleted", (json_int_t)c->deleted, "reserved", c->reserved, "used", used);
}

static json_t *run_json(uint64_t seed, const char *placer, const struct sim_place_result *r)
{
	json_t *run = counts_json(&r->all), *days = json_array();

	for (uint32_t d = 0; d < r->num_days; d++)
		json_array_append_new(days, counts_json(&r->days[d]));
	json_object_set_new(run, "seed", json_integer((json_int_t)seed));
	json_object_set_new(run, "placer", json_string(placer));
	json_object_set_new(run, "days", days);
	return run;
}

/* All placers with one seed.  Prints, or adds to the array. */
static int run_seed(const struct simulate_place *p, uint64_t seed,
		    const struct sim_place_traces *traces, json_t *runs)
{
	struct sim_place_earlier *earlier;
	int rc = sim_place_earlier_create(traces, p->ahead_days, seed, &earlier);

	if (rc < 0)
		return rc;
	for (uint32_t i = 0; rc == 0 && i < p->num_placers; i++) {
		struct sim_place_decider decider = {
			.placer = p->placers[i], .earlier = earlier, .seed = seed,
			.samples = p->samples, .candidates = p->candidates,
		};
		const struct sim_place_options o = {
			.num_hosts = p->num_hosts, .upgrade_domains = p->upgrade_domains,
			.fault_domains = p->fault_domains, .days = 7 * p->weeks,
			.balance_steps = p->balance_hours * 3600 / SIM_PLACE_STEP_S,
			.ratio = p->ratio, .seed = seed, .traces = traces,
			.decide = sim_place_decision, .ctx = &decider,
		};
		struct sim_place_result result;

		rc = sim_place_run(&o, &result);
		if (rc < 0)
			break;
		if (runs)
			json_array_append_new(runs, run_json(seed, p->placers[i]->name, &result));
		else
			print_row(seed, p->placers[i]->name, &result.all);
		sim_place_result_finish(&result);
	}
	sim_place_earlier_destroy(earlier);
	return rc;
}

static void print_head(const struct simulate_place *p, const char *demand,
		       const struct sim_place_traces *traces)
{
	printf("%u hosts of %u CPUs, %u week%s, over-subscription %.2f, CPU of %s: %u rows",
	       p->num_hosts, SIM_PLACE_HOST_VCPUS, p->weeks, p->weeks == 1 ? "" : "s", p->ratio,
	       demand ? demand : "made-up traces", traces->num_rows);
	if (traces->filled || traces->dropped)
		printf(", %u values of short holes filled, %u rows dropped", traces->filled,
		       traces->dropped);
	printf("\n%4s  %-11s %10s %9s %5s %10s %8s %7s %9s %6s %6s %6s\n", "SEED", "PLACER",
	       "VIOLATIONS", "FAILOVERS", "NEW", "DISRUPTION", "ADMITTED", "REFUSED", "PROMISED",
	       "CPU", "MEMORY", "DISK");
}

static json_t *all_json(const struct simulate_place *p, const char *demand,
			const struct sim_place_traces *traces, json_t *runs)
{
	return json_pack("{s:b, s:i, s:i, s:i, s:i, s:f, s:s?, s:i, s:i, s:i, s:o}", "ok", 1,
			 "hosts", (int)p->num_hosts, "weeks", (int)p->weeks,
			 "balance_hours", (int)p->balance_hours,
			 "ahead_days", (int)p->ahead_days, "ratio", p->ratio,
			 "demand", demand, "rows", (int)traces->num_rows,
			 "filled", (int)traces->filled, "dropped", (int)traces->dropped,
			 "runs", runs);
}

static int run_seeds(struct simulate *s, const struct sim_place_traces *traces, bool is_json)
{
	json_t *runs = is_json ? json_array() : NULL, *all;
	int rc = 0;

	if (!is_json)
		print_head(&s->place, s->demand, traces);
	for (uint32_t i = 0; rc == 0 && i < s->place.num_seeds; i++)
		rc = run_seed(&s->place, s->plan.seed + i, traces, runs);
	if (rc < 0) {
		json_decref(runs);
		return rc;
	}
	if (is_json) {
		all = all_json(&s->place, s->demand, traces, runs);
		ctl_print_json(all);
		json_decref(all);
	}
	return 0;
}

int simulate_place(struct simulate *s, bool is_json, struct ebb_err *err)
{
	struct simulate_place *p = &s->place;
	struct sim_place_traces traces;
	int rc;

	for (size_t i = 0; p->num_placers == 0 && i < sizeof(default_placers) /
						       sizeof(default_placers[0]); i++)
		p->placers[i] = sim_place_placer_find(default_placers[i]);
	if (p->num_placers == 0)
		p->num_placers = sizeof(default_placers) / sizeof(default_placers[0]);
	rc = s->demand ? sim_place_traces_load(s->demand, &traces, err) :
			 sim_place_traces_make(s->plan.seed, MADE_UP_ROWS, &traces);
	if (rc < 0)
		return s->demand ? rc : ebb_err_set(err, rc, "--place: %s", strerror(-rc));
	rc = run_seeds(s, &traces, is_json);
	sim_place_traces_finish(&traces);
	return rc < 0 ? ebb_err_set(err, rc, "--place: %s", strerror(-rc)) : 0;
}
