// SPDX-License-Identifier: GPL-2.0-or-later
/* What most commands begin with: answers, keys of a type, setting and removing keys. */
#include <string.h>
#include <strings.h>

#include "oltp-engine/server/kv/private.h"

enum oltp_rc answer_error(struct call *c, const char *text)
{
	resp_out_error(c->out, text);
	return KV_ANSWERED;
}

enum oltp_rc answer_syntax(struct call *c)
{
	return answer_error(c, "ERR syntax error");
}

enum oltp_rc answer_arity(struct call *c)
{
	char name[32];

	resp_out_errorf(c->out, "ERR wrong number of arguments for '%s' command",
			command_lower(c->command, name));
	return KV_ANSWERED;
}

enum oltp_rc answer_not_integer(struct call *c)
{
	return answer_error(c, "ERR value is not an integer or out of range");
}

enum oltp_rc answer_too_long(struct call *c)
{
	resp_out_errorf(c->out, "ERR string exceeds maximum allowed size (%u bytes)",
			KV_VALUE_MAX);
	return KV_ANSWERED;
}

enum oltp_rc answer_long_key(struct call *c)
{
	resp_out_errorf(c->out, "ERR key exceeds maximum allowed size (%u bytes)", KV_NAME_MAX);
	return KV_ANSWERED;
}

enum oltp_rc answer_long_pattern(struct call *c)
{
	resp_out_errorf(c->out, "ERR pattern exceeds maximum allowed size (%u bytes)", PATTERN_MAX);
	return KV_ANSWERED;
}

enum oltp_rc answer_value(struct call *c, const struct found *found)
{
	struct resp_arg value;
	enum oltp_rc rc;

	if (!found->row) {
		resp_out_null(c->out);
		return OLTP_OK;
	}
	rc = keyspace_value(&c->kv->ks, c->worker, found->slot, found->row, &value);
	if (!rc)
		resp_out_bulk(c->out, value.bytes, value.n);
	return rc;
}

bool arg_is(const struct resp_arg *arg, const char *upper)
{
	return arg->n == strlen(upper) && !strncasecmp(arg->bytes, upper, arg->n);
}

enum oltp_rc find_any(struct call *c, const struct resp_arg *name, bool exclusive,
		      struct found *ret_found)
{
	return keyspace_find(&c->kv->ks, c->worker, OWNER_KEYS, name, exclusive, ret_found);
}

enum oltp_rc find_key(struct call *c, const struct resp_arg *name, enum row_type type,
		      bool exclusive, struct found *ret_found)
{
	enum oltp_rc rc = find_any(c, name, exclusive, ret_found);

	if (rc || !ret_found->row || ret_found->row->type == type)
		return rc;
	return answer_error(c, WRONGTYPE_TEXT);
}

enum oltp_rc remove_key(struct call *c, struct found *found, uint32_t n_fields_max)
{
	c->n_keys--;
	if (found->row->type == ROW_HASH)
		return hash_remove(c, found, n_fields_max);
	return keyspace_remove(&c->kv->ks, c->worker, found);
}

enum oltp_rc set_found(struct call *c, struct found *found, const struct resp_arg *value)
{
	struct keyspace *ks = &c->kv->ks;
	enum oltp_rc rc;

	if (found->row && found->row->type == ROW_STRING)
		return keyspace_set(ks, c->worker, found, value, session_stamp(c->s));
	if (found->row) {
		rc = remove_key(c, found, HASH_FIELDS_AT_ONCE);
		if (rc)
			return rc;
	}
	c->n_keys++;
	return keyspace_insert(ks, c->worker, found, ROW_STRING, value, session_stamp(c->s));
}

enum oltp_rc set_key(struct call *c, const struct resp_arg *name, const struct resp_arg *value)
{
	enum overwrite what;
	struct found found;
	enum oltp_rc rc;

	rc = keyspace_overwrite(&c->kv->ks, c->worker, OWNER_KEYS, ROW_STRING, name, value,
				session_stamp(c->s), &found, &what);
	if (rc || what == OVERWRITE_DONE)
		return rc;
	if (what == OVERWRITE_NO) {
		rc = find_any(c, name, true, &found);
		if (rc)
			return rc;
	}
	return set_found(c, &found, value);
}
