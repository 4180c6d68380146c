/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Dividing memory among VMs, for policies: blocks per weight (of the memory half of
 * the SLA) as equal as floors and ceilings allow.  Memory can not be used on
 * another node than it is asked for on, so each node of the host is divided by
 * itself.  A VM counts once for a node of the host, however many of its guest
 * nodes are there.
 */
#ifndef EBB_POLICIES_MEM_SHARE_H
#define EBB_POLICIES_MEM_SHARE_H

#include "model/policy.h"

/* One node of the host, by VM; blocks.  Room for it is part of a policy's state. */
struct policy_mem {
	uint32_t floor[EBB_MAX_VMS], ceiling[EBB_MAX_VMS];
	uint32_t share[EBB_MAX_VMS];
};

/* The memory half of the plan; at most EBB_MAX_VMS VMs. */
void policy_mem_share(struct policy_mem *m, const struct ebb_view *view, struct ebb_plan *plan);

#endif /* EBB_POLICIES_MEM_SHARE_H */
