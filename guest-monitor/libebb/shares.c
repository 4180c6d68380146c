// SPDX-License-Identifier: BSD-3-Clause
/*
 * From the VM's view and the monitor's word to what the application sees.
 */
#include <string.h>

#include "handle.h"

static const struct ebb_msg_share *share_find(const struct ebb_msg_shares *monitor,
					      uint32_t node)
{
	for (uint32_t i = 0; i < monitor->num_nodes; i++)
		if (monitor->nodes[i].node == node)
			return &monitor->nodes[i];
	return NULL;
}

/* Without a monitor: what the VM is offered, and what it must give as far as it is ours. */
static void share_direct(const struct ebb_view_node *n, const struct ebb_mem_sums *mem,
			 struct ebb_node_share *share)
{
	uint64_t releasing_bytes = mem->releasing_bytes[n->node];
	uint64_t bytes = n->mem_demand_bytes;

	share->cpus_offered = n->offer;
	share->cpus_demanded = n->demand < n->owned ? n->demand : n->owned;
	share->deadline_ns = n->deadline_ns;
	share->mem_offered_bytes = n->mem_offer_bytes;
	bytes = bytes > releasing_bytes ? bytes - releasing_bytes : 0;
	share->mem_demanded_bytes = bytes < share->mem_owned_bytes ? bytes :
				    share->mem_owned_bytes;
	share->mem_deadline_ns = n->mem_deadline_ns;
}

/*
 * The monitor spoke of what it knew to be owned; what has been added or removed
 * since is taken off its offer or demand.
 */
static uint64_t left_of_offer(uint64_t known, uint64_t offered, uint64_t owned)
{
	return offered && known + offered > owned ? known + offered - owned : 0;
}

static uint64_t left_of_demand(uint64_t known, uint64_t demanded, uint64_t owned)
{
	uint64_t least = demanded < known ? known - demanded : 0;

	return demanded && owned > least ? owned - least : 0;
}

static void share_divided(const struct ebb_msg_share *m, struct ebb_node_share *share)
{
	share->cpus_held = m->held;
	share->cpus_limit = m->limit;
	share->tier = m->tier;
	share->cpus_offered = (uint32_t)left_of_offer(m->owned, m->offered, share->cpus_owned);
	share->cpus_demanded = (uint32_t)left_of_demand(m->owned, m->demanded,
							share->cpus_owned);
	share->deadline_ns = m->deadline_ns;
	share->mem_held_bytes = m->mem_held_bytes;
	share->mem_limit_bytes = m->mem_limit_bytes;
	share->mem_offered_bytes = left_of_offer(m->mem_owned_bytes, m->mem_offered_bytes,
						 share->mem_owned_bytes);
	share->mem_demanded_bytes = left_of_demand(m->mem_owned_bytes, m->mem_demanded_bytes,
						   share->mem_owned_bytes);
	share->mem_deadline_ns = m->mem_deadline_ns;
}

uint32_t ebb_shares_promise(const struct ebb_view *view, const struct ebb_msg_shares *monitor)
{
	return monitor && !(monitor->flags & EBB_MSG_SHARES_ALONE) ? monitor->mem_promise_mib :
								     view->mem_promise_mib;
}

void ebb_shares_compute(const struct ebb_view *view, const struct ebb_mem_sums *mem,
			const struct ebb_msg_shares *monitor, struct ebb_shares *ret)
{
	if (monitor && monitor->flags & EBB_MSG_SHARES_ALONE)
		monitor = NULL;
	memset(ret, 0, sizeof(*ret));
	ret->num_nodes = view->num_nodes;
	for (uint32_t i = 0; i < view->num_nodes; i++) {
		const struct ebb_view_node *n = &view->nodes[i];
		struct ebb_node_share *share = &ret->nodes[i];
		const struct ebb_msg_share *m = NULL;

		share->node = n->node;
		share->cpus_owned = n->owned;
		share->cpus_held = n->held;
		share->cpus_limit = n->limit;
		share->tier = n->tier;
		share->mem_owned_bytes = mem->owned_bytes[n->node];
		share->mem_held_bytes = n->mem_held_bytes;
		share->mem_limit_bytes = n->mem_limit_bytes;
		share->mem_cutoff = n->mem_cutoff;
		if (!monitor)
			share_direct(n, mem, share);
		else
			m = share_find(monitor, n->node);
		if (m)
			share_divided(m, share);
		if (share->cpus_demanded == 0)
			share->deadline_ns = 0;
		if (share->mem_demanded_bytes == 0)
			share->mem_deadline_ns = 0;
	}
}
