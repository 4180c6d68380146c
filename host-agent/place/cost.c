// SPDX-License-Identifier: GPL-2.0-or-later
/* The cost of a move of a VM (section 6, "Assigning Weights to Tenants"), and its calibration. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "place/place.h"

#define N_FACTORS	3u
#define MOVES_LEAST	6u

static void factors(double disk, double memory, bool is_active, double ret[N_FACTORS])
{
	ret[0] = log2(disk > 1 ? disk : 1);
	ret[1] = log2(memory > 1 ? memory : 1);
	ret[2] = is_active ? 1 : 0;
}

double place_move_cost(const struct place_move_cost *cost, double disk, double memory,
		       bool is_active)
{
	double f[N_FACTORS];

	factors(disk, memory, is_active, f);
	return cost->a * f[0] + cost->b * f[1] + cost->c * f[2];
}

enum place_cost place_cost_bucket(const struct place_move_cost *cost, double value)
{
	enum place_cost bucket = PLACE_COST_LOW;

	while (bucket < PLACE_COST_HIGH && value >= cost->limit[bucket])
		bucket++;
	return bucket;
}

/*
 * Solves the normal equations for the factors in `mask`, the others being 0, by Gauss-Jordan with
 * pivots.  False: they do not determine it.
 */
static bool solve(double matrix[N_FACTORS][N_FACTORS], const double right[N_FACTORS],
		  uint32_t mask, double ret[N_FACTORS])
{
	double m[N_FACTORS][N_FACTORS + 1] = { 0 };

	for (uint32_t i = 0; i < N_FACTORS; i++) {
		bool is_in = mask & (1u << i);

		for (uint32_t j = 0; j < N_FACTORS; j++)
			m[i][j] = is_in && mask & (1u << j) ? matrix[i][j] : i == j;
		m[i][N_FACTORS] = is_in ? right[i] : 0;
	}
	for (uint32_t i = 0; i < N_FACTORS; i++) {
		uint32_t best = i;

		for (uint32_t j = i + 1; j < N_FACTORS; j++)
			if (fabs(m[j][i]) > fabs(m[best][i]))
				best = j;
		/* All factors are 0 to 40: what is left of a column is noise below this. */
		if (fabs(m[best][i]) < 1e-6)
			return false;
		for (uint32_t k = 0; k <= N_FACTORS; k++) {
			double kept = m[i][k];

			m[i][k] = m[best][k];
			m[best][k] = kept;
		}
		for (uint32_t j = 0; j < N_FACTORS; j++) {
			double by = m[j][i] / m[i][i];

			for (uint32_t k = 0; j != i && k <= N_FACTORS; k++)
				m[j][k] -= by * m[i][k];
		}
	}
	for (uint32_t i = 0; i < N_FACTORS; i++)
		ret[i] = m[i][N_FACTORS] / m[i][i];
	return true;
}

/*
 * Costs are spread over orders of magnitude, from 0 for an idle VM to hours for a large one, and
 * what counts is which of two VMs is the cheaper.  So their logarithms are fitted: else a few large
 * VMs alone would say what the constants are, and being active could come out as worth nothing.
 */
static double fitted_cost(double cost)
{
	return log2(1 + cost);
}

static double squared_error(const struct place_disruption *moves, uint32_t n, const double *x)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++) {
		double f[N_FACTORS], error = -fitted_cost(moves[i].cost);

		factors(moves[i].disk, moves[i].memory, moves[i].is_active, f);
		for (uint32_t j = 0; j < N_FACTORS; j++)
			error += x[j] * f[j];
		sum += error * error;
	}
	return sum;
}

struct pair {
	double fitted, measured;
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return (x->fitted > y->fitted) - (x->fitted < y->fitted);
}

static double mean_measured(const struct pair *pairs, uint32_t from, uint32_t to)
{
	double sum = 0;

	for (uint32_t i = from; i < to; i++)
		sum += pairs[i].measured;
	return sum / (to - from);
}

/* Thirds of the moves by cost; a dearer third never weighs less. */
static int set_buckets(const struct place_disruption *moves, uint32_t n,
		       struct place_move_cost *cost)
{
	struct pair *pairs = calloc(n, sizeof(*pairs));
	double lowest;

	if (!pairs)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		pairs[i].fitted = place_move_cost(cost, moves[i].disk, moves[i].memory,
						  moves[i].is_active);
		pairs[i].measured = moves[i].cost;
	}
	qsort(pairs, n, sizeof(*pairs), compare_pairs);
	lowest = mean_measured(pairs, 0, n / 3);
	cost->weight[PLACE_COST_LOW] = 1;
	for (uint32_t b = PLACE_COST_MEDIUM; b <= PLACE_COST_HIGH; b++) {
		uint32_t from = (uint32_t)((uint64_t)n * b / PLACE_N_COSTS);
		uint32_t to = (uint32_t)((uint64_t)n * (b + 1) / PLACE_N_COSTS);
		double mean = mean_measured(pairs, from, to);

		cost->limit[b - 1] = pairs[from].fitted;
		/* Moves that cost nothing at all: the ratio has no bound, so it gets one. */
		cost->weight[b] = mean < lowest * 1000 ? mean / lowest : lowest > 0 || mean > 0 ?
				  1000 : 1;
		cost->weight[b] = fmax(cost->weight[b], cost->weight[b - 1]);
	}
	free(pairs);
	return 0;
}

int place_calibrate(const struct place_disruption *moves, uint32_t n, struct place_move_cost *ret,
		    double *ret_rms_error)
{
	double matrix[N_FACTORS][N_FACTORS] = { 0 }, right[N_FACTORS] = { 0 };
	double best[N_FACTORS] = { 0 }, all[N_FACTORS], least = INFINITY;
	struct place_move_cost cost;
	int rc;

	for (uint32_t i = 0; i < n; i++) {
		double f[N_FACTORS];

		/* Written so that what is not a number is refused, too. */
		if (!(moves[i].disk >= 0 && moves[i].disk <= PLACE_AMOUNT_MAX &&
		      moves[i].memory >= 0 && moves[i].memory <= PLACE_AMOUNT_MAX &&
		      moves[i].cost >= 0 && moves[i].cost <= PLACE_AMOUNT_MAX))
			return -EINVAL;
		factors(moves[i].disk, moves[i].memory, moves[i].is_active, f);
		for (uint32_t j = 0; j < N_FACTORS; j++) {
			for (uint32_t k = 0; k < N_FACTORS; k++)
				matrix[j][k] += f[j] * f[k];
			right[j] += f[j] * fitted_cost(moves[i].cost);
		}
	}
	if (n < MOVES_LEAST || !solve(matrix, right, (1u << N_FACTORS) - 1, all))
		return -ENODATA;
	/*
	 * Which of the three are 0 in the best fit without negative ones?  There are only eight
	 * answers, so all are tried.
	 */
	for (uint32_t mask = 0; mask < 1u << N_FACTORS; mask++) {
		double x[N_FACTORS], error;
		bool is_good = solve(matrix, right, mask, x);

		for (uint32_t j = 0; j < N_FACTORS; j++)
			is_good = is_good && x[j] >= 0;
		if (!is_good)
			continue;
		error = squared_error(moves, n, x);
		if (error < least) {
			least = error;
			for (uint32_t j = 0; j < N_FACTORS; j++)
				best[j] = x[j];
		}
	}
	cost = (struct place_move_cost){ .a = best[0], .b = best[1], .c = best[2] };
	rc = set_buckets(moves, n, &cost);
	if (rc)
		return rc;
	*ret = cost;
	*ret_rms_error = sqrt(least / n);
	return 0;
}
