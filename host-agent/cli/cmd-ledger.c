/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl ledger: what VMs were promised, wanted and got. */
#include <stdio.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/newest.h"
#include "cli/rows.h"
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
static void add_rate(struct table *t, const json_t *row, const char *key)
{
	if (strcmp(ctl_str(row, "unit"), "usec") == 0)
		table_add(t, "%.4g%%", ctl_num(row, key) * 100 / USEC_PER_SEC);
	else if (strcmp(ctl_str(row, "resource"), "memory") == 0)
		table_add(t, "%.0f MiB", ctl_num(row, key));
	else
		table_add(t, "%.0f/s", ctl_num(row, key));
}

static void add_relative_io(struct table *t, const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	if (json_is_real(value))
		table_add(t, "%+.3f", json_real_value(value));
	else
		table_add(t, "%s", "");
}

static void add_reason(struct table *t, const json_t *row, const char *key)
{
	const char *reason = ctl_str(row, key);

	table_add(t, "%s%s%s", reason[0] ? ctl_str(row, "cause") : "", reason[0] ? ": " : "",
		  reason);
}

static void add_broken(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%lld/%lld", ctl_int(row, key), ctl_int(row, "num_intervals"));
}

static void add_last(struct table *t, const json_t *row, const char *key)
{
	if (ctl_num(row, key) > 0)
		row_when(t, row, key);
	else
		table_add(t, "%s", "");
}

static void add_metered(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.3f", ctl_num(row, key));
}

#define AMOUNTS \
	{ ">WANTED", add_units, "wanted" }, { ">DUE", add_units, "promised" }, \
	{ ">GOT", add_units, "got" }, { ">MISSING", add_units, "violated" }, \
	{ ">UNCLEAR", add_units, "unclear" }, { ">REL.IO", add_relative_io, "relative_io" }

static const struct column sums[] = {
	{ "VM", row_name, "vm" }, { "OF", row_text, "resource" }, { "FROM", row_when, "first_ts" },
	{ ">PROMISE", add_rate, "rate" }, { ">METERED", row_tenths, "metered_s" }, AMOUNTS,
	{ ">BROKEN", add_broken, "num_violations" }, { "LAST BROKEN", add_last, "broken_ts" },
	{ "WHY", add_reason, "reason" }, { NULL, NULL, NULL },
};

static const struct column intervals[] = {
	{ "TIME", row_when, "ts" }, { "VM", row_name, "vm" }, { "OF", row_text, "resource" },
	{ ">PROMISE", add_rate, "rate" }, { ">METERED", add_metered, "metered_s" }, AMOUNTS,
	{ "WHY", add_reason, "reason" }, { NULL, NULL, NULL },
};

static void print(const json_t *answer, void *ctx)
{
	const struct ledger *l = ctx;

	if (l->is_intervals)
		rows_print(json_object_get(answer, "intervals"), intervals);
	else
		rows_print(json_object_get(answer, "ledger"), sums);
}

int cmd_ledger(struct ctl *ctl, int argc, char **argv)
{
	struct ledger l = { 0 };
	int num = ctl_parse(ctl, argc, argv, options, parse_option, &l, "[VM]", 0, 1);
	json_t *request;

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
	return ctl_show(ctl, request, print, &l);
}
