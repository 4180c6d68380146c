// SPDX-License-Identifier: GPL-2.0-or-later
/* See level.h. */
#include "policies/mem/level.h"

/* A level is an amount per weight, shifted by LEVEL_SHIFT. */
#define LEVEL_SHIFT	24
#define LEVEL_MAX	((uint64_t)UINT32_MAX << LEVEL_SHIFT)

static uint32_t part_at(uint32_t cap, uint32_t weight, uint64_t level)
{
	const uint64_t w = weight ? weight : 1;

	if (level > UINT64_MAX / w || (level * w) >> LEVEL_SHIFT >= cap)
		return cap;
	return (uint32_t)((level * w) >> LEVEL_SHIFT);
}

static uint64_t sum_at(const uint32_t *cap, const uint32_t *weight, uint32_t num, uint64_t level)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < num; i++)
		sum += part_at(cap[i], weight[i], level);
	return sum;
}

uint64_t policy_level(const uint32_t *cap, const uint32_t *weight, uint32_t num, uint64_t total,
		      uint32_t *ret_part)
{
	uint64_t low = 0, high = LEVEL_MAX, sum = 0, rest;

	for (uint32_t i = 0; i < num; i++)
		sum += cap[i];
	total = total < sum ? total : sum;
	while (low < high) {
		const uint64_t mid = low + (high - low + 1) / 2;

		if (sum_at(cap, weight, num, mid) <= total)
			low = mid;
		else
			high = mid - 1;
	}
	rest = total;
	for (uint32_t i = 0; i < num; i++) {
		ret_part[i] = part_at(cap[i], weight[i], low);
		rest -= ret_part[i];
	}
	while (rest > 0)
		for (uint32_t i = 0; i < num && rest > 0; i++)
			if (ret_part[i] < cap[i]) {
				ret_part[i]++;
				rest--;
			}
	return total;
}
