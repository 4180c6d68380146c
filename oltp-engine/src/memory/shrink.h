/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which records go, so that blocks or slots become free. For the manager's thread. */
#ifndef OLTP_SHRINK_H
#define OLTP_SHRINK_H

#include "evict.h"
#include "oltp-engine/src/base/random.h"

struct shrink {
	struct oltp_engine *engine;
	struct evict *evict;
	struct random64 random;
	size_t hand;		/* where in the list of blocks the last search ended */
	const _Atomic bool *quit;
	_Atomic uint64_t cutoffs[OLTP_NODES_MAX];	/* see oltp_memory_cutoff; 0: none */
};

/*
 * Gives bytes of a node back to the provider, as far as possible until the deadline (ns of
 * CLOCK_MONOTONIC, UINT64_MAX: none). It stops when the provider no longer demands so much. Returns
 * how many bytes it gave; evict->error says what stood in the way, if it was the disk.
 */
uint64_t shrink_node(struct shrink *shrink, uint32_t node, uint64_t bytes, uint64_t deadline_ns);

/*
 * Empties a block of any table and node, and keeps it for the first table that needs one. False:
 * none was empty by the deadline.
 */
bool shrink_block(struct shrink *shrink, uint64_t deadline_ns);

#endif
