/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the log did in a run, and what the disk below it could have done. */
#ifndef BENCH_LOG_FIGURES_H
#define BENCH_LOG_FIGURES_H

#include <stdio.h>

#include "disk_probe.h"
#include "fields.h"
#include "options_log.h"

struct log_figures {
	struct disk_probe disk;
	struct oltp_durable_stats start, last;
	double last_s;		/* of the last line */
};

/*
 * Before the engine is opened: measures the disk, unless there is no folder or the options say not
 * to. Errors: those of the probe.
 */
int log_figures_open(struct log_figures *figures, const struct bench_log_options *options);

/* The run begins. */
void log_figures_start(struct log_figures *figures, struct oltp_engine *engine);

/* A line "oltp: t=... log mb_s=... groups_s=..." since the last one; none with durability off. */
void log_figures_line(struct log_figures *figures, FILE *out, double t_s,
		      struct oltp_engine *engine, const struct bench_log_options *options);

/* All that was committed is on disk, or never will be, so that it is counted. */
void log_figures_settle(struct oltp_engine *engine);

/* Fields "durability", "log" and, if it was probed, "disk". seconds: of the run. */
void log_figures_report(const struct log_figures *figures, double seconds,
			struct oltp_engine *engine, const struct bench_log_options *options,
			struct fields *fields);

#endif
