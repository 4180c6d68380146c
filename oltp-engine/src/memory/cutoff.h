/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From what records are worth to how old they are: eviction goes by age, and a cut-off of the host
 * is a value. Tables differ in both what a record costs to read again and how much memory it takes,
 * so the same value is another age in each. Pure.
 */
#ifndef OLTP_CUTOFF_H
#define OLTP_CUTOFF_H

#include "oltp.h"

/* Of one table: what is known of age and value is known in so many steps. */
#define CUTOFF_CLASSES	32u

/* Nothing of the table. */
#define CUTOFF_NONE	OLTP_NOT_KNOWN

/*
 * Of each table (by number) the age beyond which its records are worth less than the cut-off, 0 if
 * all are; but no more of them than share of all resident memory, if there is so much: the least
 * valuable then. Sorts the samples.
 */
void cutoff_ages(struct oltp_memory_sample *samples, uint32_t n, double cutoff, double share,
		 uint64_t ret_ages_ns[OLTP_TABLES_MAX]);

#endif
