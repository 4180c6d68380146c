/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A policy is a pure function from a snapshot of the host (the view) to
 * the number of CPUs and of blocks of memory that each VM should have on each of
 * its nodes (the plan).
 *
 * A policy is one file that exports one const struct.  It owns no memory, does
 * no I/O and reads no clock.  Its plan is clamped by the core (arbiter.h), so
 * a bad policy makes a slow or unfair host, never an unsafe one.  The plan is
 * a goal: the core publishes limits that walk towards it as cores come free.
 *
 * Counting.  The capacity of a node is its number of cores, so that every CPU
 * within the limits gets a core of its own; with the option count_threads, or
 * where the plan says so (use_threads), it is its number of hardware threads.
 * Floors, ceilings and targets count CPUs, those of memory blocks of EBB_BLOCK_BYTES.
 */
#ifndef EBB_POLICY_H
#define EBB_POLICY_H

#include <stddef.h>

#include "model/types.h"

#define EBB_POLICY_ABI	5u

struct ebb_view_node {
	uint32_t capacity;		/* CPUs that all VMs together may have here */
	uint32_t num_cores;
	uint32_t num_threads;
	uint32_t mem_capacity;		/* blocks that all VMs together may have here */
	/* Blocks: more in use than the threshold starts a brokering, back to the target. */
	uint32_t mem_threshold, mem_target;
};

/* Pool memory of a guest node, in blocks. */
struct ebb_view_mem {
	uint32_t floor;			/* the target is never below; may be more than is used */
	uint32_t ceiling;		/* the target is never above; 0: the VM has no pool here */
	uint32_t used;			/* what the VM holds or may plug without asking */
	uint32_t target;		/* of the last plan; 0 before the VM's first */
	uint32_t held;			/* plugged now */
	/*
	 * What the memory that it holds here is worth, by rising value; together the buckets are
	 * as large as what it holds.  As the guest says, or a guess if it never has; none before
	 * any guest was asked.  A guest may lie; core/broker/vom.c says how that is bounded.
	 */
	uint32_t num_buckets;
	const struct ebb_vom_bucket *buckets;
	usec_t vom_at;			/* when it said so; 0: it never has */
};

struct ebb_view_vm_node {
	uint16_t host_node;		/* index into ebb_view.nodes */
	uint16_t floor;			/* startup set; the target is never below */
	uint16_t ceiling;		/* the target is never above */
	uint16_t reserved;		/* CPUs it gets whenever it asks; floor to ceiling */
	uint16_t used;			/* startup set and every other vCPU that has a core */
	uint16_t wanted;		/* floor to ceiling: CPUs it uses, and those it asked for in
					 * the last EBB_WANT_USEC but its limit did not allow */
	uint16_t target;		/* of the last plan; 0 before the VM's first */
	struct ebb_view_mem mem;
};

struct ebb_view_vm {
	uint64_t order;			/* smaller: arrived earlier; unique */
	enum ebb_class class;
	uint16_t priority;
	uint32_t weight;
	uint32_t mem_weight;		/* 0: it has no pool anywhere */
	bool has_driver;		/* no: it can take nothing beyond its floor now */
	uint16_t num_nodes;
	struct ebb_view_vm_node nodes[EBB_MAX_GUEST_NODES];
};

/* For how long a request that was refused because of the limit counts as wanted. */
#define EBB_WANT_USEC	(10 * EBB_USEC_PER_SEC)

/* Immutable.  Only running VMs whose floors fit the host are listed. */
struct ebb_view {
	usec_t now;
	usec_t cooldown;		/* least time between two brokerings of memory */
	/*
	 * When guests were last asked what memory is worth (ebb_plan.asks_vom), 0: never.  And
	 * whether answers may still come; then the policy decides again when all have come, or
	 * when the time for them is over.
	 */
	usec_t vom_asked_at;
	bool vom_is_open;
	uint16_t num_nodes;
	struct ebb_view_node nodes[EBB_MAX_NODES];
	uint32_t num_vms;
	const struct ebb_view_vm *vms;	/* by order */
};

/* targets[v]: CPUs (nodes) and blocks (mem) of each guest node of view->vms[v]; zeroed before. */
struct ebb_plan_vm {
	uint16_t nodes[EBB_MAX_GUEST_NODES];
	uint32_t mem[EBB_MAX_GUEST_NODES];
	/* Memory worth less is to go first: ns per second and MiB; 0: no such bound. */
	uint64_t mem_cutoff[EBB_MAX_GUEST_NODES];
};

struct ebb_plan {
	struct ebb_plan_vm *targets;	/* view->num_vms entries */
	/*
	 * By node of the host, false at first: targets there count hardware threads.  As long as
	 * CPUs of two VMs are on one core, no further thread of that core is given out.
	 */
	bool use_threads[EBB_MAX_NODES];
	/*
	 * The policy wants to know what memory is worth: the core asks all guests that can tell, at
	 * most once in a cool-down, and has the policy decide again when they have answered.
	 */
	bool asks_vom;
};

/* One half of a policy: CPUs, or memory.  It fills its half of the plan. */
struct ebb_policy_half {
	const char *name;
	size_t state_size;	/* bytes; with the other half at most EBB_POLICY_STATE_MAX */
	int (*decide)(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan);
};

struct ebb_policy_ops {
	uint32_t abi;			/* EBB_POLICY_ABI, else refused */
	uint32_t size;			/* sizeof(*this); fields are only ever added at the end */
	const char *name;		/* as in the configuration and the CLI */
	size_t state_size;		/* bytes; the core provides them zeroed, 8-byte aligned */
	/*
	 * Both halves at once; NULL: cpus decides, and then mem, each with a state of its own.  On
	 * -errno the last plan stays in force.  st is the policy's own state, at most
	 * EBB_POLICY_STATE_MAX bytes.
	 */
	int (*decide)(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan);
	/*
	 * Not 0: the policy depends on how much memory VMs hold.  It decides again when that has
	 * changed, but not within so many microseconds of its last decision; and once a second
	 * while a node of the host is above its threshold.  0: it does not depend on that.
	 */
	usec_t mem_review_usec;
	const struct ebb_policy_half *cpus, *mem; /* where decide is NULL */
};

#define EBB_POLICY_STATE_MAX	65536u

/* Whether the core can use it: abi, size, name, decide or both halves, state_size. */
bool ebb_policy_usable(const struct ebb_policy_ops *ops);

/* Calls decide(), or both halves; returns 0 or -errno as they do. */
int ebb_policy_decide(const struct ebb_policy_ops *ops, void *st, const struct ebb_view *view,
		      struct ebb_plan *ret_plan);

/*
 * Policies with a name of one word by index, NULL beyond the last.  Policies by name, NULL if there
 * is none: one word, or CPUS+MEMORY ("spot+vom"), where CPUS is fair, strict, isolate or spot, and
 * MEMORY is fair, strict, vom, equal, proportional or balloon.
 */
const struct ebb_policy_ops *ebb_policy_at(size_t i);
const struct ebb_policy_ops *ebb_policy_find(const char *name);

/*
 * Every VM gets its floor; what is left is divided so that CPUs per weight are
 * as equal as floors, ceilings and node capacities allow.  The same for memory,
 * each node of the host by itself, with the weights for memory.
 */
extern const struct ebb_policy_ops ebb_policy_fair;

/*
 * VMs share nothing: every VM gets its floor, then, in order of arrival, its
 * ceiling, as long as the host has CPUs and memory.  No VM gets what belongs to
 * another, used or not.
 */
extern const struct ebb_policy_ops ebb_policy_strict;

/*
 * One VM has all sockets (nodes of the host).  When more VMs come, each gets
 * sockets of its own, with their hyperthreads, as far as the numbers allow.  If
 * there are more VMs than sockets, those on one socket share it as under the fair
 * policy.
 * Source: PVLDB 13(12), section 4.3.
 */
extern const struct ebb_policy_ops ebb_policy_isolate;

/*
 * VMs of class reserved get the CPUs that they ask for, up to their reservation; the others get the
 * rest, by priority, then by weight.  The newest and cheapest VMs lose CPUs first.  CPUs that are
 * reserved but not asked for go to VMs that can use them.
 */
extern const struct ebb_policy_ops ebb_policy_spot;

/*
 * These broker memory (policies/mem/broker.h) and divide CPUs as the fair policy does.  When more
 * of a node is in use than its threshold, memory is taken back to the target:
 *
 *   vom		the memory that is worth least to its VM (STS x lambda x weight)
 *   equal		the same amount from every VM
 *   proportional	in proportion to what each VM holds
 *   balloon		every VM is asked for all of it, until some have given enough
 *
 * Source: "Flexible resource allocation for relational database-as-a-service", sections 4 and 8.1.
 */
extern const struct ebb_policy_ops ebb_policy_vom;
extern const struct ebb_policy_ops ebb_policy_equal;
extern const struct ebb_policy_ops ebb_policy_proportional;
extern const struct ebb_policy_ops ebb_policy_balloon;

#endif /* EBB_POLICY_H */
