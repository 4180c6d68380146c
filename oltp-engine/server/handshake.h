/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * handshake.h - sends and reads the greetings of a relocation (greeting.h) on a connected socket.
 * Each step waits about 2 s at most. All return 0, an enum greeting_status that says why not, or
 * -errno (-EPROTO: the other end is no oltp-server).
 */
#ifndef OLTP_HANDSHAKE_H
#define OLTP_HANDSHAKE_H

#include "oltp-engine/server/greeting.h"

/* The source's side. offer: all but its proof; link: all but the nonces. */
int handshake_offer(int fd, struct greeting_link *link, struct greeting_offer offer,
		    struct greeting_answer *ret_answer);

/*
 * The target's side up to the offer; one that is not good was answered already. Then exactly one
 * handshake_answer.
 */
int handshake_take(int fd, struct greeting_link *link, uint32_t unit_bits,
		   struct greeting_offer *ret_offer);
int handshake_answer(int fd, const struct greeting_link *link, enum greeting_status status,
		     const char *clients, const uint8_t reads[GREETING_VOLUME_BYTES]);

#endif
