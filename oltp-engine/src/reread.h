/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What it costs to read a cold record again, measured. Each table has a histogram of how long reads
 * took, from when a transaction asked until the record was in memory; of those that a worker had in
 * flight together each counts its part, or what a busy engine has on disk would seem the dearer the
 * longer it queues there. Workers add to it, the manager makes a moving median of it.
 */
#ifndef OLTP_REREAD_H
#define OLTP_REREAD_H

#include <stdatomic.h>
#include <stdint.h>

#include "hist.h"

/* The median is of the last reads that were at least so many, once there were. */
#define REREAD_ENOUGH	64u

struct reread {
	struct hist latency;		/* all since the engine was opened */
	struct hist_view counted;	/* of which the median was last made */
	_Atomic uint64_t median_ns;	/* 0: not known */
};

/* Any thread. */
void reread_note(struct reread *reread, uint64_t ns);

/* One thread, now and then. */
void reread_turn(struct reread *reread);

struct cold;
struct oltp_table;

/* What is known of the table, else of another, else of the disk; 0: nothing. Any thread. */
uint64_t reread_cost_ns(const struct cold *cold, uint32_t table);

/*
 * What the disk alone takes to give a record of the table back, found with an extent that is
 * written for the purpose and given up. By the manager's thread, with none of its writes on the
 * way.
 */
void reread_probe(struct cold *cold, struct oltp_table *table, uint8_t *buffer);

/*
 * For a table of which no record was read yet: reads some that are on disk, if there are any, for
 * their time alone, into a buffer of COLD_EXTENT_BYTES. By the manager's thread, with none of its
 * writes on the way.
 */
void reread_calibrate(struct cold *cold, struct oltp_table *table, uint8_t *buffer);

#endif
