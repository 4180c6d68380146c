/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the workers are given to do, over time: when transactions arrive, and what they are like
 * (how skewed, for one).
 *
 * With a calibration, work is unlimited for some seconds; the throughput in the second half of them
 * is the capacity of the CPUs of the start, and the rates of the schedule are parts of it.
 * Schedules count from the end of the calibration on.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

struct load {
	const struct bench_options *options;
	struct oltp_arrivals *arrivals;	/* NULL: work is unlimited all the time */
	void *state;			/* of the workload that the options name */
	uint32_t next_rate, next_step[BENCH_KNOBS];	/* of the schedules */
	double capacity;		/* by the calibration; 1 without */
	uint64_t origin_ns;		/* of the schedules; 0: they wait for the calibration */
	bool is_planned;		/* all rates have been set, those to come as well */
	/* Of the calibration: the begin of its second half, 0: that has not come. */
	uint64_t half_ns, half_committed;
};

/*
 * state: of the workload that the options name. takes_rates: load_set_rate may be called, whatever
 * the options say. Errors: -ENOMEM.
 */
int load_open(struct load *load, const struct bench_options *options, bool takes_rates,
	      void *state);

/* After the pool has gone. A zeroed one may be closed. */
void load_close(struct load *load);

struct load_event {
	const char *what;	/* "calibrated", "rate", or that of a knob */
	double value;
};

/*
 * From now on transactions arrive at this rate, in place of unlimited work or of the last rate.
 * What has arrived and was not run yet still is. Errors: -EBUSY (the options have a schedule of
 * rates), -EOPNOTSUPP (not opened for it), -EINVAL (not a rate), -ENOMEM.
 */
int load_set_rate(struct load *load, double per_second, uint64_t now_ns);

/*
 * Does what is due. on_event is told of what changed. Returns when it goes on (CLOCK_MONOTONIC), as
 * start_ns, when the run began; UINT64_MAX: not at all. Rates change when they are due, also if the
 * call comes late. Errors: -ENOMEM, those of knob_set.
 */
int load_follow(struct load *load, struct oltp_pool *pool, uint64_t start_ns, uint64_t now_ns,
		void (*on_event)(void *ctx, const struct load_event *event), void *ctx,
		uint64_t *ret_next_ns);

#endif
