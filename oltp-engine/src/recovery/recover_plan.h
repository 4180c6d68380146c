/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chooses the files from which a database is built again. Pure: the folder's listing and the files'
 * headers are given.
 *
 * What holds in a folder that only crashes have touched (see also F1 to F5 in log_format.h):
 *   R1  Groups are numbered without a gap over all segments, in the order of segments.
 *   R2  A segment's groups are those below the first group of the next segment with a good header,
 *       whatever lies behind them: a start after a crash goes on in a new segment with the first
 *       group that it did not find. A group that the disk writes only after that does not count.
 *   R3  A segment's header is written with its first group. So one with a bad header has no groups.
 *   R4  A checkpoint has its name only once all of it is on disk, and the log from its start_group
 *       on is there for as long as it is the newest. The log up to its end_group was on disk
 *       before: with less of it, the checkpoint has parts of transactions.
 */
#ifndef OLTP_RECOVER_PLAN_H
#define OLTP_RECOVER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan_segment {
	uint64_t number;
	bool is_good;		/* its header is; then: */
	uint64_t first_group;
};

struct plan_checkpoint {
	uint64_t number;
	bool is_good;		/* header and end are; then: */
	uint64_t start_group;	/* first one that it may lack something of */
	uint64_t end_group;	/* last one that it may have something of; 0: none */
};

struct plan_files {
	struct plan_segment *segments;		/* in any order; sorted by recover_plan */
	struct plan_checkpoint *checkpoints;	/* as above, the newest first */
	size_t n_segments, n_checkpoints;
};

struct recover_plan {
	bool has_checkpoint;
	size_t checkpoint;	/* in files.checkpoints */
	size_t segment;		/* in files.segments: read from there on; n_segments: none */
	uint64_t first_group;	/* to be redone */
	uint64_t least_group;	/* to be reached, or something is lost; 0: none */
};

#define RECOVER_WHY_BYTES	256u

/*
 * Errors: -EUCLEAN, why says what of which file is wrong or missing. Nothing there at all is a plan
 * too: no segments, first_group 1.
 */
int recover_plan(struct plan_files *files, struct recover_plan *ret_plan,
		 char why[RECOVER_WHY_BYTES]);

/* The first good segment from i on; n_segments: none. */
size_t recover_good_segment(const struct plan_files *files, size_t i);

/*
 * The end of segment i: its groups are below that. UINT64_MAX: no segment says so, the log ends in
 * this one (R2).
 */
uint64_t recover_segment_end(const struct plan_files *files, size_t i);

#endif
