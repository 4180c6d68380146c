// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adding a key to a tree, see tree.h. A full leaf is split under the lock of its parent; if that is
 * full as well, the topmost of the full nodes above is split first, and the way taken again.
 */
#include <errno.h>

#include "tree_node.h"

/* The node is locked, and has room. */
static void leaf_put(struct tree_node *leaf, uint32_t at, struct tree_key key)
{
	uint32_t n = node_count(leaf);

	for (uint32_t i = n; i > at; i--)
		node_key_set(leaf, TREE_LEAF_KEYS, i, node_key(leaf, TREE_LEAF_KEYS, i - 1));
	node_key_set(leaf, TREE_LEAF_KEYS, at, key);
	atomic_store_explicit(&leaf->n, n + 1, memory_order_release);
}

/* Child i was split: what is above the separator went to right. */
static void inner_put(struct tree_node *inner, uint32_t i, struct tree_key separator,
		      struct tree_node *right)
{
	uint32_t n = node_count(inner);

	for (uint32_t k = n; k > i; k--) {
		node_key_set(inner, TREE_INNER_KEYS, k, node_key(inner, TREE_INNER_KEYS, k - 1));
		node_child_set(inner, k + 1, node_child(inner, k));
	}
	node_key_set(inner, TREE_INNER_KEYS, i, separator);
	node_child_set(inner, i + 1, right);
	atomic_store_explicit(&inner->n, n + 1, memory_order_release);
}

static void node_begin(struct tree_node *node, uint32_t level)
{
	atomic_store_explicit(&node->version, 0, memory_order_relaxed);
	atomic_store_explicit(&node->level, level, memory_order_relaxed);
	atomic_store_explicit(&node->n, 0, memory_order_relaxed);
}

/*
 * Keys that come in order go to the end: what they leave behind is full, as nothing will be added
 * there. Returns the separator.
 */
static struct tree_key leaf_split(struct tree_node *leaf, struct tree_node *right,
				  struct tree_key key)
{
	uint32_t n = node_count(leaf), at = node_search(leaf, TREE_LEAF_KEYS, n, key);
	uint32_t kept = at == n ? n : n / 2;

	node_begin(right, 0);
	for (uint32_t i = kept; i < n; i++)
		node_key_set(right, TREE_LEAF_KEYS, i - kept, node_key(leaf, TREE_LEAF_KEYS, i));
	atomic_store_explicit(&right->n, n - kept, memory_order_relaxed);
	atomic_store_explicit(&leaf->n, kept, memory_order_release);
	if (at < kept || (at == kept && at < n))
		leaf_put(leaf, at, key);
	else
		leaf_put(right, at - kept, key);
	return node_key(leaf, TREE_LEAF_KEYS, node_count(leaf) - 1);
}

/* i: the child that the way went on to. The key between the two halves goes up. */
static struct tree_key inner_split(struct tree_node *inner, struct tree_node *right, uint32_t i)
{
	uint32_t n = node_count(inner), kept = i == n ? n - 1 : n / 2;

	node_begin(right, atomic_load_explicit(&inner->level, memory_order_relaxed));
	for (uint32_t k = kept + 1; k < n; k++)
		node_key_set(right, TREE_INNER_KEYS, k - kept - 1,
			     node_key(inner, TREE_INNER_KEYS, k));
	for (uint32_t k = kept + 1; k <= n; k++)
		node_child_set(right, k - kept - 1, node_child(inner, k));
	atomic_store_explicit(&right->n, n - kept - 1, memory_order_relaxed);
	atomic_store_explicit(&inner->n, kept, memory_order_release);
	return node_key(inner, TREE_INNER_KEYS, kept);
}

/* Hangs what was split off from a step's node in; root: a new one if it was the root, else NULL. */
static void hang_in(struct tree_path *path, uint32_t at, struct tree_key separator,
		    struct tree_node *right, struct tree_node *root)
{
	struct tree_node *parent = path->steps[at - 1].node, *node = path->steps[at].node;

	if (!root) {
		inner_put(parent, path->steps[at - 1].child, separator, right);
		return;
	}
	node_begin(root, atomic_load_explicit(&node->level, memory_order_relaxed) + 1);
	node_child_set(root, 0, node);
	inner_put(root, 0, separator, right);
	node_child_set(parent, 0, root);
}

static bool lock_two(struct tree_step *parent, struct tree_step *node, uint64_t add)
{
	if (!node_lock(parent->node, parent->version, 0))
		return false;
	if (node_lock(node->node, node->version, add))
		return true;
	node_unlock(parent->node, 0);
	return false;
}

/*
 * Splits the leaf at the end of the path, with the key put in, or the topmost of the full nodes
 * right above it. Errors: -ENOMEM, -EAGAIN (the key is not in yet).
 */
static int split(struct tree *tree, struct tree_path *path, struct tree_key key,
		 struct tree_change *change)
{
	uint32_t at = path->n - 1;
	struct tree_node *node, *right, *root = NULL;
	struct tree_key separator;
	bool is_leaf;
	int rc = -EAGAIN;

	while (at > 1 && node_count(path->steps[at - 1].node) == TREE_INNER_KEYS)
		at--;
	node = path->steps[at].node;
	is_leaf = at == path->n - 1;
	right = node_pool_alloc(is_leaf ? tree->leaves : tree->inners);
	if (at == 1)
		root = node_pool_alloc(tree->inners);
	if (!right || (at == 1 && (!root || path->n > TREE_HEIGHT_MAX))) {
		rc = -ENOMEM;
		goto out_give_back;
	}
	if (!lock_two(&path->steps[at - 1], &path->steps[at], is_leaf ? TREE_INSERT_ONE : 0))
		goto out_give_back;
	if (is_leaf) {
		separator = leaf_split(node, right, key);
		change->new_word = &right->version;
		change->new_version = 0;
		rc = 0;
	} else {
		separator = inner_split(node, right, path->steps[at].child);
	}
	hang_in(path, at, separator, right, root);
	node_unlock(node, 0);
	node_unlock(path->steps[at - 1].node, 0);
	return rc;

out_give_back:
	node_pool_give_back(tree->inners, root);
	node_pool_give_back(is_leaf ? tree->leaves : tree->inners, right);
	return rc;
}

int tree_insert(struct tree *tree, struct tree_key key, struct tree_change *change)
{
	struct tree_path path;

	for (;;) {
		struct tree_step *leaf;
		uint32_t n, at;
		int rc = -EAGAIN;

		if (!tree_descend(tree, key, &path))
			continue;
		leaf = path_leaf(&path);
		n = node_count(leaf->node);
		at = node_search(leaf->node, TREE_LEAF_KEYS, n, key);
		if (at < n && tree_key_equal(node_key(leaf->node, TREE_LEAF_KEYS, at), key)) {
			if (node_is_unchanged(leaf->node, leaf->version))
				return -EEXIST;
			continue;
		}
		change->word = &leaf->node->version;
		change->before = leaf->version & TREE_NOTED;
		change->after = (leaf->version + TREE_INSERT_ONE) & TREE_NOTED;
		change->new_word = NULL;
		if (n == TREE_LEAF_KEYS) {
			rc = split(tree, &path, key, change);
		} else if (node_lock(leaf->node, leaf->version, TREE_INSERT_ONE)) {
			leaf_put(leaf->node, at, key);
			node_unlock(leaf->node, 0);
			rc = 0;
		}
		if (rc != -EAGAIN)
			return rc;
	}
}
