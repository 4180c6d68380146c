/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the cgroup hierarchy of the cpu controller is, in both versions, and who is where. */
#ifndef EBB_IO_CGROUP_H
#define EBB_IO_CGROUP_H

#include <limits.h>
#include <sys/types.h>
#include "util/err.h"

struct ebb_cgroup {
	int version;			/* 1 or 2 */
	char mount[PATH_MAX];		/* where the hierarchy is mounted */
	char root[PATH_MAX];		/* the group that the mount shows; "/": all of it */
};

/*
 * Find the hierarchy in mountinfo, the text of /proc/self/mountinfo.  A version 1 mount with the
 * cpu controller is preferred (then version 2 does not have it).  -ENOENT when there is none.
 */
int ebb_cgroup_find(const char *mountinfo, struct ebb_cgroup *ret, struct ebb_err *err);

/*
 * The folder of the group that text, a /proc/<tid>/cgroup, names for controller ("cpu"; with
 * version 2 it is ignored).  -ENOENT when the line is missing or the group is outside the mount.
 */
int ebb_cgroup_folder(const struct ebb_cgroup *cg, const char *text, const char *controller,
		      char *ret_path, size_t size);

/* The same for a living thread.  -ESRCH when it is gone. */
int ebb_cgroup_of_thread(const struct ebb_cgroup *cg, pid_t tid, const char *controller,
			 char *ret_path, size_t size);

#endif
