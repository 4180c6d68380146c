/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The description of an emulated host, "emulated:SxCxT@share[/Pms]": S sockets (each one NUMA node)
 * of C cores of T hardware threads; every core does as much as `share` of a real CPU, in each
 * period of P milliseconds.  No I/O.
 */
#ifndef EBB_IO_EMUSPEC_H
#define EBB_IO_EMUSPEC_H

#include <stdint.h>
#include "util/err.h"

#define EBB_EMUSPEC_MAX_SOCKETS	16
#define EBB_EMUSPEC_MAX_CORES	256	/* of a socket */
#define EBB_EMUSPEC_MAX_THREADS	8	/* of a core */
#define EBB_EMUSPEC_MAX_PERIOD_MS	1000	/* more is refused by Linux */
/* Short, so that a worker on a small share does not stand still for long. */
#define EBB_EMUSPEC_DEFAULT_PERIOD_MS	10

struct ebb_emuspec {
	uint32_t sockets, cores, threads;
	uint32_t share_permille;	/* 10 to 1000 */
	uint32_t period_ms;		/* 1 to 1000; made longer where Linux refuses the quota */
};

/* Bandwidth of one group, as the cgroup files want it. */
struct ebb_emuspec_quota {
	uint32_t quota_usec;
	uint32_t period_usec;
};

/* -EINVAL with the text and what it should look like. */
int ebb_emuspec_parse(const char *text, struct ebb_emuspec *ret, struct ebb_err *err);

/* The quota of a thread that runs alone on its core: the share. */
struct ebb_emuspec_quota ebb_emuspec_thread_quota(const struct ebb_emuspec *spec);

/*
 * What all threads of a core may use together: 1.3 shares for two, 0.3 more for each further one.
 */
struct ebb_emuspec_quota ebb_emuspec_core_quota(const struct ebb_emuspec *spec);

/*
 * What all cores may use together on a machine of num_cpus CPUs; a quota of 0 is none.  Cores go
 * before all other programs, so cores that could use more than 90% of the machine together get no
 * more than that, or than one of them needs: otherwise the programs that serve their VMs, libvirt
 * above all, would not run beside them.
 */
struct ebb_emuspec_quota ebb_emuspec_host_quota(const struct ebb_emuspec *spec, uint32_t num_cpus);

#endif
