// SPDX-License-Identifier: GPL-2.0-or-later
/* Announcing what a transaction is going to touch: see oltp.h. */
#include "engine.h"

static void prefetch_record(const struct ahead *ahead, const struct oltp_hint *hint)
{
	struct record *record = index_guess(&ahead->table->index, ahead->hash);
	const uint8_t *first, *last, *second;

	if (!record)
		return;
	__builtin_prefetch(record, 1);
	first = record->data + hint->offset;
	last = first + hint->bytes - 1;
	first -= (uintptr_t)first % CACHE_LINE_BYTES;
	second = first + CACHE_LINE_BYTES < last ? first + CACHE_LINE_BYTES : last;
	/* One may be there twice: cheaper than a jump that depends on where the span lies. */
	__builtin_prefetch(first, 1);
	__builtin_prefetch(second, 1);
	__builtin_prefetch(last, 1);
	for (const uint8_t *line = first + 2 * CACHE_LINE_BYTES; line + CACHE_LINE_BYTES <= last;
	     line += CACHE_LINE_BYTES)
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
