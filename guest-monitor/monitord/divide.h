/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Host Monitor: who among the applications of a VM may take an offer, and who
 * has to meet a demand.  Pure: no I/O, no clock.
 *
 * Rules, for each node by itself:
 *
 *  - Offered CPUs go, one after the other, to the application that would then
 *    have the fewest (owned + offered); of several such to the one that
 *    registered first.
 *  - Demanded CPUs come, one after the other, from the application that has the
 *    most left (owned - demanded); of several such from the one that registered
 *    last.
 *  - An application that has been offered something for EBB_DIVIDE_PATIENCE_MS
 *    and has neither added nor removed a CPU there is passed over: its offer goes
 *    to the others.  It is considered again when what it owns changes, when
 *    nothing is on offer any more, or when all have been passed over.
 *  - An application that has not looked at its shares for EBB_DIVIDE_ABSENT_MS is
 *    absent: it is offered nothing, and demands go to it only when the others own
 *    too little.
 *
 * Invariants, for each node, offer and demand being those of the VM:
 *
 *   D1  sum of offered = offer, if an application is not absent; otherwise 0
 *   D2  sum of demanded = min(demand, sum of owned)
 *   D3  demanded <= owned, for each application
 *   D4  an absent application is offered nothing
 *   D5  of the applications offered something, none ends up with more than one CPU
 *       above another that is neither absent nor passed over
 *   D6  of the present applications, none that has to give keeps less than another
 *       has left minus one; an absent one gives only when these keep nothing
 */
#ifndef EBB_DIVIDE_H
#define EBB_DIVIDE_H

#include <stdbool.h>
#include <stddef.h>

#include "guest-monitor/libebb/view.h"

#define EBB_DIVIDE_PATIENCE_MS	2000
#define EBB_DIVIDE_ABSENT_MS	2000

struct ebb_divide_node {
	uint32_t claimed;		/* fact: what the application says that it owns */
	/* Results. */
	uint32_t owned;			/* of what it claims, as many as there can be */
	uint32_t offered;
	uint32_t demanded;
	/* Kept from one call to the next. */
	uint32_t owned_before;
	bool is_passed;
	uint64_t offered_since_ns;	/* 0: nothing is offered */
};

/* Zeroed when the application registers. */
struct ebb_divide_app {
	uint64_t silent_since_ns;	/* fact: shares wait to be looked at since; 0: none do */
	struct ebb_divide_node nodes[EBB_MAX_NODES]; /* by node number */
};

/*
 * apps[] in the order of registration.  What an application claims to own counts
 * up to the number of hotplugged CPUs on the node.  Returns when it must be
 * called again even if no fact changes (ns), UINT64_MAX for never.
 */
uint64_t ebb_divide(const struct ebb_view *view, struct ebb_divide_app *const apps[], size_t num,
		    uint64_t now_ns);

/* Has the application been silent for too long? */
bool ebb_divide_is_absent(const struct ebb_divide_app *app, uint64_t now_ns);

#endif /* EBB_DIVIDE_H */
