/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A model of an engine on a machine, for its own choice of CPUs: how throughput depends on the
 * number of CPUs is given, noise is added, moves take time, and the machine can be disturbed.
 */
#ifndef ADAPT_MODEL_H
#define ADAPT_MODEL_H

#include "oltp-engine/src/elastic/elastic_policy.h"

#define MODEL_CPUS	64u

struct model {
	struct elastic_config config;
	struct elastic_state state;
	struct elastic_cpu cpus[MODEL_CPUS];
	uint32_t n_cpus, n_startup;
	uint32_t node_cpus[2];	/* how many there are */
	struct oltp_cpu_view view;
	struct elastic_load load;
	uint64_t now_ns, move_ns;	/* move_ns: what it takes to move one CPU */
	/* Scalability after Gunther: contention and coherency. */
	double sigma, kappa;
	double noise;		/* standard deviation of throughput in a tick */
	double waste_noise;	/* that of the share of the time that is wasted */
	double speed;		/* of the machine */
	double arrivals;	/* per second; is_open */
	double backlog, committed, stalled_s, arrived;
	uint64_t random;
	/* Disturbances. */
	double stalls_ps, stall_s;	/* how often, and how long they are on average */
	uint64_t still_ns;	/* workers stand still until then */
	uint32_t n_stalls;
	double drift;		/* of throughput within seconds: standard deviation */
	double drift_now;
	/* The move that is going on. */
	struct elastic_action action;
	uint64_t done_ns;
	/* Since the last reset. */
	uint32_t n_moves;
	double served, best_served, cpu_s, seconds;
	double worst_share;	/* open: of what arrived in 100 ms, least that was served then */
	double window_arrived, window_served;
	uint32_t window_ticks;
};

/* Startup CPUs are on the first of two nodes, which have node0 and node1 CPUs. */
void model_init(struct model *m, uint32_t n_startup, uint32_t node0, uint32_t node1);
void model_run(struct model *m, double seconds);
/* Forgets what was counted. */
void model_reset(struct model *m);

void model_set_calm(struct model *m);
/* Throughput peaks at peak CPUs and falls beyond. */
void model_set_contended(struct model *m, double peak);

uint32_t model_cpus_there(const struct model *m);
/* The number of CPUs with the highest throughput. */
uint32_t model_best_cpus(const struct model *m);
uint32_t model_held_on(const struct model *m, uint32_t node);

#endif
