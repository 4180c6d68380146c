/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A cluster of hosts over weeks, in steps of 10 minutes: databases arrive, their VMs grow, hosts
 * run short, and VMs are moved ("failover") or deleted.  Where VMs go is asked of a decision, so
 * that several can be compared on the same databases ("Flexible resource allocation for relational
 * database-as-a-service", section 8.3).  Pure but for memory: the same options and decision give
 * the same result.
 *
 * Hosts are alike.  The cluster is empty at first.  Databases arrive at random (Poisson), so often
 * that those which live long fill it within three days.  The maxima of all VMs stay within `ratio`
 * of what all hosts have: a database that does not fit waits, and those after it with it.  So all
 * decisions meet the same databases in the same order.  In each step
 *   1. VMs whose life is over are deleted;
 *   2. demands change; each resource of a host that is exceeded is a violation, again in each step;
 *   3. if there was one, the decision moves VMs; each move of a VM is a failover, and takes effect
 *      at once.  It takes 30 s and the time to copy its disk (250 MiB/s) and its memory
 *      (1000 MiB/s).  This is disruption if its database is active: if its primary used more than
 *      5% of its CPUs in a step of the last hour, or is younger;
 *   4. databases arrive, and the decision gives hosts to their VMs.  One that it finds no hosts
 *      for is counted as refused and placed nevertheless, so that all decisions have the same VMs
 *      and room cannot be won by turning databases away: on the host whose scarcest resource is
 *      then least used, if possible in fault and upgrade domains that have none of its VMs;
 *   5. at times, where that is asked for, the decision may move VMs without a violation.
 */
#ifndef EBB_SIMULATE_PLACED_H
#define EBB_SIMULATE_PLACED_H

#include "simulate/placed-demand.h"

#define SIM_PLACE_HOST_VCPUS	64u
#define SIM_PLACE_FILL_DAYS	3u

/* A VM that is there. */
struct sim_place_vm {
	uint64_t id;			/* no other VM has it, before or after */
	uint64_t database;		/* the same for its replicas; never 0 */
	struct sim_place_database of;
	bool is_secondary;
	bool is_active;
	uint32_t born;			/* step */
	int32_t host;			/* -1 while it is being placed */
	double use[PLACE_N_RESOURCES];	/* in this step */
	double most[PLACE_N_RESOURCES];	/* since it was there */
};

enum sim_place_task { SIM_PLACE_NEW, SIM_PLACE_RESOLVE, SIM_PLACE_BALANCE };

struct sim_place_world;

/*
 * Changes `hosts` (of all VMs in their order, as they are now).  NEW: those that are -1, which may
 * stay so (refused); others stay.  RESOLVE, BALANCE: any, all VMs stay on a host.  -errno ends
 * the run.
 */
typedef int sim_place_decide(void *ctx, enum sim_place_task task,
			     const struct sim_place_world *w, int32_t *hosts);

struct sim_place_options {
	uint32_t num_hosts;		/* 1 to PLACE_HOSTS_MAX */
	uint32_t upgrade_domains, fault_domains; /* 1 to num_hosts */
	uint32_t days;			/* 1 to 366 */
	uint32_t balance_steps;		/* between two of BALANCE; 0: none */
	double ratio;			/* of over-subscription, above 0, at most 10 */
	uint64_t seed;			/* of the databases and their arrivals */
	const struct sim_place_traces *traces;
	sim_place_decide *decide;
	void *ctx;
};

/* Of one day, or of all. */
struct sim_place_counts {
	uint64_t violations;		/* a resource of a host exceeded in a step */
	uint64_t failovers;
	uint64_t failovers_new;		/* of VMs younger than a day */
	double disruption_s;		/* failovers of VMs of active databases */
	double failover_s;		/* all failovers */
	uint64_t admitted, refused, deleted; /* databases; refused ones are admitted, too */
	/* Means over the steps, as parts of what all hosts have. */
	double reserved;		/* maxima of all VMs */
	double used[PLACE_N_RESOURCES];
};

struct sim_place_result {
	struct sim_place_counts all;
	uint32_t num_days;
	struct sim_place_counts *days;
};

/* The cluster in a step, for decisions. */
struct sim_place_world {
	const struct sim_place_options *options;
	uint32_t step;
	struct place_host *hosts;
	double (*load)[PLACE_N_RESOURCES]; /* of each host: use of its VMs */
	uint32_t num_vms, max_vms;
	struct sim_place_vm *vms;
};

/*
 * -EINVAL: the options, or a decision that broke its rules; -ENOMEM; or what a decision returned.
 */
int sim_place_run(const struct sim_place_options *o, struct sim_place_result *ret);
void sim_place_result_finish(struct sim_place_result *r);

/* Steps since the beginning of the VM. */
uint32_t sim_place_age(const struct sim_place_world *w, const struct sim_place_vm *vm);
/* The most that it used in a step of the last day. */
void sim_place_peak(const struct sim_place_world *w, const struct sim_place_vm *vm,
		    double ret[PLACE_N_RESOURCES]);
bool sim_place_is_over(const struct sim_place_world *w, uint32_t host);
/* How long a failover takes, of MiB in use. */
double sim_place_failover_s(double disk, double memory);

#endif
