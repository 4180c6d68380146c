/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A worker's reads of cold records for its suspended transactions. Made when it first needs one; a
 * bounded number of reads and bytes at once.
 */
#ifndef OLTP_FETCH_H
#define OLTP_FETCH_H

#include "cold.h"
#include "oltp.h"

#define FETCH_READS_MAX		256u
#define FETCH_BYTES_MAX		(8u << 20)

struct fetch_read {
	struct cold_request request;	/* first: found by its address */
	struct index_ref ref;
	struct cold_block *block;	/* pinned */
	uint32_t slot;
	uint32_t ticket;
	uint32_t lead;			/* bytes in the buffer before the record */
	uint32_t room;			/* of the buffer */
	uint8_t *buffer;
	struct fetch_read *next;	/* of the free, or the waiting */
};

struct fetch_ticket {
	bool is_used;
	bool is_done;
	uint32_t pending;		/* reads in flight or waiting for room */
	enum oltp_rc rc;
	struct oltp_table *room_for;	/* an insert that found no room; NULL: none */
};

struct fetcher {
	struct oltp_worker *worker;
	struct cold *cold;
	struct cold_io io;
	struct fetch_read reads[FETCH_READS_MAX];
	struct fetch_read *free;
	struct fetch_read *waiting;	/* read, and there is no room to put them */
	uint32_t n_waiting;		/* reads, and tickets with room_for */
	uint64_t waiting_since_ns;	/* 0: nothing waits */
	uint32_t buffer_bytes;
	uint32_t polls;			/* since the last submission */
	uint32_t n_done;
	struct fetch_ticket tickets[OLTP_TICKETS];
};

/* With all reads ended. Accepts NULL. */
void fetcher_destroy(struct fetcher *fetcher);

#endif
