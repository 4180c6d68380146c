/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Talking to ebbd over its control socket. */
#ifndef EBB_CLI_CLIENT_H
#define EBB_CLI_CLIENT_H

#include <jansson.h>

/* Exit codes of ebbctl. */
enum { EXIT_DONE = 0, EXIT_REFUSED = 1, EXIT_USAGE = 2, EXIT_UNREACHABLE = 3 };

struct client {
	const char *path;
	int fd;				/* -1: not connected */
};

/*
 * Send a request (its reference is taken) and wait for the answer.  Returns the answer, also when
 * ebbd refuses; NULL with *ret_errno when ebbd can not be reached or stops in the middle.
 */
json_t *client_ask(struct client *c, json_t *request, int *ret_errno);
void client_close(struct client *c);

#endif
