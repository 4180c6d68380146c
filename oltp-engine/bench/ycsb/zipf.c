// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Zipfian ranks by rejection-inversion: see zipf.h.
 *
 * With x = rank + 1, h(x) = x^-theta is a falling curve, H its integral. Draw u uniformly below the
 * curve between 1/2 (cut to the area that rank 1 is due) and n + 1/2, invert H, round x to the
 * nearest integer k. The area above [k - 1/2, k + 1/2] exceeds h(k) since h is convex, so a draw is
 * kept only if it lies in the part of size h(k): u >= H(k + 1/2) - h(k). For x close below k that
 * always holds (accept), which spares the second power in all but a few percent of draws.
 */
#include <errno.h>
#include <math.h>

#include "zipf.h"

#define N_MAX		(1ull << 31)
/* A prime above every n, so multiplying by it permutes the ranks; products fit in 63 bits. */
#define SCRAMBLE_PRIME	2654435761ull
/* Start of the permutation, so that rank 0 is not key 0. */
#define SCRAMBLE_SHIFT	1610612741ull

static double area(const struct zipf *zipf, double x)
{
	return pow(x, zipf->one_minus_theta) * zipf->inverse;
}

static double area_inverse(const struct zipf *zipf, double u)
{
	return pow(u * zipf->one_minus_theta, zipf->inverse);
}

static double height(const struct zipf *zipf, double x)
{
	return pow(x, -zipf->theta);
}

int zipf_init(struct zipf *zipf, uint64_t n, double theta, bool is_scrambled)
{
	if (n < 1 || n > N_MAX || !(theta >= 0 && theta < 1))
		return -EINVAL;
	*zipf = (struct zipf){ .n = n, .theta = theta, .is_scrambled = is_scrambled };
	zipf->one_minus_theta = 1 - theta;
	zipf->inverse = 1 / (1 - theta);
	zipf->area_low = area(zipf, 1.5) - 1;
	zipf->area_high = area(zipf, (double)n + 0.5);
	/* The bound is tightest at k = 2: closer to the curve's bend than any later rank. */
	zipf->accept = 2 - area_inverse(zipf, area(zipf, 2.5) - height(zipf, 2));
	return 0;
}

uint64_t zipf_scramble(const struct zipf *zipf, uint64_t rank)
{
	return (rank * SCRAMBLE_PRIME + SCRAMBLE_SHIFT) % zipf->n;
}

static uint64_t draw_rank(const struct zipf *zipf, struct random64 *random)
{
	double span = zipf->area_high - zipf->area_low;

	for (;;) {
		double u = zipf->area_low + random64_unit(random) * span;
		double x = area_inverse(zipf, u);
		double k = floor(x + 0.5);

		if (k < 1)
			k = 1;
		else if (k > (double)zipf->n)
			k = (double)zipf->n;
		if (k - x <= zipf->accept || u >= area(zipf, k + 0.5) - height(zipf, k))
			return (uint64_t)k - 1;
	}
}

uint64_t zipf_next(const struct zipf *zipf, struct random64 *random)
{
	uint64_t rank;

	if (zipf->theta == 0)
		return random64_below(random, zipf->n);
	rank = draw_rank(zipf, random);
	return zipf->is_scrambled ? zipf_scramble(zipf, rank) : rank;
}
