/* SPDX-License-Identifier: GPL-2.0-or-later */
/* oltp_index.h - ordered indexes of the engine, and scans of them. Included by oltp.h. */
#ifndef OLTP_INDEX_PUBLIC_H
#define OLTP_INDEX_PUBLIC_H

#include "oltp.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OLTP_INDEXES_MAX	8u	/* ordered indexes of one table */
#define OLTP_KEY_SPANS_MAX	8u	/* that a sort key is made of */

/*
 * An ordered index of a table: rows by a 64-bit sort key, those with the same one by their primary
 * key. Inserts and deletes maintain it.
 */
struct oltp_index_config {
	/*
	 * Makes the sort key, from the primary key and the bytes of the record in key_spans and
	 * from nothing else: for the same ones always the same. Called by any thread, while the
	 * record is locked; must not call the engine. NULL: the primary key itself.
	 */
	uint64_t (*key_of)(void *ctx, uint64_t primary_key, const void *record);
	void *ctx;
	/*
	 * What oltp_txn_update must not be asked for from then on (OLTP_INVALID): to change a sort
	 * key, delete the row and insert it again. With key_of at least one; it may be empty.
	 */
	struct oltp_span key_spans[OLTP_KEY_SPANS_MAX];
	uint32_t n_key_spans;
	/*
	 * Another one for a key_of that makes other keys than that of the programs before it: lazy
	 * recovery then does not take the sort keys that they wrote into the checkpoint.
	 */
	uint32_t key_version;
	/* No two rows with the same sort key: the insert of a second one is OLTP_EXISTS. */
	bool is_unique;
};

struct oltp_index;

/*
 * Lives as long as the table. No transaction may be running. NULL config: by primary key. Its
 * memory is that of indexes (struct oltp_mem_ops), which stays: 16 bytes for each row if rows come
 * in order, up to twice that if not; rows that go leave theirs to others as soon as no neighbour in
 * order (30 at most) is left. Errors: -EINVAL (key_spans), -EBUSY (there are rows, or cold records
 * in any table), -ENOSPC (OLTP_INDEXES_MAX), -ENOMEM.
 */
int oltp_index_create(struct oltp_table *table, const struct oltp_index_config *config,
		      struct oltp_index **ret_index);

struct oltp_range {
	uint64_t from, to;	/* sort keys, both included; from > to: nothing is in between */
	uint64_t limit;		/* so many rows at most, the first ones; 0: all */
	bool descending;	/* from to down to from */
	bool exclusive;		/* lock the rows exclusively, to update or delete them then */
};

/*
 * Calls fn with each row of a range of an ordered index, in order, with a shared or exclusive lock
 * held on it. Non-zero ends the scan, which is OLTP_OK all the same. Until commit no row may come
 * into what was scanned, or go from it.
 *
 * fn may call functions of the transaction, but not end it. Rows that it adds ahead of the scan may
 * or may not be met; those that it deletes are not. If it dooms the transaction, the scan ends with
 * what did.
 *
 * Caveats: give a limit rather than end the scan by fn, then no more is prefetched, or fetched from
 * disk, than is needed. What is protected are whole leaves: an insert of another transaction near
 * the range may be a conflict as well (not if the range is one key of a unique index, and its row
 * was found). WAIT_DIE does not protect an old transaction from those: one that scans where others
 * insert all the time may have to be run again often.
 *
 * OLTP_COLD: what of the range is known to be on disk is fetched all at once. OLTP_FULL: see
 * txn_records_max. OLTP_INVALID (besides: no transaction runs): dooms it, key_of is not true to its
 * contract.
 */
enum oltp_rc oltp_txn_scan(struct oltp_worker *worker, struct oltp_index *index,
			   const struct oltp_range *range,
			   int (*fn)(void *ctx, uint64_t sort_key, uint64_t primary_key,
				     const void *record),
			   void *ctx);

#ifdef __cplusplus
}
#endif

#endif
