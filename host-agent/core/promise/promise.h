/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises to VMs, and whether they were kept: the meters of "SQLVM", section 2.1 for CPU time and
 * section 2.3 for memory (cache.h).  They judge what other rooms do and therefore ask none of them.
 * For CPU time there are the SLA, the scheduler's accounts of vCPU threads (EBB_FACT_CPU_TIMES) and
 * the places of threads.  No decision depends on the meters.
 *
 * VMs that share cores are metered, where the SLA promises them CPU time.  A VM with cores of its
 * own is not: no other VM gets these cores, and as the vCPUs that it has lent run on the cores of
 * its startup set, the accounts can not tell whether it waited for another or for itself.  Only
 * vCPU threads count, not QEMU's other threads; while KVM polls for work of a halted vCPU
 * (halt_poll_ns), its thread runs.  Time without an agent is not metered: metered_usec is the time
 * that is.
 */
#ifndef EBB_CORE_PROMISE_H
#define EBB_CORE_PROMISE_H

#include "core/promise/reckon.h"
#include "core/room.h"

struct promise_room {
	const struct core_env *env;
};

/* Reads from disk beyond the promise of a cache. */
struct promise_beyond {
	usec_t length;			/* of the interval; 0: none has ended */
	uint64_t reads;			/* 0 also where the guest's counters are not believed */
};

/* A run of the VM begins: its counters are 0. */
void promise_start(const struct ebb_vm *vm);

/* CPU times of the VM's threads, which are in range.  Ends an interval if it has lasted so long. */
void promise_report(const struct promise_room *s, const struct ebb_vm *vm,
		    const struct ebb_fact_cpu_times *f);

/*
 * The same for the promise of a cache: a run begins; the guest has rebooted, its counters begin
 * anew; the guest has reported.
 */
void promise_start_cache(const struct ebb_vm *vm);
void promise_forget_cache(const struct ebb_vm *vm);
/* *ret: what the interval that has ended with this report says of the VM's I/O. */
void promise_report_cache(const struct promise_room *s, usec_t now, const struct ebb_vm *vm,
			  const struct ebb_telemetry *t, struct promise_beyond *ret);

/* ---- within the room ----------------------------------------------------- */

/* Thousandths of a core that the VM's vCPUs together were promised; 0: nothing. */
uint32_t promise_permille(const struct ebb_vm *vm);
/* Thousandths of a real CPU that a core is worth. */
uint32_t promise_share(const struct core_env *e);

/*
 * reason.c: who got what the VM waited for in the interval that has just ended, of which its vCPUs
 * have the times; text: EBB_TEXT_SIZE bytes.
 */
enum ebb_cause promise_reason(const struct core_env *e, const struct ebb_vm *vm,
			      const struct promise_outcome *o, usec_t length, char *text);

#endif /* EBB_CORE_PROMISE_H */
