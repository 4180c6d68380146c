/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cluster as host-agent/place/ wants it: indexes instead of names, and a class with traces for
 * each VM.  A VM of a class of which there is no trace is expected to use what it used at most
 * within the last day (or its floor), all the time.
 */
#ifndef EBB_PLACED_MODEL_H
#define EBB_PLACED_MODEL_H

#include "placed/cluster.h"
#include "placed/traces.h"

#define PLACED_ALL_HOSTS	(-1)

struct placed_model {
	struct place_traces *traces;
	struct place *place;
	/* Indexes of hosts of the cluster by those of place, and the other way round; -1: none. */
	int hosts[PLACED_MAX_HOSTS];
	int index[PLACED_MAX_HOSTS];
};

/*
 * only: index of the one host that is looked at, or PLACED_ALL_HOSTS: all that are online.  lost: a
 * host that is left out, its VMs are on none; -1: none.  VMs have the same indexes as in the
 * cluster.  -errno, with a text.
 */
int placed_model_create(const struct placed_cluster *c, const struct placed_traces *traces,
			const struct place_config *config, int only, int lost,
			struct placed_model *ret, struct ebb_err *err);
void placed_model_finish(struct placed_model *m);	/* all zero is fine */

/*
 * Probability of a violation on the host with each of the cluster's VMs there besides those that it
 * has: c->num_vms numbers.  When a host dies all its VMs go elsewhere at once, and each by its own
 * scores.  So a VM is judged together with those of the same host with smaller names for which this
 * host is the next best one by the scores that stand; thereby the scores of the first VM are
 * settled first, then those of the second, and so on.  The same goes for VMs that run nowhere yet.
 * -errno with a text.
 */
int placed_model_risks(const struct placed_cluster *c, const struct placed_traces *traces,
		       const struct place_config *config, int host, double *ret,
		       struct ebb_err *err);

/* Index of a class of traces, -1: there is none. */
int placed_model_class(const struct placed_traces *traces, const char *name);

#endif
