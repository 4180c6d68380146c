/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples as lines and as CSV, results as JSON: what the programs print. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"
#include "ycsb/ycsb.h"

/* Errors: -errno of opening or writing; path NULL gives *ret_file NULL. */
int report_stats_open(const char *path, FILE **ret_file);

/* t_s: since the start of the run. file may be NULL. Error: -EIO. */
int report_stats_write(FILE *file, double t_s, const struct oltp_sample *sample,
		       const struct oltp_memory_stats *memory, double theta);

/*
 * "oltp: t=... workers=... tps=... ..."; is_open: with what arrived and waits; memory NULL: nothing
 * of it.
 */
void report_sample_print(FILE *out, double t_s, const struct oltp_sample *sample,
			 const struct oltp_memory_stats *memory, double theta, bool is_open);

/* "oltp: t=... audit ms=... complete=1 records=... damaged=0 updates=... content=... rc=0" */
void report_audit_print(FILE *out, double t_s, double ms, const struct ycsb_audit *audit);

/* Fields of the JSON result, each followed by a comma but for the last of the object. */
void report_json_options(FILE *out, const struct bench_options *options);
void report_json_totals(FILE *out, double seconds, const struct oltp_sample *whole);

/* "memory":{...}, as struct oltp_memory_stats. */
void report_json_memory(FILE *out, const struct oltp_memory_stats *memory);

/* The last: no comma after it. verdict NULL: not verified, lost_updates is null. */
void report_json_verdict(FILE *out, const struct ycsb_verdict *verdict);

#endif
