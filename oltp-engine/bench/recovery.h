/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bringing a database of before up again: progress, a look over it, figures. */
#ifndef BENCH_RECOVERY_H
#define BENCH_RECOVERY_H

#include <stdbool.h>

#include "fields.h"
#include "workload.h"

struct recovery {
	bool was_asked;
	bool has_found;		/* there was a database */
	struct oltp_recovery figures;
	double first_ms;	/* from the call of oltp_recover to its first commit; 0: none */
	double adopt_ms;	/* the look over it; 0: it was left out */
};

struct recovery_config {
	bool is_lazy;
	bool is_verified;	/* at the end, so that a look over it cannot be left out */
	bool quiet;		/* no line of progress (all 500 ms) and none at the end */
};

/*
 * Recovers, then has the workload look over its tables and take them as its beginning, unless it
 * was lazy and the workload can do without. Says on stderr what is wrong. Without a database there
 * nothing happens (has_found). Errors: those of oltp_recover and of the hooks first and adopt;
 * -EBADMSG (the rows are not what the workload leaves).
 */
int recovery_run(struct recovery *recovery, struct oltp_engine *engine,
		 const struct bench_workload_ops *ops, void *state,
		 const struct recovery_config *config);

/* Objects "recovery" (if it was asked for) and "checkpoints" (with a log). */
void recovery_report(const struct recovery *recovery, struct oltp_engine *engine, bool has_log,
		     struct fields *fields);

#endif
