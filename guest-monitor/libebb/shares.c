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

static void share_direct(const struct ebb_view_node *n, struct ebb_node_share *share)
{
	share->cpus_held = n->held;
	share->cpus_limit = n->limit;
	share->cpus_offered = n->offer;
	share->cpus_demanded = n->demand < n->owned ? n->demand : n->owned;
	share->deadline_ns = n->deadline_ns;
}

/*
 * The monitor spoke of the number of CPUs that it knew of; what has been added
 * or removed since is taken off its offer or demand.
 */
static void share_divided(const struct ebb_msg_share *m, struct ebb_node_share *share)
{
	uint64_t most = (uint64_t)m->owned + m->offered;
	uint64_t least = m->demanded < m->owned ? m->owned - m->demanded : 0;

	share->cpus_held = m->held;
	share->cpus_limit = m->limit;
	if (m->offered && most > share->cpus_owned)
		share->cpus_offered = (uint32_t)(most - share->cpus_owned);
	if (m->demanded && share->cpus_owned > least)
		share->cpus_demanded = (uint32_t)(share->cpus_owned - least);
	share->deadline_ns = m->deadline_ns;
}

void ebb_shares_compute(const struct ebb_view *view, const struct ebb_msg_shares *monitor,
			struct ebb_shares *ret)
{
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
		if (!monitor)
			share_direct(n, share);
		else
			m = share_find(monitor, n->node);
		if (m)
			share_divided(m, share);
		if (share->cpus_demanded == 0)
			share->deadline_ns = 0;
	}
}
