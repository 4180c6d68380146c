/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Throughput and waste of slices of time with one number of CPUs. Of the slices the best and the
 * worst quarter are left out: a machine that stands still for some of them, or a lock's holder that
 * does, says nothing of the number of CPUs.
 */
#ifndef OLTP_ELASTIC_SERIES_H
#define OLTP_ELASTIC_SERIES_H

#include <stdbool.h>
#include <stdint.h>

#define SERIES_SLICES	40u

/* Zero is an empty one. */
struct series {
	uint32_t n;
	uint64_t committed;
	double rates[SERIES_SLICES];	/* committed transactions per second, ascending */
	double waste, waste_squares;	/* of the share of the workers' time */
};

/*
 * The series has room. waste: share of time; a stall is counted when it ends, and may have begun
 * slices ago.
 */
void series_add(struct series *series, double seconds, uint64_t committed, double waste);

/* Adds the slices of `more`; both together are at most SERIES_SLICES. */
void series_merge(struct series *series, const struct series *more);

/* Transactions per second; 0 if it is empty. */
double series_rate(const struct series *series);

/* Of what series_rate returns, as far as it follows from the differences between slices. */
double series_rate_variance(const struct series *series);

double series_waste(const struct series *series);
double series_waste_variance(const struct series *series);

#endif
