// SPDX-License-Identifier: GPL-2.0-or-later
/* See restore_rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/log/log_format.h"
#include "oltp-engine/src/txn/engine.h"
#include "restore_rows.h"

#define ROOM_MIN	1024u

uint64_t restore_row_bytes(const struct oltp_table *table)
{
	/* Up to two places for each, and what malloc needs for itself. */
	return 2 * sizeof(struct restore_row) + 2 * sizeof(void *) + table->record_bytes;
}

static struct restore_row *place_of(const struct restore_rows *rows, const struct oltp_table *table,
				    uint64_t key)
{
	size_t i = (size_t)(index_hash(key) ^ table->id) & (rows->room - 1);

	while (rows->places[i].table &&
	       (rows->places[i].table != table || rows->places[i].key != key))
		i = (i + 1) & (rows->room - 1);
	return &rows->places[i];
}

/* Room for one more, and half as many free places as used ones. */
static int reserve(struct restore_rows *rows)
{
	struct restore_rows more = { .n = rows->n, .room = 2 * rows->room ?: ROOM_MIN };

	if (3 * (rows->n + 1) <= 2 * rows->room)
		return 0;
	more.places = calloc(more.room, sizeof(*more.places));
	if (!more.places)
		return -ENOMEM;
	for (size_t i = 0; i < rows->room; i++) {
		const struct restore_row *row = &rows->places[i];

		if (row->table)
			*place_of(&more, row->table, row->key) = *row;
	}
	free(rows->places);
	*rows = more;
	return 0;
}

/* The one that there is, or a new one of which nothing is known. NULL: out of memory. */
static struct restore_row *row_of(struct restore_rows *rows, struct oltp_table *table, uint64_t key)
{
	struct restore_row *row;

	if (reserve(rows))
		return NULL;
	row = place_of(rows, table, key);
	if (!row->table) {
		*row = (struct restore_row){ .table = table, .key = key };
		rows->n++;
	}
	return row;
}

int restore_rows_put(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
		     const void *data)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	if (!row->data)
		row->data = malloc(table->record_bytes);
	if (!row->data)
		return -ENOMEM;
	memcpy(row->data, data, table->record_bytes);
	row->is_missing = false;
	return 0;
}

/* Looks at all spans, whether the row is there (data) or not (NULL). */
static int set_spans(const struct oltp_table *table, uint8_t *data, const uint8_t *at,
		     uint32_t n_spans, size_t bytes)
{
	for (uint32_t i = 0; i < n_spans; i++) {
		struct log_span span;
		size_t padded;

		if (bytes < sizeof(span))
			return -EUCLEAN;
		memcpy(&span, at, sizeof(span));
		at += sizeof(span);
		bytes -= sizeof(span);
		padded = ((size_t)span.bytes + LOG_ENTRY_ALIGN - 1) &
			 ~(size_t)(LOG_ENTRY_ALIGN - 1);
		if (padded > bytes || span.offset > table->record_bytes ||
		    span.bytes > table->record_bytes - span.offset)
			return -EUCLEAN;
		if (data)
			memcpy(data + span.offset, at, span.bytes);
		at += padded;
		bytes -= padded;
	}
	return 0;
}

int restore_rows_update(struct restore_rows *rows, struct oltp_table *table, uint64_t key,
			const uint8_t *spans, uint32_t n_spans, size_t bytes)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	row->is_missing |= !row->data;
	return set_spans(table, row->data, spans, n_spans, bytes);
}

int restore_rows_remove(struct restore_rows *rows, struct oltp_table *table, uint64_t key)
{
	struct restore_row *row = row_of(rows, table, key);

	if (!row)
		return -ENOMEM;
	free(row->data);
	row->data = NULL;
	row->is_missing = false;
	return 0;
}

bool restore_rows_has_missing(const struct restore_rows *rows)
{
	for (size_t i = 0; i < rows->room; i++) {
		if (rows->places[i].is_missing)
			return true;
	}
	return false;
}

void restore_rows_clear(struct restore_rows *rows)
{
	for (size_t i = 0; i < rows->room; i++)
		free(rows->places[i].data);
	free(rows->places);
	*rows = (struct restore_rows){ 0 };
}
