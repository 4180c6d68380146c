/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Visitors: records on disk that were read and are used where they were read to. A record that is
 * used once in a long time is not worth that another one goes to disk for it; so it gets no slot in
 * a block, the index points into the read buffer, and when the buffer is needed again the index is
 * given back the stub. Only a visitor that was written, or used again, moves into a block.
 *
 * On disk a record has the head that it has in memory, with the checksum where the lock is, so the
 * buffer is made a record by setting the lock. In front of it lies what must be known of the visit.
 *
 * Invariants:
 *   V1  For everybody but those who begin and end visits a visitor is a record like any other: it
 *       is locked by its lock word, and where it is says the index.
 *   V2  Its eviction block counts it as live: the place on disk that the stub names stays its own.
 *   V3  The stub comes back only under the exclusive lock, and only if nobody ever held that lock
 *       to write: then what is on disk is the record. So C2 holds for visitors, too.
 *   V4  The buffer is used again, or freed, only when an epoch has passed since the visit ended.
 *
 * A visit is ended by the one who owns the buffer, or by the manager, which moves the record into a
 * block, or by whoever deletes the record; the owner then finds that the index points elsewhere.
 */
#ifndef OLTP_COLD_VISIT_H
#define OLTP_COLD_VISIT_H

#include "cold.h"
#include "oltp-engine/src/txn/engine.h"

struct cold_visit {
	_Atomic uint32_t uses;		/* counted up to COLD_VISIT_USES */
	_Atomic bool is_written;	/* somebody held it to write */
	uint64_t stub;			/* the entry that it replaced */
};

#define COLD_VISIT_USES		2u

static inline struct cold_visit *cold_visit_of(struct record *record)
{
	return (struct cold_visit *)record - 1;
}

/* By whoever has got a lock of a visitor. */
void cold_visit_note(struct record *record, bool exclusive);

/*
 * Makes a visitor of what was read and checked; the block is pinned, and in front of the record is
 * room for a struct cold_visit. ref: the stub, on success changed to the visitor. False: the stub
 * is not there any more.
 */
bool cold_visit_begin(struct index_ref *ref, struct record *record, uint64_t stamp);

/* A visitor that was taken out of the index, and is still locked: its place on disk is nobody's. */
void cold_visit_forget(struct cold *cold, struct record *record);

/*
 * Ends a visit: into a block if is_wanted or if it has to be, else back to the stub. In an epoch,
 * or by the owner. False: somebody holds the record, or it was written and there is no room.
 */
bool cold_visit_end(struct cold *cold, struct record *record, const struct index_ref *ref,
		    uint32_t node, uint64_t ts, bool is_wanted);

#endif
