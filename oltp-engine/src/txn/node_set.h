/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The node set of a transaction: what it has seen to be absent. Locks protect records; a key that
 * is missing has none. So a transaction remembers the version of every node where it looked in vain
 * (the chain of the hash index) or that it scanned (the leaf of an ordered index), and commits only
 * if all of them are unchanged: the node sets of Silo (Tu et al., "Speedy Transactions in Multicore
 * In-Memory Databases", SOSP 2013, section 4.6), over two-phase locking.
 *
 * Why that is serializable. Let a transaction's point be the moment in which its node set is found
 * unchanged, all its locks being held. Order transactions by their points.
 *
 *  - Records: if two transactions access one record and one of them writes it, the second gets the
 *    lock after the first has released it, so after the first one's point and before its own.
 *    Adding and deleting are writes: a record is exclusively locked from before it can be found
 *    until its transaction ends, and a deleted one leaves the indexes only then, after the point.
 *  - Reader R missed a key that writer W adds. W counts the version up (I5, N3) before W's point.
 *    If that is after R checks its node set, R's point is before W's, as it must be. If it is
 *    before that check and after R remembered the version, R finds another version and fails. If it
 *    is before R remembered the version, R saw the new key as well, and waited or died for its
 *    lock.
 *  - W takes a key out that R missed: R saw the index after W's point. No version is needed for
 *    that, and none changes; what R remembers stays true.
 *  - W's insert is taken back: R may fail, or have waited, without need.
 *
 * Two transactions that each insert where the other one looked: counting up and checking are
 * sequentially consistent, so at least one of them sees the other's count.
 *
 * A transaction's own inserts do not invalidate its node set: if a version was the remembered one
 * before the insert, the one after it is remembered instead. If a leaf was split, the new half
 * joins the set.
 *
 * A transaction that neither scans nor misses pays one test of a counter at its commit. Inserts
 * count the version up in the exchange that unlocks, or locks, the node anyway.
 */
#ifndef OLTP_NODE_SET_H
#define OLTP_NODE_SET_H

#include "engine.h"

struct node_version {
	const _Atomic uint64_t *word;
	uint64_t version;	/* & mask */
	uint64_t mask;
};

/*
 * version: of the word, read before the node was searched. On failure, OLTP_FULL or OLTP_CONFLICT
 * (the node is in the set already and has changed since), the transaction is doomed.
 */
enum oltp_rc node_set_add(struct oltp_worker *worker, const _Atomic uint64_t *word,
			  uint64_t version, uint64_t mask);

/*
 * The transaction itself has changed the word from before to after; new_word (NULL: none) is now
 * responsible for a part of the node's keys. Fails as node_set_add.
 */
enum oltp_rc node_set_update(struct oltp_worker *worker, const _Atomic uint64_t *word,
			     uint64_t before, uint64_t after, const _Atomic uint64_t *new_word,
			     uint64_t new_version);

/* With all locks held: is every node of the set unchanged? */
bool node_set_is_valid(const struct oltp_worker *worker);

#endif
