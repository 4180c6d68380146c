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
	bool takes_rates;		/* session_set_rate may be called */
	uint32_t max_cpus;
	/*
	 * Where memory for records comes from instead of what the options say; ops NULL: not so.
	 * attach is told of the engine once it is there, and of its end with NULL.
	 */
	const struct oltp_block_ops *blocks;
	void *blocks_ctx;
	void (*attach)(void *blocks_ctx, struct oltp_engine *engine);
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
 * Starts a look over the table; its result is printed as a line when it is through, and kept for
 * session_finish. Errors: -EBUSY (one is running), -EOPNOTSUPP (the workload has none), -EAGAIN.
 */
int session_audit(struct session *session);

/*
 * From now on transactions arrive at this rate, per second, instead of work without limit. Errors:
 * -EBUSY (there is a schedule of rates), -EOPNOTSUPP (the session was not opened for it), -EINVAL.
 */
int session_set_rate(struct session *session, double per_second);

/*
 * Starts the workers and runs until time is up, a signal, or a watch that says so; then stops the
 * workers and gives CPUs back. 0, or -errno with a line on stderr.
 */
int session_run(struct session *session);

/*
 * After session_run: verifies (if asked to) and prints the result: one JSON object behind prefix,
 * or, if that is NULL, a table. Returns true if nothing was lost, no transaction failed, and result
 * and samples could be written.
 */
bool session_finish(struct session *session, FILE *out, const char *prefix);

/* Stops the workers for good, so that the source may go before the session does. */
void session_stop(struct session *session);

/* Accepts NULL. */
void session_close(struct session *session);

#endif
