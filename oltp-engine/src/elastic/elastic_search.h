/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many CPUs pay, found by trying: the engine's answer to contention. A pure function of (state,
 * facts), with the time in the facts.
 *
 * Throughput is measured in windows of some slices. After one at one number of CPUs, another number
 * is tried: fewer (all that are held on the node with the fewest), or more. If the two windows do
 * not tell clearly, the two numbers take turns for some more, so that what the machine does
 * meanwhile meets both. The other number is kept or undone; then the next try is half as far, or
 * the other way:
 *
 *   S_BASE --window--> S_MOVE --the CPUs are there--> S_TRY --window, clear--> kept: next try
 *     ^  `-- nothing to try --> S_WATCH    ^            |  `--> S_UNDO ------> next try
 *     |                            |       |         not clear
 *     |                            |    S_AGAIN <-- S_BACK
 *     `---- the workload shifted --'
 *           or it is time to look again
 *
 * How clear is judged by the slices of the windows, and by how much windows differed of late that
 * followed one another with the same CPUs: a machine that speeds up and slows down within seconds
 * makes any two windows differ. More CPUs are kept only if they bring more than noise would. Slices
 * in which the policy itself was not called in time are left out: the machine stood still.
 *
 * What is compared is what a CPU brings against what the average CPU brings. One that is given up
 * may cost a little, one that is taken must bring more: the distance keeps noise from moving CPUs
 * to and fro. Nothing is known of the workload but throughput and the time that workers spend on
 * transactions that had met a conflict, their waste. It bounds what fewer CPUs can bring, since at
 * best the others waste nothing: tries that cannot pay are left out (but for one CPU, once in a
 * long while: not all contention shows as conflicts).
 */
#ifndef OLTP_ELASTIC_SEARCH_H
#define OLTP_ELASTIC_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define SERIES_SLICES	40u

/*
 * Throughput and waste of slices of time with one number of CPUs; zero is an empty one. Of the
 * slices the best and the worst quarter are left out: a machine, or the holder of a lock, that
 * stands still for some of them says nothing of the number of CPUs.
 */
struct series {
	uint32_t n;
	uint64_t committed;
	double rates[SERIES_SLICES];	/* committed transactions per second, ascending */
	double waste, waste_squares;	/* of the share of the workers' time */
};

struct search_facts {
	uint64_t now_ns;
	uint32_t n_cpus;	/* with a worker, now */
	uint32_t n_min;		/* cannot be fewer */
	uint32_t n_max;		/* held and offered */
	uint32_t n_spare;	/* that may be given up on the node with the fewest of ours */
	bool is_moving;		/* CPUs are being taken or given back */
	bool is_busy;		/* no worker lacked work since the call before */
	uint64_t committed, stalled_ns;	/* since the start */
};

enum search_phase {
	S_BASE,
	S_MOVE,
	S_TRY,
	S_BACK,
	S_AGAIN,
	S_UNDO,
	S_RETURN,	/* to begin anew with what was held before the try */
	S_WATCH,
};

/* All windows with one number of CPUs, of one comparison. */
struct search_side {
	uint32_t cpus, windows;
	struct series series, latest;
};

struct search {
	enum search_phase phase;
	uint32_t goal;		/* UINT32_MAX: all there are */
	struct search_side base, other;
	struct series window;	/* that is being measured */
	/* The slice that is being measured. */
	bool is_measuring;
	uint32_t slice_cpus, skip;	/* slices to let pass before the first that counts */
	uint32_t n_still;		/* slices in a row in which the machine stood still */
	uint64_t slice_ns, slice_committed, slice_stalled_ns;
	double usual_rate;	/* of the last window */
	/* Variance of the rates of windows with the same CPUs, over the square of the rate. */
	double unrest;
	/* The search that is going on. */
	bool is_up, has_turned, is_blind;
	bool is_check;		/* all CPUs are tried, once */
	uint32_t step;
	uint64_t phase_ns;	/* when a phase with a bound on its time began */
	/* When to look again without a reason. */
	bool has_probed_up;
	bool has_checked;	/* since a shift */
	uint64_t probe_ns, probe_length_ns, blind_ns, blind_length_ns;
};

void search_init(struct search *search, uint64_t now_ns);

/* The most CPUs to hold; UINT32_MAX: all there are. Call at least every SEARCH_LOOK_NS. */
uint32_t search_next(struct search *search, const struct search_facts *facts);

#define SEARCH_LOOK_NS	50000000ull

#endif
