// SPDX-License-Identifier: GPL-2.0-or-later
/* The policies that there are: names of one word, the default first, and all pairs. */
#include <string.h>

#include "policies/halves.h"

/* A VM that grows gets more room so often, and a balloon is relieved. */
#define BROKERS		(100 * EBB_USEC_PER_MSEC)
#define DIVIDES		0

#define POLICY(NAME, CPU, MEM, REVIEW) { \
	.abi = EBB_POLICY_ABI, .size = sizeof(struct ebb_policy_ops), .name = NAME, \
	.state_size = EBB_POLICY_STATE_MAX, .cpus = &policy_cpu_##CPU, \
	.mem = &policy_mem_##MEM, .mem_review_usec = REVIEW, \
}
#define PAIR(CPU, MEM, REVIEW)	POLICY(#CPU "+" #MEM, CPU, MEM, REVIEW)
#define PAIRS(CPU) \
	PAIR(CPU, fair, DIVIDES), PAIR(CPU, strict, DIVIDES), PAIR(CPU, vom, BROKERS), \
	PAIR(CPU, equal, BROKERS), PAIR(CPU, proportional, BROKERS), PAIR(CPU, balloon, BROKERS)

const struct ebb_policy_ops ebb_policy_fair = POLICY("fair", fair, fair, DIVIDES);
const struct ebb_policy_ops ebb_policy_strict = POLICY("strict", strict, strict, DIVIDES);
const struct ebb_policy_ops ebb_policy_isolate = POLICY("isolate", isolate, fair, DIVIDES);
const struct ebb_policy_ops ebb_policy_spot = POLICY("spot", spot, fair, DIVIDES);
const struct ebb_policy_ops ebb_policy_vom = POLICY("vom", fair, vom, BROKERS);
const struct ebb_policy_ops ebb_policy_equal = POLICY("equal", fair, equal, BROKERS);
const struct ebb_policy_ops ebb_policy_proportional =
	POLICY("proportional", fair, proportional, BROKERS);
const struct ebb_policy_ops ebb_policy_balloon = POLICY("balloon", fair, balloon, BROKERS);

static const struct ebb_policy_ops *const policies[] = {
	&ebb_policy_fair, &ebb_policy_strict, &ebb_policy_isolate, &ebb_policy_spot,
	&ebb_policy_vom, &ebb_policy_equal, &ebb_policy_proportional, &ebb_policy_balloon,
};

static const struct ebb_policy_ops pairs[] = {
	PAIRS(fair), PAIRS(strict), PAIRS(isolate), PAIRS(spot),
};

const struct ebb_policy_ops *ebb_policy_at(size_t i)
{
	return i < sizeof(policies) / sizeof(policies[0]) ? policies[i] : NULL;
}

const struct ebb_policy_ops *ebb_policy_find(const char *name)
{
	for (size_t i = 0; ebb_policy_at(i); i++)
		if (strcmp(policies[i]->name, name) == 0)
			return policies[i];
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (strcmp(pairs[i].name, name) == 0)
			return &pairs[i];
	return NULL;
}

/* Each half has state of its own: where that for memory begins, 8-byte aligned. */
static size_t second_state(const struct ebb_policy_ops *ops)
{
	return (ops->cpus->state_size + 7) / 8 * 8;
}

bool ebb_policy_usable(const struct ebb_policy_ops *ops)
{
	if (!ops || ops->abi != EBB_POLICY_ABI || ops->size < sizeof(*ops) || !ops->name ||
	    ops->state_size > EBB_POLICY_STATE_MAX)
		return false;
	if (ops->decide)
		return true;
	return ops->cpus && ops->mem &&
	       second_state(ops) + ops->mem->state_size <= EBB_POLICY_STATE_MAX;
}

int ebb_policy_decide(const struct ebb_policy_ops *ops, void *st, const struct ebb_view *view,
		      struct ebb_plan *ret_plan)
{
	int rc;

	if (ops->decide)
		return ops->decide(st, view, ret_plan);
	rc = ops->cpus->decide(st, view, ret_plan);
	if (rc < 0)
		return rc;
	return ops->mem->decide((char *)st + second_state(ops), view, ret_plan);
}
