// SPDX-License-Identifier: GPL-2.0-or-later
#include "oltp-engine/server/kv/subcommand.h"

#include <ctype.h>

enum oltp_rc subcommand_run(struct call *c, const struct subcommand *all, uint32_t n)
{
	const struct resp_arg *word = &c->args[1];
	char name[32], sub[32];
	uint32_t i, k;

	for (i = 0; i < n && !arg_is(word, all[i].name); i++)
		;
	if (i == n) {
		resp_out_errorf(c->out, "ERR unknown subcommand '%.*s'. Try %s HELP.",
				(int)(word->n < 128 ? word->n : 128), word->bytes,
				c->command->name);
		return KV_ANSWERED;
	}
	if (all[i].arity > 0 ? c->n == (uint32_t)all[i].arity : c->n >= (uint32_t)-all[i].arity)
		return all[i].run(c);
	for (k = 0; all[i].name[k]; k++)
		sub[k] = (char)tolower((unsigned char)all[i].name[k]);
	sub[k] = '\0';
	resp_out_errorf(c->out, "ERR wrong number of arguments for '%s|%s' command",
			command_lower(c->command, name), sub);
	return KV_ANSWERED;
}
