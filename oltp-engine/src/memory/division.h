/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How blocks are divided among tables. A block is of one table, so records of another one can take
 * the place of the oldest records only if a whole block changes hands. All tables together are to
 * be one cache that gives up the records not used for longest (global LRU), so blocks go from
 * tables that keep old records to those that have to give up younger ones. memcached moves pages
 * between slab classes by the same rule. Pure.
 */
#ifndef OLTP_DIVISION_H
#define OLTP_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

/* A block moves if the one table gives up records younger than this part of the other's age. */
#define DIVISION_AGE_RATIO	0.8

struct division_table {
	uint32_t n_blocks;
	/* Of its old records and of free slots beyond those that it keeps. */
	uint64_t spare_bytes;
	uint64_t age;		/* of its old records, in any unit */
};

#define DIVISION_NONE	UINT32_MAX

/*
 * Which table is to give the needy one a block: the one with the oldest records, of those that can
 * spare a block and keep another. has_none: the needy one has no old records, and takes the block
 * however the ages compare. DIVISION_NONE: no table.
 */
uint32_t division_giver(const struct division_table *tables, uint32_t n, uint32_t needy,
			bool has_none);

#endif
