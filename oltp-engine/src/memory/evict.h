/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moving records out of their slots, for the manager's thread: to disk in eviction blocks, or to
 * other slots. Why nobody sees a record half moved:
 *
 *  - Within memory, the record is exclusively locked from before the copy until the index points to
 *    the copy. A thread that waits for the lock, or gets it later through a pointer found before,
 *    sees in the index that the record is elsewhere and looks again.
 *  - To disk, it is locked for copying only, not while the copy is written: a mark is left in the
 *    lock word. Every use of the record in between wipes the mark out. When the copy is on disk,
 *    the record is locked again only if the mark is still there, so only if the copy is still true,
 *    and only then the index is changed. A failed or partial write changes nothing.
 *  - The old slot is freed when an epoch has passed (evict_settle).
 *
 * The manager takes locks without waiting, and as the oldest of all (timestamp 0): under either
 * scheme a transaction that meets it aborts and tries again. It cannot be part of a deadlock.
 */
#ifndef OLTP_EVICT_H
#define OLTP_EVICT_H

#include "oltp-engine/src/cold/cold.h"

#define EVICT_DEPTH	16u	/* eviction blocks being written at once */

struct evict_batch {
	struct io_request request;	/* first: found by its address */
	struct cold_block *block;
	uint8_t *buffer;
	uint64_t mark;
	uint32_t n;
	struct record *records[COLD_SLOTS_MAX];
};

struct evict {
	struct oltp_engine *engine;
	struct cold *cold;	/* NULL: records can only be moved within memory */
	struct io_queue io;
	struct evict_batch batches[EVICT_DEPTH];
	uint32_t n_idle;
	struct evict_batch *idle[EVICT_DEPTH];
	struct evict_batch *filling;	/* NULL: none */
	uint64_t last_mark;
	int error;		/* of the last eviction that failed; 0: none since evict_begin */
	struct record **limbo;	/* out of the index, slots not freed yet */
	size_t n_limbo, limbo_room;
	size_t n_awaited;	/* of them, the first: their slots are free once ... */
	uint64_t awaited_epoch;	/* ... this epoch has passed */
	_Atomic uint64_t moved;
};

/* Errors: -ENOMEM, those of io_uring. */
int evict_init(struct evict *evict, struct oltp_engine *engine);
void evict_finish(struct evict *evict);

enum evict_result {
	EVICT_DONE,		/* on its way, or gone already */
	EVICT_BUSY,		/* somebody holds it */
	EVICT_NOT,		/* no place to put it; evict.error says why, if it was the disk */
};

/* Starts with no error. */
void evict_begin(struct evict *evict);

/* To disk. The slot becomes free with evict_settle, if nobody uses the record until then. */
enum evict_result evict_to_disk(struct evict *evict, struct oltp_table *table,
				struct record *record);

/* Into another slot of an OPEN block. */
enum evict_result evict_move(struct evict *evict, struct oltp_table *table, uint32_t node,
			     struct record *record);

/* Waits until everything is written, and points the index to it. */
void evict_flush(struct evict *evict);

/*
 * Frees the slots of records that have gone, once an epoch has passed. False: it had not passed by
 * deadline_ns, and this is to be tried again. The next try waits for the same transactions, not for
 * those that began since: on a busy machine, one of them is always without a CPU.
 */
bool evict_settle(struct evict *evict, uint64_t deadline_ns);

#endif
