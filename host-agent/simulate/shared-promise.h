/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Promises of CPU time to some of the simulated VMs that share cores: admission and the parts of
 * each core are decisions of core/reserve/admit.h, the meter is core/promise/reckon.h.
 */
#ifndef EBB_SIMULATE_SHARED_PROMISE_H
#define EBB_SIMULATE_SHARED_PROMISE_H

#include "core/promise/reckon.h"
#include "core/reserve/admit.h"
#include "model/shortage.h"
#include "simulate/shared.h"

struct sim_promises {
	const struct ebb_share *share;	/* who is where */
	uint16_t each;			/* thousandths of a core, of each vCPU with a promise */
	bool is_kept;			/* false: metered only; the vCPUs of a core are equal */
	uint16_t *rest;			/* by core: the part of all vCPUs without a promise */
	uint16_t *keep;			/* by vCPU: its part of its core; 0: it has no promise */
	double *ran, *ready;		/* by vCPU: microseconds in the interval of the meter */
	struct promise_carry *carry;	/* by VM */
	bool *is_promised;		/* by VM */
	/* Scratch: of a core. */
	struct ebb_shortage_claim *claims;
	struct ebb_level_part *parts;
};

/* Promises as o says; nothing is promised yet.  -ENOMEM; sim_promises_finish() also after that. */
int sim_promises_init(struct sim_promises *p, const struct ebb_share *share,
		      const struct sim_shared_options *o);
void sim_promises_finish(struct sim_promises *p);

/* VM number m asks for a promise. */
bool sim_promises_wants(const struct sim_shared_options *o, uint32_t m);

/* All VMs have their first cores: counts made and refused promises in *ret. */
int sim_promises_admit(struct sim_promises *p, const struct sim_shared_options *o,
		       struct sim_shared_result *ret);

/* vCPUs have new cores. */
void sim_promises_divide(struct sim_promises *p);

/*
 * Of a vCPU that is to be served, beside num_rest on its core that are to be and have no promise:
 * its weight there.
 */
double sim_promises_weight(const struct sim_promises *p, uint32_t vcpu, uint32_t num_rest);

/* An interval of the meter is over: adds it to *ret. */
void sim_promises_judge(struct sim_promises *p, usec_t length, struct sim_shared_result *ret);

#endif
