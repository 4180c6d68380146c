/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which records are the oldest: a sample of the lock words, in which the last users left their
 * stamps, tells the age that a certain share of all records exceeds. For the manager's thread.
 */
#ifndef OLTP_OLDEST_H
#define OLTP_OLDEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp-engine/src/base/random.h"
#include "oltp-engine/src/txn/engine.h"

#define OLDEST_ANY_AGE	UINT64_MAX
#define OLDEST_BLOCKS	128u		/* looks at blocks */
#define OLDEST_SLOTS	16u		/* at slots of each */

/* Each block counts alike, so this is a sample of bytes: shares are of bytes, too. */
struct oldest {
	uint64_t bytes_each;	/* that a record of the sample stands for */
	uint32_t n;
	struct oldest_record {
		uint64_t stamp;
		uint32_t table;
	} records[OLDEST_BLOCKS * OLDEST_SLOTS];	/* oldest first */
};

void oldest_look(struct oltp_engine *engine, struct random64 *random, struct block **blocks,
		 size_t n, struct oldest *ret_oldest);

/*
 * The stamp up to which the share (0 to 1) lies that was not used for longest: a record that was
 * last used then or before is old. OLDEST_ANY_AGE: all are, from 1 on or without records.
 */
uint64_t oldest_threshold(const struct oldest *oldest, double share);

/* Of a table: bytes that old records take, and their median stamp; the threshold with none. */
uint64_t oldest_of_table(const struct oldest *oldest, uint32_t table, uint64_t threshold,
			 uint64_t *ret_median);

/* Nobody holds the record, and it is old. */
bool oldest_is(const struct record *record, uint64_t threshold);

#endif
