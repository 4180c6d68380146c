// SPDX-License-Identifier: GPL-2.0-or-later
/* What becomes of what a worker has read: see fetch.h and cold_buffered.h. */
#include <errno.h>
#include <stdlib.h>

#include "cold_buffered.h"
#include "fetch.h"
#include "oltp-engine/src/txn/engine.h"

static void queue_push(struct fetch_queue *queue, struct fetch_read *read)
{
	read->next = NULL;
	if (queue->last)
		queue->last->next = read;
	else
		queue->first = read;
	queue->last = read;
	queue->n++;
}

static struct fetch_read *queue_pop(struct fetch_queue *queue)
{
	struct fetch_read *read = queue->first;

	queue->first = read->next;
	if (!queue->first)
		queue->last = NULL;
	queue->n--;
	return read;
}

bool buffered_have_room(const struct fetcher *f, uint32_t bytes)
{
	return f->buffered.n + f->unlinked.n < BUFFERED_MAX &&
	       f->used_buffer_bytes + bytes <= BUFFERED_BYTES_MAX;
}

void buffered_add(struct fetcher *f, struct fetch_read *read)
{
	f->used_buffer_bytes += read->room;
	queue_push(&f->buffered, read);
}

void buffered_reclaim(struct fetcher *f)
{
	uint64_t epoch;

	while (f->unlinked.first) {
		epoch = f->unlinked.first->epoch;
		if (!epoch_has_passed(&f->cold->engine->epoch, epoch))
			return;
		while (f->unlinked.first && f->unlinked.first->epoch == epoch) {
			struct fetch_read *read = queue_pop(&f->unlinked);

			f->used_buffer_bytes -= read->room;
			read->next = f->free;
			f->free = read;
		}
	}
}

/* By one that waited for it and is still the same transaction. */
static bool is_held(const struct fetcher *f, const struct fetch_read *read)
{
	for (uint64_t left = read->tickets; left; left &= left - 1) {
		uint32_t hold = f->tickets[__builtin_ctzll(left)].hold;

		if (hold && hold <= read->hold)
			return true;
	}
	return false;
}

/* What cannot be ended, or is held, goes to the end of the queue. */
static void end_some(struct fetcher *f, struct fetch_queue *ended, uint32_t n, bool spare_held,
		     uint32_t node, uint64_t ts)
{
	for (uint32_t left = f->buffered.n; left && ended->n < n; left--) {
		struct fetch_read *read = queue_pop(&f->buffered);

		if (!(spare_held && is_held(f, read)) &&
		    buffered_release(f->cold, index_record(read->ref.entry), &read->ref, node, ts,
				     read->is_wanted))
			queue_push(ended, read);
		else
			queue_push(&f->buffered, read);
	}
}

void buffered_release_some(struct fetcher *f, uint32_t n, uint32_t node, uint64_t ts)
{
	struct fetch_queue ended = { NULL, NULL, 0 };
	uint64_t epoch;

	end_some(f, &ended, n, true, node, ts);
	if (!ended.n)
		end_some(f, &ended, n, false, node, ts);
	if (!ended.n)
		return;
	epoch = epoch_advance(&f->cold->engine->epoch);
	while (ended.n) {
		struct fetch_read *read = queue_pop(&ended);

		read->epoch = epoch;
		queue_push(&f->unlinked, read);
	}
}

void buffered_keep_few(struct fetcher *f)
{
	struct oltp_worker *worker = f->worker;

	buffered_reclaim(f);
	if (f->unlinked.n)
		return;
	if (f->buffered.n < BUFFERED_MAX / 4 * 3 && buffered_have_room(f, BUFFERED_BYTES_MAX / 4))
		return;
	/* So many at once that the price of a new epoch does not count. */
	buffered_release_some(f, f->buffered.n / 8 + 1, worker->node,
			      counter_read(&worker->clock) << LOCK_TS_WORKER_BITS | worker->number);
}

/*
 * Neighbours of a record that was read: whole sectors come, and so others that went to disk with
 * it, which were used last when it was and may be wanted next. As long as there is room to spare
 * they come in for the price of a copy; where a read a second counts, small records come back many
 * times as fast.
 */

/* To come in is none. Another worker may have used it in an epoch that began after now. */
static uint64_t last_use(const struct cold_block *block, uint32_t slot, uint64_t now)
{
	uint32_t used = atomic_load_explicit(&block->used[slot], memory_order_relaxed);
	uint32_t age = (uint32_t)now - used;

	return (int32_t)age < 0 ? now : now - age;
}

void fetch_merge_neighbours(struct fetcher *f, const struct fetch_read *read)
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
