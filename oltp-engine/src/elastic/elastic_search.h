/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How many CPUs pay, found by hill climbing: the engine's answer to contention. A pure function of
 * (state, facts), with the time in the facts.
 *
 * Throughput is measured in windows of some slices. After a window with one number of CPUs, another
 * number is tried: fewer (all that are held on the node with the fewest), or more. If their windows
 * do not differ clearly, the two numbers take turns for some more, so that a machine that speeds up
 * or slows down meanwhile does so for both. The other number is kept or undone; then the next try
 * is half as far, or the other way:
 *
 *   S_MEASURE --a window, clear--> next try --> S_MOVE --the CPUs are there--> S_MEASURE
 *     |  ^  `--not clear: the other number of the two --^
 *     |  `-- the workload has shifted, or it is time to look again --.
 *     `-- nothing more to try --> S_WATCH ---------------------------'
 *
 * Hysteresis: a CPU that is given up may have brought a little, one that is taken must bring more.
 * And a difference is clear only if it is larger than noise: than windows with the same number of
 * CPUs differed from one another of late, and than the slices of these windows differ. Slices in
 * which the policy itself was not called in time are left out: the machine stood still.
 *
 * Nothing is known of the workload but throughput and waste: the time that workers spend on
 * transactions that had met a conflict. Waste bounds what fewer CPUs can bring, since at best the
 * others waste nothing. So tries that cannot pay are left out (but for one CPU, once in a long
 * while: not all contention shows as conflicts).
 */
#ifndef OLTP_ELASTIC_SEARCH_H
#define OLTP_ELASTIC_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define SEARCH_SLICES	10u	/* of a window */

/* A window in the making. */
struct search_window {
	uint32_t n;			/* slices */
	uint64_t committed;
	double rates[SEARCH_SLICES];	/* committed transactions per second, ascending */
	double waste;			/* of each slice a share of the workers' time; their sum */
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
	S_MEASURE,
	S_MOVE,
	S_WATCH,
};

/* The step that follows once the CPUs are there. */
enum search_then {
	THEN_MEASURE,
	THEN_TRY,		/* the next number */
	THEN_RESTART,		/* is_better */
};

/* Figures of one window, or means of several. */
struct search_figures {
	double rate;		/* transactions per second */
	double waste;		/* share of the workers' time */
	double rate_variance;	/* of the rate, by how its slices differ */
};

/* One number of CPUs in a comparison. */
struct search_side {
	uint32_t cpus, windows;
	struct search_figures mean, latest;	/* of all its windows; of the last one */
};

/* How much windows in a row were off one way, beyond slack. */
struct search_sums {
	double more, less;	/* transactions per second */
	double worse, better;	/* waste */
};

struct search {
	enum search_phase phase;
	enum search_then then;		/* S_MOVE */
	bool is_better;			/* the shift looked as if scaling improved */
	uint64_t phase_ns;		/* when it began */
	uint32_t goal;			/* UINT32_MAX: all there are */
	struct search_side base, other;
	bool is_other;			/* it is held, measured or moved to; else the base is */
	struct search_window window;
	struct search_sums sums;	/* of the windows since phase_ns */
	/* The slice that is being measured. */
	bool is_measuring;
	uint32_t slice_cpus, skip;	/* slices to let pass before the first that counts */
	uint32_t n_still;		/* slices in a row in which the machine stood still */
	uint64_t slice_ns, slice_committed, slice_stalled_ns;
	double usual_rate;		/* of the last window */
	/* Variance of windows with the same CPUs, that of the rate over the square of the rate. */
	double rate_noise, waste_noise;
	/* The search that is going on. */
	bool is_up, has_turned;
	bool is_probe;			/* a single try, until one is kept */
	bool is_blind;			/* a probe of one CPU fewer, whatever the waste */
	uint32_t step;
	/* When to look again without a reason. */
	uint32_t n_probes;		/* since a shift */
	uint64_t probe_ns, blind_ns, blind_length_ns;
};

void search_init(struct search *search, uint64_t now_ns);

/* The most CPUs to hold; UINT32_MAX: all there are. Call at least every SEARCH_LOOK_NS. */
uint32_t search_next(struct search *search, const struct search_facts *facts);

#define SEARCH_LOOK_NS	50000000ull

#endif
