// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The balloon policy does not choose the VM that gives.  Each VM is asked for all that is missing,
 * down to its floor, until one VM or all together have given it.  Then no VM is asked any more, and
 * free memory goes to the VM that takes it.
 * Source: "Flexible resource allocation ...", section 8.1 (BALLOON).
 */
#include "policies/halves.h"
#include "policies/mem/broker.h"

static int balloon_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	static const struct policy_broker_rule rule = { .is_balloon = true };

	return policy_broker_decide(st, &rule, view, ret_plan);
}

const struct ebb_policy_half policy_mem_balloon = {
	.name = "balloon", .state_size = sizeof(struct policy_broker), .decide = balloon_decide,
};
