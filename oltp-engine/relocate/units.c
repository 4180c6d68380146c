// SPDX-License-Identifier: GPL-2.0-or-later
/* Ownership of units while both nodes know each other: see units.h. */
#include <string.h>

#include "gate.h"
#include "units_private.h"

#define NEVER	UINT64_MAX

void units_act(struct units_actions *ret, enum units_do what, uint32_t unit, uint64_t gen)
{
	assert(ret->n < ret->room);
	ret->list[ret->n++] = (struct units_action){ gen, unit, (uint8_t)what };
}

void units_halt(struct units *units, struct units_actions *ret)
{
	if (units->mode == UNITS_STOPPED)
		return;
	units->mode = UNITS_STOPPED;
	units_act(ret, UNITS_STOP, 0, 0);
}

void unit_set(struct units *units, struct unit *unit, enum unit_state state)
{
	units->in_state[unit->state]--;
	units->in_state[state]++;
	unit->state = (uint8_t)state;
}

void unit_due(struct units *units, struct unit *unit, uint64_t due_ns)
{
	unit->due_ns = due_ns;
	if (due_ns < units->due_ns)
		units->due_ns = due_ns;
}

void unit_open(struct units *units, uint32_t number, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	unit_set(units, unit, UNIT_OWNED);
	unit->is_asked = unit->is_wanted = false;
	unit->due_ns = NEVER;
	units_act(ret, UNITS_OPEN, number, unit->gen);
}

static bool is_talking(const struct units *units)
{
	return units->mode == UNITS_SHARED && units->is_synced;
}

void unit_ask(struct units *units, uint32_t number, uint64_t now_ns, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (unit->state != UNIT_AWAY || !unit->is_wanted || !is_talking(units) || units->is_full)
		return;
	unit_due(units, unit, now_ns + units->config->repeat_ns);
	unit->said = unit->here;
	units_act(ret, UNITS_SEND_ASK, number, unit->gen);
}

/* G3 */
static bool is_needed_here(const struct units *units, const struct unit *unit)
{
	return !units->is_closing && unit->here && !gate_is_older(unit->asked_for, unit->here);
}

/* One that is asked for goes at any time, others as far as there is room on the way. */
static void consider(struct units *units, uint32_t number, uint32_t *under_way, uint64_t now_ns,
		     struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (unit->state != UNIT_OWNED || !is_talking(units))
		return;
	if (!unit->is_asked && (!units->is_closing || *under_way >= units->config->push_max))
		return;
	if (is_needed_here(units, unit)) {
		unit->due_ns = NEVER;
		return;
	}
	if (now_ns < unit->ready_ns) {
		unit_due(units, unit, unit->ready_ns);
		return;
	}
	unit_set(units, unit, UNIT_DRAINING);
	unit->due_ns = NEVER;
	(*under_way)++;
	units_act(ret, UNITS_DRAIN, number, unit->gen);
}

void units_push(struct units *units, uint64_t now_ns, struct units_actions *ret)
{
	uint32_t under_way = units->in_state[UNIT_DRAINING] + units->in_state[UNIT_GIVING];

	if (!units->is_closing || !is_talking(units))
		return;
	if (units->in_state[UNIT_AWAY] == units->config->n_units) {
		units->mode = UNITS_LEAVING;
		units_act(ret, UNITS_LOG_CLOSED, 0, 0);
		return;
	}
	for (uint32_t u = 0; units->in_state[UNIT_OWNED] > 0 && u < units->config->n_units; u++)
		consider(units, u, &under_way, now_ns, ret);
}

void unit_gone(struct units *units, uint32_t number, uint64_t gen, uint64_t now_ns,
	       struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	unit_set(units, unit, UNIT_AWAY);
	unit->gen = gen;
	unit->has_left = true;
	unit->due_ns = NEVER;
	units->stats.given++;
	units_act(ret, UNITS_DROP, number, gen);
	units_act(ret, UNITS_LOG_GAVE, number, gen);
	if (!units->is_closing) {
		unit_ask(units, number, now_ns, ret);
	} else if (unit->is_wanted) {
		unit->is_wanted = false;
		units_act(ret, UNITS_FAIL, number, 0);
	}
}

static void send_give(struct units *units, uint32_t number, uint64_t now_ns,
		      struct units_actions *ret)
{
	unit_due(units, &units->list[number], now_ns + units->config->repeat_ns);
	units_act(ret, UNITS_SEND_GIVE, number, units->list[number].offer);
}

void units_drained(struct units *units, uint32_t number, uint64_t now_ns, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	ret->n = 0;
	if (units->mode == UNITS_STOPPED || unit->state != UNIT_DRAINING)
		return;
	/* The peer that asked may have gone meanwhile. */
	if (!is_talking(units) || (!unit->is_asked && !units->is_closing)) {
		unit_open(units, number, ret);
		return;
	}
	unit_set(units, unit, UNIT_GIVING);
	unit->is_asked = false;
	unit->offer = unit_seen(unit) + 1;
	send_give(units, number, now_ns, ret);
}

static void on_ask(struct units *units, const struct units_message *message, uint64_t now_ns,
		   struct units_actions *ret)
{
	struct unit *unit = &units->list[message->unit];

	/* An old one is of a time when the unit was here by another generation. */
	if ((unit->state != UNIT_OWNED && unit->state != UNIT_DRAINING) ||
	    message->gen != unit->gen)
		return;
	unit->is_asked = true;
	unit->asked_for = message->birth;
	consider(units, message->unit, &(uint32_t){ 0 }, now_ns, ret);
}

static void on_offer(struct units *units, uint32_t number, uint64_t gen, struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (gen <= unit_seen(unit) || units->is_closing || units->is_full) {
		if (gen > unit->offer)
			unit->offer = gen;
		units_act(ret, UNITS_SEND_REFUSE, number, gen);
		return;
	}
	unit_set(units, unit, UNIT_TAKING);
	unit->gen = gen;
	unit->due_ns = NEVER;
	units_act(ret, UNITS_LOG_TAKEN, number, gen);
}

static void on_give(struct units *units, const struct units_message *message,
		    struct units_actions *ret)
{
	struct unit *unit = &units->list[message->unit];

	if (message->flag && units->config->is_target && units->mode == UNITS_SHARED)
		units->is_closing = false;
	switch (unit->state) {
	case UNIT_OWNED:
	case UNIT_DRAINING:
	case UNIT_GIVING:
		/* GOT was lost. If this is given back already, the peer needs it first. */
		if (message->gen == unit->gen)
			units_act(ret, UNITS_SEND_GOT, message->unit, unit->gen);
		break;
	case UNIT_AWAY:
		on_offer(units, message->unit, message->gen, ret);
		break;
	default:
		break;
	}
}

static void on_got(struct units *units, uint32_t number, uint64_t gen, uint64_t now_ns,
		   struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (unit->state != UNIT_GIVING || gen != unit->offer)
		return;
	unit_gone(units, number, gen, now_ns, ret);
	units_push(units, now_ns, ret);
}

static void on_refuse(struct units *units, uint32_t number, uint64_t gen, uint64_t now_ns,
		      struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (unit->state != UNIT_GIVING || gen != unit->offer)
		return;
	units->stats.refused++;
	unit->ready_ns = now_ns + units->config->repeat_ns;
	unit_open(units, number, ret);
	units_push(units, now_ns, ret);
}

/* The peer has closed for good, so it has nothing and takes nothing: what is in GIVING is here. */
static void on_bye(struct units *units, struct units_actions *ret)
{
	if (units->mode == UNITS_ALONE)
		units_act(ret, UNITS_SEND_BYE_GOT, 0, 0);
	if (units->mode != UNITS_SHARED)
		return;
	units->is_closing = false;
	units->top = 0;
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		const struct unit *unit = &units->list[u];

		if (unit->state < UNIT_OWNED) {
			units_halt(units, ret);
			return;
		}
		if (units->top <= unit_seen(unit))
			units->top = unit_seen(unit) + 1;
	}
	units->mode = UNITS_SETTLING;
	units_act(ret, UNITS_LOG_ALONE, 0, units->top);
}

void units_receive(struct units *units, const struct units_message *message,
		   const struct units_entry *table, uint64_t now_ns, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode == UNITS_STOPPED || units->mode == UNITS_SHARING)
		return;
	if (message->kind == UNITS_HELLO) {
		units_hello(units, message, table, now_ns, ret);
		return;
	}
	if (!units->is_synced || message->from != units->peer ||
	    message->to != units->incarnation || message->unit >= units->config->n_units) {
		/* Greets nobody by itself; the peer may have closed, and wait to be answered. */
		if (units->mode == UNITS_ALONE)
			units_act(ret, UNITS_SEND_HELLO, 0, 0);
		return;
	}
	units->fence_ns = NEVER;
	if (message->kind == UNITS_BYE) {
		on_bye(units, ret);
	} else if (message->kind == UNITS_BYE_GOT && units->mode == UNITS_CLOSED) {
		units->mode = UNITS_ENDED;
		units->greet_ns = NEVER;
		units_act(ret, UNITS_OVER, 0, 0);
	}
	/* A node that is leaving or has left has units in AWAY only, and refuses. */
	if (units->mode != UNITS_SHARED && message->kind != UNITS_GIVE)
		return;
	if (message->kind == UNITS_ASK)
		on_ask(units, message, now_ns, ret);
	else if (message->kind == UNITS_GIVE)
		on_give(units, message, ret);
	else if (message->kind == UNITS_GOT)
		on_got(units, message->unit, message->gen, now_ns, ret);
	else if (message->kind == UNITS_REFUSE)
		on_refuse(units, message->unit, message->gen, now_ns, ret);
}

void units_here(struct units *units, uint32_t number, uint64_t birth, uint64_t now_ns,
		struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	ret->n = 0;
	unit->here = birth;
	unit->is_wanted &= birth != 0;
	if (unit->is_asked)
		consider(units, number, &(uint32_t){ 0 }, now_ns, ret);
}

enum units_answer units_want(struct units *units, uint32_t number, uint64_t now_ns,
			     struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	ret->n = 0;
	if (units->mode >= UNITS_LEAVING)
		return UNITS_GONE;
	if (unit->state == UNIT_OWNED)
		return UNITS_GO;
	if (units->is_closing)
		return UNITS_GONE;
	/* The peer may keep the unit for transactions of its own that are not older any more. */
	if (!unit->is_wanted || gate_is_older(unit->here, unit->said)) {
		unit->is_wanted = true;
		unit_ask(units, number, now_ns, ret);
	}
	return UNITS_WAIT;
}

void units_full(struct units *units, bool is_full, uint64_t now_ns, struct units_actions *ret)
{
	ret->n = 0;
	units->is_full = is_full;
	for (uint32_t u = 0; !is_full && u < units->config->n_units; u++)
		unit_ask(units, u, now_ns, ret);
}

void units_spoil(struct units *units, uint32_t number, uint64_t gen)
{
	struct unit *unit = &units->list[number];

	if (unit->state == UNIT_AWAY && gen > unit->offer)
		unit->offer = gen;
}

void units_close(struct units *units, uint64_t now_ns, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode != UNITS_SHARED)
		return;
	units->is_closing = true;
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		struct unit *unit = &units->list[u];

		if (!unit->is_wanted || unit->state == UNIT_TAKING)
			continue;
		unit->is_wanted = false;
		units_act(ret, UNITS_FAIL, u, 0);
		if (unit->state == UNIT_AWAY)
			unit->due_ns = NEVER;
	}
	units_push(units, now_ns, ret);
}

void units_stay(struct units *units, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode == UNITS_SHARED)
		units->is_closing = false;
}

static void taken(struct units *units, uint32_t number, uint64_t gen, uint64_t now_ns,
		  struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	/* Another generation: the peer was fenced meanwhile, and ALONE is being forced. */
	if (unit->state != UNIT_TAKING || gen != unit->gen)
		return;
	units->stats.taken++;
	units->stats.taken_back += unit->has_left;
	unit->ready_ns = now_ns + units->config->hold_ns;
	units_act(ret, UNITS_SEND_GOT, number, gen);
	unit_open(units, number, ret);
	units_push(units, now_ns, ret);
}

static void alone(struct units *units, struct units_actions *ret)
{
	units->mode = UNITS_ALONE;
	units->is_closing = false;
	units->fence_ns = NEVER;
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		struct unit *unit = &units->list[u];

		unit->gen = units->top;
		if (unit->state != UNIT_OWNED)
			unit_open(units, u, ret);
	}
	/* The peer has said BYE, unless it was fenced. */
	if (units->is_synced)
		units_act(ret, UNITS_SEND_BYE_GOT, 0, 0);
}

void units_logged(struct units *units, enum units_do what, uint32_t number, uint64_t gen,
		  bool is_on_disk, uint64_t now_ns, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode == UNITS_STOPPED)
		return;
	if (!is_on_disk) {
		units_halt(units, ret);
	} else if (what == UNITS_LOG_TAKEN) {
		taken(units, number, gen, now_ns, ret);
	} else if (what == UNITS_LOG_SHARED && units->mode == UNITS_SHARING) {
		units->mode = UNITS_SHARED;
		units->greet_ns = now_ns;
		units->fence_ns = now_ns + units->config->fence_ns;
	} else if (what == UNITS_LOG_ALONE && units->mode == UNITS_SETTLING) {
		alone(units, ret);
	} else if (what == UNITS_LOG_CLOSED && units->mode == UNITS_LEAVING) {
		units->mode = UNITS_CLOSED;
		units->fence_ns = NEVER;
		units->greet_ns = now_ns;
	}
}

static void unit_tick(struct units *units, uint32_t number, uint64_t now_ns,
		      struct units_actions *ret)
{
	struct unit *unit = &units->list[number];

	if (now_ns < unit->due_ns)
		return;
	unit->due_ns = NEVER;
	if (unit->state == UNIT_AWAY)
		unit_ask(units, number, now_ns, ret);
	else if (unit->state == UNIT_GIVING)
		send_give(units, number, now_ns, ret);
	else if (unit->is_asked)
		consider(units, number, &(uint32_t){ 0 }, now_ns, ret);
}

/* A node that has nothing leaves the decision to others: it would take over from one that works. */
static bool has_any(const struct units *units)
{
	for (uint32_t u = 0; u < units->config->n_units; u++) {
		const struct unit *unit = &units->list[u];

		if (unit->state == UNIT_UNKNOWN ? unit->is_mine : unit->state >= UNIT_OWNED)
			return true;
	}
	return false;
}

void units_tick(struct units *units, uint64_t now_ns, struct units_actions *ret)
{
	ret->n = 0;
	if (units->mode == UNITS_STOPPED)
		return;
	if (now_ns >= units->greet_ns) {
		units->greet_ns = now_ns + units->config->repeat_ns;
		units_act(ret, units->is_synced ? UNITS_SEND_BYE : UNITS_SEND_HELLO, 0, 0);
	}
	if (units->mode == UNITS_SHARED && now_ns >= units->fence_ns) {
		units->fence_ns = now_ns + units->config->fence_ns;
		if (has_any(units))
			units_act(ret, UNITS_FENCE, 0, 0);
	}
	if (!is_talking(units))
		return;
	if (now_ns >= units->due_ns) {
		units->due_ns = NEVER;
		for (uint32_t u = 0; u < units->config->n_units; u++) {
			unit_tick(units, u, now_ns, ret);
			unit_due(units, &units->list[u], units->list[u].due_ns);
		}
	}
	units_push(units, now_ns, ret);
}

uint64_t units_next_ns(const struct units *units)
{
	uint64_t next = units->greet_ns;

	if (units->mode == UNITS_STOPPED)
		return NEVER;
	if (units->mode == UNITS_SHARED && units->fence_ns < next)
		next = units->fence_ns;
	if (is_talking(units) && units->due_ns < next)
		next = units->due_ns;
	return next;
}

struct units_message units_message(const struct units *units, const struct units_action *action)
{
	static const uint8_t kinds[] = {
		[UNITS_SEND_HELLO] = UNITS_HELLO, [UNITS_SEND_ASK] = UNITS_ASK,
		[UNITS_SEND_GIVE] = UNITS_GIVE, [UNITS_SEND_GOT] = UNITS_GOT,
		[UNITS_SEND_REFUSE] = UNITS_REFUSE, [UNITS_SEND_BYE] = UNITS_BYE,
		[UNITS_SEND_BYE_GOT] = UNITS_BYE_GOT,
	};

	assert(action->what < sizeof(kinds));
	return (struct units_message){
		.from = units->incarnation,
		.to = units->peer,
		.gen = action->gen,
		.unit = action->unit,
		.kind = kinds[action->what],
		.flag = action->what == UNITS_SEND_HELLO ? units->is_synced :
			action->what == UNITS_SEND_GIVE && units->is_closing,
		.birth = action->what == UNITS_SEND_ASK ? units->list[action->unit].here : 0,
	};
}
