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

extern const struct bench_workload_ops ycsb_workload_ops;
extern const struct bench_workload_ops uniform_workload_ops;
extern const struct bench_workload_ops cdb_workload_ops;

/* Their input is a struct bench_options. */
extern const struct argp ycsb_argp;
extern const struct argp uniform_argp;
extern const struct argp cdb_argp;

/* The error message for options of operations that the workload lacks; NULL: no error. core NULL:
 * the workload has none of these operations. */
const char *ycsb_check_given(const struct ycsb_core *core, const struct bench_options *options);

/* Hooks that the families share; the state is a struct ycsb. */
void ycsb_hook_destroy(void *state);
int ycsb_hook_load(void *state, uint32_t n_threads, struct bench_progress *progress);
struct oltp_workload ycsb_hook_pool(void *state);
int ycsb_hook_adopt(void *state, struct bench_audit *ret_found);
void ycsb_hook_audit(void *state, struct bench_audit *ret_audit);
bool ycsb_hook_verify(void *state, struct fields *fields);

/* Of tables like config says. */
uint64_t ycsb_table_bytes(const struct ycsb_config *config);

#endif
