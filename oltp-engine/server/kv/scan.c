// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Going through all keys, or all fields of a hash, in the order of their slots (N3: they never
 * change). A cursor is a position in that order, without the bits that are the same for all; 0 is
 * the start, and the end. So nothing need be remembered between two calls, and what is there all
 * the time is met (K5).
 */
#include "oltp-engine/server/kv/match.h"
#include "oltp-engine/server/kv/number.h"
#include "oltp-engine/server/kv/private.h"

#define COUNT_DEFAULT	10u
#define COUNT_MAX	1024u	/* of one call, whatever it asks for */

struct scan {
	struct call *c;
	struct resp_arg pattern;	/* bytes NULL: all */
	int type;			/* enum row_type; -1: all */
	uint64_t count;
	bool with_values;		/* of fields */
	size_t before;			/* bytes of the reply before the first one shown */
	size_t n;			/* strings shown */
	enum oltp_rc rc;
};

static int scan_row(void *ctx, uint64_t slot, const struct row *row)
{
	struct scan *s = ctx;
	struct call *c = s->c;
	struct resp_arg text;

	if (s->type >= 0 && row->type != s->type)
		return 0;
	s->rc = keyspace_name(&c->kv->ks, c->worker, slot, row, &text);
	if (s->rc)
		return 1;
	if (s->pattern.bytes &&
	    !match_pattern(s->pattern.bytes, s->pattern.n, text.bytes, text.n))
		return 0;
	resp_out_bulk(c->out, text.bytes, text.n);
	s->n++;
	if (s->with_values) {
		s->rc = keyspace_value(&c->kv->ks, c->worker, slot, row, &text);
		if (s->rc)
			return 1;
		resp_out_bulk(c->out, text.bytes, text.n);
		s->n++;
	}
	return c->out->has_failed;
}

static void scan_again(void *ctx)
{
	struct scan *s = ctx;

	resp_out_truncate(s->c->out, s->before);
	s->n = 0;
}

/* Options from args[at] on. KV_ANSWERED: what is refused. */
static enum oltp_rc scan_options(struct call *c, uint32_t at, bool with_type, struct scan *ret)
{
	*ret = (struct scan){ .c = c, .type = -1, .count = COUNT_DEFAULT };
	for (; at < c->n; at += 2) {
		const struct resp_arg *arg = &c->args[at];
		int64_t count;

		if (at + 1 == c->n)
			return answer_syntax(c);
		if (arg_is(arg, "COUNT")) {
			if (!number_parse(arg[1].bytes, arg[1].n, &count))
				return answer_not_integer(c);
			if (count < 1)
				return answer_syntax(c);
			ret->count = count < COUNT_MAX ? (uint64_t)count : COUNT_MAX;
		} else if (arg_is(arg, "MATCH")) {
			if (arg[1].n > PATTERN_MAX)
				return answer_long_pattern(c);
			ret->pattern = arg[1];
		} else if (with_type && arg_is(arg, "TYPE")) {
			/* Of other types there are no keys. */
			ret->type = arg_is(&arg[1], "STRING") ? ROW_STRING :
				    arg_is(&arg[1], "HASH") ? ROW_HASH : ROW_GONE;
		} else {
			return answer_syntax(c);
		}
	}
	return OLTP_OK;
}

static bool cursor_parse(const struct resp_arg *arg, uint64_t *ret_cursor)
{
	return number_parse_unsigned(arg->bytes, arg->n, ret_cursor);
}

/*
 * Shows keys or fields of the range from the cursor on; the first position of the range has the
 * cursor 0. The reply is an array of the next cursor (behind, if all of the range were shown; 0:
 * nothing follows) and the array of the keys or fields. Their number is known last, so the head of
 * the array is moved in front of them.
 */
static enum oltp_rc answer_scan(struct call *c, struct scan *s, struct oltp_range range,
				uint64_t behind, uint64_t cursor)
{
	const struct keyspace_walk walk = { scan_row, scan_again, s };
	uint64_t base = range.from, next = 0;
	char text[NUMBER_MAX];
	enum oltp_rc rc;

	s->before = c->out->n;
	/* Behind a cursor that was never given there is nothing. */
	if (cursor <= range.to - base) {
		range.from = base + cursor;
		rc = keyspace_walk(&c->kv->ks, c->worker, &range, s->count, &walk, &next);
		if (rc || s->rc || c->out->has_failed)
			return rc ?: s->rc;
		if (!next)
			next = behind;
	}
	resp_out_array_at(c->out, s->before, s->n);
	resp_out_bulk_at(c->out, s->before, text,
			 number_print(text, next ? (int64_t)(next - base) : 0));
	resp_out_array_at(c->out, s->before, 2);
	return OLTP_OK;
}

enum oltp_rc cmd_scan(struct call *c)
{
	struct oltp_range keys;
	uint64_t cursor;
	struct scan s;
	enum oltp_rc rc;

	if (!cursor_parse(&c->args[1], &cursor))
		return answer_error(c, "ERR invalid cursor");
	rc = scan_options(c, 2, true, &s);
	if (rc)
		return rc;
	keys = keys_from(c, KEYSPACE_KEYS_FIRST | cursor);
	keys.from = KEYSPACE_KEYS_FIRST;
	return answer_scan(c, &s, keys, keys.to == UINT64_MAX ? 0 : keys.to + 1, cursor);
}

enum oltp_rc cmd_hscan(struct call *c)
{
	struct found key;
	uint64_t cursor;
	struct scan s;
	enum oltp_rc rc;

	if (!cursor_parse(&c->args[2], &cursor))
		return answer_error(c, "ERR invalid cursor");
	rc = find_key(c, &c->args[1], ROW_HASH, false, &key);
	if (!rc)
		rc = scan_options(c, 3, false, &s);
	if (rc)
		return rc;
	s.with_values = true;
	if (!key.row) {
		/* A range without anything in it. */
		return answer_scan(c, &s, keyspace_fields(OWNER_GONE), 0, UINT64_MAX);
	}
	return answer_scan(c, &s, keyspace_fields(keyspace_hash_head(key.row).id), 0,
			   cursor);
}

/* All at once, so only as many as one transaction can read: else SCAN is to be used. */
enum oltp_rc cmd_keys(struct call *c)
{
	struct scan s = { .c = c, .pattern = c->args[1], .type = -1, .before = c->out->n };
	const struct oltp_range keys = { .from = KEYSPACE_KEYS_FIRST, .to = UINT64_MAX };
	const struct keyspace_walk walk = { scan_row, scan_again, &s };
	uint64_t next = 0;
	enum oltp_rc rc;

	if (c->args[1].n > PATTERN_MAX)
		return answer_long_pattern(c);
	rc = needs_all_keys(c);
	if (rc)
		return rc;
	rc = keyspace_walk(&c->kv->ks, c->worker, &keys, KV_TXN_RECORDS, &walk, &next);
	if (rc || s.rc)
		return rc ?: s.rc;
	resp_out_array_at(c->out, s.before, s.n);
	return OLTP_OK;
}
