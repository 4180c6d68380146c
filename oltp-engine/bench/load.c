// SPDX-License-Identifier: GPL-2.0-or-later
/* See load.h. */
#include <errno.h>

#include "load.h"

typedef void event_fn(void *ctx, const struct load_event *event);

int load_open(struct load *load, const struct bench_options *options, bool takes_rates,
	      void *state)
{
	*load = (struct load){ .options = options, .state = state, .capacity = 1 };
	return takes_rates || options->rates.n ? oltp_arrivals_create(&load->arrivals) : 0;
}

void load_close(struct load *load)
{
	oltp_arrivals_destroy(load->arrivals);
	load->arrivals = NULL;
}

int load_set_rate(struct load *load, double per_second, uint64_t now_ns)
{
	if (load->options->rates.n)
		return -EBUSY;
	if (!load->arrivals)
		return -EOPNOTSUPP;
	return oltp_arrivals_set_rate(load->arrivals, per_second, now_ns);
}

static uint64_t seconds_ns(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

static uint64_t committed(const struct oltp_pool *pool)
{
	struct oltp_totals totals;

	oltp_pool_totals(pool, &totals);
	return totals.committed;
}

/* Returns when the calibration goes on; 0: it is through, or there is none. */
static uint64_t calibrate(struct load *load, const struct oltp_pool *pool, uint64_t start_ns,
			  uint64_t now_ns, event_fn *on_event, void *ctx)
{
	uint64_t length_ns = seconds_ns(load->options->calibrate_seconds);

	if (load->origin_ns)
		return 0;
	if (!length_ns) {
		load->origin_ns = start_ns;
		return 0;
	}
	if (!load->half_ns) {
		if (now_ns < start_ns + length_ns / 2)
			return start_ns + length_ns / 2;
		load->half_ns = now_ns;
		load->half_committed = committed(pool);
	}
	if (now_ns < start_ns + length_ns)
		return start_ns + length_ns;
	load->origin_ns = now_ns;
	load->capacity = (double)(committed(pool) - load->half_committed) * 1e9 /
			 (double)(now_ns - load->half_ns);
	on_event(ctx, &(struct load_event){ "calibrated", load->capacity });
	return 0;
}

/* The step that is due, NULL: none is; *ret_at_ns: when it, or the next, is. */
static const struct bench_step *due(const struct bench_steps *steps, uint32_t next,
				    uint64_t origin_ns, uint64_t now_ns, uint64_t *ret_at_ns)
{
	*ret_at_ns = UINT64_MAX;
	if (next >= steps->n)
		return NULL;
	*ret_at_ns = origin_ns + seconds_ns(steps->steps[next].t_s);
	return *ret_at_ns <= now_ns ? &steps->steps[next] : NULL;
}

/* Ahead of time: a rate that is set late would take back what has arrived and was perhaps run. */
static int plan_rates(struct load *load)
{
	const struct bench_steps *rates = &load->options->rates;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < rates->n; i++)
		rc = oltp_arrivals_set_rate(load->arrivals, rates->steps[i].value * load->capacity,
					    load->origin_ns + seconds_ns(rates->steps[i].t_s));
	load->is_planned = true;
	return rc;
}

/* All steps of its schedule that are due; *ret_at_ns: when the next one is. */
static int turn_knob(struct load *load, enum bench_knob knob, uint64_t now_ns, event_fn *on_event,
		     void *ctx, uint64_t *ret_at_ns)
{
	const struct bench_steps *steps = &load->options->schedules[knob];
	const struct bench_step *step;

	while ((step = due(steps, load->next_step[knob], load->origin_ns, now_ns, ret_at_ns))) {
		int rc = load->options->workload->ops->knob_set(load->state, knob, step->value);

		if (rc)
			return rc;
		load->next_step[knob]++;
		on_event(ctx, &(struct load_event){ bench_knob_name(knob), step->value });
	}
	return 0;
}

int load_follow(struct load *load, struct oltp_pool *pool, uint64_t start_ns, uint64_t now_ns,
		event_fn *on_event, void *ctx, uint64_t *ret_next_ns)
{
	const struct bench_options *o = load->options;
	uint64_t next_ns = calibrate(load, pool, start_ns, now_ns, on_event, ctx);
	const struct bench_step *step;
	uint64_t step_ns;
	int rc;

	if (next_ns) {
		*ret_next_ns = next_ns;
		return 0;
	}
	rc = load->is_planned ? 0 : plan_rates(load);
	if (rc)
		return rc;
	while ((step = due(&o->rates, load->next_rate, load->origin_ns, now_ns, &step_ns))) {
		load->next_rate++;
		on_event(ctx, &(struct load_event){ "rate", step->value * load->capacity });
	}
	*ret_next_ns = step_ns;
	for (enum bench_knob knob = 0; knob < BENCH_KNOBS; knob++) {
		rc = turn_knob(load, knob, now_ns, on_event, ctx, &step_ns);
		if (rc)
			return rc;
		*ret_next_ns = step_ns < *ret_next_ns ? step_ns : *ret_next_ns;
	}
	return 0;
}
