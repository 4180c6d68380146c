// SPDX-License-Identifier: GPL-2.0-or-later
/* See level.h. */
#include "policies/level.h"

/* A level is an amount per weight, shifted by LEVEL_SHIFT. */
#define LEVEL_SHIFT	24
#define LEVEL_MAX	((uint64_t)UINT32_MAX << LEVEL_SHIFT)

struct level_of {
	const uint32_t *has;		/* NULL: nobody has anything */
	const uint32_t *cap, *weight;
	uint32_t num;
};

static uint32_t part_at(const struct level_of *l, uint32_t i, uint64_t level)
{
	const uint64_t w = l->weight[i] ? l->weight[i] : 1, has = l->has ? l->has[i] : 0;
	const uint64_t full = has + l->cap[i];

	if (level > UINT64_MAX / w || (level * w) >> LEVEL_SHIFT >= full)
		return l->cap[i];
	level = (level * w) >> LEVEL_SHIFT;
	return level > has ? (uint32_t)(level - has) : 0;
}

static uint64_t sum_at(const struct level_of *l, uint64_t level)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < l->num; i++)
		sum += part_at(l, i, level);
	return sum;
}

static uint64_t divide(const struct level_of *l, uint64_t total, uint32_t *ret_part)
{
	uint64_t low = 0, high = LEVEL_MAX, sum = 0, rest;

	for (uint32_t i = 0; i < l->num; i++)
		sum += l->cap[i];
	total = total < sum ? total : sum;
	while (low < high) {
		const uint64_t mid = low + (high - low + 1) / 2;

		if (sum_at(l, mid) <= total)
			low = mid;
		else
			high = mid - 1;
	}
	rest = total;
	for (uint32_t i = 0; i < l->num; i++) {
		ret_part[i] = part_at(l, i, low);
		rest -= ret_part[i];
	}
	/* What whole numbers leave over, not to those who have more than others get. */
	for (uint32_t i = 0; l->has && low < LEVEL_MAX && i < l->num && rest > 0; i++)
		if (part_at(l, i, low + 1) > ret_part[i]) {
			ret_part[i]++;
			rest--;
		}
	while (rest > 0)
		for (uint32_t i = 0; i < l->num && rest > 0; i++)
			if (ret_part[i] < l->cap[i]) {
				ret_part[i]++;
				rest--;
			}
	return total;
}

uint64_t policy_level(const uint32_t *cap, const uint32_t *weight, uint32_t num, uint64_t total,
		      uint32_t *ret_part)
{
	const struct level_of l = { .cap = cap, .weight = weight, .num = num };

	return divide(&l, total, ret_part);
}

uint64_t policy_level_up(const uint32_t *has, const uint32_t *cap, const uint32_t *weight,
			 uint32_t num, uint64_t total, uint32_t *ret_part)
{
	const struct level_of l = { .has = has, .cap = cap, .weight = weight, .num = num };

	return divide(&l, total, ret_part);
}
