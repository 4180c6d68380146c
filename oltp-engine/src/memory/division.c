// SPDX-License-Identifier: GPL-2.0-or-later
/* See division.h. */
#include "division.h"
#include "oltp.h"

uint32_t division_giver(const struct division_table *tables, uint32_t n, uint32_t needy,
			bool has_none)
{
	uint32_t giver = DIVISION_NONE;

	for (uint32_t i = 0; i < n; i++) {
		if (i == needy || tables[i].n_blocks < 2 ||
		    tables[i].spare_bytes < OLTP_MEM_BLOCK_BYTES)
			continue;
		if (giver == DIVISION_NONE || tables[i].age > tables[giver].age)
			giver = i;
	}
	if (giver != DIVISION_NONE && !has_none &&
	    (double)tables[needy].age >= DIVISION_AGE_RATIO * (double)tables[giver].age)
		giver = DIVISION_NONE;
	return giver;
}
