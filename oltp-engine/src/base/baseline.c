// SPDX-License-Identifier: GPL-2.0-or-later
/* See baseline.h. */
#include <math.h>
#include <string.h>

#include "baseline.h"

/*
 * A new bucket is opened when the newest one holds this part of the memory. These are fewer than
 * there are buckets, so that bucket_open merges only buckets that records have left.
 */
#define BUCKET_PART	80u
/* An epoch should take no more than this part: of its uses the middle one stands for all. */
#define EPOCH_PART	80u

void baseline_init(struct baseline *b)
{
	*b = (struct baseline){ .bytes_max = 0 };
}

void baseline_set(struct baseline *b, uint64_t bytes, uint32_t shift)
{
	*b = (struct baseline){ .bytes_max = bytes >> shift, .shift = shift, .ios = b->ios };
}

void baseline_resample(struct baseline *b, uint32_t shift)
{
	b->bytes_max = (b->bytes_max << b->shift) >> shift;
	b->bytes = 0;
	for (uint32_t i = 0; i < b->n; i++) {
		b->buckets[i].bytes = (b->buckets[i].bytes << b->shift) >> shift;
		b->bytes += b->buckets[i].bytes;
	}
	b->shift = shift;
}

uint32_t baseline_shift(uint64_t n_records)
{
	uint32_t shift = 0;

	while (shift < BASELINE_SHIFT_MAX && n_records >> shift >= 2 * BASELINE_SAMPLE)
		shift++;
	return shift;
}

static void bucket_remove(struct baseline *b, uint32_t i)
{
	b->n--;
	memmove(&b->buckets[i], &b->buckets[i + 1], (b->n - i) * sizeof(b->buckets[0]));
}

/*
 * Gives up the oldest bytes beyond the memory. In a bucket that goes in part, the bytes are taken
 * to be spread evenly over its epochs. Its start moves by parts of an epoch: rounded to whole ones
 * it would never move, since a single record is a small part of a bucket.
 */
static void give_up(struct baseline *b)
{
	while (b->bytes > b->bytes_max) {
		struct baseline_bucket *first = &b->buckets[0];
		uint64_t excess = b->bytes - b->bytes_max;

		if (b->n > 1 && first->bytes <= excess) {
			b->bytes -= first->bytes;
			bucket_remove(b, 0);
		} else {
			double end = b->n > 1 ? b->buckets[1].start : (double)b->now + 1;

			first->start += (end - first->start) * (double)excess /
					(double)first->bytes;
			first->bytes -= excess;
			b->bytes -= excess;
		}
		b->oldest = b->buckets[0].start;
	}
}

void baseline_resize(struct baseline *b, uint64_t bytes)
{
	b->bytes_max = bytes >> b->shift;
	give_up(b);
}

/* The last bucket that starts no later than that; the first one if none does. */
static uint32_t bucket_find(const struct baseline *b, uint64_t epoch)
{
	uint32_t at = 0;

	/* No jump depends on where it is: it cannot be predicted. */
	for (uint32_t left = b->n, half; left > 1; left -= half) {
		half = left / 2;
		at += half * (b->buckets[at + half].start <= (double)epoch);
	}
	return at;
}

/*
 * Records leave old buckets when they are used again. So old buckets get small, and of all
 * neighbours the two smallest can become one without harm to the precision.
 */
static void bucket_open(struct baseline *b, uint64_t start)
{
	if (b->n == BASELINE_BUCKETS) {
		uint64_t least = UINT64_MAX;
		uint32_t at = 0;

		for (uint32_t i = 0; i + 1 < b->n; i++) {
			uint64_t sum = b->buckets[i].bytes + b->buckets[i + 1].bytes;

			if (sum < least) {
				least = sum;
				at = i;
			}
		}
		b->buckets[at].bytes = least;
		bucket_remove(b, at + 1);
	}
	b->buckets[b->n++] = (struct baseline_bucket){ .start = (double)start };
}

void baseline_hold(struct baseline *b, uint64_t bytes, uint64_t epoch)
{
	struct baseline_bucket *newest = b->n ? &b->buckets[b->n - 1] : NULL;

	if (!b->bytes_max)
		return;
	if (epoch > b->now) {
		b->now = epoch;
		b->now_bytes = 0;
	}
	b->now_bytes += bytes;
	if (!newest ||
	    ((double)epoch > newest->start && newest->bytes >= b->bytes_max / BUCKET_PART))
		bucket_open(b, epoch);
	newest = &b->buckets[b->n - 1];
	if (newest->start > (double)epoch)
		newest = &b->buckets[bucket_find(b, epoch)];
	newest->bytes += bytes;
	b->bytes += bytes;
	give_up(b);
}

bool baseline_wants_epoch(const struct baseline *b, uint64_t now)
{
	return b->now == now && b->now_bytes >= b->bytes_max / EPOCH_PART;
}

/* give_up goes by a mean, which may have left less in the bucket than there was. */
static void let_go(struct baseline *b, uint64_t before, uint32_t bytes)
{
	struct baseline_bucket *bucket = &b->buckets[bucket_find(b, before)];
	uint64_t less = bucket->bytes < bytes ? bucket->bytes : bytes;

	bucket->bytes -= less;
	b->bytes -= less;
}

/* Of the uses in an epoch the middle one stands for all. */
static uint64_t first_epoch(double time)
{
	return time > 0.5 ? (uint64_t)(time + 0.5) : 0;
}

struct baseline_rule baseline_rule(const struct baseline *b)
{
	struct baseline_rule rule = { .held = first_epoch(b->oldest) };
	double left = (double)b->bytes_max / BASELINE_OLD_PART, time = b->oldest;

	/* A cache that is not full takes all. */
	if (b->bytes < b->bytes_max - b->bytes_max / BASELINE_OLD_PART)
		return rule;
	for (uint32_t i = 0; i < b->n && left > 0; i++) {
		double end = i + 1 < b->n ? b->buckets[i + 1].start : (double)b->now + 1;
		double bytes = (double)b->buckets[i].bytes;

		time = b->buckets[i].start;
		if (bytes > left)
			end = time + (end - time) * left / bytes;
		left -= bytes;
		time = end;
	}
	rule.recent = first_epoch(time);
	return rule;
}

struct baseline_use baseline_decide(const struct baseline_rule *rule, uint64_t before,
				    uint32_t bytes, bool was_taken, bool is_written)
{
	bool is_held = was_taken && before >= rule->held;

	return (struct baseline_use){
		.before = before,
		.bytes = bytes,
		.is_io = !is_held,
		.leaves = is_held,
		.enters = is_held || is_written || before >= rule->recent,
	};
}

void baseline_apply(struct baseline *b, const struct baseline_use *use, uint64_t now)
{
	if (!b->bytes_max)
		return;
	if (use->is_io)
		b->ios += 1ull << b->shift;
	if (use->leaves && b->n)
		let_go(b, use->before, use->bytes);
	if (use->enters)
		baseline_hold(b, use->bytes, now);
}
