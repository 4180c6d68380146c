// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * See recover_redo.h. Operations are done in batches, each a transaction, so that their cache
 * misses overlap, and with them the reads of rows that have gone to disk. A batch that has to be
 * aborted is run again. Its updates keep no before-images, so those that were made stay, and are
 * made again with the same values.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "oltp-engine/src/cold/admit.h"
#include "oltp-engine/src/cold/cold_checkpoint.h"
#include "oltp-engine/src/index/index.h"
#include "oltp-engine/src/log/log.h"
#include "oltp-engine/src/txn/ordered.h"
#include "oltp-engine/src/txn/txn.h"
#include "recover_redo.h"

/* An insert may hold the row twice, and note that it was missing. */
#define ACCESSES_PER_OP	4u

int redo_worker_create(struct oltp_engine *engine, struct oltp_worker **ret_worker)
{
	struct oltp_worker *worker;
	int rc = oltp_worker_create(engine, &worker);

	if (rc)
		return rc;
	worker_redo(worker);
	log_worker_leave(worker);
	*ret_worker = worker;
	return 0;
}

int redo_init(struct redo *redo, struct oltp_engine *engine)
{
	*redo = (struct redo){ .engine = engine };
	return redo_worker_create(engine, &redo->worker);
}

void redo_finish(struct redo *redo)
{
	oltp_worker_destroy(redo->worker);
	recover_keys_finish(&redo->missing);
	free(redo->scratch);
	redo->worker = NULL;
	redo->scratch = NULL;
}

bool redo_has_missing(const struct redo *redo, uint32_t *ret_table, uint64_t *ret_key)
{
	const struct recover_key *key = recover_keys_any(&redo->missing);

	if (!key)
		return false;
	*ret_table = key->table;
	*ret_key = key->key;
	return true;
}

/* Two neighbours with the same sort key. */
static bool has_double(const struct oltp_index *index, uint64_t ret_keys[2])
{
	struct tree_key at = TREE_KEY_MIN, last = TREE_KEY_MAX;
	struct tree_leaf leaf;
	bool is_first = true;

	for (;; at = tree_key_next(leaf.high)) {
		tree_read(&index->tree, at, TREE_KEY_MAX, &leaf);
		for (uint32_t i = 0; i < leaf.n; i++) {
			if (!is_first && leaf.keys[i].sort == last.sort) {
				ret_keys[0] = last.primary;
				ret_keys[1] = leaf.keys[i].primary;
				return true;
			}
			last = leaf.keys[i];
			is_first = false;
		}
		if (!tree_key_less(leaf.high, TREE_KEY_MAX))
			return false;
	}
}

bool redo_has_double(struct redo *redo, struct redo_double *ret_double)
{
	struct oltp_engine *engine = redo->engine;
	bool is_found = false;

	/* For the epoch, in which nodes stay. */
	oltp_txn_begin(redo->worker);
	for (uint32_t t = 0; !is_found && t < tables_count(engine); t++) {
		const struct oltp_table *table = engine->tables[t];

		for (uint32_t i = 0; !is_found && i < table->n_ordered; i++) {
			const struct oltp_index *index = table->ordered[i];

			*ret_double = (struct redo_double){ .table = t, .index = i };
			is_found = index->key_of && index->is_unique &&
				   has_double(index, ret_double->keys);
		}
	}
	oltp_txn_abort(redo->worker);
	return is_found;
}

/* Result of an operation, beside enum oltp_rc. */
enum {
	COMMIT_FIRST = -1,	/* commit what was done so far, then do it again */
};

static bool has_same_keys(const struct oltp_table *table, const uint8_t *a, const uint8_t *b)
{
	for (uint32_t i = 0; i < table->n_key_spans; i++) {
		const struct oltp_span *span = &table->key_spans[i];

		if (memcmp(a + span->offset, b + span->offset, span->bytes))
			return false;
	}
	return true;
}

/* Puts the row over one that is there. With other sort keys that one leaves the indexes first. */
static int put_over(struct redo *redo, const struct redo_op *op)
{
	struct oltp_table *table = op->table;
	enum oltp_rc rc;
	void *record;

	rc = oltp_txn_update(redo->worker, table, op->key, NULL, 0, &record);
	if (rc)
		return (int)rc;
	if (!has_same_keys(table, record, op->row)) {
		rc = oltp_txn_delete(redo->worker, table, op->key);
		return rc ? (int)rc : COMMIT_FIRST;
	}
	memcpy(record, op->row, table->record_bytes);
	return OLTP_OK;
}

/*
 * Puts the row in the place of a cold one, which need not be read. Not if that has other sort keys,
 * which must leave the ordered indexes.
 */
static bool put_over_cold(struct redo *redo, const struct redo_op *op)
{
	const struct admit_by by = admit_by_worker(redo->worker);
	struct index_ref ref;

	if (index_find(&op->table->index, op->key, op->hash, &ref) || !(ref.entry & INDEX_STUB) ||
	    (ref.entry & INDEX_ADDR_MASK) == INDEX_REVOKED ||
	    !ordered_has(op->table, op->key, op->row))
		return false;
	/* The stub's block stays: this is in an epoch. */
	return !admit_to_block(redo->engine->cold, &by, &ref, op->row,
			       epoch_now(&redo->engine->epoch));
}

static int put(struct redo *redo, const struct redo_op *op)
{
	enum oltp_rc rc;

	if (put_over_cold(redo, op))
		return OLTP_OK;
	rc = oltp_txn_insert(redo->worker, op->table, op->key, op->row);
	return rc == OLTP_EXISTS ? put_over(redo, op) : (int)rc;
}

static bool is_of_keys(const struct redo *redo, const struct redo_op *op)
{
	for (uint32_t i = 0; op->table->n_key_spans && i < op->n_spans; i++) {
		const struct redo_span *span = &redo->spans[op->first_span + i];

		if (ordered_is_key(op->table, &(struct oltp_span){ span->offset, span->bytes }))
			return true;
	}
	return false;
}

static void set_bytes(const struct redo *redo, const struct redo_op *op, uint8_t *record)
{
	for (uint32_t i = 0; i < op->n_spans; i++) {
		const struct redo_span *span = &redo->spans[op->first_span + i];

		memcpy(record + span->offset, span->data, span->bytes);
	}
}

/* Of a row that is only in the checkpoint, which need not be read for it. */
static bool patch_row(const struct redo *redo, const struct redo_op *op)
{
	uint8_t *patch;
	struct index_ref ref;

	if (!redo->engine->cold ||
	    index_find(&op->table->index, op->key, op->hash, &ref) || is_of_keys(redo, op))
		return false;
	patch = cold_patch_get(redo->engine->cold, ref.entry);
	for (uint32_t i = 0; patch && i < op->n_spans; i++) {
		const struct redo_span *span = &redo->spans[op->first_span + i];

		cold_patch_set(patch, op->table, span->offset, span->data, span->bytes);
	}
	return patch;
}

static int update(struct redo *redo, struct redo_op *op)
{
	enum oltp_rc rc;
	void *record;

	if (patch_row(redo, op))
		return OLTP_OK;
	rc = oltp_txn_update(redo->worker, op->table, op->key, NULL, 0, &record);
	if (rc)
		return (int)rc;
	if (unlikely(is_of_keys(redo, op))) {
		/* An index that was not there when the row was updated: the row is put anew. */
		memcpy(redo->scratch, record, op->table->record_bytes);
		set_bytes(redo, op, redo->scratch);
		op->kind = REDO_INSERT;
		op->row = redo->scratch;
		return put_over(redo, op);
	}
	set_bytes(redo, op, record);
	return OLTP_OK;
}

/* The row need not be read if it is only in the checkpoint. */
static int delete(struct redo *redo, struct redo_op *op)
{
	struct oltp_table *table = op->table;
	const uint64_t *sorts;
	struct index_ref ref;

	if (!op->is_done && redo->engine->cold &&
	    !index_find(&table->index, op->key, op->hash, &ref) &&
	    cold_checkpoint_delete(redo->engine->cold, table, op->hash, &ref, &sorts)) {
		ordered_take(table, op->key, sorts);
		op->is_done = true;
	}
	return op->is_done ? OLTP_OK : (int)oltp_txn_delete(redo->worker, table, op->key);
}

static int apply(struct redo *redo, struct redo_op *op)
{
	switch (op->kind) {
	case REDO_INSERT:
		return put(redo, op);
	case REDO_UPDATE:
		return update(redo, op);
	case REDO_DELETE:
		return delete(redo, op);
	}
	return OLTP_INVALID;
}

/*
 * Counts an operation that was committed, or whose row was missing: once, although a batch may be
 * run several times.
 */
static int settle(struct redo *redo, const struct redo_op *op, bool was_missing)
{
	switch (op->kind) {
	case REDO_INSERT:
		redo->counts.puts++;
		recover_keys_remove(&redo->missing, op->table->id, op->key);
		return 0;
	case REDO_UPDATE:
		if (!was_missing) {
			redo->counts.updates++;
			return 0;
		}
		redo->counts.passed_over++;
		return recover_keys_add(&redo->missing, op->table->id, op->key);
	case REDO_DELETE:
		redo->counts.deletes += !was_missing;
		redo->counts.passed_over += was_missing;
		recover_keys_remove(&redo->missing, op->table->id, op->key);
		return 0;
	}
	return -EINVAL;
}

/* The rows of the other operations that are known to be on disk are then read with this one. */
static void want_rest(struct redo *redo, uint32_t first)
{
	for (uint32_t i = first; i < redo->n_ops; i++) {
		const struct redo_op *op = &redo->ops[i];
		struct index_ref ref;

		if (!index_find(&op->table->index, op->key, op->hash, &ref) && ref.entry)
			txn_want(redo->worker, op->table, op->key, op->hash);
	}
}

/*
 * Aborts a transaction that failed before its commit, and does what has to be done before the next
 * attempt. Positive: try again.
 */
static int give_up(struct redo *redo, int rc, uint32_t failed_at)
{
	switch (rc) {
	case OLTP_CONFLICT:
		/* The manager moves records. */
		oltp_txn_abort(redo->worker);
		sched_yield();
		return 1;
	case OLTP_COLD:
		if (!redo->worker->wants_room)
			want_rest(redo, failed_at + 1);
		oltp_txn_abort(redo->worker);
		switch (oltp_cold_wait(redo->worker)) {
		case OLTP_OK:
			return 1;
		case OLTP_NO_MEMORY:
			return -ENOMEM;
		default:
			return -EIO;
		}
	case OLTP_NO_MEMORY:
		oltp_txn_abort(redo->worker);
		return -ENOMEM;
	case OLTP_FULL:
		/* A row deleted and put again in one transaction is kept in the undo buffer. */
		oltp_txn_abort(redo->worker);
		redo->batch_max /= 2;
		return redo->batch_max ? 1 : -ENOSPC;
	default:
		oltp_txn_abort(redo->worker);
		return -EUCLEAN;
	}
}

/*
 * Runs operations from first on in one transaction. *ret_done: the first one that is not committed.
 * Positive: go on from there.
 */
static int run(struct redo *redo, uint32_t first, uint32_t *ret_done)
{
	uint32_t end = redo->n_ops - first > redo->batch_max ? first + redo->batch_max :
							       redo->n_ops;
	bool was_missing[REDO_BATCH] = { false };
	uint32_t i;
	int rc = 0;

	*ret_done = first;
	oltp_txn_begin(redo->worker);
	for (i = first; i < end; i++) {
		rc = apply(redo, &redo->ops[i]);
		was_missing[i] = rc == OLTP_NOT_FOUND;
		if (rc && !was_missing[i])
			break;
		rc = 0;
	}
	if (rc && rc != COMMIT_FIRST)
		return give_up(redo, rc, i);
	rc = (int)oltp_txn_commit(redo->worker);
	if (rc)
		return give_up(redo, rc, i);
	*ret_done = i;
	for (uint32_t j = first; !rc && j < i; j++)
		rc = settle(redo, &redo->ops[j], was_missing[j]);
	return rc;
}

static void prefetch(const struct redo *redo)
{
	for (uint32_t i = 0; i < redo->n_ops; i++)
		index_prefetch(&redo->ops[i].table->index, redo->ops[i].hash);
	for (uint32_t i = 0; i < redo->n_ops; i++) {
		const uint8_t *at = index_guess(&redo->ops[i].table->index, redo->ops[i].hash);

		if (at)
			__builtin_prefetch(at, 1);
	}
}

int redo_flush(struct redo *redo)
{
	uint32_t done = 0;
	int rc = 0;

	redo->batch_max = redo->engine->txn_records_max / ACCESSES_PER_OP ?: 1;
	prefetch(redo);
	while (rc >= 0 && done < redo->n_ops)
		rc = run(redo, done, &done);
	redo->n_ops = redo->n_spans = 0;
	return rc < 0 ? rc : 0;
}

static struct redo_op *add(struct redo *redo, enum redo_kind kind, struct oltp_table *table,
			   uint64_t key)
{
	struct redo_op *op = &redo->ops[redo->n_ops++];

	*op = (struct redo_op){ .kind = kind, .table = table, .key = key,
				.hash = index_hash(key) };
	return op;
}

static int flush_if_full(struct redo *redo)
{
	return redo->n_ops == REDO_BATCH ? redo_flush(redo) : 0;
}

int redo_put(struct redo *redo, struct oltp_table *table, uint64_t key, const void *row)
{
	add(redo, REDO_INSERT, table, key)->row = row;
	return flush_if_full(redo);
}

int redo_delete(struct redo *redo, struct oltp_table *table, uint64_t key)
{
	add(redo, REDO_DELETE, table, key);
	return flush_if_full(redo);
}

static int scratch_for(struct redo *redo, const struct oltp_table *table)
{
	uint8_t *scratch;

	if (redo->scratch_bytes >= table->record_bytes)
		return 0;
	scratch = realloc(redo->scratch, table->record_bytes);
	if (!scratch)
		return -ENOMEM;
	redo->scratch = scratch;
	redo->scratch_bytes = table->record_bytes;
	return 0;
}

/*
 * An operation on keys of an index is a batch of its own, since there is one scratch for the row.
 */
static int flush_of_keys(struct redo *redo, const struct redo_op *op)
{
	int rc;

	if (!is_of_keys(redo, op))
		return flush_if_full(redo);
	rc = scratch_for(redo, op->table);
	return rc ?: redo_flush(redo);
}

/* Spans beyond what a batch has room for go into an operation of their own, in order. */
static int update_part(struct redo *redo, struct oltp_table *table, uint64_t key,
		       const struct redo_span *spans, uint32_t n_spans)
{
	struct redo_op *op;
	int rc;

	if (redo->n_spans + n_spans > REDO_SPANS) {
		rc = redo_flush(redo);
		if (rc)
			return rc;
	}
	memcpy(redo->spans + redo->n_spans, spans, n_spans * sizeof(*spans));
	op = add(redo, REDO_UPDATE, table, key);
	op->first_span = redo->n_spans;
	op->n_spans = n_spans;
	redo->n_spans += n_spans;
	return flush_of_keys(redo, op);
}

int redo_update(struct redo *redo, struct oltp_table *table, uint64_t key, struct log_cursor from)
{
	struct redo_span spans[REDO_SPANS];
	const struct log_span *span;
	uint32_t n = 0;
	int rc;

	while ((rc = log_spans_next(&from, &span)) > 0) {
		if (!log_span_fits(span, table->record_bytes))
			return -EUCLEAN;
		spans[n++] = (struct redo_span){ span->offset, span->bytes, log_span_data(span) };
		if (n < REDO_SPANS)
			continue;
		rc = update_part(redo, table, key, spans, n);
		if (rc)
			return rc;
		n = 0;
	}
	if (rc)
		return -EUCLEAN;
	return n ? update_part(redo, table, key, spans, n) : 0;
}

#define ROOM_FIRST	64u

static size_t home_of(const struct recover_keys *keys, uint32_t table, uint64_t key)
{
	return index_hash(key ^ (uint64_t)table << 48) & (keys->room - 1);
}

/* The slot of the key, or the one where it would go. */
static size_t slot_of(const struct recover_keys *keys, uint32_t table, uint64_t key)
{
	size_t at = home_of(keys, table, key);

	while (keys->slots[at].is_used &&
	       (keys->slots[at].key != key || keys->slots[at].table != table))
		at = (at + 1) & (keys->room - 1);
	return at;
}

static int grow(struct recover_keys *keys)
{
	struct recover_keys larger = { .room = keys->room ? keys->room * 2 : ROOM_FIRST,
				       .n = keys->n };

	larger.slots = calloc(larger.room, sizeof(*larger.slots));
	if (!larger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < keys->room; i++) {
		const struct recover_key *slot = &keys->slots[i];

		if (slot->is_used)
			larger.slots[slot_of(&larger, slot->table, slot->key)] = *slot;
	}
	free(keys->slots);
	*keys = larger;
	return 0;
}

int recover_keys_add(struct recover_keys *keys, uint32_t table, uint64_t key)
{
	struct recover_key *slot;

	if (keys->n >= keys->room / 2) {
		int rc = grow(keys);

		if (rc)
			return rc;
	}
	slot = &keys->slots[slot_of(keys, table, key)];
	keys->n += !slot->is_used;
	*slot = (struct recover_key){ key, table, true };
	return 0;
}

void recover_keys_remove(struct recover_keys *keys, uint32_t table, uint64_t key)
{
	size_t mask = keys->room - 1, hole, at;

	if (!keys->n)
		return;
	hole = slot_of(keys, table, key);
	if (!keys->slots[hole].is_used)
		return;
	keys->n--;
	/*
	 * Keys behind the hole move up, unless they would then be before where they are looked for.
	 */
	for (at = (hole + 1) & mask; keys->slots[at].is_used; at = (at + 1) & mask) {
		size_t home = home_of(keys, keys->slots[at].table, keys->slots[at].key);

		if (((at - home) & mask) >= ((at - hole) & mask)) {
			keys->slots[hole] = keys->slots[at];
			hole = at;
		}
	}
	keys->slots[hole].is_used = false;
}

const struct recover_key *recover_keys_any(const struct recover_keys *keys)
{
	for (size_t i = 0; i < keys->room; i++) {
		if (keys->slots[i].is_used)
			return &keys->slots[i];
	}
	return NULL;
}

void recover_keys_finish(struct recover_keys *keys)
{
	free(keys->slots);
	*keys = (struct recover_keys){ 0 };
}
