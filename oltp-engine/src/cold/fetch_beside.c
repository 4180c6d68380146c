// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What comes with a record that was read: whole sectors, and so others that went to disk with it,
 * which were used last when it was and may be wanted next. As long as there is room to spare they
 * come in for the price of a copy; where a read a second counts, small records come back many
 * times as fast.
 */
#include <errno.h>

#include "fetch.h"
#include "oltp-engine/src/txn/engine.h"

/* To come in is none. Another worker may have used it in an epoch that began after now. */
static uint64_t last_use(const struct cold_block *block, uint32_t slot, uint64_t now)
{
	uint32_t used = atomic_load_explicit(&block->used[slot], memory_order_relaxed);
	uint32_t age = (uint32_t)now - used;

	return (int32_t)age < 0 ? now : now - age;
}

void fetch_merge_beside(struct fetcher *f, const struct fetch_read *read)
{
	struct oltp_worker *worker = f->worker;
	struct cold_block *block = read->block;
	struct oltp_table *table = block->table;
	const uint32_t stride = cold_stride(table);
	const uint64_t from = read->request.offset - block->number * COLD_EXTENT_BYTES;
	const uint64_t ts = counter_read(&worker->clock) << LOCK_TS_WORKER_BITS | worker->number;
	const uint64_t now = epoch_now(&worker->engine->epoch);
	const uint8_t *buffer = read->request.buffer;
	uint32_t slot = (uint32_t)((from + stride - 1) / stride);

	for (; slot < block->n && (slot + 1ull) * stride <= from + read->request.bytes; slot++) {
		uint64_t key = atomic_load_explicit(&block->keys[slot], memory_order_relaxed);
		struct index_ref ref;
		const void *data;

		if (slot == read->slot)
			continue;
		epoch_enter(&worker->engine->epoch, &worker->announced, now);
		index_find(&table->index, key, index_hash(key), &ref);
		epoch_leave(&worker->announced);
		if ((ref.entry & INDEX_ADDR_MASK) != cold_stub(block, slot))
			continue;
		data = cold_record_check(block, slot, buffer + slot * (uint64_t)stride - from);
		if (!data || cold_merge(f->cold, &ref, slot, data, worker->node, ts,
					last_use(block, slot, now)) == -ENOMEM)
			return;
	}
}
