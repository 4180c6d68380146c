/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages over stream sockets; one thread per connection. */
#ifndef DIST_CONN_H
#define DIST_CONN_H

#include <stdint.h>

#include "message.h"

/* How long one look for a message waits: the grain of all timeouts. */
#define DIST_CONN_WAIT_MS	20u

struct dist_conn {
	int fd;			/* -1: closed */
	uint32_t start, end;	/* of what was received and not looked at */
	_Alignas(8) uint8_t buffer[2 * (DIST_FRAME_BYTES + DIST_PAYLOAD_MAX)];
};

/* Whether it is an address as dist_listen takes. Errors: -EINVAL, -ENAMETOOLONG. */
int dist_address_check(const char *address);

/*
 * address: "unix:PATH" or "tcp:A.B.C.D:PORT". A unix socket that nobody listens on is replaced.
 * Errors: -EINVAL (not such an address), -ENAMETOOLONG, those of sockets.
 */
int dist_listen(const char *address, int *ret_fd);
void dist_unlisten(const char *address, int fd);

/* Connects and exchanges HELLO. Errors: also -EPROTONOSUPPORT, -EPROTO, -ETIMEDOUT. */
int dist_conn_open(struct dist_conn *conn, const char *address, uint32_t node);

/* The accepting side of that. */
int dist_conn_accept(struct dist_conn *conn, int fd, uint32_t node);

void dist_conn_close(struct dist_conn *conn);

/*
 * All of it within 2 s, or an error, upon which the connection is useless. -ETIMEDOUT: the peer did
 * not read fast enough.
 */
int dist_conn_send(struct dist_conn *conn, const struct dist_frame *frame, const void *payload);

/*
 * The next message, checked; both pointers are valid until the next call. -EAGAIN: none within
 * DIST_CONN_WAIT_MS, though a part of one may have come, which is kept. Any other error ends the
 * connection's use: -EPIPE (the peer closed it), -EPROTO, -EPROTONOSUPPORT.
 */
int dist_conn_receive(struct dist_conn *conn, const struct dist_frame **ret_frame,
		      const void **ret_payload);

#endif
