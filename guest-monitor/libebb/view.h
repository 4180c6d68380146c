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
 * so a CPU that has just been given back is not demanded a second time, and one
 * that has just been added is not offered again.
 */
#ifndef EBB_VIEW_H
#define EBB_VIEW_H

#include "dev.h"

/* No VM has more on a node; whatever the host says, loops over CPUs end. */
#define EBB_VIEW_MAX_CPUS	65536u

struct ebb_view_node {
	uint32_t node;
	uint32_t held;		/* as the host counts */
	uint32_t limit;
	uint32_t present;	/* as the driver counts: neither forced nor leaving */
	uint32_t hotplugged;	/* of these, not of the startup set */
	uint32_t owned;		/* of these, owned by this open */
	uint32_t offer;
	uint32_t demand;
	uint64_t deadline_ns;	/* of the demand; 0: none */
};

struct ebb_view {
	uint64_t generation;	/* of the limits; 0: the host has not said anything */
	uint32_t num_nodes;
	struct ebb_view_node nodes[EBB_MAX_NODES];
};

/* Pure, in this order: init, count_cpu for each CPU, finish. */
void ebb_view_init(struct ebb_view *view, const struct ebb_limits *limits);
void ebb_view_count_cpu(struct ebb_view *view, const struct ebb_cpu *cpu);
void ebb_view_finish(struct ebb_view *view);

/*
 * Asks the device; never waits.  Also what takes POLLIN off the device.
 * -EIO: the driver's answer makes no sense.
 */
int ebb_view_read(const struct ebb_dev_ops *ops, void *dev, struct ebb_view *ret);

#endif /* EBB_VIEW_H */
