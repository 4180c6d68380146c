// SPDX-License-Identifier: GPL-2.0-or-later
/* Slices of time: see elastic_series.h. */
#include "elastic_series.h"

/* Left out of a series at either end: one part in so many. */
#define TRIM		4u
/* Single transactions are too few to trim: slices with so many, on average, are not. */
#define COMMITS_ENOUGH	25u

/* How many slices are left out at either end. */
static uint32_t n_trimmed(const struct series *series)
{
	return series->committed < (uint64_t)COMMITS_ENOUGH * series->n ? 0 : series->n / TRIM;
}

double series_rate(const struct series *series)
{
	uint32_t cut = n_trimmed(series), n = series->n - 2 * cut;
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += series->rates[cut + i];
	return n ? sum / n : 0;
}

/* Variance of the mean of n values. */
static double variance_of_mean(uint32_t n, double sum, double squares)
{
	double variance;

	if (n < 2)
		return 0;
	variance = (squares - sum * sum / n) / (n - 1);
	return variance > 0 ? variance / n : 0;
}

/* Of the trimmed mean: what was cut off counts as the last value that was not (winsorized). */
double series_rate_variance(const struct series *series)
{
	uint32_t cut = n_trimmed(series), n = series->n;
	double sum = 0, squares = 0, kept;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i < cut ? cut : i >= n - cut ? n - cut - 1 : i;

		sum += series->rates[at];
		squares += series->rates[at] * series->rates[at];
	}
	kept = n ? (double)(n - 2 * cut) / n : 1;
	return variance_of_mean(n, sum, squares) / (kept * kept);
}

double series_waste(const struct series *series)
{
	return series->n ? series->waste / series->n : 0;
}

double series_waste_variance(const struct series *series)
{
	return variance_of_mean(series->n, series->waste, series->waste_squares);
}

static void insert(struct series *series, double rate)
{
	uint32_t at = series->n++;

	for (; at && series->rates[at - 1] > rate; at--)
		series->rates[at] = series->rates[at - 1];
	series->rates[at] = rate;
}

void series_add(struct series *series, double seconds, uint64_t committed, double waste)
{
	insert(series, (double)committed / seconds);
	series->committed += committed;
	series->waste += waste;
	series->waste_squares += waste * waste;
}

void series_merge(struct series *series, const struct series *more)
{
	for (uint32_t i = 0; i < more->n; i++)
		insert(series, more->rates[i]);
	series->committed += more->committed;
	series->waste += more->waste;
	series->waste_squares += more->waste_squares;
}
