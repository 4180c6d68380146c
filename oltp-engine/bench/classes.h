/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Figures by class of transaction, for workloads that have several: NewOrder, Payment and so on.
 * Workers count for themselves; anybody may read the sums at any time.
 */
#ifndef BENCH_CLASSES_H
#define BENCH_CLASSES_H

#include <stdint.h>

#include "fields.h"
#include "oltp.h"

#define CLASSES_MAX	8u

struct classes;
struct class_worker;

/* names: for the life of it, letters, digits and underscores. Errors: -EINVAL (n), -ENOMEM. */
int classes_create(const char *const *names, uint32_t n, struct classes **ret_classes);

/* After all workers have detached. Accepts NULL. */
void classes_destroy(struct classes *classes);

/* From the workload's attach hook. Errors: -ENOMEM. */
int classes_attach(struct classes *classes, struct class_worker **ret_worker);

/* What it counted stays in the sums. Accepts NULL. */
void classes_detach(struct class_worker *worker);

/* From the workload's arrived hook: when the transaction arrived that begins next. */
void class_arrived(struct class_worker *worker, uint64_t arrival_ns);

/* The transaction in this slot (0 to OLTP_TICKETS - 1) is a new one of this class. */
void class_begin(struct class_worker *worker, uint32_t slot, uint32_t class);

/* How an attempt at it ended: each one, also those that are tried again. */
void class_attempted(struct class_worker *worker, uint32_t slot, enum oltp_rc rc);

/* Since the start. */
struct class_figures {
	const char *name;
	uint64_t committed;
	uint64_t conflicts;	/* attempts that were tried again because of one */
	uint64_t failed;	/* neither of these, nor OLTP_COLD */
	/*
	 * Of those that committed: with arrivals all, since their arrival is known anyway; else one
	 * in 16.
	 */
	uint64_t measured;
	/* First attempt to commit, with arrivals: arrival to commit; 0 with none measured. */
	double p50_us, p95_us, p99_us;
};

uint32_t classes_count(const struct classes *classes);
void classes_read(struct classes *classes, uint32_t class, struct class_figures *ret_figures);

/* An object "classes" of one object for each; seconds: what rates are based on. */
void classes_report(struct classes *classes, double seconds, struct fields *fields);

#endif
