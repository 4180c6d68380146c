/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many records would an engine with a dedicated memory of M bytes have read from disk? This is
 * the baseline of a promised hit ratio (SQLVM, section 2.3). Pure: uses of records go in, I/Os come
 * out. The caller excludes other threads.
 *
 * A usual simulation of a cache keeps a list of keys, and 2 KB hold too few of them. This one keeps
 * no keys. The lock word of a record already tells when the record was used last, and one more bit
 * tells whether the simulated cache took the record in at that use. What remains to be known is the
 * age at which a cache of M bytes gives records up. A histogram of the held bytes by the epoch of
 * the last use answers that: the cache gives up the oldest bytes beyond M, as the engine does. Its
 * buckets hold about the same number of bytes each, so any M and any age need the same few.
 *
 * Spatial sampling (SHARDS) bounds the time that this takes: only records whose hash says so are
 * simulated, with a memory that is smaller by the same rate, and each stands for 1 / rate records.
 * The error falls with the root of the number of records in the sample, whatever the rate is: a
 * sample of 1/8 is much too small for 200000 records and more than enough for 20 million. So the
 * number is fixed (BASELINE_SAMPLE) and the rate follows from it (baseline_shift). TPC-C needs the
 * most: its keys are skewed so much (NURand) that few records cause many of the I/Os.
 *
 * The steps of a use: baseline_decide says what the use means, from two epochs that change seldom,
 * so that threads can do it for themselves; baseline_apply counts it, which may be later.
 */
#ifndef OLTP_BASELINE_H
#define OLTP_BASELINE_H

#include <stdbool.h>
#include <stdint.h>

#define BASELINE_BUCKETS	110u

/* Records in a sample: this many to twice as many, unless the engine has fewer. */
#define BASELINE_SAMPLE		(1u << 18)
/* Not fewer than this, where simulating those would take too much time. */
#define BASELINE_SAMPLE_MIN	(1u << 12)
/* A rate is 1 / 2^shift. Bits of the hash from here on are looked at, which the index does not. */
#define BASELINE_SHIFT_MAX	16u
#define BASELINE_HASH_BIT	16u

/*
 * Like the engine, the cache takes in a record that it has read if the record is written, or was
 * used before, more recently than the oldest part of the cache. Other records are used from the
 * read buffer (admit.h). A cache that takes in all (LRU) would do with BASELINE_OLD_PART 0 and is
 * another cache. The engine, too, counts this part as old (make_room.c).
 */
#define BASELINE_OLD_PART	10u

struct baseline_bucket {
	double start;		/* epoch; the bucket ends where the next one starts */
	uint64_t bytes;		/* of held records whose last use was in it */
};

/* One size watched. */
struct baseline {
	uint64_t bytes_max;	/* of the sampled records; 0: nothing is promised */
	uint64_t bytes;		/* sum over the buckets */
	double oldest;		/* epoch; records last used before it were given up */
	uint64_t now;		/* the latest epoch seen */
	uint64_t now_bytes;	/* that were used in it */
	uint64_t ios;		/* baseline I/Os since baseline_init, of all records */
	uint32_t shift;		/* of the rate */
	uint32_t n;		/* buckets, oldest first */
	struct baseline_bucket buckets[BASELINE_BUCKETS];
};

_Static_assert(sizeof(struct baseline) <= 2048, "at most 2 KB for each size watched");

void baseline_init(struct baseline *baseline);

/*
 * The memory is bytes from now on, and one record of 2^shift is sampled. The cache is empty; I/Os
 * so far stay. shift: at most BASELINE_SHIFT_MAX.
 */
void baseline_set(struct baseline *baseline, uint64_t bytes, uint32_t shift);

/* The memory is bytes from now on, of all records; what it holds beyond that is given up. */
void baseline_resize(struct baseline *baseline, uint64_t bytes);

/*
 * From now on one record of 2^shift is sampled. Of records that were not sampled until now it is
 * not known which were taken in: they are as those that were, which the caller has to see to.
 */
void baseline_resample(struct baseline *baseline, uint32_t shift);

/* The shift for so many records. */
uint32_t baseline_shift(uint64_t n_records);

/* Is the record with this hash sampled? mask: baseline_mask, or 0 for all. */
static inline bool baseline_is_sampled(uint64_t hash, uint64_t mask)
{
	return !(hash & mask);
}

static inline uint64_t baseline_mask(uint32_t shift)
{
	return ((1ull << shift) - 1) << BASELINE_HASH_BIT;
}

/* Epochs: records used in or after them are still held; are not of the oldest part. */
struct baseline_rule {
	uint64_t held, recent;
};

struct baseline_rule baseline_rule(const struct baseline *baseline);

/* What a use of a sampled record means. */
struct baseline_use {
	uint64_t before;	/* epoch of the use before, if it leaves */
	uint32_t bytes;		/* that the record takes in memory */
	bool is_io;		/* the cache had to read it */
	bool leaves;		/* the place in the histogram that it had */
	bool enters;		/* it is held from now on: to be kept with the record */
};

/*
 * before: epoch of the use before this one, 0: none; was_taken: it entered then; is_written: this
 * use writes it.
 */
struct baseline_use baseline_decide(const struct baseline_rule *rule, uint64_t before,
				    uint32_t bytes, bool was_taken, bool is_written);

/* now: epoch of the use; may lie a little before one given earlier. */
void baseline_apply(struct baseline *baseline, const struct baseline_use *use, uint64_t now);

/*
 * Does more than a small part of the memory have this epoch as that of the last use? The ages of
 * records are then known too coarsely: it is time for another epoch.
 */
bool baseline_wants_epoch(const struct baseline *baseline, uint64_t now);

/* So many bytes of sampled records, last used at this epoch, are held without an I/O. */
void baseline_hold(struct baseline *baseline, uint64_t bytes, uint64_t epoch);

#endif
