/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What volumes were promised, wanted and got, and why one got less.  Pure, as tags.h.
 *
 * The meter judges the scheduler, so it takes nothing from it: it is told which requests came, were
 * issued (sent to the disk) and completed, and when.  "SQLVM" (sections 2.2 and 3.2) says what is
 * counted.  A request waits from its arrival to its issue; it is pending until it is completed.
 *
 * Requests are of all kinds: also flushes, discards and zeroes, which count as in tags.h (rule 9).
 *
 * A unit of a volume is what its reservation gives in a unit time: a request as rate.h counts them,
 * or EBB_RATE_UNIT bytes if only bytes are promised.
 *
 * The promise.  While requests of a volume wait, a unit is due each 1/reservation ("unit time"),
 * the first when the first request comes.  A request of several units pays for the next ones, too.
 * While none waits nothing is due: idle is nobody's fault.
 *
 *   charged   issued while a unit was due
 *   early     issued while none was due, with spare capacity; not charged
 *   missed    units that were due and not issued when the requests that waited were all issued at
 *             last, or when the interval ended
 *   violated  of an interval: missed less early.  So spare capacity counts for the interval in
 *             which it was given and no other.  This is what the effective rate of section 2.2
 *             lacks of the reservation, times the time in which requests waited.
 *   wanted    charged and violated
 *
 * Deadlines.  Each request has one: the deadline of the one before it plus its time, and not before
 * it came.  They are matched in order: the earliest deadline of a volume is that of its request
 * that is issued next, whichever that is.  An early one does not use up a deadline.
 *
 *   delay     "strong": from the deadline to the issue; distribution, sum and maximum
 *   overdue   "weak": units with a deadline in the interval that were not issued by its end.  A
 *             client that keeps n requests open never has more than n of these; what it could not
 *             even ask for, because it waited for them, is in `violated` only.
 *
 * Why.  While the volume waited, others were issued units.  The units violated are put down, in
 * this order and each as far as it goes, to
 *
 *   others early     others got units beyond their promise: the scheduler gave them away
 *   slow             the disk did less than its capacity
 *   others promised  others got what they are promised: too much is promised
 *   slow             whatever is left: nobody got it
 *
 * I/O beyond the baseline of a memory promise (section 2.3) is charged to the system, not to the
 * tenant.  Nobody on this side of the guest can tell such requests from others, so the meter counts
 * them like all others of the volume; the agent takes them off its ledger (core/io/beyond.h).
 *
 * Intervals are of the same length for all volumes.  Counters are cumulative: what happened between
 * two looks is their difference, so a look that is lost loses nothing.
 */
#ifndef EBB_VOLUMED_METER_H
#define EBB_VOLUMED_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "volumed/rate.h"

#define EBB_METER_INTERVAL_NSEC	EBB_RATE_NSEC	/* the usual */
#define EBB_METER_MIN_NSEC	1000000ull	/* intervals: 1 ms to 1 hour */
#define EBB_METER_MAX_NSEC	(3600 * EBB_RATE_NSEC)
#define EBB_METER_NOBODY	UINT64_MAX

/*
 * Classes of delays: below 1 us, then four for each doubling; the last has all from 2^24 us (17 s)
 * on.
 */
#define EBB_METER_DELAYS	98u

/* The meter's part of a request; the caller's memory, from arrive to issue. */
struct ebb_meter_request {
	struct ebb_meter_request *prev, *next;	/* of those that wait, in the order of arrival */
	uint64_t arrived;
	uint64_t bytes;
};

/* All cumulative but late_max_nsec, which is the maximum; units, where nothing else is said. */
struct ebb_meter_counters {
	uint64_t arrived, issued, completed;	/* requests */
	uint64_t arrived_units, issued_units;	/* as rate.h counts them */
	uint64_t issued_bytes;
	uint64_t waiting_nsec, pending_nsec;
	uint64_t waited_nsec;		/* from arrival to issue, sum of all requests */
	uint64_t promised;		/* all of the reservation, wanted or not */
	/* The reservation's worth of pending_nsec, in 1/10^6 units.  Set by ebb_meter_read(). */
	uint64_t promised_microunits;
	uint64_t charged, early, missed;
	/* At the end of each interval; the three reasons add up to violated. */
	uint64_t intervals;		/* that ended */
	uint64_t violated_intervals;
	uint64_t violated;
	uint64_t others_early, others_promised, slow;
	uint64_t overdue;
	/* Of requests issued at or after their deadline. */
	uint64_t due_requests;
	uint64_t late_nsec, late_max_nsec;
	uint64_t late_units;		/* with a delay above 0; as rate.h counts them */
	uint64_t delays[EBB_METER_DELAYS];
};

/* The last interval that ended, of one volume. */
struct ebb_meter_interval {
	uint64_t end;			/* time; 0: none has ended */
	uint64_t promised, wanted, got;	/* units; got: charged and early */
	uint64_t violated, others_early, others_promised, slow, overdue;
	uint64_t waiting_nsec, pending_nsec;
	uint64_t late_max_nsec;
	/* id of who had most of others_early, or else of others_promised; EBB_METER_NOBODY. */
	uint64_t taker;
};

/* What others may have got instead: cumulative, in units as rate.h counts them. */
struct ebb_meter_taken {
	uint64_t early;			/* also all of volumes without a reservation */
	uint64_t charged;
};

/* Callers set nothing; they read `id`, `took`, `last` and, by ebb_meter_read(), counters. */
struct ebb_meter_volume {
	struct ebb_meter_volume *next;
	uint64_t id;			/* the caller's number for it */
	uint64_t reserve_iops, reserve_bytes;
	uint64_t unit_nsec;		/* unit time; 0: nothing is promised */
	struct ebb_meter_request *first, *last_waiting;
	unsigned int waiting, pending;	/* requests */
	uint64_t slot;			/* when the next unit is due that was not missed */
	uint64_t deadline;		/* of the request that is issued next, if it has come */
	uint64_t promised_since;	/* up to when `promised` is counted */
	uint64_t counted_at;		/* up to when waiting_nsec and pending_nsec are */
	uint64_t charged_nsec, early_nsec;	/* less than a unit: not in the counters yet */
	/* promised_microunits and pending_nsec when the promise was made that holds now. */
	uint64_t old_microunits, old_pending_nsec;
	struct ebb_meter_taken took;
	struct ebb_meter_taken wait_all, wait_own;	/* all volumes and this, when it began */
	struct ebb_meter_taken others;	/* what others took while it waited, in this interval */
	uint64_t late_max_nsec;		/* in this interval */
	struct {
		uint64_t promised, charged, early, missed, waiting_nsec, pending_nsec;
		struct ebb_meter_taken took;
	} begin;			/* of this interval */
	struct ebb_meter_counters counters;
	struct ebb_meter_interval last;
};

struct ebb_meter {
	struct ebb_meter_volume *volumes;
	uint64_t interval_nsec;
	uint64_t end;			/* of the interval that runs */
	uint64_t now;
	uint64_t capacity_iops;		/* units per second; 0: not known */
	unsigned int waiting;		/* volumes with requests that wait */
	struct ebb_meter_taken took;	/* by all volumes */
};

/* -EINVAL: the length of an interval is out of its range.  Intervals begin at `now`. */
int ebb_meter_init(struct ebb_meter *m, uint64_t interval_nsec, uint64_t now);

/* What the disk can do, to tell a slow disk from too many promises; 0: not known. */
void ebb_meter_capacity(struct ebb_meter *m, uint64_t iops);

/* v stays where it is until it is removed.  -EINVAL: as ebb_meter_promise(). */
int ebb_meter_volume_add(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t id,
			 uint64_t reserve_iops, uint64_t reserve_bytes, uint64_t now);

/* -EBUSY: requests are pending. */
int ebb_meter_volume_remove(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t now);

/*
 * A new promise, per second, 0: none.  What was due until now stays counted.  -EINVAL: more than
 * EBB_RATE_MAX_IOPS or EBB_RATE_MAX_BYTES; nothing is changed.
 */
int ebb_meter_promise(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t reserve_iops,
		      uint64_t reserve_bytes, uint64_t now);

/* -EINVAL: bytes is more than EBB_RATE_MAX_REQUEST; nothing is counted. */
int ebb_meter_arrive(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		     uint64_t bytes, uint64_t now);
void ebb_meter_issue(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		     uint64_t now);
/*
 * Instead of both: the request is given up while it waits, for its volume is to be removed.  Nobody
 * has got anything by it, and nothing is due to it from now on.
 */
void ebb_meter_cancel(struct ebb_meter *m, struct ebb_meter_volume *v, struct ebb_meter_request *r,
		      uint64_t now);
/* One of the requests that were issued has ended. */
void ebb_meter_complete(struct ebb_meter *m, struct ebb_meter_volume *v, uint64_t now);

/* Ends the intervals that are over.  All calls above do that, too. */
void ebb_meter_advance(struct ebb_meter *m, uint64_t now);

/* Brings the times of a volume up to `now`, and returns its counters. */
const struct ebb_meter_counters *ebb_meter_read(struct ebb_meter *m, struct ebb_meter_volume *v,
						uint64_t now);

/*
 * A delay that so many thousandths of the requests did not exceed, in nanoseconds: the upper bound
 * of its class, or of the last class its lower one.  delays: EBB_METER_DELAYS, counters or the
 * difference of two looks.  0: there was no request.
 */
uint64_t ebb_meter_percentile(const uint64_t *delays, unsigned int permille);

#endif
