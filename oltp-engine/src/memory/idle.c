// SPDX-License-Identifier: GPL-2.0-or-later
/* See idle.h. */
#include <math.h>
#include "idle.h"

/* When the clock stops in a pause that began at ran_ns: the first part of a pause always counts. */
static uint64_t still_ns(const struct idle *idle, uint64_t now_ns)
{
	uint64_t half_ms = idle->half_ms == IDLE_NEVER ? IDLE_HALF_MS : idle->half_ms;
	uint64_t until_ns = idle->ran_ns + half_ms * 1000000 / IDLE_AFTER_PART;

	return now_ns < until_ns ? now_ns : until_ns;
}

void idle_init(struct idle *idle, uint32_t half_ms, uint64_t activity, uint64_t now_ns)
{
	*idle = (struct idle){ .activity = activity, .look_ns = now_ns, .ran_ns = now_ns,
			       .half_ms = half_ms };
}

uint64_t idle_now(const struct idle *idle, uint64_t now_ns)
{
	return still_ns(idle, now_ns) - idle->left_out_ns;
}

double idle_expected(const struct idle *idle, uint64_t now_ns)
{
	double half_ns = 1e6 * idle->half_ms;

	if (idle->half_ms == IDLE_NEVER || now_ns <= idle->ran_ns)
		return 1;
	return sqrt(half_ns / (half_ns + 3 * (double)(now_ns - idle->ran_ns)));
}

uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns)
{
	if (activity != idle->activity || is_running) {
		/*
		 * The transactions that were seen now ran since the look before, when the pause was
		 * still on.
		 */
		idle->left_out_ns += idle->look_ns - still_ns(idle, idle->look_ns);
		idle->ran_ns = now_ns;
	}
	idle->activity = activity;
	idle->look_ns = now_ns;
	return idle_now(idle, now_ns);
}

bool idle_is_pause(const struct idle *idle, uint64_t now_ns, uint64_t ns)
{
	return now_ns > idle->ran_ns + ns;
}
