/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history of decisions in a file of its own for each test, with or without its thread. */
#ifndef TESTS_UNIT_HISTORY_RIG_H
#define TESTS_UNIT_HISTORY_RIG_H

#include <stdbool.h>
#include "daemon/history-db.h"
#include "daemon/history.h"

#define HISTORY_PATIENCE_USEC	60000000u	/* a hang, not slowness */

/* Of the file, which does not exist at the beginning of a test. */
extern char history_path[96];

/* For cmocka; they leave *state alone. Only the worst is logged meanwhile. */
int history_folder_make(void **state);
int history_folder_remove(void **state);

/* The file's; it must be sound. The caller closes it. */
struct ebb_history_db *history_open_db(void);

/*
 * Opens the history and returns the sum of one meter (key: "spot_core_s", ...) of a VM ("": of all
 * VMs), in microseconds.
 */
uint64_t history_charged(const char *vm, const char *key);

/* The history as the agent has it: asked and written by a worker. */
struct history_rig {
	sd_event *event;
	struct ebb_workers *workers;
	struct ebb_history *history;
	json_t *rows;			/* the last answer; NULL: an error */
	int err;
	bool is_answered;
};

void history_rig_open(struct history_rig *r);
/* All that was added is in the file then. Fine if it is not open. */
void history_rig_close(struct history_rig *r);
/* The answer comes when all that was added before was written, or could not be. */
void history_rig_ask(struct history_rig *r, enum ebb_history_what what);
/* Waits for the answer; a new reference. */
json_t *history_rig_wait(struct history_rig *r);

#endif
