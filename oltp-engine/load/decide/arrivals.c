// SPDX-License-Identifier: GPL-2.0-or-later
/* See arrivals.h. */
#include <math.h>

#include "arrivals.h"

#define NS_PER_S	1e9

/*
 * Moves next_ns on until the rate, integrated over time, has grown by 1 (or by an exponentially
 * distributed number with that mean), so a step in between counts for its part of the distance.
 */
static void advance(struct load_arrivals *a)
{
	double left = a->is_poisson ? -log(1 - random64_unit(&a->random)) : 1;

	for (;;) {
		double per_ns = a->steps[a->step].per_s / NS_PER_S;
		bool is_last = a->step + 1 == a->n_steps;
		double end_ns = is_last ? HUGE_VAL : (double)a->steps[a->step + 1].at_ns;
		double room = per_ns > 0 ? (end_ns - a->next_ns) * per_ns : 0;

		if (per_ns > 0 && left <= room) {
			a->next_ns += left / per_ns;
			return;
		}
		left -= room;
		a->next_ns = end_ns;
		if (is_last)
			return;
		a->step++;
	}
}

void load_arrivals_init(struct load_arrivals *arrivals, const struct load_step *steps,
			uint32_t n_steps, bool is_poisson, uint64_t seed, uint64_t start_ns)
{
	*arrivals = (struct load_arrivals){
		.steps = steps,
		.n_steps = n_steps,
		.is_poisson = is_poisson,
		.random = { seed },
		.start_ns = start_ns,
	};
	advance(arrivals);
}

uint64_t load_arrivals_next(const struct load_arrivals *arrivals)
{
	if (isinf(arrivals->next_ns))
		return UINT64_MAX;
	return arrivals->start_ns + (uint64_t)arrivals->next_ns;
}

void load_arrivals_take(struct load_arrivals *arrivals)
{
	if (!isinf(arrivals->next_ns))
		advance(arrivals);
}
