/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Converts values of records to ages: eviction goes by age, and the host's cut-off is a value.
 * Tables differ in both what a record costs to read again and how much memory it takes, so the same
 * value is another age in each. Pure.
 */
#ifndef OLTP_CUTOFF_H
#define OLTP_CUTOFF_H

#include "oltp.h"

/* The records of a table are divided into so many classes of age, each with its value. */
#define CUTOFF_CLASSES	32u

/* No record of the table is to go. */
#define CUTOFF_NONE	OLTP_NOT_KNOWN

/*
 * For each table, by number: the age beyond which its records are worth less than the cut-off, 0 if
 * all are. All tables together: no more than share of the resident memory, and if more is worth
 * less than the cut-off, what is worth least. Sorts the samples.
 */
void cutoff_ages(struct oltp_memory_sample *samples, uint32_t n, double cutoff, double share,
		 uint64_t ret_ages_ns[OLTP_TABLES_MAX]);

#endif
