// SPDX-License-Identifier: GPL-2.0-or-later
/* Starts, tables of units, and a peer that is fenced: see units.h. */
#include <string.h>

#include "units_private.h"

#define NEVER	UINT64_MAX

void units_start(struct units *units, const struct units_config *config, struct unit *list,
		 enum units_was was, uint64_t incarnation, uint64_t now_ns,
		 struct units_actions *ret)
{
	ret->n = 0;
	memset(units, 0, sizeof(*units));
	units->config = config;
	units->list = list;
	units->incarnation = incarnation;
	units->greet_ns = units->fence_ns = units->due_ns = NEVER;
	units->in_state[UNIT_UNKNOWN] = config->n_units;
	for (uint32_t u = 0; u < config->n_units; u++)
		list[u].due_ns = NEVER;
	switch (was) {
	case UNITS_WAS_ALONE:
		units->mode = UNITS_ALONE;
		for (uint32_t u = 0; u < config->n_units; u++)
			unit_open(units, u, ret);
		break;
	case UNITS_WAS_SHARED:
		units->mode = UNITS_SHARED;
		units->greet_ns = now_ns;
		units->fence_ns = now_ns + config->fence_ns;
		break;
	case UNITS_WAS_CLOSED:
		units->mode = UNITS_CLOSED;
		units->is_closing = true;
		units->greet_ns = now_ns;
		for (uint32_t u = 0; u < config->n_units; u++)
			unit_set(units, &list[u], UNIT_AWAY);
		break;
	}
}

void units_share(struct units *units, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode != UNITS_ALONE)
		return;
	units->mode = UNITS_SHARING;
	units->peer = 0;
	units->is_synced = false;
	units_act(ret, UNITS_LOG_SHARED, 0, 0);
}

struct units_entry units_entry(const struct units *units, uint32_t number)
{
	const struct unit *unit = &units->list[number];

	switch (unit->state) {
	case UNIT_OWNED:
	case UNIT_DRAINING:
	case UNIT_GIVING:
		return (struct units_entry){ unit->gen, UNITS_MINE };
	case UNIT_TAKING:
		return (struct units_entry){ unit->gen, UNITS_TAKES };
	case UNIT_UNKNOWN:
		if (unit->is_mine)
			return (struct units_entry){ unit->gen, UNITS_MINE };
		break;
	default:
		break;
	}
	return (struct units_entry){ unit_seen(unit), UNITS_NOT };
}

/* The first table of the units' true places since this node started. */
static void find_out(struct units *units, uint32_t number, const struct units_entry *theirs,
		     uint64_t now_ns, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (unit->is_mine && theirs->holds == UNITS_TAKES && theirs->gen > unit->gen) {
		unit_set(units, unit, UNIT_GIVING);
		unit->offer = theirs->gen;
		unit_due(units, unit, now_ns + units->config->repeat_ns);
	} else if (theirs->holds == UNITS_MINE && (!unit->is_mine || theirs->gen > unit->gen)) {
		unit_set(units, unit, UNIT_AWAY);
		unit->gen = theirs->gen;
		unit_ask(units, number, now_ns, ret);
	} else if (unit->is_mine) {
		if (theirs->gen > unit->offer)
			unit->offer = theirs->gen;
		unit_open(units, number, ret);
	} else {
		/* Neither node has it. */
		units_halt(units, ret);
	}
}

/* The peer has restarted, or is new to this node. */
static void compare(struct units *units, uint32_t number, const struct units_entry *theirs,
		    uint64_t now_ns, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];
	bool has_it = theirs->holds == UNITS_MINE && theirs->gen > unit->gen;

	switch (unit->state) {
	case UNIT_UNKNOWN:
		find_out(units, number, theirs, now_ns, ret);
		return;
	case UNIT_AWAY:
		/* Nothing was logged here before it was on disk there (U3). */
		if (theirs->holds != UNITS_MINE)
			break;
		unit->gen = theirs->gen;
		unit_ask(units, number, now_ns, ret);
		return;
	case UNIT_GIVING:
		if (has_it)
			unit_gone(units, number, theirs->gen, now_ns, ret);
		else if (theirs->holds != UNITS_TAKES || theirs->gen != unit->offer)
			unit_open(units, number, ret);
		return;
	default:
		/* It has what is here: this node was fenced, and has not noticed. */
		if (has_it)
			break;
		unit->is_asked = false;
		if (theirs->gen > unit->offer && unit->state != UNIT_TAKING)
			unit->offer = theirs->gen;
		return;
	}
	units_halt(units, ret);
}

void units_hello(struct units *units, const struct units_message *message,
		 const struct units_entry *table, uint64_t now_ns, struct units_actions *ret)
{
	if (message->from < units->peer)
		return;
	if (message->from > units->peer) {
		units->peer = message->from;
		units->is_synced = false;
		if (units->greet_ns == NEVER &&
		    (units->mode == UNITS_SHARED || units->mode == UNITS_CLOSED))
			units->greet_ns = now_ns + units->config->repeat_ns;
	}
	units->fence_ns = NEVER;
	/*
	 * A table counts if its sender knew this incarnation: what it does from then on follows
	 * from messages of this one. Only the first does; later ones may be old.
	 */
	if (!units->is_synced && message->to == units->incarnation) {
		units->is_synced = true;
		units->greet_ns = units->mode == UNITS_CLOSED ? now_ns : NEVER;
		for (uint32_t u = 0; u < units->config->n_units; u++) {
			if (units->mode == UNITS_STOPPED)
				return;
			compare(units, u, &table[u], now_ns, ret);
		}
	}
	if (units->mode == UNITS_STOPPED)
		return;
	if (!message->flag || message->to != units->incarnation)
		units_act(ret, UNITS_SEND_HELLO, 0, 0);
	units_push(units, now_ns, ret);
}

void units_peer_lost(struct units *units, uint64_t now_ns)
{
	if (units->mode == UNITS_SHARED && units->fence_ns == NEVER)
		units->fence_ns = now_ns + units->config->fence_ns;
}

bool units_is_theirs(const struct units *units, uint32_t number, const struct units_entry *theirs)
{
	const struct unit *unit = &units->list[number];

	if (theirs->holds != UNITS_MINE)
		return false;
	switch (unit->state) {
	case UNIT_AWAY:
		return true;
	case UNIT_UNKNOWN:
		return !unit->is_mine || theirs->gen > unit->gen;
	case UNIT_GIVING:
		return theirs->gen > unit->gen;
	default:
		return false;
	}
}

void units_peer_fenced(struct units *units, const struct units_entry *table,
		       struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode != UNITS_SHARED)
		return;
	units->top = 0;
	units->is_synced = false;
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		uint64_t seen = unit_seen(&units->list[u]);

		if (table[u].gen > seen)
			seen = table[u].gen;
		if (units->top <= seen)
			units->top = seen + 1;
	}
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		struct unit *unit = &units->list[u];

		if (units_is_theirs(units, u, &table[u])) {
			units_act(ret, UNITS_RECOVER, u, table[u].gen);
		} else if (unit->state == UNIT_AWAY ||
			   (unit->state == UNIT_UNKNOWN && !unit->is_mine)) {
			/* Neither node has it. */
			units_halt(units, ret);
			return;
		}
		if (unit->state == UNIT_OWNED || unit->state == UNIT_DRAINING)
			continue;
		unit_set(units, unit, UNIT_TAKING);
		unit->gen = units->top;
		unit->due_ns = NEVER;
	}
	units->mode = UNITS_SETTLING;
	units->greet_ns = NEVER;
	units_act(ret, UNITS_LOG_ALONE, 0, units->top);
}

void units_stop(struct units *units, struct units_actions *ret)
{
	ret->n = 0;
	units_halt(units, ret);
}
