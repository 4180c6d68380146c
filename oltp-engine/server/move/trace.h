/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace.h - how long each phase of a unit's way from node to node takes (enum move_phase). A unit
 * goes through phases in their order; one that it does not enter in order is not measured.
 */
#ifndef OLTP_MOVE_TRACE_H
#define OLTP_MOVE_TRACE_H

#include <stdint.h>

#include "oltp-engine/server/move/move.h"
#include "oltp-engine/src/base/hist.h"

/* Of one unit. */
struct trace {
	uint64_t since_ns;	/* when `now` began */
	uint8_t now;		/* enum move_phase; MOVE_PHASES: nothing is measured */
};

/* The phase begins. */
void trace_begin(struct trace *trace, enum move_phase phase, uint64_t now_ns);

/* The phase has ended, and the next begins. Nothing happens if the unit was not in it. */
void trace_end(struct trace *trace, struct hist *phases, enum move_phase phase, uint64_t now_ns);

/* The unit goes another way. */
void trace_stop(struct trace *trace);

#endif
