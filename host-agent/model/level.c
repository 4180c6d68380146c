// SPDX-License-Identifier: GPL-2.0-or-later
/* See level.h. */
#include <stdbool.h>

#include "model/level.h"

/* Bits of the fraction of a level.  Where all weights are the same none are needed. */
#define FRACTION_BITS	24u

static uint32_t value_at(const struct ebb_level_part *p, uint64_t level, unsigned int bits)
{
	const uint64_t weight = bits && p->weight ? p->weight : 1;
	/* In two parts, so that there is no overflow: the level is below 2^(32 + bits). */
	const uint64_t value = (level >> bits) * weight +
			       ((level & ((1ull << bits) - 1)) * weight >> bits);

	if (value <= p->low)
		return p->low;
	return value < p->high ? (uint32_t)value : p->high;
}

static uint64_t sum_at(const struct ebb_level_part *parts, size_t count, uint64_t level,
		       unsigned int bits)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += value_at(&parts[i], level, bits);
	return sum;
}

/* The least level at which all are at their high. */
static uint64_t top_level(const struct ebb_level_part *parts, size_t count, unsigned int bits)
{
	uint64_t top = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t weight = bits && parts[i].weight ? parts[i].weight : 1;
		const uint64_t level = (((uint64_t)parts[i].high << bits) + weight - 1) / weight;

		top = level > top ? level : top;
	}
	return top;
}

/* The next level has more takers than there are units left, so all are given out. */
static void share_rest(struct ebb_level_part *parts, size_t count, uint64_t level,
		       unsigned int bits, uint64_t rest)
{
	for (unsigned int pass = 0; rest > 0; pass++)
		for (size_t i = 0; i < count && rest > 0; i++) {
			struct ebb_level_part *p = &parts[i];
			const bool keeps_it = p->has > p->value;

			if (keeps_it == (pass % 2 == 0) &&
			    p->value < value_at(p, level + 1, bits)) {
				p->value++;
				rest--;
			}
		}
}

void ebb_level_fill(struct ebb_level_part *parts, size_t count, uint64_t total)
{
	unsigned int bits = 0;
	uint64_t low = 0, high, top, sum;

	for (size_t i = 1; i < count; i++)
		if (parts[i].weight != parts[0].weight)
			bits = FRACTION_BITS;
	high = top = top_level(parts, count, bits);
	while (low < high) {
		const uint64_t mid = low + (high - low + 1) / 2;

		if (sum_at(parts, count, mid, bits) <= total)
			low = mid;
		else
			high = mid - 1;
	}
	for (size_t i = 0; i < count; i++)
		parts[i].value = value_at(&parts[i], low, bits);
	sum = sum_at(parts, count, low, bits);
	if (sum < total && low < top)
		share_rest(parts, count, low, bits, total - sum);
}
