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
/* Asks for the state of the server, and for no volume. */
char *ebb_volume_proto_server(void);
/* Says who asks.  The answer is "ok", or -EACCES or -EINVAL of ebb_volume_proto_result(). */
char *ebb_volume_proto_claim(const char *owner);
/* Asks for the server and the next part of a list: volumes whose promise the owner has set. */
char *ebb_volume_proto_owned(const char *owner, uint64_t after);
char *ebb_volume_proto_meters(void);
/* owner: sets the promise, if it is one that is to be taken back. */
char *ebb_volume_proto_set(const char *owner, const struct ebb_action_volume *a);

/*
 * Whether the server did it.  0; -errno with the server's own words in ret_text: -ENOENT no such
 * volume, -EDQUOT overbooked, -EACCES it does not let us, -ETIMEDOUT its storage daemon hangs, and
 * it may do it later, -EINVAL anything else that it refuses.  -EPROTO: this is no answer of an
 * ebb-volumed, so there is no use in going on.
 */
int ebb_volume_proto_result(const json_t *answer, char ret_text[EBB_TEXT_SIZE]);

/* The answer to "server", or to "owned".  -EPROTO: it is none. */
int ebb_volume_proto_read_server(const json_t *answer, struct ebb_volume_server *ret);

/* Names of volumes, read in parts so that no answer of the server is long. */
struct ebb_volume_list {
	char (*names)[EBB_VOLUME_NAME_SIZE];	/* to be freed */
	size_t num;
	uint64_t after;			/* as in the next question */
};

/*
 * The answer to "owned": adds to the list, which is empty, all 0, for the first part.  Returns 1:
 * there are more; 0: that was the last part; -EPROTO: it is none, or there are too many; -ENOMEM.
 */
int ebb_volume_proto_read_owned(const json_t *answer, struct ebb_volume_list *list);

/*
 * The answer to "meters": *ret_volumes, to be freed, has ret->num volumes; ret->as_of is left
 * alone.  -EPROTO: it is none; -ENOMEM.  What is no number counts as 0.
 */
int ebb_volume_proto_read_meters(const json_t *answer, struct ebb_fact_volumes_meters *ret,
				 struct ebb_volume_reading **ret_volumes);

#endif
