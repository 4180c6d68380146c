// SPDX-License-Identifier: GPL-2.0-or-later
/* See wire.h. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire.h"

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 7) & ~7u;
}

/* ---- what comes ---- */

static bool has_unit(const struct wire_header *header)
{
	return (header->type >= UNITS_ASK && header->type <= UNITS_REFUSE) ||
	       header->type == WIRE_RECORDS || header->type == WIRE_CLEAR;
}

/* All but the payload. */
static bool is_header_good(const struct wire_terms *terms, const struct wire_header *header)
{
	const uint32_t either = WIRE_FLAG_AHEAD | WIRE_FLAG_DELTA;
	uint32_t payload = header->bytes - WIRE_HEADER_BYTES, flags = 0, n = 0, expected = 0;

	switch (header->type) {
	case UNITS_HELLO:
		flags = WIRE_FLAG_HAS_TABLE;
		n = terms->n_units;
		expected = n * (uint32_t)sizeof(struct wire_entry);
		if (header->n != n)
			return false;
		break;
	case UNITS_GIVE:
		flags = WIRE_FLAG_CLOSES | WIRE_FLAG_DELTA;
		n = UINT32_MAX;
		break;
	case WIRE_CLEAR:
		flags = header->n == WIRE_CLEAR_ALL ? WIRE_FLAG_AHEAD : either;
		n = UINT32_MAX;
		if (!header->flags || header->flags == either)
			return false;
		break;
	case WIRE_RECORDS:
		flags = either;
		n = UINT32_MAX;
		expected = payload;
		if (header->flags == either)
			return false;
		if (!header->n || header->n > payload / sizeof(struct wire_record))
			return false;
		break;
	case WIRE_TIMES:
		expected = sizeof(struct wire_times);
		break;
	case UNITS_ASK:
		flags = WIRE_FLAG_COPY;
		expected = sizeof(struct wire_ask);
		break;
	case UNITS_REFUSE:
		flags = WIRE_FLAG_VALUES;
		break;
	case UNITS_GOT:
	case UNITS_BYE:
	case UNITS_BYE_GOT:
		break;
	default:
		return false;
	}
	if (payload != expected || header->flags & ~flags || header->n > n || header->reserved)
		return false;
	if (!header->from || header->from > WIRE_NUMBER_MAX || header->to > WIRE_NUMBER_MAX ||
	    (!header->to && header->type != UNITS_HELLO))
		return false;
	if (!has_unit(header))
		return !header->unit && !header->gen;
	return header->unit < terms->n_units && header->gen && header->gen <= WIRE_NUMBER_MAX;
}

static bool are_entries_good(const struct wire_message *message)
{
	for (uint32_t i = 0; i < message->header.n; i++) {
		struct wire_entry entry;

		memcpy(&entry, message->payload + i * sizeof(entry), sizeof(entry));
		if (entry.gen > WIRE_NUMBER_MAX || entry.holds > UNITS_TAKES || entry.reserved)
			return false;
	}
	return true;
}

static bool are_records_good(const struct wire_message *message)
{
	uint32_t left = message->header.bytes - WIRE_HEADER_BYTES;
	const uint8_t *at = message->payload;

	for (uint32_t i = 0; i < message->header.n; i++) {
		struct wire_record record;

		if (left < sizeof(record))
			return false;
		memcpy(&record, at, sizeof(record));
		at += sizeof(record);
		left -= (uint32_t)sizeof(record);
		if (!record.bytes || record.bytes > WIRE_RECORD_MAX || padded(record.bytes) > left)
			return false;
		for (uint32_t k = record.bytes; k < padded(record.bytes); k++) {
			if (at[k])
				return false;
		}
		at += padded(record.bytes);
		left -= padded(record.bytes);
	}
	return !left;
}

static uint64_t birth_of(const struct wire_message *message)
{
	struct wire_ask ask;

	memcpy(&ask, message->payload, sizeof(ask));
	return ask.birth;
}

int wire_parse(const struct wire_terms *terms, const uint8_t *at, size_t bytes,
	       struct wire_message *ret_message)
{
	struct wire_message message = { .payload = at + WIRE_HEADER_BYTES };
	struct wire_header *header = &message.header;

	if (bytes < WIRE_HEADER_BYTES)
		return 0;
	memcpy(header, at, sizeof(*header));
	if (header->version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (header->relocation != terms->relocation)
		return -ESTALE;
	if (header->bytes < WIRE_HEADER_BYTES || header->bytes % 8 ||
	    header->bytes > WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX || !is_header_good(terms, header))
		return -EPROTO;
	if (bytes < header->bytes)
		return 0;
	if (header->type == UNITS_HELLO && !are_entries_good(&message))
		return -EPROTO;
	if (header->type == WIRE_RECORDS && !are_records_good(&message))
		return -EPROTO;
	if (header->type == UNITS_ASK && birth_of(&message) > WIRE_NUMBER_MAX)
		return -EPROTO;
	*ret_message = message;
	return (int)header->bytes;
}

struct units_message wire_units_message(const struct wire_message *message,
					struct units_entry *ret_table)
{
	const struct wire_header *header = &message->header;

	for (uint32_t i = 0; header->type == UNITS_HELLO && i < header->n; i++) {
		struct wire_entry entry;

		memcpy(&entry, message->payload + i * sizeof(entry), sizeof(entry));
		ret_table[i] = (struct units_entry){ entry.gen, (uint8_t)entry.holds };
	}
	return (struct units_message){
		.from = header->from,
		.to = header->to,
		.gen = header->gen,
		.unit = header->unit,
		.kind = (uint8_t)header->type,
		.flag = (header->type == UNITS_HELLO && header->flags & WIRE_FLAG_HAS_TABLE) ||
			(header->type == UNITS_GIVE && header->flags & WIRE_FLAG_CLOSES),
		.birth = header->type == UNITS_ASK ? birth_of(message) : 0,
	};
}

bool wire_record_next(const struct wire_message *message, uint32_t *at,
		      struct wire_record *ret_record, const uint8_t **ret_bytes)
{
	if (*at >= message->header.bytes - WIRE_HEADER_BYTES)
		return false;
	memcpy(ret_record, message->payload + *at, sizeof(*ret_record));
	*ret_bytes = message->payload + *at + sizeof(*ret_record);
	*at += (uint32_t)sizeof(*ret_record) + padded(ret_record->bytes);
	return true;
}

struct drain_times wire_drain_times(const struct wire_message *message)
{
	struct wire_times times;

	memcpy(&times, message->payload, sizeof(times));
	return (struct drain_times){ times.requests, times.total_ns };
}

/* ---- what goes ---- */

static struct wire_header header_of(const struct wire_terms *terms, uint32_t type, uint64_t from,
				    uint64_t to)
{
	return (struct wire_header){
		.bytes = WIRE_HEADER_BYTES,
		.version = WIRE_VERSION,
		.type = (uint16_t)type,
		.relocation = terms->relocation,
		.from = from,
		.to = to,
	};
}

uint32_t wire_put_message(const struct wire_terms *terms, const struct units *units,
			  const struct units_message *message, uint32_t records, uint32_t flags,
			  uint8_t *to)
{
	struct wire_header header = header_of(terms, message->kind, message->from, message->to);

	header.gen = message->gen;
	header.unit = message->unit;
	if (message->kind == UNITS_HELLO) {
		header.flags = message->flag ? WIRE_FLAG_HAS_TABLE : 0;
		header.n = terms->n_units;
		header.bytes += header.n * (uint32_t)sizeof(struct wire_entry);
	} else if (message->kind == UNITS_GIVE) {
		header.flags = flags | (message->flag ? WIRE_FLAG_CLOSES : 0);
		header.n = records;
	} else if (message->kind == UNITS_REFUSE) {
		header.flags = flags;
	} else if (message->kind == UNITS_ASK) {
		const struct wire_ask ask = { message->birth };

		header.flags = flags;
		header.bytes += (uint32_t)sizeof(ask);
		memcpy(to + WIRE_HEADER_BYTES, &ask, sizeof(ask));
	}
	for (uint32_t u = 0; message->kind == UNITS_HELLO && u < terms->n_units; u++) {
		struct units_entry plain = units_entry(units, u);
		struct wire_entry entry = { .gen = plain.gen, .holds = plain.holds };

		memcpy(to + WIRE_HEADER_BYTES + u * sizeof(entry), &entry, sizeof(entry));
	}
	memcpy(to, &header, sizeof(header));
	return header.bytes;
}

uint32_t wire_put_times(const struct wire_terms *terms, uint64_t from, uint64_t to_incarnation,
			const struct drain_times *times, uint8_t *to)
{
	struct wire_header header = header_of(terms, WIRE_TIMES, from, to_incarnation);
	struct wire_times payload = { times->requests, times->total_ns };

	header.bytes += (uint32_t)sizeof(payload);
	memcpy(to, &header, sizeof(header));
	memcpy(to + sizeof(header), &payload, sizeof(payload));
	return header.bytes;
}

void wire_records_begin(const struct wire_terms *terms, const struct units_message *give,
			uint32_t flags, uint8_t *to)
{
	struct wire_header header = header_of(terms, WIRE_RECORDS, give->from, give->to);

	header.flags = flags;
	header.gen = give->gen;
	header.unit = give->unit;
	memcpy(to, &header, sizeof(header));
}

uint32_t wire_records_add(uint8_t *to, const struct wire_record *record, const uint8_t *bytes)
{
	struct wire_header header;
	uint32_t room, padding = padded(record->bytes) - record->bytes;

	assert(record->bytes && record->bytes <= WIRE_RECORD_MAX);
	memcpy(&header, to, sizeof(header));
	room = WIRE_HEADER_BYTES + WIRE_PAYLOAD_MAX - header.bytes;
	if (sizeof(*record) + padded(record->bytes) > room)
		return 0;
	memcpy(to + header.bytes, record, sizeof(*record));
	memcpy(to + header.bytes + sizeof(*record), bytes, record->bytes);
	memset(to + header.bytes + sizeof(*record) + record->bytes, 0, padding);
	header.bytes += (uint32_t)sizeof(*record) + padded(record->bytes);
	header.n++;
	memcpy(to, &header, sizeof(header));
	return header.bytes;
}

uint32_t wire_put_clear(const struct wire_terms *terms, const struct units_message *give,
			uint32_t flags, uint32_t page, uint8_t *to)
{
	struct wire_header header = header_of(terms, WIRE_CLEAR, give->from, give->to);

	header.gen = give->gen;
	header.unit = give->unit;
	header.flags = flags;
	header.n = page;
	memcpy(to, &header, sizeof(header));
	return header.bytes;
}
