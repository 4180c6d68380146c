/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What VMs held and used, cores that nobody used, and how guests behave.  No decision depends on
 * it.  The calls by which other rooms tell the meter are declared at the end of core/room.h.
 */
#ifndef EBB_CORE_METER_H
#define EBB_CORE_METER_H

#include "core/room.h"

struct meter_room {
	const struct core_env *env;
	usec_t charge_at;		/* what VMs held is recorded then */
	uint32_t idle[EBB_MAX_NODES];	/* cores that are wasted now */
	uint64_t wasted_usec[EBB_MAX_NODES]; /* until wasted_at */
	usec_t wasted_at;
};

/* A run of the VM begins, before it is among the active ones; or (forget) the guest reboots. */
void meter_start(struct meter_room *s, const struct ebb_vm *vm);
void meter_forget(const struct ebb_vm *vm);

/* ---- charge.c ------------------------------------------------------------ */

/* See ebb_state_charge_resume(). */
void meter_resume(const struct meter_room *s, const struct ebb_vm *vm, uint64_t order,
		  const struct ebb_vm_charge *last);
/* Records what the VM, or all, held until now. */
void meter_record(const struct meter_room *s, const struct ebb_vm *vm);
void meter_record_all(const struct meter_room *s);
/* Records are due. */
bool meter_is_due(const struct meter_room *s);
/* Writes records that are due; returns when the next ones are. */
usec_t meter_settle(struct meter_room *s);

/* Counts the cores that were wasted until now. */
void meter_waste(struct meter_room *s);
/*
 * Counts the cores of some nodes of the host (bit h) that are wasted from now on; num_free: cores
 * that nobody owns, by node.
 */
void meter_waste_from_now(struct meter_room *s, uint32_t nodes,
			  const uint32_t num_free[EBB_MAX_NODES]);
uint64_t meter_wasted_usec(const struct meter_room *s, uint16_t host_node, usec_t now);

/* ---- cputime.c ----------------------------------------------------------- */

/* CPU times of the VM's threads.  0, 1 if some are new, -ENOENT, -EINVAL. */
int meter_report(const struct meter_room *s, usec_t now, const struct ebb_vm *vm,
		 const struct ebb_fact_cpu_times *f);

/* ---- within the room ----------------------------------------------------- */

/* Notes that the guest has misbehaved so many times. */
void meter_misdeed(struct ebb_misdeed *m, uint32_t count, usec_t now);

/* The room's own parts of a VM. */
static inline struct ebb_vm_charge *meter_own_charge(const struct ebb_vm *vm)
{
	return (struct ebb_vm_charge *)&vm->charge;
}

static inline struct ebb_vm_conduct *meter_own_conduct(const struct ebb_vm *vm)
{
	return (struct ebb_vm_conduct *)&vm->conduct;
}

#endif /* EBB_CORE_METER_H */
