/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a volume promises, as a model: random operations are done to both, and after a crash the
 * volume must be as the model says. Files are written in cells: the first block of each unit.
 *
 *   M1  Names and lengths are as after some operation, none of them before the last one that made
 *       them durable.
 *   M2  A file's sectors that were synced are as they were then, or as a later write left them.
 *   M3  An operation finds no space only if the files there are need all of it.
 */
#ifndef VOLUME_MODEL_H
#define VOLUME_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "oltp-engine/src/io/volume.h"

#define MODEL_NAMES	8u
#define MODEL_CELLS	7u
#define MODEL_INODES	512u
#define MODEL_STATES	256u
#define MODEL_STAMPS	32u
#define MODEL_HELD	2u

/* A cell's sectors may each be of any of these stamps; the last one is what is read now. */
struct model_cell {
	uint32_t n;
	uint32_t stamps[MODEL_STAMPS];
	bool is_any;		/* nothing was ever synced */
};

struct model_inode {
	uint64_t bytes;
	uint32_t units;
	bool is_open;		/* by a held descriptor */
	uint32_t grown;		/* the first of the states in which it is so long */
	struct model_cell cells[MODEL_CELLS];
};

/* The folder: an inode for each name, 0 for none, and its length. */
struct model_state {
	uint32_t inodes[MODEL_NAMES];
	uint64_t bytes[MODEL_NAMES];
};

struct model_held {
	int fd;			/* -1: none */
	uint32_t inode;
};

struct volume_model {
	uint64_t rng;
	uint32_t total_units;
	uint32_t n_inodes;	/* used ones are 1 to n_inodes */
	struct model_inode inodes[MODEL_INODES];
	/* Since the books were written for sure; the last one is how it is now. */
	struct model_state states[MODEL_STATES];
	uint32_t n_states;
	uint32_t stamp;
	uint32_t n_full;	/* operations that found no space */
	struct model_held held[MODEL_HELD];
};

/* Of an empty volume. */
void model_init(struct volume_model *model, struct volume *volume, uint64_t seed);

/* One operation. False: it failed otherwise than for a reason that the model knows. */
bool model_step(struct volume_model *model, struct volume *volume);

/*
 * Removes a file, if there is one, after an operation that failed: of that one it is not known
 * whether it happened.
 */
void model_remove(struct volume_model *model, struct volume *volume);

/* Closes what is held. */
void model_end(struct volume_model *model, struct volume *volume);

/* After a crash and opening again: M1 and M2. The model goes on from there. */
void model_adopt(struct volume_model *model, struct volume *volume);

uint64_t model_draw(struct volume_model *model, uint64_t below);

#endif
