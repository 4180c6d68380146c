// SPDX-License-Identifier: GPL-2.0-or-later
/* See recover_plan.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "recover_plan.h"

static int by_segment(const void *a, const void *b)
{
	uint64_t x = ((const struct plan_segment *)a)->number;
	uint64_t y = ((const struct plan_segment *)b)->number;

	return (x > y) - (x < y);
}

/* The newest first. */
static int by_checkpoint(const void *a, const void *b)
{
	uint64_t x = ((const struct plan_checkpoint *)a)->number;
	uint64_t y = ((const struct plan_checkpoint *)b)->number;

	return (x < y) - (x > y);
}

size_t recover_good_segment(const struct plan_files *files, size_t i)
{
	while (i < files->n_segments && !files->segments[i].is_good)
		i++;
	return i;
}

uint64_t recover_segment_end(const struct plan_files *files, size_t i)
{
	size_t next = recover_good_segment(files, i + 1);

	return next < files->n_segments ? files->segments[next].first_group : UINT64_MAX;
}

/* The last good segment that may have the group; n_segments: none has. */
static size_t segment_of(const struct plan_files *files, uint64_t group)
{
	for (size_t i = files->n_segments; i--;) {
		if (files->segments[i].is_good && files->segments[i].first_group <= group)
			return i;
	}
	return files->n_segments;
}

/* With this checkpoint, or with none: does the log begin early enough? */
static bool try_from(const struct plan_files *files, const struct plan_checkpoint *checkpoint,
		     struct recover_plan *ret_plan)
{
	uint64_t group = checkpoint ? checkpoint->start_group : 1;
	size_t segment = segment_of(files, group);
	bool is_begun = recover_good_segment(files, 0) < files->n_segments;

	/* No group at all: right only if none was ever written. */
	if (segment == files->n_segments && (is_begun || (checkpoint && checkpoint->end_group)))
		return false;
	*ret_plan = (struct recover_plan){
		.has_checkpoint = checkpoint,
		.checkpoint = checkpoint ? (size_t)(checkpoint - files->checkpoints) : 0,
		.segment = segment,
		.first_group = group,
		.least_group = checkpoint ? checkpoint->end_group : 0,
	};
	return true;
}

static int nothing_fits(const struct plan_files *files, char *why)
{
	const struct plan_checkpoint *checkpoint = files->checkpoints;
	size_t first = recover_good_segment(files, 0);

	if (files->n_checkpoints && !checkpoint->is_good)
		snprintf(why, RECOVER_WHY_BYTES,
			 "checkpoint-%016" PRIx64 " is damaged, and the log does not reach back "
			 "to where it would do without", checkpoint->number);
	else if (files->n_checkpoints)
		snprintf(why, RECOVER_WHY_BYTES,
			 "checkpoint-%016" PRIx64 " needs the log from group %" PRIu64
			 " on, which is missing", checkpoint->number, checkpoint->start_group);
	else
		snprintf(why, RECOVER_WHY_BYTES,
			 "log-%016" PRIx64 " begins with group %" PRIu64
			 ", and neither an earlier segment nor a checkpoint is there",
			 files->segments[first].number, files->segments[first].first_group);
	return -EUCLEAN;
}

/* R1, as far as headers tell. */
static int check_order(const struct plan_files *files, size_t first, char *why)
{
	uint64_t group = 0;

	for (size_t i = first; i < files->n_segments; i = recover_good_segment(files, i + 1)) {
		const struct plan_segment *segment = &files->segments[i];

		if (segment->first_group < group) {
			snprintf(why, RECOVER_WHY_BYTES,
				 "log-%016" PRIx64 " begins with group %" PRIu64
				 ", the one before it with %" PRIu64,
				 segment->number, segment->first_group, group);
			return -EUCLEAN;
		}
		group = segment->first_group;
	}
	return 0;
}

int recover_plan(struct plan_files *files, struct recover_plan *ret_plan,
		 char why[RECOVER_WHY_BYTES])
{
	struct recover_plan plan;
	bool fits = false;
	int rc;

	if (files->n_segments)
		qsort(files->segments, files->n_segments, sizeof(*files->segments), by_segment);
	if (files->n_checkpoints)
		qsort(files->checkpoints, files->n_checkpoints, sizeof(*files->checkpoints),
		      by_checkpoint);
	for (size_t i = 0; !fits && i < files->n_checkpoints; i++) {
		if (files->checkpoints[i].is_good)
			fits = try_from(files, &files->checkpoints[i], &plan);
	}
	/* A log that was never cut short says everything by itself. */
	if (!fits && (!files->n_checkpoints ||
		      recover_good_segment(files, 0) < files->n_segments))
		fits = try_from(files, NULL, &plan);
	if (!fits)
		return nothing_fits(files, why);
	rc = check_order(files, plan.segment, why);
	if (!rc)
		*ret_plan = plan;
	return rc;
}
