// SPDX-License-Identifier: GPL-2.0-or-later
/* CLIENT: names of connections, and a list of them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "oltp-engine/server/kv/subcommand.h"

/* Copies a name that can stand in the list of clients; false: it cannot. */
static bool set_text(struct call *c, char *to, const struct resp_arg *text)
{
	if (text->n >= SESSION_NAME_MAX)
		return false;
	for (uint32_t i = 0; i < text->n; i++) {
		if (text->bytes[i] < '!' || text->bytes[i] > '~')
			return false;
	}
	pthread_mutex_lock(&c->kv->sessions_lock);
	memcpy(to, text->bytes, text->n);
	to[text->n] = '\0';
	pthread_mutex_unlock(&c->kv->sessions_lock);
	return true;
}

bool client_set_name(struct call *c, const struct resp_arg *name)
{
	if (set_text(c, c->s->name, name))
		return true;
	if (name->n >= SESSION_NAME_MAX)
		answer_error(c, "ERR Client names are limited to 127 bytes");
	else
		answer_error(c, "ERR Client names cannot contain spaces, newlines or special "
				"characters.");
	return false;
}

static enum oltp_rc client_setname(struct call *c)
{
	if (!client_set_name(c, &c->args[2]))
		return KV_ANSWERED;
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

static enum oltp_rc client_getname(struct call *c)
{
	/* Only its own connection changes it. */
	if (c->s->name[0])
		resp_out_text(c->out, c->s->name);
	else
		resp_out_null(c->out);
	return OLTP_OK;
}

static enum oltp_rc client_setinfo(struct call *c)
{
	bool is_name = arg_is(&c->args[2], "LIB-NAME");

	if (!is_name && !arg_is(&c->args[2], "LIB-VER")) {
		resp_out_errorf(c->out, "ERR Unrecognized option '%.*s'",
				(int)(c->args[2].n < 128 ? c->args[2].n : 128), c->args[2].bytes);
		return KV_ANSWERED;
	}
	if (!set_text(c, is_name ? c->s->lib_name : c->s->lib_version, &c->args[3]))
		return answer_error(c, "ERR lib-name and lib-ver are limited to 127 bytes, without "
				       "spaces, newlines or special characters.");
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

static enum oltp_rc client_id(struct call *c)
{
	resp_out_integer(c->out, (int64_t)c->s->id);
	return OLTP_OK;
}

/* Under the lock of sessions. */
static void append_line(struct resp_out *text, struct kv_session *s, uint64_t now_ns)
{
	const struct command *last = atomic_load_explicit(&s->last, memory_order_relaxed);
	char line[8 * SESSION_NAME_MAX], name[32];
	int n = snprintf(line, sizeof(line),
			 "id=%llu addr=%s laddr=%s fd=%d name=%s age=%llu db=0 cmd=%s "
			 "user=default resp=%u lib-name=%s lib-ver=%s\n",
			 (unsigned long long)s->id, s->address, s->own_address, s->fd, s->name,
			 (unsigned long long)((now_ns - s->created_ns) / 1000000000u),
			 last ? command_lower(last, name) : "NULL",
			 (unsigned int)atomic_load_explicit(&s->version, memory_order_relaxed),
			 s->lib_name, s->lib_version);

	resp_out_raw(text, line, (size_t)n);
}

static enum oltp_rc answer_lines(struct call *c, bool only_own)
{
	struct resp_out text;
	struct timespec now;
	uint64_t now_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	resp_out_init(&text, c->out->max);
	pthread_mutex_lock(&c->kv->sessions_lock);
	if (only_own) {
		append_line(&text, c->s, now_ns);
	} else {
		for (struct kv_session *s = c->kv->sessions; s; s = s->next)
			append_line(&text, s, now_ns);
	}
	pthread_mutex_unlock(&c->kv->sessions_lock);
	if (text.has_failed)
		c->out->has_failed = true;
	else
		resp_out_verbatim(c->out, text.bytes, text.n);
	resp_out_finish(&text);
	return OLTP_OK;
}

static enum oltp_rc client_list(struct call *c)
{
	return answer_lines(c, false);
}

static enum oltp_rc client_info(struct call *c)
{
	return answer_lines(c, true);
}

enum oltp_rc cmd_client(struct call *c)
{
	static const struct subcommand all[] = {
		{ "ID", 2, client_id },
		{ "SETNAME", 3, client_setname },
		{ "GETNAME", 2, client_getname },
		{ "SETINFO", 4, client_setinfo },
		{ "LIST", 2, client_list },
		{ "INFO", 2, client_info },
	};

	return subcommand_run(c, all, sizeof(all) / sizeof(all[0]));
}
