/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: a line that a node or ebb-fenced receives keeps the rules of talk.h or is refused,
 * and a sealed line of which anything was changed is refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "oltp-engine/server/fence/talk.h"

#define REQUIRE(cond)	do { if (!(cond)) abort(); } while (0)

/* Longer than any line, so that lines that are too long are tried, too. */
#define TEXT_MAX	(2 * FENCE_LINE_MAX)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct secret secret = { "a secret of the database", 24 };
static const struct fence_nonces nonces = {
	"0000000000000000000000000000000000000000000000000000000000000000",
	"1111111111111111111111111111111111111111111111111111111111111111",
};
static const struct fence_question asked = { true, "node-a", "node.b_2" };

/* made has a line end, line has none. */
static bool is_same(const char *made, const char *line)
{
	size_t n = strlen(line);

	return strlen(made) == n + 1 && !memcmp(made, line, n) && made[n] == '\n';
}

/* Each of these returns what the parser did. What is taken is what would have been sent. */

static int greeting(const char *line)
{
	char nonce[FENCE_HEX + 1], made[FENCE_LINE_MAX + 1];
	int rc = fence_get_greeting(line, nonce);

	REQUIRE(rc == 0 || rc == -EPROTO);
	if (rc)
		return rc;
	fence_put_greeting(nonce, made);
	REQUIRE(is_same(made, line));
	return 0;
}

static int question(const char *line)
{
	struct fence_nonces got = nonces;
	struct fence_question told;
	char made[FENCE_LINE_MAX + 1];
	int rc = fence_get_question(&secret, line, &got, &told);

	REQUIRE(rc == 0 || rc == -EPROTO || rc == -EACCES);
	if (rc)
		return rc;
	REQUIRE(fence_is_name(told.own) && fence_is_name(told.peer));
	fence_put_question(&secret, &got, &told, made);
	REQUIRE(is_same(made, line));
	return 0;
}

static int answer(const char *line)
{
	char made[FENCE_LINE_MAX + 1];
	enum move_fence told;
	int rc = fence_get_answer(&secret, &nonces, &asked, line, &told);

	REQUIRE(rc == 0 || rc == -EPROTO || rc == -EACCES || rc == -EREMOTE);
	if (rc)
		return rc;
	fence_put_answer(&secret, &nonces, &asked, told, made);
	REQUIRE(is_same(made, line));
	return 0;
}

/* The bytes are pairs: where a good line is changed, and to what. */
static void change(const char *good, int (*get)(const char *line), const uint8_t *data, size_t size)
{
	char line[FENCE_LINE_MAX + 1];
	size_t n = strlen(good) - 1;

	memcpy(line, good, n);
	line[n] = '\0';
	REQUIRE(get(line) == 0);
	for (size_t i = 0; i + 1 < size; i += 2)
		line[data[i] % n] = (char)data[i + 1];
	REQUIRE(is_same(good, line) == (get(line) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1], good[FENCE_LINE_MAX + 1];
	size_t n = size < TEXT_MAX ? size : TEXT_MAX;

	memcpy(text, data, n);
	text[n] = '\0';
	greeting(text);
	question(text);
	answer(text);
	fence_put_question(&secret, &nonces, &asked, good);
	change(good, question, data, size);
	fence_put_answer(&secret, &nonces, &asked, MOVE_FENCE_WON, good);
	change(good, answer, data, size);
	return 0;
}
