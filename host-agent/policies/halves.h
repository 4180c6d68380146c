/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The halves of policies, which pair as one likes (list.c): for CPUs, and for memory. */
#ifndef EBB_POLICIES_HALVES_H
#define EBB_POLICIES_HALVES_H

#include "model/policy.h"

extern const struct ebb_policy_half policy_cpu_fair, policy_cpu_strict, policy_cpu_isolate,
	policy_cpu_spot;

extern const struct ebb_policy_half policy_mem_fair, policy_mem_strict, policy_mem_vom,
	policy_mem_equal, policy_mem_proportional, policy_mem_balloon;

#endif /* EBB_POLICIES_HALVES_H */
