/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl ledger: what was promised to VMs, and what they wanted and got. */
#include <stdio.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/newest.h"
#include "cli/table.h"
#include "cli/when.h"

#define USEC_PER_SEC	1e6

struct ledger {
	struct newest newest;
	bool is_intervals;
};

static const struct argp_option options[] = {
	{ "since", NEWEST_SINCE, "WHEN", 0, WHEN_SINCE_HELP, 0 },
	{ "intervals", 'i', NULL, 0, "Each interval in place of sums", 0 },
	{ "limit", NEWEST_LIMIT, "N", 0, "The newest N intervals, 1 to 100000 (default 50)", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct ledger *l = state->hook;

	if (key != 'i')
		return newest_parse(key, arg, state, &l->newest);
	l->is_intervals = true;
	return 0;
}

/* CPU time in seconds, all else in its own unit. */
static void add_units(struct table *t, const json_t *row, const char *key)
{
	if (strcmp(ctl_str(row, "unit"), "usec") == 0)
		table_add(t, "%.3f", ctl_num(row, key) / USEC_PER_SEC);
	else
		table_add(t, "%.0f", ctl_num(row, key));
}

/* CPU time for each second is a part of a core; a cache is promised by its size. */
static void add_rate(struct table *t, const json_t *row)
{
	if (strcmp(ctl_str(row, "unit"), "usec") == 0)
		table_add(t, "%.4g%%", ctl_num(row, "rate") * 100 / USEC_PER_SEC);
	else if (strcmp(ctl_str(row, "resource"), "memory") == 0)
		table_add(t, "%.0f MiB", ctl_num(row, "rate"));
	else
		table_add(t, "%.0f/s", ctl_num(row, "rate"));
}

static void add_relative_io(struct table *t, const json_t *row)
{
	const json_t *value = json_object_get(row, "relative_io");

	if (json_is_real(value))
		table_add(t, "%+.3f", json_real_value(value));
	else
		table_add(t, "%s", "");
}

static void add_amounts(struct table *t, const json_t *row)
{
	static const char *const keys[] = {
		"wanted", "promised", "got", "violated", "unclear", NULL,
	};

	for (const char *const *key = keys; *key; key++)
		add_units(t, row, *key);
}

static void add_reason(struct table *t, const json_t *row)
{
	const char *reason = ctl_str(row, "reason");

	table_add(t, "%s%s%s", reason[0] ? ctl_str(row, "cause") : "", reason[0] ? ": " : "",
		  reason);
}

static void print_sums(const json_t *rows)
{
	static const char *const names[] = {
		"VM", "OF", "FROM", ">PROMISE", ">METERED", ">WANTED", ">DUE", ">GOT", ">MISSING",
		">UNCLEAR", ">REL.IO", ">BROKEN", "LAST BROKEN", "WHY", NULL,
	};
	struct table t;
	json_t *row;
	size_t i;

	table_init(&t, names);
	json_array_foreach(rows, i, row) {
		char from[WHEN_SIZE], broken[WHEN_SIZE] = "";

		when_print(ctl_num(row, "first_ts"), from);
		if (ctl_num(row, "broken_ts") > 0)
			when_print(ctl_num(row, "broken_ts"), broken);
		table_add_name(&t, ctl_str(row, "vm"));
		table_add(&t, "%s", ctl_str(row, "resource"));
		table_add(&t, "%s", from);
		add_rate(&t, row);
		table_add(&t, "%.1f", ctl_num(row, "metered_s"));
		add_amounts(&t, row);
		add_relative_io(&t, row);
		table_add(&t, "%lld/%lld", ctl_int(row, "num_violations"),
			  ctl_int(row, "num_intervals"));
		table_add(&t, "%s", broken);
		add_reason(&t, row);
	}
	table_print(&t, 0);
	table_finish(&t);
}

static void print_intervals(const json_t *rows)
{
	static const char *const names[] = {
		"TIME", "VM", "OF", ">PROMISE", ">METERED", ">WANTED", ">DUE", ">GOT", ">MISSING",
		">UNCLEAR", ">REL.IO", "WHY", NULL,
	};
	struct table t;
	json_t *row;
	size_t i;

	table_init(&t, names);
	json_array_foreach(rows, i, row) {
		char when[WHEN_SIZE];

		when_print(ctl_num(row, "ts"), when);
		table_add(&t, "%s", when);
		table_add_name(&t, ctl_str(row, "vm"));
		table_add(&t, "%s", ctl_str(row, "resource"));
		add_rate(&t, row);
		table_add(&t, "%.3f", ctl_num(row, "metered_s"));
		add_amounts(&t, row);
		add_relative_io(&t, row);
		add_reason(&t, row);
	}
	table_print(&t, 0);
	table_finish(&t);
}

int cmd_ledger(struct ctl *ctl, int argc, char **argv)
{
	struct ledger l = { 0 };
	int num = ctl_parse(ctl, argc, argv, options, parse_option, &l, "[VM]", 0, 1);
	json_t *request, *answer;
	int rc = EXIT_DONE;

	if (l.newest.limit && !l.is_intervals) {
		fputs("ebbctl ledger: --limit chooses intervals; it needs --intervals\n", stderr);
		return EXIT_USAGE;
	}
	request = json_pack("{s:s}", "cmd", "ledger");
	if (num)
		json_object_set_new(request, "vm", json_string(argv[0]));
	newest_ask(&l.newest, request);
	if (l.is_intervals)
		json_object_set_new(request, "intervals", json_true());
	answer = ctl_ask(ctl, request, &rc);
	if (!answer)
		return rc;
	if (ctl->is_json)
		ctl_print_json(answer);
	else if (l.is_intervals)
		print_intervals(json_object_get(answer, "intervals"));
	else
		print_sums(json_object_get(answer, "ledger"));
	json_decref(answer);
	return EXIT_DONE;
}
