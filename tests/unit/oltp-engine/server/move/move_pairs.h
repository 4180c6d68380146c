/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients of both nodes of a move_rig.h that raise pairs of keys in two units, always together,
 * while nodes die: what was acknowledged must be there, and once, and no transaction by half.
 */
#ifndef MOVE_PAIRS_H
#define MOVE_PAIRS_H

#include "move_rig.h"

#define PAIRS		24u
#define PAIRS_THREADS	4u

struct pairs_runner {
	pthread_t thread;
	struct pairs *pairs;
	struct move_client client;
	uint32_t seed;
	uint64_t added[PAIRS], doubtful[PAIRS];	/* over all rounds */
};

struct pairs {
	struct pairs_runner runners[PAIRS_THREADS];
	_Atomic bool is_over;
};

/* Those with odd numbers on node 1. */
void pairs_begin(struct pairs *pairs, struct move_rig *rig, uint32_t seed);
/* Who waits for a unit gives up; all are closed then. */
void pairs_end(struct pairs *pairs);
/* Some 8 MB of keys and fields in one unit that also has others. */
void large_fill(struct move_client *client);
void large_check(struct move_client *client);

/* All units are at that node. */
void pairs_check(const struct pairs *pairs, struct move_rig *rig, uint32_t node);
/* The source has given all: checks the target, also after both have lost power. Ends the rig. */
void pairs_check_at_target(const struct pairs *pairs, struct move_rig *rig);

#endif
