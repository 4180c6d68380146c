// SPDX-License-Identifier: GPL-2.0-or-later
/* See conn.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "conn.h"
#include "oltp-engine/src/base/clock.h"

#define BACKLOG		64
#define HELLO_WAITS	(2000u / DIST_CONN_WAIT_MS)
#define SEND_MS		2000u

union address {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_in inet;
};

static int parse_inet(const char *text, struct sockaddr_in *ret)
{
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN];
	unsigned long port;
	char *end;

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	port = strtoul(colon + 1, &end, 10);
	if (end == colon + 1 || *end || port < 1 || port > 65535)
		return -EINVAL;
	ret->sin_family = AF_INET;
	ret->sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, host, &ret->sin_addr) == 1 ? 0 : -EINVAL;
}

static int parse_address(const char *text, union address *ret, socklen_t *ret_bytes)
{
	memset(ret, 0, sizeof(*ret));
	if (!strncmp(text, "tcp:", 4)) {
		*ret_bytes = sizeof(ret->inet);
		return parse_inet(text + 4, &ret->inet);
	}
	if (strncmp(text, "unix:", 5) || !text[5])
		return -EINVAL;
	if (strlen(text + 5) >= sizeof(ret->local.sun_path))
		return -ENAMETOOLONG;
	ret->local.sun_family = AF_UNIX;
	strcpy(ret->local.sun_path, text + 5);
	*ret_bytes = sizeof(ret->local);
	return 0;
}

int dist_address_check(const char *text)
{
	union address address;
	socklen_t bytes;

	return parse_address(text, &address, &bytes);
}

/* Removes a unix socket that a crashed node has left: it refuses connections. */
static void remove_stale(const union address *address, socklen_t bytes)
{
	struct stat st;
	int fd;

	if (address->any.sa_family != AF_UNIX || lstat(address->local.sun_path, &st) ||
	    !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, &address->any, bytes) && errno == ECONNREFUSED)
		unlink(address->local.sun_path);
	close(fd);
}

int dist_listen(const char *text, int *ret_fd)
{
	union address address;
	const int one = 1;
	socklen_t bytes;
	int fd, rc = parse_address(text, &address, &bytes);

	if (rc)
		return rc;
	remove_stale(&address, bytes);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* A node that restarts must not wait for the ends of its old connections. */
	if (address.any.sa_family == AF_INET &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		rc = -errno;
	if (!rc && (bind(fd, &address.any, bytes) || listen(fd, BACKLOG)))
		rc = -errno;
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

void dist_unlisten(const char *text, int fd)
{
	close(fd);
	if (!strncmp(text, "unix:", 5))
		unlink(text + 5);
}

static int set_up(struct dist_conn *conn, int fd)
{
	const struct timeval wait = { .tv_usec = DIST_CONN_WAIT_MS * 1000 };
	const struct timeval patience = { .tv_sec = SEND_MS / 1000 };
	const int one = 1;

	conn->fd = fd;
	conn->start = conn->end = 0;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		return -errno;
	/* Fails for unix sockets, which need no such thing. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int send_hello(struct dist_conn *conn, uint32_t node)
{
	const struct dist_gtid self = { .node = node };
	struct dist_frame frame = dist_frame_make(DIST_HELLO, &self, 0, 0);

	return dist_conn_send(conn, &frame, NULL);
}

static int receive_hello(struct dist_conn *conn, uint32_t node)
{
	const struct dist_frame *frame;
	const void *payload;
	int rc = -EAGAIN;

	for (uint32_t i = 0; rc == -EAGAIN && i < HELLO_WAITS; i++)
		rc = dist_conn_receive(conn, &frame, &payload);
	if (rc)
		return rc == -EAGAIN ? -ETIMEDOUT : rc;
	/* Two nodes of one name would take each other's transactions for their own. */
	return frame->type == DIST_HELLO && frame->gtid.node != node ? 0 : -EPROTO;
}

int dist_conn_open(struct dist_conn *conn, const char *text, uint32_t node)
{
	union address address;
	socklen_t bytes;
	int fd, rc = parse_address(text, &address, &bytes);

	conn->fd = -1;
	if (rc)
		return rc;
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	rc = set_up(conn, fd);
	if (!rc && connect(fd, &address.any, bytes))
		rc = -errno;
	if (!rc)
		rc = send_hello(conn, node);
	if (!rc)
		rc = receive_hello(conn, node);
	if (rc)
		dist_conn_close(conn);
	return rc;
}

int dist_conn_accept(struct dist_conn *conn, int fd, uint32_t node)
{
	int rc = set_up(conn, fd), said;

	if (!rc)
		rc = receive_hello(conn, node);
	if (rc && rc != -EPROTONOSUPPORT)
		return rc;
	/* Also to another version, so that it can tell what is wrong. */
	said = send_hello(conn, node);
	return rc ?: said;
}

void dist_conn_close(struct dist_conn *conn)
{
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
}

/* Until bytes can be sent. Errors: -ETIMEDOUT: none until then. */
static int wait_writable(const struct dist_conn *conn, uint64_t until_ns)
{
	struct pollfd wait = { .fd = conn->fd, .events = POLLOUT };
	const uint64_t now_ns = clock_now_ns();

	if (now_ns >= until_ns)
		return -ETIMEDOUT;
	/* Rounded up, lest the last millisecond be spent in a loop. */
	if (poll(&wait, 1, (int)((until_ns - now_ns) / 1000000) + 1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

int dist_conn_send(struct dist_conn *conn, const struct dist_frame *frame, const void *payload)
{
	struct iovec parts[2] = {
		{ .iov_base = (void *)frame, .iov_len = DIST_FRAME_BYTES },
		{ .iov_base = (void *)payload, .iov_len = frame->bytes - DIST_FRAME_BYTES },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	const uint64_t until_ns = clock_now_ns() + SEND_MS * 1000000ull;

	while (parts[0].iov_len + parts[1].iov_len) {
		/*
		 * Does not wait: SO_SNDTIMEO would begin anew with each buffer that the peer's
		 * kernel takes, and a peer that reads slowly would keep the caller for many times
		 * as long.
		 */
		ssize_t n = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0) {
			int rc = errno == EAGAIN ? wait_writable(conn, until_ns) :
				 errno == EINTR ? 0 : -errno;

			if (rc)
				return rc;
			continue;
		}
		for (uint32_t i = 0; i < 2; i++) {
			size_t part = (size_t)n < parts[i].iov_len ? (size_t)n : parts[i].iov_len;

			/* A part without bytes has no place either. */
			if (part)
				parts[i].iov_base = (uint8_t *)parts[i].iov_base + part;
			parts[i].iov_len -= part;
			n -= (ssize_t)part;
		}
	}
	return 0;
}

/*
 * Is there a whole message at the start of the buffer? 1: yes, 0: not yet, or what is wrong with
 * it.
 */
static int look(const struct dist_conn *conn)
{
	const struct dist_frame *frame = (const void *)(conn->buffer + conn->start);
	uint32_t here = conn->end - conn->start;
	int rc;

	if (here < DIST_FRAME_BYTES)
		return 0;
	rc = dist_frame_check(frame);
	if (rc)
		return rc;
	return here >= frame->bytes;
}

/*
 * One look for more bytes. -EAGAIN: none came within DIST_CONN_WAIT_MS; other errors as of
 * dist_conn_receive().
 */
static int receive_some(struct dist_conn *conn)
{
	ssize_t n;

	/* Lengths are multiples of 8, so what is left stays aligned. */
	memmove(conn->buffer, conn->buffer + conn->start, conn->end - conn->start);
	conn->end -= conn->start;
	conn->start = 0;
	n = recv(conn->fd, conn->buffer + conn->end, sizeof(conn->buffer) - conn->end, 0);
	if (!n)
		return -EPIPE;
	if (n < 0 && errno == EINTR)
		return 0;
	if (n < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	conn->end += (uint32_t)n;
	return 0;
}

int dist_conn_receive(struct dist_conn *conn, const struct dist_frame **ret_frame,
		      const void **ret_payload)
{
	uint64_t until_ns = 0;
	int rc;

	while (!(rc = look(conn))) {
		const uint64_t now_ns = clock_now_ns();

		/*
		 * A peer that sends a few bytes at a time must not keep the caller from its own
		 * timeouts.
		 */
		if (!until_ns)
			until_ns = now_ns + DIST_CONN_WAIT_MS * 1000000ull;
		else if (now_ns >= until_ns)
			return -EAGAIN;
		rc = receive_some(conn);
		if (rc)
			return rc;
	}
	if (rc < 0)
		return rc;
	*ret_frame = (const void *)(conn->buffer + conn->start);
	*ret_payload = conn->buffer + conn->start + DIST_FRAME_BYTES;
	conn->start += (*ret_frame)->bytes;
	return 0;
}
