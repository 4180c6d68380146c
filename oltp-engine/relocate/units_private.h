/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What units.c (the hand-over) and units_sync.c (restarts and failures) have of each other. */
#ifndef RELOCATE_UNITS_PRIVATE_H
#define RELOCATE_UNITS_PRIVATE_H

#include <assert.h>

#include "units.h"

void units_act(struct units_actions *ret, enum units_do what, uint32_t unit, uint64_t gen);

/* Stops the node: what happened must not, or nobody knows what did. */
void units_halt(struct units *units, struct units_actions *ret);

/* The only way to another state: units are counted. */
void unit_set(struct units *units, struct unit *unit, enum unit_state state);

/* units_tick looks at it then, or earlier. */
void unit_due(struct units *units, struct unit *unit, uint64_t due_ns);

/* The unit is OWNED now, and waiting transactions may run. */
void unit_open(struct units *units, uint32_t number, struct units_actions *ret);

/* The peer has it by gen. */
void unit_gone(struct units *units, uint32_t number, uint64_t gen, uint64_t now_ns,
	       struct units_actions *ret);

/* ASK, if it is wanted and there is somebody to ask. */
void unit_ask(struct units *units, uint32_t number, uint64_t now_ns, struct units_actions *ret);

/* A node that closes: gives more if there is room on the way, and ends when nothing is left. */
void units_push(struct units *units, uint64_t now_ns, struct units_actions *ret);

void units_hello(struct units *units, const struct units_message *message,
		 const struct units_entry *table, uint64_t now_ns, struct units_actions *ret);

/* The highest generation that this node knows of. */
static inline uint64_t unit_seen(const struct unit *unit)
{
	return unit->gen > unit->offer ? unit->gen : unit->offer;
}

#endif
