/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run of the engine under a workload: load, run with an elastic pool, verify, report. What
 * oltp-bench and oltp-server have in common; they differ in where CPUs come from and who says stop.
 */
#ifndef BENCH_SESSION_H
#define BENCH_SESSION_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "options.h"

#define SESSION_FDS_MAX		16u

struct session_config {
	struct bench_options options;
	bool no_pin;
	enum oltp_elastic_mode mode;
	uint32_t max_cpus;
	uint64_t step_ns;
	bool end_with_steps;	/* OLTP_ELASTIC_STEP: end the run when the steps are done */
};

struct session;

/*
 * Loads the table. Says on stderr what went wrong; errors are -errno. SIGTERM and SIGINT are
 * blocked from here on, in all threads, and end session_run.
 */
int session_open(const struct session_config *config, struct session **ret_session);

/* Where CPUs come from; before session_run. The source must outlive the session. */
void session_set_source(struct session *session, const struct oltp_cpu_source_ops *ops,
			void *source);

/*
 * File descriptors that session_run polls as well. fn returns true to end the run. fds may come and
 * go while the session runs, also from inside fn.
 */
int session_watch(struct session *session, int fd, bool (*fn)(void *ctx, int fd), void *ctx);
void session_unwatch(struct session *session, int fd);

/*
 * Starts the workers and runs until time is up, a signal, or a watch that says so; then stops the
 * workers and gives CPUs back. 0, or -errno with a line on stderr.
 */
int session_run(struct session *session);

/*
 * After session_run: verifies (if asked to) and prints the result behind prefix. Returns true if
 * nothing was lost and no transaction failed.
 */
bool session_finish(struct session *session, FILE *out, const char *prefix);

/* Accepts NULL. */
void session_close(struct session *session);

#endif
