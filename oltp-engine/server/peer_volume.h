/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peer_volume.h - says which volume this node can read as the other node's, without waiting for a
 * disk that hangs: each look at the volume is a thread of its own, and one that hangs is left
 * behind. For one thread at a time.
 */
#ifndef OLTP_SERVER_PEER_VOLUME_H
#define OLTP_SERVER_PEER_VOLUME_H

#include <stdint.h>

#include "oltp-engine/server/greeting.h"

struct peer_volume;

/* path: a copy is made; NULL: there is no volume. Errors: -ENOMEM. */
int peer_volume_create(const char *path, struct peer_volume **ret_volume);

/* Begins to look, unless an earlier look has not ended. */
void peer_volume_look(struct peer_volume *volume);

/*
 * The uuid of the volume as of the last look, which has wait_ms to end; 0: there is none, it cannot
 * be read, or not in time.
 */
void peer_volume_uuid(struct peer_volume *volume, uint32_t wait_ms,
		      uint8_t ret[GREETING_VOLUME_BYTES]);

/* Does not wait for a look that hangs. Accepts NULL. */
void peer_volume_destroy(struct peer_volume *volume);

#endif
