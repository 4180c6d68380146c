/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slices of threads. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "backend/emulated/emuslice.h"

/*
 * sched_setattr(2): its first version. The kernel's header for it and <sched.h> can not be used
 * together with older C libraries, which have no functions for it either.
 */
struct attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_nsec;		/* of the ordinary class: the slice */
	uint64_t deadline_nsec;
	uint64_t period_nsec;
};

static int attr_get(pid_t tid, struct attr *ret)
{
	memset(ret, 0, sizeof(*ret));
	return syscall(SYS_sched_getattr, tid, ret, sizeof(*ret), 0) < 0 ? -errno : 0;
}

int ebb_emuslice_set(pid_t tid, unsigned int nsec)
{
	struct attr attr;
	int rc = attr_get(tid, &attr);

	if (rc < 0 || attr.policy != SCHED_OTHER)
		return rc;
	attr.size = sizeof(attr);
	attr.runtime_nsec = nsec;
	return syscall(SYS_sched_setattr, tid, &attr, 0) < 0 ? -errno : 0;
}

unsigned int ebb_emuslice_get(pid_t tid)
{
	struct attr attr;

	return attr_get(tid, &attr) < 0 || attr.policy != SCHED_OTHER ?
		       0 : (unsigned int)attr.runtime_nsec;
}
