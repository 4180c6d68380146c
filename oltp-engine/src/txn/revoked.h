/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory taken by force. What happens to a block:
 *
 *  1. It is marked REVOKED, engine.revoked.times is counted up, and zeroed memory is put in its
 *     place, by the SIGBUS handler of the first thread that touches it or by oltp_memory_revoked,
 *     whichever is first. Only stores and mmap(2), so it can be done in the handler. Threads go
 *     on: they read zeroes there, and what they write there is lost.
 *  2. Until step 3 is done, transactions that accessed such a block fail at their commit, which
 *     compares this number with engine.revoked.swept as of its begin. Others, which
 *     look for a key and find zeroes, are told OLTP_LOST instead of NOT_FOUND (revoked_may_hide).
 *  3. The manager replaces what the index had there by INDEX_REVOKED and counts the records.
 *  4. With a log, they are brought back (restore.h). Without one they stay revoked.
 *
 * A thread that points the index at a place in a block outside of a transaction may do so after
 * step 3 was done for the block: it calls revoked_check_move.
 *
 * The sort keys of a revoked record are not known, so ordered indexes keep them. A scan that meets
 * such a key looks for the row in the hash index, as for any key. It finds OLTP_LOST; or no row, if
 * that was to be taken out: then the scan takes the key out (txn_scan.c).
 */
#ifndef OLTP_REVOKED_H
#define OLTP_REVOKED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

/*
 * Did the running transaction access a record in a revoked block? If not, all bytes that it read
 * from records before this call are the bytes that were written there.
 */
bool revoked_is_accessed(const struct oltp_worker *worker);

static inline bool revoked_was_accessed(const struct oltp_worker *worker)
{
	return unlikely(worker->revokes_seen !=
			atomic_load_explicit(&worker->engine->revoked.times,
					     memory_order_acquire)) &&
	       revoked_is_accessed(worker);
}

/*
 * Is the record in a revoked block? If not, all bytes that were read from it before this call are
 * the bytes that were written there.
 */
bool revoked_is_record(const struct oltp_engine *engine, const struct record *record);

/* Could a key with that hash have been in a revoked block? */
bool revoked_may_hide(struct oltp_engine *engine, struct oltp_table *table, uint64_t hash);

/* Step 3, if there is anything new. */
void revoked_sweep(struct oltp_engine *engine);

/*
 * The index points to the record now: if it is in a revoked block, step 3 is to be done once more.
 */
void revoked_check_move(struct oltp_engine *engine, const struct record *record);

/* Records that are missing. */
uint64_t revoked_count(const struct oltp_table *table);

enum revoked_look {
	REVOKED_NO,		/* the key is there, or has nothing in common with a revoked one */
	REVOKED_YES,		/* it is not there, and looks like a revoked one */
	REVOKED_NOT_KNOWN,		/* steps 1 to 3 are under way */
};

/* Call in an announced epoch. */
enum revoked_look revoked_look(const struct oltp_table *table, uint64_t key, uint64_t hash);

/*
 * The record, which is whole and exclusively locked, takes the place of a revoked one that its key
 * looks like. False: there is none, or the key is there. In a transaction.
 */
bool revoked_replace(struct oltp_table *table, struct record *record, uint64_t key);

/*
 * All records are back that were missing after so many times that blocks were revoked. Returns
 * since when they were missing (CLOCK_MONOTONIC); 0: not known. Called by the thread that brings
 * records back.
 */
uint64_t revoked_restored(struct oltp_engine *engine, uint64_t times);

/* At the end of an engine: the SIGBUS handler forgets it. */
void revoked_finish(struct oltp_engine *engine);

#endif
