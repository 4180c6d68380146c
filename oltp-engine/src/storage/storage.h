/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The storage manager's books: which blocks of 2 MiB there are, what each is used for, and which
 * record slots in it are free. What moves records (evict.c, shrink.c) and decides when (manager.c)
 * sits on it.
 *
 * A block is of one node and, once records are in it, of one table:
 *
 *	state		transitions
 *	UNUSED		storage_block_take -> OPEN; storage_release_unused -> (given back)
 *	OPEN		storage_block_close -> CLOSED
 *	CLOSED		storage_block_reopen -> OPEN; storage_block_retire -> UNUSED
 *	REVOKED		the host took it; stays so until the engine is closed
 *
 * Invariants:
 *   S1  Slots are handed out from OPEN blocks only.
 *   S2  A slot's bit is set from before its record can be found until after it no longer can.
 *   S3  A block becomes UNUSED or is given back only when an epoch has passed since the last record
 *       in it could be found (epoch.h): whoever found one may still lock it and look.
 *   S4  Slots of records that went elsewhere are freed, and so used again, under the same rule.
 *       Those of records that are no more (deleted, or an insert taken back) are freed at once: I4
 *       in index.h says why.
 *
 * Locks: a slab's may be taken under the storage's, not the other way round.
 */
#ifndef OLTP_STORAGE_H
#define OLTP_STORAGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "block_map.h"
#include "oltp-engine/src/base/mem.h"
#include "oltp-engine/src/base/util.h"
#include "oltp.h"

struct oltp_table;
struct record;

enum block_state {
	BLOCK_UNUSED,
	BLOCK_OPEN,
	BLOCK_CLOSED,
	BLOCK_REVOKED,
};

struct block {
	uint8_t *addr;
	struct oltp_table *table;	/* NULL: UNUSED */
	uint32_t node, part;		/* of the slab; that of an UNUSED one says nothing */
	size_t position;		/* in storage.blocks; under the storage's lock */
	uint64_t grant;			/* blocks of one add may be released together */
	_Atomic enum block_state state;	/* under the slab's lock; any thread may look */
	/* Under the lock of the slab that the block is of. */
	uint32_t n_slots, n_used;
	uint32_t n_free;		/* what the slab counts of it: 0 unless OPEN */
	uint32_t first_word;		/* of used: no free slot in a word before it */
	bool is_partial;		/* in the slab's list: OPEN, with free slots */
	bool is_forgotten;		/* REVOKED; neither it nor its records are counted */
	bool is_dirty;			/* was in use before: lock words are anything */
	struct block *next, *prev;	/* of the slab's or the unused list */
	uint64_t *used;			/* a bit per slot */
};

/*
 * Workers share the blocks of a table on a node in so many parts, by their number: two that add
 * rows at a time seldom want the same lock, and do not write to the same cache lines. What a part
 * has free is used by others before the table goes without, and if the provider's memory has
 * bounds, before more is asked for.
 */
#define SLAB_PARTS	4u

/* One part of the blocks of one table on one node. */
struct slab {
	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;
	struct block *partial;
	_Atomic uint64_t n_used;	/* of all blocks; changed under the lock */
	_Atomic uint64_t n_free;	/* of OPEN blocks; changed under the lock */
};

struct node_memory {
	uint64_t held_bytes;
	uint64_t unused_bytes;
	struct block *unused;
	uint64_t limit_bytes;		/* may be held, as the provider said last */
	uint64_t deadline_ns;		/* for holding no more; 0: none */
	bool is_refused;		/* the provider had nothing although it should have */
	bool is_given_up;		/* the demand that there is could not be met */
	uint64_t retry_ns;		/* try to meet it again then */
	uint64_t demand_start_ns;	/* 0: none */
	uint64_t cutoff;		/* see oltp_memory_cutoff; 0: none */
};

struct storage {
	const struct oltp_block_ops *ops;	/* NULL: mem */
	void *ctx;
	struct mem *mem;
	struct block_map map;
	pthread_mutex_t lock;		/* everything below */
	struct block **blocks;		/* all that are held */
	size_t n_blocks, room;
	uint64_t n_grants;
	struct block *spare;		/* descriptors to be used again; freed at the end */
	struct node_memory nodes[OLTP_NODES_MAX];
	_Atomic uint64_t held_bytes;
};

int storage_init(struct storage *storage, const struct oltp_block_ops *ops, void *ctx,
		 struct mem *mem);

/* Gives all blocks back. No table may be used any more. */
void storage_finish(struct storage *storage);

/* Makes all a new table needs to know of itself. */
void slabs_init(struct slab slabs[SLAB_PARTS]);
void slabs_finish(struct slab slabs[SLAB_PARTS]);

/*
 * A slot of the table, on the node if there is one, with its record locked exclusively by ts. May
 * take blocks from the provider. NULL: there is no room.
 */
struct record *storage_slot_alloc(struct storage *storage, struct oltp_table *table, uint32_t node,
				  uint64_t ts);

/* The same from OPEN blocks that are there: nothing is taken from the provider. */
struct record *storage_slot_alloc_present(struct oltp_table *table, uint32_t node, uint64_t ts);

/* S4 is the caller's business; the record's lock may be held until after the call. */
void storage_slot_free(struct storage *storage, struct record *record);

/* For slots.c: an unused block with no slot taken, on the node wanted if possible; or NULL. */
struct block *storage_block_take(struct storage *storage, struct oltp_table *table,
				 uint32_t wanted, uint32_t part);
void storage_block_drop(struct storage *storage, struct block *block);

/* For storage.c: a REVOKED block has no room and no records any more. */
void storage_block_forget(struct block *block);

/* The block that an address is in. */
struct block *storage_block_of(const struct storage *storage, const void *addr);

/* Free slots of the table in OPEN blocks. */
uint64_t storage_free_slots(const struct oltp_table *table);

/* Slots of the table in use; of one node. */
uint64_t storage_used_slots(const struct oltp_table *table);
uint64_t storage_used_slots_node(const struct oltp_table *table, uint32_t node);

/* What the node's provider wants back now. Under the lock. */
uint64_t storage_demanded(const struct storage *storage, uint32_t node);

/* What could be had for records without moving any: unused blocks and offers. */
uint64_t storage_spare_bytes(struct storage *storage);

/* No more slots from it; its used bits are copied to ret_used (n_slots bits). Returns n_used. */
uint32_t storage_block_close(struct block *block, uint64_t *ret_used);

/* As above without closing. */
uint32_t storage_block_look(struct block *block, uint64_t *ret_used);

void storage_block_reopen(struct block *block);

/*
 * A CLOSED block whose slots are all free becomes UNUSED. False: they are not. S3 is the caller's:
 * all of them were free before the epoch began that has passed.
 */
bool storage_block_retire(struct storage *storage, struct block *block);

/* Unused blocks of the node back to the provider, at most bytes; returns how many bytes. */
uint64_t storage_release_unused(struct storage *storage, uint32_t node, uint64_t bytes);

/* Takes blocks that were marked REVOKED out of the books. Returns how many bytes. */
uint64_t storage_forget_revoked(struct storage *storage);

/* A copy of the list of blocks that hold records, for free(). Errors: -ENOMEM. */
int storage_blocks_list(struct storage *storage, struct block ***ret_blocks, size_t *ret_n);

#endif
