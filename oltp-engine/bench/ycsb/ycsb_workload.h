/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Three families of workloads of oltp-bench on the table of ycsb.h: YCSB itself, UNIFORM and CDB.
 * They differ in what they make of the options.
 */
#ifndef BENCH_YCSB_WORKLOAD_H
#define BENCH_YCSB_WORKLOAD_H

#include "oltp-engine/bench/workload.h"
#include "ycsb.h"

/* A core workload of YCSB, as the variant of a struct bench_workload. */
struct ycsb_core {
	enum ycsb_keys keys;
	double shares[YCSB_READ];
};

extern const struct ycsb_core ycsb_core_a, ycsb_core_b, ycsb_core_c, ycsb_core_d, ycsb_core_e,
	ycsb_core_f;


/* Their input is a struct bench_options. */
extern const struct argp ycsb_argp;
extern const struct argp uniform_argp;
extern const struct argp cdb_argp;

/* The error message for options of operations that the workload lacks; NULL: no error. core NULL:
 * the workload has none of these operations. */
const char *ycsb_check_given(const struct ycsb_core *core, const struct bench_options *options);

/* How a family differs from the others. */
struct ycsb_family {
	/* Operations; all workloads of the family point to this struct. */
	struct bench_workload_ops ops;

	/* Fills in what the options set of the table and its transactions. */
	void (*configure)(const struct bench_workload *workload,
			  const struct bench_options *options, struct ycsb_config *ret_config);

	/* NULL: nothing. What is set once the tables have been created. */
	void (*created)(struct ycsb *ycsb, const struct bench_options *options);
};

/* Hooks that the families share; the state is a struct ycsb. */
int ycsb_hook_create(const struct bench_workload *workload, struct oltp_engine *engine,
		     const struct bench_options *options, void **ret_state);
uint64_t ycsb_hook_memory_bytes(const struct bench_workload *workload,
				const struct bench_options *options);
void ycsb_hook_destroy(void *state);
int ycsb_hook_load(void *state, uint32_t n_threads, struct bench_progress *progress);
struct oltp_workload ycsb_hook_pool(void *state);
int ycsb_hook_adopt(void *state, struct bench_audit *ret_found);
bool ycsb_hook_needs_no_adopt(void *state);
int ycsb_hook_first(void *state);
void ycsb_hook_audit(void *state, struct bench_audit *ret_audit);
bool ycsb_hook_verify(void *state, struct fields *fields);

/* All but configure, check, describe, classes and the knobs; for an initializer of ops. */
#define YCSB_HOOKS \
	.create = ycsb_hook_create, \
	.destroy = ycsb_hook_destroy, \
	.load = ycsb_hook_load, \
	.adopt = ycsb_hook_adopt, \
	.needs_no_adopt = ycsb_hook_needs_no_adopt, \
	.first = ycsb_hook_first, \
	.pool = ycsb_hook_pool, \
	.verify = ycsb_hook_verify, \
	.memory_bytes = ycsb_hook_memory_bytes, \
	.audit = ycsb_hook_audit

extern const struct ycsb_family ycsb_family, uniform_family, cdb_family;

#endif
