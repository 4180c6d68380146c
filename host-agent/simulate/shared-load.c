/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of demands: read from a file, or made up. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulate/shared.h"

#define MAX_ROWS	100000u
#define MAX_COLUMNS	100000u

void sim_demand_finish(struct sim_demand *d)
{
	free(d->percent);
	*d = (struct sim_demand){ 0 };
}

/* -EINVAL: not numbers from 0 to 100 with commas between them. */
static int parse_row(char *line, uint8_t *ret, uint32_t max, uint32_t *ret_count)
{
	*ret_count = 0;
	for (char *p = line, *end; *p; p = end) {
		const long value = strtol(p, &end, 10);

		if (end == p || value < 0 || value > 100 || *ret_count == max)
			return -EINVAL;
		ret[(*ret_count)++] = (uint8_t)value;
		end += strspn(end, "\r\n");
		if (*end == ',')
			end++;
		else if (*end)
			return -EINVAL;
	}
	return 0;
}

static int add_row(struct sim_demand *d, const uint8_t *row, uint32_t count)
{
	uint8_t *grown;

	if (count == 0 || d->num_rows == MAX_ROWS || (d->num_rows && count != d->num_columns))
		return -EINVAL;
	grown = reallocarray(d->percent, d->num_rows + 1u, count);
	if (!grown)
		return -ENOMEM;
	d->percent = grown;
	d->num_columns = count;
	memcpy(d->percent + (size_t)d->num_rows++ * count, row, count);
	return 0;
}

int sim_demand_load(const char *path, struct sim_demand *ret, struct ebb_err *err)
{
	static uint8_t row[MAX_COLUMNS];
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	*ret = (struct sim_demand){ 0 };
	if (!f)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	while (r == 0 && getline(&line, &size, f) >= 0) {
		uint32_t count;

		r = parse_row(line, row, MAX_COLUMNS, &count);
		if (r == 0)
			r = add_row(ret, row, count);
		if (r < 0)
			ebb_err_set(err, r, "%s: line %u: %s", path, ret->num_rows + 1,
				    r == -ENOMEM ? "out of memory" :
						   "not as many numbers from 0 to 100, with "
						   "commas between them, as in the first line");
	}
	if (r == 0 && ret->num_rows == 0)
		r = ebb_err_set(err, -EINVAL, "%s: empty", path);
	free(line);
	fclose(f);
	if (r < 0)
		sim_demand_finish(ret);
	return r;
}

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return ((double)(*seed >> 33) + 0.5) / (double)(1ull << 31);
}

/* The sum of twelve is close enough to a normal distribution. */
static double normal(uint64_t *seed)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += uniform(seed);
	return sum;
}

/*
 * Log-normal between VMs, and in each again around that.  In the six days of PlanetLab's traces
 * that were looked at (7068 rows of 288 values): mean 11.1, deviation 15.5; a tenth, half, nine
 * tenths of the rows have means below 1.7, 6.5, 26.5; the median deviation within a row is 5.4, and
 * the correlation of a value with the one before 0.09 on average.
 */
int sim_demand_generate(uint64_t seed, uint32_t rows, uint32_t columns, struct sim_demand *ret)
{
	*ret = (struct sim_demand){ .num_rows = rows, .num_columns = columns };
	ret->percent = calloc(rows, columns);
	if (!ret->percent)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows; i++) {
		const double level = log(6.5) + 1.1 * normal(&seed);
		double series = normal(&seed);

		for (uint32_t k = 0; k < columns; k++) {
			const double value = exp(level + 0.65 * series - 0.65 * 0.65 / 2);

			series = 0.09 * series + sqrt(1 - 0.09 * 0.09) * normal(&seed);
			ret->percent[(size_t)i * columns + k] =
				(uint8_t)(value > 99 ? 99 : value);
		}
	}
	return 0;
}
