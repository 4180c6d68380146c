/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "simulate/placed-traces.h"
#include "simulate/shared.h"

#define DAY_VALUES	288u		/* at 5 minutes */
#define HEAD_VALUES	4u		/* of a row of a month */
#define MAX_VALUES	(HEAD_VALUES + 366u * SIM_PLACE_DAY)
#define MAX_ROWS	100000u
#define MAX_HOLE	6u		/* steps that are filled */

enum kind { UNKNOWN, DAY, MONTH };

/* Rows of one file, still with holes (NAN). */
struct file {
	enum kind kind;
	uint32_t num_rows;
	struct sim_place_row *rows;
};

static void free_rows(struct sim_place_row *rows, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(rows[i].percent);
	free(rows);
}

void sim_place_traces_finish(struct sim_place_traces *t)
{
	free_rows(t->rows, t->num_rows);
	*t = (struct sim_place_traces){ 0 };
}

static float *copy(const float *values, uint32_t count)
{
	float *to = malloc(count * sizeof(*to));

	if (to)
		memcpy(to, values, count * sizeof(*to));
	return to;
}

/* Takes percent over, also when it fails. */
static int append(struct sim_place_row **rows, uint32_t *count, float *percent, uint32_t steps)
{
	struct sim_place_row *grown = NULL;

	if (percent && *count < MAX_ROWS)
		grown = reallocarray(*rows, *count + 1u, sizeof(*grown));
	if (!grown) {
		free(percent);
		return -ENOMEM;
	}
	*rows = grown;
	grown[(*count)++] = (struct sim_place_row){ steps, percent };
	return 0;
}

/* ---- one line ---- */

/* An empty field is NAN.  is_use: it is one of the values, and not of the head. */
static int parse_value(const char **p, bool is_use, float *ret, struct ebb_err *err)
{
	const char *begin = *p;
	char *end;
	double value;

	*ret = NAN;
	*p += strcspn(begin, ",\r\n");
	if (*p == begin)
		return 0;
	value = strtod(begin, &end);
	if (end != *p || !isfinite(value))
		return ebb_err_set(err, -EINVAL, "%.*s is no number", (int)(*p - begin), begin);
	if (is_use && (value < 0 || value > 100))
		return ebb_err_set(err, -EINVAL, "%.*s is not a percentage from 0 to 100",
				   (int)(*p - begin), begin);
	*ret = (float)value;
	return 0;
}

static uint32_t count_values(const char *line)
{
	uint32_t count = 1;

	for (; *line; line++)
		count += *line == ',';
	return count;
}

static enum kind kind_of(uint32_t values)
{
	if (values == DAY_VALUES)
		return DAY;
	if (values >= HEAD_VALUES + SIM_PLACE_WEEK && values <= MAX_VALUES &&
	    (values - HEAD_VALUES) % SIM_PLACE_DAY == 0)
		return MONTH;
	return UNKNOWN;
}

/* Values of 5 minutes become the means of pairs. */
static int add_day(struct file *f, const float *values)
{
	float means[SIM_PLACE_DAY];

	for (uint32_t i = 0; i < SIM_PLACE_DAY; i++)
		means[i] = (values[2 * i] + values[2 * i + 1]) / 2;
	return append(&f->rows, &f->num_rows, copy(means, SIM_PLACE_DAY), SIM_PLACE_DAY);
}

static int add_line(struct file *f, const char *line, struct ebb_err *err)
{
	static float values[MAX_VALUES];
	const uint32_t count = count_values(line);
	const enum kind kind = kind_of(count);
	const uint32_t head = kind == MONTH ? HEAD_VALUES : 0;
	int r = 0;

	if (kind == UNKNOWN)
		return ebb_err_set(err, -EINVAL, "%u values: a row has %u (a day at 5 minutes) or "
				   "%u and whole days at 10 minutes, 7 to 366", count, DAY_VALUES,
				   HEAD_VALUES);
	if (f->kind != UNKNOWN && kind != f->kind)
		return ebb_err_set(err, -EINVAL, "days and months in one file");
	f->kind = kind;
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = parse_value(&line, i >= head, &values[i], err);
		if (r == 0 && kind == DAY && isnan(values[i]))
			r = ebb_err_set(err, -EINVAL, "value %u is missing", i + 1);
		line += *line == ',';
	}
	if (r < 0)
		return r;
	r = kind == DAY ? add_day(f, values) :
			  append(&f->rows, &f->num_rows, copy(values + head, count - head),
				 count - head);
	return r < 0 ? ebb_err_set(err, r, "too many rows") : 0;
}

/* ---- files ---- */

/* gzgets() reads compressed files and plain ones. */
static int load_file(const char *path, struct file *ret, struct ebb_err *err)
{
	/* 16 characters a value; a longer line has other values than these files. */
	static char line[16 * MAX_VALUES];
	gzFile f = gzopen(path, "re");
	uint32_t lines = 0;
	int r = 0;

	*ret = (struct file){ 0 };
	if (!f)
		return ebb_err_set(err, errno ? -errno : -ENOMEM, "%s: %s", path,
				   strerror(errno ? errno : ENOMEM));
	while (r == 0 && gzgets(f, line, sizeof(line))) {
		struct ebb_err why = { "" };

		line[strcspn(line, "\r\n")] = '\0';
		lines++;
		r = add_line(ret, line, &why);
		if (r < 0)
			ebb_err_set(err, r, "%s: line %u: %s", path, lines, why.text);
	}
	if (r == 0 && !gzeof(f))
		r = ebb_err_set(err, -EIO, "%s: can not be read", path);
	if (gzclose(f) != Z_OK && r == 0)
		r = ebb_err_set(err, -EIO, "%s: can not be read to its end", path);
	if (r == 0 && lines == 0)
		r = ebb_err_set(err, -EINVAL, "%s: empty", path);
	if (r < 0)
		free_rows(ret->rows, ret->num_rows);
	return r;
}

/* ---- days to weeks ---- */

struct busy {
	double sum;
	uint32_t row;
};

static int compare_busy(const void *a, const void *b)
{
	const struct busy *x = a, *y = b;

	return x->sum != y->sum ? (x->sum > y->sum) - (x->sum < y->sum) :
				  (x->row > y->row) - (x->row < y->row);
}

/* The rows of a day, from the idlest to the busiest.  NULL: no memory. */
static struct busy *rank(const struct file *day)
{
	struct busy *order = calloc(day->num_rows, sizeof(*order));

	if (!order)
		return NULL;
	for (uint32_t i = 0; i < day->num_rows; i++) {
		order[i].row = i;
		for (uint32_t k = 0; k < SIM_PLACE_DAY; k++)
			order[i].sum += day->rows[i].percent[k];
	}
	qsort(order, day->num_rows, sizeof(*order), compare_busy);
	return order;
}

/* As many rows as the shortest day has; of a longer one, every row is used once at most. */
static int join_days(const struct file *days, uint32_t count, struct sim_place_traces *ret)
{
	uint32_t rows = days[0].num_rows;
	int r = 0;

	for (uint32_t d = 1; d < count; d++)
		rows = days[d].num_rows < rows ? days[d].num_rows : rows;
	for (uint32_t i = 0; r == 0 && i < rows; i++)
		r = append(&ret->rows, &ret->num_rows,
			   calloc((size_t)count * SIM_PLACE_DAY, sizeof(float)),
			   count * SIM_PLACE_DAY);
	for (uint32_t d = 0; r == 0 && d < count; d++) {
		struct busy *order = rank(&days[d]);

		if (!order)
			return -ENOMEM;
		for (uint32_t i = 0; i < rows; i++) {
			const uint64_t k = (2 * (uint64_t)i + 1) * days[d].num_rows / (2 * rows);

			memcpy(ret->rows[i].percent + (size_t)d * SIM_PLACE_DAY,
			       days[d].rows[order[k].row].percent,
			       SIM_PLACE_DAY * sizeof(float));
		}
		free(order);
	}
	return r;
}

/* ---- holes ---- */

static void find_part(const struct sim_place_row *row, uint32_t *ret_begin, uint32_t *ret_end)
{
	uint32_t begin = 0, hole = 0;

	*ret_begin = *ret_end = 0;
	for (uint32_t i = 0; i <= row->num_steps; i++) {
		const bool is_end = i == row->num_steps;

		if (!is_end && !isnan(row->percent[i])) {
			/* A hole at the very beginning has no value before it to be filled with. */
			if (hole > MAX_HOLE || (hole && hole == i - begin))
				begin = i;
			hole = 0;
			continue;
		}
		if (hole == 0 && i - begin > *ret_end - *ret_begin) {
			*ret_begin = begin;
			*ret_end = i;
		}
		hole++;
	}
}

/* Keeps the whole days, from midnight on, of the longest part without a long hole. */
static int add_month(const struct sim_place_row *row, struct sim_place_traces *ret)
{
	uint32_t begin, end, first;

	find_part(row, &begin, &end);
	first = (begin + SIM_PLACE_DAY - 1) / SIM_PLACE_DAY * SIM_PLACE_DAY;
	end = end / SIM_PLACE_DAY * SIM_PLACE_DAY;
	if (end < first + SIM_PLACE_WEEK) {
		ret->dropped++;
		return 0;
	}
	/* A part begins with a value, so there is always one before a hole in it. */
	for (uint32_t i = begin + 1; i < end; i++)
		if (isnan(row->percent[i])) {
			row->percent[i] = row->percent[i - 1];
			ret->filled++;
		}
	return append(&ret->rows, &ret->num_rows, copy(row->percent + first, end - first),
		      end - first);
}

/* ---- all of it ---- */

static int make_rows(const struct file *files, uint32_t count, const char *path,
		     struct sim_place_traces *ret, struct ebb_err *err)
{
	int r = 0;

	for (uint32_t i = 1; i < count; i++)
		if (files[i].kind != files[0].kind)
			return ebb_err_set(err, -EINVAL, "%s: files of days and of months", path);
	if (files[0].kind == DAY)
		r = join_days(files, count, ret);
	else
		for (uint32_t i = 0; r == 0 && i < count; i++)
			for (uint32_t k = 0; r == 0 && k < files[i].num_rows; k++)
				r = add_month(&files[i].rows[k], ret);
	if (r < 0)
		return ebb_err_set(err, r, "%s: out of memory", path);
	/* At least one row for the earlier VMs and one for those that are simulated. */
	if (ret->num_rows < 2)
		return ebb_err_set(err, -EINVAL, "%s: %u rows can be used (%u dropped for holes), "
				   "at least 2 are needed", path, ret->num_rows, ret->dropped);
	return 0;
}

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Files in the order of their names.  The caller frees what was loaded, also when it fails. */
static int load_folder(const char *path, struct file **ret, uint32_t *count, struct ebb_err *err)
{
	struct dirent **names;
	const int entries = scandir(path, &names, is_shown, alphasort);
	int r = 0;

	if (entries < 0)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	*ret = calloc((size_t)entries + 1, sizeof(**ret));
	if (!*ret)
		r = ebb_err_set(err, -ENOMEM, "%s: out of memory", path);
	for (int i = 0; i < entries; i++) {
		char file[PATH_MAX];

		if (r == 0 && snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name) >=
				      (int)sizeof(file))
			r = ebb_err_set(err, -ENAMETOOLONG, "%s: too long a name", path);
		else if (r == 0)
			r = load_file(file, &(*ret)[*count], err);
		*count += r == 0;
		free(names[i]);
	}
	free(names);
	if (r == 0 && *count == 0)
		r = ebb_err_set(err, -EINVAL, "%s: empty", path);
	return r;
}

int sim_place_traces_load(const char *path, struct sim_place_traces *ret, struct ebb_err *err)
{
	struct file one, *files = &one;
	uint32_t count = 0;
	struct stat st;
	int r;

	*ret = (struct sim_place_traces){ 0 };
	if (stat(path, &st) < 0)
		return ebb_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (S_ISDIR(st.st_mode)) {
		files = NULL;
		r = load_folder(path, &files, &count, err);
	} else {
		r = load_file(path, &one, err);
		count = r == 0;
	}
	if (r == 0)
		r = make_rows(files, count, path, ret, err);
	for (uint32_t i = 0; i < count; i++)
		free_rows(files[i].rows, files[i].num_rows);
	if (files != &one)
		free(files);
	if (r < 0)
		sim_place_traces_finish(ret);
	return r;
}

int sim_place_traces_make(uint64_t seed, uint32_t rows, struct sim_place_traces *ret)
{
	const uint32_t columns = 7 * DAY_VALUES;
	struct sim_demand demand;
	int r = sim_demand_generate(seed, rows, columns, &demand);

	*ret = (struct sim_place_traces){ 0 };
	for (uint32_t i = 0; r == 0 && i < rows; i++) {
		const uint8_t *from = demand.percent + (size_t)i * columns;
		float *means = calloc(SIM_PLACE_WEEK, sizeof(*means));

		for (uint32_t k = 0; means && k < SIM_PLACE_WEEK; k++)
			means[k] = (float)(from[2 * k] + from[2 * k + 1]) / 2;
		r = append(&ret->rows, &ret->num_rows, means, SIM_PLACE_WEEK);
	}
	sim_demand_finish(&demand);
	if (r < 0)
		sim_place_traces_finish(ret);
	return r;
}
