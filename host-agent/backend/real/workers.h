/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocking work off the event loop: a pool of threads, lanes that keep order, and deadlines.
 *
 * Jobs of one lane run one after the other, in the order of submission; different lanes run side by
 * side.  Urgent jobs go before others of other lanes, and have a thread that takes nothing else and
 * runs with the priority of the thread that created the pool; while it is at work the others take
 * urgent jobs, too.  So they wait for no slow call but one of their own lane.  What a thread gets
 * stuck in (a library call) can not be ended from outside: the job is then reported as timed out,
 * and its lane stays occupied until the call returns.
 *
 *	submitted --> run() on a worker --> done() on the loop --> release() on the loop
 *	    |             |
 *	    `- deadline --'-> done(-ETIMEDOUT) on the loop; release() when run() has returned, or at
 *			      once when it had not begun and now never will
 */
#ifndef EBB_IO_WORKERS_H
#define EBB_IO_WORKERS_H

#include <stdbool.h>
#include <systemd/sd-event.h>
#include "model/types.h"

#define EBB_JOB_LANE_BYTES	17	/* a uuid, and a number for several lanes of one VM */

struct ebb_job {
	uint8_t lane[EBB_JOB_LANE_BYTES];
	bool is_urgent;
	usec_t deadline;		/* CLOCK_MONOTONIC, or EBB_TIME_NEVER */
	/* On a worker thread.  Returns 0 or -errno. */
	int (*run)(struct ebb_job *job);
	/* On the loop's thread, exactly once: what run() returned, or -ETIMEDOUT. */
	void (*done)(struct ebb_job *job, int err);
	/* On the loop's thread, exactly once, last: frees the job. */
	void (*release)(struct ebb_job *job);
	bool has_timed_out; /* for release(): done() was called with -ETIMEDOUT by the pool */
	/*
	 * Private to the pool, under its lock.
	 */
	struct ebb_job *next;
	enum { EBB_JOB_QUEUED, EBB_JOB_RUNNING, EBB_JOB_FINISHED } phase;
	bool is_done;			/* done() was called */
	int err;
};

struct ebb_workers;

/* num_threads: 1 to 64, and one more for urgent jobs. */
int ebb_workers_create(sd_event *event, unsigned int num_threads, struct ebb_workers **ret);

/*
 * From the loop's thread; the pool owns the job until release().  While ending: release() at
 * once.
 */
void ebb_workers_submit(struct ebb_workers *w, struct ebb_job *job);

/*
 * Drop jobs that have not begun (release() without done()), wait up to wait_usec for those that
 * run, end the threads, free.  -EBUSY when a thread is still stuck: nothing is freed then, and the
 * process should end.  NULL is fine.
 */
int ebb_workers_destroy(struct ebb_workers *w, usec_t wait_usec);

#endif
