/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of memory: the hit ratio of a dedicated cache ("SQLVM", section 2.3).  Decides which are
 * made, tells guests how large the cache is, and gives each VM a floor of memory beyond its minimum
 * that keeps its promise (control.h).  Policies see the floor and the minimum as one, and take
 * neither, so the promise holds under every policy.
 *
 * A promise of M MiB is divided over the VM's guest nodes in proportion to what each may have
 * beyond its minimum, and holds on the nodes of the host where they are.  A floor is never more
 * than what is promised there, whatever the guest says, and all floors together fit the node.  So a
 * guest that lies gets at most what its operator promised, and others keep what was promised to
 * them.
 */
#ifndef EBB_CORE_FLOOR_H
#define EBB_CORE_FLOOR_H

#include "core/floor/control.h"
#include "core/room.h"
#include "model/shortage.h"

struct floor_room {
	const struct core_env *env;
	bool had_promises;		/* when floors were last divided */
	/* Scratch: the guest nodes on one node of the host. */
	struct ebb_shortage_claim claims[EBB_MAX_VMS * EBB_MAX_GUEST_NODES];
	struct ebb_level_part parts[EBB_MAX_VMS * EBB_MAX_GUEST_NODES];
};

/* A run of the VM begins; a run is over; the guest has rebooted, its counters begin anew. */
void floor_start(const struct ebb_vm *vm);
void floor_stop(const struct ebb_vm *vm);
void floor_forget(const struct ebb_vm *vm);

/*
 * Compares the promise with what the SLA asks for.  One that is lowered ends and is made anew: it
 * takes nothing new, so it comes before those not made yet.  One that is raised holds until more
 * is promised, so it holds if more is refused; unless the VM may not have that much memory on each
 * of its nodes any more.
 */
void floor_review(const struct floor_room *s, const struct ebb_vm *vm);
/* Something is asked for and not promised, or more than is promised. */
bool floor_is_open(const struct ebb_vm *vm);
/*
 * Promises the VM, which is admitted, what its SLA asks for, if it fits.  used: blocks of each node
 * of the host that minimums and promises take already, the VM's own among them; what is promised
 * beyond that is added.
 */
void floor_admit(const struct floor_room *s, usec_t now, const struct ebb_vm *vm,
		 uint64_t used[EBB_MAX_NODES]);
/* Divides memory of nodes of the host among floors.  Before the policy decides. */
void floor_settle(struct floor_room *s);

/* The guest has reported.  Returns whether its floor is to be another one. */
bool floor_report(const struct floor_room *s, usec_t now, const struct ebb_vm *vm,
		  const struct ebb_telemetry *t);

/* LIMITS has to be sent again; it is sent: fills in what is promised. */
bool floor_must_tell(const struct ebb_vm *vm);
void floor_tell(const struct ebb_vm *vm, struct ebb_action_limits *l);

/* The memory of a node of the host that is promised, and that may still be promised. */
void floor_node(const struct floor_room *s, uint16_t host_node, struct ebb_mem_promise_node *ret);

#endif /* EBB_CORE_FLOOR_H */
