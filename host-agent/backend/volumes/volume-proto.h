/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages between ebbd and ebb-volumed (docs/volume-protocol.md), each one line of JSON.  No
 * I/O, no state.
 */
#ifndef EBB_BACKEND_VOLUME_PROTO_H
#define EBB_BACKEND_VOLUME_PROTO_H

#include <jansson.h>
#include "model/types.h"

/* The lines with their newline, to be freed; NULL: out of memory. */
/* Asks for the state of the server and of this volume; "": of all volumes. */
char *ebb_volume_proto_server(const char *volume);
char *ebb_volume_proto_meters(void);
char *ebb_volume_proto_set(const struct ebb_action_volume *a);

/*
 * Whether the server did it.  0; -errno with the server's own words in ret_text: -ENOENT no such
 * volume, -EDQUOT overbooked, -EACCES it does not let us, -EINVAL anything else that it refuses.
 * -EPROTO: this is no answer of an ebb-volumed, so there is no use in going on.
 */
int ebb_volume_proto_result(const json_t *answer, char ret_text[EBB_TEXT_SIZE]);

/*
 * The answer to "server".  -EPROTO: it is none.  ret_volume (EBB_VOLUME_NAME_SIZE bytes): a volume
 * that the server has, or "".
 */
int ebb_volume_proto_read_server(const json_t *answer, struct ebb_volume_server *ret,
				 char *ret_volume);

/*
 * The answer to "server" for all volumes: names of those whose promise an ebbd has set.  Returns
 * how many there are, with *ret to be freed; -ENOMEM.
 */
int ebb_volume_proto_read_owned(const json_t *answer, char (**ret)[EBB_VOLUME_NAME_SIZE]);

/*
 * The answer to "meters": *ret_volumes, to be freed, has ret->num volumes; ret->as_of is left
 * alone.  -EPROTO: it is none; -ENOMEM.  What is no number counts as 0.
 */
int ebb_volume_proto_read_meters(const json_t *answer, struct ebb_fact_volumes_meters *ret,
				 struct ebb_volume_reading **ret_volumes);

#endif
