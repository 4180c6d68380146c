/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands of the Redis protocol to a server of a database: one connection, one at a time. */
#ifndef EBB_CLI_RESP_H
#define EBB_CLI_RESP_H

#include <stddef.h>

struct resp {
	int fd;				/* -1: not connected */
	char *reply;			/* the last one: a text, without its mark */
};

/*
 * address: HOST:PORT, [IPV6]:PORT or unix:PATH.  0 or -errno (-EINVAL: no address, or no such
 * host).
 */
int resp_connect(struct resp *resp, const char *address);

/*
 * Sends num words and waits for the answer, in resp->reply until the next one.  0; 1: it is an
 * error; or -errno (-EPROTO: an answer that is no text).
 */
int resp_ask(struct resp *resp, const char *const *words, size_t num);

void resp_close(struct resp *resp);

#endif
