// SPDX-License-Identifier: GPL-2.0-or-later
/* See ordered.h. */
#include <errno.h>

#include "node_set.h"
#include "ordered.h"
#include "revoked.h"
#include "txn.h"

enum oltp_rc ordered_insert(struct oltp_worker *worker, struct oltp_table *table,
			    uint64_t primary_key, const void *data)
{
	for (uint32_t i = 0; i < table->n_ordered; i++) {
		struct oltp_index *index = table->ordered[i];
		struct tree_change change;
		enum oltp_rc rc = OLTP_OK;

		switch (tree_insert(&index->tree, ordered_key(index, primary_key, data),
				    &change)) {
		case 0:
			if (worker->n_nodes)
				rc = node_set_update(worker, change.word, change.before,
						     change.after, change.new_word,
						     change.new_version);
			break;
		case -ENOMEM:
			rc = txn_doom(worker, OLTP_NO_MEMORY);
			break;
		}
		if (rc)
			return rc;
	}
	return OLTP_OK;
}

void ordered_remove(struct oltp_table *table, const struct record *record, const void *data,
		    const void *except, bool keep_leaves)
{
	uint64_t primary_key = atomic_load_explicit(&record->key, memory_order_relaxed);
	struct tree_key keys[OLTP_INDEXES_MAX];
	bool stays[OLTP_INDEXES_MAX];

	for (uint32_t i = 0; i < table->n_ordered; i++) {
		const struct oltp_index *index = table->ordered[i];

		keys[i] = ordered_key(index, primary_key, data);
		stays[i] = except &&
			   tree_key_equal(keys[i], ordered_key(index, primary_key, except));
	}
	/* Asked last: up to here it was not, so the keys are true. */
	if (revoked_is_record(table->engine, record))
		return;
	for (uint32_t i = 0; i < table->n_ordered; i++) {
		if (!stays[i])
			tree_remove(&table->ordered[i]->tree, keys[i], keep_leaves);
	}
}

void ordered_sort_keys(const struct oltp_table *table, uint64_t primary_key, const void *data,
		       uint64_t ret_sorts[OLTP_INDEXES_MAX])
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < table->n_ordered; i++) {
		const struct oltp_index *index = table->ordered[i];

		if (index->key_of)
			ret_sorts[n++] = index->key_of(index->ctx, primary_key, data);
	}
}

static struct tree_key key_from(const struct oltp_index *index, uint64_t primary_key,
				const uint64_t **sorts)
{
	return (struct tree_key){ index->key_of ? *(*sorts)++ : primary_key, primary_key };
}

int ordered_add(const struct oltp_table *table, uint64_t primary_key, const uint64_t *sorts)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < table->n_ordered; i++) {
		struct oltp_index *index = table->ordered[i];
		struct tree_change unused;

		rc = tree_insert(&index->tree, key_from(index, primary_key, &sorts), &unused);
		if (rc == -EEXIST)
			rc = 0;
	}
	return rc;
}

void ordered_take(const struct oltp_table *table, uint64_t primary_key, const uint64_t *sorts)
{
	for (uint32_t i = 0; i < table->n_ordered; i++) {
		struct oltp_index *index = table->ordered[i];

		tree_remove(&index->tree, key_from(index, primary_key, &sorts), false);
	}
}

bool ordered_has(const struct oltp_table *table, uint64_t primary_key, const void *data)
{
	for (uint32_t i = 0; i < table->n_ordered; i++) {
		const struct oltp_index *index = table->ordered[i];
		struct tree_key key = ordered_key(index, primary_key, data);
		struct tree_leaf leaf;

		tree_read(&index->tree, key, key, &leaf);
		if (!leaf.n)
			return false;
	}
	return true;
}

bool ordered_is_key(const struct oltp_table *table, const struct oltp_span *span)
{
	for (uint32_t i = 0; i < table->n_key_spans; i++) {
		const struct oltp_span *key = &table->key_spans[i];

		if (span->offset < key->offset + key->bytes &&
		    key->offset < span->offset + span->bytes)
			return true;
	}
	return false;
}
