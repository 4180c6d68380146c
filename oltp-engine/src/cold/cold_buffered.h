/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Buffered cold records: records on disk that were read and are used in the buffer that they were
 * read into. A record that is used once in a long time is not worth that another one goes to disk
 * for it; so it gets no slot in a block, the index points into the read buffer, and when the buffer
 * is needed again the stub goes back into the index. Only a buffered record that was written, or
 * used again, moves into a block.
 *
 * On disk a record has the head that it has in memory, with the checksum where the lock is, so the
 * buffer becomes a record by setting the lock. In front of it lies a struct buffered.
 *
 * Invariants:
 *   V1  For everybody but those who install and release them, a buffered record is a record like
 *       any other: its lock word locks it, and the index says where it is.
 *   V2  Its eviction block counts it as live: the place on disk that the stub names stays its own.
 *   V3  The stub comes back only under the exclusive lock, and only if nobody ever held that lock
 *       to write: then what is on disk is the record. So C2 holds for buffered records, too.
 *   V4  The buffer is used again, or freed, only when an epoch has passed since the record was
 *       released.
 *
 * A buffered record is released by the owner of the buffer, or by the manager, which moves it into
 * a block, or by whoever deletes it; the owner then finds that the index points elsewhere.
 */
#ifndef OLTP_COLD_BUFFERED_H
#define OLTP_COLD_BUFFERED_H

#include "cold.h"
#include "oltp-engine/src/txn/engine.h"

struct buffered {
	_Atomic uint32_t uses;		/* counted up to BUFFERED_USES_MAX */
	_Atomic bool is_written;	/* somebody held it to write */
	uint64_t stub;			/* the entry that it replaced */
};

#define BUFFERED_USES_MAX		2u

static inline struct buffered *buffered_of(struct record *record)
{
	return (struct buffered *)record - 1;
}

/* By whoever has locked a buffered record. */
void buffered_used(struct record *record, bool exclusive);

/*
 * Puts what was read and checked into the index; the block is pinned, and in front of the record is
 * room for a struct buffered. ref: the stub, on success changed to the buffered record. False: the
 * stub is not there any more.
 */
bool buffered_install(struct index_ref *ref, struct record *record, uint64_t stamp);

/* The record was taken out of the index, and is still locked: its place on disk is nobody's. */
void buffered_deleted(struct cold *cold, struct record *record);

/*
 * Takes the record out of its buffer: into a block if is_wanted or if it has to be, else back to
 * the stub. In an epoch, or by the owner. False: somebody holds the record, or it was written and
 * there is no room.
 */
bool buffered_release(struct cold *cold, struct record *record, const struct index_ref *ref,
		      uint32_t node, uint64_t ts, bool is_wanted);

#endif
