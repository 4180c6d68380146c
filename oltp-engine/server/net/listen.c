// SPDX-License-Identifier: GPL-2.0-or-later
/* Listening sockets, and the clients that come there. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "front.h"
#include "oltp-engine/bench/accept.h"
#include "oltp-engine/bench/unix_listen.h"

#define BACKLOG		511
/* Clients taken in one call, so that its caller gets on with other things. */
#define ACCEPTS_MAX	64u
#define ADDRESS_MAX	128u
#define ERROR_MAX	128u

static int add_listener(struct net_front *front, int fd, const char *path, uint16_t port)
{
	struct net_listener *listener = &front->listeners[front->n_listeners];

	*listener = (struct net_listener){ .fd = fd, .port = port };
	if (path) {
		listener->path = strdup(path);
		if (!listener->path)
			return -ENOMEM;
	}
	front->n_listeners++;
	return 0;
}

/* An address of IPv4 or IPv6. */
union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

static uint16_t port_of(const union address *address)
{
	if (address->any.sa_family == AF_INET6)
		return ntohs(address->in6.sin6_port);
	return address->any.sa_family == AF_INET ? ntohs(address->in.sin_port) : 0;
}

static int listen_at(struct net_front *front, union address *address)
{
	const bool is_6 = address->any.sa_family == AF_INET6;
	socklen_t bytes = is_6 ? sizeof(address->in6) : sizeof(address->in);
	const int one = 1;
	int fd, rc;

	if (front->n_listeners == NET_LISTENERS_MAX)
		return -ENOSPC;
	fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	/* So that all addresses of IPv4 and of IPv6 can be listened on side by side. */
	if (is_6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, &address->any, bytes) || listen(fd, BACKLOG) ||
	    getsockname(fd, &address->any, &bytes))
		rc = -errno;
	else
		rc = add_listener(front, fd, NULL, port_of(address));
	if (rc)
		close(fd);
	return rc;
}

/* Cuts HOST:PORT. Error: -EINVAL. */
static int split(char *text, const char **ret_host, uint16_t *ret_port)
{
	char *colon = strrchr(text, ':'), *end;
	unsigned long port;

	if (!colon || !colon[1] || strlen(colon + 1) > 5 ||
	    strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return -EINVAL;
	port = strtoul(colon + 1, NULL, 10);
	if (port > UINT16_MAX)
		return -EINVAL;
	*ret_port = (uint16_t)port;
	*colon = '\0';
	if (*text == '[') {
		end = strchr(text, ']');
		if (!end || end[1])
			return -EINVAL;
		*end = '\0';
		text++;
	} else if (strchr(text, ':')) {
		return -EINVAL;
	}
	*ret_host = text;
	return 0;
}

static int listen_4(struct net_front *front, const char *host, uint16_t port)
{
	union address address = { .in = { .sin_family = AF_INET, .sin_port = htons(port) } };

	if (inet_pton(AF_INET, host, &address.in.sin_addr) != 1)
		return -ENOENT;
	return listen_at(front, &address);
}

static int listen_6(struct net_front *front, const char *host, uint16_t port)
{
	union address address = { .in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) } };

	if (inet_pton(AF_INET6, host, &address.in6.sin6_addr) != 1)
		return -ENOENT;
	return listen_at(front, &address);
}

/* The same address in both families; a machine need not have IPv6. */
static int listen_both(struct net_front *front, const char *host_4, const char *host_6,
		       uint16_t port)
{
	int rc = listen_4(front, host_4, port);

	if (rc)
		return rc;
	/* One port for both, also where any will do. */
	rc = listen_6(front, host_6, front->listeners[front->n_listeners - 1].port);
	return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL ? 0 : rc;
}

int net_listen_tcp(struct net_front *front, const char *address)
{
	char text[ADDRESS_MAX];
	const char *host;
	uint16_t port;
	int rc;

	if (snprintf(text, sizeof(text), "%s", address) >= (int)sizeof(text))
		return -EINVAL;
	rc = split(text, &host, &port);
	if (rc)
		return rc;
	if (!*host)
		return listen_both(front, "0.0.0.0", "::", port);
	if (!strcmp(host, "localhost"))
		return listen_both(front, "127.0.0.1", "::1", port);
	return strchr(host, ':') ? listen_6(front, host, port) : listen_4(front, host, port);
}

int net_listen_unix(struct net_front *front, const char *path)
{
	int fd, rc;

	if (front->n_listeners == NET_LISTENERS_MAX)
		return -ENOSPC;
	fd = unix_listen(path, BACKLOG);
	if (fd < 0)
		return fd;
	rc = add_listener(front, fd, path, 0);
	if (rc) {
		unlink(path);
		close(fd);
	}
	return rc;
}

uint16_t net_port(const struct net_front *front)
{
	for (uint32_t i = 0; i < front->n_listeners; i++) {
		if (front->listeners[i].port)
			return front->listeners[i].port;
	}
	return 0;
}

uint32_t net_fds(const struct net_front *front, int ret_fds[NET_LISTENERS_MAX])
{
	for (uint32_t i = 0; i < front->n_listeners; i++)
		ret_fds[i] = front->listeners[i].fd;
	return front->n_listeners;
}

static void describe(const union address *address, char *ret_text, size_t room)
{
	char host[INET6_ADDRSTRLEN] = "";

	if (address->any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &address->in6.sin6_addr, host, sizeof(host));
	else if (address->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &address->in.sin_addr, host, sizeof(host));
	if (*host)
		snprintf(ret_text, room, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
			 port_of(address));
	else
		snprintf(ret_text, room, "unix:0");
}

static void let_in(struct net_front *front, int fd)
{
	union address peer = { .any.sa_family = AF_UNSPEC }, own = peer;
	socklen_t peer_bytes = sizeof(peer), own_bytes = sizeof(own);
	char peer_text[ADDRESS_MAX], own_text[ADDRESS_MAX];
	const int one = 1;
	struct conn *c;

	getpeername(fd, &peer.any, &peer_bytes);
	getsockname(fd, &own.any, &own_bytes);
	describe(&peer, peer_text, sizeof(peer_text));
	describe(&own, own_text, sizeof(own_text));
	if (own.any.sa_family != AF_UNIX) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	}
	c = conn_create(front, fd, peer_text, own_text, atomic_load(&front->is_draining));
	if (!c) {
		close(fd);
		return;
	}
	atomic_fetch_add(&front->accepted, 1);
	place_conn(front, c);
}

static void turn_away(struct net_front *front, int fd, const char *error)
{
	char line[ERROR_MAX];
	int n = snprintf(line, sizeof(line), "-%s\r\n", error);

	atomic_fetch_add(&front->rejected, 1);
	/* Whether it can be told is up to the client. */
	(void)!send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

void net_accept(struct net_front *front, int listen_fd)
{
	for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
		/* A connection itself must block: the ring would not wait for it. */
		int fd = accept_or_pause(listen_fd, SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (atomic_load(&front->n_clients) + atomic_load(&front->n_restricted) >=
		    front->config.clients_max)
			turn_away(front, fd, "ERR max number of clients reached");
		else
			let_in(front, fd);
	}
}

void net_refuse(struct net_front *front, int listen_fd, const char *error)
{
	for (uint32_t i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept_or_pause(listen_fd, SOCK_CLOEXEC);

		if (fd < 0)
			return;
		turn_away(front, fd, error);
	}
}
