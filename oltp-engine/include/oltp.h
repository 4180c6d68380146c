/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp.h - an in-memory, shared-everything transaction engine with an elastic worker pool.
 *
 * The one public header (oltp_index.h, oltp_durable.h, oltp_memory.h, oltp_pool.h, oltp_elastic.h
 * and others are parts of it). Five parts, each of which uses only the ones before it:
 *
 *   1. engine, tables, workers, transactions	(any number of threads, one worker each)
 *   2. memory that comes and goes		(blocks for records; cold records on disk)
 *   3. worker pool				(one pinned thread per CPU; CPUs come and go)
 *   4. elastic control			(which CPUs to take and to give back, and when)
 *   5. text names and errors
 *
 * Life cycle:
 *
 *   oltp_engine_open -> oltp_table_create -> [oltp_index_create] -> [oltp_recover]
 *   oltp_worker_create (a thread)
 *     oltp_txn_begin -> [oltp_txn_prefetch] -> oltp_txn_read|update|... ... -> oltp_txn_commit
 *                                                     `- any failure --------> oltp_txn_abort
 *   oltp_worker_destroy -> oltp_engine_close
 *
 * Guarantees, by number (the tests name them):
 *
 *   G1  Transactions are serializable, phantoms included: strict two-phase locking, every lock is
 *       held until commit or abort, and what was found missing (OLTP_NOT_FOUND, all of a scanned
 *       range) is still missing when the transaction commits, or it fails with OLTP_CONFLICT.
 *   G2  A transaction that aborts leaves no byte changed and no record behind.
 *   G3  No deadlock: under NO_WAIT nobody waits; under WAIT_DIE only older waits for younger; under
 *       WOUND_WAIT a transaction that waits gives way if an older one waits for it. Under the last
 *       two a transaction that meets conflicts keeps its age until none is older, and no lock stops
 *       it.
 *   G4  Workers may be created and destroyed at any time by any thread, also while others run.
 *   G5  Records move, in memory and to disk and back, without a transaction noticing more than a
 *       conflict or OLTP_COLD. No record is given up before its copy on disk has been written, and
 *       every copy is checked when it is read.
 *   G6  Memory that the host takes by force takes records with it. They are counted, and an access
 *       to one gets OLTP_LOST, never wrong bytes in a transaction that commits; except in the
 *       moment in which the host has taken a block and the guest has not heard of it (see README).
 *       With a log they come back by themselves (oltp_durable.h, oltp_restore_wait).
 *
 * Errors: set-up functions return 0 or -errno. Functions of a running transaction return enum
 * oltp_rc; OLTP_CONFLICT is a normal result, not a failure: abort, then run the transaction again.
 *
 * Caveats, before anything else:
 *
 *   - What reads and updates hand out is the record itself, not a copy. Writing outside the spans
 *     of an update, or after the end of the transaction, damages data that nobody can restore.
 *   - A worker is for one thread at a time and has one transaction at a time; there are no nested
 *     ones, and no savepoints. A function is for one thread at a time unless its comment says "any
 *     thread".
 *   - Between begin and commit or abort other transactions may meet its locks, and wait for them or
 *     be run again: do not wait for a user's or another machine's answer in there. A transaction
 *     that never ends also keeps memory from being given back.
 *   - Running again has no bound and, but for the pool, no pause: many workers that all want the
 *     same record should back off for a random time, as the pool does.
 *   - A transaction has room for txn_records_max accesses; that is not found out before it is full.
 *   - Nothing is on disk unless oltp_config.durability says so, and then not before
 *     oltp_durable_wait says so.
 *   - Hooks and callbacks must return: no longjmp, no exceptions. No function is safe in a signal
 *     handler, and a forked child must not use the engine of its parent.
 *   - Arguments are checked where that is said; a pointer to something else, or to what has been
 *     destroyed, is not noticed.
 *
 * A program to begin with is oltp-engine/examples/bank.c.
 */
#ifndef OLTP_H
#define OLTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- 1. engine ---------------------------------------------------------------------------- */

enum oltp_rc {
	OLTP_OK = 0,
	OLTP_CONFLICT = 1,	/* another transaction is in the way: abort and run again */
	OLTP_NOT_FOUND = 2,	/* no such key; the transaction may go on */
	OLTP_EXISTS = 3,	/* insert: a unique key is there; the transaction may go on */
	OLTP_FULL = 4,		/* more records, notes or undo bytes than configured: abort */
	OLTP_NO_MEMORY = 5,	/* insert: the memory source is exhausted: abort */
	OLTP_INVALID = 6,	/* bad argument, or no transaction is running; nothing was done */
	OLTP_COLD = 7,		/* a record is on disk: abort, fetch it (part 2), run again */
	/* Of a fetch: a record could not be read, and stays on disk. Else: the log has failed. */
	OLTP_IO = 8,
	/* A record was in memory that the host took by force: abort; with a log run again later. */
	OLTP_LOST = 9,
};

/*
 * Deadlock avoidance. All schemes lock the same way and differ only once a lock is taken. Caveat of
 * WOUND_WAIT: a transaction learns at its next access, not before, that it is to make way; one that
 * makes none any more may commit. Only NO_WAIT keeps engines that take part in the same
 * transactions from waiting for each other in a circle: ages are those of one engine.
 */
enum oltp_cc {
	OLTP_CC_NO_WAIT = 0,	/* a busy record is a conflict */
	OLTP_CC_WAIT_DIE = 1,	/* wait if older than every holder, else conflict */
	/*
	 * Wait; but a transaction that an older one waits for gives way (conflict), and a
	 * transaction that has waited for an older one for some microseconds first gives its locks
	 * back (conflict), up to 16 times.
	 */
	OLTP_CC_WOUND_WAIT = 2,
};

/* What is there after a crash: see oltp_durable.h. */
enum oltp_durability {
	OLTP_DURABILITY_OFF = 0,	/* nothing */
	OLTP_DURABILITY_ASYNC = 1,	/* all but the newest; acknowledged at once */
	OLTP_DURABILITY_COMMIT = 2,	/* all that was acknowledged */
};

#define OLTP_WORKERS_MAX	1023u	/* workers alive at once */
#define OLTP_TABLES_MAX		16u	/* tables in one engine */
#define OLTP_NODES_MAX		16u	/* NUMA nodes */
#define OLTP_MEM_BLOCK_BYTES	(2ul << 20)

/*
 * Where memory that stays comes from (indexes; records too, if there is no provider of blocks, see
 * part 2). Blocks are multiples of OLTP_MEM_BLOCK_BYTES, aligned to it, zeroed, and
 * below 2^48. Both hooks are called under an engine lock, never from the path of a read or update.
 */
struct oltp_mem_ops {
	/* Required. node: NUMA node wanted, -1 for any. NULL when there is none to give. */
	void *(*alloc)(void *ctx, size_t bytes, int node);
	/* Required. addr and bytes are those of one alloc. */
	void (*free)(void *ctx, void *addr, size_t bytes);
};

struct oltp_block_ops;
struct io_ops;

struct oltp_config {
	enum oltp_cc cc;
	/*
	 * Record accesses in one transaction; 0: 128. It may also note so many places where
	 * something is missing: each look-up in vain is one, and a scan one for 15 to 30 rows.
	 */
	uint32_t txn_records_max;
	uint32_t txn_undo_bytes;	/* before-images in one transaction; 0: 64 KiB */
	int node;			/* NUMA node for memory; -1: that of the adding thread */
	const struct oltp_mem_ops *mem;	/* NULL: anonymous memory with huge pages advised */
	void *mem_ctx;			/* handed to mem hooks */
	const struct oltp_block_ops *blocks;	/* memory for records; NULL: mem, without bounds */
	void *blocks_ctx;		/* handed to block hooks */
	/*
	 * Folder for the file with cold records (which has no name there, so it is gone with the
	 * process); needs O_DIRECT and io_uring. NULL, and no volume_cold: records stay in memory.
	 */
	const char *cold_dir;
	/*
	 * Of that file; 0: no bound but the disk's, half of it in a volume. It needs room for twice
	 * what is to be on disk: it is compacted in the background. Without room nothing goes to
	 * disk any more.
	 */
	uint64_t cold_bytes_max;
	/*
	 * What records are worth (oltp_memory.h): when nobody has run transactions for so long,
	 * half as much use is expected. 0: 120000, which suits a host that brokers memory once a
	 * minute; UINT32_MAX: pauses say nothing.
	 */
	uint32_t idle_half_ms;
	enum oltp_durability durability;
	/*
	 * Folder for log and checkpoints, which must be there; one engine at a time. One that holds
	 * a database already: no transaction runs (OLTP_INVALID) before oltp_recover. Without
	 * O_DIRECT there, what is written goes through the page cache.
	 */
	const char *log_dir;
	/*
	 * Device or file with a volume (oltp_volume.h), in which log and checkpoints are instead of
	 * in log_dir. The engine becomes its owner: a process of another machine that owned it can
	 * write no more from then on, except what it asked the device for before. One that loses it
	 * so ends as if the log had failed, with -ESTALE.
	 */
	const char *volume;
	/*
	 * Cold records go to the volume, too, instead of cold_dir. Other nodes can read them there
	 * while this engine runs; the next one that opens the volume throws them away.
	 */
	bool volume_cold;
	/*
	 * The volume is opened to be read, also if another engine owns it, and stays as it is.
	 * oltp_recover builds the database as it was on the device; if the owner works on it
	 * meanwhile that may fail, since files go away, and can be tried again with a new engine.
	 * Then transactions that change nothing run; oltp_txn_commit of others is OLTP_INVALID,
	 * oltp_checkpoint -EROFS.
	 */
	bool volume_read_only;
	/*
	 * A transaction that only reads counts as durable once the volume's books were read after
	 * it and still name this engine as the owner. So an engine that the device has shut out,
	 * or that was stopped while another one took its place, gives no durable answer from old
	 * memory: the read fails, and with it the log. Two blocks are read for each interval of
	 * the log in which nothing is written; with volume only, and not with volume_read_only.
	 */
	bool volume_checks;
	uint32_t group_interval_us;	/* between two groups of the log, 0: 1000; to 1000000 */
	uint32_t log_segment_mib;	/* size of the log's files, 0: 64; to 65536 */
	/* Of log between two checkpoints; 0: 1024, or as much as a checkpoint if that is more. */
	uint32_t checkpoint_mib;
	/*
	 * The most of a checkpoint that is written in a second; 0: as fast as it takes to finish
	 * while the log grows by half of checkpoint_mib. Always more if the log grows faster than
	 * checkpoints are made.
	 */
	uint32_t checkpoint_mib_s;
	/* For tests, see src/io/io_files.h: what log_dir or the volume is in; NULL: files. */
	const struct io_ops *log_io;
	void *log_io_ctx;
};

struct oltp_engine;
struct oltp_table;
struct oltp_worker;

/*
 * Errors: -EINVAL (unknown cc or durability, hooks missing, node too large, txn_records_max above
 * 65536, txn_undo_bytes above 1 GiB; cold_dir: no O_DIRECT there; volume_cold with cold_dir;
 * volume_read_only with volume_cold or volume_checks; any of them without a volume; with a log:
 * log_dir and volume or neither, or a number above its bound), -ENOMEM, those of files and of
 * io_uring; with a volume those of oltp_volume_list, -EBUSY (another process of this machine owns
 * it) and -ENOENT
 * (volume_read_only, and no database is in it). NULL config: NO_WAIT, all defaults.
 */
int oltp_engine_open(const struct oltp_config *config, struct oltp_engine **ret_engine);

/* Every worker must have been destroyed. Frees tables and records. Accepts NULL. */
void oltp_engine_close(struct oltp_engine *engine);

/*
 * A table of fixed-size records under unique 64-bit keys (all values are legal keys).
 * capacity sizes the hash index once: more records than that work but are found more slowly.
 * Tables live until the engine is closed. Errors: -EINVAL (record_bytes 0 or > 1 MiB, capacity 0
 * or > 2^32), -ENOSPC (OLTP_TABLES_MAX), -ENOMEM.
 */
int oltp_table_create(struct oltp_engine *engine, uint32_t record_bytes, uint64_t capacity,
		      struct oltp_table **ret_table);

/*
 * Calls fn, on the caller's thread, once for every record that is there throughout, wherever it is,
 * in no order. May run at any time, but not on a thread whose transaction holds records: each
 * record is seen as it was, unlocked by any writer, at some moment of the walk. Cold ones are read
 * from disk and stay there; recency is left alone. A non-zero return ends the walk and is returned.
 * fn must not wait: meanwhile its record is locked, and slots of records that have gone to disk do
 * not become free. The walk itself may wait, for a writer or the disk, without such an effect.
 * Errors: -EIO (a cold record could not be read), -EOWNERDEAD (records were lost with their
 * memory, and are not back yet), both after all others have been shown; -ENOMEM, -ENOSPC (no worker
 * free).
 */
int oltp_table_scan(struct oltp_table *table,
		    int (*fn)(void *ctx, uint64_t key, const void *record), void *ctx);

/*
 * A worker is a transaction context: one thread at a time may use it, one transaction at a time.
 * Errors: -ENOSPC (OLTP_WORKERS_MAX alive), -ENOMEM.
 */
int oltp_worker_create(struct oltp_engine *engine, struct oltp_worker **ret_worker);

/* Aborts a running transaction. Accepts NULL. */
void oltp_worker_destroy(struct oltp_worker *worker);

/* Counters since the worker was created. Any thread may read them at any time. */
struct oltp_worker_stats {
	uint64_t commits;
	uint64_t aborts;	/* all aborted transactions */
	uint64_t conflicts;	/* those among them that met OLTP_CONFLICT */
	uint64_t waits;		/* times a lock was waited for (not under NO_WAIT) */
	uint64_t accesses;	/* record accesses of committed transactions */
	uint64_t colds;		/* aborted transactions that met OLTP_COLD */
	uint64_t wounds;	/* conflicts by which one made way for an older one (WOUND_WAIT) */
};

void oltp_worker_stats_read(const struct oltp_worker *worker, struct oltp_worker_stats *ret_stats);

/*
 * Starts a transaction. After an abort caused by OLTP_CONFLICT the next transaction of the worker
 * counts as the same one tried again and keeps its age, so it grows old and gets through. After
 * OLTP_COLD it does not: others may come first. OLTP_INVALID: one is running, or a database in
 * log_dir or volume was not recovered yet; OLTP_IO: the log has failed.
 *
 * Until a transaction ends, memory of what is deleted or moved to disk after its begin can neither
 * be reused nor given back, for the transaction may still read it. So end transactions soon: one
 * that is left open keeps the engine from meeting a demand.
 */
enum oltp_rc oltp_txn_begin(struct oltp_worker *worker);

/*
 * What a transaction is going to touch: bytes [offset, offset + bytes) of the record under key. No
 * bytes: a key that is going to be inserted; there is nothing but the index to be fetched.
 */
struct oltp_hint {
	uint64_t key;
	uint32_t offset;
	uint32_t bytes;
	struct oltp_table *table;	/* NULL: that of the call */
};

/*
 * Announces n accesses of the running transaction: hashes the keys and brings index and record
 * lines into the cache, all misses at once. Optional, only speed depends on it; accesses that come
 * in the order announced also save the second hashing. Takes no lock. table may be NULL if every
 * hint has its own. Hints beyond txn_records_max are ignored, and a second call replaces the first:
 * what that has brought into the cache stays there.
 */
void oltp_txn_prefetch(struct oltp_worker *worker, struct oltp_table *table,
		       const struct oltp_hint *hints, uint32_t n);

/*
 * Announces n accesses of the worker's next transaction while one is running: hashes the keys and
 * brings index lines into the cache at once, and record lines once the running transaction commits.
 * Best called right after the oltp_txn_prefetch of the running one, so that both wait at the same
 * time. That of the next one, with the same array of hints, then has nothing left to do. Optional,
 * only speed depends on it; hints as above, and a second call replaces the first.
 */
void oltp_txn_prefetch_next(struct oltp_worker *worker, struct oltp_table *table,
			    const struct oltp_hint *hints, uint32_t n);

/*
 * Brings the index lines of n keys into the cache, for a transaction to come: its oltp_txn_prefetch
 * then waits for records only. Optional, only speed depends on it. table may be NULL if every hint
 * has its own. Any thread, at any time.
 */
void oltp_prefetch_index(struct oltp_table *table, const struct oltp_hint *hints, uint32_t n);

/*
 * Every function below that returns OLTP_CONFLICT, OLTP_FULL, OLTP_NO_MEMORY, OLTP_COLD or
 * OLTP_LOST dooms the transaction: the only call it still accepts is oltp_txn_abort. Pointers
 * handed out are valid until the transaction ends.
 */

/* Shared lock; *ret_record is the record itself, to be read only. Also OLTP_NOT_FOUND. */
enum oltp_rc oltp_txn_read(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			   const void **ret_record);

struct oltp_span {
	uint32_t offset;
	uint32_t bytes;
};

/*
 * Exclusive lock; saves the before-image of each span and hands out the record for writing.
 * Caveat: bytes outside the spans must not be changed, they would survive an abort. Also
 * OLTP_NOT_FOUND; OLTP_INVALID for a span outside the record, or that covers bytes of a sort key
 * (the transaction may go on).
 */
enum oltp_rc oltp_txn_update(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			     const struct oltp_span *spans, uint32_t n, void **ret_record);

/*
 * Adds a record, exclusively locked until the end. With OLTP_EXISTS a shared lock is held on the
 * record that is there (under the key, or under a sort key that must be unique). What this
 * transaction has deleted may be added again; that takes record_bytes of undo.
 */
enum oltp_rc oltp_txn_insert(struct oltp_worker *worker, struct oltp_table *table, uint64_t key,
			     const void *record);

/*
 * Deletes a record: exclusive lock, and it is gone for this transaction from now on, for others
 * when it commits. Pointers to it handed out before are not to be used any more. Also
 * OLTP_NOT_FOUND; OLTP_LOST may mean that a lost record looks like it (oltp_restore_wait).
 */
enum oltp_rc oltp_txn_delete(struct oltp_worker *worker, struct oltp_table *table, uint64_t key);

/*
 * Ends the transaction and releases its locks. OLTP_INVALID if none runs or it is doomed, or it has
 * changed something and the volume is read only; OLTP_CONFLICT if something that was missing is
 * there by now; OLTP_LOST if memory that it read or wrote was taken meanwhile; OLTP_IO,
 * OLTP_NO_MEMORY, OLTP_FULL if the log cannot take it: abort.
 */
enum oltp_rc oltp_txn_commit(struct oltp_worker *worker);

/*
 * Restores every saved byte, takes inserts and deletes back, releases the locks. Cannot fail.
 * Harmless if none runs.
 */
void oltp_txn_abort(struct oltp_worker *worker);

/* Ordered indexes and scans. */
#include "oltp_index.h"

/* Log, checkpoints, recovery. */
#include "oltp_durable.h"

/* ---- 2. memory that comes and goes --------------------------------------------------------- */

/*
 * A provider of blocks for records. It says how much may be held (oltp_memory_limit), the engine
 * then calls the hooks, under a lock of its own and from any thread: they must not call the engine.
 */
struct oltp_block_ops {
	/*
	 * Required. Up to bytes (a multiple of OLTP_MEM_BLOCK_BYTES) on one node; zeroed, aligned
	 * to OLTP_MEM_BLOCK_BYTES, below 2^48. Less may be given, at least one block: *ret_bytes.
	 * -errno: nothing now; asked again after the next oltp_memory_limit.
	 */
	int (*add)(void *ctx, uint64_t bytes, uint32_t node, void **ret_addr, uint64_t *ret_bytes);
	/* Required. Any range of whole blocks out of what add gave. */
	void (*release)(void *ctx, void *addr, uint64_t bytes);
};

/*
 * From the provider, any thread, at any time: how many bytes of blocks of the node (0 to
 * OLTP_NODES_MAX - 1; others are ignored) may be held from now on. A goal, not a difference: saying
 * it again changes nothing. Before the first call nothing may be held.
 *
 * More than is held is an offer: taken when records need it; while there are cold records, some are
 * read back.
 *
 * Less than is held is a demand, to be met by the deadline (CLOCK_MONOTONIC ns; 0: no deadline).
 * Unused blocks go first, then those with the fewest records (what was kept free for records to
 * come: all that maintenance has in blocks; its buffers and books are elsewhere, and giving them up
 * would answer no demand), then records are written to disk, those not used for longest first, and
 * the others moved together. What could not be given by the deadline, or without one right away, is
 * counted (unanswered_bytes) and tried no longer until the provider says something new.
 */
#define OLTP_NO_DEMAND	UINT64_MAX	/* as a deadline: what is held beyond the limit may stay */
void oltp_memory_limit(struct oltp_engine *engine, uint32_t node, uint64_t limit_bytes,
		       uint64_t deadline_ns);

/*
 * The host took these blocks by force: what was there is lost, and the engine must not use the
 * addresses again. From here on their records are answered OLTP_LOST; with a log, until they are
 * back (oltp_restore_wait). The hook release is not called for them. Returns the bytes among them
 * that were held.
 *
 * With oltp_memory_catch_revokes, threads may touch such blocks before this call was made: the
 * SIGBUS is caught, zeroed memory is put in the block's place, and the transaction that did it
 * fails with OLTP_LOST when it next asks. Without it, the SIGBUS takes its usual course; and it
 * comes whether or not transactions run, since the engine's own thread looks at records 50 times a
 * second (oltp_memory.h).
 */
uint64_t oltp_memory_revoked(struct oltp_engine *engine, void *addr, uint64_t bytes);

/*
 * Sets a SIGBUS handler for the process, which looks after addresses in blocks of this engine only
 * and hands all others to the handler that was there before. Once per process. Errors: -EEXIST,
 * those of sigaction().
 */
int oltp_memory_catch_revokes(struct oltp_engine *engine);

struct oltp_memory_stats {
	uint64_t held_bytes;		/* blocks held, whatever is in them */
	uint64_t unused_bytes;		/* among them: nothing is in them */
	uint64_t maintenance_bytes;	/* outside of blocks: buffers and books for cold records */
	uint64_t resident_records;	/* in memory */
	uint64_t resident_bytes;	/* what they take, heads and padding included */
	uint64_t cold_records;		/* on disk; those used from a read buffer included */
	uint64_t file_bytes;		/* of the file; in use: */
	uint64_t file_used_bytes;
	/* From here on since the engine was opened. */
	uint64_t cold_reads;		/* records read because a transaction wanted them */
	uint64_t read_errors;		/* reads that failed, or whose checksum was wrong */
	uint64_t write_errors;		/* writes that failed; their records stayed in memory */
	uint64_t evicted_records, evicted_bytes;	/* to disk */
	uint64_t merged_records, merged_bytes;		/* back, on access or in the background */
	uint64_t moved_records;		/* within memory, to free whole blocks */
	uint64_t compacted_records;	/* from one place of the file to another: README.md */
	uint64_t demands;		/* that called for bytes */
	uint64_t answered_bytes;	/* given back on demand */
	uint64_t unanswered_bytes;	/* that demands were short of when their deadline passed */
	uint64_t unanswered_demands;
	uint64_t last_demand_ns;	/* how long the last one that was met took */
	uint64_t revoked_bytes;		/* taken by force */
	uint64_t lost_records;		/* with them; back: see oltp_restore_stats_read */
	/* Records, of the times in which memory was promised: see oltp_set_mem_promise. */
	uint64_t baseline_ios, actual_ios;
};

/* Any thread. */
void oltp_memory_stats_read(struct oltp_engine *engine, struct oltp_memory_stats *ret_stats);

/* How often memory is used, and the cost of reading records again that were given up. */
#include "oltp_memory.h"

/* Cold records that another engine reads where they are. */
#include "oltp_place.h"

/*
 * Fetching. A transaction that got OLTP_COLD has been aborted; it then holds no lock, and these
 * read what it asked for (and whatever else of its announced accesses is on disk) while the worker
 * does other things:
 *
 *   oltp_cold_fetch(worker, ticket)	starts reading; ticket is the caller's name for it
 *   oltp_cold_poll(worker, ...)	which tickets are through
 *   oltp_cold_end(worker, ticket)	the transaction has ended
 *
 * A ticket that ends with OLTP_OK means: run the transaction again. It may meet OLTP_COLD again and
 * is then fetched for with the same ticket; what was read for it is kept until it has ended.
 */
#define OLTP_TICKETS	64u

/*
 * Right after oltp_txn_abort of a transaction that got OLTP_COLD. OLTP_FULL: too much is being read
 * already, or kept for others: poll, run those that are through and try again; OLTP_INVALID: ticket
 * too large or in use, or nothing to fetch; OLTP_IO: no ring, OLTP_NO_MEMORY: no buffers; give the
 * transaction up.
 */
enum oltp_rc oltp_cold_fetch(struct oltp_worker *worker, uint32_t ticket);

struct oltp_cold_done {
	uint32_t ticket;
	enum oltp_rc rc;	/* OLTP_OK, OLTP_IO, OLTP_NO_MEMORY (no room could be made) */
};

/*
 * Between transactions: moves things on and collects up to max tickets; returns how many, 0 or
 * more. wait: until there is one, if any is on its way. Errors: -EINVAL, nothing was done: a
 * transaction of the worker's has begun and was neither committed nor aborted, whether it has
 * failed or not; what it has found would no longer be safe from being given back.
 */
int oltp_cold_poll(struct oltp_worker *worker, struct oltp_cold_done *ret_done, uint32_t max,
		   bool wait);

/*
 * The ticket's transaction was committed or given up: records that were read for it need not be
 * kept any more. Without this call other transactions wait longer than they need to. No effect if
 * the ticket never fetched, or still does.
 */
void oltp_cold_end(struct oltp_worker *worker, uint32_t ticket);

/*
 * Fetches with ticket 0 and waits. For callers that have nothing else to do; they need not say when
 * a transaction has ended. Returns the result of the ticket; errors: those of oltp_cold_fetch.
 */
enum oltp_rc oltp_cold_wait(struct oltp_worker *worker);

/*
 * A provider without a host: anonymous memory, up to a limit per node that may be changed at any
 * time from any thread. Machines without that node: any memory. Attached once the engine is open;
 * it must outlive the engine. Errors: -ENOMEM. destroy accepts NULL.
 */
struct oltp_blocks_native;
extern const struct oltp_block_ops oltp_blocks_native_ops;
int oltp_blocks_native_create(uint64_t limit_bytes, uint32_t node,
			      struct oltp_blocks_native **ret_blocks);
void oltp_blocks_native_attach(struct oltp_blocks_native *blocks, struct oltp_engine *engine);
void oltp_blocks_native_set_limit(struct oltp_blocks_native *blocks, uint64_t limit_bytes,
				  uint64_t deadline_ns);
uint64_t oltp_blocks_native_held(struct oltp_blocks_native *blocks);
void oltp_blocks_native_destroy(struct oltp_blocks_native *blocks);

/* ---- 3. worker pool ------------------------------------------------------------------------ */

#include "oltp_pool.h"

/* ---- 4. elastic control -------------------------------------------------------------------- */

#include "oltp_elastic.h"

/* ---- 5. names ------------------------------------------------------------------------------ */

/* Never NULL. */
const char *oltp_strerror(enum oltp_rc rc);
const char *oltp_cc_name(enum oltp_cc cc);

/* "no_wait", "wait_die", "wound_wait". Error: -EINVAL. */
int oltp_cc_parse(const char *name, enum oltp_cc *ret_cc);

/* "none", "lend", "park", "unplug"; never NULL. Parsing takes all but the first. Error: -EINVAL. */
const char *oltp_tier_name(enum oltp_tier tier);
int oltp_tier_parse(const char *name, enum oltp_tier *ret_tier);

#ifdef __cplusplus
}
#endif

#endif
