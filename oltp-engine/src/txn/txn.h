/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of transactions share: states and locking are in txn.c, see there. */
#ifndef OLTP_TXN_H
#define OLTP_TXN_H

#include "engine.h"
#include "ordered.h"

/* Only oltp_txn_abort is accepted from now on. Returns rc. */
enum oltp_rc txn_doom(struct oltp_worker *worker, enum oltp_rc rc);

/* Announced accesses, if they come in their order, are known already. NULL: this one is not. */
static inline const struct ahead *txn_ahead(struct oltp_worker *worker,
					    const struct oltp_table *table, uint64_t key)
{
	const struct ahead *ahead = &worker->ahead[worker->ahead_next];

	if (likely(worker->ahead_next < worker->n_ahead && ahead->key == key &&
		   ahead->table == table)) {
		worker->ahead_next++;
		return ahead;
	}
	return NULL;
}

static inline uint64_t txn_hash_of(struct oltp_worker *worker, const struct oltp_table *table,
				   uint64_t key)
{
	const struct ahead *ahead = txn_ahead(worker, table, key);

	return ahead ? ahead->hash : index_hash(key);
}

enum txn_access {
	TXN_SHARED = 0,
	TXN_EXCLUSIVE = 1,
	/* That it is missing needs no place in the node set, or is protected otherwise. */
	TXN_NO_NODE = 2,
};

/*
 * Finds and locks. OLTP_NOT_FOUND: *ret_record is NULL, or the record, locked, that this
 * transaction has deleted. Anything else but OLTP_OK dooms.
 */
enum oltp_rc txn_access(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			uint64_t hash, enum txn_access how, struct record **ret_record);

/* The access by which the transaction holds the record exclusively; NULL: it does not. */
struct access *txn_access_of(struct oltp_worker *worker, const struct record *record);

/* Room was checked by the caller. */
struct access *txn_access_push(struct oltp_worker *worker, struct oltp_table *table,
			       struct record *record, const struct index_ref *ref,
			       enum access_kind kind);

/* An exclusively locked record with its key set and data unset; NULL: out of memory. */
struct record *txn_record_alloc(struct oltp_worker *worker, struct oltp_table *table, uint64_t key);

/* The record is out of the index and exclusively locked by the caller; unlocks it. */
void txn_record_free(struct oltp_worker *worker, struct record *record);

/* Keeps a before-image of a part of the record, which is exclusively held. OLTP_FULL dooms. */
enum oltp_rc txn_save(struct oltp_worker *worker, const struct access *access, uint32_t offset,
		      uint32_t bytes);

/*
 * The ends of transactions that deleted rows, or added any to a table with ordered indexes:
 * txn_rows.c. At commit rows go, and are ACCESS_NONE afterwards; on abort, before anything else,
 * what was added leaves the ordered indexes.
 */
void txn_rows_commit(struct oltp_worker *worker);
void txn_rows_abort(struct oltp_worker *worker);

/*
 * Has another row this sort key? OLTP_EXISTS: yes, and a shared lock is held on it. OLTP_OK: no,
 * but the next moment there may be one. Anything else dooms.
 */
enum oltp_rc txn_scan_other(struct oltp_worker *worker, struct oltp_index *index,
			    struct tree_key key);

#endif
