/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lost updates: what the counters of the server must have grown by. An acknowledged increment must
 * be in its counter; one whose connection broke may be; none may be in it twice. Pure.
 */
#ifndef LOAD_COUNTS_H
#define LOAD_COUNTS_H

#include <stdint.h>

struct load_count {
	int64_t before;		/* value at the start */
	int64_t after;		/* value at the end */
	uint64_t acknowledged;
	uint64_t unknown;	/* sent, and neither acknowledged nor refused */
};

struct load_counts_verdict {
	uint64_t acknowledged;
	uint64_t unknown;
	uint64_t lost;		/* acknowledged, but not in the counter */
	uint64_t extra;		/* in the counter, but never asked for so often */
};

void load_counts_judge(const struct load_count *counts, uint32_t n,
		       struct load_counts_verdict *ret_verdict);

#endif
