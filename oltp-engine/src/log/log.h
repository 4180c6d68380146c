/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The redo log as the rest of the engine sees it.
 *
 *   state	transitions
 *   CLOSED	log_open, new folder -> RUNNING; folder that holds a database -> UNREAD
 *   UNREAD	log_start, by recovery -> RUNNING, or READ_ONLY if the engine only reads
 *   RUNNING	a write or a sync fails -> FAILED
 *   all	log_close -> CLOSED
 *
 * Transactions begin and commit only while it is RUNNING; UNREAD: OLTP_INVALID, FAILED: OLTP_IO.
 * READ_ONLY: those that change something do not commit, OLTP_INVALID.
 */
#ifndef OLTP_LOG_H
#define OLTP_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "log_format.h"
#include "oltp-engine/src/io/io_files.h"
#include "oltp.h"

struct log;

enum log_state {
	LOG_UNREAD,
	LOG_RUNNING,
	LOG_FAILED,
	LOG_READ_ONLY,
};

/*
 * Opens the log in a folder of io, for this process alone; one that has none gets a catalogue and a
 * running log. Of an engine that only reads it locks and writes nothing, and has to find one
 * (-ENOENT).
 * Errors: -EINVAL, -ENOMEM, -EBUSY (somebody has it open), -EBADMSG (CATALOG is damaged), those of
 * files.
 */
int log_open(struct oltp_engine *engine, const struct oltp_config *config,
	     const struct io_files *io, const char *dir, struct log **ret_log);

/* Writes what was committed, if it can. All workers are gone. Accepts NULL. */
void log_close(struct log *log);

enum log_state log_state(const struct log *log);

/* Is a transaction to be acknowledged only when its epoch is durable? False for NULL. */
bool log_is_commit(const struct log *log);

/*
 * Wakes the log thread if it sleeps. To be called after each commit by a thread that waits for its
 * epoch otherwise than by log_wait.
 */
void log_wake(struct log *log);

/* Closes the open epoch now, without waiting for the interval to end. */
void log_call(struct log *log);

/* For checkpoint and recovery, which reach files through these alone. */
const char *log_dir(const struct log *log);
const struct io_files *log_io(const struct log *log);

/* The catalogue as it is on disk now. Any thread; a copy. */
void log_catalog_get(struct log *log, struct log_catalog *ret_catalog);

/*
 * A table was created, its id is its number. Writes it to the catalogue if it is new. Errors:
 * -EINVAL (the catalogue has another record_bytes for it), -EROFS (it is new, and the engine only
 * reads), those of writing.
 */
int log_table_created(struct log *log, uint32_t number, uint32_t record_bytes);

/* Where a log goes on. */
struct log_position {
	uint64_t segment;	/* greater than those of all segments there are; >= 1 */
	uint64_t group;		/* the one after the last that is whole; >= 1 */
	uint64_t csn;		/* greater than all before; >= 1 */
	uint64_t epoch;		/* greater than all before; >= 1 */
};

/*
 * UNREAD -> RUNNING or READ_ONLY, once the database is as the files say. Begins a new segment if it
 * is to run; those before it stay until they are recycled: first_groups[i] is the first group of
 * segments[i], UINT64_MAX if it has none, both by rising number. Errors: -EINVAL, -ENOMEM, those of
 * files.
 */
int log_start(struct log *log, const struct log_position *position, const uint64_t *segments,
	      const uint64_t *first_groups, uint32_t n);

/*
 * Groups before this one are not needed any more: segments with none but such are used again, or
 * removed if there are spares enough. Any thread. Errors: those of files; what could be done was.
 */
int log_recycle_before(struct log *log, uint64_t group);

/*
 * Transactions that commit after this call are in this group or in later ones. So a checkpoint that
 * begins to look at rows now has all changes of earlier groups in it. Any thread.
 */
uint64_t log_group_now(const struct log *log);

/* Changes from now on have this csn or a greater one, and this epoch or a later one. Any thread. */
uint64_t log_csn_now(const struct log *log);
uint64_t log_epoch_now(const struct log *log);

/* The newest epoch of which all is on disk. */
uint64_t log_epoch_durable(const struct log *log);

/* The newest group that is on disk; 0: none. All up to log_epoch_durable() is in it or before. */
uint64_t log_group_durable(const struct log *log);

/*
 * Waits until the newest durable epoch is this one or a later one. A checkpoint that has looked at
 * all rows must wait for log_epoch_now() before it takes its name: it may contain one part of the
 * writes of a transaction whose entry is not on disk. 0, -ETIMEDOUT (CLOCK_MONOTONIC; 0: waits
 * without end), or why the log failed.
 */
int log_wait(struct log *log, uint64_t epoch, uint64_t deadline_ns);

/* Bytes of groups written since the log was opened. */
uint64_t log_bytes_written(const struct log *log);

/* How busy the disk is with the log. */
struct log_load {
	uint64_t groups;	/* written since the log was opened */
	uint64_t start_ns;	/* CLOCK_MONOTONIC: of the one that is being written; 0: none is */
	uint64_t last_ns;	/* that the last one took; 0: there was none */
	uint64_t usual_ns;	/* of some tens before */
};

/* Any thread. */
void log_load_read(const struct log *log, struct log_load *ret_load);

/* The log as transactions and workers see it. */

struct log_buffer;

/* The worker gets a buffer, if the engine has a log. Errors: -ENOMEM. */
int log_worker_join(struct oltp_worker *worker);

/* The worker logs no more; what it committed is still written. */
void log_worker_leave(struct oltp_worker *worker);

/*
 * True: log_begin will not wait, since the worker's buffer has room, or its log does not run. Waits
 * for that, for wait_ns at most (0: without end).
 */
bool log_room_wait(const struct oltp_worker *worker, uint64_t wait_ns);

/*
 * Before a transaction takes any lock: waits while too many of the worker's commits are not
 * written. OLTP_INVALID, OLTP_IO: see above. This and the next one do nothing for a worker that
 * redoes what is logged already.
 */
enum oltp_rc log_begin(const struct oltp_worker *worker);

/*
 * Right before the transaction commits, with all its locks held and all its changes made: logs the
 * changes, or only notes the epoch if there are none. Nothing can stop the transaction afterwards.
 * OLTP_IO, OLTP_NO_MEMORY, OLTP_LOST (memory was taken before all was copied): nothing was logged,
 * it has to be aborted.
 */
enum oltp_rc log_append(struct oltp_worker *worker);

#endif
