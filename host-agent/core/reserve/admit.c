// SPDX-License-Identifier: GPL-2.0-or-later
/* See admit.h. */
#include "core/reserve/admit.h"

static bool fits(struct ebb_promise_ask *a, const uint64_t capacity[EBB_MAX_NODES],
		 const uint64_t promised[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		const uint64_t left = capacity[h] > promised[h] ? capacity[h] - promised[h] : 0;

		if (a->permille[h] <= left)
			continue;
		a->short_node = h;
		a->short_left = (uint32_t)left;
		return false;
	}
	return true;
}

void ebb_promise_admit(struct ebb_promise_ask *asks, size_t num,
		       const uint64_t capacity[EBB_MAX_NODES],
		       uint64_t ret_promised[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		ret_promised[h] = 0;
	for (int is_new = 0; is_new < 2; is_new++)
		for (size_t i = 0; i < num; i++) {
			struct ebb_promise_ask *a = &asks[i];

			if (a->is_held == is_new)
				continue;
			a->is_promised = fits(a, capacity, ret_promised);
			for (uint16_t h = 0; a->is_promised && h < EBB_MAX_NODES; h++)
				ret_promised[h] += a->permille[h];
		}
}

/* Those with a penalty from least to most get all of `capacity`, or what they claim. */
static uint32_t divide(struct ebb_promise_claim *claims, size_t num, uint32_t least, uint32_t most,
		       uint32_t capacity)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < num; i++)
		if (claims[i].penalty >= least && claims[i].penalty <= most)
			sum += claims[i].permille;
	for (size_t i = 0; i < num; i++) {
		struct ebb_promise_claim *c = &claims[i];

		if (c->penalty >= least && c->penalty <= most)
			c->keep = sum <= capacity ? c->permille :
				  (uint32_t)((uint64_t)c->permille * capacity / sum);
	}
	return sum < capacity ? capacity - (uint32_t)sum : 0;
}

/* The highest penalty below `below`; false: there is none. */
static bool next_penalty(const struct ebb_promise_claim *claims, size_t num, uint64_t below,
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

void ebb_promise_divide(struct ebb_promise_claim *claims, size_t num, enum ebb_overbook policy)
{
	uint32_t left = EBB_PROMISE_MOST, penalty = 0;
	uint64_t below = UINT64_MAX;

	if (policy == EBB_OVERBOOK_PROPORTIONAL) {
		divide(claims, num, 0, UINT32_MAX, left);
		return;
	}
	for (; next_penalty(claims, num, below, &penalty); below = penalty)
		left = divide(claims, num, penalty, penalty, left);
}
