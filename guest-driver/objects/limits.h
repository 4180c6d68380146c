/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The newest limits that the host has published, and the queue of threads that wait for newer ones.
 */
#ifndef EBB_LIMITS_H
#define EBB_LIMITS_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

#include <linux/ebb_ioctl.h>

#include "pure/wire.h"

struct ebb_limit_state {
	spinlock_t lock;		/* all but wait */
	u64 generation;			/* 0: none published yet */
	u32 vom_seq;			/* histogram that the host wants; 0: none */
	u32 mem_promise_mib;		/* size of the dedicated cache that is promised; 0: none */
	u32 seq;			/* grows with limits, CPUs' flags, memory given back */
	u64 deadline_ns[EBB_MAX_NODES];	/* for CPUs; CLOCK_MONOTONIC; 0: no demand */
	u64 mem_deadline_ns[EBB_MAX_NODES]; /* likewise, for memory */
	struct ebb_wire_limit nodes[EBB_MAX_NODES];	/* by proximity domain */
	wait_queue_head_t wait;		/* seq changed, or the device is gone */
};

/* The limits that an open file of /dev/ebb has read; zeroed: none yet. */
struct ebb_limits_seen {
	u32 seq;
	bool is_any;
};

void ebb_limits_init(struct ebb_limit_state *state);

/* Takes an event LIMITS; an event that is older than the known limits is ignored.  Any context. */
void ebb_limits_take(struct ebb_limit_state *state, const struct ebb_wire_event *event,
		     u32 num_nodes);

/* Programs must look again: a CPU's flags changed, or memory came back.  Any context. */
void ebb_limits_changed(struct ebb_limit_state *state);

/* Programs must hear of a device that is gone.  Any context. */
void ebb_limits_wake(struct ebb_limit_state *state);

/*
 * Fills in ret, but for what is held of memory; notes in seen what was read.
 * A deadline for memory is given whatever is held.
 */
void ebb_limits_read(struct ebb_limit_state *state, const struct ebb_wire_config *cfg,
		     struct ebb_limits *ret, struct ebb_limits_seen *seen);

/* Is there news since, or was nothing read yet? */
bool ebb_limits_is_news(struct ebb_limit_state *state, const struct ebb_limits_seen *seen);

#endif /* EBB_LIMITS_H */
