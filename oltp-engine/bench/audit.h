/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looking over all tables while transactions run and memory moves, on a thread of its own; one
 * look at a time.
 */
#ifndef BENCH_AUDIT_H
#define BENCH_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "workload.h"

struct audit;

struct audit_result {
	struct bench_audit found;
	uint64_t start_ns, end_ns;	/* CLOCK_MONOTONIC */
};

/* ops->audit must be there; state is that of the workload. Errors: -ENOMEM, -EMFILE. */
int audit_create(const struct bench_workload_ops *ops, void *state, struct audit **ret_audit);

/* Waits for the look that runs. Accepts NULL. */
void audit_destroy(struct audit *audit);

/* Polls readable when a result waits. */
int audit_fd(const struct audit *audit);

/* Errors: -EBUSY (one is running, or its result was not collected), those of pthread_create. */
int audit_start(struct audit *audit);

/* wait: until the one that runs is through. False: there is none. */
bool audit_collect(struct audit *audit, bool wait, struct audit_result *ret_result);

#endif
