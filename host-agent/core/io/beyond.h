/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads beyond the baseline of a promised cache: they "are not charged to the tenant's ResIOPS;
 * these additional I/Os are charged to the system" ("SQLVM", section 2.3).  Pure arithmetic.
 *
 * Two meters have to be brought together: that of the cache says how many reads of an interval
 * were beyond the promise, that of the volume how many units an interval of I/O had.  Both
 * read every meter_interval_ms, but not at the same moments, and counters only grow, so an interval
 * that is recorded can not be changed.  So reads are charged in the interval of I/O that runs when
 * they are reported.  Reads for which this interval has no units are charged in the next one, and
 * reads that are left over then are dropped: they never came to the volume.
 */
#ifndef EBB_CORE_IO_BEYOND_H
#define EBB_CORE_IO_BEYOND_H

#include "core/vm.h"

/* The meter of the cache reports `reads` of an interval that lasted `length`, until `now`. */
void io_beyond_report(struct io_beyond *b, usec_t now, usec_t length, uint64_t reads);

/* An interval of I/O that began at `start` had `got` units: how many of them the system gets. */
uint64_t io_beyond_take(struct io_beyond *b, usec_t start, uint64_t got);

/*
 * Takes reads off an interval of the tenant's, a unit each; reads: up to row->got.
 *
 * The volume server did not know that they were not the tenant's, so they may have used up units
 * that were due to it.  Whether another request of the tenant waited then nobody has counted.  So
 * units that are due and that neither `got` nor `violated` has any more are moved from `promised`
 * to `unclear`: what was violated lies between `violated` and `violated + unclear`.
 */
void io_beyond_charge(struct ebb_ledger *row, uint64_t reads);

#endif /* EBB_CORE_IO_BEYOND_H */
