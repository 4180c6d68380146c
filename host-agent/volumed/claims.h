/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which connections to the control socket belong to programs that own promises (ebb_volspec.owner),
 * so that no two programs set and take back promises in one name.  A claim ends with its
 * connection.
 */
#ifndef EBB_VOLUMED_CLAIMS_H
#define EBB_VOLUMED_CLAIMS_H

#include "service/ctl.h"
#include "volumed/volspec.h"

/* All 0 at first. */
struct ebb_claims {
	struct {
		char owner[EBB_VOLUME_OWNER_SIZE];
		uint64_t connection;
	} all[EBB_CTL_MAX_CLIENTS];
};

/*
 * The connection from which the request came has this owner from now on, and no other one.  -EBUSY:
 * another connection has it.
 */
int ebb_claims_take(struct ebb_claims *c, const struct ebb_ctl_request *r,
		    const char owner[EBB_VOLUME_OWNER_SIZE]);

#endif
