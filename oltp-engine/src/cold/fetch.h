/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reads of cold records that one worker makes for its suspended transactions. A worker gets a
 * fetcher when it first needs a cold record. Reads and bytes at once are bounded.
 *
 * A record that was read goes through admit.h. It comes into a block if there is plenty of room in
 * blocks, or if it is worth more than the records that went to disk last, since its last use was
 * later than theirs. Else it stays in its buffer, as a buffered record.
 *
 * A record that several transactions want is read once: their tickets wait for the same read. While
 * there is plenty of room, tickets that want another record in the same sectors wait for it, too.
 *
 * A read:
 *
 *	free	-> reading	read_start
 *	reading	-> free		in a block, failed, or not wanted any more
 *	reading	-> waiting	there is no room; later as from reading
 *	reading	-> buffered	read_admit
 *	buffered -> unlinked	buffered_release_some: nobody finds it any more
 *	unlinked -> free	buffered_reclaim, after an epoch
 *
 * Buffered records take at most a part of the reads and of the bytes, so that others can always be
 * read, even if no buffered record can be released because a transaction does not end.
 *
 * A transaction can only run once all of its records are there. So from its first fetch until it
 * has ended its ticket holds what was read for it, and other buffered records are released first; a
 * held one is released only if there are no others. So that the held records of one transaction
 * find room, none begins to read while others hold half of what buffered records may take.
 */
#ifndef OLTP_FETCH_H
#define OLTP_FETCH_H

#include "admit.h"
#include "oltp.h"

#define FETCH_READS_MAX		1024u
#define FETCH_BYTES_MAX		(8u << 20)
#define BUFFERED_MAX		768u
#define BUFFERED_BYTES_MAX		(4u << 20)
#define HELD_MAX		(BUFFERED_MAX / 2)
#define HELD_BYTES_MAX		(BUFFERED_BYTES_MAX / 2)
/* Buffers of workers that have gone, together: beyond that a new worker reads nothing. */
#define FETCH_LEFT_BYTES_MAX	(256u << 20)

struct fetch_read {
	struct io_request request;	/* first: found by its address */
	struct index_ref ref;		/* the stub; while it is buffered, the record */
	struct cold_block *block;	/* pinned while reading and waiting */
	uint32_t slot;
	uint32_t ticket;		/* that began it */
	uint32_t hold;			/* last_hold when the last ticket joined */
	uint64_t tickets;		/* a bit for each that waits for it */
	uint64_t wanted_by;		/* those among them that want this very record */
	uint32_t lead;			/* bytes in the buffer before the record's head */
	uint32_t room;			/* of the buffer */
	bool is_wanted;			/* in a block: it is used again and again */
	uint64_t flags;			/* LOCK_TAKEN, LOCK_COUNTED: it comes in with them */
	uint8_t *buffer;
	uint64_t epoch;			/* unlinked: free once it has passed */
	struct fetch_read *next;	/* in any of the lists */
	struct fetch_read *chain;	/* reading and waiting: of the same hash of the sector */
};

struct fetch_queue {
	struct fetch_read *first, *last;
	uint32_t n;
};

struct fetch_ticket {
	bool is_used;
	uint32_t pending;		/* reads in flight or waiting for room */
	enum oltp_rc rc;
	uint32_t hold;			/* number of the transaction; 0: none has fetched */
	uint32_t held;			/* reads it began that did not fail or go into a block */
	uint32_t held_bytes;		/* of their buffers */
	struct oltp_table *room_for;	/* an insert that found no room; NULL: none */
};

struct fetcher {
	struct oltp_worker *worker;	/* NULL once it has gone */
	struct cold *cold;
	struct io_queue io;
	struct fetch_read reads[FETCH_READS_MAX];
	struct fetch_read *by_sector[FETCH_READS_MAX];	/* reading and waiting, by hash */
	struct fetch_read *free;
	struct fetch_read *waiting;	/* read, and there is no room to put them */
	struct fetch_queue buffered;	/* oldest first */
	struct fetch_queue unlinked;	/* in the order of their epochs */
	uint32_t used_buffer_bytes;		/* of the buffers in both */
	uint32_t last_hold;
	uint32_t held, held_bytes;	/* of all tickets */
	uint32_t room_asked, room_there;	/* a bit per table: in this turn */
	uint32_t n_waiting;		/* reads, and tickets with room_for */
	uint64_t waiting_since_ns;	/* 0: nothing waits */
	uint64_t waiting_tries;		/* room->n_tries then */
	uint32_t buffer_bytes;
	uint64_t now_ns;		/* when the call at hand began */
	uint64_t left_ns;		/* nothing was begun since; 0: something was */
	uint64_t spent_ns;		/* by it on reads since the last ones arrived */
	uint32_t polls;			/* since the last submission */
	uint32_t began;			/* worker.began at the last poll */
	uint32_t n_done;
	uint32_t done[OLTP_TICKETS];	/* tickets that are through */
	struct fetch_ticket tickets[OLTP_TICKETS];
	struct fetcher *next;		/* of those whose worker has gone */
};

/* As oltp_cold_poll, but waits until then at most (CLOCK_MONOTONIC; 0: does not). */
int cold_poll_until(struct oltp_worker *worker, struct oltp_cold_done *ret_done, uint32_t max,
		    uint64_t until_ns);

/*
 * The worker leaves and does not wait for the disk: the manager ends its reads in flight, and
 * releases its buffered records as soon as nobody uses them. Accepts NULL.
 */
void fetcher_leave(struct fetcher *fetcher);

/*
 * Ends the reads and releases the buffered records of workers that have left, as far as that can be
 * done now. By the manager's thread.
 */
void fetchers_left_settle(struct cold *cold);

/* At the end of an engine: waits for reads in flight, since the disk writes to their buffers. */
void fetchers_left_free(struct cold *cold);

/* Is there room for one more buffered record, with a buffer of so many bytes? */
bool buffered_have_room(const struct fetcher *fetcher, uint32_t bytes);

/* The record that was read is a buffered record now. */
void buffered_add(struct fetcher *fetcher, struct fetch_read *read);

/* Releases the oldest while there are many, and takes back the buffers of those released. */
void buffered_keep_few(struct fetcher *fetcher);

/* Releases up to n records, oldest first: those not held, or any if there are no others. */
void buffered_release_some(struct fetcher *fetcher, uint32_t n, const struct admit_by *by);

/* Takes back the buffers of released records that nobody looks at any more. */
void buffered_reclaim(struct fetcher *fetcher);

#endif
