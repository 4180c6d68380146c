/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Zipfian ranks: P(rank r of n) is proportional to 1 / (r + 1)^theta, theta in [0, 1); 0 is
 * uniform.
 *
 * The generator is exact for every rank (rejection-inversion after Hoermann and Derflinger, 1996).
 * The one commonly used in YCSB (Gray et al., 1994) is exact for the two hottest ranks only and
 * needs the n-th harmonic number first; this one needs no set-up pass over n.
 */
#ifndef BENCH_ZIPF_H
#define BENCH_ZIPF_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/base/random.h"

/* Constants of one distribution; read-only after zipf_init, shared by all threads. */
struct zipf {
	uint64_t n;
	double theta;
	double one_minus_theta, inverse;	/* 1 - theta and its reciprocal */
	double area_low, area_high;	/* the hat's integral where ranks begin and end */
	double accept;		/* distance below a rank within which a draw is always taken */
	bool is_scrambled;
};

/*
 * n: 1 to 2^31. is_scrambled: ranks are spread over [0, n) by a fixed permutation, so that hot ones
 * are no neighbours; their probabilities do not change. Errors: -EINVAL.
 */
int zipf_init(struct zipf *zipf, uint64_t n, double theta, bool is_scrambled);

/* The next rank, in [0, n). */
uint64_t zipf_next(const struct zipf *zipf, struct random64 *random);

/* Where the permutation puts a rank. */
uint64_t zipf_scramble(const struct zipf *zipf, uint64_t rank);

#endif
