// SPDX-License-Identifier: GPL-2.0-or-later
/* See redo.h. */
#include <errno.h>
#include <string.h>

#include "redo.h"

/* In the payload: this and then the bytes, padded to a multiple of 8. */
struct write_head {
	uint64_t key;
	uint32_t offset;
	uint32_t bytes;
};

void dist_redo_note(struct dist_redo *redo, uint64_t key, const void *record, uint32_t offset,
		    uint32_t bytes)
{
	if (redo->n == DIST_REDO_SPANS_MAX) {
		redo->is_full = true;
		return;
	}
	redo->spans[redo->n++] = (struct dist_redo_span){
		.key = key,
		.at = (const uint8_t *)record + offset,
		.offset = offset,
		.bytes = bytes,
	};
}

static size_t padded(size_t bytes)
{
	return (bytes + 7) & ~7ul;
}

int dist_redo_pack(const struct dist_redo *redo, uint8_t *ret_payload)
{
	size_t used = 0;

	if (redo->is_full)
		return -EMSGSIZE;
	for (uint32_t i = 0; i < redo->n; i++) {
		const struct dist_redo_span *span = &redo->spans[i];
		const struct write_head head = { span->key, span->offset, span->bytes };

		if (DIST_LOG_PAYLOAD_MAX - used < sizeof(head) + padded(span->bytes))
			return -EMSGSIZE;
		memcpy(ret_payload + used, &head, sizeof(head));
		used += sizeof(head);
		memcpy(ret_payload + used, span->at, span->bytes);
		memset(ret_payload + used + span->bytes, 0, padded(span->bytes) - span->bytes);
		used += padded(span->bytes);
	}
	return (int)used;
}

enum oltp_rc dist_redo_apply(struct oltp_worker *worker, struct oltp_table *table,
			     const uint8_t *payload, size_t bytes)
{
	while (bytes) {
		struct write_head head;
		struct oltp_span span;
		enum oltp_rc rc;
		void *record;

		if (bytes < sizeof(head))
			return OLTP_INVALID;
		memcpy(&head, payload, sizeof(head));
		payload += sizeof(head);
		bytes -= sizeof(head);
		if (padded(head.bytes) > bytes)
			return OLTP_INVALID;
		span = (struct oltp_span){ head.offset, head.bytes };
		rc = oltp_txn_update(worker, table, head.key, &span, 1, &record);
		if (rc)
			return rc;
		memcpy((uint8_t *)record + head.offset, payload, head.bytes);
		payload += padded(head.bytes);
		bytes -= padded(head.bytes);
	}
	return OLTP_OK;
}
