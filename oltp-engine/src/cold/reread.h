/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The measured cost of reading a cold record again: the time that it takes its worker, which is the
 * CPU time of the read and the waiting for it while there is nothing else to do. Reads that arrive
 * together share it. (How long a read is on its way is no measure: other reads are in front of it,
 * and transactions run meanwhile.) Each table has a histogram; workers add to it, the manager makes
 * a moving mean of it: an exponentially weighted one, in which each read has the same weight.
 *
 * A few reads cost more each than many, which go to the disk together. If memory is taken from an
 * engine there will be many. Since reads count, and not time, these set the mean, and the few that
 * follow when the engine is warm again hardly change it.
 */
#ifndef OLTP_REREAD_H
#define OLTP_REREAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "oltp-engine/src/base/hist.h"

/*
 * The mean is of about this many of the last reads: a new read has 1 / REREAD_READS of the weight.
 */
#define REREAD_READS	4096u

struct reread {
	struct hist cost;		/* all since the engine was opened */
	struct hist_view counted;	/* those of which the mean was made last */
	double mean;			/* in ns */
	_Atomic uint64_t mean_ns;	/* the same for all threads; 0: not known */
};

/* n reads, of so many ns each. Any thread. */
void reread_note(struct reread *reread, uint64_t ns, uint32_t n);

/* One thread, now and then. */
void reread_turn(struct reread *reread);

struct cold;
struct oltp_table;

/*
 * The cost for the table; if it is not known, for another one, else of the disk; 0: not known. Any
 * thread.
 */
uint64_t reread_cost_ns(const struct cold *cold, uint32_t table);

/* The cost is asked for and not known: reread_probe is to measure the disk. Any thread. */
void reread_want(struct cold *cold);

/*
 * If reread_want was called: measures how long the disk takes to read a record of the table, with
 * an extent that is written for the purpose and given up. By the manager's thread, with none of its
 * writes on the way.
 */
void reread_probe(struct cold *cold, struct oltp_table *table, uint8_t *buffer);

/*
 * For a table of which no record was read yet: reads some that are on disk, if there are any, for
 * their time alone, into a buffer of COLD_EXTENT_BYTES. By the manager's thread, with none of its
 * writes on the way.
 */
void reread_calibrate(struct cold *cold, struct oltp_table *table, uint8_t *buffer);

#endif
