/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl vms and set. */
#include <stdio.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/rows.h"

/* "2/4 1/1": held and limit of each node. */
static void add_nodes(struct table *t, const json_t *vm, const char *key)
{
	char text[128] = "";
	json_t *node;
	size_t i, at = 0;

	json_array_foreach(json_object_get(vm, key), i, node) {
		if (at < sizeof(text))
			at += snprintf(text + at, sizeof(text) - at, "%s%lld/%lld", i ? " " : "",
				       ctl_int(node, "held"), ctl_int(node, "limit"));
	}
	table_add(t, "%s", text);
}

/* "128/512": MiB held and limit; "": no pool. */
static void add_memory(struct table *t, const json_t *vm, const char *key)
{
	if (ctl_int(vm, "mem_ceiling_bytes") || ctl_int(vm, key))
		table_add(t, "%lld/%lld", ctl_mib(vm, key), ctl_mib(vm, "mem_limit_bytes"));
	else
		table_add(t, "%s", "");
}

/* The shortest deadline of its demands, or 0. */
static json_int_t deadline_of(const json_t *vm)
{
	json_int_t least = 0;
	json_t *node;
	size_t i;

	json_array_foreach(json_object_get(vm, "nodes"), i, node) {
		json_int_t ms = ctl_int(node, "deadline_ms");

		if (ms && (!least || ms < least))
			least = ms;
	}
	return least;
}

static void format_note(const json_t *vm, char *buf, size_t size)
{
	json_int_t held = ctl_int(vm, "cpus_held"), limit = ctl_int(vm, "cpus_limit");
	const char *error = ctl_str(vm, "error"), *link = ctl_str(vm, "link_error");

	buf[0] = '\0';
	if (error[0])
		snprintf(buf, size, "%s", error);
	else if (strcmp(ctl_str(vm, "state"), "running") != 0)
		return;
	else if (strcmp(ctl_str(vm, "link"), "up") != 0)
		snprintf(buf, size, "no link to its device%s%s", link[0] ? ": " : "", link);
	else if (!ctl_bool(vm, "driver"))
		snprintf(buf, size, "no driver in the guest");
	else if (deadline_of(vm))
		snprintf(buf, size, "must give back within %lld ms", deadline_of(vm));
	else if (ctl_int(vm, "mem_deadline_ms"))
		snprintf(buf, size, "must give memory back within %lld ms",
			 ctl_int(vm, "mem_deadline_ms"));
	else if (ctl_int(vm, "mem_unconfirmed_bytes"))
		snprintf(buf, size, "has not confirmed %lld MiB that were revoked",
			 ctl_mib(vm, "mem_unconfirmed_bytes"));
	else if (held < limit)
		snprintf(buf, size, "may take %lld more", limit - held);
}

/* The first volume whose promise is not in force, appended to the note. */
static void add_volume_note(const json_t *vm, char *buf, size_t size)
{
	const size_t len = strlen(buf);
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(vm, "volumes"), i, v) {
		if (!ctl_str(v, "error")[0])
			continue;
		snprintf(buf + len, size - len, "%svolume %s: %s", len ? "; " : "",
			 ctl_str(v, "volume"), ctl_str(v, "error"));
		return;
	}
}

static void add_note(struct table *t, const json_t *vm, const char *key)
{
	char note[512];

	(void)key;
	format_note(vm, note, sizeof(note));
	add_volume_note(vm, note, sizeof(note));
	table_add(t, "%s", note);
}

static const struct column list[] = {
	{ "VM", row_name, "name" }, { "STATE", row_text, "state" }, { "CLASS", row_text, "class" },
	{ ">WEIGHT", row_int, "weight" }, { ">HELD", row_int, "cpus_held" },
	{ ">LIMIT", row_int, "cpus_limit" }, { ">TARGET", row_int, "cpus_target" },
	{ ">MIN", row_int, "floor" }, { ">MAX", row_int, "ceiling" },
	{ "NODES", add_nodes, "nodes" }, { ">MEM MiB", add_memory, "mem_held_bytes" },
	{ "NOTE", add_note, NULL }, { NULL, NULL, NULL },
};

static const struct column vcpus[] = {
	{ ">VCPU", row_int, "vcpu" }, { ">NODE", row_int, "node" }, { "STATE", row_text, "state" },
	{ ">CORE", row_int_if, "core" }, { ">RUNS ON", row_int_if, "runs_on" },
	{ NULL, NULL, NULL },
};

static const struct column memory[] = {
	{ ">NODE", row_int, "node" }, { ">HOST NODE", row_int, "host_node" },
	{ ">MIN", row_mib, "mem_floor_bytes" }, { ">MAX", row_mib, "mem_ceiling_bytes" },
	{ ">HELD", row_mib, "mem_held_bytes" }, { ">LIMIT", row_mib, "mem_limit_bytes" },
	{ ">TARGET", row_mib, "mem_target_bytes" },
	{ ">UNCONFIRMED", row_mib, "mem_unconfirmed_bytes" }, { NULL, NULL, NULL },
};

static void print_memory(const json_t *vm)
{
	if (!ctl_int(vm, "mem_ceiling_bytes") && !ctl_int(vm, "mem_held_bytes"))
		return;
	printf("memory     %lld MiB held, %lld allowed, %lld planned; weight %lld, deadline %lld "
	       "ms, "
	       "memory cgroup %lld MiB\n\n", ctl_mib(vm, "mem_held_bytes"),
	       ctl_mib(vm, "mem_limit_bytes"), ctl_mib(vm, "mem_target_bytes"),
	       ctl_int(vm, "mem_weight"), ctl_int(vm, "mem_sla_deadline_ms"),
	       ctl_mib(vm, "mem_cgroup_bytes"));
	rows_print(json_object_get(vm, "nodes"), memory);
}

static void print_telemetry(const json_t *t)
{
	if (!json_is_object(t))
		return;
	printf("telemetry  %lld workers, %lld committed, %lld aborted, %lld failed, p50 %lld us, "
	       "p99 %lld us, %.0f ms ago\n", ctl_int(t, "workers"), ctl_int(t, "committed"),
	       ctl_int(t, "aborted"), ctl_int(t, "failed"), ctl_int(t, "p50_us"),
	       ctl_int(t, "p99_us"), ctl_num(t, "age_ms"));
}

static const struct {
	const char *key, *words;
} io_words[] = {
	{ "reserve_iops", "requests/s promised" }, { "reserve_bytes", "bytes/s promised" },
	{ "max_iops", "requests/s at most" }, { "max_bytes", "bytes/s at most" },
};

/* Strong and weak metering ("SQLVM", section 3.2). */
static void print_meter(const json_t *m)
{
	if (!json_is_object(m))
		return;
	printf("           %lld units got of %lld due, %lld missing in %lld of %lld intervals; "
	       "%lld overdue\n", ctl_int(m, "got"), ctl_int(m, "promised"),
	       ctl_int(m, "violated"), ctl_int(m, "num_violations"), ctl_int(m, "num_intervals"),
	       ctl_int(m, "overdue"));
	printf("           issued after their deadlines: mean %.1f ms, half within %.1f, "
	       "99%% within %.1f, at most %.1f\n", ctl_num(m, "delay_mean_ms"),
	       ctl_num(m, "delay_p50_ms"), ctl_num(m, "delay_p99_ms"),
	       ctl_num(m, "delay_max_ms"));
	if (ctl_int(m, "system") > 0)
		printf("           %lld units more were reads beyond its promised cache, charged "
		       "to the system\n", ctl_int(m, "system"));
}

/* The disks on the volume server, and what the SLA says of them. */
static void print_volumes(const json_t *vm)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(vm, "volumes"), i, v) {
		printf("volume     %s:", ctl_str(v, "volume"));
		for (size_t k = 0; k < sizeof(io_words) / sizeof(io_words[0]); k++)
			if (ctl_int(v, io_words[k].key))
				printf(" %lld %s,", ctl_int(v, io_words[k].key), io_words[k].words);
		printf(" weight %lld, penalty %lld\n", ctl_int(v, "weight"), ctl_int(v, "penalty"));
		if (strcmp(ctl_str(v, "state"), "none") != 0)
			printf("           %s%s%s\n", ctl_str(v, "state"),
			       ctl_str(v, "error")[0] ? ": " : "", ctl_str(v, "error"));
		print_meter(json_object_get(v, "meter"));
	}
}

static void print_one(const json_t *vm)
{
	char note[512];

	format_note(vm, note, sizeof(note));
	printf("VM         %s (%s)\n", ctl_str(vm, "name"), ctl_str(vm, "uuid"));
	printf("state      %s%s%s\n", ctl_str(vm, "state"), note[0] ? ": " : "", note);
	printf("SLA        %s, weight %lld, deadline %lld ms, %lld to %lld CPUs\n",
	       ctl_str(vm, "class"), ctl_int(vm, "weight"), ctl_int(vm, "deadline_ms"),
	       ctl_int(vm, "floor"), ctl_int(vm, "ceiling"));
	printf("CPUs       %lld held, %lld allowed, %lld planned; %lld lent\n",
	       ctl_int(vm, "cpus_held"), ctl_int(vm, "cpus_limit"), ctl_int(vm, "cpus_target"),
	       ctl_int(vm, "cpus_lent"));
	printf("link       %s, driver %s\n", ctl_str(vm, "link"),
	       !ctl_bool(vm, "driver")   ? "not running" :
	       ctl_bool(vm, "can_lend") ? "running, can lend" : "running");
	print_telemetry(json_object_get(vm, "telemetry"));
	print_volumes(vm);
	print_memory(vm);
	putchar('\n');
	rows_print(json_object_get(vm, "vcpus"), vcpus);
}

static void print_vms(const json_t *answer, void *ctx)
{
	const json_t *vms = json_object_get(answer, "vms");
	const bool *is_one = ctx;

	if (*is_one)
		print_one(json_array_get(vms, 0));
	else if (json_array_size(vms))
		rows_print(vms, list);
	else
		puts("no VM has an <ebb:sla> in its metadata");
}

int cmd_vms(struct ctl *ctl, int argc, char **argv)
{
	bool is_one = ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "[VM]", 0, 1) == 1;
	json_t *request = json_pack("{s:s}", "cmd", "vms");

	if (is_one)
		json_object_set_new(request, "vm", json_string(argv[0]));
	return ctl_show(ctl, request, print_vms, &is_one);
}

/* One of <ebb:io> or <ebb:volume>; nothing where no value is given. */
static void print_io(const json_t *o, const char *what)
{
	char key[40];
	int num = 0;

	for (size_t k = 0; k < sizeof(io_words) / sizeof(io_words[0]); k++) {
		snprintf(key, sizeof(key), "io_%s", io_words[k].key);
		if (ctl_int(o, key))
			printf("%s %lld %s", num++ ? "," : what, ctl_int(o, key),
			       io_words[k].words);
	}
}

static void print_sla_io(const json_t *answer)
{
	char what[80];
	json_t *v;
	size_t i;

	print_io(answer, "; each volume");
	json_array_foreach(json_object_get(answer, "io_volumes"), i, v) {
		snprintf(what, sizeof(what), "; volume %s", ctl_str(v, "volume"));
		print_io(v, what);
	}
}

static void print_sla(const json_t *answer, void *ctx)
{
	(void)ctx;
	printf("%s: %s, priority %lld, weight %lld, deadline %lld ms, tier %s, plug %s",
	       ctl_str(answer, "name"), ctl_str(answer, "class"),
	       ctl_int(answer, "priority"), ctl_int(answer, "weight"),
	       ctl_int(answer, "deadline_ms"), ctl_str(answer, "tier"),
	       ctl_str(answer, "plug"));
	if (ctl_bool(answer, "shared"))
		printf(", shared cores, reserve %lld%%, max %lld%%, penalty %lld",
		       ctl_int(answer, "reserve_percent"), ctl_int(answer, "max_percent"),
		       ctl_int(answer, "penalty"));
	if (ctl_int(answer, "reserve_mem_mib"))
		printf(", cache of %lld MiB promised", ctl_int(answer, "reserve_mem_mib"));
	print_sla_io(answer);
	printf("\n");
}

int cmd_set(struct ctl *ctl, int argc, char **argv)
{
	int num = ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "VM KEY=VALUE...", 2, 64);
	json_t *values = json_object();

	for (int i = 1; i < num; i++) {
		char *eq = strchr(argv[i], '=');

		if (!eq || eq == argv[i]) {
			fprintf(stderr, "ebbctl set: \"%s\" is not of the form key=value\n",
				argv[i]);
			json_decref(values);
			return EXIT_USAGE;
		}
		*eq = '\0';
		json_object_set_new(values, argv[i], json_string(eq + 1));
	}
	return ctl_show(ctl, json_pack("{s:s, s:s, s:o}", "cmd", "set", "vm", argv[0], "values",
				       values), print_sla, NULL);
}
