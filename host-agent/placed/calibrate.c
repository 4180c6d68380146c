/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See calibrate.h. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "placed/calibrate.h"
#include "place/place.h"
#include "util/fs.h"

#define MAX_FILE	(16u << 20)

/* -1: no number, or a negative one. */
static double take(char **rest)
{
	char *field = strsep(rest, ","), *end;
	const double d = field ? strtod(field, &end) : -1;

	return !field || end == field || *end || !isfinite(d) || d < 0 ? -1 : d;
}

static int read_moves(const char *path, char *text, struct place_disruption **ret, uint32_t *ret_n,
		      struct ebb_err *err)
{
	struct place_disruption *all = NULL, *more;
	char *rest = text, *line;
	unsigned number = 0;
	uint32_t n = 0;

	while ((line = strsep(&rest, "\n"))) {
		double disk, memory, active, cost;

		number++;
		if (number == 1 && strcmp(line, PLACED_MOVES_HEADER) != 0) {
			free(all);
			return ebb_err_set(err, -EINVAL, "%s:1: must be " PLACED_MOVES_HEADER,
					   path);
		}
		if (number == 1 || !*line)
			continue;
		disk = take(&line);
		memory = take(&line);
		active = take(&line);
		cost = take(&line);
		more = reallocarray(all, n + 1, sizeof(*more));
		if (!more || line || disk < 0 || memory < 0 || (active != 0 && active != 1) ||
		    cost < 0) {
			free(more ? more : all);
			return ebb_err_set(err, -EINVAL, "%s:%u: four numbers are needed, none "
					   "negative, the third 0 or 1", path, number);
		}
		all = more;
		all[n++] = (struct place_disruption){ .disk = disk, .memory = memory,
						      .is_active = active == 1, .cost = cost };
	}
	*ret = all;
	*ret_n = n;
	return 0;
}

static void print(const struct place_move_cost *cost, double rms, uint32_t n, FILE *out)
{
	fprintf(out, "# from %u moves; root mean square error: a factor of %.3g; a move of a "
		"medium VM\n# counts %.2f, of a high one %.2f\n", n, exp2(rms),
		cost->weight[PLACE_COST_MEDIUM], cost->weight[PLACE_COST_HIGH]);
	fprintf(out, "move_cost_disk = %.6g\nmove_cost_memory = %.6g\nmove_cost_active = %.6g\n",
		cost->a, cost->b, cost->c);
	fprintf(out, "move_cost_medium = %.6g\nmove_cost_high = %.6g\n", cost->limit[0],
		cost->limit[1]);
}

int placed_calibrate(const char *path, FILE *out, struct ebb_err *err)
{
	struct place_disruption *moves = NULL;
	struct place_move_cost cost;
	double rms;
	uint32_t n = 0;
	char *text;
	int rc = ebb_fs_read_all(path, MAX_FILE, &text);

	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	rc = read_moves(path, text, &moves, &n, err);
	free(text);
	if (rc < 0)
		return rc;
	rc = place_calibrate(moves, n, &cost, &rms);
	free(moves);
	if (rc == -ENODATA)
		return ebb_err_set(err, rc, "%s: %u moves do not determine three constants: at "
				   "least 6 are needed, of different disk, memory and activity",
				   path, n);
	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	print(&cost, rms, n, out);
	return 0;
}
