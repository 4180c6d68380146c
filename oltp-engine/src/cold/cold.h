/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cold records: records on disk. An eviction block is one extent of the file, with records of one
 * table. struct cold_block is what memory keeps of it: its table, and for each record the key and
 * the time of its last use, twelve bytes. The hash index points to a cold record by a stub:
 *
 *	INDEX_STUB | (number of the extent << COLD_SLOT_BITS | slot in it) << 1
 *
 * An eviction block:
 *
 *	state		transitions
 *	free		cold_block_alloc -> being written
 *	being written	installed (evict.c, cold_compact.c) -> live; cold_block_give_up -> free
 *	live		its last record came back or was copied (cold_block_unlive) -> retired
 *	retired		cold_reclaim, after an epoch and with no pin left -> free
 *
 * Invariants:
 *   C1  A stub is in the index only while its block is live, and its record's bytes are on disk.
 *       A buffered record (admit.h) counts as its stub.
 *   C2  An extent is not written again while a thread may remember a stub to it: a thread in an
 *       epoch has found the stub, and a pin protects a read in flight. So if the stub is still in
 *       its slot when the read ends, the bytes that were read are the record. The record cannot
 *       have come back and gone to the same place again meanwhile.
 *       Another node that was told where the record is (oltp_place.h) has no pin, and finds out
 *       by the checksum. All the same the extent is left alone for COLD_LENT_NS, unless extents
 *       run short.
 *   C3  Several threads may read the same record back, or copy it to another extent. One of them
 *       replaces the stub; the others throw their copy away.
 *
 * On disk a record is a checksum, its key and its bytes. The checksum covers the bytes, the key,
 * the place and the generation of the extent, which is another one after each
 * opening of a volume. Every read checks it, and so finds damage, a record
 * of another place, and a write that never reached the disk.
 *
 * After a lazy recovery there are also blocks in the file of a checkpoint, with numbers of their
 * own, from COLD_NUMBERS_MAX on: see cold_checkpoint.h. They are read, and never written.
 */
#ifndef OLTP_COLD_H
#define OLTP_COLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cold_file.h"
#include "oltp-engine/src/index/index.h"
#include "oltp-engine/src/io/io_queue.h"
#include "oltp-engine/src/storage/lock.h"
#include "reread.h"

#define COLD_SLOT_BITS		12u
#define COLD_SLOTS_MAX		(1u << COLD_SLOT_BITS)
#define COLD_LEAF_BLOCKS	1024u
#define COLD_LEAVES		65536u
/* The extents of the cold file have numbers below it. */
#define COLD_NUMBERS_MAX	((uint64_t)COLD_LEAVES / 2 * COLD_LEAF_BLOCKS)
/* Another node reads a record within milliseconds of being told where it is. */
#define COLD_LENT_NS		1000000000ull

struct oltp_engine;
struct oltp_table;
struct record;

struct cold_head {
	uint64_t check;
	uint64_t key;
};

struct cold_block {
	uint64_t number;	/* of the extent */
	uint64_t generation;	/* grows each time that the extent is written */
	_Atomic uint64_t lent_ns;	/* when a place in it was told to another node; 0: never */
	struct oltp_table *table;
	uint64_t base;		/* in its file: where the head of the first record would be */
	uint32_t stride;	/* from head to head */
	uint32_t n;		/* records written */
	uint32_t keys_room;
	_Atomic uint64_t *keys;
	_Atomic uint32_t *used;	/* of each record's last use: cold_use */
	uint32_t *checks;	/* of rows in a checkpoint; NULL: an extent of the cold file */
	uint64_t *sorts;	/* of a checkpoint, n_keyed for each row; NULL: not known */
	_Atomic uint32_t live;	/* stubs in the index */
	_Atomic uint32_t pins;
	uint64_t retired;	/* epoch */
	bool is_unreadable;	/* of a checkpoint: under the lock */
	uint8_t **patches;	/* of a checkpoint, for each row; NULL: none has one */
	uint64_t patch_bytes;
	struct cold_block *next;
};

struct cold_leaf {
	struct cold_block blocks[COLD_LEAF_BLOCKS];
};

struct cold_counters {
	_Atomic uint64_t records, reads, read_errors, write_errors;
	_Atomic uint64_t evicted_records, evicted_bytes, merged_records, merged_bytes;
	_Atomic uint64_t compacted_records;
	_Atomic uint64_t read_cpu_ns;	/* of workers, for all their reads */
};

/* The file of a checkpoint in which records still are: see cold_checkpoint.h. */
struct cold_checkpoint {
	struct io_file file;
	bool is_open;			/* this and n_left: under the lock */
	/* Blocks in which records are, or may be looked for; and 1 until all have been added. */
	uint64_t n_left;
	_Atomic uint64_t n_blocks;	/* that there ever were */
	_Atomic uint64_t number;	/* of the checkpoint; 0: its file is not needed */
	uint64_t patch_bytes;		/* in all blocks; of the thread that recovers */
};

struct cold {
	struct oltp_engine *engine;
	struct cold_file file;
	struct cold_checkpoint checkpoint;
	const struct io_hook *hook;	/* tests set it before anything is cold */
	struct cold_leaf *_Atomic leaves[COLD_LEAVES];
	struct reread rereads[OLTP_TABLES_MAX];
	/* By table: records that were not used since then were the last to go to disk. */
	_Atomic uint64_t evicted_stamps[OLTP_TABLES_MAX];
	_Atomic uint64_t probe_ns;	/* of reads made to measure the disk; 0: not known */
	_Atomic bool is_probe_wanted;	/* no record was on disk, and the time is asked for */
	pthread_mutex_t lock;		/* everything below but for the counters */
	uint64_t n_numbers;		/* extents that were ever used */
	struct cold_block *free, *retired;
	struct cold_block *reserve;	/* for compaction only, which frees more than it takes */
	uint32_t n_reserve;
	uint64_t n_used;		/* extents that are neither free nor in reserve */
	struct fetcher *left;		/* of workers that have gone, not settled yet */
	_Atomic uint64_t books_bytes;	/* memory for blocks and keys */
	_Atomic uint64_t buffer_bytes;	/* memory for reads and writes */
	_Atomic uint64_t left_bytes;	/* the part of it in fetchers that are left */
	struct cold_counters counters;
};

/* dir: NULL for the engine's volume. Errors: those of oltp_engine_open for cold records. */
int cold_create(struct oltp_engine *engine, const char *dir, uint64_t bytes_max,
		struct cold **ret_cold);
void cold_destroy(struct cold *cold);

/* Lets the table's index compare keys of stubs. Does nothing if the engine has no disk. */
void cold_table_init(struct oltp_table *table);

/* Bytes that a record of the table takes on disk; how many records fit in an extent (0: none). */
uint32_t cold_stride(const struct oltp_table *table);
uint32_t cold_slots(const struct oltp_table *table);

/* True: a block can be had, or the table has more free slots than are kept for new records. */
bool cold_has_room(struct cold *cold, const struct oltp_table *table);

/* Errors: -ENOMEM, -ENOSPC and those of growing the file. One thread at a time. */
int cold_block_alloc(struct cold *cold, struct oltp_table *table, bool is_compaction,
		     struct cold_block **ret_block);
void cold_block_give_up(struct cold *cold, struct cold_block *block);

/* n stubs to the block have left the index; the last one retires the block. */
void cold_block_unlive(struct cold *cold, struct cold_block *block, uint32_t n);

/*
 * How many extents were ever used, how many of these are in use now, and how many more there may
 * be. By the thread that allocates.
 */
void cold_extents_count(struct cold *cold, uint64_t *ret_numbers, uint64_t *ret_used,
			uint64_t *ret_left);

/* number: of an extent that was used before. */
struct cold_block *cold_block_get(const struct cold *cold, uint64_t number);

/* Frees the retired blocks that may be written again. By the thread that allocates. */
void cold_reclaim(struct cold *cold);

static inline uint64_t cold_stub(const struct cold_block *block, uint32_t slot)
{
	return INDEX_STUB | (block->number << COLD_SLOT_BITS | slot) << 1;
}

static inline uint32_t cold_stub_slot(uint64_t entry)
{
	return (uint32_t)(entry >> 1) & (COLD_SLOTS_MAX - 1);
}

/* Of a record's last use its block keeps LOCK_TAKEN and the lower 31 bits of the epoch. */
#define COLD_TAKEN	(1u << 31)

/* left: what the last holder left in its lock word. */
static inline uint32_t cold_use(uint64_t left)
{
	return ((uint32_t)left & ~COLD_TAKEN) | (left & LOCK_TAKEN ? COLD_TAKEN : 0);
}

/*
 * The epoch of the record's last use, as of now (an epoch): another thread may note a use in a
 * later one. 0: not known.
 */
uint64_t cold_last_use(const struct cold_block *block, uint32_t slot, uint64_t now);
bool cold_was_taken(const struct cold_block *block, uint32_t slot);

/*
 * Makes the table of blocks for a number. Under the lock. Errors: -ENOMEM.
 */
int cold_leaf_make(struct cold *cold, uint64_t number);

/* A buffer to read records into, aligned for any file; for free(). */
void *cold_buffer_alloc(const struct cold *cold, size_t bytes);

/* Call in an epoch, or with the block pinned. */
struct cold_block *cold_stub_block(const struct cold *cold, uint64_t entry);

/* What to read for a record: whole sectors; the record begins lead bytes into them. */
struct cold_place {
	const struct io_file *file;	/* NULL: the cold file */
	uint64_t offset;
	uint32_t bytes, lead;
	uint32_t align;			/* of the sectors */
};

/* Where another node finds the record of a stub. In an epoch. False: not in the cold file. */
bool cold_lend(struct cold *cold, uint64_t entry, uint64_t now_ns, struct oltp_place *ret_place);

/* The stub's block is pinned. */
struct cold_place cold_stub_place(const struct cold *cold, uint64_t entry);

/*
 * The stub's block is not written again until it is unpinned. In an epoch. False: the slot of the
 * index has changed, and nothing is pinned.
 */
bool cold_pin(struct cold *cold, const struct index_ref *ref);
void cold_unpin(struct cold_block *block);

/*
 * Writes the record to its place in the buffer of the extent, without its checksum, and notes its
 * key and last use (cold_use) in the block.
 */
void cold_record_write(struct cold_block *block, uint32_t slot, uint8_t *buffer, uint64_t key,
		       uint32_t used, const void *data);

/*
 * The block is to have the n records in the buffer: fills in their checksums. That is a step of its
 * own, since each record is locked while it is written. Returns how many bytes are to be written to
 * the extent.
 */
uint32_t cold_block_seal(const struct cold *cold, struct cold_block *block, uint32_t n,
			 uint8_t *buffer);

/*
 * Around the moment when the index gets stubs to a block that is on disk now: before the first of
 * them, all its records count as cold, so that a thread that reads one back at once counts it out;
 * afterwards, only the n that the index really has.
 */
void cold_evict_begin(struct cold *cold, struct cold_block *block);
void cold_evict_end(struct cold *cold, struct cold_block *block, uint32_t n);

/* Records of the table that were not used since then (stamp) are about to go to disk. */
void cold_evict_until(struct cold *cold, const struct oltp_table *table, uint64_t stamp);

/* The block could not be written: counts that, and gives it up. */
void cold_write_failed(struct cold *cold, struct cold_block *block);

/* A record could not be read, or is not what was written. */
void cold_read_failed(struct cold *cold);

/* So many bytes of memory for reads and writes are in use from now on. */
void cold_buffers_add(struct cold *cold, uint64_t bytes);

/* The record's bytes; NULL: they are not what was written. at: where the record was read to. */
const void *cold_record_check(const struct cold_block *block, uint32_t slot, const uint8_t *at);

/*
 * As oltp_table_scan. pause (NULL: none) is called again and again in between, with no record
 * locked and no epoch announced: for what takes long. Non-zero ends the walk, as with fn.
 */
int table_scan(struct oltp_table *table,
	       int (*fn)(void *ctx, uint64_t key, const void *record), int (*pause)(void *ctx),
	       void *ctx);

#endif
