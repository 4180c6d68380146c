/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VMs that share cores, in virtual time, with the decisions of core/shared/balance.h or the places
 * that they started with.
 *
 * Each VM is a database with some connections.  Each connection thinks (120 ms on average), then
 * its transaction runs on the vCPU of the VM with the shortest queue; the vCPUs on a core with
 * something to do get the same part of it, in steps of 4 ms.  So a VM that is busy on a core where
 * another one is answers later and does less.  All times are drawn from exponential distributions.
 *
 * Every fourth VM may ask for a promise of CPU time ("SQLVM", section 2.1).  It is metered in each
 * second.  Where promises are kept, a vCPU with one gets at least that part of its core as long as
 * it has something to do, and those without one divide what is left.
 *
 * Loads after "Flexible resource allocation for relational database-as-a-service", section 8.2:
 *   burst  VMs are lightly loaded (16 connections for 8 vCPUs); in each 20 minutes one of them,
 *          drawn at random, has four times the connections for 15 (figure 10)
 *   skew   half of the VMs are busy, and all of those run on half of the cores (figure 11)
 *   trace  each VM follows a row of a table of real or made-up demands
 */
#ifndef EBB_SIMULATE_SHARED_H
#define EBB_SIMULATE_SHARED_H

#include <stddef.h>

#include "core/shared/balance.h"
#include "model/record.h"
#include "util/err.h"

enum sim_shared_kind { SIM_SHARED_BURST, SIM_SHARED_SKEW, SIM_SHARED_TRACE };

/* Demands: percent of the CPUs of a VM, averaged over five minutes. */
struct sim_demand {
	uint32_t num_rows;		/* VMs */
	uint32_t num_columns;		/* times */
	uint8_t *percent;		/* row after row; 0 to 100 */
};

/*
 * A file with a row for each VM, of the same number of values from 0 to 100 with commas between
 * them; or of one VM, with one value per line; or a folder with such files (the traces of
 * PlanetLab come in both forms).  They may be compressed (gzip).  -errno with a text that names
 * file and line.
 */
int sim_demand_load(const char *path, struct sim_demand *ret, struct ebb_err *err);

/*
 * Made up, with the statistics of those traces: a mean of 11, most VMs below, some far above,
 * and values of a VM that change from one to the next, less so of busy ones.  -ENOMEM.
 */
int sim_demand_generate(uint64_t seed, uint32_t rows, uint32_t columns, struct sim_demand *ret);
void sim_demand_finish(struct sim_demand *d);

struct sim_shared_options {
	enum sim_shared_kind kind;
	uint16_t num_nodes, cores_per_node;
	uint32_t num_vms;		/* burst, skew: 2 to 64; trace: 2 to EBB_MAX_VMS */
	uint16_t vcpus;			/* of each; trace: half as many, so many, or twice */
	uint32_t seconds;
	uint64_t seed;
	bool is_static;			/* nobody moves after the start */
	uint32_t reserve_percent;	/* 0 to 100 of a core for each vCPU: what every fourth VM
					 * asks to be promised; 0: there are no promises */
	bool is_kept;			/* false: promises are metered, and nobody keeps them */
	struct ebb_share_config config;
	const struct sim_demand *demand; /* trace: rows are drawn */
	uint64_t (*clock)(void);	/* nanoseconds of CPU time, for decisions; or NULL */
};

struct sim_shared_result {
	/* In intervals of 15 s, after the first. */
	uint64_t num_intervals, num_hot_intervals;
	uint64_t num_hot;		/* cores that were used by 95% and more by several VMs */
	uint64_t committed;		/* of VMs that were busy: of all where no half is idle */
	double p50_ms, p95_ms, p99_ms;	/* of the same */
	uint64_t num_looks, num_moves, num_vm_moves, num_throttled;
	uint64_t num_early;		/* moves of a VM within a window and without another load */
	uint64_t cost_usec;		/* of the moves; vCPUs lost it */
	double moves_per_window;	/* of a VM */
	double look_median_usec, look_max_usec; /* CPU time of a decision; 0 without clock */
	uint32_t num_promised, num_refused; /* VMs */
	struct ebb_ledger promise;	/* of all VMs with a promise, in intervals of 1 s */
	double use;			/* of all cores, 0 to 1 */
	uint16_t num_cores;
	uint16_t heat[EBB_MAX_THREADS];	/* by core: used in the last half, thousandths */
};

/* -EINVAL, -ENOMEM. */
int sim_shared_run(const struct sim_shared_options *o, struct sim_shared_result *ret);

#endif
