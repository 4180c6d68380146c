/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Samples as lines and as CSV, results as fields: what the programs print. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "fields.h"
#include "workload.h"

/* Whether all that was put into the file until now could be written; says on stderr if not. */
bool bench_is_written(FILE *file, const char *name);

/* Errors: -errno of opening or writing; path NULL gives *ret_file NULL. */
int report_stats_open(const char *path, FILE **ret_file);

/* t_s: since the start of the run; theta: NaN if there is none. file may be NULL. Error: -errno. */
int report_stats_write(FILE *file, double t_s, const struct oltp_sample *sample,
		       const struct oltp_memory_stats *memory, double theta);

/*
 * "oltp: t=... workers=... tps=... ..."; theta as above; is_open: with what arrived and waits;
 * memory NULL: nothing of it.
 */
void report_sample_print(FILE *out, double t_s, const struct oltp_sample *sample,
			 const struct oltp_memory_stats *memory, double theta, bool is_open);

/* "oltp: t=... audit ms=... complete=1 records=... damaged=0 updates=... content=... rc=0" */
void report_audit_print(FILE *out, double t_s, double ms, const struct bench_audit *audit);

/* Fields of the result. */
void report_totals(struct fields *fields, double seconds, const struct oltp_sample *whole);
void report_moves(struct fields *fields, const struct oltp_elastic_figures *figures);

/* An object of n, median and p95; in a table only if there is anything to tell. */
void report_latency(struct fields *fields, const char *name,
		    const struct oltp_latency_summary *latency);

/* An object "memory", as struct oltp_memory_stats. */
void report_memory(struct fields *fields, const struct oltp_memory_stats *memory);

/* An object "recency": how often memory was used, and what reading from disk took. */
void report_recency(struct fields *fields, const struct oltp_memory_recency *recency);

#endif
