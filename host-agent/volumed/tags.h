/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which request of which volume goes to the disk next, so that each volume gets the I/O that it is
 * promised.  Pure: no I/O, no clock, no memory of its own.  Times are nanoseconds of one monotonic
 * clock, which the caller reads; structs are the caller's.  One thread at a time may call, for
 * example under a lock.
 *
 * The caller reports each request that came (arrive) and each one that the disk has done (done),
 * and after either asks for requests to send to the disk (next) until none is left.
 *
 * The method: deadlines of "SQLVM" (section 3.1), in the three tags of mClock (Gulati et al., OSDI
 * 2010).  Each volume has
 *
 *   slot           when its next request is due: 1/reservation after the last one that was sent
 *                  because it was due, and not before one waits.  SQLVM's counter.
 *   limited_until  no request before this time: 1/maximum after the last one; flushes have one of
 *                  their own
 *   spare          how much spare capacity it had for its weight, as in start-time fair queueing
 *
 * Rules:
 *   1. A request is due when its volume's slot has come.  What is due goes first, earliest slot
 *      first.
 *   2. While nothing is due the disk does not idle: the volume with the least `spare` goes next.
 *      That does not move its slot, so nobody pays later for capacity that nobody else wanted.
 *   3. At most `depth` requests are at the disk, and the next one not before less than
 *      `depth_bytes` of it are there.  A request that is due may go beyond both, by an eighth of
 *      `depth` (at least 1), so that it need not wait for a flood of others.
 *   4. No request goes before limited_until, also none that is due.  Flushes have a maximum of
 *      their own, of the same rate: a flush waits for the flush before it and not for what large
 *      writes have used up, which may be minutes.  QEMU flushes all disks when a VM stops, and
 *      nothing else runs meanwhile.  So a volume gets its maximum, and at most as many flushes.
 *   5. Time in which a volume had no request waiting is lost for it: its slot and its spare start
 *      where those of the others are.
 *   6. While more is due than the disk can do (overbooked),
 *        EBB_TAGS_PROPORTIONAL  the clock that slots are compared with stands still when the oldest
 *                  slot is EBB_TAGS_LAG_NSEC behind it.  So all slots are late by the same time,
 *                  and each volume gets the same fraction of its reservation.
 *        EBB_TAGS_PENALTY  of what is due, that of the volume with the highest penalty goes first,
 *                  so that the sum of penalties is the least possible.  Slots that are older than
 *                  EBB_TAGS_LAG_NSEC are given up.
 *   7. Slots belong to a volume, not to its requests.  Which of its requests uses a slot is decided
 *      by flows (flow.h): flows with requests waiting take turns, by size, and within a flow
 *      requests go in the order in which they came.  So a burst of a few requests need not wait
 *      behind a scan with hundreds, and the volume's rate is the same (SQLVM, section 3.1).
 *   8. A request counts as one for each EBB_RATE_UNIT bytes that it begins.  A volume that is
 *      promised both requests and bytes is promised what keeps within both: a request moves the
 *      slot by the longer of the two times.  Maxima alike.
 *   9. All that makes the disk work takes part, so that no volume can flood the disk past the
 *      rules.  What counts is the data that the disk moves:
 *        reads, writes   their bytes; also zeroes that the disk has to write as data
 *        discards        0 bytes, which counts as one request and as EBB_RATE_UNIT bytes; also
 *                        zeroes that the disk makes without writing them.  Both change the disk's
 *                        maps only.  Linux's blk-throttle counts a discard as one request of one
 *                        sector, too.  By its bytes, as QEMU's throttle filter counts it, one
 *                        discard of a whole disk would cost its volume hours.  But it may keep the
 *                        disk for long, too.  So the caller cuts discards and such zeroes into
 *                        pieces of 32 MiB, which is what a client may write at once: each piece
 *                        counts as a request, and others get their turns in between.
 *        flushes         the same, as what a flush has to write was charged as it was written
 *        block status    none: these requests take no part.  A client asks with them what of a
 *                        volume is allocated.  They move no data, and whoever is promised I/O is
 *                        promised none of them.  A guest can not send them: only programs that may
 *                        use the NBD socket, and so every volume, can (a copy, for example).
 *      A flush is in the flow EBB_TAGS_FLUSHES, so it takes turns with the volume's other requests
 *      and may overtake them.  That keeps its meaning: it covers writes that were completed before
 *      it came, and these are in no queue any more.  So it never waits for a write to complete.
 *
 * Work for a tenant that another process does in the background (cache write-back, copies) is a
 * request to the tenant's volume like any other.  The system's own work (migration, checkpoints,
 * calibration) is a volume with a promise of its own.
 *
 * A decision takes a time that rises with the logarithm of the number of volumes with requests
 * that wait.
 */
#ifndef EBB_VOLUMED_TAGS_H
#define EBB_VOLUMED_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "volumed/rate.h"

#define EBB_TAGS_LAG_NSEC	100000000ull
/* After a pause, a volume may use its maximum of this time at once.  Makes up for late timers. */
#define EBB_TAGS_BURST_NSEC	10000000ull
#define EBB_TAGS_NEVER		UINT64_MAX
#define EBB_TAGS_FLOWS		9u
#define EBB_TAGS_FLUSHES	8u		/* the flow of flushes (rules 4 and 9) */

#define EBB_TAGS_MAX_VOLUMES	4096u
#define EBB_TAGS_MAX_DEPTH	4096u
#define EBB_TAGS_MAX_WEIGHT	10000u
#define EBB_TAGS_MAX_PENALTY	1000000u
#define EBB_TAGS_MAX_CAPACITY	(1ull << 46)	/* units, bytes per second */
#define EBB_TAGS_MAX_OVERBOOK	100000u		/* percent */

enum ebb_tags_policy {
	EBB_TAGS_PROPORTIONAL,
	EBB_TAGS_PENALTY,
};

struct ebb_tags_config {
	unsigned int depth;		/* requests at the disk; 1 to EBB_TAGS_MAX_DEPTH */
	uint64_t depth_bytes;		/* see rule 3; 0: no such bound */
	enum ebb_tags_policy policy;	/* whose promise breaks when not all can be kept */
	uint64_t capacity_iops;		/* of the disk, in units per second; 0: not known */
	uint64_t capacity_bytes;	/* the same in bytes per second */
	/* This much of a known capacity may be promised; 1 to EBB_TAGS_MAX_OVERBOOK, 100: all. */
	unsigned int overbook_percent;
};

/*
 * Of a volume.  Rates are per second, 0: none; up to EBB_RATE_MAX_IOPS and EBB_RATE_MAX_BYTES, and
 * requests counted as in rule 8.
 */
struct ebb_tags_promise {
	uint64_t reserve_iops, reserve_bytes;	/* it gets them whenever it has such requests */
	uint64_t max_iops, max_bytes;	/* it never gets more; not below the reservation */
	uint32_t weight;		/* for spare capacity; 1 to EBB_TAGS_MAX_WEIGHT */
	uint32_t penalty;		/* of a unit that is late; 0 to EBB_TAGS_MAX_PENALTY */
};

struct ebb_tags_volume;

/* The caller sets `flow` before it arrives; the rest belongs to the scheduler until done. */
struct ebb_tags_request {
	struct ebb_tags_request *next;	/* in its flow */
	struct ebb_tags_volume *volume;
	uint64_t bytes;
	uint64_t arrived;		/* time at which it came */
	unsigned int flow;		/* 0 to EBB_TAGS_FLOWS - 1 */
	bool is_due;			/* it was sent because it was due */
};

struct ebb_tags_flow {
	struct ebb_tags_request *first, **last;
	uint64_t served;		/* units, as in start-time fair queueing */
};

enum ebb_tags_heap_id {
	EBB_TAGS_HEAP_LIMITED,		/* by the end of their limit, if ahead; in no other then */
	EBB_TAGS_HEAP_DUE,		/* by slot: those with a reservation */
	EBB_TAGS_HEAP_READY,		/* by penalty: those that are due, with EBB_TAGS_PENALTY */
	EBB_TAGS_HEAP_SPARE,		/* by spare capacity that they had */
	EBB_TAGS_HEAP_DRAIN,		/* those that are drained; in no other then */
	EBB_TAGS_HEAPS,
};

/* Callers read only. */
struct ebb_tags_volume {
	struct ebb_tags_promise promise;
	uint64_t slot;			/* on the clock of the slots (struct ebb_tags) */
	uint64_t limited_until, flushes_limited_until;
	uint64_t spare;
	unsigned int at[EBB_TAGS_HEAPS]; /* its place in each heap, from 1; 0: not in it */
	unsigned int waiting, in_flight; /* requests */
	unsigned int flushes;		/* of those that wait */
	unsigned int drained;		/* drain_begin() less drain_end() */
	struct ebb_tags_flow flows[EBB_TAGS_FLOWS];
	uint64_t flow_served;		/* of the flow that was served last */
};

struct ebb_tags_entry {
	uint64_t key;			/* the least is first */
	struct ebb_tags_volume *volume;
};

struct ebb_tags_heap {
	unsigned int num;
	struct ebb_tags_entry entries[EBB_TAGS_MAX_VOLUMES];
};

/* About 330 KiB.  Callers read only. */
struct ebb_tags {
	struct ebb_tags_config config;
	unsigned int num_volumes;
	unsigned int waiting, in_flight; /* requests of all volumes */
	uint64_t in_flight_bytes;
	uint64_t promised_iops, promised_bytes;	/* to all volumes */
	uint64_t clock, clock_at;	/* the clock of slots (rule 6), and when it was read last */
	uint64_t spare;			/* of the volume that had spare capacity last */
	struct ebb_tags_heap heaps[EBB_TAGS_HEAPS];
};

/* -EINVAL: a number is out of its range.  Nothing to finish. */
int ebb_tags_init(struct ebb_tags *t, const struct ebb_tags_config *config);

/*
 * In force with the next decision, also for requests that wait.  Promises that exist stay, even if
 * the new capacity is too little for them.  -EINVAL: as above, nothing is changed.
 */
int ebb_tags_configure(struct ebb_tags *t, const struct ebb_tags_config *config, uint64_t now);

/*
 * A volume comes; v stays where it is until it is removed.
 *   -EINVAL  a number is out of its range, or a maximum is below the reservation
 *   -ENOSPC  more would be promised to all volumes than capacity and overbook_percent allow
 *   -ENFILE  there are EBB_TAGS_MAX_VOLUMES
 * With an error nothing is changed.
 */
int ebb_tags_volume_add(struct ebb_tags *t, struct ebb_tags_volume *v,
			const struct ebb_tags_promise *p);

/* A new promise, in force with the next decision, also for requests that wait.  Errors as above. */
int ebb_tags_volume_set(struct ebb_tags *t, struct ebb_tags_volume *v,
			const struct ebb_tags_promise *p, uint64_t now);

/* -EBUSY: requests of it wait or are at the disk. */
int ebb_tags_volume_remove(struct ebb_tags *t, struct ebb_tags_volume *v);

/*
 * A request came, with so many bytes as in rule 9.  r stays where it is until ebb_tags_done().
 * -EINVAL: bytes is more than EBB_RATE_MAX_REQUEST, or r->flow is none.
 */
int ebb_tags_arrive(struct ebb_tags *t, struct ebb_tags_volume *v, struct ebb_tags_request *r,
		    uint64_t bytes, uint64_t now);

/*
 * The request to send to the disk now.  NULL: none; *ret_wake is then when to ask again even if no
 * request comes or is done before (EBB_TAGS_NEVER: only then).
 */
struct ebb_tags_request *ebb_tags_next(struct ebb_tags *t, uint64_t now, uint64_t *ret_wake);

/*
 * A volume with requests that wait, so that it is not drained and may own the timer for *ret_wake.
 * Only right after ebb_tags_next() gave NULL and such a time.
 */
struct ebb_tags_volume *ebb_tags_waits(const struct ebb_tags *t);

/*
 * Takes a request of the volume that waits out of the queue, in no order: it is not sent, and not
 * done.  NULL: none waits.  For a volume that is to be removed, whose clients are gone.
 */
struct ebb_tags_request *ebb_tags_cancel(struct ebb_tags *t, struct ebb_tags_volume *v,
					 uint64_t now);

/* The disk has done a request that ebb_tags_next() gave, with or without an error. */
void ebb_tags_done(struct ebb_tags *t, struct ebb_tags_request *r);

/*
 * Between begin and end, ebb_tags_next() gives requests of the volume at once, past all rules: who
 * drains waits for all of them to end, and must not wait for a maximum.  They count as usual.
 * May be nested.  Ask ebb_tags_next() after begin.
 */
void ebb_tags_drain_begin(struct ebb_tags *t, struct ebb_tags_volume *v, uint64_t now);
void ebb_tags_drain_end(struct ebb_tags *t, struct ebb_tags_volume *v, uint64_t now);

#endif
