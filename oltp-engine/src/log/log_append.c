// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Logs the changes of a transaction by value, from its accesses and the before-images that it kept:
 * see log.h. Only bytes that it had handed out for writing are logged, as they are now.
 */
#include <string.h>

#include "log_private.h"
#include "oltp-engine/src/base/span_copy.h"
#include "oltp-engine/src/txn/engine.h"
#include "oltp-engine/src/txn/revoked.h"

#define SPANS_MAX	UINT16_MAX	/* of one operation */

/* About as many lines as a core fetches at a time. */
#define PREFETCH_BYTES_MAX	1024u

_Static_assert(LOG_ENTRY_ALIGN == UNDO_ALIGN, "see entry_bound");

static uint32_t padded(uint32_t bytes)
{
	return (bytes + LOG_ENTRY_ALIGN - 1) & ~(LOG_ENTRY_ALIGN - 1);
}

static uint32_t image_bytes(const struct undo *undo)
{
	return (uint32_t)sizeof(*undo) + padded(undo->bytes);
}

static bool has_rows(const struct oltp_worker *worker)
{
	return unlikely(worker->has_inserts || worker->has_deletes);
}

/*
 * No fewer bytes than the entry will take; 0: nothing was changed. An image in the undo buffer
 * takes a third more here at most: its head of 16 bytes becomes one of 24, and its 8 bytes or more
 * stay as many.
 */
static uint64_t entry_bound(const struct oltp_worker *worker)
{
	uint64_t bytes = worker->undo_used + worker->undo_used / 3;

	for (uint32_t i = 0; has_rows(worker) && i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];

		if (access->kind == ACCESS_INSERT || access->kind == ACCESS_REPLACE)
			bytes += sizeof(struct log_op) + sizeof(struct log_span) +
				 padded(access->table->record_bytes);
		else if (access->kind == ACCESS_DELETE)
			bytes += sizeof(struct log_op);
	}
	return bytes ? bytes + sizeof(struct log_entry) : 0;
}

static void put_op(struct log_op *op, enum log_op_kind kind, const struct access *access,
		   uint32_t n_spans, const uint8_t *end)
{
	*op = (struct log_op){
		.kind = kind,
		.table = (uint8_t)access->table->id,
		.n_spans = (uint16_t)n_spans,
		.bytes = (uint32_t)(end - (const uint8_t *)op),
		.key = atomic_load_explicit(&access->record->key, memory_order_relaxed),
	};
}

static uint8_t *put_span(uint8_t *at, const struct access *access, uint32_t offset, uint32_t bytes)
{
	uint8_t *data = at + sizeof(struct log_span), *end = data + padded(bytes);
	const uint64_t zero = 0;

	*(struct log_span *)at = (struct log_span){ offset, bytes };
	/* The padding, before what may cover most of it. */
	memcpy(end - sizeof(zero), &zero, sizeof(zero));
	span_copy(data, access->record->data + offset, bytes);
	return end;
}

/* Rows that were added or deleted. */
static uint8_t *put_rows(const struct oltp_worker *worker, uint8_t *at, uint32_t *n_ops)
{
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];
		struct log_op *op = (struct log_op *)at;

		if (access->kind == ACCESS_INSERT || access->kind == ACCESS_REPLACE) {
			at = put_span((uint8_t *)(op + 1), access, 0, access->table->record_bytes);
			put_op(op, LOG_OP_PUT, access, 1, at);
		} else if (access->kind == ACCESS_DELETE) {
			at = (uint8_t *)(op + 1);
			put_op(op, LOG_OP_DELETE, access, 0, at);
		} else {
			continue;
		}
		++*n_ops;
	}
	return at;
}

/*
 * Changes of rows that were there before and still are; others are logged as a whole. Images of one
 * access that follow each other become one operation.
 */
static uint8_t *put_updates(const struct oltp_worker *worker, uint8_t *at, uint32_t *n_ops)
{
	for (uint32_t offset = 0; offset < worker->undo_used;) {
		const struct undo *undo = (const struct undo *)(worker->undo + offset);
		const struct access *access = &worker->accesses[undo->access];
		struct log_op *op = (struct log_op *)at;
		uint32_t n_spans = 0;

		if (unlikely(access->kind != ACCESS_EXCLUSIVE)) {
			offset += image_bytes(undo);
			continue;
		}
		at = (uint8_t *)(op + 1);
		do {
			at = put_span(at, access, undo->offset, undo->bytes);
			offset += image_bytes(undo);
			undo = (const struct undo *)(worker->undo + offset);
		} while (++n_spans < SPANS_MAX && offset < worker->undo_used &&
			 &worker->accesses[undo->access] == access);
		put_op(op, LOG_OP_UPDATE, access, n_spans, at);
		++*n_ops;
	}
	return at;
}

/* Announces the open epoch, with room for the entry in a chunk of it. */
static enum oltp_rc entry_begin(struct log_buffer *buffer, uint32_t bound, uint64_t *ret_csn)
{
	struct log *log = buffer->log;

	for (;;) {
		uint64_t epoch = atomic_load_explicit(&log->epoch, memory_order_acquire);

		if (!log_is_running(log))
			return OLTP_IO;
		/* The buffer knows epoch and room: the log thread may own the chunk by now. */
		if ((buffer->chunk_epoch != epoch || buffer->room < bound) &&
		    log_chunk_open(buffer, epoch, bound))
			return OLTP_NO_MEMORY;
		atomic_store_explicit(&buffer->announced, epoch, memory_order_release);
		*ret_csn = atomic_fetch_add_explicit(&log->csn, 1, memory_order_acq_rel);
		if (likely(atomic_load_explicit(&log->epoch, memory_order_acquire) == epoch))
			return OLTP_OK;
		atomic_store_explicit(&buffer->announced, 0, memory_order_release);
	}
}

/*
 * Ends the append. Release: a thread that sees it ended sees the entry. False: the log thread has
 * left it, and there is no entry.
 */
static bool entry_end(struct log_buffer *buffer)
{
	uint64_t announced = buffer->chunk_epoch;
	uint32_t used = buffer->chunk->used;

	if (likely(atomic_compare_exchange_strong_explicit(&buffer->announced, &announced, 0,
							   memory_order_release,
							   memory_order_relaxed))) {
		buffer->whole = used;
		if (unlikely(counter_read(&buffer->patience_ns)))
			atomic_store_explicit(&buffer->patience_ns, 0, memory_order_relaxed);
		return true;
	}
	/* A long append may need more time: patience doubles until it gets through. */
	atomic_store_explicit(&buffer->patience_ns,
			      2 * (counter_read(&buffer->patience_ns) ?: buffer->log->interval_ns),
			      memory_order_relaxed);
	buffer->chunk_epoch = 0;
	atomic_store_explicit(&buffer->announced, 0, memory_order_release);
	return false;
}

/*
 * The next entry will be about as long as this one. Its lines are in the cache of the CPU that
 * wrote the chunk to disk, or in none: the stores would have to wait for them, and the next lock
 * that is taken for the stores.
 */
static void prefetch_next(const struct log_chunk *chunk, uint32_t bytes)
{
	uint32_t from = chunk->used & ~(CACHE_LINE_BYTES - 1);
	uint32_t end = chunk->used + (bytes < PREFETCH_BYTES_MAX ? bytes : PREFETCH_BYTES_MAX);

	if (end > chunk->room)
		end = chunk->room;
	/* The first one is there: this entry ends in it. */
	for (from += CACHE_LINE_BYTES; from < end; from += CACHE_LINE_BYTES)
		prefetch_to_write(chunk->data + from);
}

/*
 * Writes the entry of the worker's transaction, for which there is room. False: it would be wrong,
 * and is not there.
 */
static bool entry_put(const struct oltp_worker *worker, struct log_buffer *buffer, uint64_t csn)
{
	struct log_chunk *chunk = buffer->chunk;
	struct log_entry *entry = (struct log_entry *)(chunk->data + chunk->used);
	uint8_t *at = (uint8_t *)(entry + 1);
	uint32_t n_ops = 0;

	if (has_rows(worker))
		at = put_rows(worker, at, &n_ops);
	at = put_updates(worker, at, &n_ops);
	/* Memory may have been taken since it was asked last: zeroes may have been copied. */
	atomic_signal_fence(memory_order_seq_cst);
	if (revoked_was_accessed(worker))
		return false;
	if (unlikely(!n_ops))
		return true;
	*entry = (struct log_entry){ (uint32_t)(at - (uint8_t *)entry), n_ops, csn };
	if (!chunk->n_entries++)
		chunk->csn_first = csn;
	chunk->csn_last = csn;
	chunk->used += entry->bytes;
	buffer->room -= entry->bytes;
	prefetch_next(chunk, entry->bytes);
	return true;
}

enum oltp_rc log_append(struct oltp_worker *worker)
{
	struct log_buffer *buffer = worker->log;
	uint64_t bound = entry_bound(worker), csn;
	struct log *log = buffer->log;

	if (unlikely(log_state(log) == LOG_READ_ONLY))
		return bound ? OLTP_INVALID : OLTP_OK;
	if (!bound) {
		buffer->epoch = atomic_load_explicit(&log->epoch, memory_order_acquire);
		return log_is_running(log) ? OLTP_OK : OLTP_IO;
	}
	if (bound > UINT32_MAX - LOG_BLOCK_BYTES)
		return OLTP_FULL;
	do {
		enum oltp_rc rc = entry_begin(buffer, (uint32_t)bound, &csn);

		if (rc)
			return rc;
		buffer->epoch = buffer->chunk_epoch;
		if (unlikely(!entry_put(worker, buffer, csn))) {
			entry_end(buffer);
			return OLTP_LOST;
		}
	} while (unlikely(!entry_end(buffer)));
	log_wake(log);
	return OLTP_OK;
}
