/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The host that the agent gives to VMs: the hardware as hwloc sees it, or an emulated host. */
#ifndef EBB_IO_HOSTTOPO_H
#define EBB_IO_HOSTTOPO_H

#include "model/types.h"
#include "backend/emulated/emuspec.h"
#include "util/err.h"

/* Memory for pools of each node of an emulated host, unless configured. */
#define EBB_EMULATED_POOL_MIB	1024u

/*
 * The real host.  Nodes with CPUs are numbered from 0 in hwloc's order.  reserve: CPUs of the
 * kernel that are kept for the host ("0-1,8", NULL or "" for none); a core that loses a CPU is left
 * out as a whole, and a CPU that the host does not have is an error.  For pools a node has its
 * memory less a tenth, and less what VMs boot with.
 * synthetic: NULL, or a synthetic topology of hwloc instead of this machine
 * (tests).
 */
int ebb_hosttopo_real(const char *reserve, const char *synthetic, struct ebb_host *ret_host,
		      struct ebb_err *err);

int ebb_hosttopo_emulated(const struct ebb_emuspec *spec, struct ebb_host *ret_host,
			  struct ebb_err *err);

/*
 * Sets pool_mib MiB aside for pools on each node, whatever VMs boot with.  Errors: -EINVAL, a node
 * has less memory than that.
 */
int ebb_hosttopo_pools(struct ebb_host *host, uint32_t pool_mib, struct ebb_err *err);

#endif
