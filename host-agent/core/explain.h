/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Explains why a VM holds its resources, what it waits for, and what happens next.  Derived from
 * the state when asked; nothing is stored for it.
 */
#ifndef EBB_CORE_EXPLAIN_H
#define EBB_CORE_EXPLAIN_H

#include "core/core.h"

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
	enum ebb_wait wait;		/* the most pressing reason among the lines */
	uint16_t node;			/* guest node it is about, or EBB_NODE_ANY */
	uint16_t cpus;			/* how many CPUs it is about */
	uint64_t bytes;			/* how much memory it is about */
	usec_t until;			/* when the core acts on its own, or EBB_TIME_NEVER */
	uint32_t num_lines;		/* at least 1 */
	char lines[EBB_EXPLAIN_LINES][EBB_TEXT_SIZE]; /* for people, most pressing first */
	char too_much[EBB_TEXT_SIZE];	/* further lines overwrite each other here, unread */
};

void ebb_explain_vm(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now,
		    struct ebb_explain *ret_explain);

/* Blocks of those asked for at the last brokering that the VM has given back since. */
uint32_t ebb_vm_given(const struct ebb_vm *vm, uint16_t node);

/* How a guest may misbehave, most pressing first. */
enum ebb_verdict {
	EBB_VERDICT_SILENT,		/* it lets deadlines pass */
	EBB_VERDICT_PARTIAL,		/* it has met some demands, and others not */
	EBB_VERDICT_LATE,		/* it meets demands, but just before their deadlines */
	EBB_VERDICT_SQUAT,		/* it computes on CPUs that it has lent */
	EBB_VERDICT_WAKE,		/* it tries to start CPUs that it has parked */
	EBB_VERDICT_FLAP,		/* it takes CPUs and gives them back at once */
	EBB_VERDICT_FLOOD,		/* it asks too often */
	EBB_VERDICT_REASK,		/* it asks at once for what it has just given back */
	EBB_VERDICT_MAX,
};

/*
 * Whether the guest misbehaves in this way.  If so, ret_text (EBB_TEXT_SIZE bytes; may be NULL)
 * gets a few words that continue a sentence that begins with "the guest".  No decision depends on
 * it: limits, deadlines and force bound what a guest can do to others.  A verdict is dropped when
 * the guest has behaved for 10 minutes (demands), for two measured periods (computing on lent
 * CPUs), or for one minute (all others).
 */
bool ebb_vm_verdict(const struct ebb_vm *vm, usec_t now, enum ebb_verdict verdict,
		    char *ret_text);

/* "silent", "partial", ...; "?" for what is not known. */
const char *ebb_verdict_name(enum ebb_verdict verdict);

/* "nothing", "start", "sla", ...; "?" for what is not known. */
const char *ebb_wait_name(enum ebb_wait wait);

#endif /* EBB_CORE_EXPLAIN_H */
