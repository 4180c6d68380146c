/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker's reads of cold records for its suspended transactions. Made when it first needs one; a
 * bounded number of reads and bytes at once.
 *
 * What was read stays in its buffer for a while, as a visitor (cold_visit.h), unless there is
 * plenty of room in the blocks or the record is worth it that others go: if it was used before, and
 * since those that went last were.
 *
 * A read:
 *
 *	free	-> reading	read_start
 *	reading	-> free		merged, failed, or not wanted any more
 *	reading	-> waiting	to be merged, and there is no room; -> free
 *	reading	-> visiting	read_visit
 *	visiting -> parted	visits_end: nobody finds it any more
 *	parted	-> free		visits_reclaim, after an epoch
 *
 * Visits take at most a part of the reads and of the bytes, so that others can always be read and
 * merged, even if no visit ends because a transaction does not.
 */
#ifndef OLTP_FETCH_H
#define OLTP_FETCH_H

#include "cold.h"
#include "oltp.h"

#define FETCH_READS_MAX		1024u
#define FETCH_BYTES_MAX		(8u << 20)
#define VISITS_MAX		768u
#define VISIT_BYTES_MAX		(4u << 20)

struct fetch_read {
	struct cold_request request;	/* first: found by its address */
	struct index_ref ref;		/* the stub; while it is visiting, the visitor */
	struct cold_block *block;	/* pinned while reading and waiting */
	uint32_t slot;
	uint32_t ticket;
	uint32_t lead;			/* bytes in the buffer before the record's head */
	uint32_t room;			/* of the buffer */
	bool is_wanted;			/* in a block: it is used again and again */
	uint8_t *buffer;
	uint64_t epoch;			/* parted: free once it has passed */
	struct fetch_read *next;	/* in any of the lists */
};

struct fetch_queue {
	struct fetch_read *first, *last;
	uint32_t n;
};

struct fetch_ticket {
	bool is_used;
	uint32_t pending;		/* reads in flight or waiting for room */
	enum oltp_rc rc;
	struct oltp_table *room_for;	/* an insert that found no room; NULL: none */
};

struct fetcher {
	struct oltp_worker *worker;	/* NULL once it has gone */
	struct cold *cold;
	struct cold_io io;
	struct fetch_read reads[FETCH_READS_MAX];
	struct fetch_read *free;
	struct fetch_read *waiting;	/* read, and there is no room to put them */
	struct fetch_queue visits;	/* oldest first */
	struct fetch_queue parted;	/* in the order of their epochs */
	uint32_t visit_bytes;		/* of the buffers in both */
	struct oltp_table *roomy_for;	/* whom has_room is about; NULL: not asked in this turn */
	bool has_room;
	uint32_t n_waiting;		/* reads, and tickets with room_for */
	uint64_t waiting_since_ns;	/* 0: nothing waits */
	uint32_t buffer_bytes;
	uint64_t now_ns;		/* when the call at hand began */
	uint64_t left_ns;		/* nothing was begun since; 0: something was */
	uint64_t spent_ns;		/* by it on reads since the last ones arrived */
	uint32_t polls;			/* since the last submission */
	uint32_t began;			/* worker.began at the last poll */
	uint32_t n_done;
	uint32_t done[OLTP_TICKETS];	/* tickets that are through */
	struct fetch_ticket tickets[OLTP_TICKETS];
	struct fetcher *next;		/* of those left */
};

/*
 * The worker goes. Waits for its reads; visitors that are in use stay until the manager can end
 * their visits. Accepts NULL.
 */
void fetcher_leave(struct fetcher *fetcher);

/* What workers that have gone left behind; for the manager's thread. */
void fetchers_left_settle(struct cold *cold);

/* At the end of an engine. */
void fetchers_left_free(struct cold *cold);

/* Room for one more, with a buffer of so many bytes? */
bool visits_have_room(const struct fetcher *fetcher, uint32_t bytes);

/* A read that has become a visitor. */
void visits_add(struct fetcher *fetcher, struct fetch_read *read);

/* Ends old visits while there are many, and takes back the buffers of those that ended. */
void visits_keep_few(struct fetcher *fetcher);

/* Ends up to n visits, oldest first, and reclaims. ts: see cold_visit_end. */
void visits_end(struct fetcher *fetcher, uint32_t n, uint32_t node, uint64_t ts);

/* Buffers of ended visits that nobody looks at any more. */
void visits_reclaim(struct fetcher *fetcher);

#endif
