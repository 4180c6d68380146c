// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Deleting rows, see txn.c. A deleted record stays where it is, exclusively locked, until its
 * transaction ends: nothing has to be put back on abort, which therefore cannot fail, and whoever
 * finds the row in an index meanwhile waits, or dies, for its lock.
 */
#include <string.h>

#include "lost.h"
#include "ordered.h"
#include "txn.h"

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
	/* As long as a row is missing that looks like it, this one stays (restore.h). */
	if (unlikely(worker->engine->log) && lost_may_hide(worker->engine, table, index_hash(key)))
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
	if (access->ref.entry & INDEX_VISITOR) {
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
