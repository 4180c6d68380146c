/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ordered indexes of a table. They map sort keys to primary keys and never point to a record:
 * where a record is only the hash index knows, and it may move without them.
 *
 * Invariants:
 *   O1  What an ordered index has, the hash index has: a row is added there first, and taken out
 *       there last, under the record's exclusive lock.
 *   O2  In between, while that lock is held, an index may have a row's old sort key, its new one,
 *       or both. Once it is released: the one, if there is a row.
 */
#ifndef OLTP_ORDERED_H
#define OLTP_ORDERED_H

#include "engine.h"
#include "oltp-engine/src/index/tree.h"

struct oltp_index {
	struct oltp_table *table;
	struct tree tree;
	uint64_t (*key_of)(void *ctx, uint64_t primary_key, const void *record);
	void *ctx;
	bool is_unique;		/* that by primary key always is */
};

static inline struct tree_key ordered_key(const struct oltp_index *index, uint64_t primary_key,
					  const void *data)
{
	return (struct tree_key){
		index->key_of ? index->key_of(index->ctx, primary_key, data) : primary_key,
		primary_key,
	};
}

/* For each index that is not by primary key (n_keyed), in order. */
void ordered_sort_keys(const struct oltp_table *table, uint64_t primary_key, const void *data,
		       uint64_t ret_sorts[OLTP_INDEXES_MAX]);

/*
 * Into all indexes of the table, and out of them, a row with these sort keys, whose bytes are not
 * at hand. Before any transaction, in an epoch. Errors: -ENOMEM.
 */
int ordered_add(const struct oltp_table *table, uint64_t primary_key, const uint64_t *sorts);
void ordered_take(const struct oltp_table *table, uint64_t primary_key, const uint64_t *sorts);

/*
 * Into all indexes of the table; what is there already stays. On failure (OLTP_NO_MEMORY, and as
 * node_set_add) the transaction is doomed, and some of them may have it.
 */
enum oltp_rc ordered_insert(struct oltp_worker *worker, struct oltp_table *table,
			    uint64_t primary_key, const void *data);

/*
 * Takes the sort keys of a row with these bytes out of all indexes, but for those that a row with
 * the bytes except (NULL: none) has as well. The bytes are, or were just now, in the record. If it
 * was revoked, nothing is taken out: the bytes may be zeroes.
 */
void ordered_remove(struct oltp_table *table, const struct record *record, const void *data,
		    const void *except, bool keep_leaves);

/*
 * Have all indexes the row with these bytes? Then a row that is there, whose bytes are not known,
 * has the same sort keys.
 */
bool ordered_has(const struct oltp_table *table, uint64_t primary_key, const void *data);

/* Does a span cover bytes that a sort key is made of? */
bool ordered_is_key(const struct oltp_table *table, const struct oltp_span *span);

#endif
