// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adding rows, see txn.c. Ordered indexes come last: O1.
 *
 * Unique sort keys are looked for twice. Before the row is added, because most often that decides
 * it; and afterwards, because of two transactions that add the same one at a time, when each has
 * its own key in the index, one at least sees the other's: that one fails.
 */
#include <errno.h>
#include <string.h>

#include "notes.h"
#include "ordered.h"
#include "txn.h"
#include "txn_scan.h"

/* With a disk to put others on, room can be made. */
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
	/* Rows of different times are side by side until all is redone. */
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
	txn_access_push(worker, table, record, &ref, ACCESS_INSERT);
	if (!worker->n_notes)
		return OLTP_OK;
	return notes_carry(worker, index_version_of(&table->index, hash), version,
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
		/* Most often decides it without building a record; also takes the shared lock. */
		rc = txn_access(worker, table, key, hash, TXN_UNNOTED, &existing);
		if (rc != OLTP_NOT_FOUND)
			return rc ?: OLTP_EXISTS;
		rc = check_unique(worker, table, key, data);
		if (rc)
			return rc;
		if (worker->n_accesses == worker->engine->txn_records_max)
			return txn_doom(worker, OLTP_FULL);
		/* Whether the one that was there meanwhile stays is seen under its lock. */
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
