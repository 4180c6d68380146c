// SPDX-License-Identifier: GPL-2.0-or-later
/* See idle.h. */
#include "idle.h"

static uint64_t counted(const struct idle *idle, uint64_t ns)
{
	return idle->part == IDLE_NOTHING ? 0 : ns / idle->part;
}

void idle_init(struct idle *idle, uint32_t part, uint64_t activity, uint64_t now_ns)
{
	*idle = (struct idle){ .activity = activity, .look_ns = now_ns, .ran_ns = now_ns,
			       .part = part };
}

uint64_t idle_now(const struct idle *idle, uint64_t now_ns)
{
	uint64_t until_ns = idle->ran_ns + IDLE_AFTER_NS;

	if (now_ns > until_ns)
		now_ns = until_ns + counted(idle, now_ns - until_ns);
	return now_ns - idle->left_out_ns;
}

uint64_t idle_look(struct idle *idle, uint64_t activity, bool is_running, uint64_t now_ns)
{
	if (activity != idle->activity || is_running) {
		/* What has run did so since the look before this one. */
		if (idle->look_ns > idle->ran_ns + IDLE_AFTER_NS) {
			const uint64_t ns = idle->look_ns - idle->ran_ns - IDLE_AFTER_NS;

			idle->left_out_ns += ns - counted(idle, ns);
		}
		idle->ran_ns = now_ns;
	}
	idle->activity = activity;
	idle->look_ns = now_ns;
	return idle_now(idle, now_ns);
}
