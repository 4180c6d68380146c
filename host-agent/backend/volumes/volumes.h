/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The volume server, ebb-volumed, as a backend in front of another one: it carries out
 * EBB_ACTION_VOLUME and hands all other actions on.  So it works with libvirt and in a dry run.
 *
 * It reports EBB_FACT_VOLUMES_UP when the server has answered, and no other program is connected
 * that sets promises in the same name; EBB_FACT_VOLUMES_LOST when it no
 * longer does (once, also at the start), and the ends of its actions, in the order of submission.
 * Once in an interval it asks the server how much is promised (EBB_FACT_VOLUMES_SERVER) and, once a
 * promise was set, for its meters (EBB_FACT_VOLUMES_METERS).
 * Actions that are open when the connection is lost end with -ENOTCONN, after VOLUMES_LOST.
 */
#ifndef EBB_BACKEND_VOLUMES_H
#define EBB_BACKEND_VOLUMES_H

#include <systemd/sd-event.h>
#include "backend/backend.h"

struct ebb_volumes;

struct ebb_volumes_config {
	const char *path;		/* of the control socket; copied */
	/* Name of this agent, 1 to 127 bytes, copied; the second agent with a name is refused. */
	const char *owner;
	struct ebb_backend inner;	/* for all other actions; stays the caller's */
	struct ebb_sink sink;
	usec_t retry_usec[2];		/* wait before it connects again: first, longest */
	usec_t patience_usec;		/* for an answer; then the connection is closed */
	usec_t meter_usec;		/* between two readings of the meters */
};

/* No path, owner, backend or sink; 0.1 to 5 s; 10 s; 1 s. */
void ebb_volumes_config_default(struct ebb_volumes_config *ret);

/* Connects as soon as the loop runs.  -ENAMETOOLONG, -ENOMEM. */
int ebb_volumes_create(sd_event *event, const struct ebb_volumes_config *cfg,
		       struct ebb_volumes **ret);

/* Has the name of the inner one; its destroy() destroys the inner one and nothing else. */
struct ebb_backend ebb_volumes_backend(struct ebb_volumes *v);

/* Reports nothing any more.  NULL is fine. */
void ebb_volumes_destroy(struct ebb_volumes *v);

#endif
