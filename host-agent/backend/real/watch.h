/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From looks at a domain to facts.  A look says what is true; compared with what was reported
 * before it becomes VM_DEFINED, VM_INVALID, VM_REMOVED, VM_RUNNING and VM_STOPPED, in an order that
 * the core understands.  What the core refuses is not told yet, and every look tells it again: a
 * definition that a running VM can not have comes into force when it has stopped.  No I/O.
 */
#ifndef EBB_DAEMON_WATCH_H
#define EBB_DAEMON_WATCH_H

#include "backend/backend.h"
#include "backend/real/virt-domain.h"

struct ebb_look {
	usec_t as_of;			/* when looking began */
	bool is_sla_stale;		/* the operator's word may not have been written by then */
	struct ebb_virt_domain domain;
	/* When it runs: */
	bool is_ready;			/* every plugged vCPU has a thread by now */
	uint16_t num_plugged;
	struct ebb_vcpu_fact plugged[EBB_MAX_VCPUS];
};

/* The facts about a domain that the core has taken note of. */
struct ebb_watch {
	uint8_t uuid[16];
	char name[EBB_NAME_SIZE];
	enum {
		EBB_WATCH_UNKNOWN,	/* nothing */
		EBB_WATCH_VALID,	/* VM_DEFINED */
		EBB_WATCH_INVALID,	/* VM_INVALID, perhaps after VM_DEFINED */
		EBB_WATCH_REMOVED,	/* VM_REMOVED, while it was running */
	} told;
	bool told_running;
	uint64_t order;			/* of the run that was told */
	struct ebb_metadata metadata;	/* VALID: as found */
	struct ebb_vm_volumes volumes;	/* VALID: as found */
	uint64_t disk_bytes;		/* VALID: as found */
	struct ebb_sla sla;		/* VALID: in force, since told or set by the operator */
	char error[EBB_TEXT_SIZE];	/* INVALID: as told */
};

enum ebb_watch_result {
	EBB_WATCH_KEEP,
	EBB_WATCH_AGAIN,  /* it is just starting: look again soon */
	EBB_WATCH_FORGET, /* nothing is known of it any more, and it is gone or not ours */
};

/* CPU time is promised to the VM. */
bool ebb_watch_is_promised(const struct ebb_watch *w);

/*
 * How often the times of a VM's threads are to be read.  If it shares cores: often enough for the
 * window that these are judged over, and for the interval in which promises are metered, to it or
 * to those that it may take time from.  interval: EBB_TIME_NEVER if no VM is promised anything.
 */
#define EBB_WATCH_PERIOD_MOST	(5 * EBB_USEC_PER_SEC)
usec_t ebb_watch_period(const struct ebb_watch *w, usec_t window, usec_t interval);

/* The operator has set this SLA; it is on its way into the metadata. */
void ebb_watch_sla_set(struct ebb_watch *w, const struct ebb_sla *sla);

/* Report what is new. */
enum ebb_watch_result ebb_watch_apply(struct ebb_watch *w, const struct ebb_look *look, usec_t now,
				      const struct ebb_sink *sink);

#endif
