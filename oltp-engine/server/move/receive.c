// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames of the peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/server/move/private.h"

#define FULL_NS	1000000000ull

/* Parts that were sent to an earlier life of this node do not count, as their GIVE does not. */
static bool is_of_peers_unit(const struct move *m, const struct wire_header *header)
{
	return m->units.is_synced && header->from == m->units.peer &&
	       header->to == m->units.incarnation && m->list[header->unit].state == UNIT_AWAY;
}

/* Whether the unit is the peer's, and a GIVE of that generation would be taken. */
static bool is_awaited(const struct move *m, const struct wire_header *header)
{
	const struct unit *unit = &m->list[header->unit];

	return is_of_peers_unit(m, header) && header->gen > unit->gen && header->gen > unit->offer;
}

/*
 * The first that is heard of a generation: nothing of the unit is here then, but with DELTA what
 * came ahead or was kept. 1: something is left, try again.
 */
static int begin_put(struct move *m, const struct wire_header *header)
{
	struct place *place = &m->places[header->unit];
	int rc;

	if (place->put_gen == header->gen)
		return 0;
	if (!(header->flags & WIRE_FLAG_DELTA)) {
		rc = move_remove_part(m, header->unit);
		if (rc)
			return rc;
		place->is_full = place->is_unread = false;
	}
	/* It was removed, for want of memory, after the peer had seen it here: all has to come. */
	place->is_spoilt = header->flags & WIRE_FLAG_DELTA &&
			   (!place->came_gen || place->came_gen != m->list[header->unit].gen);
	place->put_gen = header->gen;
	place->put = (struct kv_unit_put){ 0 };
	place->n_put = 0;
	return 0;
}

/* The unit will be refused, so its further records are only counted. */
static bool is_lacking(const struct place *place)
{
	return place->is_full || place->is_spoilt || place->is_unread;
}

/* Puts in one transaction what was collected. Without memory the unit will be refused. */
static int put_collected(struct move *m, const struct wire_header *header)
{
	struct place *place = &m->places[header->unit];
	struct collected *c = &m->collected;
	int rc = 0;

	if (c->n_records && !is_lacking(place)) {
		do
			rc = kv_unit_put(m->kv, m->worker, header->unit, &place->put, c->bytes,
					 c->n);
		while (rc == -ENOMEM && !(header->flags & WIRE_FLAG_AHEAD) &&
		       move_copy_make_room(m, header->unit));
	}
	if (rc == -ENOMEM) {
		place->is_full = true;
		rc = 0;
	}
	c->n = c->n_records = 0;
	return rc;
}

/* A record with its value, which may be longer than it came. */
static int collect(struct move *m, const struct wire_header *header, const uint8_t *record,
		   uint32_t bytes)
{
	struct collected *c = &m->collected;
	int rc = 0;

	if (c->n_records == KV_UNIT_PUTS || c->n + bytes > WIRE_PAYLOAD_MAX)
		rc = put_collected(m, header);
	if (rc)
		return rc;
	memcpy(c->bytes + c->n, record, bytes);
	c->n += bytes;
	c->n_records++;
	return 0;
}

/* The unit will be refused if values could not be read. 1: try again. */
static int put_records(struct move *m, const struct wire_message *message)
{
	struct place *place = &m->places[message->header.unit];
	struct collected *c = &m->collected;
	struct wire_record record;
	const uint8_t *bytes;
	uint32_t at = 0;
	int rc;

	if (!c->bytes)
		c->bytes = malloc(WIRE_PAYLOAD_MAX);
	if (!c->bytes)
		return -ENOMEM;
	rc = is_lacking(place) ? 0 : move_references_read(m, message);
	if (rc)
		return rc;
	while (!rc && wire_record_next(message, &at, &record, &bytes)) {
		uint32_t n = record.bytes;

		place->n_put++;
		bytes = is_lacking(place) ? NULL : move_references_next(m, bytes, &n);
		if (bytes)
			rc = collect(m, &message->header, bytes, n);
		else
			place->is_unread |= !is_lacking(place);
		pthread_mutex_lock(&m->lock);
		m->stats.records_received++;
		m->stats.bytes_received += record.bytes;
		pthread_mutex_unlock(&m->lock);
	}
	return rc ?: put_collected(m, &message->header);
}

/* 1: as begin_put. */
static int clear(struct move *m, const struct wire_message *message)
{
	uint32_t unit = message->header.unit, page = message->header.n;
	struct place *place = &m->places[unit];
	int rc;

	if (page != WIRE_CLEAR_ALL) {
		if (page >= KV_PAGES || place->put.fields_left)
			return -EPROTO;
		return is_lacking(place) ? 0 :
		       kv_page_remove(m->kv, m->worker, unit, page);
	}
	rc = move_remove_part(m, unit);
	if (rc)
		return rc;
	place->came_gen = message->header.gen;
	place->put_gen = 0;
	place->put = (struct kv_unit_put){ 0 };
	place->is_full = place->is_spoilt = place->is_unread = false;
	m->copy.has_kept = true;
	return 0;
}

/* 1: as begin_put. */
static int put(struct move *m, const struct wire_message *message)
{
	const struct wire_header *header = &message->header;
	bool begins = header->type == WIRE_CLEAR && header->n == WIRE_CLEAR_ALL;
	int rc = 0;

	if (header->flags & WIRE_FLAG_AHEAD) {
		if (!is_of_peers_unit(m, header) || header->gen != m->list[header->unit].gen ||
		    (!begins && m->places[header->unit].came_gen != header->gen))
			return 0;
	} else {
		if (!is_awaited(m, header))
			return 0;
		rc = begin_put(m, header);
	}
	if (rc)
		return rc;
	return header->type == WIRE_CLEAR ? clear(m, message) : put_records(m, message);
}

/* Whether all is here that a GIVE is about. 1: as begin_put. */
static int check_give(struct move *m, const struct wire_message *message)
{
	struct place *place = &m->places[message->header.unit];
	int rc;

	if (!is_awaited(m, &message->header))
		return 0;
	rc = begin_put(m, &message->header);
	if (rc)
		return rc;
	place->came_gen = 0;
	if (place->n_put > message->header.n)
		return -EPROTO;
	/*
	 * Some came while this node still gave the unit itself, and were not looked at: GOT of an
	 * earlier generation was lost with the last connection, and comes after them.
	 */
	if (place->n_put < message->header.n)
		place->is_spoilt = true;
	if (place->is_unread) {
		place->wants_values = true;
		pthread_mutex_lock(&m->lock);
		m->stats.units_unread++;
		pthread_mutex_unlock(&m->lock);
	}
	if (place->is_spoilt || place->is_unread) {
		units_spoil(&m->units, message->header.unit, message->header.gen);
	} else if (place->is_full) {
		m->full_ns = move_now_ns() + FULL_NS;
		units_full(&m->units, true, move_now_ns(), &m->actions);
		move_act(m);
	} else if (place->put.fields_left) {
		return -EPROTO;
	}
	return 0;
}

/* Units that were this node's by its log, and of which the first HELLO says that they went. */
static void find_junk(struct move *m)
{
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		if (m->list[u].state == UNIT_UNKNOWN)
			continue;
		if (m->places[u].is_left && m->list[u].state == UNIT_AWAY)
			move_mark_junk(m, u);
		m->places[u].is_left = false;
	}
}

/* 1: the frame is to be handled again. */
static int handle(struct move *m, const struct wire_message *message)
{
	uint64_t peer = m->units.peer;
	struct units_message told;
	int rc;

	if (message->header.type == WIRE_RECORDS || message->header.type == WIRE_CLEAR)
		return put(m, message);
	if (message->header.type == WIRE_TIMES) {
		m->heard_ns = move_now_ns();
		pthread_mutex_lock(&m->lock);
		m->stats.peer_times = wire_drain_times(message);
		m->stats.peer_times_ns = move_now_ns();
		pthread_mutex_unlock(&m->lock);
		return 0;
	}
	if (message->header.type == UNITS_GIVE) {
		rc = check_give(m, message);
		if (rc)
			return rc;
	}
	if (message->header.type == UNITS_REFUSE && message->header.flags & WIRE_FLAG_VALUES)
		m->places[message->header.unit].sends_values = true;
	/* What went ahead will not count there any more. */
	if (message->header.type == UNITS_REFUSE ||
	    (message->header.type == UNITS_ASK && !(message->header.flags & WIRE_FLAG_COPY)))
		m->places[message->header.unit].ahead_gen = 0;
	told = wire_units_message(message, m->table);
	if (told.kind == UNITS_ASK)
		gates_heard(&m->gates, told.birth);
	if (told.kind == UNITS_ASK || told.kind == UNITS_GOT)
		move_here(m, told.unit);
	if (told.kind == UNITS_ASK && m->list[told.unit].state == UNIT_OWNED &&
	    m->places[told.unit].giving.now == MOVE_PHASES)
		trace_begin(&m->places[told.unit].giving, MOVE_HELD, move_now_ns());
	units_receive(&m->units, &told, m->table, move_now_ns(), &m->actions);
	m->keeps_asked |= told.kind == UNITS_ASK && m->list[told.unit].is_asked &&
			  m->list[told.unit].state == UNIT_OWNED;
	/*
	 * A unit that goes on to a peer that has restarted would be taken there, while the table
	 * that is on its way says that the peer does not have it: it would have two owners.
	 */
	for (uint32_t u = 0; m->units.peer != peer && u < m->terms.n_units; u++)
		move_send_stop(m, u);
	if (told.kind == UNITS_HELLO) {
		m->heard_ns = move_now_ns();
		find_junk(m);
	}
	move_act(m);
	return 0;
}

void move_lost(struct move *m, int error)
{
	channel_close(&m->channel);
	/* On the next connection all records are sent again. */
	for (uint32_t u = 0; u < m->terms.n_units; u++) {
		m->places[u].put_gen = 0;
		if (m->places[u].came_gen)
			move_mark_junk(m, u);
		move_send_stop(m, u);
	}
	m->has_frames = false;
	move_references_end(m);
	if (error)
		move_note_error(m, error);
	units_peer_lost(&m->units, move_now_ns());
}

void move_receive(struct move *m)
{
	bool is_open = channel_read(&m->channel);
	struct channel *c = &m->channel;
	int n = 1, rc = 0;

	m->has_frames = false;
	while (c->fd >= 0 && n > 0 && !m->has_frames) {
		struct wire_message message;

		n = wire_parse(&m->terms, c->in + c->in_from, c->n_in - c->in_from, &message);
		if (n <= 0)
			break;
		rc = handle(m, &message);
		if (rc < 0)
			break;
		/* Neither the connection nor other units wait until all records were put. */
		m->has_frames = rc > 0 || message.header.type == WIRE_RECORDS;
		/* It may have been closed. */
		if (!rc && c->fd >= 0)
			channel_used(c, (size_t)n);
		if (!rc)
			move_references_end(m);
		move_settle(m);
	}
	if (n < 0 || rc < 0)
		move_lost(m, rc < 0 ? rc : n);
	else if (!is_open && !m->has_frames)
		move_lost(m, 0);
}
