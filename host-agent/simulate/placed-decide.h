/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Placers: decisions of a simulated cluster (placed.h), made by place/place.h.
 *
 * Those that search: a new VM goes to the host with the best score, and annealing finds what to
 * move away from hosts that are over their capacity; only VMs on these hosts may move then.  They
 * differ in whether expected failovers count (prv; plb: not), whether moves are weighted (mc), and
 * whether a new VM counts with what it may grow to (aru): "Flexible resource allocation for
 * relational database-as-a-service", figure 14.
 * The others place by first, best or worst fit.  From a host that is over its capacity they take
 * the VM with the least use of the short resource that ends the violation (if none does, the VM
 * with the most use, and then another one), and place it in the same way.
 *
 * Placers know the future only from earlier VMs: SIM_PLACE_EARLIER_VMS of each class, whose CPU use
 * is from rows of the traces that no simulated VM has.  The constants of the move cost are
 * calibrated on made-up failovers of these.  The oracle takes what the VMs will use from the
 * simulation itself (placed-oracle.h): no estimate from earlier VMs can be better.
 */
#ifndef EBB_SIMULATE_PLACED_DECIDE_H
#define EBB_SIMULATE_PLACED_DECIDE_H

#include "simulate/placed.h"

#define SIM_PLACE_EARLIER_VMS	100u

enum sim_place_search { SIM_PLACE_ANNEAL, SIM_PLACE_FIRST_FIT, SIM_PLACE_BEST_FIT,
			SIM_PLACE_WORST_FIT };

struct sim_place_placer {
	const char *name;
	enum sim_place_search search;
	bool look_ahead, move_costs, reserve_new;
	bool is_oracle;			/* it looks ahead and is never wrong */
};

/* NULL behind the last one. */
const struct sim_place_placer *sim_place_placer_at(uint32_t i);
const struct sim_place_placer *sim_place_placer_find(const char *name);

/* What earlier VMs have shown; several deciders may use it. */
struct sim_place_earlier;

/*
 * window_days: how far ahead a violation counts (1 to 28), in slots of an hour.  -ENOMEM; -EINVAL,
 * -ENODATA: the traces show too little.
 */
int sim_place_earlier_create(const struct sim_place_traces *traces, uint32_t window_days,
			     uint64_t seed, struct sim_place_earlier **ret);
void sim_place_earlier_destroy(struct sim_place_earlier *e);

/* ctx of sim_place_decision. */
struct sim_place_decider {
	const struct sim_place_placer *placer;
	const struct sim_place_earlier *earlier;
	uint64_t seed;			/* of samples and searches */
	uint32_t samples;		/* of the Monte Carlo simulation */
	uint32_t candidates;		/* that a search looks at */
};

sim_place_decide sim_place_decision;

#endif
