/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a policy is: a pure function from a snapshot of the host (the view) to
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
	uint32_t used;			/* what the VM holds, and what it may take by offers made */
	uint32_t target;		/* of the last plan; 0 before the VM's first */
	uint32_t held;			/* plugged now */
	/*
	 * What the guest says that what it holds here is worth, by rising value; as much as it
	 * holds in all.  A guess where it has never said so; none before anybody was asked.  Its
	 * guest may lie; what that can do is bounded: see core/broker/vom.c.
	 */
	uint32_t num_buckets;
	const struct ebb_vom_bucket *buckets;
	usec_t vom_at;			/* when it said so; 0: it never has */
};

struct ebb_view_vm_node {
	uint16_t host_node;		/* index into ebb_view.nodes */
	uint16_t floor;			/* startup set; the target is never below */
	uint16_t ceiling;		/* the target is never above */
	uint16_t reserved;		/* floor to ceiling: what it gets whenever it wants it */
	uint16_t used;			/* startup set and every other vCPU that has a core */
	uint16_t wanted;		/* floor to ceiling: what it uses, and what it asked for in
					 * the last EBB_WANT_USEC and its limit did not allow */
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

/* How long a request counts that was refused because of the limit. */
#define EBB_WANT_USEC	(10 * EBB_USEC_PER_SEC)

/* Immutable.  Only running VMs whose floors fit the host are listed. */
struct ebb_view {
	usec_t now;
	usec_t cooldown;		/* least time between two brokerings of memory */
	/*
	 * When guests were last asked what memory is worth (ebb_plan.asks_vom), 0: never; and
	 * whether answers may still come: then it is decided again when no more do.
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
	/* What it holds there and is worth less goes first: ns per second and MiB; 0: no word. */
	uint64_t mem_cutoff[EBB_MAX_GUEST_NODES];
};

struct ebb_plan {
	struct ebb_plan_vm *targets;	/* view->num_vms entries */
	/*
	 * By node of the host, false before: targets there count hardware threads.  Until CPUs
	 * that share a core with one of another VM have left, the core gives out no more.
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
	 * It goes by how much memory VMs hold: it decides again when that has changed, but not
	 * within so many microseconds of its last decision, and once a second while a node of the
	 * host is above its threshold.  0: what VMs hold makes no difference.
	 */
	usec_t mem_review_usec;
	const struct ebb_policy_half *cpus, *mem; /* where decide is NULL */
};

#define EBB_POLICY_STATE_MAX	65536u

/* Whether the core can use it: abi, size, name, decide or both halves, state_size. */
bool ebb_policy_usable(const struct ebb_policy_ops *ops);

/* Has it decide; what its decide() says. */
int ebb_policy_decide(const struct ebb_policy_ops *ops, void *st, const struct ebb_view *view,
		      struct ebb_plan *ret_plan);

/*
 * Policies of one word by index, NULL beyond the last; by name, NULL for an unknown one: of one
 * word, or CPUS+MEMORY, of CPUS fair, strict, isolate or spot, and of MEMORY fair, strict, vom,
 * equal, proportional or balloon ("spot+vom").
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
 * ceiling as far as the host goes.  What is assigned to one is lent to nobody.
 */
extern const struct ebb_policy_ops ebb_policy_strict;

/*
 * One VM has all sockets (nodes of the host); when more come, each gets sockets of
 * its own, as nearly as they fit, with the hyperthreads there.  VMs beyond the
 * number of sockets share one as under the fair policy.
 * Source: PVLDB 13(12), section 4.3.
 */
extern const struct ebb_policy_ops ebb_policy_isolate;

/*
 * Reserved VMs get what they want up to what is reserved for them, the others
 * what is left: by priority, then by weight; newest and cheapest lose it first.
 * What is reserved and not wanted is lent to whoever can use it.
 */
extern const struct ebb_policy_ops ebb_policy_spot;

/*
 * These broker memory (policies/mem/broker.h) and divide CPUs as the fair policy does.  When more
 * of a node is in use than its threshold, memory is taken back to the target:
 *
 *   vom		what is worth least to those who have it (STS x lambda x weight)
 *   equal		the same from everybody
 *   proportional	in proportion to what each holds
 *   balloon		all are pressed at once, until some have given enough
 *
 * Source: "Flexible resource allocation for relational database-as-a-service", sections 4 and 8.1.
 */
extern const struct ebb_policy_ops ebb_policy_vom;
extern const struct ebb_policy_ops ebb_policy_equal;
extern const struct ebb_policy_ops ebb_policy_proportional;
extern const struct ebb_policy_ops ebb_policy_balloon;

#endif /* EBB_POLICY_H */
