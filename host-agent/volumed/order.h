/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which request of which volume goes to the disk next.  Pure: no I/O, no clock, no memory of its
 * own; times are nanoseconds of one monotonic clock, given by the caller.  Also compiled into the
 * storage daemon (qemu-patches/, block/ebb-volume.c); scripts/qemu-header-sync keeps the copy.
 *
 * The method is mClock's (reservation, limit and weight tags), with the deadlines of SQLVM
 * (section 3.1): requests that are promised to a volume are due 1/reservation apart.
 *
 *   1. At most `depth` requests are at the disk at a time.
 *   2. A request that is due goes before any that is not.  Of several, the one with the earliest
 *      deadline; with EBB_ORDER_PENALTY that of the volume with the highest penalty, which only
 *      matters to others when promises break.
 *   3. If none is due the disk does not idle: the volume goes next that has had least spare
 *      capacity for its weight.  This does not count against its reservation.
 *   4. No request goes before its volume's maximum allows it, not even one that is due.
 *   5. Requests of one volume go in the order in which they came.
 *   6. While more is promised than the disk can do, deadlines move by one clock that stands still
 *      when the oldest is EBB_ORDER_LAG_NSEC old.  So all are late by as much, each gets the same
 *      fraction of what it was promised, and a volume that was idle does not wait for others to
 *      catch up.  With EBB_ORDER_PENALTY the clock goes on, and a volume gives up what is older.
 *
 * Volumes with requests that wait are in heaps, so that a decision takes a time that rises with the
 * logarithm of their number.
 *
 * A request counts as one for each EBB_ORDER_UNIT bytes that it begins.  A volume that is promised
 * both requests and bytes is promised what keeps within both.
 */
#ifndef EBB_VOLUMED_ORDER_H
#define EBB_VOLUMED_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EBB_ORDER_UNIT		65536
#define EBB_ORDER_LAG_NSEC	100000000ull
/* After a pause so much of a maximum may be used at once; also makes up for late timers. */
#define EBB_ORDER_BURST_NSEC	10000000ull
#define EBB_ORDER_NEVER		UINT64_MAX
/* No more volumes than these may have requests; the caller sees to it. */
#define EBB_ORDER_MAX_VOLUMES	4096
/* Class of delays n > 0 begins at 2^(n-1) microseconds. */
#define EBB_ORDER_DELAYS	24

enum ebb_order_policy {
	EBB_ORDER_PROPORTIONAL,
	EBB_ORDER_PENALTY,
};

/* Per second; 0: none.  Weight 1 and more. */
struct ebb_order_promise {
	uint64_t reserve_iops, reserve_bytes, max_iops, max_bytes, weight, penalty;
};

struct ebb_order_request {
	struct ebb_order_request *next;
	struct ebb_order_volume *volume;
	uint64_t bytes;
	uint64_t arrived;		/* when it came */
	uint64_t due;			/* on the reservations' clock, of a volume's first */
};

/* Cumulative; units as in EBB_ORDER_UNIT. */
struct ebb_order_meter {
	uint64_t arrived, issued, completed;	/* requests */
	uint64_t arrived_units, issued_units;
	uint64_t due_units;		/* of these, issued because they were due */
	uint64_t busy_usec;		/* in which a request waited or was at the disk */
	uint64_t promised_microunits;	/* what reserve_iops was worth in that time */
	uint64_t waited_nsec;		/* sum of the time from arrival to issue */
	uint64_t late_units;		/* issued after their deadline */
	uint64_t late_nsec;		/* sum of the delays after deadlines */
	uint64_t late_max_nsec;		/* the longest of them */
	uint64_t delays[EBB_ORDER_DELAYS]; /* of requests with a deadline: issue after it */
};

enum ebb_order_heap_id {
	EBB_ORDER_HEAP_LIMITED,	/* by when its maximum allows the next request; in no other then */
	EBB_ORDER_HEAP_DUE,	/* by when its first request is due, if it has a reservation */
	EBB_ORDER_HEAP_READY,	/* by penalty: those that are due, with EBB_ORDER_PENALTY */
	EBB_ORDER_HEAP_SPARE,	/* by spare capacity that it has had */
	EBB_ORDER_HEAPS,
};

struct ebb_order_volume {
	struct ebb_order_promise promise;	/* changed by ebb_order_set_promise() alone */
	unsigned int at[EBB_ORDER_HEAPS];	/* its place in each heap, from 1; 0: not in it */
	struct ebb_order_request *first, **last;
	unsigned int queued, in_flight;
	uint64_t reserved_until;	/* deadline of the next request that is promised */
	uint64_t limited_until;		/* no request before this */
	uint64_t spare;			/* spare capacity that it has had, for its weight */
	uint64_t busy_since;		/* up to when busy_usec is counted */
	struct ebb_order_meter meter;
};

/* The least is first: by key, then by tie. */
struct ebb_order_entry {
	uint64_t key, tie;
	struct ebb_order_volume *volume;
};

struct ebb_order_heap {
	unsigned int num;
	struct ebb_order_entry entries[EBB_ORDER_MAX_VOLUMES];
};

struct ebb_order {
	unsigned int depth;		/* 1 and more */
	enum ebb_order_policy policy;	/* changed by ebb_order_set_policy() alone */
	unsigned int in_flight;
	uint64_t clock, clock_at;	/* reservations' clock, and the time at which it said so */
	uint64_t spare;			/* of the volume that had spare capacity last */
	struct ebb_order_heap heaps[EBB_ORDER_HEAPS];
};

void ebb_order_init(struct ebb_order *o, unsigned int depth);
void ebb_order_volume_init(struct ebb_order_volume *v, const struct ebb_order_promise *p);

/* Both are in force with the next decision, also for requests that wait. */
void ebb_order_set_policy(struct ebb_order *o, enum ebb_order_policy policy);
void ebb_order_set_promise(struct ebb_order *o, struct ebb_order_volume *v,
			   const struct ebb_order_promise *p, uint64_t now);

/* A request came.  It is the caller's, and stays where it is until it is handed back. */
void ebb_order_arrive(struct ebb_order *o, struct ebb_order_volume *v,
		      struct ebb_order_request *r, uint64_t bytes, uint64_t now);

/*
 * The request that goes to the disk now; NULL: none, and *ret_wake is when to ask again even if
 * nothing happens (EBB_ORDER_NEVER: only after an arrival or a completion).
 */
struct ebb_order_request *ebb_order_next(struct ebb_order *o, uint64_t now, uint64_t *ret_wake);

/* A volume that waits for that time; only right after ebb_order_next() named one. */
struct ebb_order_volume *ebb_order_waiting(const struct ebb_order *o);

/* The first request of a volume goes whatever rule stands against it; NULL: none waits. */
struct ebb_order_request *ebb_order_force(struct ebb_order *o, struct ebb_order_volume *v,
					  uint64_t now);

/* A request that was handed back has come back from the disk. */
void ebb_order_complete(struct ebb_order *o, struct ebb_order_volume *v, uint64_t now);

/* Brings the times of the meter up to date. */
void ebb_order_meter_at(struct ebb_order_volume *v, uint64_t now);

#endif
