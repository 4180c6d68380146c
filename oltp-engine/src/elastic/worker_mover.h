/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread for those calls of a CPU source that block, so that the engine's control loop never
 * does. One job at a time; a job's moves can be collected as soon as it has ended.
 */
#ifndef OLTP_WORKER_MOVER_H
#define OLTP_WORKER_MOVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp.h"

struct mover_job {
	bool is_add;
	uint32_t node;		/* add */
	uint32_t n_cpus;
	uint32_t cpus[OLTP_MOVE_MAX];	/* remove: which; one call each */
	uint64_t stop_ns[OLTP_MOVE_MAX];	/* copied into the moves */
};

struct mover_result {
	uint32_t n_moves;	/* an add is one move, a remove as many as it has CPUs */
	struct oltp_move moves[OLTP_MOVE_MAX];
};

struct mover {
	const struct oltp_cpu_source_ops *ops;
	void *source;
	int event_fd;		/* readable when a result waits */
	pthread_t thread;
	pthread_mutex_t lock;	/* all below */
	pthread_cond_t changed;
	enum { MOVER_IDLE, MOVER_BUSY, MOVER_ENDED, MOVER_QUIT } state;
	struct mover_job job;
	struct mover_result result;
};

/* Errors: -errno. */
int mover_start(struct mover *mover, const struct oltp_cpu_source_ops *ops, void *source);

/* No job may be unfinished. */
void mover_finish(struct mover *mover);

/* The mover must be idle: after _start or after a result was collected. */
void mover_submit(struct mover *mover, const struct mover_job *job);

/* Is there a result? Collects it if so. */
bool mover_collect(struct mover *mover, struct mover_result *ret_result);

/* As above, and waits for it. A job must have been submitted. */
void mover_wait(struct mover *mover, struct mover_result *ret_result);

#endif
