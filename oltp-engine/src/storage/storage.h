/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of 2 MiB and the record slots in them: which blocks the engine holds, which table each is
 * used for, and which slots are free. memory/ moves records between slots and to disk.
 *
 * A block belongs to one node and, once records are in it, to one table:
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
 *       in it could be found (epoch.h): a thread that found one may still lock it and look.
 *   S4  The slot of a record that moved, in memory or to disk, is freed under the same rule. The
 *       slot of a record that no longer exists (deleted, or its insert was aborted) is freed at
 *       once: I4 in index.h says why.
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
	uint32_t node, part;		/* of its slab; part means nothing while UNUSED */
	size_t position;		/* in storage.blocks; under the storage's lock */
	uint64_t grant;			/* number of the provider's add that it came with */
	_Atomic enum block_state state;	/* under the slab's lock; any thread may look */
	/* Under the lock of the slab that the block is of. */
	uint32_t n_slots, n_used;
	uint32_t n_free;		/* free slots that the slab counts: 0 unless OPEN */
	uint32_t first_word;		/* no word of used before this one has a free slot */
	bool is_partial;		/* in the slab's list: OPEN, with free slots */
	bool is_forgotten;		/* REVOKED, and counted nowhere any more */
	bool is_dirty;			/* was in use before: its lock words may be anything */
	struct block *next, *prev;	/* of the slab's or the unused list */
	uint64_t *used;			/* a bit per slot */
};

/* Words that hold a bit for each slot of a block, at most. */
#define SLOT_WORDS_MAX	(OLTP_MEM_BLOCK_BYTES / CACHE_LINE_BYTES / 64)

/*
 * The blocks of a table on a node are divided into so many parts. A worker's number says which part
 * it uses first, so two workers that add rows at once seldom want the same lock or cache line. A
 * worker takes free slots of the other parts before its insert fails, and, if the provider has a
 * limit, before the engine asks the provider for more.
 */
#define SLAB_PARTS	16u

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
	uint64_t limit_bytes;		/* of the provider: the most that may be held */
	uint64_t deadline_ns;		/* until when more may still be held; 0: none */
	bool is_refused;		/* the provider gave nothing although the limit allows it */
	uint64_t n_limits;		/* times that the limit or its deadline changed */
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
	struct block *spare;		/* unused descriptors; freed when the engine is closed */
	struct node_memory nodes[OLTP_NODES_MAX];
	_Atomic uint64_t held_bytes;
};

int storage_init(struct storage *storage, const struct oltp_block_ops *ops, void *ctx,
		 struct mem *mem);

/* Gives all blocks back. No table may be used any more. */
void storage_finish(struct storage *storage);

/* The slabs of a new table, on one node. */
void slabs_init(struct slab slabs[SLAB_PARTS]);
void slabs_finish(struct slab slabs[SLAB_PARTS]);

/*
 * A slot of the table, on the node if there is one, with its record locked exclusively by ts. May
 * take blocks from the provider. NULL: there is no room.
 */
struct record *storage_slot_alloc(struct storage *storage, struct oltp_table *table, uint32_t node,
				  uint64_t ts);

/* The same, from OPEN blocks of the table only: never takes a block. */
struct record *storage_slot_alloc_present(struct oltp_table *table, uint32_t node, uint64_t ts);

/* One more block for the table, on the node if possible. False: there is none to be had. */
bool storage_grow(struct storage *storage, struct oltp_table *table, uint32_t node);

/* The caller sees to S4. The record's lock may be released after the call. */
void storage_slot_free(struct storage *storage, struct record *record);

/* For slots.c: an unused block with no slot taken, on the node wanted if possible; or NULL. */
struct block *storage_block_take(struct storage *storage, struct oltp_table *table,
				 uint32_t wanted, uint32_t part);
void storage_block_drop(struct storage *storage, struct block *block);

/*
 * The host took the block: it is REVOKED from now on. False: it was before. Async-signal-safe, any
 * thread.
 */
bool storage_block_revoke(struct block *block);

/* For storage.c: the slots and records of a REVOKED block are not counted any more. */
void storage_block_forget(struct block *block);

/* The block that an address is in. */
struct block *storage_block_of(const struct storage *storage, const void *addr);

/* Free slots of the table in OPEN blocks. */
uint64_t storage_free_slots(const struct oltp_table *table);

/* Slots of the table in use, on all nodes and on one. */
uint64_t storage_used_slots(const struct oltp_table *table);
uint64_t storage_used_slots_node(const struct oltp_table *table, uint32_t node);

/* The provider has said how much may be held, see oltp_memory_limit. Any thread. */
void storage_limit(struct storage *storage, uint32_t node, uint64_t limit_bytes,
		   uint64_t deadline_ns);

/* Bytes that the node's provider wants back now. Under the lock. */
uint64_t storage_demanded(const struct storage *storage, uint32_t node);

/* Bytes of unused blocks and of what the provider offers: room without moving a record. */
uint64_t storage_spare_bytes(struct storage *storage);

/* Hands out no more of its slots. Copies its used bits to ret_used (n_slots). Returns n_used. */
uint32_t storage_block_close(struct block *block, uint64_t *ret_used);

/* The same without closing it. */
uint32_t storage_block_look(struct block *block, uint64_t *ret_used);

void storage_block_reopen(struct block *block);

/*
 * A CLOSED block becomes UNUSED. False: a slot of it is in use. The caller sees to S3: all slots
 * were free when the epoch began that has passed by now.
 */
bool storage_block_retire(struct storage *storage, struct block *block);

/* Gives unused blocks of the node back to the provider, at most bytes. Returns how many bytes. */
uint64_t storage_release_unused(struct storage *storage, uint32_t node, uint64_t bytes);

/* Stops counting blocks that were marked REVOKED. Returns how many bytes. */
uint64_t storage_forget_revoked(struct storage *storage);

/* A copy of the list of blocks that hold records; the caller frees it. Error: -ENOMEM. */
int storage_blocks_list(struct storage *storage, struct block ***ret_blocks, size_t *ret_n);

#endif
