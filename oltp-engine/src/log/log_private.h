/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the log share.
 *
 *	log.c		opening, starting, closing; what others ask
 *	log_append.c	a transaction's changes into its worker's buffer
 *	log_buffer.c	memory for that, from workers to the log thread and back; groups
 *	log_thread.c	epochs, who waits for what, failure
 *	log_watch.c	threads that are told of an epoch instead of waiting for it
 *	log_files.c	the folder: lock, names, catalogue, segments
 *
 * Closing an epoch. A worker that appends announces the epoch that it read, counts up the csn, and
 * reads the epoch again: if it has changed, it begins anew (that csn is not used). The log thread
 * sets the next epoch, adds 0 to the csn, and looks at what is announced. All additions to one
 * atomic have an order. If the worker's is before the log thread's, what it announced is seen, and
 * waited for; else the worker sees the new epoch. So, once nothing up to epoch E is announced:
 *
 *   L1  No chunk of an epoch up to E changes any more, and no new one gets an entry.
 *
 * A worker may lose its CPU for long in the middle of an append. So the log thread waits for it for
 * a bounded time only, and then changes what is announced to LOG_LEFT: the entry under way is not
 * of epoch E. The worker, which ends its append with a compare-and-swap of what it announced, finds
 * that out and begins anew, in another chunk. The whole entries of the chunk are copied; the worker
 * may write to the chunk itself until it announces something else.
 *
 * A worker takes its csn and its epoch with all locks of the transaction held. So a transaction
 * that locks one of those records afterwards has a greater csn and the same epoch or a later one
 * (F2), also if the worker had to begin anew.
 *
 * Locks: log.lock may be held when a buffer's or the segments' is taken, not the other way round.
 */
#ifndef OLTP_LOG_PRIVATE_H
#define OLTP_LOG_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "log.h"
#include "oltp-engine/src/base/hist.h"
#include "oltp-engine/src/base/util.h"

/* Where workers put entries, for one epoch. Larger ones are made for larger transactions. */
#define LOG_CHUNK_BYTES		(256u << 10)

/* With so much in a worker's chunks it waits before it begins another transaction. */
#define LOG_OUTSTANDING_MAX	(16ull << 20)

struct log_arena;

struct log_chunk {
	struct log_chunk *next;
	struct log_arena *arena;	/* NULL: it has memory of its own, freed with it */
	uint64_t epoch;
	uint32_t room;		/* bytes of data; a multiple of LOG_BLOCK_BYTES */
	uint32_t used;		/* from here on the worker's, until the epoch is closed */
	uint32_t n_entries;
	uint64_t csn_first, csn_last;
	struct log_buffer *owner;
	uint8_t *data;		/* aligned to LOG_BLOCK_BYTES */
};

struct log_chunk_list {
	struct log_chunk *head, **tail;
};

/* The log thread has put this into announced: it goes on without the entry under way. */
#define LOG_LEFT	UINT64_MAX

/* The buffer of one worker. It outlives the worker until all in it is written. */
struct log_buffer {
	struct log *log;
	struct log_buffer *next;	/* of log.buffers */
	/* The worker's. */
	struct log_chunk *chunk;	/* the newest; the log thread's if its epoch is closed */
	uint64_t chunk_epoch;		/* of it; 0: there is none */
	uint32_t room;			/* left in it */
	uint32_t whole;			/* bytes in it of entries whose append has ended */
	uint64_t epoch;			/* of the last transaction */
	bool is_full;
	bool is_orphan;			/* the worker is gone; under log.lock */

	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t announced;	/* 0: nothing */
	/* For the append under way; 0: the log's interval. Doubled each time that it is left. */
	_Atomic uint64_t patience_ns;
	struct log_chunk *left;		/* the log thread's, written to after LOG_LEFT; or NULL */
	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;
	struct log_chunk_list chunks;	/* under the lock; epochs rise */
	_Atomic uint64_t outstanding;	/* bytes of chunks that are not free again */
};

/*
 * A block of memory in huge pages, cut into chunks: a worker passes through it without missing the
 * TLB for each page, and the disk gets it in few pieces.
 */
#define LOG_ARENA_CHUNKS	((uint32_t)(OLTP_MEM_BLOCK_BYTES / LOG_CHUNK_BYTES))

struct log_arena {
	struct log_arena *next;
	uint8_t *data;
	struct log_chunk *free;		/* the one that was used last comes first */
	uint32_t n_free;
	struct log_chunk chunks[LOG_ARENA_CHUNKS];
};

/* One group in the making. */
struct log_group {
	uint8_t *gather;	/* header, and entries of chunks that hold little */
	uint32_t gathered;
	struct log_chunk_list in_place;	/* written from where they are, after it */
	struct log_chunk_list copied;
	uint64_t bytes;
	uint64_t csn_first, csn_last;
	uint32_t n_entries;
};

struct log_segment {
	uint64_t number;
	uint64_t first_group;	/* UINT64_MAX: it has none, and never will */
	bool is_standard;	/* as long as most, so worth keeping */
};

struct log_segments {
	uint64_t standard_bytes;
	/* The log thread's. */
	int fd, next_fd;	/* -1: none */
	uint64_t number, next_number;
	uint64_t bytes, next_bytes;	/* of the files */
	uint64_t offset;	/* of the next group; 0: not even the header is there */
	uint64_t reach, next_reach;	/* as they are on disk (F6) */
	uint64_t group_bytes;	/* of the last one that room was made for */
	void *block;		/* to be written: a header, or a reach */
	pthread_mutex_t lock;	/* everything below */
	struct log_segment *list;	/* in use, by rising number; the last one is written to */
	uint32_t n, room;
	uint64_t *spares;
	uint32_t n_spares, spares_max, spares_room;
	uint64_t spare_number;	/* of the next one to be named so */
};

struct log {
	struct oltp_engine *engine;
	char *dir;
	int dir_fd;		/* holds the lock on the folder */
	uint8_t database[16];	/* its name, once it is RUNNING */
	struct io_files io;
	struct volume *checked;	/* oltp_config.volume_checks; NULL: what only read needs no check */
	_Atomic bool is_unchecked;	/* nor does it at the moment */
	bool has_direct;
	bool is_commit;
	bool is_reader;		/* it will be READ_ONLY */
	bool has_thread;
	uint64_t interval_ns;
	pthread_t thread;
	struct log_group group;	/* the log thread's */
	struct log_segments segments;
	struct hist writes;

	/* Written by the log thread, now and then; read for each transaction. */
	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t epoch;
	_Atomic uint32_t state;		/* enum log_state */
	_Atomic bool is_idle;		/* the log thread waits to be called */
	_Atomic uint64_t durable;
	_Atomic int error;		/* of FAILED; -errno */
	_Atomic uint64_t n_group;	/* the number of the next one */
	_Atomic uint64_t durable_group;	/* of the last one on disk; set before durable */
	_Atomic uint64_t n_groups, n_bytes, n_entries;
	_Atomic uint64_t write_start_ns, write_ns, usual_ns;	/* as in struct log_load */
	_Atomic uint64_t n_waits;
	_Atomic uint64_t cpu_ns;	/* of the log thread */

	_Alignas(CACHE_PAD_BYTES) _Atomic uint64_t csn;	/* the next one */

	_Alignas(CACHE_PAD_BYTES) pthread_mutex_t lock;	/* everything below */
	pthread_cond_t called;	/* for the log thread */
	pthread_cond_t written;	/* from it; CLOCK_MONOTONIC, both */
	bool is_called, is_stopping;
	uint32_t n_waiters;
	struct oltp_durable_watch *watches;
	struct log_buffer *buffers;
	struct log_catalog catalog;	/* as it is on disk */
	pthread_mutex_t chunks_lock;	/* everything below; taken last */
	struct log_arena *arenas;
	uint32_t n_free_chunks;	/* in all of them */
};

static inline void log_chunks_init(struct log_chunk_list *list)
{
	list->head = NULL;
	list->tail = &list->head;
}

static inline void log_chunks_push(struct log_chunk_list *list, struct log_chunk *chunk)
{
	chunk->next = NULL;
	*list->tail = chunk;
	list->tail = &chunk->next;
}

static inline bool log_is_running(const struct log *log)
{
	return likely(atomic_load_explicit(&log->state, memory_order_acquire) == LOG_RUNNING);
}

/* log_buffer.c */

/* A chunk of the epoch with so much room becomes the buffer's newest. Errors: -ENOMEM. */
int log_chunk_open(struct log_buffer *buffer, uint64_t epoch, uint32_t bytes);

/*
 * Chunks up to the epoch, which is closed, go to the end of the list; empty ones become free. An
 * append to one of them that has not ended is left. False: there is no memory for that; nothing was
 * done.
 */
bool log_buffer_take(struct log_buffer *buffer, uint64_t epoch, struct log_chunk_list *list);

/* Frees chunks whose entries are written, or given up. */
void log_chunks_release(struct log *log, struct log_chunk_list *list);

/* No chunk of the buffer is in use; under log.lock. */
bool log_buffer_is_empty(const struct log_buffer *buffer);
void log_buffer_free(struct log_buffer *buffer);

/* All chunks were dropped. */
void log_chunks_finish(struct log *log);

/* log_thread.c */

/* The log is RUNNING from here on. Errors: -EAGAIN, -ENOMEM. */
int log_thread_start(struct log *log);

/* Everything is written, or the log has failed. */
void log_thread_stop(struct log *log);

/* log_watch.c */

/* Tells those whose epoch is durable, or all if the log has failed; under log.lock. */
void log_watches_tell(struct log *log);

/* log_buffer.c */

/* Errors: -ENOMEM. */
int log_group_init(struct log_group *group);
void log_group_finish(struct log_group *group);

void log_group_begin(struct log_group *group);
void log_group_add(struct log_group *group, struct log_chunk *chunk);

/* Pads, and fills the header in from this one, which lacks what the group itself knows. */
void log_group_seal(struct log_group *group, const struct log_group_header *header);

/* log_files.c */

int log_segments_init(struct log_segments *segments, uint64_t standard_bytes);
void log_segments_finish(struct log *log);

/* The segments of before, and the number of the first new one. Errors: -ENOMEM, those of files. */
int log_segments_begin(struct log *log, uint64_t number, const uint64_t *numbers,
		       const uint64_t *first_groups, uint32_t n);

/* Room for the group, in a new segment if there is none left. Errors: those of files. */
int log_segment_reserve(struct log *log, uint64_t group, uint64_t bytes);

/* Writes the sealed group; it is on disk then. Errors: those of files; -EIO: no way to go on. */
int log_segment_write(struct log *log, const struct log_group *group, uint64_t number);

/*
 * Makes the next segment, and moves the reach of the present one on, if that will be needed soon.
 * Errors: those of files.
 */
int log_segment_prepare(struct log *log);

/* Opens and locks the folder, and reads the catalogue: 1, or 0 if there is none, or -errno. */
int log_dir_open(struct log *log);
void log_dir_close(struct log *log);

/* Writes the catalogue, and so makes the folder a database's. */
int log_catalog_write(struct log *log, const struct log_catalog *catalog);

#endif
