/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The insides of the real backend, private to real*.c: the table of VMs and the jobs.  All of it is
 * the loop's, except run() of a job, which touches the job and the tools only.
 */
#ifndef EBB_DAEMON_REAL_PRIVATE_H
#define EBB_DAEMON_REAL_PRIVATE_H

#include "backend/real/real-jobs.h"
#include "backend/real/real.h"
#include "backend/real/link.h"

struct real_vm {
	struct real_vm *next;
	struct ebb_real *real;
	struct ebb_watch watch;
	bool is_looking;		/* a look is under way */
	bool look_again;		/* something changed since it was submitted */
	/* SLAs to be written into the metadata: a look that does not lie between two is stale. */
	unsigned int num_saves, num_saved;
	bool is_first_look;		/* LOADED waits for it */
	bool must_lift;			/* an agent before us may have throttled it */
	sd_event_source *timer;		/* of a later look */
	bool is_auditing;		/* an audit is under way */
	usec_t audit_at;		/* the next one */
	uint64_t audited;		/* sum of the last audit */
};

struct ebb_real {
	sd_event *event;
	struct ebb_real_config cfg;
	struct ebb_real_tools tools;
	struct ebb_links *links;
	struct real_vm *vms;
	sd_event_source *audit_timer;
	sd_event_source *list_timer;	/* of another attempt to list the domains */
	bool is_connected, is_loaded;
	bool must_list;			/* before LOADED can be reported */
	unsigned int num_first_looks;	/* under way */
	char why[EBB_TEXT_SIZE];	/* not connected because */
};

enum real_work {
	WORK_LOOK, WORK_LIST, WORK_PLUG, WORK_UNPLUG, WORK_PLACE, WORK_CAP, WORK_MIRROR, WORK_SAVE,
	WORK_AUDIT, WORK_THROTTLE, WORK_RESERVE,
	WORK_SHARES,
};

struct real_job {
	struct ebb_job job;		/* first: jobs are cast to this */
	struct ebb_real *real;
	enum real_work work;
	uint8_t uuid[16];
	char name[EBB_NAME_SIZE];
	enum ebb_action_type action_type;
	uint64_t action_id;
	uint16_t vcpu, thread;		/* PLUG, UNPLUG, PLACE */
	uint16_t node;			/* MIRROR: guest node */
	struct ebb_action_reserve reserve;
	uint64_t bytes;			/* CAP, MIRROR; THROTTLE: permille; SHARES: shares */
	struct ebb_look look;
	unsigned int num_saved;		/* LOOK: real_vm's when it was submitted */
	bool must_lift;			/* LOOK: the same */
	int lifted;			/* LOOK: a throttle; or -errno with lift_err */
	struct ebb_err lift_err;
	struct ebb_audit audit;
	uint8_t (*uuids)[16];
	int num_uuids;
	struct ebb_sla sla;
	void (*saved)(void *ctx, int rc, const char *text);
	void *saved_ctx;
	struct ebb_err err;
};

/* NULL when it is not known; _get() adds it, NULL: out of memory. */
struct real_vm *real_vm_find(struct ebb_real *r, const uint8_t uuid[16]);
struct real_vm *real_vm_get(struct ebb_real *r, const uint8_t uuid[16]);
void real_vm_forget(struct ebb_real *r, struct real_vm *vm);

/* A job for ebb_workers_submit(); uuid NULL: about no VM.  NULL: out of memory. */
struct real_job *real_job_new(struct ebb_real *r, enum real_work work, const uint8_t uuid[16],
			      uint8_t lane, usec_t timeout,
			      void (*done)(struct ebb_job *job, int err));

/* Look at a VM, soon; what is found is reported. */
void real_look(struct real_vm *vm, const char *why);

/* Look at all, those that are not known yet included. */
void real_list(struct ebb_real *r);

/* Begin to check now and then that nobody moves, plugs or unplugs vCPUs behind our back. */
int real_audit_start(struct ebb_real *r);

#endif
