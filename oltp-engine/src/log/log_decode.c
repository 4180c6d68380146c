// SPDX-License-Identifier: GPL-2.0-or-later
/* See log_decode.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "log_decode.h"
#include "oltp-engine/src/base/checksum.h"

uint32_t log_catalog_crc(const struct log_catalog *catalog)
{
	return crc32c_without(catalog, sizeof(*catalog), offsetof(struct log_catalog, crc32c));
}

uint32_t log_segment_header_crc(const struct log_segment_header *header)
{
	return crc32c_without(header, sizeof(*header), offsetof(struct log_segment_header, crc32c));
}

uint32_t log_reach_crc(const struct log_reach *reach)
{
	return crc32c_without(reach, sizeof(*reach), offsetof(struct log_reach, crc32c));
}

bool log_catalog_is_valid(const struct log_catalog *catalog)
{
	if (memcmp(catalog->magic, LOG_CATALOG_MAGIC, LOG_MAGIC_BYTES) ||
	    catalog->version != LOG_FORMAT_VERSION || catalog->n_tables > LOG_TABLES_MAX ||
	    catalog->crc32c != log_catalog_crc(catalog))
		return false;
	for (uint32_t i = 0; i < catalog->n_tables; i++) {
		if (catalog->tables[i].number != i || !catalog->tables[i].record_bytes)
			return false;
	}
	return true;
}

bool log_segment_header_is_valid(const struct log_segment_header *header)
{
	return !memcmp(header->magic, LOG_SEGMENT_MAGIC, LOG_MAGIC_BYTES) &&
	       header->version == LOG_FORMAT_VERSION &&
	       header->crc32c == log_segment_header_crc(header);
}

bool log_reach_is_valid(const struct log_reach *reach)
{
	return !memcmp(reach->magic, LOG_REACH_MAGIC, LOG_MAGIC_BYTES) &&
	       reach->crc32c == log_reach_crc(reach);
}

bool log_group_header_is_sane(const struct log_group_header *header, uint64_t room)
{
	return room >= LOG_BLOCK_BYTES &&
	       !memcmp(header->magic, LOG_GROUP_MAGIC, LOG_MAGIC_BYTES) &&
	       header->bytes >= LOG_BLOCK_BYTES && header->bytes <= room &&
	       header->bytes % LOG_BLOCK_BYTES == 0 && header->epoch_from <= header->epoch_to &&
	       header->csn_first <= header->csn_last;
}

bool log_group_is_valid(const struct log_group_header *group, uint64_t room)
{
	return log_group_header_is_sane(group, room) &&
	       group->crc32c == crc32c_without(group, group->bytes,
					    offsetof(struct log_group_header, crc32c));
}

void log_entries_begin(struct log_cursor *cursor, const struct log_group_header *group)
{
	*cursor = (struct log_cursor){ .at = (const uint8_t *)(group + 1),
				       .end = (const uint8_t *)group + group->bytes };
}

int log_entries_next(struct log_cursor *cursor, const struct log_entry **ret_entry)
{
	while (cursor->at < cursor->end) {
		const struct log_entry *entry = (const struct log_entry *)cursor->at;
		size_t room = (size_t)(cursor->end - cursor->at);

		if (room < LOG_PADDING_BYTES_MIN || entry->bytes > room ||
		    entry->bytes % LOG_ENTRY_ALIGN || entry->bytes < LOG_PADDING_BYTES_MIN ||
		    (entry->n_ops && entry->bytes < sizeof(*entry)))
			return -EBADMSG;
		cursor->at += entry->bytes;
		if (!entry->n_ops)
			continue;
		*ret_entry = entry;
		return 1;
	}
	return 0;
}

void log_ops_begin(struct log_cursor *cursor, const struct log_entry *entry)
{
	*cursor = (struct log_cursor){ .at = (const uint8_t *)(entry + 1),
				       .end = (const uint8_t *)entry + entry->bytes,
				       .left = entry->n_ops };
}

/* Is the number of spans one that the kind may have? */
static bool op_is_sane(const struct log_op *op)
{
	switch (op->kind) {
	case LOG_OP_UPDATE:
		return op->n_spans;
	case LOG_OP_PUT:
		return op->n_spans == 1;
	case LOG_OP_DELETE:
		return !op->n_spans;
	}
	return false;
}

int log_ops_next(struct log_cursor *cursor, const struct log_op **ret_op)
{
	const struct log_op *op = (const struct log_op *)cursor->at;
	size_t room = (size_t)(cursor->end - cursor->at);

	if (!cursor->left)
		return room ? -EBADMSG : 0;
	if (room < sizeof(*op) || op->bytes < sizeof(*op) || op->bytes > room ||
	    op->bytes % LOG_ENTRY_ALIGN || op->table >= LOG_TABLES_MAX || !op_is_sane(op))
		return -EBADMSG;
	cursor->at += op->bytes;
	cursor->left--;
	*ret_op = op;
	return 1;
}

void log_spans_begin(struct log_cursor *cursor, const struct log_op *op)
{
	*cursor = (struct log_cursor){ .at = (const uint8_t *)(op + 1),
				       .end = (const uint8_t *)op + op->bytes,
				       .left = op->n_spans };
}

int log_spans_next(struct log_cursor *cursor, const struct log_span **ret_span)
{
	const struct log_span *span = (const struct log_span *)cursor->at;
	size_t room = (size_t)(cursor->end - cursor->at), bytes;

	if (!cursor->left)
		return room ? -EBADMSG : 0;
	if (room < sizeof(*span))
		return -EBADMSG;
	bytes = ((size_t)span->bytes + LOG_ENTRY_ALIGN - 1) & ~(size_t)(LOG_ENTRY_ALIGN - 1);
	if (bytes > room - sizeof(*span))
		return -EBADMSG;
	cursor->at += sizeof(*span) + bytes;
	cursor->left--;
	*ret_span = span;
	return 1;
}
