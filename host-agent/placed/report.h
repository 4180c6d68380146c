/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What ebbd answers, as the facts that this host tells the others (cluster.h). */
#ifndef EBB_PLACED_REPORT_H
#define EBB_PLACED_REPORT_H

#include <jansson.h>
#include "placed/cluster.h"
#include "placed/decide.h"

#define PLACED_DAY_SLOTS	24	/* the most that a VM used is kept by the hour */

/* What was seen of a VM of this host so far. */
struct placed_seen {
	char name[PLACED_NAME_SIZE];
	uint64_t since_s;		/* unix seconds: it was first seen, here or elsewhere */
	uint64_t hour;			/* of the newest slot */
	double peaks[PLACED_DAY_SLOTS][PLACE_N_RESOURCES];
	double most[PLACE_N_RESOURCES];	/* since then */
	uint64_t active_s;		/* when it last worked for clients */
};

struct placed_memory {
	struct placed_seen *seen;	/* from malloc() */
	size_t num;
	json_t *last;			/* facts when ebbd last answered; NULL: never */
};

void placed_memory_finish(struct placed_memory *m);

/*
 * Facts from ebbd's answers to "host" and "vms"; with NULL for either ebbd does not answer, and
 * what it said last is told as not ready.  before: the cluster as last seen, NULL at first; from it
 * come age and peaks of VMs that arrive.  idle_s: a VM that has done nothing for so long is not
 * active.  Names that Pacemaker can not have are
 * left out, with a complaint.  now_s: unix seconds.  A new reference; NULL when out of memory.
 */
json_t *placed_report(const json_t *host, const json_t *vms, const struct placed_cluster *before,
		      const struct placed_state *state, uint64_t now_s, uint64_t now_usec,
		      uint32_t idle_s, struct placed_memory *m, json_t *complaints);

#endif
