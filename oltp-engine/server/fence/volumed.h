/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * volumed.h - fences the peer at ebb-volumed (docs/volume-protocol.md), for a node on the host
 * where that listens, as root or its user: fence ops of a move. Both nodes are attachments of one
 * shared volume, whose generation decides when both fence at once.
 *
 * Each call makes a connection of its own and waits a second for the answer at most. A fence
 * whose answer does not come stands, and is asked for again.
 */
#ifndef OLTP_FENCE_VOLUMED_H
#define OLTP_FENCE_VOLUMED_H

#include "oltp-engine/server/move/move.h"

/* Texts and peer_config are the caller's, and stay. */
struct fence_volumed {
	const char *socket;	/* path of the control socket */
	const char *volume;
	const char *own, *peer;	/* names of the attachments */
	const struct oltp_config *peer_config;
};

/* ctx: struct fence_volumed. Without an answer, and after one that cannot be: LATER. */
extern const struct move_fence_ops fence_volumed_ops;

#endif
