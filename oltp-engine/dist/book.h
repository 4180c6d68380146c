/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The distributed transactions that a node knows: transactions that it coordinates, from before the
 * first PREPARE until no participant can ask for the outcome any more, and transactions that it
 * takes part in, from before its vote until the end. A transaction in no book was aborted, or is
 * over.
 */
#ifndef DIST_BOOK_H
#define DIST_BOOK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "message.h"
#include "twophase.h"

struct oltp_worker;

#define DIST_BOOK_BUCKETS	256u

/* One that this node coordinates. */
struct dist_coord_entry {
	struct dist_coord_entry *next;	/* in its bucket, or among the free ones */
	struct dist_gtid gtid;
	struct dist_coord coord;
};

/* One that this node takes part in. */
struct dist_part_entry {
	struct dist_part_entry *next, *prev;
	struct dist_gtid gtid;
	struct dist_part part;
	struct oltp_worker *worker;	/* whose transaction it is */
	bool is_orphan;			/* it is the keeper's: its session has ended */
};

struct dist_book {
	pthread_mutex_t lock;		/* everything below, and what entries say */
	struct dist_coord_entry *buckets[DIST_BOOK_BUCKETS];
	struct dist_coord_entry *spare;
	uint64_t n_coords;
	struct dist_part_entry *parts;
};

void dist_book_init(struct dist_book *book);

/* Frees what is still in it; the workers are the caller's. */
void dist_book_finish(struct dist_book *book);

/* All below: the lock is held. */

/* NULL: no memory. */
struct dist_coord_entry *dist_book_coord_add(struct dist_book *book, const struct dist_gtid *gtid);
struct dist_coord_entry *dist_book_coord_find(struct dist_book *book,
					      const struct dist_gtid *gtid);
void dist_book_coord_remove(struct dist_book *book, struct dist_coord_entry *entry);

/* The entry is the caller's. */
void dist_book_part_add(struct dist_book *book, struct dist_part_entry *entry);
struct dist_part_entry *dist_book_part_find(struct dist_book *book, const struct dist_gtid *gtid);
void dist_book_part_remove(struct dist_book *book, struct dist_part_entry *entry);

#endif
