/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of nodes: "HOST:PORT", "[IPV6]:PORT" or "unix:PATH". */
#ifndef LOAD_ADDRESS_H
#define LOAD_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "push.h"

struct wire_address {
	char text[PUSH_ADDRESS_BYTES];	/* as it was given */
	struct sockaddr_storage socket;
	socklen_t bytes;
};

/*
 * Of a name with several addresses, the first of IPv4 is taken, else the first. With is_numeric, a
 * host name is an error: looking one up may block for seconds. Errors: -EINVAL (syntax),
 * -ENAMETOOLONG, -EADDRNOTAVAIL (there is no such host).
 */
int wire_address_parse(const char *text, bool is_numeric, struct wire_address *ret_address);

/* Whether both are the same socket, however they are written. */
bool wire_address_equal(const struct wire_address *a, const struct wire_address *b);

#endif
