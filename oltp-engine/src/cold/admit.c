// SPDX-License-Identifier: GPL-2.0-or-later
/* See admit.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "admit.h"
#include "cold_checkpoint.h"
#include "oltp-engine/src/txn/revoked.h"

_Static_assert(offsetof(struct record, lock) == offsetof(struct cold_head, check) &&
	       offsetof(struct record, key) == offsetof(struct cold_head, key) &&
	       offsetof(struct record, data) == sizeof(struct cold_head),
	       "what is on disk becomes a record by setting its lock");

/* A record in a slot, locked and in no index yet; NULL: there is no room. */
static struct record *slot_fill(struct cold *cold, const struct admit_by *by,
				struct oltp_table *table, uint64_t key, const void *data)
{
	struct record *record = storage_slot_alloc(&cold->engine->storage, table, by->node, by->ts);

	room_check(&cold->engine->room, table);
	if (record) {
		atomic_store_explicit(&record->key, key, memory_order_relaxed);
		memcpy(record->data, data, table->record_bytes);
	}
	return record;
}

/* The index points to the record in its slot: it is not on disk any more, and may be used. */
static void slot_done(struct cold *cold, struct cold_block *block, struct record *record,
		      uint64_t stamp)
{
	struct cold_counters *c = &cold->counters;

	revoked_check_move(cold->engine, record);
	lock_release_exclusive(&record->lock, stamp);
	atomic_fetch_sub_explicit(&c->records, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->merged_records, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->merged_bytes, block->table->record_bytes,
				  memory_order_relaxed);
	cold_block_unlive(cold, block, 1);
}

/* is_row: the bytes are as on disk. */
static int admit(struct cold *cold, const struct admit_by *by, const struct index_ref *ref,
		 const void *data, bool is_row, uint64_t stamp)
{
	struct cold_block *block = cold_stub_block(cold, ref->entry);
	const uint32_t slot = cold_stub_slot(ref->entry);
	uint64_t key = atomic_load_explicit(&block->keys[slot], memory_order_relaxed);
	struct record *record;

	if (!index_ref_is_live(ref))
		return -EALREADY;
	record = slot_fill(cold, by, block->table, key, data);
	if (!record)
		return -ENOMEM;
	if (is_row)
		cold_patch_apply(block, slot, record->data);
	if (!index_stub_replace(ref, (uint64_t)(uintptr_t)record)) {
		/*
		 * No thread could find the record, so the slot may be used again at once. The lock
		 * is released first: the caller is in no epoch, and once the slot is free its block
		 * may become another table's.
		 */
		lock_release_exclusive(&record->lock, stamp);
		storage_slot_free(&cold->engine->storage, record);
		return -EALREADY;
	}
	slot_done(cold, block, record, stamp);
	return 0;
}

int admit_to_block(struct cold *cold, const struct admit_by *by, const struct index_ref *ref,
		   const void *data, uint64_t stamp)
{
	return admit(cold, by, ref, data, false, stamp);
}

/* True: the record is still on disk, with this stub. */
static bool find_stub(struct cold *cold, const struct admit_by *by, const struct admit_read *read,
		      uint32_t slot, struct index_ref *ret_ref)
{
	struct oltp_table *table = read->block->table;
	struct epoch *epoch = &cold->engine->epoch;
	uint64_t key = atomic_load_explicit(&read->block->keys[slot], memory_order_relaxed);
	struct record *record;

	epoch_enter(epoch, by->announced, epoch_now(epoch));
	record = index_find(&table->index, key, index_hash(key), ret_ref);
	if (read->is_ahead && record && ret_ref->entry & INDEX_BUFFERED)
		buffered_release(cold, by, record, ret_ref, true);
	epoch_leave(by->announced);
	return !record && (ret_ref->entry & INDEX_ADDR_MASK) == cold_stub(read->block, slot);
}

/*
 * What to leave in the lock word. With the age alone the simulated cache knows whether it still
 * holds a record that it took in.
 */
static uint64_t stamp_of(const struct cold_block *block, uint32_t slot, bool is_ahead,
			 uint64_t now)
{
	uint64_t before = cold_last_use(block, slot, now);

	if (cold_was_taken(block, slot))
		return before | LOCK_TAKEN;
	return is_ahead ? 0 : before;
}

int admit_all(struct cold *cold, const struct admit_by *by, const struct admit_read *read,
	      uint32_t *ret_bad)
{
	const struct cold_block *block = read->block;
	const int64_t stride = block->stride, record_bytes = cold_stride(block->table);
	const int64_t end = read->from + read->bytes;
	const uint64_t now = epoch_now(&cold->engine->epoch);
	uint32_t slot = read->from > 0 ? (uint32_t)((read->from + stride - 1) / stride) : 0;
	int rc = 0;

	*ret_bad = 0;
	for (; rc != -ENOMEM && slot < block->n && slot * stride + record_bytes <= end; slot++) {
		const void *data = NULL;
		struct index_ref ref;

		if (slot == read->skip || !find_stub(cold, by, read, slot, &ref))
			continue;
		if (read->buffer)
			data = cold_record_check(block, slot,
						 read->buffer + (slot * stride - read->from));
		if (data)
			rc = admit(cold, by, &ref, data, true,
				   stamp_of(block, slot, read->is_ahead, now));
		else
			++*ret_bad;
	}
	return rc == -ENOMEM ? rc : 0;
}

bool admit_to_buffer(struct index_ref *ref, struct record *record, uint64_t stamp)
{
	uint64_t to = (uint64_t)(uintptr_t)record | INDEX_BUFFERED;

	*buffered_of(record) = (struct buffered){ .stub = ref->entry };
	atomic_store_explicit(&record->lock, stamp, memory_order_relaxed);
	if (!index_stub_replace(ref, to))
		return false;
	ref->entry = (ref->entry & ~INDEX_ADDR_MASK) | to;
	return true;
}

void buffered_used(struct record *record, bool exclusive)
{
	struct buffered *buffered = buffered_of(record);

	/* Readers share the counter: it is not written again once it has its highest value. */
	if (atomic_load_explicit(&buffered->uses, memory_order_relaxed) < BUFFERED_USES_MAX)
		atomic_fetch_add_explicit(&buffered->uses, 1, memory_order_relaxed);
	if (exclusive)
		atomic_store_explicit(&buffered->is_written, true, memory_order_relaxed);
}

void buffered_deleted(struct cold *cold, struct record *record)
{
	struct cold_block *block = cold_stub_block(cold, buffered_of(record)->stub);

	atomic_fetch_sub_explicit(&cold->counters.records, 1, memory_order_relaxed);
	cold_block_unlive(cold, block, 1);
}

/* Into a block; the record is locked. False: there is no room. */
static bool move_to_block(struct cold *cold, const struct admit_by *by, struct record *record,
			  const struct index_ref *ref, uint64_t stamp)
{
	struct cold_block *block = cold_stub_block(cold, buffered_of(record)->stub);
	uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);
	struct record *copy = slot_fill(cold, by, block->table, key, record->data);

	if (!copy)
		return false;
	index_ref_move(ref, (uint64_t)(uintptr_t)copy);
	slot_done(cold, block, copy, stamp);
	return true;
}

bool buffered_release(struct cold *cold, const struct admit_by *by, struct record *record,
		      const struct index_ref *ref, bool is_wanted)
{
	const struct buffered *buffered = buffered_of(record);
	bool is_written, has_ended = true;
	uint64_t seen, stamp;

	if (!lock_try_exclusive(&record->lock, by->ts, &seen))
		return false;
	stamp = lock_left(seen);
	if (index_ref_is_live(ref)) {
		/* The lock was taken after the last writer had noted itself and released it. */
		is_written = atomic_load_explicit(&buffered->is_written, memory_order_relaxed);
		is_wanted |= is_written ||
			     atomic_load_explicit(&buffered->uses, memory_order_relaxed) ==
				     BUFFERED_USES_MAX;
		if (!is_wanted || !move_to_block(cold, by, record, ref, stamp)) {
			has_ended = !is_written;
			if (has_ended)
				index_ref_move(ref, buffered->stub & INDEX_ADDR_MASK);
		}
	}
	lock_release_exclusive(&record->lock, stamp);
	return has_ended;
}
