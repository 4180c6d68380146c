// SPDX-License-Identifier: GPL-2.0-or-later
/* What a client says of itself and of its connection. */
#include <string.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/private.h"

enum oltp_rc cmd_ping(struct call *c)
{
	if (c->n > 2)
		return answer_arity(c);
	if (c->n == 2)
		resp_out_bulk(c->out, c->args[1].bytes, c->args[1].n);
	else
		resp_out_simple(c->out, "PONG");
	return OLTP_OK;
}

enum oltp_rc cmd_echo(struct call *c)
{
	resp_out_bulk(c->out, c->args[1].bytes, c->args[1].n);
	return OLTP_OK;
}

/* Takes the same time whatever the bytes are that differ. */
static bool is_password(const char *password, const struct resp_arg *arg)
{
	size_t n = strlen(password);
	unsigned char differs = n != arg->n;

	for (uint32_t i = 0; i < arg->n && n > 0; i++)
		differs |= (unsigned char)(password[i % n] ^ arg->bytes[i]);
	return !differs;
}

/* There is one user, "default". Without a password every one is right for it. */
static bool is_user(const struct call *c, const struct resp_arg *user,
		    const struct resp_arg *password)
{
	return (!user || (user->n == 7 && !memcmp(user->bytes, "default", 7))) &&
	       (!c->kv->password || is_password(c->kv->password, password));
}

#define WRONGPASS_TEXT	"WRONGPASS invalid username-password pair or user is disabled."

enum oltp_rc cmd_auth(struct call *c)
{
	if (c->n > 3)
		return answer_syntax(c);
	if (c->n == 2 && !c->kv->password)
		return answer_error(c, "ERR AUTH <password> called without any password configured "
				       "for the default user. Are you sure your configuration is "
				       "correct?");
	if (!is_user(c, c->n == 3 ? &c->args[1] : NULL, &c->args[c->n - 1]))
		return answer_error(c, WRONGPASS_TEXT);
	c->s->is_authenticated = true;
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

static void answer_hello(struct call *c)
{
	resp_out_map(c->out, 7);
	resp_out_text(c->out, "server");
	resp_out_text(c->out, "redis");
	resp_out_text(c->out, "version");
	resp_out_text(c->out, KV_REDIS_VERSION);
	resp_out_text(c->out, "proto");
	resp_out_integer(c->out, c->s->version);
	resp_out_text(c->out, "id");
	resp_out_integer(c->out, (int64_t)c->s->id);
	resp_out_text(c->out, "mode");
	resp_out_text(c->out, "standalone");
	resp_out_text(c->out, "role");
	resp_out_text(c->out, "master");
	resp_out_text(c->out, "modules");
	resp_out_array(c->out, 0);
}

/* HELLO [version [AUTH user password] [SETNAME name]]: all of it or nothing. */
enum oltp_rc cmd_hello(struct call *c)
{
	const struct resp_arg *name = NULL;
	bool is_authenticated = c->s->is_authenticated;
	int64_t version = c->s->version;

	if (c->n > 1 && !number_parse(c->args[1].bytes, c->args[1].n, &version))
		return answer_error(c, "ERR Protocol version is not an integer or out of range");
	if (version < 2 || version > 3)
		return answer_error(c, "NOPROTO unsupported protocol version");
	for (uint32_t i = 2; i < c->n; i++) {
		const struct resp_arg *arg = &c->args[i];

		if (arg_is(arg, "AUTH") && i + 2 < c->n) {
			if (!is_user(c, arg + 1, arg + 2))
				return answer_error(c, WRONGPASS_TEXT);
			is_authenticated = true;
			i += 2;
		} else if (arg_is(arg, "SETNAME") && i + 1 < c->n) {
			name = arg + 1;
			i++;
		} else {
			resp_out_errorf(c->out, "ERR Syntax error in HELLO option '%.*s'",
					(int)(arg->n < 128 ? arg->n : 128), arg->bytes);
			return KV_ANSWERED;
		}
	}
	if (!is_authenticated)
		return answer_error(c, "NOAUTH HELLO must be called with the client already "
				       "authenticated, otherwise the HELLO AUTH <user> <pass> "
				       "option can be used to authenticate the client and select "
				       "the RESP protocol version at the same time");
	if (name && !client_set_name(c, name))
		return KV_ANSWERED;
	c->s->is_authenticated = true;
	c->s->version = (uint8_t)version;
	c->out->version = (uint8_t)version;
	answer_hello(c);
	return OLTP_OK;
}

enum oltp_rc cmd_select(struct call *c)
{
	int64_t db;

	if (!number_parse(c->args[1].bytes, c->args[1].n, &db))
		return answer_not_integer(c);
	if (db != 0)
		return answer_error(c, "ERR DB index is out of range");
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

enum oltp_rc cmd_quit(struct call *c)
{
	c->after = KV_CLOSE;
	resp_out_simple(c->out, "OK");
	return OLTP_OK;
}

enum oltp_rc cmd_reset(struct call *c)
{
	session_reset(c->s);
	c->out->version = 2;
	resp_out_simple(c->out, "RESET");
	return OLTP_OK;
}
