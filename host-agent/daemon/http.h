/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Metrics over HTTP, for Prometheus: GET and HEAD of /metrics.  All of it runs in the event loop,
 * behind everything else that is due there: a client that is slow or hostile costs the agent
 * nothing but a place among few, and that for a short while only.  Each connection is for one
 * request.
 */
#ifndef EBB_DAEMON_HTTP_H
#define EBB_DAEMON_HTTP_H

#include <stdint.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include "util/err.h"

#define EBB_HTTP_MAX_CLIENTS	16	/* more wait until one of them has gone */
#define EBB_HTTP_LIFE_USEC	(10 * 1000000ull)
#define EBB_HTTP_FRESH_USEC	(1000000ull)

struct ebb_http;

struct ebb_http_config {
	struct sockaddr_storage addr;
	/* The text of the answer; the server frees it.  NULL: out of memory. */
	char *(*text)(void *ctx);
	void *ctx;
	uint64_t life_usec;	/* a connection ends after this, whatever state it is in */
	uint64_t fresh_usec;	/* so long a text is good for all who ask */
};

/* "127.0.0.1:9750" or "[::1]:9750"; -EINVAL with what is allowed. */
int ebb_http_address(const char *text, struct sockaddr_storage *ret, struct ebb_err *err);

/* Listens when it returns. */
int ebb_http_create(sd_event *event, const struct ebb_http_config *cfg, struct ebb_http **ret,
		    struct ebb_err *err);

/* Closes everything.  NULL is fine. */
void ebb_http_destroy(struct ebb_http *h);

/* Where it listens: another port than in the configuration if that was 0. */
uint16_t ebb_http_port(const struct ebb_http *h);

/* Connections now. */
unsigned int ebb_http_num_clients(const struct ebb_http *h);

#endif
