/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * oltp_durable.h - what of the engine outlives its process. Included by oltp.h.
 *
 * Every transaction that changes anything adds what it changed to a log. The log is written in
 * groups: once per group interval a thread of the engine closes an epoch, writes what was
 * committed in it, and waits until it is on disk. Locks are not held for that: a transaction that
 * has seen another one's writes is in the same epoch or a later one, and so is not durable before
 * it.
 *
 * Guarantees (with struct oltp_config.durability):
 *
 *   D1  commit: what was acknowledged (oltp_durable_wait returned 0; the worker pool counted it as
 *       committed) is there after a crash or loss of power.
 *   D2  async: a commit that is older than two group intervals and one write of the log is there
 *       afterwards. Both: the commits that are there are a prefix: for each of them, all commits
 *       that it has seen are there as well.
 *   D3  When the log cannot be written the engine says so and stops: nothing is acknowledged that
 *       is not on disk, and transactions get OLTP_IO. It is never tried again, since what a disk
 *       has of a failed sync is not known.
 *
 *   D4  oltp_recover brings back all of D1 or D2, whatever the process was at when it ended, or
 *       says which file is damaged and brings nothing. Damage to the very last group of the log
 *       cannot be told from a write that was broken off: it is taken for that. A lazy recovery
 *       finds a damaged row when that is first used (OLTP_IO); no other bytes are handed out.
 *
 * Caveat, mode commit: oltp_txn_commit returns before anything is on disk. A result, of a
 * transaction that only read as well, must not be shown to anybody before oltp_durable_wait.
 */
#ifndef OLTP_DURABLE_PUBLIC_H
#define OLTP_DURABLE_PUBLIC_H

#include "oltp.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "off", "async", "commit"; never NULL. Error of parsing: -EINVAL. */
const char *oltp_durability_name(enum oltp_durability durability);
int oltp_durability_parse(const char *name, enum oltp_durability *ret_durability);

/*
 * The epoch of the worker's last committed transaction; 0: there was none, or durability is off.
 * The worker's thread only.
 */
uint64_t oltp_worker_epoch(const struct oltp_worker *worker);

/* The newest epoch of which everything is on disk; UINT64_MAX with durability off. Any thread. */
uint64_t oltp_durable_epoch(const struct oltp_engine *engine);

/*
 * Waits until everything of the epoch is on disk. Any thread, but not one whose transaction holds
 * locks: others would wait for the disk with it. Errors: -EIO, -ENOSPC, ... (why the log failed;
 * whether the epoch is on disk is not known), -EINVAL (nothing was recovered yet). 0 at once with
 * durability off.
 */
int oltp_durable_wait(struct oltp_engine *engine, uint64_t epoch);

/*
 * The same for a thread that must not wait: an eventfd of its own is told. While a watch is set, 1
 * is added to the eventfd once, as soon as everything of the epoch is on disk or the log has
 * failed; then the watch is no longer set. The descriptor stays the caller's.
 *
 * create, destroy: any thread. Errors: -ENOMEM. destroy accepts NULL; before the engine is closed.
 * set: one thread at a time for each watch. Setting it again replaces the epoch. False: the eventfd
 * is not told, since there is nothing to wait for: the epoch is on disk (oltp_durable_epoch), or it
 * never will be, as the log does not run.
 */
struct oltp_durable_watch;
int oltp_durable_watch_create(struct oltp_engine *engine, int event_fd,
			      struct oltp_durable_watch **ret_watch);
bool oltp_durable_watch_set(struct oltp_durable_watch *watch, uint64_t epoch);
void oltp_durable_watch_destroy(struct oltp_durable_watch *watch);

/*
 * The log is written now, without waiting for the group interval to end: for who keeps others
 * waiting until its transaction is on disk. The next group follows after an interval, or after the
 * next call. Any thread; nothing happens with durability off.
 */
void oltp_durable_hurry(struct oltp_engine *engine);

/* Since the engine was opened. */
struct oltp_durable_stats {
	bool has_failed;
	int error;		/* -errno of what failed; 0: nothing did */
	bool is_direct;		/* written around the page cache (O_DIRECT) */
	uint64_t epoch;		/* of now */
	uint64_t durable_epoch;
	uint64_t groups;	/* written */
	uint64_t bytes;		/* of them, headers and padding included */
	uint64_t entries;	/* transactions in them */
	uint64_t segments;	/* files in use */
	uint64_t waits;		/* times that a worker had to wait for room before it began */
	double cpu_seconds;	/* of the thread that writes it */
	/* Of the writes of groups, sync included; 0: there was none. */
	double write_p50_us, write_p99_us;
};

/*
 * Whether oltp_config.volume_checks is in force, as it is from the start: an engine that nobody can
 * replace at the moment need not pay for it. Any thread. Nothing happens without volume_checks.
 */
void oltp_volume_checks_set(struct oltp_engine *engine, bool is_on);

/* Any thread. All 0 with durability off. */
void oltp_durable_stats_read(struct oltp_engine *engine, struct oltp_durable_stats *ret_stats);

/*
 * A checkpoint is a copy of all tables, made while transactions run; the log before it is then not
 * needed any more, and its files are used again. One is made whenever the log has grown by
 * struct oltp_config.checkpoint_mib, and when somebody asks. Writes of the log go before its own.
 * If one fails that the log's growth called for, it is tried again after 1 s, then after twice as
 * long each time, at most 64 s.
 *
 * Makes one, and waits for that. Any thread, but not one whose transaction holds locks. Errors:
 * -EINVAL (durability off, or nothing was recovered yet), -EROFS (oltp_config.volume_read_only),
 * -EIO (the log has failed; a record on disk could not be read), -EOWNERDEAD (records were lost
 * with their memory and cannot be brought back now, see oltp_restore_wait), -ENOMEM, -ENOSPC and
 * others of files. After an error the checkpoint before it is there, and the log from then on.
 * While records are brought back it waits.
 */
int oltp_checkpoint(struct oltp_engine *engine);

struct oltp_checkpoint_stats {
	uint64_t checkpoints;	/* made since the engine was opened */
	uint64_t failed;
	bool is_running;	/* one is being made now */
	int last_error;		/* -errno of the last one that ended; 0: it is there */
	int last_clean_error;	/* it is, but files that it replaces could not be removed */
	/* Of the last one that was made. */
	uint64_t last_rows;
	uint64_t last_bytes;
	double last_ms;
	double last_held_ms;	/* of them it was held back, for the log's sake */
};

/* Any thread. All 0 with durability off. */
void oltp_checkpoint_stats_read(struct oltp_engine *engine,
				struct oltp_checkpoint_stats *ret_stats);

/*
 * Memory that the host takes by force takes records with it (oltp_memory_revoked): an access to one
 * gets OLTP_LOST. With a log, in both modes, a thread of the engine brings them back by itself: it
 * reads the newest checkpoint and the log up to then, as a restart would, and puts what is missing
 * into memory that may still be held, while transactions run. If there is too little, others go to
 * disk (cold_dir); without that it waits for an offer. All that was committed is there afterwards.
 * Until all is back
 *
 *  - OLTP_LOST means: not now. Run the transaction again later, or after oltp_restore_wait.
 *  - a key that is not lost may be answered so, if it looks like one that is (the same bucket of
 *    the index and 16 bits): when it was never there, and when it is to be deleted.
 *  - no checkpoint is made, and oltp_table_scan returns -EOWNERDEAD.
 *
 * More may be taken meanwhile: then it begins anew for what is missing. Nothing on disk changes, so
 * after a crash recovery finds what it would have found without. It takes about as long as to read
 * checkpoint and log, that again for each 64 MiB of rows that are missing beyond the first (they
 * are put together in ordinary memory), and before that waits for the transactions that run.
 *
 * If it fails (a file cannot be read, or is damaged), it is tried again every 10 s; what was put
 * back is there.
 */
struct oltp_restore_stats {
	bool is_running;	/* it is being tried now */
	bool lacks_room;	/* for a second no record could be put back: no memory */
	uint64_t restores;	/* times that all was brought back since the engine was opened */
	uint64_t failed;	/* tries that ended otherwise */
	int last_error;		/* -errno of the last try; 0: it went well, or there was none */
	uint64_t records;	/* that were put back since the engine was opened */
	/*
	 * From when the engine noticed that memory was gone until all that was missing was back,
	 * ms: the last time, and the longest.
	 */
	double last_ms, max_ms;
};

/* Any thread. All 0 with durability off. */
void oltp_restore_stats_read(struct oltp_engine *engine, struct oltp_restore_stats *ret_stats);

/*
 * Waits until all is back that the engine knows to have been taken; 0 at once if nothing is
 * missing. Any thread, but not one whose transaction holds locks: it is waited for. Errors: -EINVAL
 * (durability off, or nothing was recovered yet: it will not come back), -EROFS
 * (oltp_config.volume_read_only: the same), -ENOMEM (lacks_room; it goes on all the same), -EIO
 * (the log has failed), and why a try failed meanwhile.
 */
int oltp_restore_wait(struct oltp_engine *engine);

enum oltp_recovery_phase {
	OLTP_RECOVERY_LOOKING = 0,	/* which files there are */
	OLTP_RECOVERY_CHECKPOINT = 1,
	OLTP_RECOVERY_LOG = 2,
	OLTP_RECOVERY_DONE = 3,
};

struct oltp_recovery {
	enum oltp_recovery_phase phase;
	double looking_ms, checkpoint_ms, log_ms;	/* that each phase took */
	/* Read so far, and what there is to be read (of log: at most). */
	uint64_t checkpoint_bytes, checkpoint_bytes_all;
	uint64_t log_bytes, log_bytes_all;
	uint64_t rows;		/* in the checkpoint */
	uint64_t groups;	/* of log that were redone */
	uint64_t transactions;	/* in them */
	uint64_t puts, updates, deletes;	/* what those did to rows */
	/*
	 * Changes of rows that were not there: the checkpoint saw the row when it was already
	 * deleted. No sign of damage.
	 */
	uint64_t passed_over;
	uint64_t torn_bytes;	/* of a group that was being written when there was a crash */
	uint64_t csn, epoch, group;	/* of the last transaction, and group, that are there */
	/* Among rows: that were left in the checkpoint, to be read when they are used. */
	uint64_t lazy_rows;
	/* Why it was not lazy although it should have been; NULL: it was, or nobody asked. */
	const char *not_lazy;
	char error[256];	/* which file, and what is the matter with it; "": nothing */
};

struct oltp_recover_config {
	/* Called on the caller's thread, about every 100 ms; must not call the engine. */
	void (*progress)(void *ctx, const struct oltp_recovery *so_far);
	void *ctx;
	/*
	 * Serve first, load as used: of the checkpoint only its directory is read (12 bytes a row,
	 * and 8 for each ordered index with key_of); the log after it is redone. A row is read when
	 * a transaction first uses it, as a cold record (oltp.h): OLTP_COLD. The log reads only
	 * those that it gives other sort keys. All others are loaded in the background, in the
	 * order of the file (a checkpoint does not know which were used last), until all is as
	 * after an ordinary recovery; see oltp_recovery_rows_left.
	 *
	 * Tables with records above 256 KiB, or with an ordered index that is not as when the
	 * checkpoint was made (key_version, key_spans), are loaded at once. A damaged row is found
	 * when it is read: OLTP_IO, counted in read_errors, and no checkpoint can be made (-EIO).
	 * Damage in the directory, or in what is loaded at once, is found here (-EUCLEAN).
	 *
	 * Without cold_dir, without a checkpoint, or with one that has no directory (of a program
	 * older than those) all is read at once: not_lazy says why.
	 */
	bool lazy;
	uint32_t lazy_mib_s;	/* loaded in the background, at most; 0: 128 */
/* Nothing is: rows are read when they are used, and the checkpoint's file stays. */
#define OLTP_LAZY_NO_LOAD	UINT32_MAX
};

/*
 * Puts the database together again that log_dir or the volume holds: the newest checkpoint, then
 * the log. Tables and indexes must have been created first, in the same order and with the same
 * record_bytes as when it was made; indexes may be others than then. A unique one in which two rows
 * have the same key, be it a new one or because the log is damaged, is refused (-EUCLEAN).
 * Rows go where rows go: with little memory some go to disk. Nothing in the folder is changed
 * before all of that is done, so that it can be tried again, by another process, after any failure.
 *
 * Needed, and allowed, once, before the first transaction; without a database in log_dir it does
 * nothing. NULL config: no progress. *ret_recovery (may be NULL) is filled in also on failure, as
 * far as it came. Errors: -EINVAL (durability off; was tried before; a table is missing), -EUCLEAN
 * (files are damaged or missing: error says which; nothing that is there is handed out, since it is
 * not all), -ENOMEM (or the provider has too few blocks, and there is no cold_dir, or no room in
 * it), -EIO and others of files.
 */
int oltp_recover(struct oltp_engine *engine, const struct oltp_recover_config *config,
		 struct oltp_recovery *ret_recovery);

/*
 * How many rows a lazy recovery has still to load: they are in the checkpoint, and nowhere else.
 * Those that cannot be read are among them until the engine is closed. 0 without. Any thread; takes
 * some microseconds for each GiB.
 */
uint64_t oltp_recovery_rows_left(struct oltp_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
