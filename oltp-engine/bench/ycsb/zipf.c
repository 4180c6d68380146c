// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Zipfian ranks by rejection from a staircase: see zipf.h.
 *
 * The steps are cells of neighbouring values x = rank + 1, sixteen to the power of two and of one
 * width within that. A cell is drawn by the area below its step, which is as high as h(x) =
 * x^-theta is at its first x (alias method: Walker, 1977, in the formulation of Vose, 1991); then x
 * from the cell, all alike, which is kept with probability h(x) / h(first). As h is nearly flat
 * within a cell, that is more than 15/16: a draw below the probability of the cell's last x is
 * kept without a look at x, which spares the power in all but a few percent of draws.
 */
#include <errno.h>
#include <math.h>

#include "zipf.h"

#define N_MAX		(1ull << 31)
/* A prime above every n, so multiplying by it permutes the ranks; products fit in 63 bits. */
#define SCRAMBLE_PRIME	2654435761ull
/* Start of the permutation, so that rank 0 is not key 0. */
#define SCRAMBLE_SHIFT	1610612741ull

/* Of numbers below 2^64, a part of them: all of it for 1. */
static uint64_t part_of_64(double part)
{
	return part < 1 ? (uint64_t)(part * 0x1p64) : UINT64_MAX;
}

/* h(x) / h(first) */
static double height(const struct zipf *zipf, uint32_t first, uint32_t x)
{
	return pow((double)first / x, zipf->theta);
}

static void cut_cells(struct zipf *zipf)
{
	uint64_t first = 1;

	while (first <= zipf->n) {
		uint32_t top = 63u - (uint32_t)__builtin_clzll(first);
		uint64_t n = top > ZIPF_CELL_BITS ? 1ull << (top - ZIPF_CELL_BITS) : 1;
		struct zipf_cell *cell = &zipf->cells[zipf->n_cells++];

		if (n > zipf->n + 1 - first)
			n = zipf->n + 1 - first;
		*cell = (struct zipf_cell){ .first = (uint32_t)first, .n = (uint32_t)n };
		cell->sure = n == 1 ? UINT32_MAX :
				      (uint32_t)(height(zipf, cell->first, cell->first +
							cell->n - 1) * 0x1p32);
		first += n;
	}
}

/* Cells with less than an equal part of the area get the rest of theirs from those with more. */
static void share_area(struct zipf *zipf)
{
	double parts[ZIPF_CELLS], sum = 0;
	uint32_t small[ZIPF_CELLS], large[ZIPF_CELLS], n_small = 0, n_large = 0;

	for (uint32_t i = 0; i < zipf->n_cells; i++) {
		parts[i] = zipf->cells[i].n * pow(zipf->cells[i].first, -zipf->theta);
		sum += parts[i];
	}
	for (uint32_t i = 0; i < zipf->n_cells; i++) {
		parts[i] *= zipf->n_cells / sum;
		if (parts[i] < 1)
			small[n_small++] = i;
		else
			large[n_large++] = i;
		/* Of those that are left over in the end: 1, but for rounding. */
		zipf->cells[i].own = UINT64_MAX;
		zipf->cells[i].other = i;
	}
	while (n_small && n_large) {
		uint32_t from = large[n_large - 1], to = small[--n_small];

		zipf->cells[to].own = part_of_64(parts[to]);
		zipf->cells[to].other = from;
		parts[from] -= 1 - parts[to];
		if (parts[from] < 1) {
			n_large--;
			small[n_small++] = from;
		}
	}
}

int zipf_init(struct zipf *zipf, uint64_t n, double theta, bool is_scrambled)
{
	if (n < 1 || n > N_MAX || !(theta >= 0 && theta < 1))
		return -EINVAL;
	zipf->n = n;
	zipf->theta = theta;
	zipf->is_scrambled = is_scrambled;
	zipf->n_cells = 0;
	if (theta > 0) {
		cut_cells(zipf);
		share_area(zipf);
	}
	return 0;
}

uint64_t zipf_scramble(const struct zipf *zipf, uint64_t rank)
{
	return (rank * SCRAMBLE_PRIME + SCRAMBLE_SHIFT) % zipf->n;
}

/* Uniform in [0, n); *ret_rest: and that one in [0, 2^64), whatever the first is. */
static uint64_t draw_two(struct random64 *random, uint32_t n, uint64_t *ret_rest)
{
	unsigned __int128 product = (unsigned __int128)random64_next(random) * n;

	*ret_rest = (uint64_t)product;
	return (uint64_t)(product >> 64);
}

static uint64_t draw_rank(const struct zipf *zipf, struct random64 *random)
{
	for (;;) {
		uint64_t coin;
		uint32_t i = (uint32_t)draw_two(random, zipf->n_cells, &coin), x;
		uint32_t other = zipf->cells[i].other;
		const struct zipf_cell *cell = &zipf->cells[coin < zipf->cells[i].own ? i : other];

		x = cell->first + (uint32_t)draw_two(random, cell->n, &coin);
		if (coin >> 32 < cell->sure ||
		    (double)coin < height(zipf, cell->first, x) * 0x1p64)
			return x - 1;
	}
}

uint64_t zipf_next_skewed(const struct zipf *zipf, struct random64 *random)
{
	uint64_t rank = draw_rank(zipf, random);

	return zipf->is_scrambled ? zipf_scramble(zipf, rank) : rank;
}
