/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is divided among VMs: a row for each resource.  Admission, goals and limits (plan.c) are
 * made in the same way for all of them, one after the other.
 */
#ifndef EBB_CORE_RESOURCE_H
#define EBB_CORE_RESOURCE_H

#include "core/arbiter.h"
#include "core/vm.h"

struct ebb_state;

enum ebb_resource { EBB_CPUS, EBB_MEM, EBB_RESOURCES };

struct core_resource {
	/* For messages: the unit, how many of it one is, the floor, and its key in the SLA. */
	const char *unit;
	unsigned scale;
	const char *floor_name, *key;
	/*
	 * The capacity may shrink while VMs run: those that are in stay in.  And a VM that is not
	 * admitted takes part in what is divided, since what it holds is not free.
	 */
	bool may_shrink, has_all_vms;

	/* Of a node of the host, as it is for floors; and as the arbiter divides it. */
	uint32_t (*capacity)(const struct ebb_state *s, uint16_t h);
	uint32_t (*divided)(const struct ebb_state *s, uint16_t h);
	/* What a guest node of a VM always has. */
	uint32_t (*floor)(const struct ebb_vm *vm, uint16_t g);
	/* The guest node as the arbiter sees it, but for `wanted`. */
	void (*entry)(const struct ebb_state *s, const struct ebb_vm *vm, uint16_t g,
		      struct ebb_arbiter_entry *ret);
	/* What a plan says of the guest node, in the units of the arbiter. */
	uint32_t (*planned)(const struct ebb_state *s, uint16_t h, const struct ebb_plan_vm *plan,
			    uint16_t g);
	/*
	 * Takes over what the arbiter has made of the goal; plan: of the VM, NULL if there is none.
	 * Returns how many wishes had to be clamped that the arbiter does not know of.
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
