// SPDX-License-Identifier: GPL-2.0-or-later
/* See cut.h. */
#include "cut.h"

#define KIB	1024ull

/* Whole units of what is worth no more than value. */
static uint64_t units_up_to(const struct ebb_cut *part, uint32_t node, uint64_t value,
			    uint64_t step)
{
	uint64_t all = 0, up_to = 0;

	for (uint32_t i = 0; i < part->num_buckets; i++) {
		const struct ebb_vom_bucket *b = &part->buckets[i];

		if (b->node != node)
			continue;
		all += b->kib * KIB;
		up_to += b->value <= value ? b->kib * KIB : 0;
	}
	if (all < part->owned)
		up_to += part->owned - all;
	return (up_to < part->owned ? up_to : part->owned) / step;
}

static uint64_t sum_up_to(const struct ebb_cut *parts, size_t num, uint32_t node, uint64_t value,
			  uint64_t step)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < num; i++)
		sum += units_up_to(&parts[i], node, value, step);
	return sum;
}

uint64_t ebb_cut_down(struct ebb_cut *parts, size_t num, uint32_t node, uint64_t units,
		      uint64_t step)
{
	uint64_t low = 0, high = UINT64_MAX;

	/* The lowest value that is enough; if none is, the highest there can be. */
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (sum_up_to(parts, num, node, middle, step) >= units)
			high = middle;
		else
			low = middle + 1;
	}
	for (size_t i = 0; i < num; i++) {
		parts[i].units = low ? units_up_to(&parts[i], node, low - 1, step) : 0;
		units -= parts[i].units;
	}
	for (size_t i = num; i-- > 0 && units > 0;) {
		uint64_t more = units_up_to(&parts[i], node, low, step) - parts[i].units;

		more = more < units ? more : units;
		parts[i].units += more;
		units -= more;
	}
	return units;
}
