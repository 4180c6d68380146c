/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a promise of CPU time was kept in an interval, from the scheduler's accounts of the vCPUs
 * alone.  Pure arithmetic.
 *
 * The promise ("SQLVM", section 2.1): of the time in which at least one vCPU was running or
 * runnable ("ready"), the VM gets `permille` thousandths of a core.  With k vCPUs ready it can use
 * k cores at most, so min(permille, 1000 k) is due then.  Idle time makes nothing due.
 *
 * The accounts.  Each vCPU thread has a sum of the time that it ran and one of the time
 * that it was runnable and waited; ready is both.  For one vCPU that is exact.  For several the
 * accounts do not say how far their ready times overlap, so what was due has two bounds:
 *
 *   least  they overlap as far as possible: each vCPU was ready only while all vCPUs with longer
 *          ready times were ready, too.  With r1 >= r2 >= ... the ready times, due = sum over j of
 *          rj * (min(permille, 1000 j) - min(permille, 1000 (j - 1)))
 *   most   they overlap as little as possible:
 *          due = min(permille * min(interval, sum of rj), 1000 * sum of rj)
 *
 * A promise counts as broken against `least`, so a VM's idle time is never held against the host.
 * The time between the bounds counts as unclear, so a delay is never passed over in silence: the
 * truth lies between `violated` and `violated + unclear`.  The bounds meet for one vCPU, while all
 * vCPUs are ready, and where each vCPU is promised a whole core.
 *
 * No account of Linux closes the gap.  /proc/PID/task/TID/schedstat has one sum for each thread,
 * and threads that were ready together have the same sums as threads that took turns.  Shorter
 * intervals do not help, since a wait is added when it ends, to the interval of that moment.
 * Pressure (PSI, cpu.pressure of a cgroup) says when some thread waited, not when some thread ran,
 * is an average over CPUs, and is missing in cgroup version 1.  Only a trace of each switch
 * (sched_switch) would do; the host would pay for it with each switch of each VM.
 *
 * core/reserve/ keeps a promise in equal parts, one for each vCPU on its own core.  A VM whose
 * vCPUs are not equally busy can have each part and still less than is due here, and the meter
 * says so.
 *
 * When the accounts change.  The kernel adds a wait when it ends, so a wait that began before the
 * interval counts in it as a whole.  CPU time that an interval gave beyond its promise therefore
 * also pays for earlier waits that the next interval's accounts contain.  The sum of run times lags
 * by a tick at most.  So a debt of up to a tick for each vCPU is no violation yet: it is carried on
 * until the debts that follow make it more, or an interval gives it back.
 *
 * Whole periods.  A core of an emulated host has its quota once in each period, and stands still
 * when that is used up.  An interval holds some whole periods and pieces of two more.  Such a piece
 * may have little of what its period gives, the rest of which is in the next interval, or much of
 * it.  A promise that every period keeps can so lack as much as it is worth in one period in one
 * interval, and have that beyond it in others.  So a balance is carried on, between the worth of a
 * period above and below zero:
 *
 *   credit  what intervals gave beyond their promises pays for what later ones lack.  More than a
 *           period is worth was spare capacity and no piece of a period: no credit is left then
 *   owed    what one interval lacks is broken only if the next one that lacks something finds it
 *           still owed, or at once as far as a period is worth less
 *
 * So of what a VM was promised and did not get, in any time, at most the worth of one period and
 * the debt of a tick is not (or not yet) in `violated`, besides the credit that it had when that
 * time began: another period's worth at most.  A VM that is short in each interval, and had no
 * credit, breaks its promise in each but the first.
 */
#ifndef EBB_CORE_PROMISE_RECKON_H
#define EBB_CORE_PROMISE_RECKON_H

#include "model/record.h"

/* The tick of the slowest kernel, HZ=100. */
#define PROMISE_TICK_USEC	(10 * EBB_USEC_PER_MSEC)

/* Of one vCPU in the interval. */
struct promise_times {
	usec_t ran, waited;
};

/* The promise to a VM. */
struct promise_terms {
	uint32_t permille;		/* thousandths of a core */
	uint32_t share;			/* thousandths of a real CPU that a core is worth: 1000 but
					 * on emulated hosts */
	usec_t period;			/* in each of which a core has its quota; 0: it has none */
};

/* From one interval to the next; all 0 for the first. */
struct promise_carry {
	usec_t spare;			/* given beyond the promise by the last interval */
	usec_t owed;			/* not given, and not broken yet */
	usec_t credit;			/* given beyond promises, up to the worth of a period; 0
					 * while something is owed */
};

/* Microseconds of CPU time of the host, but `wanted`, which is time. */
struct promise_outcome {
	usec_t wanted, promised, got, violated, unclear;
};

/* num: up to EBB_MAX_VCPUS. */
void promise_reckon(const struct promise_times *vcpus, uint16_t num, usec_t length,
		    const struct promise_terms *terms, struct promise_carry *carry,
		    struct promise_outcome *ret);

/* Adds an interval to the counters. */
void promise_add(struct ebb_ledger *sum, usec_t length, const struct promise_outcome *o);

#endif /* EBB_CORE_PROMISE_RECKON_H */
