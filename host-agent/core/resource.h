/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The resources that are divided among VMs: one row each.  Admission, goals and limits (plan.c) are
 * computed in the same way for every row.
 */
#ifndef EBB_CORE_RESOURCE_H
#define EBB_CORE_RESOURCE_H

#include "core/arbiter.h"
#include "core/vm.h"

struct ebb_state;

enum ebb_resource { EBB_CPUS, EBB_MEM, EBB_RESOURCES };

struct core_resource {
	/*
	 * For messages: the unit; how many units one counts for; what the floor is called; and the
	 * key of the SLA that sets it.
	 */
	const char *unit;
	unsigned scale;
	const char *floor_name, *key;
	/*
	 * may_shrink: the capacity may shrink while VMs run; VMs that were admitted stay admitted.
	 * has_all_vms: VMs that are not admitted count, too, since what they hold is not free.
	 */
	bool may_shrink, has_all_vms;

	/* Capacity of a node of the host: that floors must fit; and that the arbiter divides. */
	uint32_t (*capacity)(const struct ebb_state *s, uint16_t h);
	uint32_t (*divided)(const struct ebb_state *s, uint16_t h);
	/* What a guest node of a VM is guaranteed. */
	uint32_t (*floor)(const struct ebb_vm *vm, uint16_t g);
	/* The amount that the guest node holds now, in the units of the arbiter. */
	uint32_t (*held)(const struct ebb_vm *vm, uint16_t g, const struct ebb_arbiter_entry *e);
	/* Fills in the arbiter's entry for the guest node, except `wanted`. */
	void (*entry)(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		      struct ebb_arbiter_entry *ret);
	/* What a plan says of the guest node, in the units of the arbiter. */
	uint32_t (*planned)(const struct ebb_state *s, uint16_t h, const struct ebb_plan_vm *plan,
			    uint16_t g);
	/*
	 * Takes over the target of the entry.  plan: the VM's, NULL if there is none.  Returns 1 if
	 * the wish had to be clamped and the arbiter could not see that, else 0.
	 */
	uint32_t (*set_target)(struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
			       const struct ebb_plan_vm *plan, const struct ebb_arbiter_entry *e);
	void (*set_limit)(struct ebb_state *s, usec_t now, const struct ebb_vm *vm, uint16_t g,
			  const struct ebb_arbiter_entry *e);
};

extern const struct core_resource core_resources[EBB_RESOURCES];

/* False once the device has turned out not to have the pool that the SLA speaks of. */
bool core_may_have_pool(const struct ebb_vm *vm, uint16_t g);

#endif /* EBB_CORE_RESOURCE_H */
