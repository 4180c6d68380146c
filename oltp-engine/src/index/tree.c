// SPDX-License-Identifier: GPL-2.0-or-later
/* Looking things up in a tree: see tree.h. */
#include <errno.h>
#include <sched.h>

#include "tree_node.h"

#define SPINS_PER_YIELD	64u
/* Of the anchor, which is above all. */
#define LEVEL_ANCHOR	UINT32_MAX

int tree_init(struct tree *tree, struct node_pool *leaves, struct node_pool *inners)
{
	struct tree_node *anchor = node_pool_alloc(inners);
	struct tree_node *root = node_pool_alloc(leaves);

	if (!anchor || !root) {
		node_pool_give_back(inners, anchor);
		node_pool_give_back(leaves, root);
		return -ENOMEM;
	}
	atomic_store_explicit(&root->version, 0, memory_order_relaxed);
	atomic_store_explicit(&root->n, 0, memory_order_relaxed);
	atomic_store_explicit(&root->level, 0, memory_order_relaxed);
	atomic_store_explicit(&anchor->version, 0, memory_order_relaxed);
	atomic_store_explicit(&anchor->n, 0, memory_order_relaxed);
	atomic_store_explicit(&anchor->level, LEVEL_ANCHOR, memory_order_relaxed);
	node_child_set(anchor, 0, root);
	*tree = (struct tree){ .anchor = anchor, .leaves = leaves, .inners = inners };
	return 0;
}

bool node_look(const struct tree_node *node, uint64_t *ret_version)
{
	uint64_t version;

	for (uint32_t spins = 1;; spins++) {
		/*
		 * Pairs with the release in node_unlock: what is in it is complete. Sequentially
		 * consistent for those who add a key and then look for another (txn_insert.c).
		 */
		version = atomic_load_explicit(&node->version, memory_order_seq_cst);
		if (likely(!(version & TREE_LOCKED)))
			break;
		if (spins % SPINS_PER_YIELD)
			cpu_relax();
		else
			sched_yield();
	}
	*ret_version = version;
	return !(version & TREE_OBSOLETE);
}

/* Sort keys and most of the rest, all misses at once. */
static void node_prefetch(const struct tree_node *node)
{
	for (uint32_t at = 0; at < TREE_LEAF_BYTES; at += CACHE_LINE_BYTES)
		__builtin_prefetch((const uint8_t *)node + at);
}

bool tree_descend(const struct tree *tree, struct tree_key key, struct tree_path *path)
{
	struct tree_node *node = tree->anchor;
	uint64_t version;

	path->n = 0;
	path->low = TREE_KEY_MIN;
	path->high = TREE_KEY_MAX;
	node_look(node, &version);
	for (;;) {
		struct tree_step *step = &path->steps[path->n++];
		struct tree_key below = TREE_KEY_MIN, above = TREE_KEY_MAX;
		struct tree_node *child;
		uint32_t i, n;

		step->node = node;
		step->version = version;
		if (node_is_leaf(node))
			return true;
		n = node_count(node);
		i = node_search(node, TREE_INNER_KEYS, n, key);
		child = node_child(node, i);
		if (i)
			below = node_key(node, TREE_INNER_KEYS, i - 1);
		if (i < n)
			above = node_key(node, TREE_INNER_KEYS, i);
		if (unlikely(!node_is_unchanged(node, version)))
			return false;
		node_prefetch(child);
		step->child = i;
		if (i)
			path->low = tree_key_next(below);
		if (i < n)
			path->high = above;
		/* The version that is of this child, and of what its parent says of it. */
		if (unlikely(!node_look(child, &version) ||
			     !node_is_unchanged(node, step->version)))
			return false;
		node = child;
	}
}

/* The keys from at on, upwards or downwards, up to end. False: they were changed meanwhile. */
static bool copy_keys(const struct tree_node *node, uint64_t version, struct tree_key at,
		      struct tree_key end, struct tree_leaf *leaf)
{
	uint32_t count = node_count(node);
	uint32_t i = node_search(node, TREE_LEAF_KEYS, count, at);

	leaf->n = 0;
	if (!tree_key_less(end, at)) {
		for (; i < count; i++) {
			struct tree_key key = node_key(node, TREE_LEAF_KEYS, i);

			if (tree_key_less(end, key))
				break;
			leaf->keys[leaf->n++] = key;
		}
	} else {
		if (i < count && tree_key_equal(node_key(node, TREE_LEAF_KEYS, i), at))
			i++;
		while (i) {
			struct tree_key key = node_key(node, TREE_LEAF_KEYS, --i);

			if (tree_key_less(key, end))
				break;
			leaf->keys[leaf->n++] = key;
		}
	}
	return node_is_unchanged(node, version);
}

void tree_read(const struct tree *tree, struct tree_key at, struct tree_key end,
	       struct tree_leaf *ret_leaf)
{
	struct tree_path path;
	const struct tree_step *step;

	do {
		while (!tree_descend(tree, at, &path))
			cpu_relax();
		step = path_leaf(&path);
	} while (!copy_keys(step->node, step->version, at, end, ret_leaf));
	ret_leaf->word = &step->node->version;
	ret_leaf->version = step->version;
	ret_leaf->low = path.low;
	ret_leaf->high = path.high;
}
