/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See claims.h. */
#include <errno.h>
#include <string.h>
#include "volumed/claims.h"

int ebb_claims_take(struct ebb_claims *c, const struct ebb_ctl_request *r,
		    const char owner[EBB_VOLUME_OWNER_SIZE])
{
	size_t place = 0;

	for (size_t i = 0; i < EBB_CTL_MAX_CLIENTS; i++) {
		const uint64_t connection = c->all[i].connection;
		const bool is_free = !connection || connection == r->connection ||
				     !ebb_ctl_is_connected(r, connection);

		/* One place is free: there are no more connections than places. */
		if (is_free)
			place = i;
		else if (strcmp(c->all[i].owner, owner) == 0)
			return -EBUSY;
	}
	for (size_t i = 0; i < EBB_CTL_MAX_CLIENTS; i++)
		if (c->all[i].connection == r->connection)
			c->all[i].connection = 0;
	c->all[place].connection = r->connection;
	strcpy(c->all[place].owner, owner);
	return 0;
}
