/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writes of one transaction on one node as the log keeps them: for each span that was written,
 * the bytes that are there when the operations are through.
 */
#ifndef DIST_REDO_H
#define DIST_REDO_H

#include "dist.h"
#include "log.h"

#define DIST_REDO_SPANS_MAX	(2 * DIST_OPS_MAX)

struct dist_redo {
	uint32_t n;
	bool is_full;
	struct dist_redo_span {
		uint64_t key;
		const uint8_t *at;
		uint32_t offset, bytes;
	} spans[DIST_REDO_SPANS_MAX];
};

/*
 * Puts the writes into ret_payload[DIST_LOG_PAYLOAD_MAX] while the records are still locked.
 * Returns how many bytes, or -EMSGSIZE.
 */
int dist_redo_pack(const struct dist_redo *redo, uint8_t *ret_payload);

/*
 * Makes the writes in the worker's running transaction. OLTP_INVALID: the payload, which comes from
 * a disk, is not well formed; else what oltp_txn_update said.
 */
enum oltp_rc dist_redo_apply(struct oltp_worker *worker, struct oltp_table *table,
			     const uint8_t *payload, size_t bytes);

#endif
