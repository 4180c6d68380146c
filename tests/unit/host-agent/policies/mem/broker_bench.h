/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host whose memory is brokered, and VMs that hold it, as a policy sees them. */
#ifndef TESTS_UNIT_BROKER_BENCH_H
#define TESTS_UNIT_BROKER_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/policy.h"

#define BROKER_VMS	64
#define BROKER_BUCKETS	64

struct broker_bench {
	const struct ebb_policy_ops *policy;
	struct ebb_view view;
	struct ebb_view_vm vms[BROKER_VMS];
	struct ebb_vom_bucket buckets[BROKER_VMS][EBB_MAX_GUEST_NODES][BROKER_BUCKETS];
	struct ebb_plan_vm targets[BROKER_VMS];
	bool asks;
	uint64_t state[EBB_POLICY_STATE_MAX / 8];
	uint64_t chance;
};

/* Of 1000 blocks on each node; threshold 900, target 800; it is 1000 s. */
void broker_init(struct broker_bench *b, const struct ebb_policy_ops *policy, uint16_t nodes);

/* One more VM with one guest node on that node of the host; weight 100, ceiling 1000. */
struct ebb_view_mem *broker_vm(struct broker_bench *b, uint16_t host_node, uint32_t floor,
			       uint32_t held);

/* What the VM's memory on its first guest node is worth: pairs of value and blocks, 0 ends. */
void broker_tell(struct broker_bench *b, uint32_t v, const uint32_t *value_blocks);

/* Asks the policy; its targets become those of the last plan, and guests are asked if it asks. */
void broker_decide(struct broker_bench *b);

/* VMs give what they have to, and take so much of what they are offered. */
void broker_follow(struct broker_bench *b, uint32_t takes);

/* Targets are within floors, ceilings and the capacity. */
void broker_check(const struct broker_bench *b);

uint64_t broker_roll(struct broker_bench *b, uint64_t below);

#endif /* TESTS_UNIT_BROKER_BENCH_H */
