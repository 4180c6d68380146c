/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests on the control socket of ebb-volumed, as docs/volume-protocol.md has them. */
#ifndef EBB_VOLUMED_VCTL_H
#define EBB_VOLUMED_VCTL_H

#include "service/ctl.h"
#include "volumed/claims.h"
#include "volumed/server.h"

/* All 0 but the server at first; lives until the server has been destroyed. */
struct ebb_vctl {
	struct ebb_server *server;
	struct ebb_waiting *waiting;	/* requests without an answer, in the order of arrival */
	struct ebb_claims claims;
};

/* The handler for ebb_ctl_config; ctx is the struct ebb_vctl. */
void ebb_vctl_handle(void *ctx, struct ebb_ctl_request *request);

#endif
