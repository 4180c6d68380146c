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

void ebb_promise_divide(struct ebb_shortage_claim *claims, struct ebb_level_part *room, size_t num,
			enum ebb_overbook policy)
{
	ebb_shortage_divide(claims, room, num, policy, EBB_PROMISE_MOST);
}
