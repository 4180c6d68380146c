/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Demand of earlier VMs, from a folder with a file for each class: CLASS.csv.  Its first line is
 * "vm,step_s,cpu,memory,disk"; then a line for each step of each VM, in the order of time within a
 * VM: a name, 600 (seconds between two steps), and what it used: thousandths of a CPU, MiB, MiB.
 */
#ifndef EBB_PLACED_TRACES_H
#define EBB_PLACED_TRACES_H

#include <jansson.h>
#include "placed/cluster.h"

#define PLACED_TRACES_HEADER	"vm,step_s,cpu,memory,disk"

struct placed_traces {
	char (*classes)[PLACED_NAME_SIZE];
	uint32_t num_classes;
	struct place_trace *traces;	/* each with demand of its own, from malloc() */
	uint32_t num_traces;
};

/*
 * Reads the folder; one that is not there is an empty one.  Lines that make no sense are left out,
 * with their whole VM, and a line in complaints (an array of texts).  -errno: the folder can not be
 * read, or out of memory.
 */
int placed_traces_read(const char *folder, struct placed_traces *ret, json_t *complaints,
		       struct ebb_err *err);
void placed_traces_finish(struct placed_traces *t);	/* all zero is fine */

/* One CSV text of a class; what is wrong goes to complaints.  -ENOMEM. */
int placed_traces_add(struct placed_traces *t, const char *class, char *text, json_t *complaints);

#endif
