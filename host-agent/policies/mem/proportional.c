// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The proportional policy takes memory from all VMs in proportion to what they hold, down to their
 * floors.  Weights make no difference.
 * Source: "Flexible resource allocation ...", section 8.1 (PROPORTIONAL).
 */
#include "policies/halves.h"
#include "policies/mem/broker.h"
#include "policies/mem/take.h"

static void take(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		 uint64_t blocks, struct ebb_plan *plan)
{
	policy_take_by(b, view, h, blocks, (struct policy_taking){ .weight = policy_held_on },
		       plan);
}

static int proportional_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	static const struct policy_broker_rule rule = { .take = take };

	return policy_broker_decide(st, &rule, view, ret_plan);
}

const struct ebb_policy_half policy_mem_proportional = {
	.name = "proportional",
	.state_size = sizeof(struct policy_broker),
	.decide = proportional_decide,
};
