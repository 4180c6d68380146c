/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many CPUs the transactions that arrive need: the engine's answer to peaks. A pure function of
 * (state, facts), with the time in the facts.
 *
 * The rate of one worker is measured while no worker lacks work. From then on the number of CPUs
 * needed follows from the arrivals of the last 20 ms and from the standing queue: one that no
 * worker found empty for that long. (Transactions that arrive within one look are no standing
 * queue.) A number of CPUs that has served such arrivals before is enough, too. More CPUs are asked
 * for at once, fewer only after the need has been lower for some time; that time doubles when fewer
 * CPUs proved too few. Before anything was measured: twice as many CPUs if a queue stands, one
 * fewer if not. After two seconds without a queue one CPU fewer is tried; if that was wrong, the
 * next such try comes later.
 */
#ifndef OLTP_ELASTIC_QUEUE_H
#define OLTP_ELASTIC_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct queue_facts {
	uint64_t now_ns;
	uint32_t n_cpus;	/* with a worker, now */
	uint32_t n_min;		/* cannot be fewer */
	uint32_t n_max;		/* held and offered */
	bool is_moving;		/* CPUs are being taken or given back */
	bool is_unlimited;	/* no arrivals yet: workers run one transaction after the other */
	uint64_t committed;	/* since the start */
	uint64_t arrived;	/* since the start; not above: what waits */
	uint64_t waiting;
	uint64_t idles;		/* times that a worker found nothing to do, since the start */
};

struct queue_look {
	uint64_t at_ns, committed, arrived, idles;
	uint32_t n_cpus;	/* 0: they were being moved */
};

#define QUEUE_LOOKS	8u

struct queue {
	uint32_t goal;
	struct queue_look looks[QUEUE_LOOKS];	/* the newest last */
	uint32_t n_looks;
	bool is_rising;		/* more were needed at the last look */
	double per_worker;	/* transactions per second, 0: not known */
	/*
	 * Sums over looks without idle workers, since the last measurement; busy_s: of all workers.
	 */
	double busy_wall_s, busy_s, busy_committed;
	/* The most that was served per worker with some idle at times, 0: not known. */
	double served_per_worker;
	uint32_t served_cpus;
	uint64_t served_since_ns, served_arrived;
	/* A lower need. */
	uint64_t low_since_ns;	/* 0: it is not lower */
	uint32_t low_most;	/* the most needed since then */
	uint64_t hold_ns;	/* how long it must last */
	uint64_t calm_since_ns;	/* as many are held as are needed, and no queue stands */
	uint64_t try_ns;	/* how long that must last for one fewer to be tried */
	uint64_t shrunk_ns;	/* when the goal was lowered last, 0: never */
	double shrunk_rate;	/* arrivals per second then */
};

void queue_init(struct queue *queue);

/* The CPUs to hold; at least n_min, at most n_max. Call every QUEUE_LOOK_NS. */
uint32_t queue_next(struct queue *queue, const struct queue_facts *facts);

#define QUEUE_LOOK_NS	10000000ull

#endif
