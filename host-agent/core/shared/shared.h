/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMs that share cores.  It tells balance.h what was measured, and turns the result into threads
 * for vCPUs, throttles and records.
 */
#ifndef EBB_CORE_SHARED_H
#define EBB_CORE_SHARED_H

#include "core/room.h"
#include "core/shared/balance.h"

struct shared_room {
	const struct core_env *env;
	bool is_stale;			/* VMs or their vCPUs came, went or were found elsewhere */
	bool is_hot;
	uint16_t core_of[EBB_MAX_THREADS]; /* index in cores, or EBB_SHARE_NONE */
	usec_t look_at;			/* 0: nobody shares cores */
	uint64_t num_looks, num_moved_vms, num_moved_vcpus, cost_usec;
	struct ebb_share share;		/* of the last look */
	struct ebb_share_core cores[EBB_MAX_THREADS];
	const struct ebb_vm *of[EBB_MAX_VMS]; /* by index in vms */
	struct ebb_share_vm vms[EBB_MAX_VMS];
	struct ebb_share_vcpu vcpus[EBB_SHARE_MAX_VCPUS];
	uint16_t ids[EBB_SHARE_MAX_VCPUS]; /* vCPU ids */
};

void shared_create(struct shared_room *s);

/* The VM was defined anew; a run of it begins; a run is over. */
void shared_define(const struct ebb_vm *vm);
void shared_start(struct shared_room *s, const struct ebb_vm *vm);
void shared_stop(struct shared_room *s, const struct ebb_vm *vm);

/* Places for newcomers, and a look where one is due.  Returns whether there was a look. */
bool shared_settle(struct shared_room *s, usec_t now);
/* After a look, when all rooms know its result: records whether the host is hot. */
void shared_looked(struct shared_room *s, usec_t now);
/* When the next look is, or EBB_TIME_NEVER. */
usec_t shared_next_at(const struct shared_room *s);

/* The load of the shared core of index i at the last look. */
struct shared_load {
	uint16_t core;			/* of the host */
	/* Thousandths of the core; both 0 if fewer than two VMs used it. */
	uint32_t level;			/* what "hot" is judged by (ebb_share_core) */
	uint32_t used;
	char who[80];			/* those VMs, for people */
};
/*
 * i < s->share.num_cores.  False: entry i is not the first thread of a core of the host, and only
 * the first one is reported.
 */
bool shared_load_of(const struct shared_room *s, uint16_t i, struct shared_load *ret);
/* By node of the host: whether VMs there are throttled. */
void shared_throttled(const struct shared_room *s, bool ret[EBB_MAX_NODES]);

/* Throttles the VM as the last look decided.  False if *out has no space for the action. */
bool shared_act(const struct shared_room *s, usec_t now, const struct ebb_vm *vm,
		struct ebb_actions *out);
/* THROTTLE has ended.  One that is not awaited any more is ignored. */
void shared_done(const struct shared_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_action_done *f);

/* False: VMs do not share the thread. */
bool shared_thread(const struct shared_room *s, uint16_t thread, struct ebb_shared_thread *ret);
void shared_totals(const struct shared_room *s, struct ebb_shared_totals *ret);

#endif /* EBB_CORE_SHARED_H */
