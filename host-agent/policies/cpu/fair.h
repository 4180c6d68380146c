/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPU half of the fair policy, for policies that differ from it by memory alone. */
#ifndef EBB_POLICIES_FAIR_H
#define EBB_POLICIES_FAIR_H

#include "model/policy.h"
#include "policies/cpu/fill.h"

/* -EINVAL if floors exceed the capacity, or there are too many VMs. */
int policy_fair_cpus(struct policy_fill_vms *cpus, const struct ebb_view *view,
		     struct ebb_plan *plan);

#endif /* EBB_POLICIES_FAIR_H */
