// SPDX-License-Identifier: GPL-2.0-or-later
/* See conn.h. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "conn.h"

#define RECEIVE_BYTES	(16u << 10)

static int watch(struct wire_conn *conn, int operation)
{
	struct epoll_event event = {
		.events = EPOLLIN | (conn->waits_to_write ? EPOLLOUT : 0),
		.data.u64 = conn->tag,
	};

	return epoll_ctl(conn->epoll_fd, operation, conn->fd, &event) ? -errno : 0;
}

int wire_conn_open(struct wire_conn *conn, const struct wire_address *address, int epoll_fd,
		   uint64_t tag)
{
	const int one = 1;
	int rc;

	conn->epoll_fd = epoll_fd;
	conn->tag = tag;
	conn->waits_to_write = true;
	conn->is_connecting = true;
	conn->fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd < 0)
		return -errno;
	/* Fails for unix sockets, which need no such thing. */
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(conn->fd, (const struct sockaddr *)&address->socket, address->bytes) &&
	    errno != EINPROGRESS)
		rc = -errno;
	else
		/* It says that one can write, also if the connection is there already. */
		rc = watch(conn, EPOLL_CTL_ADD);
	if (rc)
		wire_conn_close(conn);
	return rc;
}

void wire_conn_close(struct wire_conn *conn)
{
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	wire_bytes_clear(&conn->in);
	wire_bytes_clear(&conn->out);
	conn->scan = (struct reply_scan){ 0 };
}

void wire_conn_free(struct wire_conn *conn)
{
	wire_conn_close(conn);
	wire_bytes_free(&conn->in);
	wire_bytes_free(&conn->out);
}

int wire_conn_send(struct wire_conn *conn)
{
	struct wire_bytes *out = &conn->out;
	bool must_wait = conn->is_connecting;

	while (!must_wait && out->first < out->end) {
		ssize_t n = send(conn->fd, out->bytes + out->first, out->end - out->first,
				 MSG_NOSIGNAL);

		if (n >= 0)
			wire_bytes_take(out, (size_t)n);
		else if (errno == EAGAIN)
			must_wait = true;
		else if (errno != EINTR)
			return -errno;
	}
	if (must_wait == conn->waits_to_write)
		return 0;
	conn->waits_to_write = must_wait;
	return watch(conn, EPOLL_CTL_MOD);
}

static int receive(struct wire_conn *conn)
{
	for (;;) {
		char *to = wire_bytes_reserve(&conn->in, RECEIVE_BYTES);
		ssize_t n;

		if (!to)
			return -ENOMEM;
		n = recv(conn->fd, to, RECEIVE_BYTES, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0 && errno != EINTR)
			return errno == EAGAIN ? 0 : -errno;
		if (n > 0)
			conn->in.end += (size_t)n;
		/* A server that never stops sending must not keep the others waiting. */
		if (n > 0 && n < (ssize_t)RECEIVE_BYTES)
			return 0;
		if (conn->in.end - conn->in.first > REPLY_BYTES_MAX)
			return 0;
	}
}

int wire_conn_serve(struct wire_conn *conn, uint32_t events)
{
	int rc = 0;

	if (conn->is_connecting) {
		socklen_t bytes = sizeof(rc);

		if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &rc, &bytes))
			return -errno;
		if (rc)
			return -rc;
		if (!(events & EPOLLOUT))
			return 0;
		conn->is_connecting = false;
	}
	if (events & EPOLLOUT)
		rc = wire_conn_send(conn);
	/* What the server said before it closed may be an answer, also if sending fails. */
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		int received = receive(conn);

		rc = rc ? rc : received;
	}
	return rc;
}

int wire_conn_reply(struct wire_conn *conn, const char **ret_bytes, size_t *ret_length)
{
	const struct wire_bytes *in = &conn->in;
	int rc = 0;

	if (in->first < in->end)
		rc = reply_scan(&conn->scan, in->bytes + in->first, in->end - in->first,
				ret_length);
	if (rc > 0)
		*ret_bytes = in->bytes + in->first;
	return rc;
}

void wire_conn_consume(struct wire_conn *conn, size_t length)
{
	wire_bytes_take(&conn->in, length);
}
