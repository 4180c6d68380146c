/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the VM as a whole is offered and must give back, per node.  Shared by
 * libebb (without a monitor this is what the application sees) and
 * ebb-monitord (which divides it).  Private to the two.
 *
 * Two sides count the CPUs of a VM: the host (held, in the limits) and the
 * guest's driver (present, from the CPU list).  They disagree while a CPU is on
 * its way.  Only what both agree on is an offer or a demand:
 *
 *   V1  offer  = limit - max(held, present), at least 0
 *   V2  demand = min(held, present) - limit, at least 0
 *
 * so a CPU that has just been given back (or lent) is not demanded a second time, and one
 * that has just been added is not offered again.
 *
 * Memory is counted by the driver alone, but in two calls: held comes with the
 * limits, leased and draining (has left its lease, but can not be unplugged yet)
 * after them.  Draining memory leaves by itself, so no application is asked for it, but it still
 * takes room:
 *
 *   V3  mem_offer  = limit - max(held, leased + draining), at least 0, whole blocks, rounded down
 *   V4  mem_demand = min(held, leased) - limit, at least 0, whole blocks, rounded up
 */
#ifndef EBB_VIEW_H
#define EBB_VIEW_H

#include "dev.h"

/* No VM has more on a node; whatever the host says, loops over CPUs end. */
#define EBB_VIEW_MAX_CPUS	65536u

/* The same for memory; and sums of a few such fit. */
#define EBB_VIEW_MAX_BYTES	(1ull << 52)

/* Of a block, by ebb_ioctl.h. */
#define EBB_VIEW_BLOCK_BYTES_MIN	(2u << 20)
#define EBB_VIEW_BLOCK_BYTES_MAX	(1u << 30)

struct ebb_view_node {
	uint32_t node;
	uint32_t held;		/* as the host counts */
	uint32_t limit;
	uint32_t present;	/* as the driver counts: not forced, leaving or lent */
	uint32_t hotplugged;	/* of these, not of the startup set */
	uint32_t owned;		/* of these, owned by this open */
	uint32_t offer;
	uint32_t demand;
	uint32_t tier;		/* VIRTIO_EBB_TIER_* */
	uint64_t deadline_ns;	/* of the demand; 0: none */
	uint32_t mem_block_bytes; /* 0: no pool, and all below is 0 */
	uint64_t mem_held_bytes;
	uint64_t mem_limit_bytes;
	uint64_t mem_leased_bytes; /* of all owners */
	uint64_t mem_draining_bytes;
	uint64_t mem_offer_bytes;
	uint64_t mem_demand_bytes;
	uint64_t mem_deadline_ns;
	uint64_t mem_cutoff;	/* ns of time saved per second and MiB; 0: none */
};

struct ebb_view {
	uint64_t generation;	/* of the limits; 0: the host has not said anything */
	uint32_t num_nodes;
	uint32_t vom_seq;	/* the host wants the histogram of that number; 0: none */
	uint32_t mem_promise_mib; /* of the VM; 0: nothing is promised */
	struct ebb_view_node nodes[EBB_MAX_NODES];
};

/* Pure, in this order: init, count_cpu for each CPU, set_pool for each pool, finish. */
void ebb_view_init(struct ebb_view *view, const struct ebb_limits *limits);
void ebb_view_count_cpu(struct ebb_view *view, const struct ebb_cpu *cpu);
void ebb_view_set_pool(struct ebb_view *view, const struct ebb_pool_info *pool);
void ebb_view_finish(struct ebb_view *view);

/*
 * Asks the device; never waits.  Also what takes POLLIN off the device.
 * -EIO: the driver's answer makes no sense.
 */
int ebb_view_read(const struct ebb_dev_ops *ops, void *dev, struct ebb_view *ret);

#endif /* EBB_VIEW_H */
