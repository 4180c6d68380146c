/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the requests on the control socket of ebb-volumed mean: docs/volume-protocol.md. */
#ifndef EBB_VOLUMED_VCTL_H
#define EBB_VOLUMED_VCTL_H

#include "daemon/ctl.h"

/* The handler for ebb_ctl_config; ctx is the struct ebb_server. */
void ebb_vctl_handle(void *ctx, struct ebb_ctl_request *request);

#endif
