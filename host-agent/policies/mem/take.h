/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Taking memory from VMs whatever it is worth. */
#ifndef EBB_POLICIES_TAKING_H
#define EBB_POLICIES_TAKING_H

#include "policies/mem/broker.h"

struct policy_taking {
	/* The VM gives blocks in proportion to this. */
	uint32_t (*weight)(const struct ebb_view_vm *vm, uint16_t h);
	/* Only from guest nodes that have no histogram. */
	bool silent_only;
};

/* As policy_broker_rule.take. */
void policy_take_by(struct policy_broker *b, const struct ebb_view *view, uint16_t h,
		    uint64_t blocks, struct policy_taking taking, struct ebb_plan *plan);

/* Blocks that the VM holds on a node of the host. */
uint32_t policy_held_on(const struct ebb_view_vm *vm, uint16_t h);

#endif /* EBB_POLICIES_TAKING_H */
