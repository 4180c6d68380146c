/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A B+tree of pairs (sort key, primary key), each pair once. Readers write nothing: they look at a
 * node, and look again if its version has changed (optimistic lock coupling). Writers lock the one
 * or two nodes they change.
 *
 * Invariants:
 *   N1  A node is changed only by the thread that set TREE_LOCKED in its version, and each
 *       unlocking gives it a version that it never had. What was read between two looks at the same
 *       unlocked version is of one moment.
 *   N2  Child i of an inner node holds the keys above separator i - 1, up to and including
 *       separator i. So every leaf is responsible for a range of keys, and the ranges of all leaves
 *       are all keys. A range shrinks only by a split, which counts TREE_INSERT_ONE up, and ends
 *       only with its leaf (TREE_OBSOLETE).
 *   N3  A key is added to a leaf's range only after the leaf's TREE_INSERT_ONE count went up, in
 *       one sequentially consistent exchange with locking it. Taking a key out counts changes only.
 *   N4  Nodes are locked from the parent down, all but the first without waiting.
 *   N5  An obsolete node is no longer to be found, and used again after an epoch (node_pool.h).
 *
 * A leaf that gets empty is taken out, with those above it that have no other child; leaves that
 * are merely underfull stay. So there are never more nodes than keys allow for, but a leaf may be
 * left with a single key: random deletions of most keys leave the memory to those that come.
 *
 * Leaves are not chained. A scan goes on by looking for the key next to the range of the leaf that
 * it has read: a few cached nodes more for each leaf, against chains that splits, and leaves that
 * go, would have to keep right in both directions.
 *
 * Every function is to be called in an announced epoch.
 */
#ifndef OLTP_TREE_H
#define OLTP_TREE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "node_pool.h"

#define TREE_LOCKED		1ull
#define TREE_OBSOLETE		2ull
#define TREE_CHANGE_ONE		4ull
#define TREE_INSERT_ONE		(1ull << 33)
/* What a node set has of a version: as long as that stays, no key has come (N2, N3). */
#define TREE_VERSION_MASK		(~(TREE_INSERT_ONE - 1) | TREE_OBSOLETE)

#define TREE_LEAF_BYTES		512u
#define TREE_LEAF_KEYS		30u
#define TREE_INNER_BYTES	1024u
#define TREE_INNER_KEYS		41u	/* with one child more */
/* No tree of 2^64 keys is higher: only full nodes are split. */
#define TREE_HEIGHT_MAX		24u

struct tree_key {
	uint64_t sort, primary;
};

#define TREE_KEY_MIN	((struct tree_key){ 0, 0 })
#define TREE_KEY_MAX	((struct tree_key){ UINT64_MAX, UINT64_MAX })

static inline bool tree_key_less(struct tree_key a, struct tree_key b)
{
	return a.sort != b.sort ? a.sort < b.sort : a.primary < b.primary;
}

static inline bool tree_key_equal(struct tree_key a, struct tree_key b)
{
	return a.sort == b.sort && a.primary == b.primary;
}

/* The next key; there is none after the greatest, and none before the least. */
static inline struct tree_key tree_key_next(struct tree_key key)
{
	key.sort += ++key.primary == 0;
	return key;
}

static inline struct tree_key tree_key_prev(struct tree_key key)
{
	key.sort -= key.primary-- == 0;
	return key;
}

/*
 * The words are the sort keys, then the primary keys, then for an inner node the children: each in
 * room for as many as the node can have.
 */
struct tree_node {
	_Atomic uint64_t version;
	_Atomic uint32_t n;	/* keys */
	_Atomic uint32_t level;	/* 0: leaf */
	struct tree_node *next;	/* the pool's, while it is in none of the trees */
	_Atomic uint64_t words[];
};

_Static_assert(sizeof(struct tree_node) + TREE_LEAF_KEYS * 16 <= TREE_LEAF_BYTES, "a leaf fits");
_Static_assert(sizeof(struct tree_node) + TREE_INNER_KEYS * 24 + 8 <= TREE_INNER_BYTES,
	       "an inner node fits");

struct tree {
	struct tree_node *anchor;	/* never changes; its only child is the root */
	struct node_pool *leaves, *inners;
};

/* Errors: -ENOMEM. Nodes are not freed one by one: that is done with the pools. */
int tree_init(struct tree *tree, struct node_pool *leaves, struct node_pool *inners);

/* What an insert did to the versions that node sets have. */
struct tree_change {
	const _Atomic uint64_t *word;
	uint64_t before, after;			/* & TREE_VERSION_MASK */
	const _Atomic uint64_t *new_word;	/* of the leaf that was split off; NULL: none */
	uint64_t new_version;
};

/* Errors: -EEXIST, -ENOMEM, both without a change. */
int tree_insert(struct tree *tree, struct tree_key key, struct tree_change *ret_change);

/*
 * Takes a key out, if it is there. keep_leaf: a leaf that gets empty stays, for a transaction that
 * has it in its node set and goes on; it is taken out when it gets empty the next time.
 */
void tree_remove(struct tree *tree, struct tree_key key, bool keep_leaf);

/* A copy of what is in one leaf, all of one moment. */
struct tree_leaf {
	const _Atomic uint64_t *word;
	uint64_t version;
	struct tree_key low, high;	/* what it is responsible for, both included */
	uint32_t n;
	struct tree_key keys[TREE_LEAF_KEYS];
};

/*
 * The leaf responsible for at, with its keys from at to end in that order: downwards if end is
 * less.
 */
void tree_read(const struct tree *tree, struct tree_key at, struct tree_key end,
	       struct tree_leaf *ret_leaf);

#endif
