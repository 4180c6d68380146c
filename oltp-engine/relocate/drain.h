/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many connections move from the source to the target in each second of a relocation
 * ("Downtime-Free Live Migration", 3.2). A function of state, facts and now; the caller picks idle
 * connections and tells or closes them.
 *
 * Four stages, by the part of all connections that has left the source:
 *
 *	stage	  moved		  base rate, % of all connections per second
 *	1	  less than 25%	  1
 *	2	  less than 50%	  1.5
 *	3	  less than 75%	  2
 *	4	  the rest	  4
 *
 * The base rate is rounded up to a whole connection. Our copy of the paper has lost its rates;
 * these move 200 connections in about 60 s while nothing throttles, and 10 connections in 10 s.
 * Then, from the response times of the last second:
 *
 *	target >= 3 times the source	rate x 0.25	stages 1 to 3 only
 *	target >= 2 times the source	rate x 0.5	stages 1 to 3 only
 *	source > target			rate x 2	all stages
 *
 * A cold cache makes the target slow, so it gets time to warm up; in the last stage records that
 * have moved would only be called back by the few connections left on the source. The fraction of
 * a connection is carried over to the next second. Once the limit of time is over all move at once
 * (5.1), and the caller closes the source.
 */
#ifndef RELOCATE_DRAIN_H
#define RELOCATE_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#define DRAIN_SPEED_PERCENT_MAX	10000u

struct drain_config {
	/* 100: the rates above; 400: four times as many per second. 1 to the maximum. */
	uint32_t speed_percent;
	/* Above 0: so many in each second instead, whatever response times say. */
	uint32_t fixed_per_s;
	/* From the start; 0: all move in the first second. */
	uint64_t limit_ns;
};

struct drain {
	uint64_t start_ns;
	uint64_t next_ns;	/* the next second begins; before it nothing moves */
	uint32_t total;		/* connections at the start, or the most ever seen */
	uint32_t percent;	/* of the base rate, when drain_step moved some last */
	uint32_t carried;	/* left over, in ten-thousandths of a connection */
};

/*
 * Requests of one node in the last second. A request that is still unanswered at its end counts
 * with its age, so a node that answers nothing is slow rather than unknown.
 */
struct drain_times {
	uint64_t requests;	/* 0: nothing is known of this second */
	uint64_t total_ns;	/* sum of their response times */
};

struct drain_facts {
	uint32_t left;		/* connections on the source */
	uint32_t leaving;	/* those of them that were told to move and have not yet */
	struct drain_times source, target;
};

void drain_start(struct drain *drain, uint32_t connections, uint64_t now_ns);

/*
 * To be called once per second, or more often. Returns how many more connections are to be told to
 * move, at most left - leaving. Seconds that were missed are not made up for: their response times
 * are unknown. Once the limit is over: all that are left, those that are leaving included; these
 * are to be closed.
 */
uint32_t drain_step(struct drain *drain, const struct drain_config *config,
		    const struct drain_facts *facts, uint64_t now_ns);

/* The limit is over: who does not move has to be closed. */
bool drain_is_over(const struct drain *drain, const struct drain_config *config, uint64_t now_ns);

#endif
