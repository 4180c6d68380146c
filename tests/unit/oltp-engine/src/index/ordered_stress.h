/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that add, move and delete rows in groups, each with a counter in another table, and that
 * check: whatever a committed transaction saw by scanning must agree with the counters it read; two
 * groups of which everybody keeps the sum below a limit, by scanning them before adding, must be
 * below it; and of two keys that are added only if the other one is missing there may be only one.
 * Each of that fails if phantoms can come.
 */
#ifndef ORDERED_STRESS_H
#define ORDERED_STRESS_H

#include <pthread.h>

#include "ordered_rig.h"

#define STRESS_KEYS	400u
#define STRESS_GROUPS	6u	/* the last two are the pair */
#define STRESS_PAIR_MAX	12u

struct ordered_stress {
	struct ordered_rig *rig;	/* its workers are not used */
	struct oltp_table *counters;
	_Atomic uint64_t n_checks;	/* committed */
	_Atomic uint64_t n_changes;
	_Atomic bool has_failed;
};

/* Makes the table of counters; records of rows may be longer than struct ordered_row. */
void ordered_stress_open(struct ordered_stress *stress, struct ordered_rig *rig);

/* Runs so many threads, with so many transactions each. */
void ordered_stress_run(struct ordered_stress *stress, uint32_t n_threads, uint32_t n_txns);

/* Nobody else is there: everything agrees. */
void ordered_stress_check(struct ordered_stress *stress);

#endif
