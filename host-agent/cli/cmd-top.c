/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl top: what the VMs hold and do, again and again. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>
#include "cli/ctl.h"
#include "cli/table.h"
#include "util/clock.h"

/* An ebbd that restarts is waited for this long. */
#define PATIENCE_USEC	10000000ull

struct top {
	double interval_s;
	long count;			/* 0: for ever */
	json_t *last; /* uuid -> { at_s, committed, aborted } of the last report */
};

static const struct argp_option options[] = {
	{ "interval", 'i', "SECONDS", 0, "Time between two looks, 0.01 to 3600 (default 1)", 0 },
	{ "count", 'n', "N", 0, "End after N looks (default: never)", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct top *t = state->hook;
	char *end;

	switch (key) {
	case 'i':
		t->interval_s = strtod(arg, &end);
		/* Written so that NaN is refused, too. */
		if (end == arg || *end || !(t->interval_s >= 0.01 && t->interval_s <= 3600))
			argp_error(state, "--interval=%s: allowed: 0.01 to 3600", arg);
		return 0;
	case 'n':
		t->count = strtol(arg, &end, 10);
		if (end == arg || *end || t->count < 1)
			argp_error(state, "--count=%s: allowed: 1 or more", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Per second since the report before; -1 when that is not known. */
static double rate(struct top *t, const json_t *vm, double now_s, const char *key)
{
	const json_t *told = json_object_get(vm, "telemetry");
	const json_t *last = json_object_get(t->last, ctl_str(vm, "uuid"));
	double at_s = now_s - ctl_num(told, "age_ms") / 1000, span;

	if (!json_is_object(told) || !last)
		return -1;
	span = at_s - ctl_num(last, "at_s");
	if (span < 0.02 || ctl_int(told, key) < ctl_int(last, key))
		return -1;
	return (double)(ctl_int(told, key) - ctl_int(last, key)) / span;
}

static void remember(struct top *t, const json_t *vm, double now_s)
{
	const json_t *told = json_object_get(vm, "telemetry");

	if (!json_is_object(told))
		return;
	json_object_set_new(t->last, ctl_str(vm, "uuid"),
			    json_pack("{s:f, s:I, s:I}", "at_s",
				      now_s - ctl_num(told, "age_ms") / 1000, "committed",
				      ctl_int(told, "committed"), "aborted",
				      ctl_int(told, "aborted")));
}

static void add_rate(struct table *table, double value)
{
	if (value < 0)
		table_add(table, "%s", "");
	else
		table_add(table, "%.0f", value);
}

/* One line, where the host has shared cores. */
static void print_shared(const json_t *shared)
{
	if (json_is_object(shared))
		printf("shared    %lld threads %lld%% used, %lld hot, on %lld nothing helps; "
		       "%lld VMs with %lld vCPUs, %lld throttled%s\n", ctl_int(shared, "threads"),
		       ctl_int(shared, "use_permille") / 10, ctl_int(shared, "hot_threads"),
		       ctl_int(shared, "stuck_threads"), ctl_int(shared, "vms"),
		       ctl_int(shared, "vcpus"), ctl_int(shared, "throttled_vms"),
		       ctl_bool(shared, "hot") ? "; the host is hot" : "");
}

static void print_table(struct top *t, const json_t *answer, double now_s)
{
	static const char *const names[] = {"VM",      "STATE",	    ">HELD",    ">LIMIT",
					    ">TARGET", ">MEM MiB",  ">MEM LIM", ">WORKERS",
					    ">TPS",    ">ABORTS/S",
					    ">P50 us", ">P99 us",  ">CPU %", NULL};
	struct winsize size = { 0 };
	struct table table;
	json_t *vm;
	size_t i;

	table_init(&table, names);
	json_array_foreach(json_object_get(answer, "vms"), i, vm) {
		const json_t *told = json_object_get(vm, "telemetry");

		table_add_name(&table, ctl_str(vm, "name"));
		table_add(&table, "%s", ctl_str(vm, "state"));
		table_add(&table, "%lld", ctl_int(vm, "cpus_held"));
		table_add(&table, "%lld", ctl_int(vm, "cpus_limit"));
		table_add(&table, "%lld", ctl_int(vm, "cpus_target"));
		table_add(&table, "%lld", ctl_mib(vm, "mem_held_bytes"));
		table_add(&table, "%lld", ctl_mib(vm, "mem_limit_bytes"));
		if (json_is_object(told))
			table_add(&table, "%lld", ctl_int(told, "workers"));
		else
			table_add(&table, "%s", "");
		add_rate(&table, rate(t, vm, now_s, "committed"));
		add_rate(&table, rate(t, vm, now_s, "aborted"));
		add_rate(&table, json_is_object(told) ? (double)ctl_int(told, "p50_us") : -1);
		add_rate(&table, json_is_object(told) ? (double)ctl_int(told, "p99_us") : -1);
		add_rate(&table, json_is_object(told) ? ctl_num(told, "cpu_permille") / 10 : -1);
		remember(t, vm, now_s);
	}
	if (isatty(STDOUT_FILENO)) {
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
		fputs("\033[H\033[2J", stdout);
	}
	table_print(&table, size.ws_col);
	print_shared(json_object_get(answer, "shared"));
	ctl_print_pressure(answer);
	putchar('\n');
	fflush(stdout);
	table_finish(&table);
}

static void print_line(const json_t *answer, double t_s)
{
	json_t *line = json_pack("{s:f, s:O, s:O, s:O?, s:O?, s:O?}", "t_s", t_s, "ts",
				 json_object_get(answer, "ts"), "vms",
				 json_object_get(answer, "vms"), "violations",
				 json_object_get(answer, "violations"), "moves",
				 json_object_get(answer, "moves"), "shared",
				 json_object_get(answer, "shared"));

	ctl_print_json(line);
	json_decref(line);
}

static void sleep_until(uint64_t usec)
{
	const struct timespec ts = { .tv_sec = usec / 1000000, .tv_nsec = usec % 1000000 * 1000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		;
}

int cmd_top(struct ctl *ctl, int argc, char **argv)
{
	struct top t = { .interval_s = 1 };
	uint64_t start, heard, next;
	int rc = EXIT_DONE;

	ctl_parse(ctl, argc, argv, options, parse_option, &t, "", 0, 0);
	t.last = json_object();
	start = heard = next = ebb_clock_mono_usec();
	for (long n = 0; t.count == 0 || n < t.count; n++) {
		json_t *request = json_pack("{s:s}", "cmd", "vms"), *answer;
		int error = 0;
		double t_s;

		sleep_until(next);
		next += (uint64_t)(t.interval_s * 1000000);
		/* At first silence is an error; later ebbd may just be restarting. */
		answer = n == 0 ? ctl_ask(ctl, request, &rc)
				: client_ask(&ctl->client, request, &error);
		if (!answer && (n == 0 || ebb_clock_mono_usec() - heard > PATIENCE_USEC)) {
			if (n)
				fprintf(stderr, "ebbctl: ebbd has gone: %s\n", strerror(error));
			rc = n ? EXIT_UNREACHABLE : rc;
			break;
		}
		if (!answer)
			continue;
		heard = ebb_clock_mono_usec();
		t_s = (double)(heard - start) / 1000000;
		if (ctl->is_json)
			print_line(answer, t_s);
		else
			print_table(&t, answer, t_s);
		json_decref(answer);
		/* Nobody would see the next line; main() says why. */
		if (ferror(stdout))
			break;
		/* Late: do not make up for what was missed. */
		if (next < heard)
			next = heard;
	}
	json_decref(t.last);
	return rc;
}
