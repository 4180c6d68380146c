/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl volumes: the volume server. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/rows.h"

#define DEFAULT_SOCKET	"/run/ebb-volumed/control.sock"

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

static const struct column volumes[] = {
	{ "volume", row_name, "name" }, { "tenant", row_name, "tenant" },
	{ "state", row_text, "state" }, { ">reserve", row_int_if, "reserve_iops" },
	{ ">reserve B", row_int_if, "reserve_bytes" }, { ">max", row_int_if, "max_iops" },
	{ ">max B", row_int_if, "max_bytes" }, { ">weight", row_int, "weight" },
	{ ">penalty", row_int, "penalty" }, { "note", row_text, "error" }, { NULL, NULL, NULL },
};

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

static void add_reason(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%s", reason(json_object_get(row, key)));
}

static void add_millionths(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.1f", json_integer_value(row_get(row, key)) / 1e6);
}

static void add_units(struct table *t, const json_t *row, const char *key)
{
	table_add(t, "%.0f", json_integer_value(row_get(row, key)) / 1e6);
}

/* Over the whole time in which there was work, for people; programs take differences. */
static const struct column meters[] = {
	{ "volume", row_name, "name" }, { "tenant", row_name, "tenant" },
	{ ">busy s", add_millionths, "counters.busy-us" },
	{ ">promised", add_units, "counters.promised-microunits" },
	{ ">issued", row_int, "counters.issued-units" },
	{ ">late", row_int, "counters.late-units" },
	{ ">mean ms late", add_millionths, "delay.mean-ns" },
	{ ">p99", add_millionths, "delay.p99-ns" }, { ">max", add_millionths, "delay.max-ns" },
	{ ">violated", row_int, "counters.violated" }, { ">overdue", row_int, "counters.overdue" },
	{ "why", add_reason, "counters" }, { ">waiting", row_int, "queued" },
	{ ">at disk", row_int, "in-flight" }, { ">errors", row_int, "counters.errors" },
	{ NULL, NULL, NULL },
};

static const struct column attachments[] = {
	{ "attachment", row_name, "name" }, { "state", row_text, "state" },
	{ "fenced by", row_text, "fenced_by" }, { "export", row_name, "export" },
	{ NULL, NULL, NULL },
};

static void print_access(const json_t *access)
{
	printf("generation %lld\n\n", ctl_int(access, "generation"));
	rows_print(json_object_get(access, "attachments"), attachments);
}

static const struct column points[] = {
	{ ">depth", row_int, "depth" }, { ">requests/s", row_int, "iops" },
	{ ">mean us", row_int, "mean_us" }, { ">p99 us", row_int, "p99_us" },
	{ NULL, NULL, NULL },
};

static void print_answer(const json_t *answer, void *ctx)
{
	const char *verb = ctx;
	const json_t *volume = json_object_get(answer, "volume");

	if (strcmp(verb, "meters") == 0) {
		rows_print(json_object_get(answer, "meters"), meters);
	} else if (strcmp(verb, "calibrate") == 0) {
		rows_print(json_object_get(answer, "points"), points);
		putchar('\n');
		print_server(json_object_get(answer, "server"));
	} else if (json_object_get(answer, "access")) {
		print_access(json_object_get(answer, "access"));
	} else if (volume) {
		json_t *one = json_pack("[O]", volume);

		rows_print(one, volumes);
		json_decref(one);
	} else {
		if (json_object_get(answer, "server"))
			print_server(json_object_get(answer, "server"));
		if (json_object_get(answer, "volumes"))
			rows_print(json_object_get(answer, "volumes"), volumes);
	}
}

/* Its value is a name, and one of digits alone is no number. */
static bool is_name(const char *key)
{
	return strcmp(key, "attachment") == 0 || strcmp(key, "by") == 0 ||
	       strcmp(key, "owner") == 0;
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
		json_object_set_new(request, argv[i], eq[1] && !*end && !is_name(argv[i]) ?
				    json_integer(number) : json_string(eq + 1));
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
	{ "attachments", "attachments", 1, false },
	{ "attach", "attach", 1, true },
	{ "detach", "detach", 1, true },
	{ "fence", "fence", 1, true },
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
	json_t *request;
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
			"attachments VOLUME\n"
			"attach|detach VOLUME attachment=NAME\n"
			"fence VOLUME attachment=NAME generation=N [by=NAME]\n"
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
	return ctl_show(ctl, request, print_answer, (void *)v->name);
}
