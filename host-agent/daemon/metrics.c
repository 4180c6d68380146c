/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See metrics.h.  Names and their order stay as they are: others store them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "daemon/metrics.h"

/* A family begins; counters are without their "_total" here. */
static void begin(FILE *f, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(f, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s %s\n", name, help);
}

/* The value of a label, in quotes. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '\n') {
			fputs("\\n", f);
			continue;
		}
		if (*text == '"' || *text == '\\')
			fputc('\\', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

enum sum { SUM_BEGUN, SUM_ACTIVE, SUM_MOVES };

static uint64_t value_of(const struct ebb_violation *v, enum sum sum)
{
	switch (sum) {
	case SUM_BEGUN:
		return v->count;
	case SUM_ACTIVE:
		return v->is_on;
	default:
		return v->num_moves;
	}
}

/* Of the resource on a node; cores are added up. */
static uint64_t sum_of(const struct ebb_state *s, enum ebb_pressed what, uint16_t node,
		       enum sum sum)
{
	const struct ebb_host *h = ebb_state_host(s);
	uint64_t all = 0;

	if (what != EBB_PRESSED_CORE)
		return value_of(ebb_state_violation(s, what, node), sum);
	for (uint16_t c = 0; c < h->num_cores; c++)
		if (h->cores[c].node == node)
			all += value_of(ebb_state_violation(s, what, c), sum);
	return all;
}

static void put_sums(FILE *f, const struct ebb_state *s, const char *name, enum sum sum)
{
	for (enum ebb_pressed what = 0; what < EBB_PRESSED_MAX; what++)
		for (uint16_t n = 0; n < ebb_state_host(s)->num_nodes; n++)
			if (sum != SUM_MOVES || what != EBB_PRESSED_CORE)
				fprintf(f, "%s{resource=\"%s\",node=\"%u\"} %" PRIu64 "\n", name,
					ebb_pressed_name(what), n, sum_of(s, what, n, sum));
}

static void put_levels(FILE *f, const struct ebb_state *s)
{
	for (enum ebb_pressed what = 0; what < EBB_PRESSED_CORE; what++)
		for (uint16_t n = 0; n < ebb_state_host(s)->num_nodes; n++) {
			const struct ebb_violation *v = ebb_state_violation(s, what, n);

			fprintf(f, "ebb_resource_used_ratio{resource=\"%s\",node=\"%u\"} %.4f\n",
				ebb_pressed_name(what), n,
				v->capacity ? (double)v->level / (double)v->capacity : 0);
		}
}

static void put_moves(FILE *f, const struct ebb_state *s)
{
	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(s, i);

		if (!vm->move.is_on)
			continue;
		fputs("ebb_move_recommended{vm=", f);
		put_quoted(f, vm->name);
		fprintf(f, ",resource=\"%s\",node=\"%u\"} 1\n",
			ebb_pressed_name(vm->move.pressed), vm->move.host_node);
	}
}

enum vom { VOM_ASKS, VOM_ANSWERS, VOM_REFUSED, VOM_AGE, VOM_CUTOFF };

/* Of each running VM that has pools; age only where there is a histogram. */
static void put_vom_of(FILE *f, const struct ebb_state *s, const char *name, enum vom what,
		       usec_t now)
{
	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(s, i);
		const struct ebb_vm_vom *v = &vm->vom;
		uint64_t cutoff = 0;

		if (!vm->is_running || !ebb_sla_has_mem(&vm->sla) || (what == VOM_AGE && !v->at))
			continue;
		for (uint16_t g = 0; g < vm->sla.num_nodes; g++)
			if (vm->pools[g].told_cutoff > cutoff)
				cutoff = vm->pools[g].told_cutoff;
		fprintf(f, "%s{vm=", name);
		put_quoted(f, vm->name);
		if (what == VOM_AGE)
			fprintf(f, "} %.3f\n", (double)(now - v->at) / EBB_USEC_PER_SEC);
		else
			fprintf(f, "} %" PRIu64 "\n",
				what == VOM_ASKS ? v->num_asks :
				what == VOM_ANSWERS ? v->num_answers :
				what == VOM_REFUSED ? v->num_refused : cutoff);
	}
}

static void put_vom(FILE *f, const struct ebb_state *s, usec_t now)
{
	begin(f, "ebb_memory_brokerings", "counter", NULL,
	      "How often VMs were asked for memory because a node ran short of it.");
	for (uint16_t n = 0; n < ebb_state_host(s)->num_nodes; n++)
		fprintf(f, "ebb_memory_brokerings_total{node=\"%u\"} %" PRIu64 "\n", n,
			ebb_state_broker(s)->num_brokered[n]);
	begin(f, "ebb_histogram_asks", "counter", NULL,
	      "How often a guest was asked what its memory is worth, in this run of its VM.");
	put_vom_of(f, s, "ebb_histogram_asks_total", VOM_ASKS, now);
	begin(f, "ebb_histogram_answers", "counter", NULL, "How often it has answered.");
	put_vom_of(f, s, "ebb_histogram_answers_total", VOM_ANSWERS, now);
	begin(f, "ebb_histogram_refused", "counter", NULL, "How often the answer was malformed.");
	put_vom_of(f, s, "ebb_histogram_refused_total", VOM_REFUSED, now);
	begin(f, "ebb_histogram_age_seconds", "gauge", "seconds",
	      "How long ago the histogram came that is in use.");
	put_vom_of(f, s, "ebb_histogram_age_seconds", VOM_AGE, now);
	begin(f, "ebb_memory_cutoff", "gauge", NULL,
	      "What a VM was told to give first: worth less, ns per second and MiB; 0: nothing.");
	put_vom_of(f, s, "ebb_memory_cutoff", VOM_CUTOFF, now);
}

enum shared { SHARED_THREADS, SHARED_USED, SHARED_HOT, SHARED_STUCK };

/* Of the shared cores of each node that has any; threads of the host. */
static void put_shared_of(FILE *f, const struct ebb_state *s, const char *name, enum shared what)
{
	const struct ebb_host *h = ebb_state_host(s);

	for (uint16_t n = 0; n < h->num_nodes; n++) {
		uint64_t used = 0, count = 0, hot = 0, stuck = 0;

		for (uint16_t t = 0; t < h->num_threads; t++) {
			struct ebb_shared_thread one;

			if (h->threads[t].node != n || !ebb_state_shared_thread(s, t, &one))
				continue;
			count++;
			used += one.use < 1000 ? one.use : 1000;
			hot += one.is_hot;
			stuck += one.is_stuck;
		}
		if (count == 0)
			continue;
		if (what == SHARED_USED)
			fprintf(f, "%s{node=\"%u\"} %.4f\n", name, n,
				(double)used / 1000 / (double)count);
		else
			fprintf(f, "%s{node=\"%u\"} %" PRIu64 "\n", name, n,
				what == SHARED_THREADS ? count : what == SHARED_HOT ? hot : stuck);
	}
}

static void put_shared(FILE *f, const struct ebb_state *s)
{
	struct ebb_shared_totals all;

	ebb_state_shared_totals(s, &all);
	begin(f, "ebb_shared_threads", "gauge", NULL, "Threads of the host that VMs may share.");
	put_shared_of(f, s, "ebb_shared_threads", SHARED_THREADS);
	begin(f, "ebb_shared_used_ratio", "gauge", "ratio",
	      "CPU time of them that was used in the last window.");
	put_shared_of(f, s, "ebb_shared_used_ratio", SHARED_USED);
	begin(f, "ebb_shared_hot_threads", "gauge", NULL,
	      "Those that several VMs used too much in the last window.");
	put_shared_of(f, s, "ebb_shared_hot_threads", SHARED_HOT);
	begin(f, "ebb_shared_stuck_threads", "gauge", NULL,
	      "Those of them where no change of places helps.");
	put_shared_of(f, s, "ebb_shared_stuck_threads", SHARED_STUCK);
	begin(f, "ebb_shared_host_hot", "gauge", NULL,
	      "Whether the shared cores are used too much as a whole, or some are stuck.");
	fprintf(f, "ebb_shared_host_hot %d\n", all.is_hot);
	begin(f, "ebb_shared_vms", "gauge", NULL, "VMs that share cores, by whether throttled.");
	fprintf(f, "ebb_shared_vms{throttled=\"no\"} %u\nebb_shared_vms{throttled=\"yes\"} %u\n",
		all.num_vms - all.num_throttled, all.num_throttled);
	begin(f, "ebb_shared_moves", "counter", NULL,
	      "How often a VM was moved between shared cores.");
	fprintf(f, "ebb_shared_moves_total %" PRIu64 "\n", all.num_moved_vms);
}

enum ledger {
	LEDGER_WANTED, LEDGER_PROMISED, LEDGER_GOT, LEDGER_VIOLATED, LEDGER_UNCLEAR,
	LEDGER_SYSTEM,			/* of volumes only */
	LEDGER_INTERVALS, LEDGER_VIOLATIONS,
};

static uint64_t counter_of(const struct ebb_ledger *sum, enum ledger what)
{
	switch (what) {
	case LEDGER_WANTED:
		return sum->wanted;
	case LEDGER_PROMISED:
		return sum->promised;
	case LEDGER_GOT:
		return sum->got;
	case LEDGER_VIOLATED:
		return sum->violated;
	case LEDGER_UNCLEAR:
		return sum->unclear;
	case LEDGER_INTERVALS:
		return sum->num_intervals;
	default:
		return sum->num_violations;
	}
}

/* Of each running VM to which something was promised. */
static void put_promise_of(FILE *f, const struct ebb_state *s, const char *name, enum ledger what,
			   enum ebb_promise promise)
{
	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(s, i);
		const struct ebb_ledger *sum = promise == EBB_PROMISE_MEM ?
						       &vm->promised_cache.sum : &vm->promise.sum;
		const uint64_t value = counter_of(sum, what);

		if (!vm->is_running || sum->num_intervals == 0)
			continue;
		fprintf(f, "%s{vm=", name);
		put_quoted(f, vm->name);
		if (what >= LEDGER_INTERVALS)
			fprintf(f, ",resource=\"%s\"} %" PRIu64 "\n", ebb_promise_name(promise),
				value);
		else if (promise == EBB_PROMISE_CPU)
			fprintf(f, "} %.6f\n", (double)value / EBB_USEC_PER_SEC);
		else
			fprintf(f, "} %" PRIu64 "\n", value);
	}
}

/* Of each volume to which a running VM's SLA promises something. */
static void put_volumes_of(FILE *f, const struct ebb_state *s, const char *name, enum ledger what)
{
	for (size_t i = 0; i < ebb_state_num_vms(s); i++) {
		const struct ebb_vm *vm = ebb_state_vm_at(s, i);

		for (uint16_t k = 0; vm->is_running && k < vm->volumes.num; k++) {
			struct ebb_io_view view;

			ebb_state_volume(s, vm, k, &view);
			if (view.sum.num_intervals == 0)
				continue;
			fprintf(f, "%s{vm=", name);
			put_quoted(f, vm->name);
			fprintf(f, ",%s%s\"} %" PRIu64 "\n",
				what >= LEDGER_INTERVALS ? "resource=\"io/" : "volume=\"",
				vm->volumes.names[k], what == LEDGER_SYSTEM ? view.system :
				counter_of(&view.sum, what));
		}
	}
}

static void put_volumes(FILE *f, const struct ebb_state *s)
{
	static const struct {
		const char *name, *help;
		enum ledger what;
	} all[] = {
		{ "ebb_io_wanted_units", "Units of I/O that a volume got, and that it lacked.",
		  LEDGER_WANTED },
		{ "ebb_io_promised_units", "Those of its promise that were due for that.",
		  LEDGER_PROMISED },
		{ "ebb_io_got_units", "Those that it got.", LEDGER_GOT },
		{ "ebb_io_violated_units", "Those that were due and that it did not get.",
		  LEDGER_VIOLATED },
		{ "ebb_io_unclear_units",
		  "Those that may have been due as well, and went to what the system is charged.",
		  LEDGER_UNCLEAR },
		{ "ebb_io_system_units",
		  "Reads beyond the promised cache of the VM, charged to the system.",
		  LEDGER_SYSTEM },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char total[64];

		snprintf(total, sizeof(total), "%s_total", all[i].name);
		begin(f, all[i].name, "counter", NULL, all[i].help);
		put_volumes_of(f, s, total, all[i].what);
	}
}

static void put_ledger_of(FILE *f, const struct ebb_state *s, const char *name, enum ledger what)
{
	put_promise_of(f, s, name, what, EBB_PROMISE_CPU);
	/* Amounts have names of their own, by resource. */
	if (what >= LEDGER_INTERVALS) {
		put_promise_of(f, s, name, what, EBB_PROMISE_MEM);
		put_volumes_of(f, s, name, what);
	}
}

static void put_caches(FILE *f, const struct ebb_state *s)
{
	static const struct {
		const char *name, *help;
		enum ledger what;
	} all[] = {
		{ "ebb_cache_baseline_ios", "Reads from disk of the cache that a VM is promised.",
		  LEDGER_PROMISED },
		{ "ebb_cache_actual_ios", "Reads from disk that it made.", LEDGER_GOT },
		{ "ebb_cache_violated_ios",
		  "Reads beyond the promise, which are charged to the system.", LEDGER_VIOLATED },
		{ "ebb_cache_unclear_ios", "Reads that it says it made and that are not believed.",
		  LEDGER_UNCLEAR },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char total[64];

		snprintf(total, sizeof(total), "%s_total", all[i].name);
		begin(f, all[i].name, "counter", NULL, all[i].help);
		put_promise_of(f, s, total, all[i].what, EBB_PROMISE_MEM);
	}
}

static void put_ledger(FILE *f, const struct ebb_state *s)
{
	begin(f, "ebb_cpu_wanted_seconds", "counter", "seconds",
	      "Time in which a vCPU of a VM that is promised CPU time ran or was ready to.");
	put_ledger_of(f, s, "ebb_cpu_wanted_seconds_total", LEDGER_WANTED);
	begin(f, "ebb_cpu_promised_seconds", "counter", "seconds",
	      "CPU time that was due to it for that.");
	put_ledger_of(f, s, "ebb_cpu_promised_seconds_total", LEDGER_PROMISED);
	begin(f, "ebb_cpu_got_seconds", "counter", "seconds", "CPU time that it got.");
	put_ledger_of(f, s, "ebb_cpu_got_seconds_total", LEDGER_GOT);
	begin(f, "ebb_cpu_violated_seconds", "counter", "seconds",
	      "CPU time that was due to it and that it did not get.");
	put_ledger_of(f, s, "ebb_cpu_violated_seconds_total", LEDGER_VIOLATED);
	begin(f, "ebb_cpu_unclear_seconds", "counter", "seconds",
	      "CPU time that may have been due to it as well.");
	put_ledger_of(f, s, "ebb_cpu_unclear_seconds_total", LEDGER_UNCLEAR);
	begin(f, "ebb_promise_intervals", "counter", NULL,
	      "Intervals in which it was metered what a VM was promised.");
	put_ledger_of(f, s, "ebb_promise_intervals_total", LEDGER_INTERVALS);
	begin(f, "ebb_promise_violations", "counter", NULL, "Those that broke the promise.");
	put_ledger_of(f, s, "ebb_promise_violations_total", LEDGER_VIOLATIONS);
}

char *ebb_metrics_text(const struct ebb_state *s, usec_t now)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	begin(f, "ebb_resource_used_ratio", "gauge", "ratio",
	      "Memory for pools that is held, and CPU time that is used, of what a node has.");
	put_levels(f, s);
	begin(f, "ebb_violations", "counter", NULL,
	      "How often a resource went beyond its threshold; core: shared cores.");
	put_sums(f, s, "ebb_violations_total", SUM_BEGUN);
	begin(f, "ebb_violation_active", "gauge", NULL,
	      "Whether a resource is beyond its threshold; core: how many.");
	put_sums(f, s, "ebb_violation_active", SUM_ACTIVE);
	begin(f, "ebb_move_recommendations", "counter", NULL,
	      "How often a VM was named that should move to another host.");
	put_sums(f, s, "ebb_move_recommendations_total", SUM_MOVES);
	begin(f, "ebb_move_recommended", "gauge", NULL, "VMs that should move to another host.");
	put_moves(f, s);
	begin(f, "ebb_quorum", "gauge", NULL,
	      "Whether the host has the quorum of its cluster; without it nothing new is given.");
	fprintf(f, "ebb_quorum %d\n", ebb_state_has_quorum(s));
	put_vom(f, s, now);
	put_shared(f, s);
	put_ledger(f, s);
	put_caches(f, s);
	put_volumes(f, s);
	fputs("# EOF\n", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
