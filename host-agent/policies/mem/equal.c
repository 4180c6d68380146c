// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The equal policy takes the same amount from each VM that holds memory beyond its floor; where one
 * does not have as much, the others give more.  Weights make no difference.
 * Source: "Flexible resource allocation ...", section 8.1 (EQUAL).
 */
#include "policies/halves.h"
#include "policies/mem/broker.h"
#include "policies/mem/take.h"

static uint32_t weight(const struct ebb_view_vm *vm, uint16_t h)
{
	(void)vm, (void)h;
	return 1;
}

static void take(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		 uint64_t blocks, struct ebb_plan *plan)
{
	policy_take_by(b, view, h, blocks, (struct policy_taking){ .weight = weight }, plan);
}

static int equal_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	static const struct policy_broker_rule rule = { .take = take };

	return policy_broker_decide(st, &rule, view, ret_plan);
}

const struct ebb_policy_half policy_mem_equal = {
	.name = "equal", .state_size = sizeof(struct policy_broker), .decide = equal_decide,
};
