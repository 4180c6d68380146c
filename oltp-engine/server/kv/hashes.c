// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hashes. The key's row has the id of the hash and the number of its fields; each field is a row of
 * its own, whose owner is the id. Changing a field locks the key's row exclusively, reading one
 * locks it shared.
 */
#include <math.h>

#include "oltp-engine/server/kv/hash.h"
#include "oltp-engine/server/kv/number.h"

enum oltp_rc hash_open(struct call *c, const struct resp_arg *key, bool exclusive,
		       struct hash *ret_hash)
{
	enum oltp_rc rc;

	*ret_hash = (struct hash){ 0 };
	rc = find_key(c, key, ROW_HASH, exclusive, &ret_hash->key);
	if (!rc && ret_hash->key.row)
		ret_hash->head = keyspace_hash_head(ret_hash->key.row);
	ret_hash->n_before = ret_hash->head.n_fields;
	return rc;
}

enum oltp_rc hash_make(struct call *c, const struct resp_arg *key, struct hash *ret_hash)
{
	struct resp_arg head = { (const char *)&ret_hash->head, sizeof(ret_hash->head) };
	enum oltp_rc rc = hash_open(c, key, true, ret_hash);

	if (rc || ret_hash->key.row)
		return rc;
	/* Run again, after more ids were reserved. */
	if (!meta_take_id(&c->kv->meta, &ret_hash->head.id))
		return OLTP_CONFLICT;
	c->n_keys++;
	return keyspace_insert(&c->kv->ks, c->worker, &ret_hash->key, ROW_HASH, &head,
			       session_stamp(c->s));
}

enum oltp_rc hash_close(struct call *c, struct hash *hash)
{
	if (hash->head.n_fields == 0) {
		c->n_keys--;
		return keyspace_remove(&c->kv->ks, c->worker, &hash->key);
	}
	return keyspace_hash_set_head(&c->kv->ks, c->worker, &hash->key, &hash->head,
				      session_stamp(c->s));
}

enum oltp_rc hash_find(struct call *c, const struct hash *hash, const struct resp_arg *name,
		       bool exclusive, struct found *ret_found)
{
	if (!hash->head.id || name->n > KV_NAME_MAX) {
		*ret_found = (struct found){ 0 };
		return OLTP_OK;
	}
	return keyspace_find(&c->kv->ks, c->worker, hash->head.id, name, exclusive, ret_found);
}

/* The field args[2] of the hash under args[1], to read it. */
static enum oltp_rc find_field_of_key(struct call *c, struct found *ret_found)
{
	struct hash hash;
	enum oltp_rc rc = hash_open(c, &c->args[1], false, &hash);

	return rc ?: hash_find(c, &hash, &c->args[2], false, ret_found);
}

enum oltp_rc hash_set_found(struct call *c, struct hash *hash, struct found *found,
			    const struct resp_arg *value)
{
	if (found->row)
		return keyspace_set(&c->kv->ks, c->worker, found, value, 0);
	hash->head.n_fields++;
	return keyspace_insert(&c->kv->ks, c->worker, found, ROW_FIELD, value, 0);
}

enum oltp_rc hash_set(struct call *c, struct hash *hash, const struct resp_arg *name,
		      const struct resp_arg *value)
{
	enum overwrite what;
	struct found found;
	enum oltp_rc rc;

	rc = keyspace_overwrite(&c->kv->ks, c->worker, hash->head.id, ROW_FIELD, name, value, 0,
				&found, &what);
	if (rc || what == OVERWRITE_DONE)
		return rc;
	if (what == OVERWRITE_NO) {
		rc = hash_find(c, hash, name, true, &found);
		if (rc)
			return rc;
	}
	return hash_set_found(c, hash, &found, value);
}

enum oltp_rc hash_remove_field(struct call *c, struct hash *hash, struct found *found)
{
	hash->head.n_fields--;
	return keyspace_remove(&c->kv->ks, c->worker, found);
}

/* KV_ANSWERED: a field's name or value is too long. */
static enum oltp_rc check_field(struct call *c, const struct resp_arg *name,
				const struct resp_arg *value)
{
	if (value && value->n > KV_VALUE_MAX)
		return answer_too_long(c);
	if (name->n <= KV_NAME_MAX)
		return OLTP_OK;
	resp_out_errorf(c->out, "ERR field exceeds maximum allowed size (%u bytes)", KV_NAME_MAX);
	return KV_ANSWERED;
}

static enum oltp_rc set_fields(struct call *c, struct hash *hash)
{
	enum oltp_rc rc = OLTP_OK;

	if (c->n % 2 != 0)
		return answer_arity(c);
	for (uint32_t i = 2; !rc && i < c->n; i += 2)
		rc = check_field(c, &c->args[i], &c->args[i + 1]);
	if (!rc)
		rc = hash_make(c, &c->args[1], hash);
	for (uint32_t i = 2; !rc && i < c->n; i += 2)
		rc = hash_set(c, hash, &c->args[i], &c->args[i + 1]);
	return rc ?: hash_close(c, hash);
}

enum oltp_rc cmd_hset(struct call *c)
{
	struct hash hash;
	enum oltp_rc rc = set_fields(c, &hash);

	if (!rc)
		resp_out_integer(c->out, (int64_t)(hash.head.n_fields - hash.n_before));
	return rc;
}

enum oltp_rc cmd_hmset(struct call *c)
{
	struct hash hash;
	enum oltp_rc rc = set_fields(c, &hash);

	if (!rc)
		resp_out_simple(c->out, "OK");
	return rc;
}

enum oltp_rc cmd_hsetnx(struct call *c)
{
	const struct resp_arg *name = &c->args[2], *value = &c->args[3];
	struct found field;
	struct hash hash;
	enum oltp_rc rc = check_field(c, name, value);

	if (!rc)
		rc = hash_open(c, &c->args[1], true, &hash);
	if (!rc)
		rc = hash_find(c, &hash, name, true, &field);
	if (rc)
		return rc;
	if (field.row) {
		resp_out_integer(c->out, 0);
		return OLTP_OK;
	}
	rc = hash_make(c, &c->args[1], &hash);
	if (!rc)
		rc = hash_find(c, &hash, name, true, &field);
	if (!rc)
		rc = hash_set_found(c, &hash, &field, value);
	if (!rc)
		rc = hash_close(c, &hash);
	if (!rc)
		resp_out_integer(c->out, 1);
	return rc;
}

enum oltp_rc cmd_hget(struct call *c)
{
	struct found field;
	enum oltp_rc rc = find_field_of_key(c, &field);

	return rc ?: answer_value(c, &field);
}

enum oltp_rc cmd_hmget(struct call *c)
{
	struct hash hash;
	enum oltp_rc rc = hash_open(c, &c->args[1], false, &hash);

	if (rc)
		return rc;
	resp_out_array(c->out, c->n - 2);
	for (uint32_t i = 2; !rc && i < c->n; i++) {
		struct found field;

		rc = hash_find(c, &hash, &c->args[i], false, &field);
		if (!rc)
			rc = answer_value(c, &field);
	}
	return rc;
}

/* Which parts of fields are shown. */
enum show {
	SHOW_NAMES = 1 << 0,
	SHOW_VALUES = 1 << 1,
};

struct shower {
	struct call *c;
	uint32_t show;
	uint64_t n;
	size_t before;		/* bytes of the reply before the first field */
	enum oltp_rc rc;
};

static int show_field(void *ctx, uint64_t slot, const struct row *row)
{
	struct shower *s = ctx;
	struct call *c = s->c;
	struct resp_arg text;

	if (s->show & SHOW_NAMES) {
		s->rc = keyspace_name(&c->kv->ks, c->worker, slot, row, &text);
		if (s->rc)
			return 1;
		resp_out_bulk(c->out, text.bytes, text.n);
	}
	if (s->show & SHOW_VALUES) {
		s->rc = keyspace_value(&c->kv->ks, c->worker, slot, row, &text);
		if (s->rc)
			return 1;
		resp_out_bulk(c->out, text.bytes, text.n);
	}
	s->n++;
	return c->out->has_failed;
}

static void show_again(void *ctx)
{
	struct shower *s = ctx;

	resp_out_truncate(s->c->out, s->before);
	s->n = 0;
}

static enum oltp_rc show_all(struct call *c, uint32_t show)
{
	struct shower s = { .c = c, .show = show };
	const struct keyspace_walk walk = { show_field, show_again, &s };
	struct oltp_range range;
	uint64_t next;
	struct hash hash;
	enum oltp_rc rc = hash_open(c, &c->args[1], false, &hash);

	if (rc)
		return rc;
	if (show == (SHOW_NAMES | SHOW_VALUES))
		resp_out_map(c->out, hash.head.n_fields);
	else
		resp_out_array(c->out, hash.head.n_fields);
	if (!hash.head.id)
		return OLTP_OK;
	s.before = c->out->n;
	range = keyspace_fields(hash.head.id);
	rc = keyspace_walk(&c->kv->ks, c->worker, &range, hash.head.n_fields, &walk, &next);
	if (rc || s.rc || c->out->has_failed)
		return rc ?: s.rc;
	return s.n == hash.head.n_fields ? OLTP_OK : OLTP_INVALID;
}

enum oltp_rc cmd_hgetall(struct call *c)
{
	return show_all(c, SHOW_NAMES | SHOW_VALUES);
}

enum oltp_rc cmd_hkeys(struct call *c)
{
	return show_all(c, SHOW_NAMES);
}

enum oltp_rc cmd_hvals(struct call *c)
{
	return show_all(c, SHOW_VALUES);
}

enum oltp_rc cmd_hlen(struct call *c)
{
	struct hash hash;
	enum oltp_rc rc = hash_open(c, &c->args[1], false, &hash);

	if (!rc)
		resp_out_integer(c->out, (int64_t)hash.head.n_fields);
	return rc;
}

enum oltp_rc cmd_hexists(struct call *c)
{
	struct found field;
	enum oltp_rc rc = find_field_of_key(c, &field);

	if (!rc)
		resp_out_integer(c->out, field.row != NULL);
	return rc;
}

enum oltp_rc cmd_hstrlen(struct call *c)
{
	struct found field;
	enum oltp_rc rc = find_field_of_key(c, &field);

	if (!rc)
		resp_out_integer(c->out, field.row ? field.row->value_bytes : 0);
	return rc;
}

enum oltp_rc cmd_hdel(struct call *c)
{
	struct hash hash;
	enum oltp_rc rc = hash_open(c, &c->args[1], true, &hash);

	for (uint32_t i = 2; !rc && i < c->n; i++) {
		struct found field;

		rc = hash_find(c, &hash, &c->args[i], true, &field);
		if (!rc && field.row)
			rc = hash_remove_field(c, &hash, &field);
	}
	if (!rc && hash.head.n_fields != hash.n_before)
		rc = hash_close(c, &hash);
	if (!rc)
		resp_out_integer(c->out, (int64_t)(hash.n_before - hash.head.n_fields));
	return rc;
}

/* The field's number becomes text; KV_ANSWERED: what is refused, before anything was changed. */
static enum oltp_rc add_to_field(struct call *c, const struct resp_arg *value)
{
	struct found field;
	struct hash hash;
	enum oltp_rc rc = hash_make(c, &c->args[1], &hash);

	if (!rc)
		rc = hash_find(c, &hash, &c->args[2], true, &field);
	if (!rc)
		rc = hash_set_found(c, &hash, &field, value);
	return rc ?: hash_close(c, &hash);
}

/* The field's value as it is; n 0: there is none. */
static enum oltp_rc value_before(struct call *c, bool *ret_is_there, struct resp_arg *ret_value)
{
	struct found field;
	struct hash hash;
	enum oltp_rc rc = check_field(c, &c->args[2], NULL);

	if (!rc)
		rc = hash_open(c, &c->args[1], true, &hash);
	if (!rc)
		rc = hash_find(c, &hash, &c->args[2], true, &field);
	if (rc)
		return rc;
	*ret_is_there = field.row;
	if (!field.row)
		return OLTP_OK;
	return keyspace_value(&c->kv->ks, c->worker, field.slot, field.row, ret_value);
}

enum oltp_rc cmd_hincrby(struct call *c)
{
	char text[NUMBER_MAX];
	struct resp_arg value = { text, 0 }, old;
	int64_t number = 0, by;
	bool is_there;
	enum oltp_rc rc;

	if (!number_parse(c->args[3].bytes, c->args[3].n, &by))
		return answer_not_integer(c);
	rc = value_before(c, &is_there, &old);
	if (rc)
		return rc;
	if (is_there && !number_parse(old.bytes, old.n, &number))
		return answer_error(c, "ERR hash value is not an integer");
	if (__builtin_add_overflow(number, by, &number))
		return answer_error(c, "ERR increment or decrement would overflow");
	value.n = number_print(text, number);
	rc = add_to_field(c, &value);
	if (!rc)
		resp_out_integer(c->out, number);
	return rc;
}

enum oltp_rc cmd_hincrbyfloat(struct call *c)
{
	char text[NUMBER_FLOAT_MAX];
	struct resp_arg value = { text, 0 }, old;
	long double number = 0, by;
	bool is_there;
	enum oltp_rc rc;

	if (!number_parse_float(c->args[3].bytes, c->args[3].n, &by))
		return answer_error(c, "ERR value is not a valid float");
	if (isinf(by))
		return answer_error(c, "ERR value is NaN or Infinity");
	rc = value_before(c, &is_there, &old);
	if (rc)
		return rc;
	if (is_there && !number_parse_float(old.bytes, old.n, &number))
		return answer_error(c, "ERR hash value is not a float");
	number += by;
	if (isnan(number) || isinf(number))
		return answer_error(c, "ERR increment would produce NaN or Infinity");
	value.n = number_print_float(text, number);
	rc = add_to_field(c, &value);
	if (!rc)
		resp_out_bulk(c->out, value.bytes, value.n);
	return rc;
}
