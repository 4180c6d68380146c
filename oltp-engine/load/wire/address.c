// SPDX-License-Identifier: GPL-2.0-or-later
/* See address.h. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "address.h"

static int parse_unix(const char *path, struct wire_address *address)
{
	struct sockaddr_un *local = (struct sockaddr_un *)&address->socket;

	if (!*path)
		return -EINVAL;
	if (strlen(path) >= sizeof(local->sun_path))
		return -ENAMETOOLONG;
	local->sun_family = AF_UNIX;
	strcpy(local->sun_path, path);
	address->bytes = sizeof(*local);
	return 0;
}

/* Of "HOST:PORT" or "[HOST]:PORT": the host into host, the port is what it returns. NULL: none. */
static const char *split(const char *text, char *host)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;

	if (n && *text == '[') {
		if (n < 3 || text[n - 1] != ']')
			return NULL;
		text++;
		n -= 2;
	} else if (memchr(text, ':', n)) {
		return NULL;
	}
	memcpy(host, text, n);
	host[n] = 0;
	return n ? colon + 1 : NULL;
}

static bool is_port(const char *text)
{
	uint32_t port = 0;
	size_t n = strspn(text, "0123456789");

	if (!n || n > 5 || text[n])
		return false;
	for (; *text; text++)
		port = port * 10 + (uint32_t)(*text - '0');
	return port >= 1 && port <= 65535;
}

static int parse_inet(const char *text, bool is_numeric, struct wire_address *address)
{
	const struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV | (is_numeric ? AI_NUMERICHOST : 0),
	};
	char host[PUSH_ADDRESS_BYTES];
	const char *port = split(text, host);
	struct addrinfo *found, *a;

	if (!port || !is_port(port))
		return -EINVAL;
	if (getaddrinfo(host, port, &hints, &found))
		return is_numeric ? -EINVAL : -EADDRNOTAVAIL;
	/* "localhost" is ::1 first, where few servers listen. */
	for (a = found; a && a->ai_family != AF_INET; a = a->ai_next)
		;
	a = a ? a : found;
	memcpy(&address->socket, a->ai_addr, a->ai_addrlen);
	address->bytes = a->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

int wire_address_parse(const char *text, bool is_numeric, struct wire_address *ret_address)
{
	struct wire_address address = { .bytes = 0 };
	int rc;

	if (strlen(text) >= sizeof(address.text))
		return -ENAMETOOLONG;
	strcpy(address.text, text);
	if (!strncmp(text, "unix:", 5))
		rc = parse_unix(text + 5, &address);
	else
		rc = parse_inet(text, is_numeric, &address);
	if (!rc)
		*ret_address = address;
	return rc;
}

bool wire_address_equal(const struct wire_address *a, const struct wire_address *b)
{
	return a->bytes == b->bytes && !memcmp(&a->socket, &b->socket, a->bytes);
}
