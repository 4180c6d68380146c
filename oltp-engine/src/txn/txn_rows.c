// SPDX-License-Identifier: GPL-2.0-or-later
/* Adding and deleting rows, see txn.c. */
#include <errno.h>
#include <string.h>

#include "node_set.h"
#include "ordered.h"
#include "revoked.h"
#include "txn.h"

/*
 * Adding rows. Ordered indexes come last: O1.
 *
 * Another row with the same unique sort key is looked for twice: before the row is added, because
 * that finds most; and afterwards, because two transactions may add the same sort key at once. When
 * both have their keys in the index, at least one sees the other's, and fails.
 */

/* With a disk, room can be made: other records go there. */
static enum oltp_rc no_room(struct oltp_worker *worker, struct oltp_table *table)
{
	worker->wants_room = worker->engine->cold;
	worker->room_table = table;
	return txn_doom(worker, worker->wants_room ? OLTP_COLD : OLTP_NO_MEMORY);
}

/* OLTP_OK: no other row has a sort key that must be unique. Else as txn_scan_other. */
static enum oltp_rc check_unique(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
				 const void *data)
{
	/* The table has rows of different moments until all is redone (recover_redo.h). */
	if (worker->is_redo)
		return OLTP_OK;
	for (uint32_t i = 0; i < table->n_ordered; i++) {
		struct oltp_index *index = table->ordered[i];
		enum oltp_rc rc;

		if (!index->is_unique || !index->key_of)
			continue;
		rc = txn_scan_other(worker, index, ordered_key(index, key, data));
		if (rc)
			return rc;
	}
	return OLTP_OK;
}

/* The record that this transaction has deleted takes the row. */
static enum oltp_rc add_again(struct oltp_worker *worker, struct access *access, const void *data)
{
	struct oltp_table *table = access->table;
	struct record *record = access->record;

	if (access->kind == ACCESS_UNDONE) {
		ordered_remove(table, record, record->data, data, true);
	} else if (!access->image) {
		if (txn_save(worker, access, 0, table->record_bytes))
			return OLTP_FULL;
		access->image = worker->undo_last + 1;
	}
	memcpy(record->data, data, table->record_bytes);
	access->kind = access->kind == ACCESS_UNDONE ? ACCESS_INSERT : ACCESS_REPLACE;
	return OLTP_OK;
}

/* A new record. OLTP_EXISTS: somebody was faster. */
static enum oltp_rc add(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			uint64_t hash, const void *data)
{
	struct record *record = txn_record_alloc(worker, table, key), *existing;
	struct access *access;
	uint64_t version;
	struct index_ref ref;
	int rc;

	if (!record)
		return no_room(worker, table);
	memcpy(record->data, data, table->record_bytes);
	rc = index_insert(&table->index, record, key, hash, &ref, &existing, &version);
	if (rc) {
		txn_record_free(worker, record);
		return rc == -EEXIST ? OLTP_EXISTS : txn_doom(worker, OLTP_NO_MEMORY);
	}
	access = txn_access_push(worker, table, record, &ref, ACCESS_INSERT);
	if (unlikely(promise_watches(&worker->engine->promise, hash)))
		access->is_taken = promise_insert(worker, table);
	if (!worker->n_nodes)
		return OLTP_OK;
	return node_set_update(worker, index_version_of(&table->index, hash), version,
			       (version + INDEX_VERSION_ONE) & INDEX_VERSION_MASK, NULL, 0);
}

enum oltp_rc oltp_txn_insert(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			     const void *data)
{
	struct record *existing;
	enum oltp_rc rc;
	uint64_t hash;

	if (worker->state != TXN_ACTIVE)
		return OLTP_INVALID;
	hash = txn_hash_of(worker, table, key);
	do {
		/* If the row is there, no record is built in vain, and it is locked. */
		rc = txn_access(worker, table, key, hash, TXN_NO_NODE, &existing);
		if (rc != OLTP_NOT_FOUND)
			return rc ?: OLTP_EXISTS;
		rc = check_unique(worker, table, key, data);
		if (rc)
			return rc;
		if (worker->n_accesses == worker->engine->txn_records_max)
			return txn_doom(worker, OLTP_FULL);
		/* OLTP_EXISTS: another row came meanwhile. It may go again, so it is locked. */
		rc = existing ? add_again(worker, txn_access_of(worker, existing), data) :
				add(worker, table, key, hash, data);
	} while (rc == OLTP_EXISTS);
	if (rc)
		return rc;
	worker->has_inserts = true;
	worker->n_operations++;
	if (!table->n_ordered)
		return OLTP_OK;
	worker->has_ordered = true;
	rc = ordered_insert(worker, table, key, data) ?:
	     check_unique(worker, table, key, data);
	return rc == OLTP_EXISTS ? txn_doom(worker, OLTP_CONFLICT) : rc;
}

/*
 * Deleting rows. A deleted record stays where it is, exclusively locked, until its
 * transaction ends: nothing has to be put back on abort, which therefore cannot fail, and a
 * transaction that finds the row in an index meanwhile waits, or dies, for its lock.
 */

/* What a record held before it was deleted and added again. */
static const void *image_of(const struct oltp_worker *worker, const struct access *access)
{
	return (const struct undo *)(worker->undo + access->image - 1) + 1;
}

enum oltp_rc oltp_txn_delete(struct oltp_worker *worker, struct oltp_table *table, uint64_t key)
{
	struct access *access;
	struct record *record;
	enum oltp_rc rc;

	if (worker->state != TXN_ACTIVE)
		return OLTP_INVALID;
	rc = txn_access(worker, table, key, txn_hash_of(worker, table, key), TXN_EXCLUSIVE,
			&record);
	if (rc)
		return rc;
	/* While a revoked row with the same bucket and tag is missing, this one stays: restore.h */
	if (unlikely(worker->engine->log) &&
	    revoked_may_hide(worker->engine, table, index_hash(key)))
		return txn_doom(worker, OLTP_LOST);
	access = txn_access_of(worker, record);
	if (access->kind == ACCESS_INSERT) {
		access->kind = ACCESS_UNDONE;
	} else {
		if (access->kind == ACCESS_REPLACE) {
			const void *image = image_of(worker, access);

			ordered_remove(table, record, record->data, image, true);
			memcpy(record->data, image, table->record_bytes);
		}
		access->kind = ACCESS_DELETE;
	}
	worker->has_deletes = true;
	return OLTP_OK;
}

/* Out of the hash index, and its slot is free. */
static void record_drop(struct oltp_worker *worker, struct access *access)
{
	struct record *record = access->record;
	uint64_t key = atomic_load_explicit(&record->key, memory_order_relaxed);

	index_remove(&access->table->index, index_hash(key), &access->ref);
	if (access->is_taken)
		promise_delete(worker, access->table);
	if (access->ref.entry & INDEX_BUFFERED) {
		worker->engine->ops->cold_deleted(worker->engine->cold, record);
		lock_release_exclusive(&record->lock, worker->stamp);
	} else {
		txn_record_free(worker, record);
	}
	access->kind = ACCESS_NONE;
}

void txn_rows_commit(struct oltp_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		struct access *access = &worker->accesses[i];
		struct record *record = access->record;

		if (access->kind < ACCESS_REPLACE)
			continue;
		if (access->kind == ACCESS_REPLACE) {
			ordered_remove(access->table, record, image_of(worker, access),
				       record->data, false);
		} else {
			ordered_remove(access->table, record, record->data, NULL, false);
			record_drop(worker, access);
		}
	}
}

void txn_rows_abort(struct oltp_worker *worker)
{
	for (uint32_t i = 0; i < worker->n_accesses; i++) {
		const struct access *access = &worker->accesses[i];
		struct record *record = access->record;

		if (access->kind == ACCESS_INSERT || access->kind == ACCESS_UNDONE)
			ordered_remove(access->table, record, record->data, NULL, false);
		else if (access->kind == ACCESS_REPLACE)
			ordered_remove(access->table, record, record->data,
				       image_of(worker, access), false);
	}
}
