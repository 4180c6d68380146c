/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads the structures of log_format.h from memory. Nothing read is trusted: whatever the bytes,
 * nothing outside of them is touched, and all that is handed out is consistent in itself. Whether
 * tables exist and spans lie within their records is for the caller to see.
 */
#ifndef OLTP_LOG_DECODE_H
#define OLTP_LOG_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log_format.h"

/* Is it a whole and valid one? */
bool log_catalog_is_valid(const struct log_catalog *catalog);
bool log_segment_header_is_valid(const struct log_segment_header *header);
bool log_reach_is_valid(const struct log_reach *reach);

/* Looks like the header of a group that fits in so many bytes; its checksum was not looked at. */
bool log_group_header_is_sane(const struct log_group_header *header, uint64_t room);

/* group: header->bytes bytes. Checks header and checksum. */
bool log_group_is_valid(const struct log_group_header *group, uint64_t room);

/* The right values of the crc32c fields. */
uint32_t log_catalog_crc(const struct log_catalog *catalog);
uint32_t log_segment_header_crc(const struct log_segment_header *header);
uint32_t log_reach_crc(const struct log_reach *reach);

/* The entries of a group, or the operations of an entry, or the spans of an operation. */
struct log_cursor {
	const uint8_t *at, *end;
	uint32_t left;		/* operations or spans still to come */
};

/*
 * Each next: 1 and the next one in *ret_..., 0 at the end, -EBADMSG if the bytes are not well
 * formed (with a valid checksum, only an error of the writer can cause that).
 */
void log_entries_begin(struct log_cursor *cursor, const struct log_group_header *group);
int log_entries_next(struct log_cursor *cursor, const struct log_entry **ret_entry);

void log_ops_begin(struct log_cursor *cursor, const struct log_entry *entry);
int log_ops_next(struct log_cursor *cursor, const struct log_op **ret_op);

void log_spans_begin(struct log_cursor *cursor, const struct log_op *op);
int log_spans_next(struct log_cursor *cursor, const struct log_span **ret_span);

static inline bool log_span_fits(const struct log_span *span, uint32_t record_bytes)
{
	return span->offset <= record_bytes && span->bytes <= record_bytes - span->offset;
}

static inline const void *log_span_data(const struct log_span *span)
{
	return span + 1;
}

#endif
