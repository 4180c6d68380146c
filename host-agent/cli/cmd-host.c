/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ebbctl host, metrics, policy, quorum, explain and version. */
#include <stdio.h>
#include <string.h>
#include "cli/core-map.h"
#include "cli/ctl.h"
#include "cli/rows.h"
#include "util/text.h"
#include "util/version.h"

static void add_free(struct table *t, const json_t *node, const char *key)
{
	table_add(t, "%lld", ctl_int(node, key) - ctl_int(node, "used"));
}

static void add_mem_free(struct table *t, const json_t *node, const char *key)
{
	table_add(t, "%lld", (ctl_int(node, key) - ctl_int(node, "mem_promised_bytes")) /
		  (1 << 20));
}

static const struct column nodes[] = {
	{ ">NODE", row_int, "node" }, { ">CORES", row_int, "cores" },
	{ ">THREADS", row_int, "threads" }, { ">CPUS", row_int, "capacity" },
	{ ">USED", row_int, "used" }, { ">FREE", add_free, "capacity" },
	{ ">WASTED s", row_tenths, "wasted_core_s" },
	{ ">MEM MiB", row_mib, "mem_capacity_bytes" }, { ">MEM HELD", row_mib, "mem_held_bytes" },
	{ ">MEM FREE", add_mem_free, "mem_capacity_bytes" }, { NULL, NULL, NULL },
};

static void print_cores(const json_t *host)
{
	static const char *const names[] = { ">NODE", ">CORE", ">CPU", "VM", ">VCPU", NULL };
	json_t *core, *thread;
	struct table t;
	size_t i, k;

	table_init(&t, names);
	json_array_foreach(json_object_get(host, "cores"), i, core) {
		json_array_foreach(json_object_get(core, "threads"), k, thread) {
			const char *vm = ctl_str(thread, "vm");

			table_add(&t, "%lld", ctl_int(core, "node"));
			table_add(&t, "%lld", ctl_int(core, "core"));
			table_add(&t, "%lld", ctl_int(thread, "cpu"));
			table_add_name(&t, vm[0] ? vm :
				       json_is_object(json_object_get(thread, "shared")) ?
				       "shared" : "free");
			if (vm[0])
				table_add(&t, "%lld", ctl_int(thread, "vcpu"));
			else
				table_add(&t, "%s", "");
		}
	}
	table_print(&t, 0);
	table_finish(&t);
}

/* A line for each node with shared cores, and one for each with memory for pools. */
static void print_promises(const json_t *host)
{
	json_t *node, *cpu, *mem;
	size_t i;

	json_array_foreach(json_object_get(host, "nodes"), i, node) {
		cpu = json_object_get(node, "promises");
		mem = json_object_get(node, "mem_promises");
		if (json_is_object(cpu))
			printf("promises  node %lld: %lld%% of a core promised, %lld%% free; "
			       "%lld%% can be kept, overbooked by %lld%%\n",
			       ctl_int(node, "node"), ctl_int(cpu, "promised_percent"),
			       ctl_int(cpu, "free_percent"), ctl_int(cpu, "most_percent"),
			       ctl_int(cpu, "overbooked_percent"));
		if (json_is_object(mem))
			printf("promises  node %lld: %lld MiB of memory promised, %lld MiB free; "
			       "%lld MiB can be kept, overbooked by %lld MiB\n",
			       ctl_int(node, "node"), ctl_mib(mem, "promised_bytes"),
			       ctl_mib(mem, "free_bytes"), ctl_mib(mem, "most_bytes"),
			       ctl_mib(mem, "overbooked_bytes"));
	}
}

/* "300 of 500 requests/s promised, 200 left"; capacity 0: not known. */
static void print_rate(long long promised, long long capacity, const char *unit)
{
	if (!capacity)
		printf("%lld %s promised, of an unknown number", promised, unit);
	else if (promised > capacity)
		printf("%lld of %lld %s promised, overbooked by %lld", promised, capacity, unit,
		       promised - capacity);
	else
		printf("%lld of %lld %s promised, %lld left", promised, capacity, unit,
		       capacity - promised);
}

static void print_io(const json_t *io)
{
	fputs("I/O       ", stdout);
	if (!ctl_bool(io, "answers")) {
		printf("nothing is promised: %s\n", ctl_str(io, "error")[0] ? ctl_str(io, "error") :
		       "the volume server has not answered yet");
		return;
	}
	print_rate(ctl_int(io, "promised_iops"), ctl_int(io, "capacity_iops"), "requests/s");
	if (ctl_int(io, "promised_bytes") || ctl_int(io, "capacity_bytes")) {
		fputs("; ", stdout);
		print_rate(ctl_int(io, "promised_bytes"), ctl_int(io, "capacity_bytes"),
			   "bytes/s");
	}
	puts(ctl_bool(io, "allow_overbooking") ? "; overbooking is allowed" : "");
}

static void print_pressure(const json_t *pressure)
{
	printf("memory    above %lld%% for %lld s brokered down to %lld%%, above %lld%% a VM "
	       "should move\n", ctl_int(pressure, "memory_threshold_percent"),
	       ctl_int(pressure, "memory_window_s"), ctl_int(pressure, "memory_target_percent"),
	       ctl_int(pressure, "memory_failover_percent"));
	printf("hot       a shared core above %lld%%, a node above %lld%% over %lld s\n",
	       ctl_int(pressure, "core_hot_percent"), ctl_int(pressure, "host_hot_percent"),
	       ctl_int(pressure, "hot_window_s"));
	printf("cool-down %lld s\n", ctl_int(pressure, "cool_down_s"));
}

void ctl_print_pressure(const json_t *answer)
{
	json_t *item;
	size_t i;

	json_array_foreach(json_object_get(answer, "violations"), i, item)
		printf("violation %s (now %.0f%%, since %.0f s)\n", ctl_str(item, "text"),
		       ctl_num(item, "percent"), ctl_num(item, "since_s"));
	json_array_foreach(json_object_get(answer, "moves"), i, item)
		printf("move      %s %s (since %.0f s)\n",
		       ebb_text_label(ctl_str(item, "vm"), EBB_LABEL_MOST).text,
		       ctl_str(item, "text"), ctl_num(item, "since_s"));
}

static void print_metrics(const json_t *answer, void *ctx)
{
	(void)ctx;
	fputs(ctl_str(answer, "metrics"), stdout);
}

int cmd_metrics(struct ctl *ctl, int argc, char **argv)
{
	ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "", 0, 0);
	return ctl_show(ctl, json_pack("{s:s}", "cmd", "metrics"), print_metrics, NULL);
}

static void print_host(const json_t *answer, void *ctx)
{
	const json_t *host = json_object_get(answer, "host");

	(void)ctx;
	printf("host      %s%s\n", ctl_str(host, "spec"),
	       strcmp(ctl_str(host, "backend"), "fake") == 0 ? " (dry run, simulated VMs)"
							     : "");
	if (ctl_bool(host, "emulated"))
		printf("core      %g of a real CPU\n", ctl_num(host, "share"));
	printf("policy    %s\n", ctl_str(host, "policy"));
	if (json_is_string(json_object_get(host, "libvirt")))
		printf("libvirt   %s%s%s\n", ctl_str(host, "libvirt"),
		       ctl_str(host, "libvirt_error")[0] ? ": " : "",
		       ctl_str(host, "libvirt_error"));
	if (!ctl_bool(host, "quorum"))
		puts("quorum    no: nothing new is given");
	if (!ctl_bool(host, "loaded"))
		puts("state     not complete yet: libvirt has not told of all VMs");
	print_promises(host);
	print_io(json_object_get(host, "io"));
	print_pressure(json_object_get(host, "pressure"));
	ctl_print_pressure(host);
	putchar('\n');
	rows_print(json_object_get(host, "nodes"), nodes);
	putchar('\n');
	print_cores(host);
	core_map_print(host);
}

int cmd_host(struct ctl *ctl, int argc, char **argv)
{
	ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "", 0, 0);
	return ctl_show(ctl, json_pack("{s:s}", "cmd", "host"), print_host, NULL);
}

static void print_policies(const json_t *answer, void *ctx)
{
	const char *in_force = ctl_str(answer, "policy"), *name;
	json_t *known;
	size_t i;

	(void)ctx;
	json_array_foreach(json_object_get(answer, "known"), i, known) {
		name = json_string_value(known);
		printf("%c %s\n", strcmp(name, in_force) ? ' ' : '*', name);
	}
}

int cmd_policy(struct ctl *ctl, int argc, char **argv)
{
	int num = ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "[NAME]", 0, 1);
	json_t *request = json_pack("{s:s}", "cmd", "policy");

	if (num)
		json_object_set_new(request, "policy", json_string(argv[0]));
	return ctl_show(ctl, request, print_policies, NULL);
}

static void print_quorum(const json_t *answer, void *ctx)
{
	(void)ctx;
	puts(ctl_bool(answer, "quorum") ? "yes" : "no: nothing new is given");
}

int cmd_quorum(struct ctl *ctl, int argc, char **argv)
{
	int num = ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "[yes|no]", 0, 1);
	json_t *request = json_pack("{s:s}", "cmd", "quorum");
	const bool is_yes = num && strcmp(argv[0], "yes") == 0;

	if (num && !is_yes && strcmp(argv[0], "no") != 0) {
		fprintf(stderr, "ebbctl: quorum %s: allowed are yes and no\n", argv[0]);
		json_decref(request);
		return EXIT_USAGE;
	}
	if (num)
		json_object_set_new(request, "quorum", json_boolean(is_yes));
	return ctl_show(ctl, request, print_quorum, NULL);
}

static void print_lines(const json_t *answer, void *ctx)
{
	json_t *line;
	size_t i;

	(void)ctx;
	json_array_foreach(json_object_get(json_object_get(answer, "explain"), "lines"), i, line)
		puts(json_string_value(line));
}

int cmd_explain(struct ctl *ctl, int argc, char **argv)
{
	ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "VM", 1, 1);
	return ctl_show(ctl, json_pack("{s:s, s:s}", "cmd", "explain", "vm", argv[0]),
			print_lines, NULL);
}

int cmd_version(struct ctl *ctl, int argc, char **argv)
{
	int rc = EXIT_DONE;
	json_t *answer;

	ctl_parse(ctl, argc, argv, NULL, NULL, NULL, "", 0, 0);
	if (!ctl->is_json)
		printf("ebbctl %s\n", EBB_VERSION);
	answer = ctl_ask(ctl, json_pack("{s:s}", "cmd", "version"), &rc);
	if (!answer)
		return rc;
	json_object_set_new(answer, "ebbctl", json_string(EBB_VERSION));
	if (ctl->is_json)
		ctl_print_json(answer);
	else
		printf("ebbd %s, link protocol %lld, backend %s, up %.0f s\n",
		       ctl_str(answer, "version"), ctl_int(answer, "link_proto"),
		       ctl_str(answer, "backend"), ctl_num(answer, "uptime_s"));
	json_decref(answer);
	return EXIT_DONE;
}
