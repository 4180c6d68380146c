/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A connection to a server, without waiting: bytes out, replies in. One thread. */
#ifndef LOAD_CONN_H
#define LOAD_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "bytes.h"
#include "reply.h"

/* Zeroed but for fd -1: closed. */
struct wire_conn {
	int fd;			/* -1: closed */
	int epoll_fd;
	uint64_t tag;		/* what epoll says of it */
	bool is_connecting;
	bool waits_to_write;	/* epoll was asked for EPOLLOUT */
	struct wire_bytes in, out;
	struct reply_scan scan;
};

/*
 * Begins to connect; epoll_fd tells with tag how that went. Errors: -errno; it is closed then.
 * What is in out is sent as soon as it is connected.
 */
int wire_conn_open(struct wire_conn *conn, const struct wire_address *address, int epoll_fd,
		   uint64_t tag);
void wire_conn_close(struct wire_conn *conn);
void wire_conn_free(struct wire_conn *conn);

/* Sends what is in out as far as the kernel takes it. Errors: -errno of a connection that broke. */
int wire_conn_send(struct wire_conn *conn);

/*
 * epoll reported these events: connects, sends and receives. Errors: -errno of a connection that
 * broke, -ECONNRESET if the server closed it. Replies that came before that can still be taken.
 */
int wire_conn_serve(struct wire_conn *conn, uint32_t events);

/*
 * The next whole reply. Returns 1, 0 (none), or -EPROTO. It stays where it is until
 * wire_conn_consume, whose length is that of the reply.
 */
int wire_conn_reply(struct wire_conn *conn, const char **ret_bytes, size_t *ret_length);
void wire_conn_consume(struct wire_conn *conn, size_t length);

#endif
