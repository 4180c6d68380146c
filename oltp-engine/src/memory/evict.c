// SPDX-License-Identifier: GPL-2.0-or-later
/* See evict.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "evict.h"
#include "manager.h"
#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/txn/engine.h"

int evict_init(struct evict *e, struct oltp_engine *engine)
{
	struct cold *cold = engine->cold;
	int rc;

	*e = (struct evict){ .engine = engine, .cold = cold };
	if (!cold)
		return 0;
	rc = io_queue_init(&e->io, cold->file.fd, EVICT_DEPTH, cold->hook,
			   &cold->engine->io_meters);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < EVICT_DEPTH; i++) {
		e->batches[i].buffer = aligned_alloc(4096, COLD_EXTENT_BYTES);
		if (!e->batches[i].buffer) {
			evict_finish(e);
			return -ENOMEM;
		}
		e->idle[e->n_idle++] = &e->batches[i];
	}
	cold_buffers_add(cold, EVICT_DEPTH * COLD_EXTENT_BYTES);
	return 0;
}

void evict_finish(struct evict *e)
{
	if (e->cold) {
		for (uint32_t i = 0; i < EVICT_DEPTH; i++)
			free(e->batches[i].buffer);
		io_queue_finish(&e->io);
	}
	free(e->limbo);
}

void evict_begin(struct evict *e)
{
	e->error = 0;
}

/* Must succeed: the record is out of the index by the time it is pushed. */
static bool limbo_reserve(struct evict *e, size_t n)
{
	size_t room = e->limbo_room ? e->limbo_room * 2 : 4096;
	struct record **limbo;

	if (e->n_limbo + n <= e->limbo_room)
		return true;
	while (room < e->n_limbo + n)
		room *= 2;
	limbo = realloc(e->limbo, room * sizeof(struct record *));
	if (!limbo)
		return false;
	e->limbo = limbo;
	e->limbo_room = room;
	return true;
}

static void limbo_push(struct evict *e, struct record *record)
{
	e->limbo[e->n_limbo++] = record;
}

/* Finds where the index has the record, which is locked. False: the index does not have it. */
static bool find_slot(struct oltp_table *table, struct record *record, struct index_ref *ret_ref)
{
	uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);
	struct record *found;

	/* The epoch is for buffered records, which other threads release at any time. */
	engine_enter(table->engine);
	found = index_find(&table->index, key, index_hash(key), ret_ref);
	engine_leave(table->engine);
	return found == record &&
	       /* In a revoked block, zeroes may have replaced the record before it was copied. */
	       storage_block_of(&table->engine->storage, record)->state != BLOCK_REVOKED;
}

/* Points the index to the written copies, except where a record was used in the meantime. */
static void batch_install(struct evict *e, struct evict_batch *batch)
{
	struct cold_block *block = batch->block;
	struct oltp_table *table = block->table;
	uint32_t n = 0;

	cold_evict_begin(e->cold, block);
	for (uint32_t i = 0; i < batch->n; i++) {
		struct record *record = batch->records[i];
		struct index_ref ref;

		if (!lock_try_marked(&record->lock, batch->mark, LOCK_TS_MANAGER))
			continue;
		if (find_slot(table, record, &ref)) {
			index_ref_move(&ref, cold_stub(block, i));
			limbo_push(e, record);
			n++;
		}
		lock_release_exclusive(&record->lock, 0);
	}
	cold_evict_end(e->cold, block, n);
}

static void batch_end(struct evict *e, struct evict_batch *batch)
{
	int rc = batch->request.result;

	if (!rc && !limbo_reserve(e, batch->n))
		rc = -ENOMEM;
	if (rc) {
		e->error = rc;
		cold_write_failed(e->cold, batch->block);
	} else {
		batch_install(e, batch);
	}
	e->idle[e->n_idle++] = batch;
}

static void reap(struct evict *e)
{
	struct io_request *request;

	while ((request = io_queue_next(&e->io)))
		batch_end(e, (struct evict_batch *)request);
}

static void batch_send(struct evict *e)
{
	struct evict_batch *batch = e->filling;
	struct cold_block *block = batch->block;

	e->filling = NULL;
	batch->request = (struct io_request){
		.class = IO_EVICT,
		.is_write = true,
		.bytes = cold_block_seal(e->cold, block, batch->n, batch->buffer),
		.offset = block->base,
		.buffer = batch->buffer,
	};
	io_queue_add(&e->io, &batch->request);
	io_queue_flush(&e->io);
	reap(e);
}

/* The batch to put a record of the table into; NULL and e->error: there is none. */
static struct evict_batch *batch_get(struct evict *e, struct oltp_table *table)
{
	struct evict_batch *batch;

	if (e->filling && (e->filling->block->table != table ||
			   e->filling->n == cold_slots(table)))
		batch_send(e);
	if (e->filling)
		return e->filling;
	while (!e->n_idle) {
		io_queue_wait(&e->io, 1000000000ull);
		reap(e);
	}
	if (e->error)
		return NULL;
	batch = e->idle[e->n_idle - 1];
	e->error = cold_block_alloc(e->cold, table, false, &batch->block);
	if (e->error) {
		cold_reclaim(e->cold);
		if (!cold_block_alloc(e->cold, table, false, &batch->block))
			e->error = 0;
	}
	if (e->error)
		return NULL;
	e->n_idle--;
	batch->n = 0;
	batch->mark = LOCK_MARK | ++e->last_mark;
	e->filling = batch;
	return batch;
}

enum evict_result evict_to_disk(struct evict *e, struct oltp_table *table, struct record *record)
{
	struct evict_batch *batch;
	uint64_t seen;

	if (!e->cold || !cold_slots(table))
		return EVICT_NOT;
	batch = batch_get(e, table);
	if (!batch)
		return EVICT_NOT;
	if (!lock_try_exclusive(&record->lock, LOCK_TS_MANAGER, &seen))
		return EVICT_BUSY;
	cold_record_write(batch->block, batch->n, batch->buffer,
			  atomic_load_explicit(&record->key, memory_order_relaxed),
			  cold_use(lock_left(seen)), record->data);
	batch->records[batch->n++] = record;
	lock_release_exclusive(&record->lock, batch->mark);
	return EVICT_DONE;
}

enum evict_result evict_move(struct evict *e, struct oltp_table *table, uint32_t node,
			     struct record *record)
{
	struct record *copy;
	struct index_ref ref;
	uint64_t seen;

	if (!limbo_reserve(e, 1))
		return EVICT_NOT;
	/* Looked at before a slot is taken in vain. */
	if (atomic_load_explicit(&record->lock, memory_order_relaxed) & LOCK_HELD)
		return EVICT_BUSY;
	copy = storage_slot_alloc_present(table, node, LOCK_TS_MANAGER);
	if (!copy)
		return EVICT_NOT;
	if (!lock_try_exclusive(&record->lock, LOCK_TS_MANAGER, &seen)) {
		storage_slot_free(&e->engine->storage, copy);
		lock_release_exclusive(&copy->lock, 0);
		return EVICT_BUSY;
	}
	if (find_slot(table, record, &ref)) {
		atomic_store_explicit(&copy->key,
				      atomic_load_explicit(&record->key, memory_order_relaxed),
				      memory_order_relaxed);
		memcpy(copy->data, record->data, table->record_bytes);
		index_ref_move(&ref, (uint64_t)(uintptr_t)copy);
		lock_release_exclusive(&copy->lock, lock_left(seen));
		limbo_push(e, record);
		counter_add(&e->moved, 1);
	} else {
		storage_slot_free(&e->engine->storage, copy);
		lock_release_exclusive(&copy->lock, 0);
	}
	lock_release_exclusive(&record->lock, lock_left(seen));
	return EVICT_DONE;
}

void evict_flush(struct evict *e)
{
	if (!e->cold)
		return;
	if (e->filling && e->filling->n) {
		batch_send(e);
	} else if (e->filling) {
		cold_block_give_up(e->cold, e->filling->block);
		e->idle[e->n_idle++] = e->filling;
		e->filling = NULL;
	}
	while (e->io.in_flight) {
		io_queue_wait(&e->io, 1000000000ull);
		reap(e);
	}
}

static void free_awaited(struct evict *e)
{
	for (size_t i = 0; i < e->n_awaited; i++)
		storage_slot_free(&e->engine->storage, e->limbo[i]);
	e->n_limbo -= e->n_awaited;
	memmove(e->limbo, e->limbo + e->n_awaited, e->n_limbo * sizeof(*e->limbo));
	e->n_awaited = 0;
}

bool evict_settle(struct evict *e, uint64_t deadline_ns)
{
	while (e->n_limbo) {
		if (!e->n_awaited) {
			e->n_awaited = e->n_limbo;
			e->awaited_epoch = epoch_advance(&e->engine->epoch);
		}
		if (!epoch_wait(&e->engine->epoch, e->awaited_epoch, deadline_ns))
			return false;
		free_awaited(e);
	}
	return true;
}
