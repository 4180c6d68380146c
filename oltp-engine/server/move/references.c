// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values that stay on the peer's volume: a record that comes with the place of its value is put
 * with the value, which is read from the peer's device first. All values of a frame are read at the
 * same time, while the thread does what else there is; the frame is handled once all have been
 * read.
 *
 * So nothing of a reference outlives its frame, and TAKEN is on disk only with the values: the
 * peer's volume is not needed once it has got GOT. What cannot be read, or is not what the place
 * was made for, spoils the unit: it is refused, and comes with its values (WIRE_FLAG_VALUES).
 */
#include <errno.h>
#include <stdlib.h>

#include "oltp-engine/server/move/private.h"

/* A disk that takes longer counts as one that cannot be read. */
#define READ_NS	2000000000ull

/* kv_unit_put says what is wrong with records that are not whole. */
static bool is_reference(const uint8_t *record, uint32_t bytes, struct oltp_place_read *ret_read)
{
	return kv_record_bytes(record, bytes) == bytes && kv_record_refers(record, ret_read);
}

static uint32_t count(const struct wire_message *message)
{
	struct oltp_place_read read;
	struct wire_record record;
	const uint8_t *bytes;
	uint32_t at = 0, n = 0;

	while (wire_record_next(message, &at, &record, &bytes))
		n += is_reference(bytes, record.bytes, &read);
	return n;
}

static int begin(struct move *m, const struct wire_message *message)
{
	struct references *r = &m->references;
	struct wire_record record;
	const uint8_t *bytes;
	uint32_t at = 0, n = 0;
	int rc = 0;

	if (!m->config.peer_volume)
		return -ENXIO;
	if (!r->places)
		rc = oltp_places_open(m->config.peer_volume, &r->places);
	if (rc)
		return rc;
	if (!r->reads)
		r->reads = calloc(MOVE_REFERENCES_MAX, sizeof(*r->reads));
	if (!r->record)
		r->record = malloc(KV_RECORD_MAX);
	if (!r->reads || !r->record)
		return -ENOMEM;
	while (wire_record_next(message, &at, &record, &bytes))
		n += is_reference(bytes, record.bytes, &r->reads[n]);
	r->at = 0;
	return oltp_places_begin(r->places, r->reads, n);
}

static bool are_reads_through(struct references *r)
{
	if (r->places && !oltp_places_poll(r->places, false))
		return false;
	r->is_stuck = false;
	return true;
}

static void fail(struct references *r, int error)
{
	r->state = REFERENCES_FAILED;
	r->error = error;
}

/* Reads of a frame that does not count any more may still be under way. */
static void look(struct move *m, const struct wire_message *message)
{
	struct references *r = &m->references;
	bool is_through = are_reads_through(r);
	int rc;

	if (r->state == REFERENCES_READING && is_through) {
		r->state = REFERENCES_READ;
	} else if (r->state == REFERENCES_WAITING && is_through) {
		rc = begin(m, message);
		r->state = REFERENCES_READING;
		if (rc)
			fail(r, rc);
	} else if (r->is_stuck || move_now_ns() >= r->since_ns + READ_NS) {
		r->is_stuck = true;
		fail(r, -ETIMEDOUT);
	}
}

int move_references_read(struct move *m, const struct wire_message *message)
{
	struct references *r = &m->references;

	if (r->state == REFERENCES_NONE) {
		uint32_t n = count(message);

		if (!n || n > MOVE_REFERENCES_MAX)
			return n ? -EPROTO : 0;
		r->state = REFERENCES_WAITING;
		r->since_ns = move_now_ns();
	}
	if (r->state == REFERENCES_WAITING || r->state == REFERENCES_READING)
		look(m, message);
	return r->state == REFERENCES_WAITING || r->state == REFERENCES_READING;
}

const uint8_t *move_references_next(struct move *m, const uint8_t *record, uint32_t *bytes)
{
	struct references *r = &m->references;
	struct oltp_place_read told;
	int rc = r->error;

	if (r->state == REFERENCES_NONE || !is_reference(record, *bytes, &told))
		return record;
	if (r->state == REFERENCES_READ)
		rc = r->reads[r->at].rc;
	if (rc) {
		move_note_error(m, rc);
		return NULL;
	}
	*bytes = kv_record_resolve(record, r->reads[r->at++].record, r->record);
	pthread_mutex_lock(&m->lock);
	m->stats.references_read++;
	pthread_mutex_unlock(&m->lock);
	return r->record;
}

void move_references_end(struct move *m)
{
	m->references.state = REFERENCES_NONE;
	m->references.error = 0;
}

bool move_references_wait(const struct move *m)
{
	const struct references *r = &m->references;

	return m->has_frames &&
	       (r->state == REFERENCES_WAITING || r->state == REFERENCES_READING) &&
	       r->places && !oltp_places_poll(r->places, false);
}

void move_references_finish(struct move *m)
{
	oltp_places_close(m->references.places);
	free(m->references.reads);
	free(m->references.record);
}
