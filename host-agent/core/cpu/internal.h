/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the room of CPUs share.
 *   request.c  CPU_ADD and CPU_REMOVE until they are answered
 *   refused.c  requests that were refused because of limits
 *   lend.c     CPU_LEND, and vCPUs that are plugged ahead of need
 *   vcpu.c     ownership of threads, counts, homes
 *   cores.c    who owns which hardware thread
 *   threads.c  nodes on which hardware threads are given out; which one to take
 *   pack.c     CPUs move together there, so that others get whole cores
 *   force.c    deadlines, and cores for vCPUs that were promised one advance.c  cores that are
 *   offered shortly before they are free run.c      VMs start, stop, and change behind the agent's
 *   back hello.c    granted vCPUs that the device lists act.c      actions and messages done.c
 *   actions have ended
 */
#ifndef EBB_CORE_CPU_INTERNAL_H
#define EBB_CORE_CPU_INTERNAL_H

#include "core/cpu/cpu.h"

/* The room's own parts of a VM and of a vCPU. */
static inline struct ebb_vm_cpus *cpu_own(const struct ebb_vm *vm)
{
	return (struct ebb_vm_cpus *)&vm->cpus;
}

static inline struct ebb_vm_node *cpu_own_node(const struct ebb_vm *vm, uint16_t g)
{
	return (struct ebb_vm_node *)&vm->nodes[g];
}

static inline struct ebb_vcpu *cpu_own_vcpu(const struct ebb_vm *vm, int vcpu)
{
	return (struct ebb_vcpu *)&vm->vcpus[vcpu];
}

static inline struct ebb_request *cpu_own_request(const struct ebb_vm *vm, int i)
{
	return (struct ebb_request *)&vm->requests[i];
}

/* cpu/request.c */
/* Answers requests that are complete or late. */
void cpu_requests_check(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
/* Grants what it can of requests that wait for a core that was offered in advance. */
void cpu_requests_retry(struct cpu_room *s, usec_t now, const struct ebb_vm *vm);
/* A vCPU that was to be granted will not be. */
void cpu_request_lose(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, uint16_t reason);
/* The UNPLUG that a CPU_REMOVE waits for has ended. */
void cpu_request_removed(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
			  int err);
/* A free slot in ebb_vm.requests, or -1. */
int cpu_request_slot(const struct ebb_vm *vm);
/* VIRTIO_EBB_ACK, NACK or BUSY, by the reason. */
uint16_t cpu_status_of(uint16_t reason);
void cpu_refuse(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_request *f, uint16_t reason, const char *text);
/*
 * Refuses to take a vCPU back, removed or lent, that the guest can not give back now; f->vcpu is
 * one of the VM's.  busy: the text if another request for it, or too many, are under way.  False:
 * it can.
 */
bool cpu_refuse_return(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		       const struct ebb_fact_request *f, const char *busy);

/* cpu/lend.c */
int cpu_request_lend(struct cpu_room *s, usec_t now, const struct ebb_vm *vm,
		      const struct ebb_fact_request *f);
/* Answers a CPU_LEND whose vCPU has left its core (err is 0), or did not in time. */
void cpu_request_lent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		       int err);
/* The flags LENT and PARKED of a vCPU that HELLO lists. */
void cpu_hello_lent(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu,
		     uint16_t flags, bool is_first);
/* A plugged vCPU that is nobody's will be handed over as a lent one. */
bool cpu_vcpu_is_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v);
/* An absent vCPU is to be plugged now, so that it is there when the guest wants it. */
bool cpu_vcpu_plugs_ahead(const struct ebb_vm *vm, const struct ebb_vcpu *v, usec_t now);

/* cpu/vcpu.c */
/* Its request will give it a core. */
static inline bool cpu_vcpu_is_getting(const struct ebb_vm *vm, const struct ebb_vcpu *v)
{
	return v->request >= 0 && vm->requests[v->request].phase == EBB_REQUEST_ADD;
}

/* It is to run on a home of its VM, and to own no core. */
static inline bool cpu_vcpu_goes_home(const struct ebb_vm *vm, const struct ebb_vcpu *v)
{
	if (v->force != EBB_FORCE_NONE)
		return true;
	return v->is_lent ? !cpu_vcpu_is_getting(vm, v) : cpu_vcpu_is_ahead(vm, v);
}

/* It runs on the thread, or may for all that is known. */
static inline bool cpu_vcpu_may_run_on(const struct ebb_vcpu *v, uint16_t thread)
{
	return v->placed == thread || v->placing == thread ||
	       (v->placed == EBB_THREAD_NONE && v->place_failures > 0);
}

/* The guest counts with its core: it is granted and was neither forced nor lent. */
static inline bool cpu_vcpu_is_held(const struct ebb_vcpu *v)
{
	return v->is_granted && v->force == EBB_FORCE_NONE && !v->is_lent;
}

bool cpu_vcpu_take(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, uint16_t thread);
void cpu_vcpu_release(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu);
void cpu_vcpu_set_placed(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu,
			 uint16_t thread);
/* As when the VM has just been defined: unplugged, without a core. */
void cpu_vcpu_clear(struct ebb_vcpu *v);
/* Its thread is gone: nothing is under way for it, it owns and occupies nothing. */
void cpu_vcpu_gone(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t vcpu);
void cpu_vcpu_force(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu, enum ebb_force why);
/*
 * Where the vCPU's thread should run: its own thread, a home, or
 * EBB_THREAD_NONE where it does not matter.  A home that it already runs on
 * stays.
 */
uint16_t cpu_vcpu_wants(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu);
/* As cpu_count(), and the guest has no part in that it holds less. */
void cpu_count_forced(struct cpu_room *s, const struct ebb_vm *vm);

/* cpu/advance.c */
/*
 * Cores are offered to other VMs this long before the deadline at which their owner loses them, so
 * that the next owner has asked by then.
 */
#define CPU_ADVANCE_USEC	(10 * EBB_USEC_PER_MSEC)
/* A request for a core that was offered in advance is answered after this at the latest. */
#define CPU_ADVANCE_WAIT_USEC	(3 * CPU_ADVANCE_USEC)
/* When cpu_leaving() grows by itself next, or EBB_TIME_NEVER. */
usec_t cpu_leaving_from(const struct ebb_vm *vm, uint16_t g, usec_t now);

/* cpu/threads.c */
/* Whether a thread of the same core belongs to another VM. */
bool cpu_is_foreign(const struct cpu_room *s, uint16_t thread, const struct ebb_vm *vm);
/* Whether all of the core that has an owner belongs to the guest node. */
bool cpu_is_own(const struct cpu_room *s, const struct ebb_core *core, const struct ebb_vm *vm,
		 uint16_t g);
/* A thread for a vCPU of the startup set on guest node g; EBB_THREAD_NONE if there is none. */
uint16_t cpu_pick_startup(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g);
/* The same for another one. */
uint16_t cpu_pick_thread(const struct cpu_room *s, const struct ebb_vm *vm, uint16_t g,
			  bool allow_ht);

/* Whether no startup vCPU that waited for its core still runs on the thread, or may. */
bool cpu_thread_is_vacated(const struct ebb_vm *vm, uint16_t thread);

/* cpu/pack.c */
/* Frees the thread that the vCPU has left, once it and all that ran beside it have. */
void cpu_pack_end(struct cpu_room *s, const struct ebb_vm *vm, uint16_t vcpu);

/* cpu/refused.c */
/* A request was not met because of the limit: so many CPUs less than it asked for. */
void cpu_want(struct cpu_room *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
	      uint16_t missing);
/* When what is wanted changes by itself, or EBB_TIME_NEVER. */
usec_t cpu_wanted_until(const struct ebb_vm *vm, uint16_t g);

#endif /* EBB_CORE_CPU_INTERNAL_H */
