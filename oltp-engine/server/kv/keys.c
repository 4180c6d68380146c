// SPDX-License-Identifier: GPL-2.0-or-later
/* Keys of any type. */
#include <sys/random.h>

#include "oltp-engine/server/kv/private.h"

enum oltp_rc cmd_del(struct call *c)
{
	int64_t n = 0;

	for (uint32_t i = 1; i < c->n; i++) {
		struct found found;
		enum oltp_rc rc = find_any(c, &c->args[i], true, &found);

		if (!rc && found.row) {
			rc = remove_key(c, &found, HASH_FIELDS_AT_ONCE);
			n++;
		}
		if (rc)
			return rc;
	}
	resp_out_integer(c->out, n);
	return OLTP_OK;
}

enum oltp_rc cmd_exists(struct call *c)
{
	int64_t n = 0;

	for (uint32_t i = 1; i < c->n; i++) {
		struct found found;
		enum oltp_rc rc = find_any(c, &c->args[i], false, &found);

		if (rc)
			return rc;
		n += found.row != NULL;
	}
	resp_out_integer(c->out, n);
	return OLTP_OK;
}

enum oltp_rc cmd_type(struct call *c)
{
	struct found found;
	enum oltp_rc rc = find_any(c, &c->args[1], false, &found);

	if (!rc)
		resp_out_simple(c->out, !found.row ? "none" :
					found.row->type == ROW_HASH ? "hash" : "string");
	return rc;
}

/*
 * As committed, with what EXEC has changed so far. Other workers' changes may be counted a moment
 * after they can be seen.
 */
enum oltp_rc cmd_dbsize(struct call *c)
{
	int64_t n = atomic_load_explicit(&c->kv->meta.n_keys, memory_order_relaxed) + c->n_keys;
	enum oltp_rc rc = needs_all_keys(c);

	if (rc)
		return rc;
	resp_out_integer(c->out, n > 0 ? n : 0);
	return OLTP_OK;
}

struct pick {
	struct call *c;
	bool is_picked;
	enum oltp_rc rc;
};

static int pick_row(void *ctx, uint64_t slot, const struct row *row)
{
	struct pick *pick = ctx;
	struct resp_arg name;

	pick->rc = keyspace_name(&pick->c->kv->ks, pick->c->worker, slot, row, &name);
	if (!pick->rc)
		resp_out_bulk(pick->c->out, name.bytes, name.n);
	pick->is_picked = true;
	return 1;
}

static void pick_again(void *ctx)
{
	(void)ctx;
}

/* The first key from a random position on; keys after a large gap are found more often. */
enum oltp_rc cmd_randomkey(struct call *c)
{
	struct pick pick = { .c = c };
	const struct keyspace_walk walk = { pick_row, pick_again, &pick };
	uint64_t from = 0, next;
	enum oltp_rc rc = needs_all_keys(c);

	if (rc)
		return rc;
	if (getrandom(&from, sizeof(from), GRND_NONBLOCK) != (ssize_t)sizeof(from))
		from = session_stamp(c->s) * 0x9e3779b97f4a7c15ull;
	from |= KEYSPACE_KEYS_FIRST;
	for (;;) {
		const struct oltp_range range = { .from = from, .to = UINT64_MAX };

		rc = keyspace_walk(&c->kv->ks, c->worker, &range, 1, &walk, &next);
		if (rc || pick.rc)
			return rc ?: pick.rc;
		if (pick.is_picked)
			return OLTP_OK;
		if (from == KEYSPACE_KEYS_FIRST)
			break;
		from = KEYSPACE_KEYS_FIRST;
	}
	resp_out_null(c->out);
	return OLTP_OK;
}
