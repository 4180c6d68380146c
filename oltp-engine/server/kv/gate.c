// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which units a command needs, while two nodes own parts of the database (relocate/units.h). They
 * are known before its transaction begins, from its keys: so it pins them all, or waits with none
 * of the engine's locks held. It keeps them until it has ended, attempts that are run again
 * included.
 *
 * A procedure may also meet keys that follow from what it reads. It pins their units one by one,
 * and never waits for one (relocate/gate.h, G1): if one is not here, the transaction is aborted,
 * all pins are let go, and it waits for these units together with those that it had.
 *
 * Commands that may meet any key: as long as all units are here they pin all. Else SCAN and
 * FLUSHALL take one unit after the other, each call the one of its cursor; DBSIZE, KEYS and
 * RANDOMKEY answer an error, since they would need all units at once.
 */
#include <stdlib.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/private.h"

uint32_t unit_of(const struct kv *kv, uint64_t hash)
{
	return kv->unit_bits ? (uint32_t)(hash >> (64 - kv->unit_bits)) : 0;
}

struct oltp_range unit_range(const struct kv *kv, uint32_t unit)
{
	uint64_t rows = 1ull << (63 - kv->unit_bits);

	return (struct oltp_range){
		.from = KEYSPACE_KEYS_FIRST + unit * rows,
		.to = KEYSPACE_KEYS_FIRST + unit * rows + (rows - 1),
	};
}

struct oltp_range keys_from(const struct call *c, uint64_t sort_key)
{
	struct oltp_range keys = { .from = KEYSPACE_KEYS_FIRST, .to = UINT64_MAX };

	/* A bit above those of the slot: KEYSPACE_KEYS_FIRST. */
	if (c->kv->gate && !c->s->pins_all)
		keys = unit_range(c->kv, unit_of(c->kv, sort_key << 1));
	if (sort_key > keys.from)
		keys.from = sort_key;
	return keys;
}

enum oltp_rc needs_all_keys(struct call *c)
{
	if (!c->kv->gate || c->s->pins_all)
		return OLTP_OK;
	return answer_error(c, "TRYAGAIN the database is moving, and its keys are on two nodes");
}

/* Returns false if there is no memory. */
static bool add_unit(struct kv_pins *pins, uint32_t unit)
{
	if (pins->n == pins->room) {
		uint32_t room = pins->room ? 2 * pins->room : 8;
		uint32_t *units = realloc(pins->units, room * sizeof(*units));

		if (!units)
			return false;
		pins->units = units;
		pins->room = room;
	}
	pins->units[pins->n++] = unit;
	return true;
}

/* One too long is refused by the command itself. */
static bool add_key(struct call *c, const struct resp_arg *name)
{
	if (name->n > KV_NAME_MAX)
		return true;
	return add_unit(&c->s->pins, unit_of(c->kv, keyspace_home(&c->kv->ks, OWNER_KEYS, name)));
}

static bool add_all_keys(struct call *c, const struct command *command,
			 const struct resp_arg *args)
{
	uint64_t sort_key = 0;

	if (c->s->pins_all) {
		bool has_memory = true;

		/* EXEC may have many such commands. */
		if (c->has_all_units)
			return true;
		for (uint32_t u = 0; has_memory && u < 1u << c->kv->unit_bits; u++)
			has_memory = add_unit(&c->s->pins, u);
		c->has_all_units = true;
		return has_memory;
	}
	if (command->run == cmd_flush)
		sort_key = c->flush_from;
	else if (command->run != cmd_scan ||
		 !number_parse_unsigned(args[1].bytes, args[1].n, &sort_key))
		return true;
	return add_unit(&c->s->pins, unit_of(c->kv, sort_key << 1));
}

static bool add_command(struct call *c, const struct command *command,
			const struct resp_arg *args, uint32_t n)
{
	uint32_t first = (uint32_t)command->first_key, last = n - 1, step = 1;
	bool has_memory = true;
	int64_t n_keys;

	if (command->flags & CMD_ALL_KEYS)
		return add_all_keys(c, command, args);
	if (command->run == cmd_fcall || command->run == cmd_fcall_ro) {
		/* With a wrong number it is refused. */
		if (!number_parse(args[2].bytes, args[2].n, &n_keys) || n_keys < 0 ||
		    n_keys > (int64_t)n - 3)
			return true;
		first = 3;
		last = 2 + (uint32_t)n_keys;
	} else if (!first) {
		return true;
	} else {
		step = (uint32_t)command->key_step;
		last = command->last_key < 0 ? n - (uint32_t)-command->last_key :
					       (uint32_t)command->last_key;
	}
	for (uint32_t i = first; has_memory && i <= last; i += step)
		has_memory = add_key(c, &args[i]);
	return has_memory;
}

static bool add_exec(struct call *c)
{
	bool has_memory = true;

	for (uint32_t i = 0; has_memory && i < c->s->n_watched; i++) {
		const struct watched *watched = &c->s->watched[i];
		const struct resp_arg name = { watched->name, watched->n };

		has_memory = add_key(c, &name);
	}
	for (const struct queued *q = c->s->first; has_memory && q; q = q->next)
		has_memory = add_command(c, q->command, q->args, q->n_args);
	return has_memory;
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void sort(struct kv_pins *pins)
{
	uint32_t n = 0;

	if (pins->n > 1)
		qsort(pins->units, pins->n, sizeof(*pins->units), compare);
	for (uint32_t i = 0; i < pins->n; i++) {
		if (!n || pins->units[n - 1] != pins->units[i])
			pins->units[n++] = pins->units[i];
	}
	pins->n = n;
}

bool call_enter(struct call *c)
{
	struct kv_pins *pins = &c->s->pins;
	bool has_memory;

	if (!c->kv->gate || !(c->command->flags & CMD_TXN))
		return true;
	if (pins->state == KV_GATE_OUT) {
		if (!c->s->has_met) {
			pins->n = 0;
			pins->birth = 0;
		}
		pins->epoch = 0;
		c->s->pins_all = c->kv->gate->is_whole(c->kv->gate_ctx);
		has_memory = c->command->run == cmd_exec ?
			     add_exec(c) : add_command(c, c->command, c->args, c->n);
		if (!has_memory) {
			resp_out_error(c->out, "OOM no memory to run the command");
			return false;
		}
		sort(pins);
	}
	if (pins->state == KV_GATE_IN)
		return true;
	switch (c->kv->gate->enter(c->kv->gate_ctx, pins)) {
	case KV_GATE_IN:
		return true;
	case KV_GATE_WAIT:
		c->after = KV_WAIT;
		return false;
	default:
		session_leave(c->s);
		c->after = KV_CLOSE;
		resp_out_error(c->out, "TRYAGAIN the database has moved to another node");
		return false;
	}
}

enum oltp_rc call_need(struct call *c, const struct resp_arg *name)
{
	struct kv_pins *pins = &c->s->pins;
	uint32_t unit;

	if (!c->kv->gate)
		return OLTP_OK;
	unit = unit_of(c->kv, keyspace_home(&c->kv->ks, OWNER_KEYS, name));
	for (uint32_t i = 0; i < pins->n; i++) {
		if (pins->units[i] == unit)
			return i < pins->n_pinned ? OLTP_OK : KV_MORE;
	}
	if (!add_unit(pins, unit))
		return OLTP_NO_MEMORY;
	/* Behind one that is not here it is only remembered. */
	if (pins->n_pinned + 1 == pins->n && c->kv->gate->pin(c->kv->gate_ctx, pins))
		return OLTP_OK;
	return KV_MORE;
}

bool call_enter_again(struct call *c)
{
	session_leave(c->s);
	c->s->has_met = true;
	return call_enter(c);
}

void kv_session_stop_waiting(struct kv_session *s)
{
	session_leave(s);
}

void session_leave(struct kv_session *s)
{
	s->has_met = false;
	if (s->pins.state != KV_GATE_OUT)
		s->kv->gate->leave(s->kv->gate_ctx, &s->pins);
}
