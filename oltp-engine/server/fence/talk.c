// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/fence/talk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define GREETING	"EBBFENCE 1 "
#define SEALED_MAX	512u
#define NAME_CHARS	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define HEX_CHARS	"0123456789abcdef"

static const char *const answer_names[] = {
	[MOVE_FENCE_LATER] = "later", [MOVE_FENCE_WON] = "won", [MOVE_FENCE_LOST] = "lost",
	[MOVE_FENCE_NONE] = "none",
};

_Static_assert(sizeof("is-fenced  \n") + 2 * FENCE_NAME_MAX + 2 * (FENCE_HEX + 1) <=
	       FENCE_LINE_MAX, "the longest question");

const char *fence_answer_name(enum move_fence answer)
{
	return answer_names[answer];
}

bool fence_is_name(const char *text)
{
	size_t n = strlen(text);

	return n && n <= FENCE_NAME_MAX && strspn(text, NAME_CHARS) == n;
}

static const char *question_name(const struct fence_question *question)
{
	return question->fences ? "fence" : "is-fenced";
}

/* Cuts the line into n words with one space between two; false: it has more or fewer. */
static bool cut(char *line, char **ret_words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		ret_words[i] = line;
		line = strchr(line, ' ');
		if (!line != (i == n - 1))
			return false;
		if (line)
			*line++ = '\0';
	}
	return true;
}

static bool is_hex(const char *text)
{
	return strlen(text) == FENCE_HEX && strspn(text, HEX_CHARS) == FENCE_HEX;
}

/* No word has a space in it, so two different talks are never the same text. */
static void sealed_question(const struct fence_nonces *nonces,
			    const struct fence_question *question, char ret[SEALED_MAX])
{
	snprintf(ret, SEALED_MAX, "ebb-fence question %s %s %s %s %s", nonces->server,
		 nonces->client, question_name(question), question->own, question->peer);
}

static void sealed_answer(const struct fence_nonces *nonces,
			  const struct fence_question *question, const char *answer,
			  char ret[SEALED_MAX])
{
	snprintf(ret, SEALED_MAX, "ebb-fence answer %s %s %s %s %s %s", nonces->server,
		 nonces->client, question_name(question), question->own, question->peer, answer);
}

void fence_put_greeting(const char *nonce, char ret_line[FENCE_LINE_MAX + 1])
{
	snprintf(ret_line, FENCE_LINE_MAX + 1, GREETING "%s\n", nonce);
}

int fence_get_greeting(const char *line, char ret_nonce[FENCE_HEX + 1])
{
	const char *nonce = line + strlen(GREETING);

	if (strncmp(line, GREETING, strlen(GREETING)) || !is_hex(nonce))
		return -EPROTO;
	strcpy(ret_nonce, nonce);
	return 0;
}

void fence_put_question(const struct secret *secret, const struct fence_nonces *nonces,
			const struct fence_question *question, char ret_line[FENCE_LINE_MAX + 1])
{
	char text[SEALED_MAX], seal[FENCE_HEX + 1];

	sealed_question(nonces, question, text);
	fence_seal(secret, text, seal);
	snprintf(ret_line, FENCE_LINE_MAX + 1, "%s %s %s %s %s\n", question_name(question),
		 question->own, question->peer, nonces->client, seal);
}

int fence_get_question(const struct secret *secret, const char *line,
		       struct fence_nonces *nonces, struct fence_question *ret_question)
{
	char copy[FENCE_LINE_MAX + 1], text[SEALED_MAX], *words[5];
	struct fence_question question;

	if (strlen(line) > FENCE_LINE_MAX)
		return -EPROTO;
	strcpy(copy, line);
	if (!cut(copy, words, 5) || (strcmp(words[0], "fence") && strcmp(words[0], "is-fenced")) ||
	    !fence_is_name(words[1]) || !fence_is_name(words[2]) || !strcmp(words[1], words[2]) ||
	    !is_hex(words[3]) || !is_hex(words[4]))
		return -EPROTO;
	question.fences = !strcmp(words[0], "fence");
	strcpy(question.own, words[1]);
	strcpy(question.peer, words[2]);
	strcpy(nonces->client, words[3]);
	sealed_question(nonces, &question, text);
	if (!fence_seal_fits(secret, text, words[4]))
		return -EACCES;
	*ret_question = question;
	return 0;
}

void fence_put_answer(const struct secret *secret, const struct fence_nonces *nonces,
		      const struct fence_question *question, enum move_fence answer,
		      char ret_line[FENCE_LINE_MAX + 1])
{
	char text[SEALED_MAX], seal[FENCE_HEX + 1];

	sealed_answer(nonces, question, fence_answer_name(answer), text);
	fence_seal(secret, text, seal);
	snprintf(ret_line, FENCE_LINE_MAX + 1, "%s %s\n", fence_answer_name(answer), seal);
}

int fence_get_answer(const struct secret *secret, const struct fence_nonces *nonces,
		     const struct fence_question *question, const char *line,
		     enum move_fence *ret_answer)
{
	char copy[FENCE_LINE_MAX + 1], text[SEALED_MAX], *words[2];

	if (strlen(line) > FENCE_LINE_MAX)
		return -EPROTO;
	if (!strncmp(line, "error ", 6))
		return -EREMOTE;
	strcpy(copy, line);
	if (!cut(copy, words, 2) || !is_hex(words[1]))
		return -EPROTO;
	for (uint32_t i = 0; i < sizeof(answer_names) / sizeof(*answer_names); i++) {
		if (strcmp(words[0], answer_names[i]) != 0)
			continue;
		sealed_answer(nonces, question, words[0], text);
		if (!fence_seal_fits(secret, text, words[1]))
			return -EACCES;
		*ret_answer = (enum move_fence)i;
		return 0;
	}
	return -EPROTO;
}
