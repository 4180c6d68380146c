// SPDX-License-Identifier: GPL-2.0-or-later
/* See cold_buffered.h. */
#include <stddef.h>
#include <string.h>

#include "cold_buffered.h"
#include "oltp-engine/src/txn/revoked.h"

_Static_assert(offsetof(struct record, lock) == offsetof(struct cold_head, check) &&
	       offsetof(struct record, key) == offsetof(struct cold_head, key) &&
	       offsetof(struct record, data) == sizeof(struct cold_head),
	       "what is on disk becomes a record by setting its lock");

void buffered_used(struct record *record, bool exclusive)
{
	struct buffered *buffered = buffered_of(record);

	/* Readers share it: what is known already is not written again. */
	if (atomic_load_explicit(&buffered->uses, memory_order_relaxed) < BUFFERED_USES_MAX)
		atomic_fetch_add_explicit(&buffered->uses, 1, memory_order_relaxed);
	if (exclusive)
		atomic_store_explicit(&buffered->is_written, true, memory_order_relaxed);
}

bool buffered_install(struct index_ref *ref, struct record *record, uint64_t stamp)
{
	uint64_t to = (uint64_t)(uintptr_t)record | INDEX_BUFFERED;

	*buffered_of(record) = (struct buffered){ .stub = ref->entry };
	atomic_store_explicit(&record->lock, stamp, memory_order_relaxed);
	if (!index_stub_replace(ref, to))
		return false;
	ref->entry = (ref->entry & ~INDEX_ADDR_MASK) | to;
	return true;
}

void buffered_deleted(struct cold *cold, struct record *record)
{
	struct cold_block *block = cold_stub_block(cold, buffered_of(record)->stub);

	atomic_fetch_sub_explicit(&cold->counters.records, 1, memory_order_relaxed);
	cold_block_unlive(cold, block, 1);
}

/* Into a block; the record is locked. False: there is no room. */
static bool settle(struct cold *cold, struct record *record, const struct index_ref *ref,
		   uint32_t node, uint64_t ts, uint64_t stamp)
{
	struct cold_block *block = cold_stub_block(cold, buffered_of(record)->stub);
	struct oltp_table *table = block->table;
	struct record *copy = storage_slot_alloc(&cold->engine->storage, table, node, ts);

	room_check(&cold->engine->room, table);
	if (!copy)
		return false;
	atomic_store_explicit(&copy->key, atomic_load_explicit(&record->key, memory_order_relaxed),
			      memory_order_relaxed);
	memcpy(copy->data, record->data, table->record_bytes);
	index_ref_move(ref, (uint64_t)(uintptr_t)copy);
	revoked_check_move(cold->engine, copy);
	lock_release_exclusive(&copy->lock, stamp);
	cold_count_merged(cold, block);
	return true;
}

bool buffered_release(struct cold *cold, struct record *record, const struct index_ref *ref,
		      uint32_t node, uint64_t ts, bool is_wanted)
{
	const struct buffered *buffered = buffered_of(record);
	bool is_written, has_ended = true;
	uint64_t seen, stamp;

	if (!lock_try_exclusive(&record->lock, ts, &seen))
		return false;
	stamp = lock_stamp(seen);
	if (index_ref_is_live(ref)) {
		/* The lock was taken after the last writer had noted itself and released it. */
		is_written = atomic_load_explicit(&buffered->is_written, memory_order_relaxed);
		is_wanted |= is_written ||
			     atomic_load_explicit(&buffered->uses, memory_order_relaxed) ==
				     BUFFERED_USES_MAX;
		if (!is_wanted || !settle(cold, record, ref, node, ts, stamp)) {
			has_ended = !is_written;
			if (has_ended)
				index_ref_move(ref, buffered->stub & INDEX_ADDR_MASK);
		}
	}
	lock_release_exclusive(&record->lock, stamp);
	return has_ended;
}
