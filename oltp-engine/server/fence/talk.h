/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talk.h - what a node and ebb-fenced say to each other: one line each way after a greeting, and
 * one question for each connection (docs/relocation.md, "Fencing"). No I/O.
 *
 *	ebb-fenced	EBBFENCE 1 NONCE
 *	node		QUESTION OWN PEER NONCE SEAL
 *	ebb-fenced	ANSWER SEAL			or	error WORDS
 *
 * QUESTION is is-fenced or fence; OWN and PEER are names of attachments, the node's and that of the
 * one that it asks about; ANSWER is none, won, lost or later (enum move_fence). Each seal covers
 * both nonces and all words before it, so neither side takes a line that was recorded before, and
 * nobody without the secret can say "won". A line has at most FENCE_LINE_MAX bytes with its line
 * end.
 */
#ifndef OLTP_FENCE_TALK_H
#define OLTP_FENCE_TALK_H

#include "oltp-engine/server/fence/secret.h"
#include "oltp-engine/server/move/move.h"

#define FENCE_LINE_MAX	256u
#define FENCE_NAME_MAX	40u

struct fence_question {
	bool fences;	/* else: is-fenced */
	char own[FENCE_NAME_MAX + 1], peer[FENCE_NAME_MAX + 1];
};

struct fence_nonces {
	char server[FENCE_HEX + 1], client[FENCE_HEX + 1];
};

/* A name of an attachment: 1 to 40 letters, digits, '.', '_', '-'. */
bool fence_is_name(const char *text);

/* These make a line with its end. */
void fence_put_greeting(const char *nonce, char ret_line[FENCE_LINE_MAX + 1]);
void fence_put_question(const struct secret *secret, const struct fence_nonces *nonces,
			const struct fence_question *question, char ret_line[FENCE_LINE_MAX + 1]);
void fence_put_answer(const struct secret *secret, const struct fence_nonces *nonces,
		      const struct fence_question *question, enum move_fence answer,
		      char ret_line[FENCE_LINE_MAX + 1]);

/*
 * These read a line without its end. Errors: -EPROTO (it is none of these), -EACCES (its seal is
 * of another secret, or of something else that was said); of an answer -EREMOTE (an error).
 */
int fence_get_greeting(const char *line, char ret_nonce[FENCE_HEX + 1]);
/* nonces: the server's is given, the client's returned. */
int fence_get_question(const struct secret *secret, const char *line,
		       struct fence_nonces *nonces, struct fence_question *ret_question);
int fence_get_answer(const struct secret *secret, const struct fence_nonces *nonces,
		     const struct fence_question *question, const char *line,
		     enum move_fence *ret_answer);

const char *fence_answer_name(enum move_fence answer);

#endif
