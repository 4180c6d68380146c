/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients of both nodes of a move_rig.h that record transactions over keys of both, as
 * docs/history-format.md says: a history for each node, which the checker takes as one. Lists are
 * strings that grow (APPEND, GET), registers are set and read at once (SET ... GET, GET).
 */
#ifndef MOVE_HISTORY_H
#define MOVE_HISTORY_H

#include "move_rig.h"
#include "oltp-engine/check/check.h"

#define MOVE_HISTORY_CLIENTS	4u

struct move_history;

struct move_recorder {
	pthread_t thread;
	struct move_history *history;
	struct move_client client;
	uint32_t node, seed;
	uint64_t process;
};

typedef VEC(char) move_history_bytes;

struct move_history_text {
	pthread_mutex_t lock;
	move_history_bytes bytes;
};

struct move_history {
	struct move_recorder recorders[MOVE_HISTORY_CLIENTS];
	struct move_history_text texts[2];	/* by node */
	_Atomic uint64_t values;		/* that were written */
	_Atomic uint64_t processes;
	_Atomic bool is_over;
};

void move_history_init(struct move_history *history);
void move_history_finish(struct move_history *history);

/* Clients with odd numbers are on node 1. One whose transaction was not acknowledged has ended. */
void move_history_begin(struct move_history *history, struct move_rig *rig, uint32_t seed);
/* Who waits for a unit gives up; all are closed then. */
void move_history_end(struct move_history *history);

/*
 * Reads all keys at that node, which has all units, and checks the whole history: how many
 * anomalies it has, strictly serializable. must_be_clean: none, or the test fails.
 */
uint64_t move_history_check(struct move_history *history, struct move_rig *rig, uint32_t node,
			    bool must_be_clean);

#endif
