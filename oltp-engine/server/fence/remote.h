/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * remote.h - fences the peer by asking ebb-fenced, for a node that cannot reach the control socket
 * of ebb-volumed: one in a guest. Fence ops of a move.
 *
 * Each call makes a connection of its own and waits some 3 s at most. Whatever is no sealed answer
 * means LATER: an attacker between the two can delay a fence, but neither make nor pretend one.
 */
#ifndef OLTP_FENCE_REMOTE_H
#define OLTP_FENCE_REMOTE_H

#include "oltp-engine/server/fence/secret.h"
#include "oltp-engine/server/move/move.h"

/* Texts, the secret and peer_config are the caller's, and stay. */
struct fence_remote {
	const char *address;	/* of link.h */
	const struct secret *secret;
	const char *own, *peer;	/* names of the attachments */
	const struct oltp_config *peer_config;
};

/* ctx: struct fence_remote. */
extern const struct move_fence_ops fence_remote_ops;

#endif
