/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Advice for a person: where VMs should be, what would happen if a host died or another VM came,
 * and why.  Computed with host-agent/place/ from the same facts as the scores; it changes nothing.
 */
#ifndef EBB_PLACED_PLAN_H
#define EBB_PLACED_PLAN_H

#include "placed/model.h"

#define PLACED_NEW_VM	"(new)"		/* name of the VM that --add adds */

struct placed_question {
	const char *lost;		/* name of a host that dies; NULL: none */
	const char *add;		/* class of one more VM; NULL: none */
	/* To be explained; NULL: those that the plan moves, or has no host for. */
	const char *vm;
	uint64_t steps;			/* candidates that are looked at, at most */
	/* Ends the search, too; now: microseconds.  usec 0: only steps do. */
	uint64_t usec;
	uint64_t (*now)(void *ctx);
};

/*
 * Answers
 *   {"hosts":[{"host","state","vms","risk","load":{"cpu":..},"capacity":{..}}],
 *    "vms":[{"vm","class","host","plan","pacemaker","refusal","scores":{HOST:n},"why":[...]}],
 *    "before":{...},"after":{...},"complaints":[...]}
 *
 * host and plan: names, null: on none.  pacemaker: of VMs of the lost host, where the scores that
 * stand let Pacemaker start it; else null.  refusal: why it is on none, with the operator's
 * constraint if that is it, or null.  why: for VMs that are explained, a row for each host, as
 * place_explain() has them: "host", "chosen", "risk_with", "risk_without", "ruled_out":
 * [constraints], "resource", "room", "text" (for people, also with the operator's constraint).
 * before, after: what the placement is worth: "score", "risk" (hosts that are expected to see a
 * violation), "moves", "unplaced".  Loads and capacities in the units of place_resources, risks
 * from 0 to 1.
 *
 * NULL: -ENOENT in *ret_rc: there is no such host, VM or class (err says which there are); -errno.
 */
json_t *placed_plan(const struct placed_cluster *c, const struct placed_traces *traces,
		    const struct place_config *config, const struct placed_question *q,
		    int *ret_rc, struct ebb_err *err);

#endif
