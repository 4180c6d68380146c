/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Draws the next request: its kind by the weights of the mix, its rows by the rules of the CRUD
 * workload ("Downtime-Free Live Migration", 4.2), its record as YCSB does. Pure.
 */
#ifndef LOAD_MIX_H
#define LOAD_MIX_H

#include "oltp-engine/bench/ycsb/zipf.h"
#include "oltp-engine/src/base/random.h"
#include "request.h"

/* Of YCSB's records: the constant of its zipfian distribution. */
#define LOAD_YCSB_THETA	0.99

struct load_mix {
	uint32_t weights[LOAD_MIX_KINDS];	/* not all 0 */
	uint64_t rows;		/* and records: LOAD_CRUD_ROWS to 2^31; IDs from 0 */
	uint32_t counters;	/* at least 1 */
};

struct load_draw {
	const struct load_mix *mix;
	struct random64 random;
	struct zipf records;	/* how popular they are */
	uint64_t next_insert;	/* IDs: rows were inserted up to the one */
	uint64_t next_delete;	/* and deleted up to the other */
};

/* Of a mix: "select" and so on. */
const char *load_kind_name(enum load_kind kind);

/*
 * "select=80,update=20" into ret_weights; kinds that are not named get 0. "80/20/0/0" are those of
 * select, update, insert and delete, as the paper writes its mixes. Returns 0 or -EINVAL (syntax,
 * unknown kind, a kind twice, a weight beyond 1000, all weights 0).
 */
int load_mix_parse(const char *text, uint32_t ret_weights[LOAD_MIX_KINDS]);

/* mix must live as long as draw. */
void load_draw_init(struct load_draw *draw, const struct load_mix *mix, uint64_t seed);

/*
 * Select and update begin at a row drawn uniformly, so that all their rows exist. Insert and
 * delete work beyond the last row of the loading phase, at an index that each advances. A delete
 * that has caught up with the inserts is sent, finds nothing, and does not advance.
 */
void load_draw_next(struct load_draw *draw, uint64_t arrived_ns, struct load_request *ret_request);

#endif
