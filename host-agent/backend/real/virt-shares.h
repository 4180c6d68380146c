/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The weight of a domain among those that run on the same cores: cpu_shares of libvirt, of the
 * running domain only.  It blocks: for worker threads only.
 *
 * libvirt passes the number on to cpu.shares (cgroup version 1, 2 to 262144) or cpu.weight (version
 * 2, 1 to 10000), so 2 to 10000 will do for both.  What is set stays when the agent ends.
 */
#ifndef EBB_IO_VIRT_SHARES_H
#define EBB_IO_VIRT_SHARES_H

#include <libvirt/libvirt.h>
#include <stdint.h>
#include "util/err.h"

/*
 * shares: 2 to 10000; 0: what the domain's definition says, or the kernel's default.  -EOPNOTSUPP:
 * libvirt manages no CPU cgroup for it; -ESRCH: it does not run any more.
 */
int ebb_virt_domain_set_shares(virConnectPtr conn, const uint8_t uuid[16], uint32_t shares,
			       struct ebb_err *err);

#endif
