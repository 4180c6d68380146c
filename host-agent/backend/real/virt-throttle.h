/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Throttles: vcpu_quota of libvirt, which holds each vCPU of a domain back by itself (the threads
 * of QEMU that are not vCPUs are not held back with them, as with global_quota they would be).
 *
 * No file records them.  A throttle of the agent has an unusual period that no operator would
 * choose.  By that the successor of an agent that was killed knows its throttles, and limits that
 * the operator has set stay.  All calls block: for worker threads only.
 */
#ifndef EBB_IO_VIRT_THROTTLE_H
#define EBB_IO_VIRT_THROTTLE_H

#include <libvirt/libvirt.h>
#include <stdint.h>
#include "util/err.h"

#define EBB_THROTTLE_PERIOD_USEC	100001

/*
 * The most that each vCPU of a running domain may use of a CPU, 1 to 1000 thousandths; less if the
 * definition of the domain says less.  -EOPNOTSUPP: libvirt manages no CPU cgroup for it, or holds
 * nothing back; -ESRCH: it does not run any more.
 */
int ebb_virt_domain_throttle(virConnectPtr conn, const uint8_t uuid[16], uint16_t permille,
			     struct ebb_err *err);

/*
 * Puts the limit of the definition in force again.  Nothing is changed, and 0 returned, if there is
 * no throttle of ours; 1 if there was.  Errors as above.
 */
int ebb_virt_domain_lift_throttle(virConnectPtr conn, const uint8_t uuid[16],
				  struct ebb_err *err);

/*
 * Lift the agent's throttles of all running domains, also those of earlier agents.  Returns how
 * many there were, or the first error after all have been tried.  Domains that can not have any are
 * no error.
 */
int ebb_virt_lift_throttles(virConnectPtr conn, struct ebb_err *err);

/* The same with a connection of its own. */
int ebb_virt_lift_throttles_at(const char *uri, struct ebb_err *err);

#endif
