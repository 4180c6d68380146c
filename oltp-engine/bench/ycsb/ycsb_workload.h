/* SPDX-License-Identifier: GPL-2.0-or-later */
/* YCSB as one of the workloads of oltp-bench. */
#ifndef BENCH_YCSB_WORKLOAD_H
#define BENCH_YCSB_WORKLOAD_H

#include "oltp-engine/bench/workload.h"

extern const struct bench_workload_ops ycsb_workload_ops;

/* Its input is a struct bench_options. */
extern const struct argp ycsb_argp;

#endif
