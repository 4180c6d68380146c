/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The results of several policies on one trace, side by side. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/ctl.h"
#include "cli/simulate-print.h"
#include "cli/table.h"

static double seconds_of(const struct simulate *s)
{
	return (double)s->trace.length / (double)EBB_USEC_PER_SEC;
}

static double by_class(const struct sim_result *r, uint32_t num_slots, enum ebb_class class)
{
	double sum = 0;

	for (uint32_t i = 0; i < num_slots; i++)
		sum += r->slots[i].by_class[class];
	return sum;
}

static double missed(const struct sim_result *r, uint32_t num_slots)
{
	double sum = 0;

	for (uint32_t i = 0; i < num_slots; i++)
		sum += r->slots[i].missed;
	return sum;
}

/* ---- tables ---- */

static void print_sums(const struct simulate *s)
{
	static const char *const rows[] = {
		"held by reserved, core-seconds", "held by spot, core-seconds",
		"wanted and not had, core-seconds", "idle though wanted, core-seconds",
		"CPUs that were waited for", "wait, median ms", "wait, 95% ms",
		"CPUs that did not come", "cores moved to another VM", "cores taken by force",
		"VMs that waited to boot",
	};
	const char *names[SIMULATE_MAX_POLICIES + 2] = { "WHAT" };
	char heads[SIMULATE_MAX_POLICIES][32];
	const uint32_t slots = s->options.num_slots;
	struct table t;

	for (size_t i = 0; i < s->num_results; i++) {
		snprintf(heads[i], sizeof(heads[i]), ">%s", s->results[i].policy);
		names[i + 1] = heads[i];
	}
	table_init(&t, names);
	for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
		table_add(&t, "%s", rows[row]);
		for (size_t i = 0; i < s->num_results; i++) {
			const struct sim_result *r = &s->results[i];
			const double values[] = {
				by_class(r, slots, EBB_CLASS_RESERVED),
				by_class(r, slots, EBB_CLASS_SPOT), missed(r, slots), r->wasted_s,
				(double)r->num_waits, sim_wait_percentile(r, 50),
				sim_wait_percentile(r, 95), (double)r->num_unmet,
				(double)r->num_moves, (double)r->num_forced,
				(double)r->num_not_admitted,
			};

			/* Only times have fractions. */
			table_add(&t, row < 4 || row == 5 || row == 6 ? "%.1f" : "%.0f",
				  values[row]);
		}
	}
	table_print(&t, 0);
	table_finish(&t);
}

/* Mean cores in each part of the time. */
static void print_slots(const struct simulate *s)
{
	static const char *const columns[] = { "reserved", "spot", "missed" };
	const char *names[1 + 3 * SIMULATE_MAX_POLICIES + 1] = { ">FROM s" };
	const double each = seconds_of(s) / s->options.num_slots;
	char heads[3 * SIMULATE_MAX_POLICIES][48];
	struct table t;

	for (size_t i = 0; i < s->num_results; i++)
		for (int k = 0; k < 3; k++) {
			char *head = heads[3 * i + k];

			snprintf(head, sizeof(heads[0]), ">%s %s", s->results[i].policy,
				 columns[k]);
			names[1 + 3 * i + k] = head;
		}
	table_init(&t, names);
	for (uint32_t slot = 0; slot < s->options.num_slots; slot++) {
		table_add(&t, "%.1f", slot * each);
		for (size_t i = 0; i < s->num_results; i++) {
			const struct sim_slot *v = &s->results[i].slots[slot];

			table_add(&t, "%.1f", v->by_class[EBB_CLASS_RESERVED] / each);
			table_add(&t, "%.1f", v->by_class[EBB_CLASS_SPOT] / each);
			table_add(&t, "%.1f", v->missed / each);
		}
	}
	table_print(&t, 0);
	table_finish(&t);
}

/* Of each VM while it ran: mean cores, and how much of what it wanted it had. */
static void print_vms(const struct simulate *s)
{
	const char *names[6 + 2 * SIMULATE_MAX_POLICIES] = {
		"VM", "CLASS", ">PRIO", ">WEIGHT", ">RAN s",
	};
	char heads[2 * SIMULATE_MAX_POLICIES][48];
	struct table t;

	for (size_t i = 0; i < s->num_results; i++) {
		snprintf(heads[2 * i], sizeof(heads[0]), ">%s cores", s->results[i].policy);
		snprintf(heads[2 * i + 1], sizeof(heads[0]), ">%s had", s->results[i].policy);
		names[5 + 2 * i] = heads[2 * i];
		names[6 + 2 * i] = heads[2 * i + 1];
	}
	table_init(&t, names);
	for (uint32_t v = 0; v < s->trace.num_vms; v++) {
		const struct sim_vm *vm = &s->trace.vms[v];

		table_add_name(&t, vm->name);
		table_add(&t, "%s", ebb_class_name(vm->sla.class));
		table_add(&t, "%u", vm->sla.priority);
		table_add(&t, "%u", vm->sla.weight);
		table_add(&t, "%.1f", s->results[0].vms[v].run_s);
		for (size_t i = 0; i < s->num_results; i++) {
			const struct sim_vm_result *r = &s->results[i].vms[v];

			table_add(&t, "%.2f", r->run_s > 0 ? r->held_s / r->run_s : 0);
			table_add(&t, "%.1f%%", r->wanted_s > 0 ?
				  100 * (1 - r->missed_s / r->wanted_s) : 100);
		}
	}
	table_print(&t, 0);
	table_finish(&t);
}

void simulate_print(const struct simulate *s)
{
	printf("simulated host %s, %u CPUs to give; ", s->topology, s->results[0].capacity);
	if (s->history)
		printf("%u VMs of %s, %.1f s\n\n", s->trace.num_vms, s->history, seconds_of(s));
	else
		printf("%u made-up VMs of seed %llu, %.1f s\n\n", s->trace.num_vms,
		       (unsigned long long)s->plan.seed, seconds_of(s));
	print_sums(s);
	puts("\nMean cores in each part of the time: held by class, wanted and not had");
	print_slots(s);
	puts("\nEach VM while it ran: mean cores, and how much of what it wanted it had");
	print_vms(s);
}

/* ---- JSON ---- */

static json_t *slots_json(const struct simulate *s, const struct sim_result *r)
{
	const double each = seconds_of(s) / s->options.num_slots;
	json_t *all = json_array();

	for (uint32_t i = 0; i < s->options.num_slots; i++) {
		const struct sim_slot *v = &r->slots[i];

		json_array_append_new(all, json_pack(
			"{s:f, s:f, s:f, s:f, s:f, s:f}", "from_s", i * each, "length_s", each,
			"reserved_core_s", v->by_class[EBB_CLASS_RESERVED], "spot_core_s",
			v->by_class[EBB_CLASS_SPOT], "missed_core_s", v->missed, "wasted_core_s",
			v->wasted));
	}
	return all;
}

static json_t *vms_json(const struct simulate *s, const struct sim_result *r)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < s->trace.num_vms; i++) {
		const struct sim_vm *vm = &s->trace.vms[i];
		const struct sim_vm_result *v = &r->vms[i];

		json_array_append_new(all, json_pack(
			"{s:s, s:s, s:i, s:i, s:f, s:f, s:f, s:f}", "name", vm->name, "class",
			ebb_class_name(vm->sla.class), "priority", vm->sla.priority, "weight",
			(int)vm->sla.weight, "run_s", v->run_s, "held_core_s", v->held_s,
			"wanted_core_s", v->wanted_s, "missed_core_s", v->missed_s));
	}
	return all;
}

static json_t *policy_json(const struct simulate *s, const struct sim_result *r)
{
	const uint32_t slots = s->options.num_slots;

	return json_pack("{s:s, s:i, s:f, s:f, s:f, s:f, s:{s:I, s:f, s:f, s:I}, s:I, s:I, s:I, "
			 "s:o, s:o}",
			 "policy", r->policy, "cpus", (int)r->capacity,
			 "reserved_core_s", by_class(r, slots, EBB_CLASS_RESERVED),
			 "spot_core_s", by_class(r, slots, EBB_CLASS_SPOT),
			 "missed_core_s", missed(r, slots), "wasted_core_s", r->wasted_s,
			 "waits", "n", (json_int_t)r->num_waits, "median_ms",
			 sim_wait_percentile(r, 50), "p95_ms", sim_wait_percentile(r, 95),
			 "unmet", (json_int_t)r->num_unmet,
			 "moves", (json_int_t)r->num_moves, "forced", (json_int_t)r->num_forced,
			 "not_admitted", (json_int_t)r->num_not_admitted,
			 "slots", slots_json(s, r), "vms", vms_json(s, r));
}

void simulate_print_json(const struct simulate *s)
{
	json_t *policies = json_array(), *all;

	for (size_t i = 0; i < s->num_results; i++)
		json_array_append_new(policies, policy_json(s, &s->results[i]));
	all = json_pack("{s:b, s:s, s:f, s:I, s:s?, s:o}", "ok", 1, "topology", s->topology,
			"seconds", seconds_of(s), "seed", (json_int_t)s->plan.seed, "history",
			s->history, "policies", policies);
	ctl_print_json(all);
	json_decref(all);
}
