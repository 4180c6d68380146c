/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The decisions of ebb-placed: a pure function of (state, facts, now) returns actions.  They are
 * level-triggered: an action that failed or was lost is returned again.
 *
 * Each host publishes its own column of scores, one for each VM of the cluster, so that the next
 * best hosts stand in Pacemaker before a host dies and no placer has to be alive then:
 *
 *   host                          score of a VM there
 *   on which it is to stay        PLACED_SCORE_MOST: no other host can have more
 *   another one                   990 x (1 - probability of a violation with the VM there, see
 *                                 placed_model_risks()), and in the last digit the host's place in
 *                                 an order of hosts: 0 to 999
 *   whose libvirtd does not       NEVER, unless the VM runs there: Pacemaker would try to move the
 *   answer                        VM there and restart it when that fails
 *   that a VM is to leave         0: ebbd sees the violation, so its probability is 1
 *   that a constraint of the      NEVER: else Pacemaker, which keeps it by itself, may move those
 *   operator's rules out          VMs away that have to avoid this one (rules.h)
 *
 * VMs that must be together Pacemaker places by the sum of their scores, and a VM that others have
 * to avoid by its scores less theirs; what is said here of a score goes for that sum.
 *
 * A move therefore is one attribute that changes, on the host that the VM is to leave.  The others'
 * scores stand already, and Pacemaker takes the best of them if it beats the stickiness, which is
 * the cost of moving this VM.  Only one VM of the cluster moves at a time: the hosts look at the
 * same facts and agree on the first one.  While Pacemaker moves VMs, or those of a lost host wait
 * to be started, scores of other hosts that stand are left alone.
 *
 * Invariants:
 *   D1  Without quorum nothing is published and nothing is changed.
 *   D2  A score is lowered on the host of a VM only if another host that is ready, whose scores are
 *       believed and on which the floors fit has more than the stickiness.
 *   D3  A utilization is never set so that what is on a host exceeds its capacity: Pacemaker would
 *       stop VMs.
 *   D4  Nothing is decided about a VM that two hosts say they run, or that Pacemaker has elsewhere
 *       than its ebbd does.
 */
#ifndef EBB_PLACED_DECIDE_H
#define EBB_PLACED_DECIDE_H

#include "placed/cluster.h"

#define PLACED_MAX_WAITS	64
#define PLACED_TEXT_SIZE	512	/* two reasons, names */

struct placed_policy {
	int32_t stickiness[PLACE_N_COSTS];	/* for each cost of a move; 1 to 500, rising */
	int32_t score_step;		/* scores that change by less are left: 1 to 500 */
	uint64_t move_usec;		/* a move that has not begun after this is given up */
	uint64_t retry_usec;		/* and not tried again for so long */
	struct place_move_cost cost;
};

struct placed_state {
	char moving[PLACED_NAME_SIZE];	/* VM that is to leave this host; "": none */
	uint64_t moving_since;
	/* VMs whose move was given up, and until when they are not tried again. */
	struct {
		char vm[PLACED_NAME_SIZE];
		uint64_t until;
	} waits[PLACED_MAX_WAITS];
	int next_wait;
	char awaited[PLACED_NAME_SIZE];	/* VM of another host that is to move first; "": none */
	uint64_t awaited_since;
};

struct placed_view {
	const struct placed_cluster *cluster;
	int self;			/* index of this host */
	/* Of each VM: probability of a violation on this host with the VM there; -1: not known. */
	const double *risk;
};

enum placed_action_type {
	PLACED_SET_SCORE,		/* of the VM on this host: value */
	PLACED_DROP_SCORE,		/* the attribute of the VM on this host goes */
	PLACED_SET_STICKINESS,		/* of the VM: value */
	PLACED_SET_UTILIZATION,		/* of the VM: resource, value */
	PLACED_SET_CAPACITY,		/* of this host: resource, value */
	PLACED_ADD_RULE,		/* location of the VM by its scores */
	PLACED_SAY,			/* text, for the log */
};

struct placed_action {
	enum placed_action_type type;
	char vm[PLACED_NAME_SIZE];
	enum place_resource resource;
	int64_t value;
	char text[PLACED_TEXT_SIZE];	/* SAY; SET_SCORE: why */
};

struct placed_actions {
	struct placed_action *items;	/* the caller's */
	size_t capacity;
	size_t count;			/* what does not fit is returned next time */
};

/*
 * now: microseconds, never less than at the last call.  ret_actions->count is set; the actions are
 * in the order in which they are to be carried out.
 */
void placed_decide(const struct placed_policy *policy, const struct placed_view *view, uint64_t now,
		   struct placed_state *s, struct placed_actions *ret_actions);

/* A move of this VM was given up, and it is too early to try again. */
bool placed_waits(const struct placed_state *s, const char *vm, uint64_t now);

/*
 * The host on which Pacemaker would start the VM, and those that must be with it, if `from` were
 * lost, or if it runs nowhere and from is -1: the best of those that may take it; -1: none, and
 * ret_why says why not.
 */
int placed_best(const struct placed_cluster *c, const struct placed_vm *vm, int from, char *ret_why,
		size_t size);

#endif
