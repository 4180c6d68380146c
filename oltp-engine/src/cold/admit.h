/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one way in for records that were read from disk. A transaction's reads (fetch.c) and reads
 * ahead (manager.c) hand in what they have read; here the index is pointed to it:
 *
 *	admit_to_block		in a slot of a block, like a record that was never on disk
 *	admit_all		the same for all records of the sectors that were read
 *	admit_to_buffer		in the buffer that it was read into: a buffered cold record
 *
 * For a record that is used once in a long time no other one should go to disk. As a buffered
 * record it takes no slot, and when the buffer is needed again the stub goes back into the index.
 * Only a buffered record that was written, or used again, moves into a block.
 *
 * On disk a record has the head that it has in memory, with the checksum where the lock is, so the
 * buffer becomes a record by setting the lock. In front of it lies a struct buffered.
 *
 * Invariants:
 *   V1  A buffered record is a record like any other, except for the code that installs and
 *       releases it: its lock word locks it, and the index says where it is.
 *   V2  Its eviction block counts it as live: the place on disk that the stub names stays its own.
 *   V3  The stub comes back only under the exclusive lock, and only if nobody ever held that lock
 *       to write: then what is on disk is the record. So C2 holds for buffered records, too.
 *   V4  The buffer is used again, or freed, only when an epoch has passed since the record was
 *       released.
 *
 * A buffered record is released by the owner of the buffer, by the manager, which moves it into a
 * block, or by the transaction that deletes it; the owner then finds that the index points
 * elsewhere.
 */
#ifndef OLTP_ADMIT_H
#define OLTP_ADMIT_H

#include "cold.h"
#include "oltp-engine/src/txn/engine.h"

/* The thread that hands records in. */
struct admit_by {
	_Atomic uint64_t *announced;	/* its epoch */
	uint32_t node;			/* of the slots that it takes */
	uint64_t ts;			/* the age of its locks */
};

static inline struct admit_by admit_by_worker(struct oltp_worker *worker)
{
	return (struct admit_by){
		.announced = &worker->announced,
		.node = worker->node,
		.ts = worker_ts(worker),
	};
}

static inline struct admit_by admit_by_manager(struct oltp_engine *engine)
{
	return (struct admit_by){ .announced = &engine->manager_announced };
}

/*
 * Puts a record that was read, checked and patched into a block. ref: its stub, whose eviction
 * block is pinned. Errors: -EALREADY (the stub is not there any more, which is fine), -ENOMEM.
 */
int admit_to_block(struct cold *cold, const struct admit_by *by, const struct index_ref *ref,
		   const void *data, uint64_t stamp);

/* Sectors of an eviction block that were read. */
struct admit_read {
	struct cold_block *block;	/* pinned, or the caller is the manager */
	int64_t from;			/* where they begin, counted from the block's first head */
	uint32_t bytes;
	const uint8_t *buffer;		/* NULL: it could not be read */
	uint32_t skip;			/* a slot to leave out; COLD_SLOTS_MAX: none */
	/*
	 * No transaction wants them yet: they come in as old records, and buffered ones move, too.
	 */
	bool is_ahead;
};

/*
 * Puts all records into blocks that lie whole in the sectors and are still on disk; not in an
 * epoch. *ret_bad: how many could not be read. Error: -ENOMEM (the rest stays on disk).
 */
int admit_all(struct cold *cold, const struct admit_by *by, const struct admit_read *read,
	      uint32_t *ret_bad);

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

/*
 * Leaves a record that was read, checked and patched in its buffer; in front of it is room for a
 * struct buffered, and its eviction block is pinned. ref: the stub, on success changed to the
 * buffered record. False: the stub is not there any more.
 */
bool admit_to_buffer(struct index_ref *ref, struct record *record, uint64_t stamp);

/* To be called with a buffered record locked by a transaction. */
void buffered_used(struct record *record, bool exclusive);

/* The record was taken out of the index, and is still locked: frees its place on disk. */
void buffered_deleted(struct cold *cold, struct record *record);

/*
 * Takes the record out of its buffer: into a block if is_wanted or if it has to be, else back to
 * the stub. In an epoch, or by the owner. False: somebody holds the record, or it was written and
 * there is no room.
 */
bool buffered_release(struct cold *cold, const struct admit_by *by, struct record *record,
		      const struct index_ref *ref, bool is_wanted);

#endif
