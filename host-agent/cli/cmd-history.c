/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl history: decisions with their reasons. */
#include <stdio.h>
#include "cli/ctl.h"
#include "cli/newest.h"
#include "cli/table.h"
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

static void add_optional(struct table *t, const json_t *row, const char *key, const char *fmt)
{
	const json_t *value = json_object_get(row, key);
	char text[32] = "";

	if (json_is_number(value))
		snprintf(text, sizeof(text), fmt[0] == 'f' ? "%.1f" : "%.0f",
			 json_number_value(value));
	table_add(t, "%s", text);
}

static void print_rows(const json_t *rows)
{
	static const char *const names[] = {"TIME",  "VM",  "EVENT",  ">NODE",
					    ">CPUS", ">MiB", ">MS", "REASON", NULL};
	struct table t;
	json_t *row;
	size_t i;

	table_init(&t, names);
	json_array_foreach(rows, i, row) {
		char when[WHEN_SIZE];

		when_print(ctl_num(row, "ts"), when);
		table_add(&t, "%s", when);
		table_add_name(&t, ctl_str(row, "vm"));
		table_add(&t, "%s", ctl_str(row, "event"));
		add_optional(&t, row, "node", "i");
		table_add(&t, "%lld", ctl_int(row, "cpus"));
		if (ctl_int(row, "bytes"))
			table_add(&t, "%lld", ctl_mib(row, "bytes"));
		else
			table_add(&t, "%s", "");
		add_optional(&t, row, "total_ms", "f");
		table_add(&t, "%s", ctl_str(row, "reason"));
	}
	table_print(&t, 0);
	table_finish(&t);
}

static double hours(const json_t *row, const char *key, double per_unit)
{
	return ctl_num(row, key) / 3600 / per_unit;
}

static void print_charge(const json_t *rows)
{
	static const char *const names[] = { "VM", "FROM", "TO", ">RESERVED CORE-H",
					     ">SPOT CORE-H", ">RESERVED GiB-H", ">SPOT GiB-H",
					     NULL };
	struct table t;
	json_t *row;
	size_t i;

	table_init(&t, names);
	json_array_foreach(rows, i, row) {
		char from[WHEN_SIZE], to[WHEN_SIZE];

		when_print(ctl_num(row, "first_ts"), from);
		when_print(ctl_num(row, "last_ts"), to);
		table_add_name(&t, ctl_str(row, "vm"));
		table_add(&t, "%s", from);
		table_add(&t, "%s", to);
		table_add(&t, "%.4f", hours(row, "reserved_core_s", 1));
		table_add(&t, "%.4f", hours(row, "spot_core_s", 1));
		table_add(&t, "%.4f", hours(row, "reserved_mib_s", 1024));
		table_add(&t, "%.4f", hours(row, "spot_mib_s", 1024));
	}
	table_print(&t, 0);
	table_finish(&t);
}

int cmd_history(struct ctl *ctl, int argc, char **argv)
{
	struct history h = { 0 };
	int num = ctl_parse(ctl, argc, argv, options, parse_option, &h, "[VM]", 0, 1);
	json_t *request, *answer;
	int rc = EXIT_DONE;

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
	answer = ctl_ask(ctl, request, &rc);
	if (!answer)
		return rc;
	if (ctl->is_json)
		ctl_print_json(answer);
	else if (h.is_charge)
		print_charge(json_object_get(answer, "charge"));
	else
		print_rows(json_object_get(answer, "history"));
	json_decref(answer);
	return EXIT_DONE;
}
