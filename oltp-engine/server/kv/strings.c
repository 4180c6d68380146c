// SPDX-License-Identifier: GPL-2.0-or-later
/* Strings: whole ones, several at once, and parts of them. */
#include <string.h>

#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/private.h"

static enum oltp_rc answer_ok(struct call *c)
{
	resp_out_raw(c->out, "+OK\r\n", 5);
	return OLTP_OK;
}

enum oltp_rc cmd_get(struct call *c)
{
	struct found found;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, false, &found);

	return rc ?: answer_value(c, &found);
}

enum set_option {
	SET_NX = 1 << 0,
	SET_XX = 1 << 1,
	SET_GET = 1 << 2,
};

/* KV_ANSWERED: what is refused. */
static enum oltp_rc set_options(struct call *c, uint32_t *ret_options)
{
	uint32_t options = 0;

	for (uint32_t i = 3; i < c->n; i++) {
		const struct resp_arg *arg = &c->args[i];

		if (arg_is(arg, "NX") && !(options & SET_XX))
			options |= SET_NX;
		else if (arg_is(arg, "XX") && !(options & SET_NX))
			options |= SET_XX;
		else if (arg_is(arg, "GET"))
			options |= SET_GET;
		else if ((arg_is(arg, "EX") || arg_is(arg, "PX") || arg_is(arg, "EXAT") ||
			  arg_is(arg, "PXAT")) && i + 1 < c->n)
			return answer_error(c, "ERR keys do not expire here: EX, PX, EXAT and "
					       "PXAT are not supported");
		else
			return answer_syntax(c);
	}
	*ret_options = options;
	return OLTP_OK;
}

enum oltp_rc cmd_set(struct call *c)
{
	uint32_t options = 0;
	struct found found;
	enum oltp_rc rc;

	if (c->n > 3) {
		rc = set_options(c, &options);
		if (rc)
			return rc;
	}
	if (c->args[2].n > KV_VALUE_MAX)
		return answer_too_long(c);
	if (!options) {
		rc = set_key(c, &c->args[1], &c->args[2]);
		return rc ?: answer_ok(c);
	}
	rc = options & SET_GET ? find_key(c, &c->args[1], ROW_STRING, true, &found) :
				 find_any(c, &c->args[1], true, &found);
	if (!rc && options & SET_GET)
		rc = answer_value(c, &found);
	if (rc)
		return rc;
	if (found.row ? options & SET_NX : options & SET_XX) {
		if (!(options & SET_GET))
			resp_out_null(c->out);
		return OLTP_OK;
	}
	rc = set_found(c, &found, &c->args[2]);
	return rc || options & SET_GET ? rc : answer_ok(c);
}

enum oltp_rc cmd_setnx(struct call *c)
{
	struct found found;
	enum oltp_rc rc;
	bool is_there;

	if (c->args[2].n > KV_VALUE_MAX)
		return answer_too_long(c);
	rc = find_any(c, &c->args[1], true, &found);
	is_there = !rc && found.row;
	if (!rc && !is_there)
		rc = set_found(c, &found, &c->args[2]);
	if (!rc)
		resp_out_integer(c->out, !is_there);
	return rc;
}

enum oltp_rc cmd_getset(struct call *c)
{
	struct found found;
	enum oltp_rc rc;

	if (c->args[2].n > KV_VALUE_MAX)
		return answer_too_long(c);
	rc = find_key(c, &c->args[1], ROW_STRING, true, &found);
	if (!rc)
		rc = answer_value(c, &found);
	return rc ?: set_found(c, &found, &c->args[2]);
}

enum oltp_rc cmd_getdel(struct call *c)
{
	struct found found;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, true, &found);

	if (!rc)
		rc = answer_value(c, &found);
	return rc || !found.row ? rc : remove_key(c, &found, 0);
}

enum oltp_rc cmd_mget(struct call *c)
{
	resp_out_array(c->out, c->n - 1);
	for (uint32_t i = 1; i < c->n; i++)
		keyspace_prefetch(&c->kv->ks, &c->args[i]);
	for (uint32_t i = 1; i < c->n; i++) {
		struct found found;
		enum oltp_rc rc = find_any(c, &c->args[i], false, &found);

		if (rc)
			return rc;
		/* A key of another type counts as absent. */
		if (found.row && found.row->type != ROW_STRING)
			found.row = NULL;
		rc = answer_value(c, &found);
		if (rc)
			return rc;
	}
	return OLTP_OK;
}

/* KV_ANSWERED: not pairs of keys and values, or a value is too long. */
static enum oltp_rc check_pairs(struct call *c)
{
	if (c->n % 2 == 0)
		return answer_arity(c);
	for (uint32_t i = 2; i < c->n; i += 2) {
		if (c->args[i].n > KV_VALUE_MAX)
			return answer_too_long(c);
	}
	return OLTP_OK;
}

static enum oltp_rc set_pairs(struct call *c)
{
	enum oltp_rc rc = OLTP_OK;

	for (uint32_t i = 1; i < c->n; i += 2)
		keyspace_prefetch(&c->kv->ks, &c->args[i]);
	for (uint32_t i = 1; !rc && i < c->n; i += 2)
		rc = set_key(c, &c->args[i], &c->args[i + 1]);
	return rc;
}

enum oltp_rc cmd_mset(struct call *c)
{
	enum oltp_rc rc = check_pairs(c);

	if (!rc)
		rc = set_pairs(c);
	return rc ?: answer_ok(c);
}

enum oltp_rc cmd_msetnx(struct call *c)
{
	enum oltp_rc rc = check_pairs(c);

	for (uint32_t i = 1; !rc && i < c->n; i += 2) {
		struct found found;

		rc = find_any(c, &c->args[i], true, &found);
		if (!rc && found.row) {
			resp_out_integer(c->out, 0);
			return OLTP_OK;
		}
	}
	if (!rc)
		rc = set_pairs(c);
	if (!rc)
		resp_out_integer(c->out, 1);
	return rc;
}

enum oltp_rc cmd_strlen(struct call *c)
{
	struct found found;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, false, &found);

	if (!rc)
		resp_out_integer(c->out, found.row ? found.row->value_bytes : 0);
	return rc;
}

/* bytes are put at offset into the value of what was found; zeros fill a gap. */
static enum oltp_rc put_at(struct call *c, struct found *found, uint32_t offset,
			   const struct resp_arg *bytes)
{
	struct resp_arg old = { "", 0 };
	char text[KV_VALUE_MAX];
	struct resp_arg value = { text, offset + bytes->n };
	enum oltp_rc rc = OLTP_OK;

	if (found->row)
		rc = keyspace_value(&c->kv->ks, c->worker, found->slot, found->row, &old);
	if (rc)
		return rc;
	memcpy(text, old.bytes, old.n);
	if (offset > old.n)
		memset(text + old.n, 0, offset - old.n);
	if (bytes->n > 0)
		memcpy(text + offset, bytes->bytes, bytes->n);
	if (value.n < old.n)
		value.n = old.n;
	rc = set_found(c, found, &value);
	if (!rc)
		resp_out_integer(c->out, value.n);
	return rc;
}

enum oltp_rc cmd_append(struct call *c)
{
	struct found found;
	enum oltp_rc rc = find_key(c, &c->args[1], ROW_STRING, true, &found);
	uint32_t n = !rc && found.row ? found.row->value_bytes : 0;

	if (rc)
		return rc;
	if (c->args[2].n > KV_VALUE_MAX - n)
		return answer_too_long(c);
	return put_at(c, &found, n, &c->args[2]);
}

enum oltp_rc cmd_setrange(struct call *c)
{
	const struct resp_arg *bytes = &c->args[3];
	struct found found;
	int64_t offset;
	enum oltp_rc rc;

	if (!number_parse(c->args[2].bytes, c->args[2].n, &offset))
		return answer_not_integer(c);
	if (offset < 0)
		return answer_error(c, "ERR offset is out of range");
	rc = find_key(c, &c->args[1], ROW_STRING, bytes->n > 0, &found);
	if (rc)
		return rc;
	if (bytes->n == 0) {
		resp_out_integer(c->out, found.row ? found.row->value_bytes : 0);
		return OLTP_OK;
	}
	if (bytes->n > KV_VALUE_MAX || offset > KV_VALUE_MAX - bytes->n)
		return answer_too_long(c);
	return put_at(c, &found, (uint32_t)offset, bytes);
}

/* Positions from the end are negative; both are moved into the n bytes there are. */
static bool clamp_range(int64_t *first, int64_t *last, int64_t n)
{
	if (*first < 0 && *last < 0 && *first > *last)
		return false;
	if (*first < 0)
		*first = *first < -n ? 0 : *first + n;
	if (*last < 0)
		*last = *last < -n ? 0 : *last + n;
	if (*last >= n)
		*last = n - 1;
	return *first <= *last && n > 0;
}

enum oltp_rc cmd_getrange(struct call *c)
{
	struct resp_arg value = { "", 0 };
	int64_t first, last;
	struct found found;
	enum oltp_rc rc;

	if (!number_parse(c->args[2].bytes, c->args[2].n, &first) ||
	    !number_parse(c->args[3].bytes, c->args[3].n, &last))
		return answer_not_integer(c);
	rc = find_key(c, &c->args[1], ROW_STRING, false, &found);
	if (!rc && found.row)
		rc = keyspace_value(&c->kv->ks, c->worker, found.slot, found.row, &value);
	if (rc)
		return rc;
	if (clamp_range(&first, &last, value.n))
		resp_out_bulk(c->out, value.bytes + first, (size_t)(last - first + 1));
	else
		resp_out_bulk(c->out, "", 0);
	return OLTP_OK;
}
