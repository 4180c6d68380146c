/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Volumes and the server as JSON, for the control protocol and the file of volumes. */
#ifndef EBB_VOLUMED_VOLVIEW_H
#define EBB_VOLUMED_VOLVIEW_H

#include <jansson.h>
#include "volumed/server.h"

/* name, tenant, file, format and the numbers; null: a reservation or maximum that there is not. */
json_t *ebb_volview_spec(const struct ebb_volspec *spec);

/* Its state in one word. */
const char *ebb_volview_state(const struct ebb_volume *v);

/* As docs/volume-protocol.md has them: all of a volume; "server". */
json_t *ebb_volview_volume(const struct ebb_volume *v);
json_t *ebb_volview_access(const struct ebb_volume *v);	/* who may write a shared one */
json_t *ebb_volview_server(const struct ebb_server *s);

/* Which volumes a client wants to see, and how much of each. */
struct ebb_volview_listing {
	const struct ebb_volume *only;	/* NULL: all */
	const char *owner;		/* those whose promise it has set; NULL: all */
	json_int_t after, most;		/* those with a greater id; so many of them */
	bool is_brief;			/* id and name alone */
};

/* "server", "volumes" and "more": a new object. */
json_t *ebb_volview_list(const struct ebb_server *s, const struct ebb_volview_listing *l);

#endif
