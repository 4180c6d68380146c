/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Carries out what isolate.h decides: looks at all threads of the guest, and at
 * the lists of CPUs for the kernel's unbound work and for interrupts.
 *
 * A thread inherits the affinity of its creator, so one sweep would do if nothing else changed
 * affinities. The kernel changes them when CPUs come or go and cgroups have CPUs of their own, so
 * the sweep is repeated every EBB_SWEEP_EVERY_MS. Lending a CPU and taking it back needs no sweep.
 *
 * No state is kept in files: a monitor that is killed leaves all affinities as they are, and the
 * next monitor goes on from them.
 */
#ifndef EBB_SWEEP_H
#define EBB_SWEEP_H

#include "guest-monitor/libebb/dev.h"
#include "isolate.h"

#define EBB_SWEEP_EVERY_MS	30000

struct ebb_sweep {
	const char *root;		/* normally ""; in front of /proc and /sys */
	const char *device;		/* who has this open is an engine */
	uint64_t next_ns;
	bool has_begun;			/* it was done once */
	bool has_complained;
	struct ebb_isolate_set startup;	/* as the driver said last */
};

/*
 * Narrows, when it is time.  Logs what it begins with, and the first failure.
 * dev may be NULL, if there is none now: then nothing is done.
 */
void ebb_sweep_tick(struct ebb_sweep *sweep, const struct ebb_dev_ops *ops, void *dev,
		    uint64_t now_ns);

/* Lets go of what ebb_sweep_tick() has narrowed, in this process or an earlier one. */
void ebb_sweep_end(struct ebb_sweep *sweep);

#endif /* EBB_SWEEP_H */
