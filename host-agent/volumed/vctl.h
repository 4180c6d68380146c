/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on the control socket of ebb-volumed, as docs/volume-protocol.md has them. */
#ifndef EBB_VOLUMED_VCTL_H
#define EBB_VOLUMED_VCTL_H

#include "daemon/ctl.h"

/* The handler for ebb_ctl_config; ctx is the struct ebb_server. */
void ebb_vctl_handle(void *ctx, struct ebb_ctl_request *request);

#endif
