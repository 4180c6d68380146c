/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which cores of the host VMs share, by the configuration (shared_cores of ebbd.conf(5)). */
#ifndef EBB_IO_HOSTSHARE_H
#define EBB_IO_HOSTSHARE_H

#include "model/types.h"
#include "util/err.h"

/*
 * "": none; "4": the last four cores of each node; "cores 0-3,8": these, by index.  -EINVAL with a
 * text that says what is allowed.
 */
int ebb_hostshare_set(struct ebb_host *host, const char *text, struct ebb_err *err);

#endif
