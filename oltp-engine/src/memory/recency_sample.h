/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How often records are used, from looks at their stamps (lock.h). Pure: what was seen and when is
 * given. recency.c looks.
 */
#ifndef OLTP_RECENCY_SAMPLE_H
#define OLTP_RECENCY_SAMPLE_H

#include <stdint.h>

/* ---- when an epoch was ---- */

/*
 * Which epoch it was at each tick: all of the last ticks, every second one of those before, and so
 * on: an age comes out at most one part in fifteen too large (or by one tick), over 2^28 ticks.
 */
#define RECENCY_LEVELS		24u
#define RECENCY_LEVEL_TICKS	32u

struct recency_tick {
	uint64_t epoch, ns;
};

struct recency_clock {
	uint64_t n;	/* ticks so far */
	struct recency_tick ticks[RECENCY_LEVELS][RECENCY_LEVEL_TICKS];
};

/* Neither may go back. */
void recency_clock_tick(struct recency_clock *clock, uint64_t epoch, uint64_t ns);

/* The time of the last tick whose epoch was not later than this one; 0: not known. */
uint64_t recency_clock_ns(const struct recency_clock *clock, uint64_t epoch);

/* The epoch at the last tick that was not after that time; 0: not known. */
uint64_t recency_clock_epoch(const struct recency_clock *clock, uint64_t ns);

/* ---- a record ---- */

#define RECENCY_K	2u

struct recency {
	uint64_t stamp;			/* newest that was seen; 0: none */
	uint64_t used_ns[RECENCY_K];	/* last uses, newest first; 0: not known */
	uint64_t since_ns;		/* watched */
};

/* stamp: 0 if it cannot be seen now; stamp_ns: when that was (recency_clock_ns). */
void recency_begin(struct recency *recency, uint64_t stamp, uint64_t stamp_ns, uint64_t now_ns);

/*
 * Another look. Stamps of several workers may go back a little: only a newer one is a use. One in
 * the same tick as the use before is the same use.
 */
void recency_look(struct recency *recency, uint64_t stamp, uint64_t stamp_ns);

/* ---- how much is watched ---- */

#define RECENCY_SAMPLES		512u	/* resident ones, in all */
#define RECENCY_TABLE_MIN	16u	/* of each table, however small its share */
#define RECENCY_BUCKETS_MAX	4096u	/* of a table */
/* A table may have this many times the samples that it should, cold ones included. */
#define RECENCY_SLACK		4u

struct recency_facts {
	uint64_t n_buckets;		/* of the table's index */
	uint64_t resident_records, resident_bytes;
	uint32_t n_watched;		/* buckets */
	uint32_t n_members;		/* records in those */
};

/* How many resident records of the table are to be watched. */
uint32_t recency_members_wanted(const struct recency_facts *facts, uint64_t all_resident_bytes);

/* How many buckets that takes; n_watched while that is not far off. */
uint32_t recency_buckets_wanted(const struct recency_facts *facts, uint64_t all_resident_bytes);

/*
 * A way through n numbers that meets each once and is spread over all of them from the start:
 * number i is (first + i * step) % n. Returns the step.
 */
uint64_t recency_step(uint64_t n);

#endif
