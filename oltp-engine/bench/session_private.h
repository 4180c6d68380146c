/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A session (session.h) is in two files: session_open.c makes it and takes it down, session.c runs
 * it and prints the results. Both use this struct.
 */
#ifndef BENCH_SESSION_PRIVATE_H
#define BENCH_SESSION_PRIVATE_H

#include <stdio.h>
#include <string.h>

#include "audit.h"
#include "block_times.h"
#include "limits.h"
#include "load.h"
#include "log_figures.h"
#include "recovery.h"
#include "session.h"
#include "warm.h"

struct watch {
	int fd;
	bool (*fn)(void *ctx, int fd);
	void *ctx;
};

/* Results of the audits. */
struct audits {
	uint64_t n;
	uint64_t n_bad;		/* incomplete, damaged records, or fewer updates than before */
	uint64_t updates;	/* of the last one */
};

struct session {
	struct session_config config;
	const struct oltp_cpu_source_ops *source_ops;
	void *source;
	struct oltp_engine *engine;
	const struct bench_workload_ops *ops;	/* of the workload, and its state: */
	void *state;
	struct oltp_pool *pool;
	struct oltp_elastic *elastic;
	FILE *stats;
	struct limits limits;
	struct warm warm;
	struct log_figures log;
	struct recovery recovery;
	struct load load;
	uint32_t load_threads;	/* that filled the tables, in so many seconds */
	const char *load_unit;
	uint64_t loaded;
	double load_seconds;
	struct block_times block_times;	/* between the engine and its provider, if there is one */
	struct audit *audit;	/* NULL: the workload has none */
	struct audits audits;
	int signal_fd;
	uint64_t start_ns, end_ns;	/* of the run */
	struct watch watches[SESSION_FDS_MAX];
	uint32_t n_watches;
};

/* Says on stderr what went wrong; returns rc. */
static inline int session_fail(const char *what, int rc)
{
	fprintf(stderr, "oltp: %s: %s\n", what, strerror(-rc));
	return rc;
}

/* Lines on standard output: with a JSON result there is nothing but that. */
static inline bool session_has_lines(const struct session *s)
{
	return !s->config.options.quiet && !s->config.options.json;
}

static inline double session_run_seconds(const struct session *s, uint64_t at_ns)
{
	return (double)(at_ns - s->start_ns) / 1e9;
}

/* The watch of the audit's descriptor. */
bool session_audit_ended(void *ctx, int fd);

#endif
