/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl history: decisions with their reasons. */
#include <stdio.h>
#include "cli/ctl.h"
#include "cli/newest.h"
#include "cli/rows.h"
#include "cli/when.h"

struct history {
	struct newest newest;
	const char *event;
	bool is_charge;
};

static const struct argp_option options[] = {
	{"since", NEWEST_SINCE, "WHEN", 0, WHEN_SINCE_HELP, 0},
	{"limit", NEWEST_LIMIT, "N", 0, "The newest N, 1 to 100000 (default 50)", 0},
	{"event", 'e', "NAME", 0,
	 "Only events of this name (grant, release, demand, force, mem_demand, ...)", 0},
	{"charge", 'C', NULL, 0,
	 "What each VM held, by class, in place of decisions: core-hours and GiB-hours", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct history *h = state->hook;

	switch (key) {
	case 'e':
		h->event = arg;
		return 0;
	case 'C':
		h->is_charge = true;
		return 0;
	default:
		return newest_parse(key, arg, state, &h->newest);
	}
}

/* Nothing for a decision that is not about memory. */
static void add_mib(struct table *t, const json_t *row, const char *key)
{
	if (ctl_int(row, key))
		row_mib(t, row, key);
	else
		table_add(t, "%s", "");
}

static const struct column decisions[] = {
	{ "TIME", row_when, "ts" }, { "VM", row_name, "vm" }, { "EVENT", row_text, "event" },
	{ ">NODE", row_int_if, "node" }, { ">CPUS", row_int, "cpus" },
	{ ">MiB", add_mib, "bytes" }, { ">MS", row_tenths_if, "total_ms" },
	{ "REASON", row_text, "reason" }, { NULL, NULL, NULL },
};

static void add_core_hours(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.4f", ctl_num(row, key) / 3600);
}

static void add_gib_hours(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.4f", ctl_num(row, key) / 3600 / 1024);
}

static const struct column charges[] = {
	{ "VM", row_name, "vm" }, { "FROM", row_when, "first_ts" }, { "TO", row_when, "last_ts" },
	{ ">RESERVED CORE-H", add_core_hours, "reserved_core_s" },
	{ ">SPOT CORE-H", add_core_hours, "spot_core_s" },
	{ ">RESERVED GiB-H", add_gib_hours, "reserved_mib_s" },
	{ ">SPOT GiB-H", add_gib_hours, "spot_mib_s" }, { NULL, NULL, NULL },
};

static void print(const json_t *answer, void *ctx)
{
	const struct history *h = ctx;

	if (h->is_charge)
		rows_print(json_object_get(answer, "charge"), charges);
	else
		rows_print(json_object_get(answer, "history"), decisions);
}

int cmd_history(struct ctl *ctl, int argc, char **argv)
{
	struct history h = { 0 };
	int num = ctl_parse(ctl, argc, argv, options, parse_option, &h, "[VM]", 0, 1);
	json_t *request;

	if (h.is_charge && (h.newest.limit || h.event)) {
		fputs("ebbctl history: --limit and --event choose decisions, --charge has none\n",
		      stderr);
		return EXIT_USAGE;
	}
	request = json_pack("{s:s}", "cmd", "history");
	if (h.is_charge)
		json_object_set_new(request, "charge", json_true());
	if (num)
		json_object_set_new(request, "vm", json_string(argv[0]));
	if (h.event)
		json_object_set_new(request, "event", json_string(h.event));
	newest_ask(&h.newest, request);
	return ctl_show(ctl, request, print, &h);
}
