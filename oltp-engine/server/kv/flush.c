// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FLUSHALL and FLUSHDB: not one transaction, since those have bounds, but many small ones, one key
 * after the other in the order of slots. Every key that was there when it began, and was not set
 * again meanwhile, is gone when it is answered; one that others set meanwhile may be gone or not.
 * After a crash some keys may be gone.
 */
#include "oltp-engine/server/kv/private.h"

#define FLUSH_KEYS	64u	/* in one transaction */
#define FLUSH_FIELDS	16u	/* of one hash at once: see hash_remove */

struct flush {
	struct call *c;
	enum oltp_rc rc;
};

static int flush_row(void *ctx, uint64_t slot, const struct row *row)
{
	struct flush *flush = ctx;
	const struct resp_arg no_name = { 0 };
	struct found found = keyspace_found(slot, row, &no_name);

	flush->rc = remove_key(flush->c, &found, FLUSH_FIELDS);
	return flush->rc != OLTP_OK;
}

/* What was removed so far is not met again. */
static void flush_again(void *ctx)
{
	(void)ctx;
}

enum oltp_rc cmd_flush(struct call *c)
{
	struct flush flush = { .c = c };
	const struct keyspace_walk walk = { flush_row, flush_again, &flush };
	struct oltp_range keys = keys_from(c, c->flush_from);
	uint64_t next = 0;
	enum oltp_rc rc;

	keys.exclusive = true;
	if (c->n > 2 || (c->n == 2 && !arg_is(&c->args[1], "SYNC") &&
			 !arg_is(&c->args[1], "ASYNC")))
		return answer_syntax(c);
	rc = keyspace_walk(&c->kv->ks, c->worker, &keys, FLUSH_KEYS, &walk, &next);
	if (rc || flush.rc)
		return rc ?: flush.rc;
	if (!next && keys.to != UINT64_MAX)
		next = keys.to + 1;	/* of the next unit */
	c->flush_from = next;
	if (next)
		c->after = KV_AGAIN;
	else
		resp_out_simple(c->out, "OK");
	return OLTP_OK;
}
