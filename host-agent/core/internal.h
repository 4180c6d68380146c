/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole state, for the files of the core that lie in no room: they dispatch facts, run the
 * cycle and read.  What rooms may use is in room.h.
 *
 *   core.c         creation, dispatch of facts
 *   tables.c       definitions and SLAs; VMs come and go in the tables
 *   lifecycle.c    VMs start, stop, and change behind the agent's back
 *   link.c         HELLO, loss of the link, which VMs count as having a driver account.c
 *   counters that go with a VM from host to host plan.c         admission, policy, limits
 *   ("settling") resource.c     what is divided: a row for CPUs, one for memory set.h, alarm.c
 *   which VMs are concerned, and when time alone concerns one cycle.c        the one cycle: what
 *   differs from what should be becomes actions read.c         what others may read explain.c
 *   why a VM has what it has room.c         what rooms ask of the core journal.c      decision
 *   records journal-sum.c  requests that are too many to be recorded one by one cpu/
 *   vCPUs: requests, cores, deadlines mem/           pools: what devices report, deadlines,
 *   revoking, what is told to whom broker/        what guests say that their memory is worth, and
 *   brokering by it shared/        VMs that share cores reserve/       promises of CPU time to VMs
 *   that share cores floor/         promises of memory pressure/      resources beyond their
 *   thresholds, and VMs that should move for it meter/         what VMs held and used, and how
 *   guests behave promise/       what was promised to VMs, and whether they got it io/
 *   promises of I/O to volumes of VMs, which the volume server keeps
 */
#ifndef EBB_CORE_INTERNAL_H
#define EBB_CORE_INTERNAL_H

#include "core/alarm.h"
#include "core/arbiter.h"
#include "core/broker/broker.h"
#include "core/core.h"
#include "core/cpu/cpu.h"
#include "core/floor/floor.h"
#include "core/io/io.h"
#include "core/journal.h"
#include "core/mem/mem.h"
#include "core/meter/meter.h"
#include "core/pressure/pressure.h"
#include "core/promise/promise.h"
#include "core/reserve/reserve.h"
#include "core/resource.h"
#include "core/room.h"
#include "core/shared/shared.h"
#include "core/work.h"

struct ebb_state {
	struct core_env env;		/* what all rooms may read */
	struct core_cycle cycle;
	struct core_journal journal;
	struct cpu_room cpu;
	struct mem_room mem;
	struct broker_room broker;
	struct shared_room shared;
	struct reserve_room reserve;
	struct floor_room floor;
	struct pressure_room pressure;
	struct meter_room meter;
	struct promise_room promise;
	struct io_room io;
	uint64_t policy_state[EBB_POLICY_STATE_MAX / 8];
	struct core_alarms settles;	/* settling changes something of the VM then by itself */
	struct core_alarms wakes;	/* reconcile has to look at the VM then */
	struct ebb_vm *slots[EBB_MAX_VMS];
	size_t num_vms;
	struct ebb_vm *vms[EBB_MAX_VMS];	/* by uuid */
	struct ebb_vm *active[EBB_MAX_VMS];	/* as env.active */
	/* Scratch of plan.c. */
	struct ebb_view_vm view_vms[EBB_MAX_VMS];
	struct ebb_plan_vm targets[EBB_MAX_VMS];
	struct ebb_arbiter_entry entries[EBB_MAX_VMS * EBB_MAX_GUEST_NODES]; /* of one node */
	struct ebb_level_part parts[EBB_MAX_VMS * EBB_MAX_GUEST_NODES];
};

/* tables.c */
/* Quorum of which nobody has told for too long is over. */
void core_review_quorum(struct ebb_state *s, usec_t now);

struct ebb_vm *core_vm_find(const struct ebb_state *s, const uint8_t *uuid);
int core_vm_defined(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);
int core_vm_invalid(struct ebb_state *s, usec_t now, const struct ebb_fact *fact);
int core_vm_removed(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
int core_sla_set(struct ebb_state *s, usec_t now, struct ebb_vm *vm, const struct ebb_sla *sla);
void core_vm_forget(struct ebb_state *s, struct ebb_vm *vm);
void core_vm_destroy(struct ebb_state *s, struct ebb_vm *vm);

/* lifecycle.c */
int core_vm_running(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
		    const struct ebb_fact_vm_running *f);
int core_vm_stopped(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* A VM that was coming from another host is here now.  No effect on others. */
void core_vm_arrived(struct ebb_state *s, usec_t now, struct ebb_vm *vm);

/* link.c */
int core_hello(struct ebb_state *s, usec_t now, struct ebb_vm *vm,
	       const struct ebb_fact_hello *f);
int core_link_lost(struct ebb_state *s, usec_t now, struct ebb_vm *vm);
/* When the answer of core_vm_is_driven() changes by itself, or EBB_TIME_NEVER. */
usec_t core_vm_driven_until(const struct ebb_state *s, const struct ebb_vm *vm);
bool core_vm_is_driven(const struct ebb_state *s, const struct ebb_vm *vm, usec_t now);

/* account.c */
/* ACCOUNT: what the device keeps.  0, or -ENOENT: no link. */
int core_account_take(struct ebb_state *s, struct ebb_vm *vm, const struct ebb_account *a);
/* All devices are to keep the counters of now; then, for one VM.  False: no room for it. */
void core_account_all(struct ebb_state *s);
bool core_account_emit(struct ebb_state *s, struct ebb_vm *vm, struct ebb_actions *out);

/* plan.c */
void core_count_capacity(struct ebb_state *s);
void core_admit_all(struct ebb_state *s, usec_t now);
void core_settle(struct ebb_state *s, usec_t now);

#endif /* EBB_CORE_INTERNAL_H */
