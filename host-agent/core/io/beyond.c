// SPDX-License-Identifier: GPL-2.0-or-later
/* See beyond.h. */
#include "core/io/beyond.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void io_beyond_report(struct io_beyond *b, usec_t now, usec_t length, uint64_t reads)
{
	b->open += reads;
	b->last = reads;
	b->until = now + length;
}

uint64_t io_beyond_take(struct io_beyond *b, usec_t start, uint64_t got)
{
	const uint64_t reads = start < b->until ? smaller(b->open, got) : 0;

	/* For older reads than those of the last report this was the second interval. */
	b->open = start < b->until ? smaller(b->open - reads, b->last) : 0;
	return reads;
}

void io_beyond_charge(struct ebb_ledger *row, uint64_t reads)
{
	uint64_t uncovered;

	row->got -= reads;
	row->wanted -= reads;
	uncovered = row->promised > row->wanted ? row->promised - row->wanted : 0;
	/*
	 * The server reckons `violated` at the end of its own intervals and `promised` all the
	 * time, so some units may be uncovered without any such read.
	 */
	uncovered = smaller(uncovered, reads);
	row->promised -= uncovered;
	row->unclear += uncovered;
	row->num_unclear += uncovered > 0 ? row->num_intervals : 0;
}
