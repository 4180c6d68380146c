// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What goes to the peer. The records of a unit go in parts of one transaction, when less than
 * BACKLOG_BYTES wait for the socket: so a unit of any size needs the memory of a few parts, and
 * between two of them the thread does what else there is. Units that go at the same time take
 * turns, or a small one would wait for a large one. A unit with cold records waits for them while
 * others go: the thread itself does not wait for the disk.
 */
#include <errno.h>

#include "oltp-engine/server/move/private.h"

#define BACKLOG_BYTES	WIRE_PAYLOAD_MAX
/* So much goes before the thread looks at what else there is. */
#define TOGETHER_BYTES	16384u
/* How often the thread looks whether cold records have come. */
#define POLL_NS		200000ull

void move_end_giving(struct move *m, uint32_t unit, enum move_phase phase)
{
	trace_end(&m->places[unit].giving, m->phases, phase, move_now_ns());
}

void move_end_taking(struct move *m, uint32_t unit, enum move_phase phase)
{
	trace_end(&m->places[unit].taking, m->phases, phase, move_now_ns());
}

static void put_message(struct move *m, const struct units_message *message)
{
	uint8_t *at = channel_reserve(&m->channel, WIRE_MESSAGE_MAX(m->terms.n_units));
	bool is_give = message->kind == UNITS_GIVE;
	uint32_t records = is_give ? m->places[message->unit].n_sent : 0;
	uint32_t flags = 0;

	if (!at) {
		move_lost(m, -ENOMEM);
		return;
	}
	if (is_give && m->places[message->unit].is_delta)
		flags = WIRE_FLAG_DELTA;
	else if (message->kind == UNITS_ASK && m->places[message->unit].came_gen == message->gen)
		flags = WIRE_FLAG_COPY;
	else if (message->kind == UNITS_REFUSE && m->places[message->unit].wants_values)
		flags = WIRE_FLAG_VALUES;
	channel_add(&m->channel, wire_put_message(&m->terms, &m->units, message, records, flags,
						  at));
	if (is_give)
		move_end_giving(m, message->unit, MOVE_SENT);
	else if (message->kind == UNITS_ASK)
		move_end_taking(m, message->unit, MOVE_NOTICED);
}

static bool is_sending(const struct place *place)
{
	return place->reader || place->sends_stale;
}

bool move_refers(const struct move *m, const struct place *place)
{
	return m->refers && !place->sends_values;
}

/* The records once for each connection, however often GIVE is repeated. */
static void begin_records(struct move *m, uint32_t unit)
{
	struct place *place = &m->places[unit];
	int rc = 0;

	place->is_delta = place->sends_stale = place->ahead_on == m->channel.number &&
			  place->ahead_gen && place->ahead_gen == m->list[unit].gen;
	/* Marks are taken from here on. */
	place->ahead_gen = 0;
	place->page_at = 0;
	if (!place->is_delta)
		rc = kv_unit_read_begin(m->kv, &m->reads, unit, &place->reader);
	if (rc) {
		move_lost(m, rc);
		return;
	}
	if (place->reader && move_refers(m, place))
		kv_unit_read_refer(place->reader);
	place->n_sent = 0;
	m->n_sends++;
}

void move_send(struct move *m, const struct units_action *action)
{
	struct units_message message = units_message(&m->units, action);
	struct place *place = &m->places[message.unit];

	if (m->channel.fd < 0)
		return;
	if (message.kind != UNITS_GIVE ||
	    (place->sent_gen == message.gen && place->sent_on == m->channel.number))
		put_message(m, &message);
	else if (!is_sending(place))
		begin_records(m, message.unit);
}

void move_send_stop(struct move *m, uint32_t unit)
{
	struct place *place = &m->places[unit];

	m->n_sends -= is_sending(place);
	kv_unit_read_end(place->reader);
	place->reader = NULL;
	place->sends_stale = false;
}

void move_end_frame(struct sender *s)
{
	if (s->frame)
		channel_add(&s->m->channel, s->bytes);
	s->frame = NULL;
	s->n_references = 0;
}

int move_send_record(void *ctx, const uint8_t *record, uint32_t bytes)
{
	const struct wire_record head = { .bytes = bytes };
	struct sender *s = ctx;
	struct oltp_place_read read;
	bool refers = kv_record_refers(record, &read);
	uint32_t length;

	if (refers && s->n_references == MOVE_REFERENCES_MAX)
		move_end_frame(s);
	length = s->frame ? wire_records_add(s->frame, &head, record) : 0;
	if (!length) {
		move_end_frame(s);
		s->frame = channel_reserve(&s->m->channel, WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX);
		if (!s->frame)
			return -ENOMEM;
		wire_records_begin(&s->m->terms, &s->give, s->flags, s->frame);
		length = wire_records_add(s->frame, &head, record);
		if (!length)
			return -E2BIG;
	}
	s->bytes = length;
	s->n_references += refers;
	s->n_refer += refers;
	s->n_records++;
	s->n_bytes += bytes;
	return 0;
}

void move_count_sent(const struct sender *s)
{
	struct move *m = s->m;
	uint64_t backlog = channel_backlog(&m->channel);

	pthread_mutex_lock(&m->lock);
	m->stats.records_sent += s->n_records;
	m->stats.bytes_sent += s->n_bytes;
	m->stats.references_sent += s->n_refer;
	if (m->stats.backlog_max < backlog)
		m->stats.backlog_max = backlog;
	pthread_mutex_unlock(&m->lock);
}

/* The unit whose turn it is to send a part; n_units: all of them wait for the disk. */
static uint32_t next_to_send(const struct move *m)
{
	uint32_t n = m->terms.n_units;

	for (uint32_t i = 1; m->n_sends > 0 && i <= n; i++) {
		const struct place *place = &m->places[(m->send_at + i) % n];

		if (is_sending(place) && !(place->reader && kv_unit_read_waits(place->reader)))
			return (m->send_at + i) % n;
	}
	return n;
}

bool move_can_send(const struct move *m)
{
	return m->n_sends > 0 && channel_backlog(&m->channel) < BACKLOG_BYTES &&
	       next_to_send(m) < m->terms.n_units;
}

uint64_t move_cold_wait_ns(const struct move *m)
{
	return m->reads.reading || move_references_wait(m) ? POLL_NS : NEVER;
}

void move_cold_poll(struct move *m)
{
	uint32_t n = 0;

	if (!m->reads.reading)
		return;
	kv_cold_reads_poll(&m->reads);
	for (uint32_t u = 0; u < m->terms.n_units; u++)
		n += m->places[u].reader && kv_unit_read_waits(m->places[u].reader);
	pthread_mutex_lock(&m->lock);
	if (m->stats.cold_units_max < n)
		m->stats.cold_units_max = n;
	pthread_mutex_unlock(&m->lock);
}

static void send_part(struct move *m)
{
	struct units_action give = { .what = UNITS_SEND_GIVE };
	struct sender s = { .m = m };
	struct place *place;
	int rc;

	m->send_at = next_to_send(m);
	place = &m->places[m->send_at];
	give.unit = m->send_at;
	give.gen = m->list[give.unit].offer;
	s.give = units_message(&m->units, &give);
	s.flags = place->is_delta ? WIRE_FLAG_DELTA : 0;
	rc = place->is_delta ? move_send_stale(&s, place) :
	     kv_unit_read_part(place->reader, move_send_record, &s);
	move_end_frame(&s);
	move_count_sent(&s);
	place->n_sent += (uint32_t)s.n_records;
	if (rc == -EAGAIN)
		return;
	if (rc < 0) {
		/* Some have gone; on another connection all begins anew. */
		move_lost(m, rc);
	} else if (!rc) {
		move_send_stop(m, give.unit);
		place->sent_gen = give.gen;
		place->sent_on = m->channel.number;
		put_message(m, &s.give);
	}
}

/* Small units that go at the same time wake the peer, and its log, only once. */
void move_send_parts(struct move *m)
{
	do
		send_part(m);
	while (move_can_send(m) && channel_backlog(&m->channel) < TOGETHER_BYTES);
}
