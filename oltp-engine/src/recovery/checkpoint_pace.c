// SPDX-License-Identifier: GPL-2.0-or-later
/* See checkpoint_pace.h. */
#include "checkpoint_pace.h"

/* Parts of the log's growth: where the urgent line begins, and where the target line ends. */
#define URGENT_FROM	0.25
#define TARGET_TO	0.5

static double log_grown(const struct checkpoint_pace_facts *f)
{
	return (double)f->log_bytes / (double)f->log_bytes_max;
}

/* K1 */
static bool is_urgent(const struct checkpoint_pace_facts *f)
{
	double wanted = (log_grown(f) - URGENT_FROM) / (1 - URGENT_FROM);

	/* bytes_all may have been guessed too low. */
	return log_grown(f) >= 1 || (double)f->bytes < wanted * (double)f->bytes_all;
}

/* K2. *ret_ns: how long at most, if it does. */
static bool log_goes_first(const struct checkpoint_pace_facts *f, uint64_t *ret_ns)
{
	bool is_slow = f->usual_ns && f->group_ns > CHECKPOINT_PACE_SLOW_TIMES * f->usual_ns;
	uint64_t most_ns = is_slow ? CHECKPOINT_PACE_SLOW_NS : CHECKPOINT_PACE_GROUP_NS;

	*ret_ns = most_ns - f->held_ns;
	return (f->is_group_written || is_slow) && f->held_ns < most_ns;
}

static struct checkpoint_pace wait(enum checkpoint_pace_what what, uint64_t ns)
{
	return (struct checkpoint_pace){
		what, ns < CHECKPOINT_PACE_LOOK_NS ? ns : CHECKPOINT_PACE_LOOK_NS,
	};
}

/* K3: how much may be written until now. */
static double bytes_allowed(const struct checkpoint_pace_facts *f, double bytes_per_s)
{
	double by_time = bytes_per_s * (double)f->since_ns / 1e9;
	double by_log = log_grown(f) / TARGET_TO * (double)f->bytes_all;

	return (f->bytes_per_s || by_time > by_log ? by_time : by_log) +
	       (double)CHECKPOINT_PACE_AHEAD_BYTES;
}

struct checkpoint_pace checkpoint_pace(const struct checkpoint_pace_facts *f)
{
	double bytes_per_s = (double)(f->bytes_per_s ?: CHECKPOINT_PACE_BYTES_PER_S);
	uint64_t ns;

	if (is_urgent(f))
		return (struct checkpoint_pace){ CHECKPOINT_PACE_WRITE, 0 };
	if (f->bytes_per_s || !f->is_awaited) {
		double over = (double)f->bytes - bytes_allowed(f, bytes_per_s);

		/* Rounded up, so that the next look does not come a moment too early. */
		if (over > 0)
			return wait(CHECKPOINT_PACE_TIME, (uint64_t)(over / bytes_per_s * 1e9) + 1);
	}
	if (log_goes_first(f, &ns))
		return wait(CHECKPOINT_PACE_GROUP, ns);
	return (struct checkpoint_pace){ CHECKPOINT_PACE_WRITE, 0 };
}
