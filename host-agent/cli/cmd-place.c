/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl place: where the VMs of a cluster should be, and why. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/table.h"
#include "placed/pacemaker.h"
#include "placed/pconf.h"
#include "placed/plan.h"
#include "util/clock.h"

#define TOOL_LIMIT_MS	10000
#define DEFAULT_STEPS	200000
#define DEFAULT_SECONDS	5

enum { KEY_FACTS = 256, KEY_CONFIG, KEY_TRACES, KEY_LOST, KEY_ADD, KEY_STEPS };

struct place_args {
	const char *facts;		/* a file; NULL: ask Pacemaker */
	const char *config;		/* of ebb-placed; NULL: its default, if it is there */
	const char *traces;		/* a folder; NULL: as configured */
	struct placed_question q;
};

static const struct argp_option options[] = {
	{ "facts", KEY_FACTS, "FILE", 0, "Read the cluster from FILE (of ebb-placed --dump) "
	  "instead of asking Pacemaker", 0 },
	{ "config", KEY_CONFIG, "FILE", 0, "Take costs of moves, samples and the folder of traces "
	  "from this configuration of ebb-placed (" PLACED_CONFIG ", if it is there)", 0 },
	{ "traces", KEY_TRACES, "DIR", 0, "Folder with the demand of earlier VMs (default: that of "
	  "ebb-placed)", 0 },
	{ "host-lost", KEY_LOST, "HOST", 0, "What if HOST died", 0 },
	{ "add", KEY_ADD, "CLASS", 0, "What if a VM of CLASS came; the others stay where they are",
	  0 },
	{ "steps", KEY_STEPS, "N", 0, "Look at N candidates at most (200000); 5 s at most without "
	  "this", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct place_args *a = state->hook;
	char *end;

	switch (key) {
	case KEY_FACTS:
		a->facts = arg;
		return 0;
	case KEY_CONFIG:
		a->config = arg;
		return 0;
	case KEY_TRACES:
		a->traces = arg;
		return 0;
	case KEY_LOST:
		a->q.lost = arg;
		return 0;
	case KEY_ADD:
		a->q.add = arg;
		return 0;
	case KEY_STEPS:
		a->q.steps = strtoull(arg, &end, 10);
		a->q.usec = 0;
		if (*end || end == arg || a->q.steps == 0 || a->q.steps > 1000000000)
			argp_error(state, "--steps=%s: allowed: 1 to 1000000000", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static uint64_t now(void *ctx)
{
	(void)ctx;
	return ebb_clock_mono_usec();
}

/* ---- for people --------------------------------------------------------------- */

static void print_hosts(const json_t *plan)
{
	static const char *const names[] = { "HOST", "STATE", ">VMS", ">CPU", ">OF", ">MEM MiB",
					     ">OF", ">RISK", NULL };
	json_t *host;
	struct table t;
	size_t i;

	table_init(&t, names);
	json_array_foreach(json_object_get(plan, "hosts"), i, host) {
		const json_t *load = json_object_get(host, "load");
		const json_t *capacity = json_object_get(host, "capacity");

		table_add(&t, "%s", ctl_str(host, "host"));
		table_add(&t, "%s", ctl_str(host, "state"));
		table_add(&t, "%lld", ctl_int(host, "vms"));
		table_add(&t, "%.2f", ctl_num(load, "cpu") / 1000);
		table_add(&t, "%.2f", ctl_num(capacity, "cpu") / 1000);
		table_add(&t, "%.0f", ctl_num(load, "memory"));
		table_add(&t, "%.0f", ctl_num(capacity, "memory"));
		table_add(&t, "%.2f", ctl_num(host, "risk"));
	}
	table_print(&t, 0);
	table_finish(&t);
}

static void add_scores(struct table *t, const json_t *vm)
{
	char text[512] = "";
	const char *host;
	json_t *score;

	json_object_foreach(json_object_get(vm, "scores"), host, score) {
		const size_t len = strlen(text);

		if (json_integer_value(score) < 0)
			snprintf(text + len, sizeof(text) - len, "%s%s never", len ? ", " : "",
				 host);
		else
			snprintf(text + len, sizeof(text) - len, "%s%s %lld", len ? ", " : "",
				 host, json_integer_value(score));
	}
	table_add(t, "%s", text);
}

static void print_vms(const json_t *plan, bool has_lost)
{
	static const char *const names[] = { "VM", "CLASS", "HOST", "PLAN", "SCORES", NULL };
	static const char *const lost[] = { "VM", "CLASS", "HOST", "PLAN", "PACEMAKER", "SCORES",
					    NULL };
	json_t *vm;
	struct table t;
	size_t i;

	table_init(&t, has_lost ? lost : names);
	json_array_foreach(json_object_get(plan, "vms"), i, vm) {
		const char *host = ctl_str(vm, "host"), *to = ctl_str(vm, "plan");

		table_add_name(&t, ctl_str(vm, "vm"));
		table_add(&t, "%s", ctl_str(vm, "class"));
		table_add(&t, "%s", host);
		table_add(&t, "%s", *to && strcmp(host, to) == 0 ? "stays" : *to ? to : "none");
		if (has_lost)
			table_add(&t, "%s", ctl_str(vm, "pacemaker"));
		add_scores(&t, vm);
	}
	table_print(&t, 0);
	table_finish(&t);
}

static void print_why(const json_t *plan)
{
	json_t *vm, *row;
	size_t i, k;

	json_array_foreach(json_object_get(plan, "vms"), i, vm) {
		const char *refusal = ctl_str(vm, "refusal");

		if (*refusal)
			printf("\n%s can be on no host: %s\n", ctl_str(vm, "vm"), refusal);
		if (!json_object_get(vm, "why"))
			continue;
		printf("\n%s\n", ctl_str(vm, "vm"));
		json_array_foreach(json_object_get(vm, "why"), k, row)
			printf("  %s: %s\n", ctl_str(row, "host"), ctl_str(row, "text"));
	}
}

static void print_plan(const json_t *plan, const struct place_args *a)
{
	const json_t *before = json_object_get(plan, "before");
	const json_t *after = json_object_get(plan, "after");

	print_hosts(plan);
	putchar('\n');
	print_vms(plan, a->q.lost);
	printf("\nviolations expected within a day: %.2f before, %.2f with the plan; %lld moves, "
	       "%lld VMs on no host\n", ctl_num(before, "risk"), ctl_num(after, "risk"),
	       ctl_int(after, "moves"), ctl_int(after, "unplaced"));
	print_why(plan);
}

/* ---- the command ---------------------------------------------------------------- */

static json_t *read_cluster(const struct place_args *a, json_t *complaints, struct ebb_err *err)
{
	const struct placed_pacemaker pacemaker = { .limit_ms = TOOL_LIMIT_MS };
	json_error_t e;
	json_t *all;

	if (!a->facts)
		return placed_pacemaker_read(&pacemaker, complaints, err);
	all = json_load_file(a->facts, 0, &e);
	if (!all)
		ebb_err_set(err, -EINVAL, "%s:%d: %s", a->facts, e.line, e.text);
	return all;
}

static void print_complaints(const json_t *complaints)
{
	const json_t *text;
	size_t i;

	json_array_foreach(complaints, i, text)
		fprintf(stderr, "ebbctl: %s\n", json_string_value(text));
}

static int make_plan(const struct ctl *ctl, const struct place_args *a,
		     const struct placed_cluster *c, json_t *complaints, struct ebb_err *err)
{
	struct placed_traces traces;
	struct placed_conf conf;
	struct place_config config;
	json_t *plan;
	int rc;

	rc = placed_conf_read(&conf, a->config, err);
	if (rc == 0)
		rc = placed_conf_check(&conf, err);
	if (rc < 0)
		return rc;
	placed_conf_place(&conf, &config);
	rc = placed_traces_read(a->traces ? a->traces : conf.traces_dir, &traces, complaints, err);
	if (rc < 0)
		return rc;
	plan = placed_plan(c, &traces, &config, &a->q, &rc, err);
	if (plan && ctl->is_json)
		ctl_print_json(plan);
	else if (plan)
		print_plan(plan, a);
	json_decref(plan);
	placed_traces_finish(&traces);
	return rc;
}

int cmd_place(struct ctl *ctl, int argc, char **argv)
{
	struct place_args a = { .q = { .steps = DEFAULT_STEPS, .now = now,
				       .usec = DEFAULT_SECONDS * 1000000ull } };
	const int num = ctl_parse(ctl, argc, argv, options, parse, &a, "[VM]", 0, 1);
	json_t *complaints = json_array(), *all;
	struct ebb_err err = { "" };
	struct placed_cluster c;
	int rc = -EIO;

	a.q.vm = num ? argv[0] : NULL;
	all = read_cluster(&a, complaints, &err);
	if (all)
		rc = placed_cluster_read(all, &c, &err);
	if (all && rc == 0) {
		print_complaints(c.complaints);
		rc = make_plan(ctl, &a, &c, complaints, &err);
		placed_cluster_finish(&c);
	}
	print_complaints(complaints);
	if (rc < 0)
		fprintf(stderr, "ebbctl: %s\n", err.text);
	json_decref(all);
	json_decref(complaints);
	return rc == 0 ? EXIT_DONE : all ? EXIT_REFUSED : a.facts ? EXIT_REFUSED : EXIT_UNREACHABLE;
}
