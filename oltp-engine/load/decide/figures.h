/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts of ended requests: response times by node and by kind, failures by reason. One struct for
 * a second and one for the whole run. Pure.
 */
#ifndef LOAD_FIGURES_H
#define LOAD_FIGURES_H

#include <stdint.h>

#include "oltp-engine/src/base/hist.h"
#include "pool.h"
#include "request.h"

enum load_failure {
	LOAD_FAIL_QUEUE,	/* waited too long for a connection, or the queue was full */
	LOAD_FAIL_BROKEN,	/* the connection broke after the request was sent */
	LOAD_FAIL_TIMEOUT,	/* no answer within the bound */
	LOAD_FAIL_ERROR,	/* the server answered with an error */
	LOAD_FAIL_WRONG,	/* the answer is not what the database must have */
	LOAD_FAILURES,
};

struct load_times {
	struct hist_view hist;	/* response times */
	uint64_t done;
	uint64_t failed;
	uint64_t sum_ns;	/* of response times: arrival to the end of the answer */
	uint64_t max_ns;
	uint64_t service_ns;	/* sum of the times from sending to the end of the answer */
};

struct load_figures {
	uint64_t arrived;
	uint64_t sent;		/* to a server; once more if sent again */
	uint64_t repeated;	/* times that a request was kept to be sent again */
	uint64_t failed[LOAD_FAILURES];
	/* By node; failed: those of requests that were under way there. */
	struct load_times nodes[LOAD_NODES_MAX];
	struct load_times kinds[LOAD_KINDS];
};

void load_figures_done(struct load_figures *figures, uint32_t node, enum load_kind kind,
		       uint64_t response_ns, uint64_t service_ns);

/* As node: the request was not under way on a connection. */
#define LOAD_NO_NODE	LOAD_NODES_MAX

void load_figures_fail(struct load_figures *figures, uint32_t node, enum load_kind kind,
		       enum load_failure why);

/* whole += part */
void load_figures_add(struct load_figures *whole, const struct load_figures *part);

/* sum += times */
void load_times_add(struct load_times *sum, const struct load_times *times);

double load_times_mean_us(const struct load_times *times);
double load_times_service_us(const struct load_times *times);	/* mean */

/* At most the largest of them, though buckets are coarser. */
double load_times_quantile_us(const struct load_times *times, double quantile);

uint64_t load_figures_failed(const struct load_figures *figures);

#endif
