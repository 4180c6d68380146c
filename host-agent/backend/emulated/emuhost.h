/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An emulated host: a tree of CPU cgroups in which every core is a group with a bandwidth quota.
 *
 *     <cpu hierarchy>/GROUP/c0       core 0 (quota: see emuspec.h)
 *                          /c0/t0    its threads, when a core has more than one
 *                          /c0/t1
 *                          /c1 ...
 *
 * Threads of QEMU are moved into the group of the core that their vCPU was given, and back to where
 * they came from when the host is destroyed.  QEMU's other threads become members of GROUP itself,
 * without a quota, when the first of its vCPUs is placed. While they are in there all have short
 * slices (emuslice.h).
 *
 * All functions may be called from any thread; they write to cgroup files, which can take
 * milliseconds: not for the event loop.
 */
#ifndef EBB_IO_EMUHOST_H
#define EBB_IO_EMUHOST_H

#include <stdbool.h>
#include <sys/types.h>
#include "backend/emulated/emureserve.h"
#include "backend/emulated/emuspec.h"
#include "util/err.h"

struct ebb_emuhost;

/*
 * Create the groups.  If a dead instance left a group of this name its groups are adopted as they
 * are, with the threads in them, when they describe the same host, and replaced otherwise.  The
 * caller makes sure that no living instance uses the name.
 */
int ebb_emuhost_create(const struct ebb_emuspec *spec, const char *group, struct ebb_emuhost **ret,
		       struct ebb_err *err);

/* Send all threads back to where they came from, remove the groups, free.  NULL is fine. */
int ebb_emuhost_destroy(struct ebb_emuhost *h, struct ebb_err *err);

/* Free, but leave groups and threads as they are, for the next instance to adopt. */
void ebb_emuhost_abandon(struct ebb_emuhost *h);

/* Destroy what a dead instance left; 0 also when there is nothing. */
int ebb_emuhost_cleanup(const char *group, struct ebb_err *err);

/*
 * Let thread tid of process pid run on a hardware thread of a core.  -ESRCH when it is gone,
 * -EINVAL when there is no such core or rank.
 */
int ebb_emuhost_place(struct ebb_emuhost *h, pid_t pid, pid_t tid, uint32_t core, uint32_t rank);

/*
 * Promises a part of the core on which thread tid runs to the thread, or ends that; see
 * emureserve.h.  -ENOENT when it does not run there, -ESRCH when it is gone, -EINVAL when there is
 * no such core or rank.
 */
int ebb_emuhost_reserve(struct ebb_emuhost *h, pid_t tid, uint32_t core, uint32_t rank,
			const struct ebb_emureserve *reserve);

/* A VM has stopped: removes the groups of promises whose threads have ended. */
void ebb_emuhost_sweep(struct ebb_emuhost *h);

/* Where it runs.  -ENOENT when it is in none of the groups of cores, -ESRCH when it is gone. */
int ebb_emuhost_where(struct ebb_emuhost *h, pid_t tid, uint32_t *ret_core, uint32_t *ret_rank);

#endif
