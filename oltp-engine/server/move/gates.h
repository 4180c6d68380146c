/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gates.h - the gates of all units and the transactions that wait for them (relocate/gate.h). Any
 * thread that runs commands may call the functions of struct kv_gate_ops, only the thread that
 * moves units all others.
 */
#ifndef OLTP_MOVE_GATES_H
#define OLTP_MOVE_GATES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/relocate/gate.h"
#include "oltp-engine/server/kv/kv.h"

struct gates {
	pthread_mutex_t lock;
	uint32_t n;
	struct gate *list;
	uint64_t *epochs;		/* of the last transaction that has written to the unit */
	struct kv_pins waiting;		/* the head of a ring of those that wait, in any order */
	/* When a command met the closed gate first since gates_wanted; 0: none did. */
	uint64_t *wanted_ns;
	uint32_t n_wanted;		/* of them not 0 */
	bool has_ended;			/* one that has waited, since gates_take_ended */
	bool tells_ended;
	bool is_stopped;
	_Atomic bool is_target;		/* see gate_birth */
	uint64_t behind_us;		/* the clock, as far as is known: see gates_heard */
	int event_fd;			/* told of what is wanted, and of last pins */
};

/* All closed. Errors: -ENOMEM. */
int gates_init(struct gates *gates, uint32_t n, int event_fd);
void gates_finish(struct gates *gates);

/* See struct kv_gate_ops. */
enum kv_gate gates_enter(struct gates *gates, struct kv_pins *pins);
bool gates_pin_last(struct gates *gates, struct kv_pins *pins);
void gates_leave(struct gates *gates, struct kv_pins *pins);

void gates_open(struct gates *gates, uint32_t unit);
void gates_close(struct gates *gates, uint32_t unit);

/*
 * Nobody has it pinned. ret_epoch: what commands have written to the unit is on disk when this is;
 * 0: they have written nothing.
 */
bool gates_is_idle(struct gates *gates, uint32_t unit, uint64_t *ret_epoch);

/* The birth of the oldest that waits and needs the unit (gate.h, G3); 0: nobody does. */
uint64_t gates_oldest(struct gates *gates, uint32_t unit);

/*
 * The peer has spoken of this birth. A transaction that is born here from now on is younger, as
 * Lamport's clocks have it ("Time, Clocks, and the Ordering of Events in a Distributed System"): a
 * node whose clock is ahead would wait for that time behind all that are born on the other.
 */
void gates_heard(struct gates *gates, uint64_t birth);

/*
 * Whether one has ended, or gone, since the last time that had waited for units: those that the
 * peer asks for may go now. tells: event_fd is to be told of the next.
 */
bool gates_take_ended(struct gates *gates, bool tells);

/* Those that wait for the unit shall go to the other node. */
void gates_fail(struct gates *gates, uint32_t unit);

/* Closes all for good; nobody waits any more. */
void gates_stop(struct gates *gates);

/*
 * The next unit, from *unit on, that was wanted since the last time, and when (CLOCK_MONOTONIC).
 * False: none.
 */
bool gates_wanted(struct gates *gates, uint32_t *unit, uint64_t *ret_since_ns);

#endif
