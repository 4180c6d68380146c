/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What memory is worth, and histograms of that (VoM: flexible-resource-allocation, section 4).
 * Pure: no I/O, no lock, no clock.  Private to libebb and ebb-monitord.
 *
 * The value of an object is the time that making it again costs (STS) times how often the object is
 * used (lambda), divided by its size: ns saved per second and MiB.  Memory that holds nothing has
 * value 0.
 *
 * A histogram has a limited number of buckets of about the same size (equi-depth); each stands for
 * an amount of memory that is worth no more than its end point, and more than the end point before.
 *
 * Invariants of what ebb_vom_histogram() leaves, all being the bytes of all items of a node:
 *
 *   H1  nodes rise; within a node values rise strictly; each bucket is of whole KiB, at least one
 *   H2  what a node has at or below an end point is what the items have, rounded to the nearest
 *       KiB; so is the sum of a node, if it is not below half a KiB
 *   H3  without the part that is worth as much as its end point, a bucket holds no more than
 *       all / (number of buckets that the node may have)
 *   H4  what is worth 0 is alone in its bucket
 */
#ifndef EBB_VOM_H
#define EBB_VOM_H

#include <stddef.h>
#include <stdint.h>
#include <linux/ebb_ioctl.h>

/* Age or cost that is not known. */
#define EBB_VOM_AGE_UNKNOWN	UINT64_MAX

/* Of memory that can not be given up at any price; and the most that anything is worth. */
#define EBB_VOM_VALUE_MAX	(1ull << 62)

/* Of a node, whatever is claimed. */
#define EBB_VOM_BYTES_MAX	(1ull << 52)

/* So much memory of a value; a bucket of a histogram, too. */
struct ebb_vom_item {
	uint64_t value;
	uint64_t bytes;
	uint32_t node;
};

/*
 * Expected uses per second by the ages of the last use and the one before (LRU-K, K = 2).  If only
 * the last is known, the one before is taken to lie as long before it as it lies back; 0 if neither
 * is.
 */
double ebb_vom_rate(uint64_t last_ns, uint64_t before_ns);

/* Of an object used at that rate.  At least 1: whatever there is is worth more than none. */
uint64_t ebb_vom_value(uint64_t bytes, uint64_t sts_ns, double rate);

/*
 * Turns items, in any order, into a histogram of at most max buckets, in place; returns how many.
 * max is at least twice the number of nodes.  Items of more than EBB_VOM_BYTES_MAX count as that,
 * values above EBB_VOM_VALUE_MAX as that.
 */
size_t ebb_vom_histogram(struct ebb_vom_item *items, size_t n, size_t max);

/*
 * Fits a node's buckets (rising) to the memory that is really held.  If they say more, the most
 * valuable part is cut.  If they say less, the rest gets the middle value of the buckets, or value
 * 0 if there are none; then there must be room for one bucket.  Returns the number of buckets.
 */
size_t ebb_vom_fit(struct ebb_vom_item *items, size_t n, uint32_t node, uint64_t held_bytes);

/* A bucket of a histogram as it is sent: of more than fits, as much as fits. */
struct ebb_vom_bucket ebb_vom_bucket_of(const struct ebb_vom_item *item);

#endif /* EBB_VOM_H */
