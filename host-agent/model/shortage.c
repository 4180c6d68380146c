// SPDX-License-Identifier: GPL-2.0-or-later
/* See shortage.h. */
#include <stdbool.h>

#include "model/shortage.h"

/* Those with a penalty from least to most; returns what is left. */
static uint64_t divide(struct ebb_shortage_claim *claims, struct ebb_level_part *room, size_t num,
		       uint32_t least, uint32_t most, uint64_t amount)
{
	for (size_t i = 0; i < num; i++) {
		const bool is_in = claims[i].penalty >= least && claims[i].penalty <= most;

		room[i] = (struct ebb_level_part){
			.high = is_in ? claims[i].want : 0, .weight = claims[i].want,
		};
	}
	ebb_level_fill(room, num, amount);
	for (size_t i = 0; i < num; i++) {
		claims[i].keep += room[i].value;
		amount -= room[i].value;
	}
	return amount;
}

/* The highest penalty below `below`; false: there is none. */
static bool next_penalty(const struct ebb_shortage_claim *claims, size_t num, uint64_t below,
			 uint32_t *ret)
{
	bool is_found = false;

	for (size_t i = 0; i < num; i++)
		if (claims[i].penalty < below && (!is_found || claims[i].penalty > *ret)) {
			*ret = claims[i].penalty;
			is_found = true;
		}
	return is_found;
}

void ebb_shortage_divide(struct ebb_shortage_claim *claims, struct ebb_level_part *room, size_t num,
			 enum ebb_overbook policy, uint64_t amount)
{
	uint64_t below = UINT64_MAX;
	uint32_t penalty = 0;

	for (size_t i = 0; i < num; i++)
		claims[i].keep = 0;
	if (policy == EBB_OVERBOOK_PROPORTIONAL) {
		divide(claims, room, num, 0, UINT32_MAX, amount);
		return;
	}
	for (; next_penalty(claims, num, below, &penalty); below = penalty)
		amount = divide(claims, room, num, penalty, penalty, amount);
}
