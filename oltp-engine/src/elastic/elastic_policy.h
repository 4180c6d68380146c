/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPUs the engine takes and gives back: a pure function of (config, state, facts), with the
 * time in the facts. It neither acts nor reads a clock; worker_elastic.c performs what it says and
 * reports back with _started and _finished.
 *
 * Rules, in this order; one move at a time:
 *   P1  Nothing new while a move is in flight.
 *   P2  CPUs that do no work are given back first: the host has taken their core by force, or no
 *       worker could be started on them.
 *   P3  A demand is met as soon as it is seen, with the CPUs added last on that node.
 *   P4  Startup CPUs are never given back.
 *   P5  Above max_cpus, CPUs added last are given back; offers are taken up to max_cpus.
 *   P6  FOLLOW takes every offer at once, node by node, at most OLTP_MOVE_MAX CPUs a move.
 *   P7  STEP takes one CPU per step; when a step finds no offer (or max_cpus), it turns and gives
 *       one back per step until the startup set is left, which it keeps for a last step. Before the
 *       first CPU it waits for offers.
 *   P8  ADAPT holds what pays (elastic_search.h) and, if transactions arrive by themselves, no more
 *       than they need (elastic_queue.h). It takes CPUs where most are held and gives them back
 *       where fewest are, so that it ends on few nodes.
 *   P9  After a failure of the same kind of move: a pause, doubled each time up to a second. A step
 *       that failed is due again after the pause.
 *   P10 Workers on CPUs that are demanded have half of the time until the deadline to end what they
 *       have begun; the other half is for giving the CPUs back. Those on CPUs taken by force have
 *       none, others have as long as it takes.
 */
#ifndef OLTP_ELASTIC_POLICY_H
#define OLTP_ELASTIC_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "elastic_queue.h"
#include "elastic_search.h"
#include "oltp.h"

struct elastic_config {
	enum oltp_elastic_mode mode;
	uint32_t max_cpus;	/* 0: no bound */
	uint64_t step_ns;
};

struct elastic_cpu {
	uint32_t cpu;
	uint32_t node;
	bool is_startup;
	bool is_idle;		/* no worker could be started on it */
};

/* The workers' transactions since the start, and the queue of those that wait. For ADAPT. */
struct elastic_load {
	uint64_t committed;
	uint64_t stalled_ns;	/* of workers, with transactions that had met a conflict */
	uint64_t idles;		/* times that a worker found nothing to do */
	bool is_open;		/* transactions arrive, whether or not workers are free */
	bool is_unlimited;	/* is_open: they do not yet, and workers run all the time */
	uint64_t arrived, waiting;	/* is_open */
};

struct elastic_facts {
	uint64_t now_ns;
	const struct elastic_cpu *cpus;	/* held, in the order in which they were added */
	uint32_t n_cpus;
	const struct oltp_cpu_view *view;
	const struct elastic_load *load;	/* NULL: not known; ADAPT then takes all */
};

enum elastic_kind {
	ELASTIC_NONE,
	ELASTIC_ADD,
	ELASTIC_REMOVE,
};

struct elastic_action {
	enum elastic_kind kind;
	uint32_t node;		/* ADD */
	uint32_t n_cpus;	/* ADD: how many; REMOVE: which of cpus[] */
	uint32_t cpus[OLTP_MOVE_MAX];
	uint64_t stop_by_ns[OLTP_MOVE_MAX];	/* REMOVE: of the worker on each; see P10 */
	uint64_t wake_ns;	/* look again then, whatever happens; UINT64_MAX: need not */
};

struct elastic_pause {
	uint64_t until_ns;
	uint64_t length_ns;	/* 0: the last move of the kind succeeded */
};

enum elastic_direction {
	ELASTIC_UP,
	ELASTIC_DOWN,
	ELASTIC_DONE,
};

/* Zero plus _init is the start. */
struct elastic_state {
	bool is_in_flight;
	struct elastic_pause add_pause, remove_pause;
	enum elastic_direction direction;	/* STEP */
	uint64_t next_step_ns;	/* STEP */
	/* ADAPT */
	struct search search;
	struct queue queue;
	uint64_t idles;		/* at the last look */
	uint32_t goal;		/* the most CPUs to hold; UINT32_MAX: all there are */
};

void elastic_policy_init(struct elastic_state *state, const struct elastic_config *config,
			 uint64_t now_ns);

/*
 * Changes only what time and load change: the turn at the top and the end of a STEP run; what ADAPT
 * has measured and concluded.
 */
void elastic_policy_next(const struct elastic_config *config, struct elastic_state *state,
			 const struct elastic_facts *facts, struct elastic_action *ret_action);

void elastic_policy_started(const struct elastic_config *config, struct elastic_state *state,
			    const struct elastic_action *action, uint64_t now_ns);

/* is_success: at least one CPU was moved. */
void elastic_policy_finished(struct elastic_state *state, enum elastic_kind kind, bool is_success,
			     uint64_t now_ns);

#endif
