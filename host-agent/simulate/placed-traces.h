/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU use of VMs over days and weeks, in steps of 10 minutes: read from files or made up.
 * Two kinds of files are known, each with a row for each VM and commas between the values, also
 * compressed (gzip):
 *
 *   day     288 values: a day at 5 minutes.  The traces of PlanetLab (CoMon project, published as
 *           planetlab-workload-traces).  Each file is a day, and no row of one day belongs to a
 *           row of another, so days are joined by rank: the VM that is the k-th busiest of one is
 *           taken for the k-th busiest of the next.
 *   month   4 values that are not used here (id, CPUs, MHz, MiB), then whole days at 10 minutes,
 *           7 at least; empty where the VM was not seen.  The traces of Bitbrains in this form.
 *
 * A row of a month that was not seen for up to an hour is filled with the value before.  If a row
 * has a longer hole, its longest part without one is kept if that is a week or more (whole days, so
 * that the time of day stays true); else the row is dropped. `filled` and `dropped` count such
 * rows.  All else is an error that names file and line: rows of another length (another interval),
 * values below 0 or above 100, and what is no number.
 */
#ifndef EBB_SIMULATE_PLACED_TRACES_H
#define EBB_SIMULATE_PLACED_TRACES_H

#include <stdint.h>

#include "util/err.h"

#define SIM_PLACE_STEP_S	600u
#define SIM_PLACE_DAY		144u		/* steps */
#define SIM_PLACE_WEEK		(7u * SIM_PLACE_DAY)

struct sim_place_row {
	uint32_t num_steps;		/* whole days, from midnight; then it begins again */
	float *percent;			/* of the VM's CPUs, 0 to 100 */
};

struct sim_place_traces {
	uint32_t num_rows;
	struct sim_place_row *rows;
	uint32_t filled;		/* values of short holes */
	uint32_t dropped;		/* rows whose holes leave less than a week */
};

/*
 * A file, or a folder with files of one kind.  At least 2 rows.  -errno with a text that names the
 * place; ret is empty then.
 */
int sim_place_traces_load(const char *path, struct sim_place_traces *ret, struct ebb_err *err);

/* Weeks with the statistics of PlanetLab's days (sim_demand_generate()).  -ENOMEM. */
int sim_place_traces_make(uint64_t seed, uint32_t rows, struct sim_place_traces *ret);

void sim_place_traces_finish(struct sim_place_traces *t);

#endif
