/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of a VM's promises and of how they were kept. */
#ifndef EBB_MODEL_LEDGER_H
#define EBB_MODEL_LEDGER_H

#include <stdint.h>

/*
 * Counters of one promise, in units of its resource.  They only grow, so a lost record does no
 * harm: the next one includes it.  Source of the terms: "SQLVM", sections 2.1 and 2.2.
 */
struct ebb_ledger {
	uint64_t metered_usec;		/* the intervals, one after the other */
	uint64_t wanted;		/* CPU: time in which a vCPU ran or was ready to; IO: got
					 * and violated */
	uint64_t promised;		/* due for that time; what was not wanted is not due */
	uint64_t got;
	uint64_t violated;		/* due and not given */
	uint64_t unclear;		/* may have been due as well: the accounts can not tell */
	uint64_t num_intervals;
	uint64_t num_violations;	/* intervals that broke the promise */
	uint64_t num_unclear;		/* intervals that count in unclear */
};

#endif /* EBB_MODEL_LEDGER_H */
