/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures shared by the engine's files. Not for users of the engine. */
#ifndef OLTP_ENGINE_H
#define OLTP_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "index.h"
#include "lock.h"
#include "mem.h"
#include "oltp.h"
#include "util.h"

/*
 * A record. Its memory stays a record of the same table until the engine is closed, so a stale
 * pointer found in the index may always be locked; whether it still is the record meant is checked
 * under the lock (index_ref_is_live).
 */
struct record {
	_Atomic uint64_t lock;	/* see lock.h */
	_Atomic uint64_t key;	/* written under the exclusive lock, compared without one */
	uint8_t data[];		/* under the lock */
};

/* Unused room for records, from the end of a worker's life; lives in that room itself. */
struct room {
	struct room *next;
	uint8_t *end;
};

struct chunk_list {
	void **chunks;
	size_t n, room;
};

struct oltp_table {
	struct oltp_engine *engine;
	uint32_t id;
	uint32_t record_bytes;	/* as the user sees it */
	uint32_t stride;	/* header and padding included; a multiple of the cache line */
	uint32_t chunk_bytes;
	struct index index;
	pthread_mutex_t lock;	/* all below; taken once per chunk, never per record */
	struct chunk_list chunks;
	struct room *rooms;
	struct record *free_records;
};

struct oltp_engine {
	const struct lock_scheme *scheme;
	uint32_t txn_records_max;
	uint32_t txn_undo_bytes;
	struct mem mem;
	pthread_mutex_t lock;	/* everything below */
	struct oltp_table *tables[OLTP_TABLES_MAX];
	uint32_t n_tables;
	struct oltp_worker *workers[OLTP_WORKERS_MAX + 1];	/* by number; 0 is not used */
};

enum access_kind {
	ACCESS_NONE,		/* nothing to release: turned into an exclusive one */
	ACCESS_SHARED,
	ACCESS_EXCLUSIVE,
	ACCESS_INSERT,		/* exclusive, and taken back on abort */
};

struct access {
	struct record *record;
	struct index_ref ref;
	struct oltp_table *table;
	enum access_kind kind;
};

/* Before-images lie one after the other in the undo buffer, each behind such a head. */
struct undo {
	uint8_t *target;
	uint32_t bytes;
	uint32_t prev_offset;	/* of the head before this one; UNDO_NONE ends the list */
};

#define UNDO_NONE	UINT32_MAX

/* An announced access and what was found out about it so far. */
struct ahead {
	uint64_t key;
	uint64_t hash;
};

enum txn_state {
	TXN_IDLE,
	TXN_ACTIVE,
	TXN_DOOMED,
};

/* Where a worker takes new records of a table from, without a lock. */
struct record_cache {
	uint8_t *next, *end;
	struct record *free_records;
};

struct oltp_worker {
	struct oltp_engine *engine;
	enum txn_state state;
	bool is_retry;		/* the next transaction is the last one again */
	uint32_t number;
	uint32_t began;		/* transactions begun, to step the clock */
	uint64_t ts;		/* age of the running transaction */

	uint32_t n_accesses;
	uint32_t n_operations;	/* that succeeded, on records held already included */
	uint32_t n_ahead, ahead_next;
	uint32_t undo_used, undo_last;
	struct access *accesses;
	uint8_t *undo;
	struct ahead *ahead;
	struct oltp_table *ahead_table;
	struct record_cache caches[OLTP_TABLES_MAX];

	/* Written by the owner, read by anybody. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t clock;
	_Atomic uint64_t commits;
	_Atomic uint64_t aborts;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t waits;
	_Atomic uint64_t accesses_committed;
};

/* An exclusively locked record with its key set and data unset; NULL: out of memory. */
struct record *table_record_alloc(struct oltp_worker *worker, struct oltp_table *table,
				  uint64_t key);

/* The record is out of the index and exclusively locked by the caller; unlocks it. */
void table_record_free(struct oltp_worker *worker, struct oltp_table *table,
		       struct record *record);

/* Hands a worker's caches back to the tables. */
void table_caches_return(struct oltp_worker *worker);

void table_destroy(struct oltp_table *table);

#endif
