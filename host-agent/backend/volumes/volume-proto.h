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
char *ebb_volume_proto_hello(void);
char *ebb_volume_proto_set(const struct ebb_action_volume *a);

/*
 * Whether the server did it.  0; -errno with the server's own words in ret_text: -ENOENT no such
 * volume, -EDQUOT overbooked, -EACCES it does not let us, -EINVAL anything else that it refuses.
 * -EPROTO: this is no answer of an ebb-volumed, so there is no use in going on.
 */
int ebb_volume_proto_result(const json_t *answer, char ret_text[EBB_TEXT_SIZE]);

#endif
