/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Talking to ebbd or ebb-volumed over a control socket: one request, then its answer. */
#ifndef EBB_UTIL_CLIENT_H
#define EBB_UTIL_CLIENT_H

#include <jansson.h>

struct client {
	const char *path;
	int fd;				/* -1: not connected */
	unsigned patience_s;		/* for each step of the way; 0: 20 s */
};

/*
 * Send a request (its reference is taken) and wait for the answer.  Returns the answer, also when
 * ebbd refuses; NULL with *ret_errno when ebbd can not be reached or stops in the middle.
 */
json_t *client_ask(struct client *c, json_t *request, int *ret_errno);
void client_close(struct client *c);

#endif
