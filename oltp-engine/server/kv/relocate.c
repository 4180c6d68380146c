// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RELOCATE: moves the database to another node (docs/relocation.md). The owner of the connections
 * knows what the words mean; the commands only carry them there.
 */
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/private.h"

#define WORDS_MAX	12u
#define WORD_BYTES	256u

/* The arguments as strings. False: an error was appended. */
static bool copy_words(struct call *c, char bytes[WORDS_MAX][WORD_BYTES],
		       char *words[WORDS_MAX + 1])
{
	if (c->n - 1 > WORDS_MAX) {
		answer_arity(c);
		return false;
	}
	for (uint32_t i = 1; i < c->n; i++) {
		const struct resp_arg *arg = &c->args[i];

		if (arg->n >= WORD_BYTES || memchr(arg->bytes, '\0', arg->n)) {
			answer_error(c, "ERR an argument of RELOCATE has at most 255 bytes");
			return false;
		}
		memcpy(bytes[i - 1], arg->bytes, arg->n);
		bytes[i - 1][arg->n] = '\0';
		words[i - 1] = bytes[i - 1];
	}
	words[c->n - 1] = NULL;
	return true;
}

enum oltp_rc cmd_relocate(struct call *c)
{
	const struct kv_relocate_ops *ops = c->kv->relocate;
	char bytes[WORDS_MAX][WORD_BYTES], *words[WORDS_MAX + 1];
	const char *why;

	if (!ops)
		return answer_error(c, "ERR the server was started without --relocatable or "
				       "--relocate-listen");
	if (arg_is(&c->args[1], "STATUS")) {
		if (c->n != 2)
			return answer_arity(c);
		ops->status(c->kv->relocate_ctx, c->out);
		return OLTP_OK;
	}
	if (!copy_words(c, bytes, words))
		return KV_ANSWERED;
	why = ops->order(c->kv->relocate_ctx, words, c->n - 1);
	if (why) {
		resp_out_errorf(c->out, "ERR %s", why);
		return KV_ANSWERED;
	}
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}
