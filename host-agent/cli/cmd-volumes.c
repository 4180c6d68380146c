/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl volumes: the volume server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/table.h"

#define DEFAULT_SOCKET	"/run/ebb-volumed/control.sock"

static void add_rate(struct table *t, const json_t *o, const char *key)
{
	if (json_is_null(json_object_get(o, key)))
		table_add(t, "%s", "");
	else
		table_add(t, "%lld", ctl_int(o, key));
}

static void print_server(const json_t *server)
{
	printf("storage   %s%s", !ctl_bool(server, "up") ? "down" : ctl_bool(server, "answers") ?
	       "up" : "does not answer", ctl_int(server, "restarts") ? "" : "\n");
	if (ctl_int(server, "restarts"))
		printf(", started again %lld times\n", ctl_int(server, "restarts"));
	printf("order     depth %lld, overbooked: %s\n", ctl_int(server, "depth"),
	       ctl_str(server, "overbooking"));
	printf("promised  %lld requests/s of ", ctl_int(server, "promised_iops"));
	if (ctl_int(server, "capacity_iops"))
		printf("%lld", ctl_int(server, "capacity_iops"));
	else
		printf("an unknown number (ebbctl volumes calibrate)");
	printf(", %lld bytes/s%s\n\n", ctl_int(server, "promised_bytes"),
	       ctl_bool(server, "allow_overbooking") ? "; overbooking is allowed" : "");
}

static void print_volumes(const json_t *volumes)
{
	static const char *const names[] = { "volume", "tenant", "state", ">reserve", ">reserve B",
					     ">max", ">max B", ">weight", ">penalty", "note",
					     NULL };
	struct table t;
	json_t *v;
	size_t i;

	table_init(&t, names);
	json_array_foreach(volumes, i, v) {
		table_add_name(&t, ctl_str(v, "name"));
		table_add_name(&t, ctl_str(v, "tenant"));
		table_add(&t, "%s", ctl_str(v, "state"));
		add_rate(&t, v, "reserve_iops");
		add_rate(&t, v, "reserve_bytes");
		add_rate(&t, v, "max_iops");
		add_rate(&t, v, "max_bytes");
		table_add(&t, "%lld", ctl_int(v, "weight"));
		table_add(&t, "%lld", ctl_int(v, "penalty"));
		table_add(&t, "%s", ctl_str(v, "error"));
	}
	table_print(&t, 0);
	table_finish(&t);
}

/* Why most of what was violated was; "": nothing was. */
static const char *reason(const json_t *counters)
{
	const long long early = ctl_int(counters, "others-early");
	const long long promised = ctl_int(counters, "others-promised");
	const long long slow = ctl_int(counters, "slow");

	if (!early && !promised && !slow)
		return "";
	if (early >= promised && early >= slow)
		return "others";
	return promised >= slow ? "overbooked" : "slow";
}

/* Over the whole time in which there was work, for people; programs take differences. */
static void print_meters(const json_t *meters)
{
	static const char *const names[] = { "volume", "tenant", ">busy s", ">promised", ">issued",
					     ">late", ">mean ms late", ">p99", ">max", ">violated",
					     ">overdue", "why", ">waiting", ">at disk", ">errors",
					     NULL };
	struct table t;
	json_t *m;
	size_t i;

	table_init(&t, names);
	json_array_foreach(meters, i, m) {
		const json_t *c = json_object_get(m, "counters");
		const json_t *delay = json_object_get(m, "delay");

		table_add_name(&t, ctl_str(m, "name"));
		table_add_name(&t, ctl_str(m, "tenant"));
		table_add(&t, "%.1f", ctl_int(c, "busy-us") / 1e6);
		table_add(&t, "%.0f", ctl_int(c, "promised-microunits") / 1e6);
		table_add(&t, "%lld", ctl_int(c, "issued-units"));
		table_add(&t, "%lld", ctl_int(c, "late-units"));
		table_add(&t, "%.1f", ctl_int(delay, "mean-ns") / 1e6);
		table_add(&t, "%.1f", ctl_int(delay, "p99-ns") / 1e6);
		table_add(&t, "%.1f", ctl_int(delay, "max-ns") / 1e6);
		table_add(&t, "%lld", ctl_int(c, "violated"));
		table_add(&t, "%lld", ctl_int(c, "overdue"));
		table_add(&t, "%s", reason(c));
		table_add(&t, "%lld", ctl_int(m, "queued"));
		table_add(&t, "%lld", ctl_int(m, "in-flight"));
		table_add(&t, "%lld", ctl_int(c, "errors"));
	}
	table_print(&t, 0);
	table_finish(&t);
}

static void print_points(const json_t *points)
{
	static const char *const names[] = { ">depth", ">requests/s", ">mean us", ">p99 us", NULL };
	struct table t;
	json_t *p;
	size_t i;

	table_init(&t, names);
	json_array_foreach(points, i, p) {
		table_add(&t, "%lld", ctl_int(p, "depth"));
		table_add(&t, "%lld", ctl_int(p, "iops"));
		table_add(&t, "%lld", ctl_int(p, "mean_us"));
		table_add(&t, "%lld", ctl_int(p, "p99_us"));
	}
	table_print(&t, 0);
	table_finish(&t);
}

static void print_answer(const char *verb, const json_t *answer)
{
	const json_t *volume = json_object_get(answer, "volume");

	if (strcmp(verb, "meters") == 0) {
		print_meters(json_object_get(answer, "meters"));
	} else if (strcmp(verb, "calibrate") == 0) {
		print_points(json_object_get(answer, "points"));
		putchar('\n');
		print_server(json_object_get(answer, "server"));
	} else if (volume) {
		json_t *one = json_pack("[O]", volume);

		print_volumes(one);
		json_decref(one);
	} else {
		if (json_object_get(answer, "server"))
			print_server(json_object_get(answer, "server"));
		if (json_object_get(answer, "volumes"))
			print_volumes(json_object_get(answer, "volumes"));
	}
}

/* "key=value" into a request: whole numbers as such, everything else as text. */
static int add_values(json_t *request, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		char *eq = strchr(argv[i], '='), *end;
		long long number;

		if (!eq || eq == argv[i]) {
			fprintf(stderr, "ebbctl volumes: \"%s\" is not of the form key=value\n",
				argv[i]);
			return EXIT_USAGE;
		}
		*eq = '\0';
		number = strtoll(eq + 1, &end, 10);
		json_object_set_new(request, argv[i], eq[1] && !*end ? json_integer(number) :
				    json_string(eq + 1));
	}
	return EXIT_DONE;
}

static const struct verb {
	const char *name, *cmd;
	int names;			/* how many names of volumes: 0, 1, or -1 for at most one */
	bool has_values;
} verbs[] = {
	{ "list", "volumes", -1, false },
	{ "meters", "meters", -1, false },
	{ "set", "volume-set", 1, true },
	{ "add", "volume-add", 1, true },
	{ "remove", "volume-remove", 1, false },
	{ "scheduler", "scheduler", 0, true },
	{ "calibrate", "calibrate", 0, true },
	{ NULL, NULL, 0, false },
};

static int make_request(const struct verb *v, int num, char **argv, json_t **ret)
{
	json_t *request = json_pack("{s:s}", "cmd", v->cmd);
	int rc = EXIT_DONE, used = v->names > 0 || (v->names < 0 && num > 0);

	if (num < used || (!v->has_values && num > used)) {
		fprintf(stderr, "ebbctl volumes %s: wrong number of arguments\n", v->name);
		rc = EXIT_USAGE;
	} else {
		if (used)
			json_object_set_new(request, "volume", json_string(argv[0]));
		rc = add_values(request, num - used, argv + used);
	}
	if (rc == EXIT_DONE)
		*ret = request;
	else
		json_decref(request);
	return rc;
}

int cmd_volumes(struct ctl *ctl, int argc, char **argv)
{
	const char *env = getenv("EBB_VOLUMED_SOCKET");
	const struct verb *v = verbs;
	json_t *request, *answer;
	int num, rc;

	/* Another server than that of all other commands; --socket says so, before or after. */
	ctl->server = "ebb-volumed";
	if (!ctl->has_socket)
		ctl->client.path = env && *env ? env : DEFAULT_SOCKET;
	num = ctl_parse(ctl, argc, argv, NULL, NULL, NULL,
			"[list|meters [VOLUME]]\n"
			"set VOLUME KEY=VALUE...\n"
			"add VOLUME tenant=TENANT file=PATH [KEY=VALUE...]\n"
			"remove VOLUME\n"
			"scheduler [depth=N] [overbooking=proportional|penalty]\n"
			"calibrate file=PATH [format=raw|qcow2]", 0, 64);
	while (num && v->name && strcmp(v->name, argv[0]) != 0)
		v++;
	if (!v->name) {
		fprintf(stderr, "ebbctl volumes: there is no \"%s\"\n"
			"  ebbctl volumes --help lists what there is\n", argv[0]);
		return EXIT_USAGE;
	}
	rc = make_request(v, num ? num - 1 : 0, argv + 1, &request);
	if (rc != EXIT_DONE)
		return rc;
	answer = ctl_ask(ctl, request, &rc);
	if (!answer)
		return rc;
	if (ctl->is_json)
		ctl_print_json(answer);
	else
		print_answer(v->name, answer);
	json_decref(answer);
	return EXIT_DONE;
}
