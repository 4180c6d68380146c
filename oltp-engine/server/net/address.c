// SPDX-License-Identifier: GPL-2.0-or-later
/* Where clients find the front: see net_address. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "front.h"

static void of_path(const char *path, char ret[NET_ADDRESS_MAX + 1])
{
	/* Clients need not have this server's working folder. */
	char *whole = realpath(path, NULL);

	if (whole && strlen(whole) + 5 <= NET_ADDRESS_MAX)
		snprintf(ret, NET_ADDRESS_MAX + 1, "unix:%s", whole);
	free(whole);
}

void net_address(const struct net_front *front, const char *host, char ret[NET_ADDRESS_MAX + 1])
{
	const struct net_listener *listener = &front->listeners[0];
	struct sockaddr_storage at;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&at;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at;
	socklen_t bytes = sizeof(at);
	char own[INET6_ADDRSTRLEN] = "";

	*ret = '\0';
	if (!front->n_listeners)
		return;
	if (listener->path) {
		of_path(listener->path, ret);
		return;
	}
	if (getsockname(listener->fd, (struct sockaddr *)&at, &bytes))
		return;
	if (at.ss_family == AF_INET && in->sin_addr.s_addr != htonl(INADDR_ANY))
		inet_ntop(AF_INET, &in->sin_addr, own, sizeof(own));
	else if (at.ss_family == AF_INET6 && !IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		inet_ntop(AF_INET6, &in6->sin6_addr, own, sizeof(own));
	snprintf(ret, NET_ADDRESS_MAX + 1, strchr(own, ':') ? "[%s]:%u" : "%s:%u",
		 *own ? own : host, listener->port);
}
