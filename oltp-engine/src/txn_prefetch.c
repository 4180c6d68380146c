// SPDX-License-Identifier: GPL-2.0-or-later
/* Announcing what a transaction is going to touch: see oltp.h. */
#include "engine.h"

static void prefetch_record(const struct ahead *ahead, const struct oltp_hint *hint)
{
	struct record *record = index_guess(&ahead->table->index, ahead->hash);
	const uint8_t *line, *end;

	if (!record)
		return;
	__builtin_prefetch(record, 1);
	line = record->data + hint->offset;
	end = line + hint->bytes;
	for (line -= (uintptr_t)line % CACHE_LINE_BYTES; line < end; line += CACHE_LINE_BYTES)
		__builtin_prefetch(line, 1);
}

void oltp_txn_prefetch(struct oltp_worker *worker, struct oltp_table *table,
		       const struct oltp_hint *hints, uint32_t n)
{
	struct ahead *ahead = worker->ahead;

	if (n > worker->engine->txn_records_max)
		n = worker->engine->txn_records_max;
	worker->n_ahead = n;
	worker->ahead_next = 0;
	for (uint32_t i = 0; i < n; i++) {
		ahead[i].key = hints[i].key;
		ahead[i].hash = index_hash(hints[i].key);
		ahead[i].table = hints[i].table ?: table;
		index_prefetch(&ahead[i].table->index, ahead[i].hash);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (hints[i].bytes)
			prefetch_record(&ahead[i], &hints[i]);
	}
}
