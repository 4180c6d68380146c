// SPDX-License-Identifier: GPL-2.0-or-later
/* See admit.h. */
#include "core/reserve/admit.h"

static bool fits(struct ebb_promise_ask *a, const uint32_t permille[EBB_MAX_NODES],
		 const uint64_t capacity[EBB_MAX_NODES], const uint64_t promised[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++) {
		const uint64_t left = capacity[h] > promised[h] ? capacity[h] - promised[h] : 0;

		if (permille[h] <= left)
			continue;
		a->short_node = h;
		a->short_left = (uint32_t)left;
		return false;
	}
	return true;
}

static bool add_if(bool is_promised, const uint32_t permille[EBB_MAX_NODES],
		   uint64_t promised[EBB_MAX_NODES])
{
	for (uint16_t h = 0; is_promised && h < EBB_MAX_NODES; h++)
		promised[h] += permille[h];
	return is_promised;
}

static bool has_before(const struct ebb_promise_ask *a)
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		if (a->before[h] > 0)
			return true;
	return false;
}

void ebb_promise_admit(struct ebb_promise_ask *asks, size_t num,
		       const uint64_t capacity[EBB_MAX_NODES],
		       uint64_t ret_promised[EBB_MAX_NODES])
{
	for (uint16_t h = 0; h < EBB_MAX_NODES; h++)
		ret_promised[h] = 0;
	for (size_t i = 0; i < num; i++) {
		struct ebb_promise_ask *a = &asks[i];
		const uint32_t *old = a->is_held ? a->permille : a->before;
		const bool is_old = a->is_held || has_before(a);
		const bool holds = add_if(is_old && fits(a, old, capacity, ret_promised), old,
					  ret_promised);

		a->is_promised = a->is_held && holds;
		a->is_kept = !a->is_held && holds;
	}
	for (size_t i = 0; i < num; i++) {
		struct ebb_promise_ask *a = &asks[i];

		if (a->is_held)
			continue;
		/* The old promise is taken off; it is added again if the new one is refused. */
		for (uint16_t h = 0; a->is_kept && h < EBB_MAX_NODES; h++)
			ret_promised[h] -= a->before[h];
		a->is_promised = add_if(fits(a, a->permille, capacity, ret_promised), a->permille,
					ret_promised);
		a->is_kept = add_if(a->is_kept && !a->is_promised, a->before, ret_promised);
	}
}
