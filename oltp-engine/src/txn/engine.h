/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Structures shared by the engine's files. Not for users of the engine. */
#ifndef OLTP_ENGINE_H
#define OLTP_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/epoch.h"
#include "oltp-engine/src/base/mem.h"
#include "oltp-engine/src/base/util.h"
#include "oltp-engine/src/index/index.h"
#include "oltp-engine/src/index/node_pool.h"
#include "oltp-engine/src/index/record.h"
#include "oltp-engine/src/io/io_class.h"
#include "oltp-engine/src/storage/lock.h"
#include "oltp-engine/src/storage/room.h"
#include "oltp-engine/src/storage/storage.h"
#include "oltp-engine/src/storage/table.h"
#include "oltp.h"
#include "promise.h"

struct checkpointer;
struct cold;
struct fetcher;
struct log;
struct log_buffer;
struct manager;
struct oltp_worker;

/*
 * What workers and transactions call of the rooms above theirs (log/ and cold/); engine.c has the
 * one table. begin and commit are called only for a worker that has a log, cold_used and
 * cold_deleted only for a buffered cold record (INDEX_BUFFERED).
 */
struct txn_ops {
	/* Makes the worker's log buffer. Error: -ENOMEM. */
	int (*worker_open)(struct oltp_worker *worker);
	/* Leaves the worker's log buffer and reads behind; no transaction is running. */
	void (*worker_close)(struct oltp_worker *worker);
	/* Before a transaction takes any lock. Not OLTP_OK: it does not begin. */
	enum oltp_rc (*begin)(const struct oltp_worker *worker);
	/* All locks of the transaction are held. OLTP_OK: it is logged, and has to commit. */
	enum oltp_rc (*commit)(struct oltp_worker *worker);
	/* A transaction has locked the record. */
	void (*cold_used)(struct record *record, bool exclusive);
	/* The record was deleted: it is out of the index, and still locked. */
	void (*cold_deleted)(struct cold *cold, struct record *record);
};

/* Memory that was taken by force: see revoked.h. */
struct revoked {
	_Atomic uint64_t times;		/* that blocks were revoked */
	_Atomic uint64_t swept;		/* how many of these times the index knows of */
	_Atomic uint64_t restored;	/* how many of these times have all their records back */
	/* CLOCK_MONOTONIC: since when records are missing; 0: not known. */
	_Atomic uint64_t since_ns;
	_Atomic uint64_t records, bytes;	/* in all */
};

struct oltp_engine {
	const struct txn_ops *ops;
	const struct lock_scheme *scheme;
	uint32_t txn_records_max;
	uint32_t txn_undo_bytes;
	int node;		/* where records go; -1: to the node of the worker */
	uint32_t idle_half_ms;	/* see oltp_config */
	struct lock_book locks;
	struct epoch epoch;
	struct mem mem;
	struct storage storage;
	struct room room;
	struct node_pool leaves, inners;	/* of ordered indexes */
	struct volume *volume;	/* NULL: files are in folders */
	struct cold *cold;	/* NULL: records stay in memory */
	struct log *log;	/* NULL: nothing is durable */
	struct checkpointer *checkpointer;	/* NULL: nothing is durable */
	struct manager *manager;	/* NULL: memory does not move */
	struct revoked revoked;
	struct oltp_table *tables[OLTP_TABLES_MAX];
	_Atomic uint32_t n_tables;	/* see tables_count */
	pthread_mutex_t lock;	/* to add a table, and everything below */
	struct oltp_worker *workers[OLTP_WORKERS_MAX + 1];	/* by number; 0 is not used */
	uint32_t workers_end;	/* the highest number ever */
	/* From here on cache lines that transactions do not read: others write to them often. */
	_Alignas(CACHE_PAD_BYTES) struct io_meters io_meters;	/* by class of requests */
	_Atomic uint64_t manager_announced;	/* see epoch.h */
	_Alignas(CACHE_PAD_BYTES) struct promise promise;
};

/*
 * All but NONE and SHARED hold the record's lock exclusively. After DELETE and UNDONE the record is
 * gone for the transaction itself, although the indexes have it until the transaction ends:
 *
 *	EXCLUSIVE -delete-> DELETE -insert-> REPLACE -delete-> DELETE
 *	INSERT -delete-> UNDONE -insert-> INSERT
 */
enum access_kind {
	ACCESS_NONE,		/* holds nothing: released, or another access has the lock */
	ACCESS_SHARED,
	ACCESS_EXCLUSIVE,
	ACCESS_INSERT,		/* added; removed on abort */
	ACCESS_REPLACE,		/* deleted and added again; the before-image is the whole record */
	ACCESS_DELETE,		/* removed at commit */
	ACCESS_UNDONE,		/* added and deleted: removed at commit and on abort */
};

struct access {
	struct record *record;
	struct index_ref ref;
	struct oltp_table *table;
	enum access_kind kind : 8;
	bool is_taken;		/* the record is to be left with LOCK_TAKEN */
	uint32_t image;		/* of REPLACE, and DELETE after it: offset in undo + 1; 0: none */
};

/*
 * Before-images lie one after the other in the undo buffer, each behind such a head, and none is
 * empty. Their records stay in place, because they are exclusively locked.
 */
struct undo {
	uint32_t access;	/* index in accesses[] of the one that holds the record */
	uint32_t offset;	/* in the record's data */
	uint32_t bytes;
	uint32_t prev_offset;	/* of the head before this one; UNDO_NONE ends the list */
};

/* Images begin at multiples of this. */
#define UNDO_ALIGN	8u

#define UNDO_NONE	UINT32_MAX

/* An announced access (oltp_txn_prefetch), with the hash of its key. */
struct ahead {
	uint64_t key;
	uint64_t hash;
	struct oltp_table *table;
	_Atomic uint64_t *slot;		/* of the index, most likely the key's; NULL: not known */
	uint32_t offset, bytes;		/* see oltp_hint */
};

enum txn_state {
	TXN_IDLE,
	TXN_ACTIVE,
	TXN_DOOMED,
};

/* A record that a transaction needs and that is on disk. */
struct cold_want {
	struct oltp_table *table;
	uint64_t key;
	uint64_t hash;
};

struct oltp_worker {
	struct oltp_engine *engine;
	enum txn_state state;
	bool is_redo;		/* of recovery: see recover_redo.h */
	uint32_t n_retries;	/* conflicts in a row; if any, the next one keeps the age */
	uint32_t number;
	uint32_t began;		/* transactions begun, to step the clock */
	enum oltp_rc doom_rc;	/* DOOMED: why */
	uint64_t ts;		/* age of the running transaction */
	struct lock_slot *slot;	/* in the lock book, by its number */
	uint64_t stamp;		/* epoch of the running transaction */
	uint64_t revokes_seen;	/* engine.revoked.swept when the transaction began */
	uint32_t node;

	uint32_t n_accesses;
	uint32_t n_operations;	/* that succeeded, on records held already included */
	uint32_t n_ahead, ahead_next;
	uint32_t undo_used, undo_last;
	uint32_t n_nodes;
	bool has_inserts;	/* the transaction added a record, even if it deleted it again */
	bool has_deletes;	/* the transaction deleted a record, even if it added it again */
	bool has_ordered;	/* rows were added to a table with ordered indexes */
	struct access *accesses;
	uint8_t *undo;
	struct node_version *node_set;
	struct ahead *ahead;
	/* Of the next transaction (oltp_txn_prefetch_next); NULL hints: it was not announced. */
	struct ahead *later;
	const struct oltp_hint *later_hints;	/* to be compared only */
	uint32_t n_later;
	bool is_later_asked;	/* for the records of later: slots are set */
	uint32_t n_wants;	/* cold records that the last transaction was aborted for */
	bool wants_room;	/* it was aborted since there was no slot in room_table */
	struct oltp_table *room_table;
	struct cold_want *wants;
	struct fetcher *fetcher;	/* NULL before the first cold record */
	struct log_buffer *log;		/* NULL: its transactions are not logged */
	struct promise_batch promised;

	/* Written by the owner, read by anybody. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t announced;	/* see epoch.h */
	_Atomic uint64_t clock;
	_Atomic uint64_t commits;
	_Atomic uint64_t aborts;
	_Atomic uint64_t conflicts;
	_Atomic uint64_t waits;
	_Atomic uint64_t wounds;
	_Atomic uint64_t accesses_committed;
	_Atomic uint64_t colds;
};

/* The age that locks of the worker count as: see lock.h. */
static inline uint64_t worker_ts(const struct oltp_worker *worker)
{
	return counter_read(&worker->clock) << LOCK_TS_WORKER_BITS | worker->number;
}

/* Before its first transaction: it does again what the log has (recover_redo.h). */
static inline void worker_redo(struct oltp_worker *worker)
{
	worker->is_redo = true;
}

/* oltp_cold_fetch asks for what the last transaction was aborted for. */
static inline void txn_wants_clear(struct oltp_worker *worker)
{
	worker->n_wants = 0;
	worker->wants_room = false;
}

/* Remembers for oltp_cold_fetch that the transaction needs this cold record. */
void txn_want(struct oltp_worker *worker, struct oltp_table *table, uint64_t key, uint64_t hash);

/*
 * Tables are added and never removed. engine.tables[] up to this number may be used without the
 * lock. The acquire pairs with the release in oltp_table_create.
 */
static inline uint32_t tables_count(const struct oltp_engine *engine)
{
	return atomic_load_explicit(&engine->n_tables, memory_order_acquire);
}

/* The manager's epoch, around its look-ups in an index; workers have epochs of their own. */
static inline void engine_enter(struct oltp_engine *engine)
{
	epoch_enter(&engine->epoch, &engine->manager_announced, epoch_now(&engine->epoch));
}

static inline void engine_leave(struct oltp_engine *engine)
{
	epoch_leave(&engine->manager_announced);
}

#endif
