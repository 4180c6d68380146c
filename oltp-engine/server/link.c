// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "oltp-engine/bench/unix_listen.h"
#include "oltp-engine/src/base/clock.h"

#define HOST_MAX	64u
#define BACKLOG		4

struct place {
	struct sockaddr_storage address;
	socklen_t bytes;
};

static int parse_unix(const char *path, struct place *ret)
{
	struct sockaddr_un *to = (struct sockaddr_un *)&ret->address;

	if (!*path || strlen(path) >= sizeof(to->sun_path))
		return -EINVAL;
	to->sun_family = AF_UNIX;
	strcpy(to->sun_path, path);
	ret->bytes = sizeof(*to);
	return 0;
}

static int parse(const char *text, struct place *ret)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(text, ':');
	char host[HOST_MAX];
	struct addrinfo *found;
	size_t n = colon ? (size_t)(colon - text) : 0;

	*ret = (struct place){ 0 };
	if (!strncmp(text, "unix:", 5))
		return parse_unix(text + 5, ret);
	if (!n || n >= sizeof(host))
		return -EINVAL;
	if (*text == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	memcpy(host, text, n);
	host[n] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &found))
		return -EINVAL;
	memcpy(&ret->address, found->ai_addr, found->ai_addrlen);
	ret->bytes = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* Writes, and connecting, end after a while; each read has a limit of its own. */
static void set_limit(int fd, int seconds)
{
	const struct timeval limit = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static void set_tcp(int fd)
{
	const int one = 1;

	/* Fails on a unix socket, which needs neither. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
}

int server_link_listen(const char *address)
{
	const int one = 1;
	struct place place;
	int fd, rc = parse(address, &place);

	if (rc)
		return rc;
	if (place.address.ss_family == AF_UNIX)
		return unix_listen(address + 5, BACKLOG);
	fd = socket(place.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, (struct sockaddr *)&place.address, place.bytes) && !listen(fd, BACKLOG))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int server_link_connect(const char *address)
{
	struct place place;
	int fd, rc = parse(address, &place);

	if (rc)
		return rc;
	fd = socket(place.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	set_limit(fd, 1);
	if (!TEMP_FAILURE_RETRY(connect(fd, (struct sockaddr *)&place.address, place.bytes))) {
		set_tcp(fd);
		return fd;
	}
	rc = errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(fd);
	return rc;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET)
		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

int server_link_is_local(const char *address)
{
	struct place place;
	int rc = parse(address, &place);

	return rc ?: place.address.ss_family == AF_UNIX || is_loopback(&place.address);
}

static bool same_process(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	/* Of who called listen(2). */
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) && peer.pid == getpid();
}

bool server_link_is_own(int fd, int listen_fd)
{
	struct sockaddr_storage own, peer, listener;
	socklen_t own_bytes = sizeof(own), peer_bytes = sizeof(peer), bytes = sizeof(listener);
	const struct sockaddr_in *a = (void *)&own, *b = (void *)&peer, *l = (void *)&listener;
	const struct sockaddr_in6 *a6 = (void *)&own, *b6 = (void *)&peer;

	if (listen_fd < 0 || getsockname(fd, (struct sockaddr *)&own, &own_bytes) ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) ||
	    getsockname(listen_fd, (struct sockaddr *)&listener, &bytes) ||
	    peer.ss_family != listener.ss_family)
		return false;
	if (peer.ss_family == AF_UNIX)
		return same_process(fd);
	/* A connection to an address of this machine comes from that address. The port of IPv6 is
	 * where that of IPv4 is.
	 */
	if (b->sin_port != l->sin_port)
		return false;
	return peer.ss_family == AF_INET ?
	       a->sin_addr.s_addr == b->sin_addr.s_addr :
	       !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

void server_link_host(int fd, char *ret, size_t room)
{
	struct sockaddr_storage own;
	socklen_t bytes = sizeof(own);
	char host[HOST_MAX] = "127.0.0.1";
	bool is_6;

	if (getsockname(fd, (struct sockaddr *)&own, &bytes))
		own.ss_family = AF_UNSPEC;
	is_6 = own.ss_family == AF_INET6;
	if (is_6 || own.ss_family == AF_INET)
		getnameinfo((struct sockaddr *)&own, bytes, host, sizeof(host), NULL, 0,
			    NI_NUMERICHOST);
	snprintf(ret, room, is_6 ? "[%s]" : "%s", host);
}

int server_link_accept(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return -errno;
	set_limit(fd, 1);
	set_tcp(fd);
	return fd;
}

/*
 * One look for up to n bytes: how many came. A call with a time limit also ends when the process is
 * stopped and goes on, with what has come, or with EINTR, which says 0 here.
 */
static ssize_t read_some(int fd, void *bytes, size_t n, uint64_t until_ns)
{
	const uint64_t now_ns = clock_now_ns();
	const uint64_t left_us = until_ns > now_ns ? (until_ns - now_ns) / 1000 : 0;
	const struct timeval limit = { .tv_sec = (time_t)(left_us / 1000000),
				       .tv_usec = (suseconds_t)(left_us % 1000000) };
	ssize_t got;

	/* A limit of 0 is none. */
	if (!left_us)
		return -ETIMEDOUT;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	got = recv(fd, bytes, n, MSG_WAITALL);
	if (got < 0 && errno == EINTR)
		return 0;
	if (got < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return got ? got : -EPIPE;
}

int server_link_read(int fd, void *bytes, size_t n, uint64_t until_ns)
{
	for (size_t at = 0; at < n;) {
		ssize_t got = read_some(fd, (char *)bytes + at, n - at, until_ns);

		if (got < 0)
			return (int)got;
		at += (size_t)got;
	}
	return 0;
}

int server_link_write(int fd, const void *bytes, size_t n)
{
	ssize_t put = TEMP_FAILURE_RETRY(send(fd, bytes, n, MSG_NOSIGNAL));

	if (put < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	return (size_t)put == n ? 0 : -ETIMEDOUT;
}
