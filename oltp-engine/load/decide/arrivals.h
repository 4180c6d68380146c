/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When requests arrive: at a rate that does not depend on the server (an open loop, "Downtime-Free
 * Live Migration", 4.1). The rate is constant between steps. Arrivals are evenly spaced, or a
 * Poisson process: exponential distances. Pure.
 */
#ifndef LOAD_ARRIVALS_H
#define LOAD_ARRIVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/random.h"

/* From at_ns (since the start) on, per_s arrivals per second; 0: none. */
struct load_step {
	uint64_t at_ns;
	double per_s;
};

struct load_arrivals {
	const struct load_step *steps;	/* in order of at_ns, the first at 0; the caller's */
	uint32_t n_steps;
	uint32_t step;			/* in which next_ns lies */
	bool is_poisson;
	struct random64 random;
	double next_ns;			/* since the start; HUGE_VAL: there is no more arrival */
	uint64_t start_ns;
};

/* start_ns: when the run begins, in the clock of load_arrivals_next. n_steps is at least 1. */
void load_arrivals_init(struct load_arrivals *arrivals, const struct load_step *steps,
			uint32_t n_steps, bool is_poisson, uint64_t seed, uint64_t start_ns);

/* When the next request arrives; UINT64_MAX: never. */
uint64_t load_arrivals_next(const struct load_arrivals *arrivals);

/* That request has arrived. */
void load_arrivals_take(struct load_arrivals *arrivals);

#endif
