/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the promise of a cache was kept in an interval, from the I/Os that the guest counted
 * ("SQLVM", section 2.3).  Pure arithmetic, in I/Os (struct promise_outcome):
 *
 *   promised   I/Os of the simulated cache: the database would have made as many anyway got
 *   I/Os that the database made violated   I/Os beyond the promise.  They are charged to the
 *   system, not to the tenant wanted     accesses to records.  Idle time breaks no promise unclear
 *   I/Os of intervals in which the guest's counters are not believed; at least 1
 *
 * Simulation and disk do not count a miss at the same moment, and the simulation samples.  So an
 * excess that may be chance (ebb_relio_grain) is no violation yet: it is carried on until the
 * excess of later intervals makes it more, or intervals with fewer I/Os than promised take it back
 * (a one-sided cumulative sum).  Fewer I/Os in one interval excuse nothing in the next.
 */
#ifndef EBB_CORE_PROMISE_CACHE_H
#define EBB_CORE_PROMISE_CACHE_H

#include "core/promise/reckon.h"
#include "model/relio.h"

/* verdict: not EBB_RELIO_NONE.  owed: I/Os that are carried on; 0 for the first interval. */
void promise_reckon_cache(const struct ebb_relio_interval *i, enum ebb_relio_verdict verdict,
			  uint64_t *owed, struct promise_outcome *ret);

#endif /* EBB_CORE_PROMISE_CACHE_H */
