/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Pools of memory: reports of devices, demands until they are met, and what devices, the memory
 * cgroup and libvirt have to be told.
 *   pool.c  reports and demands
 *   act.c   messages and actions
 */
#ifndef EBB_CORE_MEM_H
#define EBB_CORE_MEM_H

#include "core/room.h"

struct mem_room {
	const struct core_env *env;
};

/* A run begins; what libvirt knows of the pools counts until the first HELLO. */
void mem_start(const struct ebb_vm *vm, const struct ebb_fact_vm_running *f);
/* A run is over: nothing is held any more. */
void mem_stop(const struct ebb_vm *vm);
/* HELLO lists the device's pools; a guest node that it does not list has none. */
void mem_hello(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	       const struct ebb_fact_hello *f);
/* MEM: what the pools hold.  0, -ENOENT: no link, -EINVAL: no such node. */
int mem_report(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	       const struct ebb_fact_mem *f);

/* Takes over from the plan and the arbiter: the goal; the limit in force from now on; blocks. */
void mem_set_target(const struct ebb_vm *vm, uint16_t g, uint32_t target);
void mem_set_limit(const struct mem_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
		   uint32_t limit);

/* Before messages are sent: updates demands, checks what devices confirmed, writes records. */
void mem_settle(const struct mem_room *s, usec_t now, const struct ebb_vm *vm);
bool mem_must_tell(const struct mem_room *s, const struct ebb_vm *vm);
/* Fills in the memory half of LIMITS, which is sent. */
void mem_tell(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	      struct ebb_action_limits *l);
/* After LIMITS.  These return false if there is no room for all of it. */
bool mem_revoke(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
		struct ebb_actions *out);
bool mem_act(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	     struct ebb_actions *out);
/* MEM_CAP or MEM_MIRROR has ended.  One that is not awaited any more is ignored. */
void mem_done(const struct mem_room *s, usec_t now, const struct ebb_vm *vm,
	      const struct ebb_fact_action_done *f);

/* ---- within the room ----------------------------------------------------- */

/* Opens and closes demands, by comparing what is held with the limit. */
void mem_update_due(const struct ebb_vm *vm, usec_t now);

/* The room's own parts of a VM. */
static inline struct ebb_vm_pool *mem_own_pool(const struct ebb_vm *vm, uint16_t g)
{
	return (struct ebb_vm_pool *)&vm->pools[g];
}

static inline struct ebb_vm_cap *mem_own_cap(const struct ebb_vm *vm)
{
	return (struct ebb_vm_cap *)&vm->cap;
}

#endif /* EBB_CORE_MEM_H */
