// SPDX-License-Identifier: GPL-2.0-or-later
/* COMMAND: the table of commands, in the forms that clients ask for. */
#include <stdio.h>
#include <string.h>

#include "oltp-engine/server/kv/subcommand.h"

static const struct {
	uint16_t flag;
	const char *name;
} flags[] = {
	{ CMD_WRITE, "write" },
	{ CMD_READ, "readonly" },
	{ CMD_DENY_OOM, "denyoom" },
	{ CMD_ADMIN, "admin" },
	{ CMD_FAST, "fast" },
	{ CMD_NO_AUTH, "no_auth" },
	{ CMD_NO_MULTI, "no_multi" },
};

#define N_FLAGS	(sizeof(flags) / sizeof(flags[0]))

/* ACL categories, of which there are no users. */
static void answer_categories(struct call *c, const struct command *command)
{
	char text[40];

	resp_out_set(c->out, 2);
	snprintf(text, sizeof(text), "@%s", command->group);
	resp_out_simple(c->out, text);
	resp_out_simple(c->out, command->flags & CMD_FAST ? "@fast" : "@slow");
}

static void answer_info(struct call *c, const struct command *command)
{
	char name[32];
	size_t n = 0;

	resp_out_array(c->out, 10);
	resp_out_text(c->out, command_lower(command, name));
	resp_out_integer(c->out, command->arity);
	for (size_t i = 0; i < N_FLAGS; i++)
		n += (command->flags & flags[i].flag) != 0;
	resp_out_set(c->out, n);
	for (size_t i = 0; i < N_FLAGS; i++) {
		if (command->flags & flags[i].flag)
			resp_out_simple(c->out, flags[i].name);
	}
	resp_out_integer(c->out, command->first_key);
	resp_out_integer(c->out, command->last_key);
	resp_out_integer(c->out, command->key_step);
	answer_categories(c, command);
	/* Tips, key specifications, subcommands: none. */
	resp_out_array(c->out, 0);
	resp_out_array(c->out, 0);
	resp_out_array(c->out, 0);
}

static void answer_docs(struct call *c, const struct command *command)
{
	char name[32];

	resp_out_text(c->out, command_lower(command, name));
	resp_out_map(c->out, 3);
	resp_out_text(c->out, "summary");
	resp_out_text(c->out, command->summary);
	resp_out_text(c->out, "since");
	resp_out_text(c->out, command->since);
	resp_out_text(c->out, "group");
	resp_out_text(c->out, command->group);
}

static enum oltp_rc command_count(struct call *c)
{
	resp_out_integer(c->out, kv_n_commands);
	return OLTP_OK;
}

static enum oltp_rc command_all(struct call *c)
{
	resp_out_array(c->out, kv_n_commands);
	for (uint32_t i = 0; i < kv_n_commands; i++)
		answer_info(c, &kv_commands[i]);
	return OLTP_OK;
}

static enum oltp_rc command_info(struct call *c)
{
	if (c->n == 2)
		return command_all(c);
	resp_out_array(c->out, c->n - 2);
	for (uint32_t i = 2; i < c->n; i++) {
		const struct command *command = command_find(c->kv, &c->args[i]);

		if (command)
			answer_info(c, command);
		else
			resp_out_null_array(c->out);
	}
	return OLTP_OK;
}

static enum oltp_rc command_docs(struct call *c)
{
	size_t at = c->out->n, n = 0;

	for (uint32_t i = 0; c->n == 2 && i < kv_n_commands; i++, n++)
		answer_docs(c, &kv_commands[i]);
	for (uint32_t i = 2; i < c->n; i++) {
		const struct command *command = command_find(c->kv, &c->args[i]);

		if (!command)
			continue;
		answer_docs(c, command);
		n++;
	}
	resp_out_map_at(c->out, at, n);
	return OLTP_OK;
}

static enum oltp_rc command_list(struct call *c)
{
	resp_out_set(c->out, kv_n_commands);
	for (uint32_t i = 0; i < kv_n_commands; i++) {
		char name[32];

		resp_out_text(c->out, command_lower(&kv_commands[i], name));
	}
	return OLTP_OK;
}

enum oltp_rc cmd_command(struct call *c)
{
	static const struct subcommand all[] = {
		{ "COUNT", 2, command_count },
		{ "INFO", -2, command_info },
		{ "DOCS", -2, command_docs },
		{ "LIST", 2, command_list },
	};

	return c->n == 1 ? command_all(c) :
			   subcommand_run(c, all, sizeof(all) / sizeof(all[0]));
}
