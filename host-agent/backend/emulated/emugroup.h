/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One CPU cgroup with a bandwidth quota, the same for both cgroup versions: version 1 groups hold
 * threads anyhow, version 2 groups are threaded groups below a common domain (the emulated host),
 * of which a process must be a member before its threads can be spread.
 */
#ifndef EBB_IO_EMUGROUP_H
#define EBB_IO_EMUGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emuspec.h"

/*
 * Create the outermost group, which goes before all others; no quota if quota_usec is 0.  -EEXIST
 * when it is there.
 */
int ebb_emugroup_create_host(const struct ebb_cgroup *cg, const char *path,
			     struct ebb_emuspec_quota quota, struct ebb_err *err);

/*
 * Create a group below it; has_children: it will get groups itself; no quota if quota_usec is 0.
 * -EEXIST when it is there.
 */
int ebb_emugroup_create(const struct ebb_cgroup *cg, const char *path,
			struct ebb_emuspec_quota quota, bool has_children, struct ebb_err *err);

/* Version 2: groups below the path get weights and quotas. */
int ebb_emugroup_give_cpu(const char *path, struct ebb_err *err);

/*
 * Its weight among the groups beside it: 1 to 1000, or EBB_EMUGROUP_USUAL, that of one thread.
 * The two are not comparable.
 */
#define EBB_EMUGROUP_USUAL	0xffff
int ebb_emugroup_set_weight(const struct ebb_cgroup *cg, const char *path, uint16_t permille);

/* quota_usec 0: no quota. */
int ebb_emugroup_set_quota(const struct ebb_cgroup *cg, const char *path,
			   struct ebb_emuspec_quota quota);

/* Gives one group the quota of another, or none. */
int ebb_emugroup_copy_quota(const struct ebb_cgroup *cg, const char *from, const char *to);

/* Is the group there with exactly this quota? */
bool ebb_emugroup_matches(const struct ebb_cgroup *cg, const char *path,
			  struct ebb_emuspec_quota quota);

/* Move one thread into a group; -ESRCH when it is gone. */
int ebb_emugroup_move_thread(const struct ebb_cgroup *cg, const char *path, pid_t tid);

/* Move a process with all its threads into a group (version 2). */
int ebb_emugroup_move_process(const char *path, pid_t pid);

/* Threads in the group itself, not below it; the caller frees *ret_tids. */
int ebb_emugroup_threads(const struct ebb_cgroup *cg, const char *path, pid_t **ret_tids,
			 size_t *ret_num);

/* Remove an empty group.  Waits up to a second for threads that have just ended to leave it. */
int ebb_emugroup_remove(const char *path);

#endif
