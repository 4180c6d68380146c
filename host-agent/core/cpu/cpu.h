/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUs: requests for them until they are answered, who owns which hardware thread, deadlines, and
 * the actions on vCPUs.
 */
#ifndef EBB_CORE_CPU_H
#define EBB_CORE_CPU_H

#include "core/cpu/cores.h"
#include "core/room.h"

struct cpu_room {
	const struct core_env *env;
	struct ebb_cores cores;
};

void cpu_create(struct cpu_room *s);

/* ---- what happens to a VM ------------------------------------------------ */

/* The VM was defined with these vCPUs, num_vcpus of them. */
void cpu_define(const struct ebb_vm *vm, const struct ebb_vcpu_def *defs);
/* A run begins; the VM was running before (cpu_compare); a run is over. */
void cpu_start(struct cpu_room *s, const struct ebb_vm *vm, const struct ebb_fact_vm_running *f);
void cpu_compare(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_vm_running *f);
void cpu_stop(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
/* LOADED: vCPUs become owners of the threads on which they were found. */
void cpu_claim_all(struct cpu_room *s);
/* The VM is not admitted: its startup set gives up its cores, its other vCPUs go home. */
void cpu_turn_away(struct cpu_room *s, const struct ebb_vm *vm);

/* Returns how many hotplugged CPUs the device lists. */
uint16_t cpu_hello(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		   const struct ebb_fact_hello *f, bool is_reset);
/*
 * After the first HELLO of a VM that was found running, as one that has come from another host: the
 * CPUs that it holds get cores, if there are any, though its limit may be lower.  Else a demand for
 * them would have no deadline.
 */
void cpu_found(struct cpu_room *s, const struct ebb_vm *vm);
void cpu_link_lost(const struct ebb_vm *vm);
/* 0, -ENOENT: no link, -EINVAL: its sender is broken.  The plan must be settled before. */
int cpu_report(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
	       const struct ebb_fact_request *f);
/* Whether cpu_report() would take note of the request: what it returns otherwise. */
int cpu_may_report(const struct ebb_vm *vm, const struct ebb_fact_request *f);
/* Drops all requests of the VM, since nobody waits for their answers any more. */
void cpu_drop(struct cpu_room *s, const struct ebb_vm *vm);
/* An action on the vCPU has ended.  One that is not awaited any more is ignored. */
void cpu_done(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
	      const struct ebb_fact_action_done *f);

/* ---- planning ------------------------------------------------------------ */

/* Recomputes used and held of all nodes, and what is still due. */
void cpu_count(struct cpu_room *s, const struct ebb_vm *vm);
/* No driver answers for the CPUs that the guest holds: forces them. */
void cpu_force_absent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
/* Cores of which the guest node owns a thread, and those that its startup set still waits for. */
uint32_t cpu_count_cores(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g);
/* CPUs of the guest node whose core will certainly be free shortly (advance.c). */
uint16_t cpu_leaving(const struct ebb_vm *vm, uint16_t g, usec_t now);
/* CPUs of a node of the host as the arbiter counts them: cores where threads are given out. */
uint32_t cpu_to_units(const struct cpu_room *s, uint16_t host_node, uint32_t cpus);
uint32_t cpu_from_units(const struct cpu_room *s, uint16_t host_node, uint32_t units);
/* Whether a new plan may be due because the VM wants less than the last one saw. */
bool cpu_wants_less(const struct ebb_vm *vm, usec_t now);

/* Take over what the plan saw, and what the plan and the arbiter decided. */
void cpu_set_wanted(const struct ebb_vm *vm, uint16_t g, usec_t now);
void cpu_set_target(const struct ebb_vm *vm, uint16_t g, uint16_t target);
void cpu_set_limit(const struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
		   uint32_t limit);
/* Limits are set on these nodes of the host (bit h): begins to free cores that others wait for. */
void cpu_pack(struct cpu_room *s, uint32_t nodes);
/* Opens and closes demands, forces overdue CPUs, gives cores to vCPUs that wait for one. */
void cpu_settle(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
/* When settling changes something by itself, or EBB_TIME_NEVER. */
usec_t cpu_next_at(const struct ebb_vm *vm, usec_t now);
/* By node of the host: cores that nobody owns. */
void cpu_count_free(const struct cpu_room *s, uint32_t ret[EBB_MAX_NODES]);

/* ---- acting -------------------------------------------------------------- */

/* Before settling: takes note of deadlines that have passed and actions that have ended. */
void cpu_tidy(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
bool cpu_must_tell(const struct ebb_vm *vm);
/* Fills in the CPU half of LIMITS, which is sent. */
void cpu_tell(usec_t now, const struct ebb_vm *vm, struct ebb_action_limits *l);
/*
 * These return false if *out has no space for all actions.  cpu_act_forced() is called for all VMs
 * before any other action is emitted.
 */
bool cpu_act_forced(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		    struct ebb_actions *out);
bool cpu_act_flags(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		   struct ebb_actions *out);
bool cpu_act(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, struct ebb_actions *out);

/* Plugged, but neither of the startup set nor granted nor being granted. */
static inline bool cpu_is_unowned(const struct ebb_vcpu *v)
{
	return v->life == EBB_VCPU_PLUGGED && !v->is_startup && !v->is_granted &&
	       !v->is_unknown && v->request < 0;
}

#endif /* EBB_CORE_CPU_H */
