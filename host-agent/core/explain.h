/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Why a VM has what it has: what it waits for, and what comes next.  Derived
 * from the state alone; nothing is remembered for it.
 */
#ifndef EBB_CORE_EXPLAIN_H
#define EBB_CORE_EXPLAIN_H

#include "core/state.h"

enum ebb_wait {
	EBB_WAIT_NOTHING,		/* it has what the policy wants it to have */
	EBB_WAIT_START,			/* it does not run */
	EBB_WAIT_SLA,			/* it is not managed: see its error */
	EBB_WAIT_LINK,			/* its device is not connected */
	EBB_WAIT_DRIVER,		/* no driver in the guest */
	EBB_WAIT_FLOOR,			/* CPUs of its startup set wait for cores of their own */
	EBB_WAIT_CORES,			/* other VMs have to give back first */
	EBB_WAIT_GUEST_ADD,		/* the guest has not taken what is offered */
	EBB_WAIT_GUEST_REMOVE,		/* the guest has to give back; force comes at `until` */
	EBB_WAIT_HOST,			/* libvirt is at work on a request */
	EBB_WAIT_MEMORY,		/* other VMs have to give memory back first */
	EBB_WAIT_GUEST_MEM_ADD,		/* the guest has not taken memory that is offered */
	EBB_WAIT_GUEST_MEM_RELEASE,	/* the guest has to give memory back: revoked at `until` */
	EBB_WAIT_MAX,
};

#define EBB_EXPLAIN_LINES	40

struct ebb_explain {
	enum ebb_wait wait;		/* the most pressing of what the lines say */
	uint16_t node;			/* guest node it is about, or EBB_NODE_ANY */
	uint16_t cpus;			/* how many CPUs it is about */
	uint64_t bytes;			/* how much memory it is about */
	usec_t until;			/* when the core acts on its own, or EBB_TIME_NEVER */
	uint32_t num_lines;		/* at least 1 */
	char lines[EBB_EXPLAIN_LINES][EBB_TEXT_SIZE]; /* for people, most pressing first */
};

void ebb_explain_vm(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		    struct ebb_explain *ret_explain);

/*
 * What is to be said against the guest, in a few words, to ret_text (EBB_TEXT_SIZE bytes), which is
 * "" if there is nothing: then false.  What a guest computes on CPUs that it gave back is not
 * seen here; it does so on the cores of its own startup set.
 */
bool ebb_vm_verdict(const struct ebb_vm *vm, usec_t now, char *ret_text);

/* "nothing", "start", "sla", ...; "?" for what is not known. */
const char *ebb_wait_name(enum ebb_wait wait);

#endif /* EBB_CORE_EXPLAIN_H */
