// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Removing hashes. One with few fields goes at once, with all of them. One with many would take
 * more accesses than a transaction has: its key goes at once, so that nobody finds the fields any
 * more, and its id is written down as dead. Then each request that comes removes a few fields of a
 * dead hash in a transaction of its own, until there is none; also after a restart.
 */
#include "oltp-engine/server/kv/private.h"

#define REAP_FIELDS	16u	/* in one transaction */

struct remover {
	struct kv *kv;
	struct oltp_worker *worker;
	uint64_t n, n_max;
	enum oltp_rc rc;
};

static int remove_field(void *ctx, uint64_t slot, const struct row *row)
{
	struct remover *r = ctx;
	const struct resp_arg no_name = { 0 };
	struct found found = keyspace_found(slot, row, &no_name);

	r->rc = keyspace_remove(&r->kv->ks, r->worker, &found);
	r->n++;
	return r->rc || r->n == r->n_max;
}

static void remove_again(void *ctx)
{
	(void)ctx;
}

/* Up to n of the fields; *ret_n: how many there were. */
static enum oltp_rc remove_fields(struct kv *kv, struct oltp_worker *worker, uint64_t id,
				  uint64_t n, uint64_t *ret_n)
{
	struct remover r = { .kv = kv, .worker = worker, .n_max = n };
	const struct keyspace_walk walk = { remove_field, remove_again, &r };
	struct oltp_range range = keyspace_fields(id);
	uint64_t next;
	enum oltp_rc rc;

	range.exclusive = true;
	rc = keyspace_walk(&kv->ks, worker, &range, n, &walk, &next);
	*ret_n = r.n;
	return rc ?: r.rc;
}

enum oltp_rc hash_remove(struct call *c, struct found *found, uint32_t n_fields_max)
{
	struct hash_head head = keyspace_hash_head(found->row);
	enum oltp_rc rc;
	uint64_t n;

	if (head.n_fields > n_fields_max) {
		rc = meta_dead_add(&c->kv->meta, c->worker, head.id);
		c->n_dead++;
	} else {
		rc = remove_fields(c->kv, c->worker, head.id, head.n_fields, &n);
		if (!rc && n != head.n_fields)
			rc = OLTP_INVALID;
	}
	return rc ?: keyspace_remove(&c->kv->ks, c->worker, found);
}

static enum oltp_rc reap(struct kv *kv, struct oltp_worker *worker, bool *ret_is_none)
{
	uint64_t id, n = 0;
	enum oltp_rc rc = oltp_txn_begin(worker);

	if (rc)
		return rc;
	rc = meta_dead_first(&kv->meta, worker, &id);
	if (!rc && id)
		rc = remove_fields(kv, worker, id, REAP_FIELDS, &n);
	if (!rc && id && n < REAP_FIELDS)
		rc = meta_dead_remove(&kv->meta, worker, id);
	if (!rc)
		rc = oltp_txn_commit(worker);
	if (rc)
		oltp_txn_abort(worker);
	*ret_is_none = !rc && !id;
	return rc;
}

enum oltp_rc hash_reap(struct kv *kv, struct oltp_worker *worker)
{
	_Atomic int64_t *n_dead = &kv->meta.n_dead;
	bool is_none = false;
	int64_t before;
	enum oltp_rc rc;

	if (atomic_exchange(&kv->meta.is_reaping, true))
		return OLTP_OK;
	before = atomic_load(n_dead);
	rc = reap(kv, worker, &is_none);
	/* Only if no other has died since. */
	if (is_none)
		atomic_compare_exchange_strong(n_dead, &before, 0);
	atomic_store(&kv->meta.is_reaping, false);
	return rc == OLTP_COLD ? rc : OLTP_OK;
}
