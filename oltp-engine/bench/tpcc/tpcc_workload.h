/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The TPC-C-like workload as one of those of oltp-bench: see workload.h. */
#ifndef BENCH_TPCC_WORKLOAD_H
#define BENCH_TPCC_WORKLOAD_H

#include "../workload.h"

extern const struct bench_workload_ops tpcc_workload_ops;
extern const struct argp tpcc_argp;

#endif
