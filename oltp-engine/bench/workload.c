// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of workloads: see workload.h. */
#include <string.h>

#include "tpcc/tpcc_workload.h"
#include "workload.h"
#include "ycsb/ycsb_workload.h"

const struct bench_workload bench_workloads[] = {
	{ "ycsb-10", "ten reads or updates per transaction, by Zipf (default)", &ycsb_family.ops,
	  NULL },
	{ "ycsb-a", "YCSB A: reads and updates by half", &ycsb_family.ops, &ycsb_core_a },
	{ "ycsb-b", "YCSB B: 95% reads, 5% updates", &ycsb_family.ops, &ycsb_core_b },
	{ "ycsb-c", "YCSB C: reads", &ycsb_family.ops, &ycsb_core_c },
	{ "ycsb-d", "YCSB D: 95% reads of the latest, 5% inserts", &ycsb_family.ops,
	  &ycsb_core_d },
	{ "ycsb-e", "YCSB E: 95% scans of up to 100 records, 5% inserts", &ycsb_family.ops,
	  &ycsb_core_e },
	{ "ycsb-f", "YCSB F: reads and read-modify-writes by half", &ycsb_family.ops,
	  &ycsb_core_f },
	{ "uniform", "any record of a working set of a given size", &uniform_family.ops, NULL },
	{ "cdb", "CDB-like: cpu-heavy, read-heavy and write-heavy transactions",
	  &cdb_family.ops, NULL },
	{ "tpcc", "TPC-C-like: five kinds of transactions on nine tables", &tpcc_workload_ops,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

const struct argp_child bench_workload_children[BENCH_FAMILIES + 1] = {
	[BENCH_FAMILY_YCSB] = { &ycsb_argp, 0, NULL, 0 },
	[BENCH_FAMILY_UNIFORM] = { &uniform_argp, 0, NULL, 0 },
	[BENCH_FAMILY_CDB] = { &cdb_argp, 0, NULL, 0 },
	[BENCH_FAMILY_TPCC] = { &tpcc_argp, 0, NULL, 0 },
};

const struct bench_workload *bench_workload_find(const char *name)
{
	/* Its name while there was only one. */
	if (!strcmp(name, "ycsb"))
		return &bench_workloads[0];
	for (const struct bench_workload *w = bench_workloads; w->name; w++) {
		if (!strcmp(name, w->name))
			return w;
	}
	return NULL;
}

const char *bench_knob_name(enum bench_knob knob)
{
	static const char *const names[BENCH_KNOBS] = {
		[BENCH_KNOB_THETA] = "theta",
		[BENCH_KNOB_WORKING_SET_MIB] = "working_set_mib",
		[BENCH_KNOB_WORKING_SET_START_MIB] = "working_set_start_mib",
		[BENCH_KNOB_CPU_HEAVY] = "cpu_heavy",
		[BENCH_KNOB_READ_HEAVY] = "read_heavy",
		[BENCH_KNOB_WRITE_HEAVY] = "write_heavy",
	};

	return names[knob];
}
