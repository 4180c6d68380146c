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
	double adopt_ms;	/* the look over it */
};

/*
 * Recovers, then has the workload look over its tables and take them as its beginning. quiet: no
 * line of progress (all 500 ms) and none at the end. Says on stderr what is wrong. Without a
 * database there nothing happens (has_found). Errors: those of oltp_recover and of the hook adopt;
 * -EBADMSG (the rows are not what the workload leaves).
 */
int recovery_run(struct recovery *recovery, struct oltp_engine *engine,
		 const struct bench_workload_ops *ops, void *state, bool quiet);

/* Objects "recovery" (if it was asked for) and "checkpoints" (with a log). */
void recovery_report(const struct recovery *recovery, struct oltp_engine *engine, bool has_log,
		     struct fields *fields);

#endif
