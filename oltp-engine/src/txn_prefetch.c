// SPDX-License-Identifier: GPL-2.0-or-later
/* Announcing what a transaction is going to touch: see oltp.h. */
#include "engine.h"

void oltp_txn_prefetch(struct oltp_worker *worker, struct oltp_table *table,
		       const struct oltp_hint *hints, uint32_t n)
{
	const struct index *index = &table->index;
	struct ahead *ahead = worker->ahead;

	if (n > worker->engine->txn_records_max)
		n = worker->engine->txn_records_max;
	worker->ahead_table = table;
	worker->n_ahead = n;
	worker->ahead_next = 0;
	for (uint32_t i = 0; i < n; i++) {
		ahead[i].key = hints[i].key;
		ahead[i].hash = index_hash(hints[i].key);
		index_prefetch(index, ahead[i].hash);
	}
	for (uint32_t i = 0; i < n; i++) {
		struct record *record = index_guess(index, ahead[i].hash);
		const uint8_t *line, *end;

		if (!record)
			continue;
		__builtin_prefetch(record, 1);
		line = record->data + hints[i].offset;
		end = line + hints[i].bytes;
		for (line -= (uintptr_t)line % CACHE_LINE_BYTES; line < end;
		     line += CACHE_LINE_BYTES)
			__builtin_prefetch(line, 1);
	}
}
