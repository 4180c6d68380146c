/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * desk.h - ebb-fenced's side of one connection: greets, takes one question, answers it. A client
 * that has not proved within some seconds that it knows the secret is told an error and
 * disconnected.
 */
#ifndef OLTP_FENCE_DESK_H
#define OLTP_FENCE_DESK_H

#include "oltp-engine/server/fence/talk.h"

struct fence_desk {
	struct secret secret;
	uint32_t patience_ms;	/* until the question has come */
	/*
	 * Answers the question in the name of the node that has asked, for instance by asking
	 * ebb-volumed. Any thread.
	 */
	enum move_fence (*ask)(void *ctx, const struct fence_question *question);
	void *ctx;
};

/*
 * On a connected stream socket, which stays open. 0: answered, see ret_question and ret_answer.
 * Errors: those of fence_read_line and fence_get_question; the other side was told what was wrong
 * but for -EPIPE.
 */
int fence_desk_serve(const struct fence_desk *desk, int fd, struct fence_question *ret_question,
		     enum move_fence *ret_answer);

/* Answers an error to a client that comes while there are too many others. */
void fence_desk_turn_away(int fd);

#endif
