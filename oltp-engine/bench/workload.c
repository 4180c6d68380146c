// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of workloads: see workload.h. */
#include <string.h>

#include "tpcc/tpcc_workload.h"
#include "workload.h"
#include "ycsb/ycsb_workload.h"

const struct bench_workload bench_workloads[] = {
	{ "ycsb-10", "ten reads or updates per transaction, by Zipf (default)", &ycsb_workload_ops,
	  NULL },
	{ "tpcc", "TPC-C-like: five kinds of transactions on nine tables", &tpcc_workload_ops,
	  NULL },
	{ NULL, NULL, NULL, NULL },
};

const struct argp_child bench_workload_children[BENCH_FAMILIES + 1] = {
	[BENCH_FAMILY_YCSB] = { &ycsb_argp, 0, NULL, 0 },
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
	static const char *const names[BENCH_KNOBS] = { [BENCH_KNOB_THETA] = "theta" };

	return names[knob];
}
