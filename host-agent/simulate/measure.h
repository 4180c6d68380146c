/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a simulation.  Everything is constant between two calls, so sums are exact: the
 * caller says first that time has passed, then what has changed.
 */
#ifndef EBB_SIMULATE_MEASURE_H
#define EBB_SIMULATE_MEASURE_H

#include "simulate/simulate.h"

struct sim_node_now {
	uint16_t host_node;
	uint16_t held, wanted;		/* wanted: no more than it may have, 0 while it can not */
	uint32_t num_missing;		/* wanted and not held */
	usec_t *since;			/* num_missing times, rising; room for all it may have */
};

struct sim_vm_now {
	enum ebb_class class;
	usec_t counted_at;		/* the sums of the VM are up to this time */
	bool is_running;
	uint16_t num_nodes;
	struct sim_node_now nodes[EBB_MAX_GUEST_NODES];
};

struct sim_measure {
	struct sim_result *result;
	usec_t now, length;
	uint32_t num_slots, num_vms;
	uint32_t capacity[EBB_MAX_NODES];
	/* Sums over all VMs as they are now. */
	uint32_t held[EBB_MAX_NODES], missing[EBB_MAX_NODES];
	uint32_t by_class[EBB_CLASS_MAX];
	struct sim_vm_now *vms;		/* as in the trace */
};

/* -ENOMEM; finish() in any case. */
int sim_measure_init(struct sim_measure *m, struct sim_result *result,
		     const struct sim_trace *trace, uint32_t num_slots);
void sim_measure_finish(struct sim_measure *m);

/* Nothing has changed since the last call. */
void sim_measure_pass(struct sim_measure *m, usec_t now);

/* From now on a VM holds and wants these CPUs on a guest node.  -ENOMEM. */
int sim_measure_node(struct sim_measure *m, uint32_t vm, uint16_t g, uint16_t held,
		     uint16_t wanted);
void sim_measure_running(struct sim_measure *m, uint32_t vm, bool is_running);

/* The end: what is still missing is told as such. */
void sim_measure_end(struct sim_measure *m);

#endif
