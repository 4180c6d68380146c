/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Brokering of memory: histograms of guests, when they are asked for, and the decisions of the
 * policy.  The policy alone decides whose memory goes.
 */
#ifndef EBB_CORE_BROKER_H
#define EBB_CORE_BROKER_H

#include "core/room.h"

struct broker_room {
	const struct core_env *env;
	struct ebb_broker broker;
	bool is_awaited;		/* an answer of some VM is awaited; valid unless is_stale */
	bool is_stale;			/* is_awaited has to be computed again */
};

/* Whose answer is awaited may have changed, for example because a link came up or went down. */
void broker_changed(struct broker_room *s);

/* A run of the VM begins: it has not been asked yet. */
void broker_start(const struct ebb_vm *vm);
/* The run is over, or (forget) the guest has rebooted: its histogram does not apply any more. */
void broker_stop(const struct ebb_vm *vm);
void broker_forget(const struct ebb_vm *vm);

/* A histogram.  0, -ENOENT: the VM does not run or has no link. */
int broker_report(struct broker_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_fact_vom *f);

/* The number of the ask to put into LIMITS (ebb_action_limits.vom_seq); and: LIMITS is sent. */
uint32_t broker_tells(const struct ebb_vm *vm);
void broker_told(const struct ebb_vm *vm);

/*
 * Before the policy decides.  fit_all: fits each histogram to what its guest holds now, and guesses
 * the missing ones.  view: adds to the view what concerns neither VMs nor nodes.
 */
void broker_fit_all(const struct broker_room *s);
void broker_view(struct broker_room *s, usec_t now, struct ebb_view *view);
/* The policy has decided, and targets are set. */
void broker_decided(struct broker_room *s, usec_t now, const struct ebb_plan *plan);

/* When the policy has to decide again, or EBB_TIME_NEVER; and whether that time has come. */
usec_t broker_next_at(struct broker_room *s);
bool broker_is_due(struct broker_room *s, usec_t now);

/* How memory was last brokered, and the histogram: lines of the explanation. */
void broker_explain(const struct broker_room *s, const struct ebb_vm *vm, usec_t now,
		    struct ebb_explain *x);

/* The room's own part of a VM. */
static inline struct ebb_vm_vom *broker_own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_vom *)&vm->vom;
}

#endif /* EBB_CORE_BROKER_H */
