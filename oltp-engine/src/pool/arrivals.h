/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The shared queue of transactions that arrive by themselves. There is no list behind it: a rate
 * says when each one arrives, and a counter which of them have been taken, so that the queue costs
 * nothing however long it is, and no thread has to fill it.
 */
#ifndef OLTP_ARRIVALS_H
#define OLTP_ARRIVALS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct arrivals_rate;

/* One worker's memory of what it saw last. Zeroed at the start. */
struct arrivals_view {
	struct arrivals_rate *rate;	/* in which the last one arrived that was taken */
	uint64_t due;			/* transactions that had arrived at the last look */
};

/*
 * Takes the next transaction. False: none waits. *ret_arrival_ns: when it arrived
 * (CLOCK_MONOTONIC); 0: arrivals have not begun, and work is unlimited.
 */
bool arrivals_take(struct oltp_arrivals *arrivals, struct arrivals_view *view,
		   uint64_t *ret_arrival_ns);

/*
 * When the first transaction arrives that was not taken (CLOCK_MONOTONIC), by the rates that are
 * set; that may be in the past. UINT64_MAX: none will.
 */
uint64_t arrivals_next(struct oltp_arrivals *arrivals, const struct arrivals_view *view);

/*
 * Sleeps until the next transaction arrives, but for least_ns at least. Ends early if rates change,
 * or arrivals_wake() is called, after arrivals_calls() has returned call.
 */
uint32_t arrivals_calls(struct oltp_arrivals *arrivals);
void arrivals_wait(struct oltp_arrivals *arrivals, const struct arrivals_view *view, uint32_t call,
		   uint64_t least_ns);
void arrivals_wake(struct oltp_arrivals *arrivals);

struct arrivals_count {
	bool is_unlimited;
	uint64_t arrived;
	uint64_t waiting;
};

void arrivals_count(struct oltp_arrivals *arrivals, uint64_t now_ns,
		    struct arrivals_count *ret_count);

#endif
