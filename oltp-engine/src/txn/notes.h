/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a transaction has seen not to be there. Locks protect records; a key that is missing has
 * none. So a transaction notes the version of every place where it looked in vain (the chain of
 * the hash index) or scanned (the leaf of an ordered one), and commits only if all are as noted:
 * the node sets of Silo (Tu et al., "Speedy Transactions in Multicore In-Memory Databases",
 * SOSP 2013, section 4.6), over two-phase locking.
 *
 * Why that is serializable. Let a transaction's point be the moment in which its notes are found
 * unchanged, all its locks being held. Order transactions by their points.
 *
 *  - Records: of two that access one, and one of them writes, the second gets the lock after the
 *    first has released it, so after the first one's point and before its own. Adding and deleting
 *    are writes: a record is exclusively locked from before it can be found until its transaction
 *    ends, and a deleted one is taken out of the indexes only then, after the point.
 *  - Reader R missed a key that writer W adds. W's count of the version (I5, N3) comes before W's
 *    point. If it comes after R's look at its notes, then R's point is before W's, as it must be.
 *    If it comes before, and after R noted the version, R finds another one and fails. If it comes
 *    before R noted the version, R saw the new key as well, and waited or died for its lock.
 *  - W takes a key out that R missed: R saw the index after W's point. No version is needed for it,
 *    and none changes; what R noted stays true.
 *  - W's insert is taken back: R may fail for nothing, or have waited for nothing.
 *
 * Two that each insert where the other one looked: counting and the look at the notes are
 * sequentially consistent, so one at least sees the other's count.
 *
 * A transaction's own inserts are carried along: a note is moved on to the version after the insert
 * if it was that before it, and if a leaf was split, the new half is noted, too.
 *
 * A transaction that neither scans nor misses pays one test of a counter at its commit. Inserts
 * count the version up in the exchange that unlocks, or locks, the place anyway.
 */
#ifndef OLTP_NOTES_H
#define OLTP_NOTES_H

#include "engine.h"

struct note {
	const _Atomic uint64_t *word;
	uint64_t version;	/* & mask */
	uint64_t mask;
};

/*
 * version: of the word, from before it was looked. On failure, OLTP_FULL or OLTP_CONFLICT (it was
 * noted before and has changed since), the transaction is doomed.
 */
enum oltp_rc notes_add(struct oltp_worker *worker, const _Atomic uint64_t *word, uint64_t version,
		       uint64_t mask);

/*
 * The transaction itself has changed the word from before to after; new_word (NULL: none) is now
 * responsible for a part of it. Fails as notes_add.
 */
enum oltp_rc notes_carry(struct oltp_worker *worker, const _Atomic uint64_t *word, uint64_t before,
			 uint64_t after, const _Atomic uint64_t *new_word, uint64_t new_version);

/* With all locks held: is everything as noted? */
bool notes_hold(const struct oltp_worker *worker);

#endif
