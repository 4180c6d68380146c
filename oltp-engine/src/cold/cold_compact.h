/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compaction of the file that cold records are in. An extent gets free when its last record has
 * gone back to memory, and most cold records never do. So in time all extents would have few
 * records left. Compaction copies the records that are left in several extents into one.
 *
 * For the manager's thread, which alone writes extents and frees them: a record that it finds in
 * one stays there meanwhile, or goes back to memory. Compaction replaces a stub in the same way as
 * a thread that brings the record back (C3 in cold.h): one of the two succeeds. A buffered record
 * stays where it is and gets another place to go back to.
 */
#ifndef OLTP_COLD_COMPACT_H
#define OLTP_COLD_COMPACT_H

#include "cold.h"

struct compact_record {
	_Atomic uint64_t *slot;		/* of the index */
	uint64_t stub;			/* its place so far */
};

struct compact {
	struct cold *cold;
	struct io_queue *io;		/* nothing else is in flight during a turn */
	uint64_t next;			/* extent to go on with */
	uint8_t *in, *out;		/* of an extent each; in is the manager's */
	uint32_t n;			/* records in out */
	struct compact_record records[COLD_SLOTS_MAX];
};

/* in: as large as an extent. Errors: -ENOMEM. */
int compact_init(struct compact *compact, struct cold *cold, struct io_queue *io, uint8_t *in);
void compact_finish(struct compact *compact);

/*
 * Extents are worth emptying that have at most so many percent of the records that fit in one; 0:
 * none are. n_used: extents that are not free; n_left: those that still can be had.
 */
uint32_t compact_percent(uint64_t n_used, uint64_t n_left);

/*
 * Looks at some extents, and empties several of one table into one. False: nothing was gained.
 * Errors are counted in the figures of cold; *ret_failed: there was one of the disk.
 */
bool compact_turn(struct compact *compact, bool *ret_failed);

#endif
