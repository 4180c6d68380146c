/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host Monitor: who among the applications of a VM may take an offer, and who
 * has to meet a demand.  Pure: no I/O, no clock.
 *
 * Rules, for CPUs by themselves and for memory by itself; a unit is one CPU, or
 * one block of the node's pool; nodes take turns in the order of the view:
 *
 *  - Offered units of a node go, one after the other, to the application that has
 *    the least in the whole VM (owned + offered, on all nodes); of several such to
 *    the one that registered first.
 *  - Demanded units of a node come, one after the other, from the application that
 *    has the most left in the whole VM (owned - demanded, on all nodes), of those
 *    that have any left on that node; of several such from the one that registered
 *    last.
 *  - If it is known of all applications that own memory on a node, and are not absent, what
 *    that memory is worth, demanded blocks of it come instead from where they are worth least
 *    (see cut.h).
 *  - An application is passed over on a node where it has been offered something
 *    for EBB_DIVIDE_PATIENCE_MS if in that time it has neither added nor removed
 *    anything on any node nor waited for CPUs that it is adding, or if it has added
 *    and removed nothing there for EBB_DIVIDE_NODE_PATIENCE_MS: its offer goes to
 *    the others.  It is considered again there when what it owns there changes,
 *    when nothing is on offer there any more, or when all have been passed over
 *    there.
 *  - An application that has not looked at its shares for EBB_DIVIDE_ABSENT_MS (or
 *    EBB_DIVIDE_NODE_PATIENCE_MS, if it waits for CPUs that it is adding) is absent:
 *    it is offered nothing, and demands go to it only when the others own too
 *    little.
 *
 * Invariants, offer and demand being those of the VM:
 *
 *   D1  on each node sum of offered = offer, if an application is not absent; otherwise 0
 *   D2  on each node sum of demanded = min(demand, sum of owned)
 *   D3  on each node demanded <= owned, for each application
 *   D4  an absent application is offered nothing
 *   D5  of the applications offered something, none ends up with more than one unit above
 *       another, in the whole VM, that is neither absent nor passed over on the last node
 *       where the first is offered something (the unit is that node's)
 *   D6  of the present applications, none that has to give keeps less than another has left
 *       minus one unit, in the whole VM, if the other has anything left on the last node
 *       where the first has to give; an absent one gives only on nodes where these keep
 *       nothing.  Not for memory of nodes where it is known what it is worth.
 */
#ifndef EBB_DIVIDE_H
#define EBB_DIVIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "guest-monitor/libebb/view.h"
#include "guest-monitor/proto.h"

#define EBB_DIVIDE_PATIENCE_MS		2000
#define EBB_DIVIDE_NODE_PATIENCE_MS	10000
#define EBB_DIVIDE_ABSENT_MS		2000

/* More than the monitor serves. */
#define EBB_DIVIDE_MAX_APPS		128

enum ebb_divide_kind {
	EBB_DIVIDE_CPU,
	EBB_DIVIDE_MEM,
	EBB_DIVIDE_KINDS,
};

/* CPUs, or bytes that are whole blocks. */
struct ebb_divide_node {
	uint64_t claimed;		/* fact: what the application says that it owns */
	/* Results. */
	uint64_t owned;			/* of what it claims, as much as there can be */
	uint64_t offered;
	uint64_t demanded;
	/* Kept from one call to the next. */
	uint64_t owned_before;
	bool is_passed;
	uint64_t offered_since_ns;	/* 0: nothing is offered */
};

/* Zeroed when the application registers. */
struct ebb_divide_app {
	/* Fact: what its memory is worth, as ebb_msg_vom says; NULL: not known now. */
	const struct ebb_msg_vom *values;
	uint64_t silent_since_ns;	/* fact: shares wait to be looked at since; 0: none do */
	bool is_adding;			/* fact: it says that it waits for CPUs */
	struct ebb_divide_node nodes[EBB_DIVIDE_KINDS][EBB_MAX_NODES]; /* by node number */
	/* Kept from one call to the next. */
	bool was_adding;
	uint64_t moved_ns[EBB_DIVIDE_KINDS]; /* it was last seen to add or remove */
};

/*
 * apps[] in the order of registration, at most EBB_DIVIDE_MAX_APPS.  What an
 * application claims to own counts up to the number of hotplugged CPUs, or the
 * bytes in leases, on the node.  Returns when it must be called again even if no
 * fact changes (ns), UINT64_MAX for never.
 */
uint64_t ebb_divide(const struct ebb_view *view, struct ebb_divide_app *const apps[], size_t num,
		    uint64_t now_ns);

/*
 * The promise of memory to a VM, in MiB, divided evenly: the part of the application at place rank,
 * from 0, of num among which it is divided.
 */
uint32_t ebb_divide_promise(uint32_t promise_mib, size_t rank, size_t num);

/* Has the application been silent for too long? */
bool ebb_divide_is_absent(const struct ebb_divide_app *app, uint64_t now_ns);

#endif /* EBB_DIVIDE_H */
