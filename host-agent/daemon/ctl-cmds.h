/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out the requests of the control socket. */
#ifndef EBB_DAEMON_CTL_CMDS_H
#define EBB_DAEMON_CTL_CMDS_H

#include "daemon/agent.h"
#include "service/ctl.h"

/* The handler for ebb_ctl_config; ctx is the struct ebb_agent. */
void ebb_ctl_handle(void *ctx, struct ebb_ctl_request *request);

/* "set" has a file of its own. */
void ebb_ctl_set(struct ebb_agent *a, struct ebb_ctl_request *request, const struct ebb_vm *vm);

#endif
