/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keeps what VMs of this host use, as traces of their classes for those that come later. */
#ifndef EBB_PLACED_RECORD_H
#define EBB_PLACED_RECORD_H

#include <jansson.h>
#include <stdint.h>
#include "util/err.h"

#define PLACED_RECORD_STEP_S	600	/* between two rows */
#define PLACED_RECORD_MOST	(128l << 20)	/* bytes; then the file becomes CLASS.old */

struct placed_record {
	uint64_t step;			/* of the last rows: unix seconds / PLACED_RECORD_STEP_S */
	json_t *peaks;			/* by VM: what it used at most since then; NULL: nothing */
};

/*
 * Takes note of facts of this host (cluster.h), and appends a row for each VM to FOLDER/CLASS.csv
 * (traces.h) when a step is over.  A VM's rows go by its name on this host since it arrived.
 */
int placed_record(struct placed_record *r, const char *folder, const json_t *facts,
		  const char *host, uint64_t now_s, struct ebb_err *err);
void placed_record_finish(struct placed_record *r);

#endif
