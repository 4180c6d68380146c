// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Scans, leaf by leaf: a copy of the leaf's keys is taken and its version joins the node set, then
 * the rows are found and locked by their primary keys. A key whose row has gone meanwhile, or has
 * another sort key by now, was taken out of the leaf before that could be seen (O1, O2): the leaf
 * is read again.
 */
#include "node_set.h"
#include "ordered.h"
#include "revoked.h"
#include "txn.h"

/* Of a record; how much of it will be read is not known. */
#define PREFETCH_BYTES	(2 * CACHE_LINE_BYTES)

struct scan {
	struct oltp_worker *worker;
	struct oltp_index *index;
	const struct oltp_range *range;
	int (*fn)(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record);
	void *ctx;
	struct tree_key at, end;
	uint64_t left;			/* rows to be shown at most */
	bool is_done;
	/* The last key whose row was not there, or not with that sort key, and when. */
	struct tree_key stale;
	uint64_t stale_version;
	bool has_stale;
	struct tree_leaf leaf;
	uint64_t hashes[TREE_LEAF_KEYS];
};

static void prefetch(struct scan *s)
{
	const struct index *hash_index = &s->index->table->index;
	uint64_t n = s->leaf.n < s->left ? s->leaf.n : s->left;

	for (uint32_t i = 0; i < s->leaf.n; i++) {
		s->hashes[i] = index_hash(s->leaf.keys[i].primary);
		if (i < n)
			index_prefetch(hash_index, s->hashes[i]);
	}
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *record = index_guess(hash_index, s->hashes[i]);

		for (uint32_t at = 0; record && at < PREFETCH_BYTES; at += CACHE_LINE_BYTES)
			__builtin_prefetch(record + at, 1);
	}
}

/* Goes on behind the leaf. False: it was the last one. */
static bool advance(struct scan *s)
{
	bool is_last = s->range->descending ? !tree_key_less(s->end, s->leaf.low) :
					      !tree_key_less(s->leaf.high, s->end);

	if (is_last)
		return false;
	s->at = s->range->descending ? tree_key_prev(s->leaf.low) : tree_key_next(s->leaf.high);
	return true;
}

/* The row of key i is on disk: so that it is fetched together with others of the range. */
static void want_rest(struct scan *s, uint32_t i)
{
	struct oltp_table *table = s->index->table;
	uint64_t n = s->worker->engine->txn_records_max;

	n = s->left - 1 < n ? s->left - 1 : n;
	for (;; i = 0) {
		for (; i < s->leaf.n; i++) {
			uint64_t key = s->leaf.keys[i].primary, hash = index_hash(key);
			struct index_ref ref;

			if (!n--)
				return;
			if (!index_find(&table->index, key, hash, &ref) && ref.entry)
				txn_want(s->worker, table, key, hash);
		}
		if (!advance(s))
			return;
		tree_read(&s->index->tree, s->at, s->end, &s->leaf);
	}
}

/* *ret_is_stale: the leaf has no such key any more. */
static enum oltp_rc show_row(struct scan *s, uint32_t i, bool *ret_is_stale)
{
	enum txn_access how = TXN_NO_NODE | (s->range->exclusive ? TXN_EXCLUSIVE : TXN_SHARED);
	struct oltp_worker *worker = s->worker;
	struct tree_key key = s->leaf.keys[i];
	const struct access *access;
	struct record *record;
	enum oltp_rc rc;

	rc = txn_access(worker, s->index->table, key.primary, s->hashes[i], how, &record);
	if (rc == OLTP_NOT_FOUND) {
		*ret_is_stale = !record;
		return OLTP_OK;
	}
	if (rc == OLTP_COLD)
		want_rest(s, i + 1);
	if (rc)
		return rc;
	if (unlikely(!tree_key_equal(ordered_key(s->index, key.primary, record->data), key))) {
		if (revoked_is_record(worker->engine, record))
			return txn_doom(worker, OLTP_LOST);
		/* A row that this transaction deleted and added again has two entries. */
		access = txn_access_of(worker, record);
		*ret_is_stale = !access || access->kind != ACCESS_REPLACE;
		return OLTP_OK;
	}
	s->left--;
	s->is_done = s->fn(s->ctx, key.sort, key.primary, record->data) || !s->left;
	return worker->state == TXN_ACTIVE ? OLTP_OK : worker->doom_rc;
}

/*
 * Reads the leaf again. If it is still the same and has the key, that was left behind: by a row
 * that was to be taken out when its bytes were already gone with the revoked memory.
 */
static enum oltp_rc on_stale(struct scan *s, struct tree_key key)
{
	bool is_same = s->has_stale && tree_key_equal(s->stale, key) &&
		       s->stale_version == s->leaf.version;

	s->at = key;
	s->stale = key;
	s->stale_version = s->leaf.version;
	s->has_stale = true;
	if (!is_same)
		return OLTP_OK;
	if (!atomic_load_explicit(&s->worker->engine->revoked.times, memory_order_acquire))
		return txn_doom(s->worker, OLTP_INVALID);
	tree_remove(&s->index->tree, key, true);
	return OLTP_OK;
}

/* What was read of one leaf. *ret_again: it has changed, from s->at on. */
static enum oltp_rc show_leaf(struct scan *s, bool *ret_again)
{
	enum oltp_rc rc = OLTP_OK;

	*ret_again = false;
	prefetch(s);
	for (uint32_t i = 0; !rc && !s->is_done && i < s->leaf.n; i++) {
		rc = show_row(s, i, ret_again);
		if (!rc && unlikely(*ret_again))
			return on_stale(s, s->leaf.keys[i]);
	}
	return rc;
}

/*
 * The one row there can be was found, and its lock keeps it there: what others add beside it does
 * not matter. Only if it is the last one in the set, not if fn was shown something missing.
 */
static void node_set_drop_last(struct scan *s, uint32_t n_nodes)
{
	bool has_row = s->left < (s->range->limit ?: UINT64_MAX);

	if (s->index->is_unique && s->range->from == s->range->to && has_row &&
	    s->worker->n_nodes == n_nodes + 1)
		s->worker->n_nodes = n_nodes;
}

static enum oltp_rc scan_run(struct scan *s)
{
	struct tree_key first = { s->range->from, 0 }, last = { s->range->to, UINT64_MAX };
	uint32_t n_nodes = s->worker->n_nodes;
	enum oltp_rc rc;
	bool again;

	s->at = s->range->descending ? last : first;
	s->end = s->range->descending ? first : last;
	s->left = s->range->limit ?: UINT64_MAX;
	do {
		tree_read(&s->index->tree, s->at, s->end, &s->leaf);
		rc = node_set_add(s->worker, s->leaf.word, s->leaf.version, TREE_VERSION_MASK);
		if (rc)
			return rc;
		rc = show_leaf(s, &again);
	} while (!rc && !s->is_done && (again || advance(s)));
	if (!rc)
		node_set_drop_last(s, n_nodes);
	return rc;
}

enum oltp_rc oltp_txn_scan(struct oltp_worker *worker, struct oltp_index *index,
			   const struct oltp_range *range,
			   int (*fn)(void *ctx, uint64_t sort_key, uint64_t primary_key,
				     const void *record),
			   void *ctx)
{
	struct scan scan;

	if (unlikely(worker->state != TXN_ACTIVE))
		return OLTP_INVALID;
	if (range->from > range->to)
		return OLTP_OK;
	scan.worker = worker;
	scan.index = index;
	scan.range = range;
	scan.fn = fn;
	scan.ctx = ctx;
	scan.is_done = false;
	scan.has_stale = false;
	return scan_run(&scan);
}

struct other {
	uint64_t key;
	bool is_there;
};

static int find_other(void *ctx, uint64_t sort_key, uint64_t primary_key, const void *record)
{
	struct other *other = ctx;

	(void)sort_key;
	(void)record;
	other->is_there = primary_key != other->key;
	return other->is_there;
}

/* All that the tree has under the sort key is this key, or nothing. */
static bool is_alone(const struct tree *tree, struct tree_key key)
{
	struct tree_key at = { key.sort, 0 }, end = { key.sort, UINT64_MAX };
	struct tree_leaf leaf;

	for (;; at = tree_key_next(leaf.high)) {
		tree_read(tree, at, end, &leaf);
		if (leaf.n > 1 || (leaf.n && leaf.keys[0].primary != key.primary))
			return false;
		if (!tree_key_less(leaf.high, end))
			return true;
	}
}

enum oltp_rc txn_scan_other(struct oltp_worker *worker, struct oltp_index *index,
			    struct tree_key key)
{
	const struct oltp_range range = { .from = key.sort, .to = key.sort };
	struct other other = { .key = key.primary };
	uint32_t n_nodes = worker->n_nodes;
	enum oltp_rc rc;

	if (is_alone(&index->tree, key))
		return OLTP_OK;
	rc = oltp_txn_scan(worker, index, &range, find_other, &other);
	/* The scan only looked for one key: a row that others add beside it is no conflict. */
	worker->n_nodes = n_nodes;
	return rc ?: other.is_there ? OLTP_EXISTS : OLTP_OK;
}
