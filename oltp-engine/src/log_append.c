// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a transaction has changed, by value, from its accesses and the before-images that it kept:
 * see log_append.h. Only bytes that it had handed out for writing are logged, as they are now.
 */
#include <string.h>

#include "engine.h"
#include "log_private.h"

#define SPANS_MAX	UINT16_MAX	/* of one operation */

static uint32_t padded(uint32_t bytes)
{
	return (bytes + LOG_ENTRY_ALIGN - 1) & ~(LOG_ENTRY_ALIGN - 1);
}

/*
 * More bytes than the entry will take; 0: nothing was changed. An image in the undo buffer takes a
 * third more here at most: of its head, 16 bytes, and 8 bytes or more become 24 and as many.
 */
static uint64_t entry_bound(const struct oltp_worker *worker)
{
	uint64_t bytes = worker->undo_used + worker->undo_used / 3;

	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];

		if (access->kind == ACCESS_INSERT || access->kind == ACCESS_REPLACE)
			bytes += sizeof(struct log_op) + sizeof(struct log_span) +
				 padded(access->table->record_bytes);
		else if (access->kind == ACCESS_DELETE)
			bytes += sizeof(struct log_op);
	}
	return bytes ? bytes + sizeof(struct log_entry) : 0;
}

static uint8_t *put_op(uint8_t *at, enum log_op_kind kind, const struct access *access)
{
	struct log_op *op = (struct log_op *)at;

	*op = (struct log_op){
		.kind = kind,
		.table = (uint8_t)access->table->id,
		.bytes = sizeof(*op),
		.key = atomic_load_explicit(&access->record->key, memory_order_relaxed),
	};
	return at + sizeof(*op);
}

static uint8_t *put_span(uint8_t *at, struct log_op *op, const uint8_t *data, uint32_t offset,
			 uint32_t bytes)
{
	struct log_span *span = (struct log_span *)at;
	uint32_t room = padded(bytes);
	const uint64_t zero = 0;

	*span = (struct log_span){ offset, bytes };
	at += sizeof(*span);
	/* The padding, before what may cover most of it. */
	memcpy(at + room - sizeof(zero), &zero, sizeof(zero));
	memcpy(at, data + offset, bytes);
	op->n_spans++;
	op->bytes += (uint32_t)sizeof(*span) + room;
	return at + room;
}

/* Rows that were added or deleted. */
static uint8_t *put_rows(const struct oltp_worker *worker, uint8_t *at, uint32_t *n_ops)
{
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];
		struct log_op *op = (struct log_op *)at;

		if (access->kind == ACCESS_INSERT || access->kind == ACCESS_REPLACE) {
			at = put_op(at, LOG_OP_PUT, access);
			at = put_span(at, op, access->record->data, 0,
				      access->table->record_bytes);
		} else if (access->kind == ACCESS_DELETE) {
			at = put_op(at, LOG_OP_DELETE, access);
		} else {
			continue;
		}
		++*n_ops;
	}
	return at;
}

/*
 * The access whose record the bytes are in, if it was but updated: rows that were added or deleted
 * are logged as a whole. Images come mostly in the order of accesses, so the search goes on where
 * it was.
 */
static const struct access *updated(const struct oltp_worker *worker, const uint8_t *target,
				    uint32_t *hint)
{
	for (uint32_t n = worker->n_accesses; n; n--) {
		const struct access *access = &worker->accesses[*hint];

		if (access->kind >= ACCESS_EXCLUSIVE &&
		    (uintptr_t)target - (uintptr_t)access->record->data <
			    access->table->record_bytes)
			return access->kind == ACCESS_EXCLUSIVE ? access : NULL;
		if (++*hint == worker->n_accesses)
			*hint = 0;
	}
	return NULL;
}

static uint8_t *put_updates(const struct oltp_worker *worker, uint8_t *at, uint32_t *n_ops)
{
	const struct access *of_op = NULL;
	struct log_op *op = NULL;
	uint32_t hint = 0;

	for (uint32_t offset = 0; offset < worker->undo_used;) {
		const struct undo *undo = (const struct undo *)(worker->undo + offset);
		const struct access *access;

		offset += (uint32_t)sizeof(*undo) + padded(undo->bytes);
		if (!undo->bytes)
			continue;
		access = updated(worker, undo->target, &hint);
		if (!access)
			continue;
		if (access != of_op || op->n_spans == SPANS_MAX) {
			op = (struct log_op *)at;
			at = put_op(at, LOG_OP_UPDATE, access);
			of_op = access;
			++*n_ops;
		}
		at = put_span(at, op, access->record->data,
			      (uint32_t)(undo->target - access->record->data), undo->bytes);
	}
	return at;
}

/* There is an entry's room in a chunk of the epoch that is returned, announced and not closed. */
static enum oltp_rc entry_begin(struct log_buffer *buffer, uint32_t bound, uint64_t *ret_csn)
{
	struct log *log = buffer->log;

	for (;;) {
		uint64_t epoch = atomic_load_explicit(&log->epoch, memory_order_acquire);

		if (!log_is_running(log))
			return OLTP_IO;
		/* The chunk itself may be another's by now, if its epoch was closed. */
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

enum oltp_rc log_append(struct oltp_worker *worker)
{
	struct log_buffer *buffer = worker->log;
	uint64_t bound = entry_bound(worker), csn;
	struct log *log = buffer->log;
	struct log_chunk *chunk;
	struct log_entry *entry;
	uint32_t n_ops = 0;
	enum oltp_rc rc;
	uint8_t *at;

	if (unlikely(worker->is_redo))
		return OLTP_OK;
	if (!bound) {
		buffer->epoch = atomic_load_explicit(&log->epoch, memory_order_acquire);
		return log_is_running(log) ? OLTP_OK : OLTP_IO;
	}
	if (bound > UINT32_MAX - LOG_BLOCK_BYTES)
		return OLTP_FULL;
	rc = entry_begin(buffer, (uint32_t)bound, &csn);
	if (rc)
		return rc;
	chunk = buffer->chunk;
	entry = (struct log_entry *)(chunk->data + chunk->used);
	at = put_rows(worker, (uint8_t *)(entry + 1), &n_ops);
	at = put_updates(worker, at, &n_ops);
	if (likely(n_ops)) {
		*entry = (struct log_entry){ (uint32_t)(at - (uint8_t *)entry), n_ops, csn };
		if (!chunk->n_entries++)
			chunk->csn_first = csn;
		chunk->csn_last = csn;
		chunk->used += entry->bytes;
		buffer->room -= entry->bytes;
	}
	buffer->epoch = chunk->epoch;
	atomic_store_explicit(&buffer->announced, 0, memory_order_release);
	log_nudge(log);
	return OLTP_OK;
}
