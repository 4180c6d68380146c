/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `ebbd --dry-run`: the fake backend with a handful of simulated VMs, in real time.  Everything but
 * libvirt, QEMU and cgroups is the real thing.
 */
#ifndef EBB_DAEMON_DRYRUN_H
#define EBB_DAEMON_DRYRUN_H

#include "daemon/agent.h"

#define EBB_DRYRUN_MAX_VMS	64

struct ebb_dryrun;

/* num_vms VMs that start one after the other.  The backend is part of it. */
int ebb_dryrun_create(struct ebb_agent *a, const struct ebb_host *host, uint32_t num_vms,
		      struct ebb_dryrun **ret);

/* Report what exists at the start; the agent's backend is set by now. */
int ebb_dryrun_begin(struct ebb_dryrun *d);

/* Also destroys the backend.  NULL is fine. */
void ebb_dryrun_destroy(struct ebb_dryrun *d);

struct ebb_backend ebb_dryrun_backend(struct ebb_dryrun *d);

#endif
