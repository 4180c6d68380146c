/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A host and VMs as a policy sees them, written down in short. */
#ifndef TESTS_UNIT_POLICY_BENCH_H
#define TESTS_UNIT_POLICY_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/policy.h"

#define BENCH_VMS	64

struct bench {
	const struct ebb_policy_ops *policy;
	struct ebb_view view;
	struct ebb_view_vm vms[BENCH_VMS];
	struct ebb_plan_vm targets[BENCH_VMS];
	bool use_threads[EBB_MAX_NODES];
	uint64_t state[EBB_POLICY_STATE_MAX / 8];
	uint64_t chance;
};

void bench_init(struct bench *b, const struct ebb_policy_ops *policy, uint16_t nodes,
		uint32_t cores, uint32_t threads_of_a_core);

/*
 * One more VM, class reserved.  nodes: "floor/reserved/ceiling/used/wanted" of each guest node, on
 * the host node of the same number; separated by blanks.
 */
struct ebb_view_vm *bench_vm(struct bench *b, uint16_t priority, uint32_t weight,
			     const char *nodes);

/* The same of class spot: "floor/ceiling/used/wanted". */
struct ebb_view_vm *bench_spot(struct bench *b, uint16_t priority, uint32_t weight,
			       const char *nodes);

/* The VM has left. */
void bench_remove(struct bench *b, uint32_t v);

/* Asks the policy, which must not fail. */
void bench_decide(struct bench *b);

/* VMs take and give what the plan says; what they want stays. */
void bench_follow(struct bench *b);

uint32_t bench_total(const struct bench *b, uint32_t v);

/* The most that a VM may have on a guest node. */
uint16_t bench_top(const struct bench *b, uint32_t v, uint16_t g);

/* A number below `below`, by chance. */
uint32_t bench_roll(struct bench *b, uint32_t below);

/* As many VMs as have floors that fit, at most 24, on up to 4 nodes. */
void bench_random(struct bench *b, const struct ebb_policy_ops *policy);

/* Targets are within floors, ceilings and capacities. */
void bench_check_bounds(const struct bench *b);

/*
 * Whether the policy, asked again when its plan is what is held, does not change its mind.  Where
 * VMs may use several nodes it seldom does, once, between nodes that are worth the same; it must
 * not do so twice.
 */
bool bench_settles(struct bench *b);

#define assert_plan(b, v, ...)                                                           \
	do {                                                                             \
		const uint16_t want_[] = { __VA_ARGS__ };                                \
		for (size_t i_ = 0; i_ < sizeof(want_) / sizeof(want_[0]); i_++)         \
			assert_int_equal((b)->targets[v].nodes[i_], want_[i_]);          \
	} while (0)

#endif /* TESTS_UNIT_POLICY_BENCH_H */
