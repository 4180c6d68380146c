/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables of demands: read from a file, or made up. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "simulate/shared.h"
#include "util/random.h"

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

/* One value per line: all of the file is one row. */
static int add_value(uint8_t *row, uint32_t *count, char *line)
{
	uint32_t one;
	const int r = parse_row(line, row + *count, *count < MAX_COLUMNS, &one);

	*count += one;
	return r == 0 && one != 1 ? -EINVAL : r;
}

/* gzgets() reads compressed files and plain ones. */
static int load_file(const char *path, struct sim_demand *d, struct ebb_err *err)
{
	static uint8_t row[MAX_COLUMNS];
	static char line[4 * MAX_COLUMNS];
	gzFile f = gzopen(path, "re");
	uint32_t values = 0, lines = 0;
	bool has_rows = false;
	int r = 0;

	if (!f)
		return ebb_err_set(err, errno ? -errno : -ENOMEM, "%s: %s", path,
				   strerror(errno ? errno : ENOMEM));
	while (r == 0 && gzgets(f, line, sizeof(line))) {
		uint32_t count;

		if (lines++ == 0)
			has_rows = strchr(line, ',');
		if (!has_rows) {
			r = add_value(row, &values, line);
			continue;
		}
		r = parse_row(line, row, MAX_COLUMNS, &count);
		if (r == 0)
			r = add_row(d, row, count);
	}
	if (r == 0 && lines == 0)
		r = gzeof(f) ? ebb_err_set(err, -EINVAL, "%s: empty", path) :
			       ebb_err_set(err, -EIO, "%s: can not be read", path);
	else if (r == 0 && !has_rows)
		r = add_row(d, row, values);
	if (r == -ENOMEM || (r == -EINVAL && lines))
		ebb_err_set(err, r, "%s: line %u: %s", path, lines,
			    r == -ENOMEM ? "out of memory" :
					   "not as many numbers from 0 to 100 as in the first row, "
					   "with commas between them or one per line");
	/* Cut short. */
	if (gzclose(f) != Z_OK && r == 0)
		r = ebb_err_set(err, -EIO, "%s: can not be read to its end", path);
	return r;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int load_folder(const char *path, struct sim_demand *d, struct ebb_err *err)
{
	struct dirent **names;
	const int count = scandir(path, &names, is_shown, alphasort);
	int r = count < 0 ? -errno : 0;

	if (count < 0)
		return ebb_err_set(err, r, "%s: %s", path, strerror(-r));
	for (int i = 0; i < count; i++) {
		char file[PATH_MAX];

		if (r == 0 && snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name) >=
				      (int)sizeof(file))
			r = ebb_err_set(err, -ENAMETOOLONG, "%s: too long a name", path);
		else if (r == 0)
			r = load_file(file, d, err);
		free(names[i]);
	}
	free(names);
	if (r == 0 && count == 0)
		r = ebb_err_set(err, -EINVAL, "%s: empty", path);
	return r;
}

int sim_demand_load(const char *path, struct sim_demand *ret, struct ebb_err *err)
{
	struct stat st;
	int r;

	*ret = (struct sim_demand){ 0 };
	if (stat(path, &st) < 0)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	r = S_ISDIR(st.st_mode) ? load_folder(path, ret, err) : load_file(path, ret, err);
	if (r < 0)
		sim_demand_finish(ret);
	return r;
}

/* The sum of twelve is close enough to a normal distribution. */
static double normal(uint64_t *seed)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += ebb_random_unit(seed);
	return sum;
}

/* Deviation of a VM's values by their mean, both as a part of it: busy VMs are steadier. */
static double spread(double mean)
{
	return mean < 5 ? 1.2 : 1.2 * pow(5 / mean, 0.6);
}

/*
 * Log-normal between VMs, and in each again around that.  In the six days of PlanetLab's traces
 * that were looked at (7068 rows of 288 values): mean 11.1, deviation 15.5, median 5, nineteen
 * twentieths below 43; a tenth, half, nine tenths of the rows have means below 1.7, 6.5, 26.5; the
 * median deviation within a row is 5.4, and the correlation of a value with the one before 0.09 on
 * average.
 */
int sim_demand_generate(uint64_t seed, uint32_t rows, uint32_t columns, struct sim_demand *ret)
{
	*ret = (struct sim_demand){ .num_rows = rows, .num_columns = columns };
	ret->percent = calloc(rows, columns);
	if (!ret->percent)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows; i++) {
		const double mean = exp(log(6.5) + 1.08 * normal(&seed));
		const double variance = log(1 + spread(mean) * spread(mean));
		double series = normal(&seed);

		for (uint32_t k = 0; k < columns; k++) {
			const double value = mean * exp(sqrt(variance) * series - variance / 2);

			series = 0.1 * series + sqrt(1 - 0.1 * 0.1) * normal(&seed);
			ret->percent[(size_t)i * columns + k] =
				(uint8_t)(value > 99 ? 99 : value + 0.5);
		}
	}
	return 0;
}
