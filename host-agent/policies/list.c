// SPDX-License-Identifier: GPL-2.0-or-later
/* The policies that there are, the one that is the default first. */
#include <string.h>

#include "model/policy.h"

static const struct ebb_policy_ops *const policies[] = {
	&ebb_policy_fair, &ebb_policy_strict, &ebb_policy_isolate, &ebb_policy_spot,
	&ebb_policy_vom, &ebb_policy_equal, &ebb_policy_proportional, &ebb_policy_balloon,
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
	return NULL;
}
