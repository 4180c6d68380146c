/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many CPUs pay, found by trying: the engine's answer to contention. A pure function of (state,
 * facts), with the time in the facts.
 *
 * Throughput is measured in slices. With enough of them at one number of CPUs, another number is
 * tried: fewer (all that are held on the node with the fewest), or more. Enough slices there, and
 * it is kept or undone; then the next try is half as far, or the other way:
 *
 *              enough slices            CPUs are there            enough slices
 *   S_BASE ----------------> S_MOVE -----------------> S_TRY ----------------> kept: next try
 *     ^  `-- nothing to try --> S_WATCH                  `--> S_UNDO --------> next try
 *     `---- the workload shifted, or it is time to look again ----'
 *
 * Of the slices the best and the worst quarter are left out: a machine that stands still for
 * some of them, or a lock's holder that does, says nothing of the number of CPUs. A try that is not
 * clear goes on for two seconds; more CPUs are then kept only if they bring more than noise would.
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

#define SEARCH_SLICES	40u

/* Slices at one number of CPUs. */
struct search_series {
	uint32_t n;
	uint64_t committed;
	double rates[SEARCH_SLICES];	/* committed transactions per second, ascending */
	double waste, waste_squares;	/* of the share of the workers' time */
};

enum search_phase {
	S_BASE,
	S_MOVE,
	S_TRY,
	S_UNDO,
	S_WATCH,
};

struct search {
	enum search_phase phase;
	uint32_t goal;		/* UINT32_MAX: all there are */
	uint32_t base_cpus;
	struct search_series base, now;
	/* The slice that is being measured. */
	bool is_measuring;
	uint32_t slice_cpus, skip;	/* slices to let pass before the first that counts */
	uint64_t slice_ns, slice_committed, slice_stalled_ns;
	/* The search that is going on. */
	bool is_up, has_turned, is_blind;
	uint32_t step;
	uint64_t phase_ns;	/* when S_MOVE, S_TRY or S_UNDO began */
	/* When to look again without a reason. */
	bool has_probed_up;
	uint64_t probe_ns, probe_length_ns, blind_ns, blind_length_ns;
};

void search_init(struct search *search, uint64_t now_ns);

/* The most CPUs to hold; UINT32_MAX: all there are. Call at least every SEARCH_LOOK_NS. */
uint32_t search_next(struct search *search, const struct search_facts *facts);

#define SEARCH_LOOK_NS	50000000ull

#endif
