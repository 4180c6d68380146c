/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See traces.h. */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "placed/traces.h"
#include "util/fs.h"
#include "util/text.h"

#define MAX_FILE	(256u << 20)
#define STEP_S		600		/* place_grid_default() */

struct row {
	char vm[PLACED_NAME_SIZE];
	float amounts[PLACE_N_RESOURCES];
};

/* One VM's rows while a file is read. */
struct part {
	struct row first;
	float *demand;
	uint32_t num, size;
	bool is_bad;
};

struct reading {
	struct placed_traces *t;
	uint32_t class;
	const char *name;		/* of the class */
	json_t *complaints;
	struct part *parts;
	uint32_t num, size;
	uint32_t last;			/* part of the row before */
};

static void complain(const struct reading *r, unsigned line, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "traces of class %s, line %u: %s: this VM is left out",
		 r->name, line, what);
	json_array_append_new(r->complaints, json_string(text));
}

/* NULL: good. */
static const char *read_row(const char *line, struct row *ret)
{
	const char *comma = strchr(line, ',');
	double amount;
	char *end;
	long step;

	if (!comma || comma == line || comma - line >= PLACED_NAME_SIZE)
		return "no name of a VM";
	memcpy(ret->vm, line, comma - line);
	ret->vm[comma - line] = '\0';
	step = strtol(comma + 1, &end, 10);
	/* The one interval that place takes: it refuses all traces for one with another. */
	if (step != STEP_S)
		return "step_s is not 600";
	for (int i = 0; i < PLACE_N_RESOURCES; i++) {
		if (*end != ',')
			return "a number is missing";
		comma = end + 1;
		amount = strtod(comma, &end);
		if (end == comma)
			return "a hole";
		if (!isfinite(amount) || amount < 0 || amount > PLACE_AMOUNT_MAX)
			return "an amount is negative or too big";
		ret->amounts[i] = (float)amount;
	}
	return *end ? "something behind the last number" : NULL;
}

static struct part *part_of(struct reading *r, const struct row *row)
{
	struct part *more;

	/* Mostly that of the row before, or as VMs are recorded, one after the other, the next. */
	for (uint32_t i = 0; i < r->num; i++) {
		const uint32_t at = (r->last + i) % r->num;

		if (strcmp(r->parts[at].first.vm, row->vm) == 0) {
			r->last = at;
			return &r->parts[at];
		}
	}
	if (r->num == r->size) {
		more = reallocarray(r->parts, r->size ? 2 * r->size : 64, sizeof(*more));
		if (!more)
			return NULL;
		r->parts = more;
		r->size = r->size ? 2 * r->size : 64;
	}
	r->last = r->num++;
	r->parts[r->last] = (struct part){ .first = *row };
	return &r->parts[r->last];
}

static int add_row(struct part *p, const struct row *row)
{
	float *more;

	if (p->num == p->size) {
		more = reallocarray(p->demand, p->size ? 2 * (size_t)p->size : 256,
				    sizeof(row->amounts));
		if (!more)
			return -ENOMEM;
		p->demand = more;
		p->size = p->size ? 2 * p->size : 256;
	}
	memcpy(&p->demand[(size_t)p->num++ * PLACE_N_RESOURCES], row->amounts,
	       sizeof(row->amounts));
	return 0;
}

static int read_lines(struct reading *r, char *text)
{
	unsigned number = 0;
	char *rest = text, *line;
	struct part *part;
	const char *wrong;
	struct row row;
	int rc = 0;

	while (rc == 0 && (line = strsep(&rest, "\n"))) {
		number++;
		if (number == 1 && strcmp(line, PLACED_TRACES_HEADER) != 0) {
			complain(r, 1, "the first line is not " PLACED_TRACES_HEADER);
			return 0;
		}
		if (number == 1 || !*line)
			continue;
		row = (struct row){ .vm = "" };
		wrong = read_row(line, &row);
		if (wrong && !row.vm[0]) {
			complain(r, number, wrong);
			continue;
		}
		part = part_of(r, &row);
		if (!part)
			return -ENOMEM;
		if (wrong && !part->is_bad)
			complain(r, number, wrong);
		part->is_bad = part->is_bad || wrong;
		if (!part->is_bad)
			rc = add_row(part, &row);
	}
	return rc;
}

static int take_parts(struct reading *r)
{
	struct placed_traces *t = r->t;
	struct place_trace *more;

	more = reallocarray(t->traces, t->num_traces + r->num + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->traces = more;
	for (uint32_t i = 0; i < r->num; i++) {
		struct part *p = &r->parts[i];

		if (p->is_bad || p->num == 0)
			continue;
		more[t->num_traces++] = (struct place_trace){
			.class = r->class, .role = PLACE_PRIMARY, .step_seconds = STEP_S,
			.steps = p->num, .demand = p->demand,
			/* One that is shorter than what is looked at has ended. */
			.was_deleted = (uint64_t)p->num * STEP_S < 2 * 86400,
		};
		p->demand = NULL;
	}
	return 0;
}

int placed_traces_add(struct placed_traces *t, const char *class, char *text, json_t *complaints)
{
	struct reading r = { .t = t, .class = t->num_classes, .name = class,
			     .complaints = complaints };
	const uint32_t before = t->num_traces;
	char (*more)[PLACED_NAME_SIZE] = reallocarray(t->classes, t->num_classes + 1,
						      sizeof(*more));
	int rc;

	if (!more)
		return -ENOMEM;
	t->classes = more;
	rc = read_lines(&r, text);
	if (rc == 0)
		rc = take_parts(&r);
	for (uint32_t i = 0; i < r.num; i++)
		free(r.parts[i].demand);
	free(r.parts);
	/* A class without a trace is none. */
	if (rc == 0 && t->num_traces > before)
		ebb_text_copy(t->classes[t->num_classes++], PLACED_NAME_SIZE, class);
	return rc;
}

static int read_file(struct placed_traces *t, const char *folder, const char *file,
		     json_t *complaints, struct ebb_err *err)
{
	char class[PLACED_NAME_SIZE], path[4096];
	const size_t len = strlen(file);
	char *text;
	int rc;

	if (len < 5 || strcmp(file + len - 4, ".csv") != 0 || len - 4 >= sizeof(class) ||
	    t->num_classes == PLACE_CLASSES_MAX)
		return 0;
	snprintf(class, sizeof(class), "%.*s", (int)(len - 4), file);
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	rc = ebb_fs_read_all(path, MAX_FILE, &text);
	if (rc < 0)
		return ebb_err_set(err, rc, "%s: %s", path, strerror(-rc));
	rc = placed_traces_add(t, class, text, complaints);
	free(text);
	return rc;
}

int placed_traces_read(const char *folder, struct placed_traces *ret, json_t *complaints,
		       struct ebb_err *err)
{
	struct placed_traces t = { 0 };
	struct dirent **files;
	int rc = 0, n = scandir(folder, &files, NULL, alphasort);

	if (n < 0 && errno != ENOENT)
		return ebb_err_set(err, -errno, "%s: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = read_file(&t, folder, files[i]->d_name, complaints, err);
		free(files[i]);
	}
	if (n >= 0)
		free(files);
	if (rc < 0) {
		placed_traces_finish(&t);
		return rc;
	}
	*ret = t;
	return 0;
}

void placed_traces_finish(struct placed_traces *t)
{
	for (uint32_t i = 0; i < t->num_traces; i++)
		free((void *)t->traces[i].demand);
	free(t->traces);
	free(t->classes);
	*t = (struct placed_traces){ 0 };
}
