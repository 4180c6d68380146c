/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Zipfian ranks: P(rank r of n) is proportional to 1 / (r + 1)^theta, theta in [0, 1); 0 is
 * uniform.
 *
 * The generator is exact for every rank. The one commonly used in YCSB (Gray et al., 1994) is exact
 * for the two hottest ranks only and needs the n-th harmonic number first; this one needs no set-up
 * pass over n.
 */
#ifndef BENCH_ZIPF_H
#define BENCH_ZIPF_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/random.h"

/* Cells to the power of two of x = rank + 1; below that number each x has one of its own. */
#define ZIPF_CELL_BITS	4u
#define ZIPF_X_BITS	32u
#define ZIPF_CELLS	((ZIPF_X_BITS - ZIPF_CELL_BITS + 1) << ZIPF_CELL_BITS)

/* Neighbouring ranks, first <= x < first + n, and how a draw goes on that meets this cell. */
struct zipf_cell {
	uint64_t own;		/* of 2^64 such draws, so many are for this cell */
	uint32_t other;		/* the rest are for this one */
	uint32_t first, n;
	uint32_t sure;		/* of 2^32 draws of any x in it, so many are kept at least */
};

/* Constants of one distribution; read-only after zipf_init, shared by all threads. */
struct zipf {
	uint64_t n;
	double theta;
	bool is_scrambled;
	uint32_t n_cells;	/* 0: uniform */
	struct zipf_cell cells[ZIPF_CELLS];
};

/*
 * n: 1 to 2^31. is_scrambled: ranks are spread over [0, n) by a fixed permutation, so that hot ones
 * are no neighbours; their probabilities do not change. Errors: -EINVAL.
 */
int zipf_init(struct zipf *zipf, uint64_t n, double theta, bool is_scrambled);

/* Where the permutation puts a rank. */
uint64_t zipf_scramble(const struct zipf *zipf, uint64_t rank);

/* zipf_next with theta above 0. */
uint64_t zipf_next_skewed(const struct zipf *zipf, struct random64 *random);

/* The next rank, in [0, n). */
static inline uint64_t zipf_next(const struct zipf *zipf, struct random64 *random)
{
	return zipf->n_cells ? zipf_next_skewed(zipf, random) : random64_below(random, zipf->n);
}

#endif
