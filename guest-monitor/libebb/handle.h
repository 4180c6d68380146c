/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The handle.  Private to libebb.
 */
#ifndef EBB_HANDLE_H
#define EBB_HANDLE_H

#include "link.h"
#include "mem.h"
#include "values.h"
#include "view.h"

/*
 * For so long after the monitor went away its last word holds; then the handle
 * sees the limits of the whole VM.  A monitor that is restarted is back before
 * that, and its applications do not all give back what one of them has to.
 */
#define EBB_MONITOR_GRACE_MS	300

struct ebb {
	/* Constant after ebb_open(). */
	const struct ebb_dev_ops *ops;
	void *dev;
	int epoll_fd;			/* of the two below, device, link and mem */
	int wake_fd;			/* eventfd: look at the device and the link again */
	int timer_fd;
	struct ebb_link link;		/* has its own lock */
	struct ebb_mem mem;		/* has its own lock */
	struct ebb_values values;	/* has its own lock */

	/* Of the thread that dispatches. */
	int is_gone;			/* the device is */
	struct ebb_view view;
	struct ebb_mem_sums sums;	/* as of the view */
	int had_monitor;		/* shares came from a monitor that ... */
	uint64_t monitor_until_ns;	/* ... holds until then; 0: it is there */
	struct ebb_msg_shares monitor_shares;
	ebb_shares_fn fn;
	void *fn_arg;
	int is_fn_due;			/* even if nothing changed */

	pthread_mutex_t lock;		/* for all below */
	struct ebb_shares shares;
	uint32_t mem_promise_mib;	/* as of these shares */
	/* As ebb_baseline_set() said last. */
	uint32_t baseline_mib;
	uint64_t baseline_ios;
	uint64_t actual_ios;
};

/*
 * What the application is to see.  Pure.  monitor is NULL without one.  One that says ALONE
 * divides nothing: it is as without one.  Leaves ret->generation 0.
 *
 *   S1  demanded <= owned
 *   S2  with a monitor that divides, owned + offered and owned - demanded stay what it said
 *       while the application adds and removes
 *
 * for CPUs and for memory.
 */
void ebb_shares_compute(const struct ebb_view *view, const struct ebb_mem_sums *mem,
			const struct ebb_msg_shares *monitor, struct ebb_shares *ret);

/* Of the promise to the VM, the application's part; likewise pure. */
uint32_t ebb_shares_promise(const struct ebb_view *view, const struct ebb_msg_shares *monitor);

/*
 * Answers what the host asks for, as of the view.  Returns when it wants to be called again (ns),
 * UINT64_MAX if only when something happens.
 */
uint64_t ebb_ask_step(struct ebb *ebb, uint64_t now_ns);

#endif /* EBB_HANDLE_H */
