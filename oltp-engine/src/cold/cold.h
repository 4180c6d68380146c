/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records on disk. An eviction block is one extent of the file, filled with records of one table;
 * here is what must be known of it in memory: whose it is, which keys are in it and when each was
 * used, twelve bytes for each. The index points to a record in it by a stub:
 *
 *	INDEX_STUB | (number of the extent << COLD_SLOT_BITS | slot in it) << 1
 *
 * An eviction block:
 *
 *	state		transitions
 *	free		cold_block_alloc -> being written
 *	being written	installed (evict.c, cold_compact.c) -> live; cold_block_give_up -> free
 *	live		its last record merged or copied (cold_block_unlive) -> retired
 *	retired		cold_reclaim, after an epoch and with no pin left -> free
 *
 * Invariants:
 *   C1  A stub is in the index only while its block is live, and its record's bytes are on disk.
 *       A buffered record (admit.h) counts as its stub.
 *   C2  A block's extent is not written again while a stub to it may be remembered: by somebody in
 *       an epoch (found, not yet pinned) or by a pin (a read of it in flight). So a stub that is
 *       still in its slot when the read ends is the one that was read, and what was read is the
 *       record as it is: the record cannot have come back and gone again to the same place.
 *   C3  Of several who bring a record back, or copy it to another extent, one replaces the stub,
 *       the others throw theirs away.
 *
 * On disk a record is a checksum over the record, its key, its place and the generation of the
 * extent, then its key and its bytes. Every read checks it: other bytes, other places and older
 * writes show.
 */
#ifndef OLTP_COLD_H
#define OLTP_COLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/index/index.h"
#include "oltp-engine/src/io/io_queue.h"
#include "reread.h"

#define COLD_EXTENT_BYTES	(256u << 10)
#define COLD_SLOT_BITS		12u
#define COLD_SLOTS_MAX		(1u << COLD_SLOT_BITS)
#define COLD_LEAF_BLOCKS	1024u
#define COLD_LEAVES		65536u

struct oltp_engine;
struct oltp_table;
struct record;

struct cold_head {
	uint64_t check;
	uint64_t key;
};

struct cold_block {
	uint64_t number;	/* of the extent */
	uint64_t generation;	/* times that the extent was written */
	struct oltp_table *table;
	uint32_t n;		/* records written */
	uint32_t keys_room;
	_Atomic uint64_t *keys;
	_Atomic uint32_t *used;	/* lower half of the stamp (lock.h) of each record's last use */
	_Atomic uint32_t live;	/* stubs in the index */
	_Atomic uint32_t pins;
	uint64_t retired;	/* epoch */
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

/* The file that cold records are in: nameless, for direct I/O, of extents of one size. */
struct cold_file {
	int fd;
	uint32_t align;		/* of offsets, lengths and buffers: a power of two */
	uint64_t bytes;		/* allocated */
	uint64_t bytes_max;	/* 0: no bound */
	bool is_full;		/* the last time that it should have grown, it could not */
};

struct cold {
	struct oltp_engine *engine;
	struct cold_file file;
	const struct io_hook *hook;	/* tests set it before anything is cold */
	struct cold_leaf *_Atomic leaves[COLD_LEAVES];
	struct reread rereads[OLTP_TABLES_MAX];
	_Atomic uint64_t probe_ns;	/* of reads made for it; 0: not known */
	_Atomic bool is_probe_wanted;	/* somebody wants to know although nothing was on disk */
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

/* Errors: as oltp_engine_open for cold_dir. */
int cold_create(struct oltp_engine *engine, const char *dir, uint64_t bytes_max,
		struct cold **ret_cold);
void cold_destroy(struct cold *cold);

/* Makes the table's index understand stubs. Does nothing if the engine has no disk. */
void cold_table_init(struct oltp_table *table);

/* Bytes of a record of the table on disk; records of how many fit in an extent (0: not one). */
uint32_t cold_stride(const struct oltp_table *table);
uint32_t cold_slots(const struct oltp_table *table);

/*
 * Is there a block to be had, or more room for records of the table than is kept for new ones?
 */
bool cold_has_room(struct cold *cold, const struct oltp_table *table);

/* Errors: -ENOMEM, -ENOSPC and those of growing the file. One thread at a time. */
int cold_block_alloc(struct cold *cold, struct oltp_table *table, bool is_compaction,
		     struct cold_block **ret_block);
void cold_block_give_up(struct cold *cold, struct cold_block *block);

/* Counts n stubs out of the index; the last one retires the block. */
void cold_block_unlive(struct cold *cold, struct cold_block *block, uint32_t n);

/*
 * Extents that were ever used, those among them in use, and how many more can be had. For the
 * thread that allocates.
 */
void cold_extents_count(struct cold *cold, uint64_t *ret_numbers, uint64_t *ret_used,
			uint64_t *ret_left);

/* A number that was used before. */
struct cold_block *cold_block_get(const struct cold *cold, uint64_t number);

/* Frees the retired blocks that may be written again. For the thread that allocates. */
void cold_reclaim(struct cold *cold);

static inline uint64_t cold_stub(const struct cold_block *block, uint32_t slot)
{
	return INDEX_STUB | (block->number << COLD_SLOT_BITS | slot) << 1;
}

static inline uint32_t cold_stub_slot(uint64_t entry)
{
	return (uint32_t)(entry >> 1) & (COLD_SLOTS_MAX - 1);
}

/* Call in an epoch, or with the block pinned. */
struct cold_block *cold_stub_block(const struct cold *cold, uint64_t entry);

/* What to read for a record: whole sectors, with the record lead bytes into them. */
struct cold_place {
	uint64_t offset;
	uint32_t bytes, lead;
};

/* Of a pinned stub. */
struct cold_place cold_stub_place(const struct cold *cold, uint64_t entry);

/* Keeps the stub's block from being written again. False: the slot has changed. In an epoch. */
bool cold_pin(struct cold *cold, const struct index_ref *ref);
void cold_unpin(struct cold_block *block);

/* Fills in the record at its place in the buffer with the extent. */
void cold_record_write(const struct cold_block *block, uint32_t slot, uint8_t *buffer, uint64_t key,
		       const void *data);

/* The checksum, once all are in: apart from the above, which is done under a lock. */
void cold_record_seal(const struct cold_block *block, uint32_t slot, uint8_t *buffer);

/* Its bytes, or NULL: they are not what was written. at: where the record begins. */
const void *cold_record_check(const struct cold_block *block, uint32_t slot, const uint8_t *at);

/*
 * As oltp_table_scan. pause (NULL: none) is called again and again in between, with no record
 * locked and no epoch announced: for what takes long. Non-zero ends the walk, as with fn.
 */
int table_scan(struct oltp_table *table,
	       int (*fn)(void *ctx, uint64_t key, const void *record), int (*pause)(void *ctx),
	       void *ctx);

#endif
