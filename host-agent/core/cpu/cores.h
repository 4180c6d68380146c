/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The owner of each hardware thread (invariant I2), and how many vCPUs are
 * known to run on it.  Owners are opaque here.
 */
#ifndef EBB_CORE_CORES_H
#define EBB_CORE_CORES_H

#include "model/types.h"

struct ebb_thread_owner {
	const void *vm;			/* NULL: free */
	uint16_t vcpu;
};

struct ebb_cores {
	const struct ebb_host *host;
	struct ebb_thread_owner owner[EBB_MAX_THREADS];
	uint16_t num_placed[EBB_MAX_THREADS]; /* vCPUs whose thread runs here, owner or not */
	uint16_t num_owned[EBB_MAX_THREADS];  /* by core: threads that have an owner */
};

/* -EBUSY: it has an owner; -EINVAL: no such thread. */
int ebb_cores_own(struct ebb_cores *c, uint16_t thread, const void *vm, uint16_t vcpu);
void ebb_cores_release(struct ebb_cores *c, uint16_t thread);

/*
 * A free thread of the node: of a core of which no thread is owned, or, with
 * allow_ht and if there is no such core, any.  EBB_THREAD_NONE: there is none.
 */
uint16_t ebb_cores_pick(const struct ebb_cores *c, uint16_t node, bool allow_ht);

/* Whether another thread of the same core has an owner. */
bool ebb_cores_is_ht(const struct ebb_cores *c, uint16_t thread);

#endif /* EBB_CORE_CORES_H */
