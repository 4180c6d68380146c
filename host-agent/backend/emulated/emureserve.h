/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Groups below the group of a hardware thread ("core" here) of an emulated host, which keep
 * promises of CPU time:
 *
 *   c3/                 the core: its share of a real CPU, by a quota
 *   c3/r4711/           thread 4711 of QEMU, a vCPU that is promised a part of the core
 *   c3/rest/            all other vCPUs of the core together (or c3/rest2/)
 *   c3/rest/r4712/      one of these that has a maximum
 *
 * The weight of r4711 is its promise and the weight of rest is what is left, so that the number of
 * vCPUs in rest changes nothing for r4711.  The kernel divides by weights on each real CPU by
 * itself.  So all threads of such a core are restricted to one real CPU.  Without that, threads of
 * rest would use up the quota of the core on another CPU, where r4711 does not run.
 *
 * The quota of the core costs precision.  When it is used up, the kernel (6.18) takes the threads
 * of the core from their queues one by one, and puts them back group by group when the next period
 * begins.  What the scheduler owes to a group is lost by that, more so the newer the group is: of
 * two groups with the same weight and one busy thread each the older one got 59% and the newer one
 * 41% with a quota of 3 ms in 10, 51 and 49% with 12 ms in 40.  The number of threads has no part
 * in it.  So rest is always the newest group: it is made anew, as rest2 and then as rest again,
 * whenever one with a promise is made.  What is lost is then lost by vCPUs without a promise.
 * Among several groups with promises the newer ones gain less by that than the older ones.
 *
 * The caller sees to it that nothing else changes the groups of the host meanwhile.
 */
#ifndef EBB_IO_EMURESERVE_H
#define EBB_IO_EMURESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "backend/emulated/cgroup.h"
#include "backend/emulated/emuspec.h"

/* The part of its core that a vCPU gets, in thousandths of the core. */
struct ebb_emureserve {
	uint16_t keep;			/* promised to it, 0 to 999; 0: nothing */
	uint16_t rest;			/* for all vCPUs without a promise together, 1 to 1000 */
	uint16_t max;			/* the most that it gets, 1 to 1000; 0: no maximum */
};

/* The core: its group, its quota, and a number that chooses the real CPU. */
struct ebb_emureserve_core {
	const struct ebb_cgroup *cg;
	const char *path;
	struct ebb_emuspec_quota quota;
	uint32_t number;
};

/*
 * Puts r in force for thread tid, which is on the core, and moves it and the others there into
 * their groups.  -ESRCH: the thread is gone; else -errno of the group that could not be changed.
 */
int ebb_emureserve_set(const struct ebb_emureserve_core *core, pid_t tid,
		       const struct ebb_emureserve *r);

/*
 * Removes the groups of threads that have ended from the core.  Otherwise a new thread that gets
 * the number of one of them would have its promise.
 */
void ebb_emureserve_sweep(const char *core_path);

/* Moves a thread to the core: into its own group if it has one there, else among the rest. */
int ebb_emureserve_enter(const struct ebb_emureserve_core *core, pid_t tid);

/* The thread leaves such a core: it may run on all real CPUs again. */
void ebb_emureserve_leave(pid_t tid);

/* Whether a folder is the core's group or one of those above that are below it. */
bool ebb_emureserve_has(const char *core_path, const char *folder);

#endif
