/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Brokering of memory: what guests say that theirs is worth, when they are asked, and what the
 * policy decided.  Which memory goes is the policy's business alone.
 */
#ifndef EBB_CORE_BROKER_H
#define EBB_CORE_BROKER_H

#include "core/room.h"

struct broker_room {
	const struct core_env *env;
	struct ebb_broker broker;
	bool is_awaited;		/* an answer, of any VM; unless that has to be found out */
	bool is_stale;
};

/* Something happened that may change whose answer is awaited: a link came or went, say. */
void broker_changed(struct broker_room *s);

/* A run of the VM begins: it was asked nothing yet. */
void broker_start(const struct ebb_vm *vm);
/* It is over, or (forget) its guest was booted anew: what was said is about what is no more. */
void broker_stop(const struct ebb_vm *vm);
void broker_forget(const struct ebb_vm *vm);

/* A histogram.  0, -ENOENT: the VM does not run or has no link. */
int broker_report(struct broker_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_fact_vom *f);

/* What LIMITS asks of the VM now (ebb_action_limits.vom_seq); and it is sent. */
uint32_t broker_tells(const struct ebb_vm *vm);
void broker_told(const struct ebb_vm *vm);

/*
 * Before the policy decides: makes what guests have said be about what they hold now and guesses
 * the rest; and adds to the view what it sees besides VMs and nodes.
 */
void broker_fit_all(const struct broker_room *s);
void broker_view(struct broker_room *s, usec_t now, struct ebb_view *view);
/* It has decided, and targets are set. */
void broker_decided(struct broker_room *s, usec_t now, const struct ebb_plan *plan);

/* When the policy is to be asked again by itself, or EBB_TIME_NEVER; and whether it is now. */
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
