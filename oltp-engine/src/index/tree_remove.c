// SPDX-License-Identifier: GPL-2.0-or-later
/* Taking keys, and leaves that got empty, out of a tree: see tree.h. */
#include "tree_node.h"

/* The leaf is locked. */
static void leaf_take(struct tree_node *leaf, uint32_t at)
{
	uint32_t n = node_count(leaf) - 1;

	for (uint32_t i = at; i < n; i++)
		node_key_set(leaf, TREE_LEAF_KEYS, i, node_key(leaf, TREE_LEAF_KEYS, i + 1));
	atomic_store_explicit(&leaf->n, n, memory_order_release);
}

/*
 * Child i goes; what it was responsible for goes to the next one, or if it is the last, to the one
 * before. The node is locked, and has another child.
 */
static void inner_take(struct tree_node *inner, uint32_t i)
{
	uint32_t n = node_count(inner) - 1;

	for (uint32_t k = i; k < n; k++)
		node_key_set(inner, TREE_INNER_KEYS, k, node_key(inner, TREE_INNER_KEYS, k + 1));
	for (uint32_t k = i; k <= n; k++)
		node_child_set(inner, k, node_child(inner, k + 1));
	atomic_store_explicit(&inner->n, n, memory_order_release);
}

static bool lock_steps(struct tree_path *path, uint32_t from)
{
	for (uint32_t i = from; i < path->n; i++) {
		if (node_lock(path->steps[i].node, path->steps[i].version, 0))
			continue;
		while (i-- > from)
			node_unlock(path->steps[i].node, 0);
		return false;
	}
	return true;
}

static bool path_is_unchanged(const struct tree_path *path)
{
	for (uint32_t i = 0; i < path->n; i++) {
		if (!node_is_unchanged(path->steps[i].node, path->steps[i].version))
			return false;
	}
	return true;
}

/* False: something changed, to be tried again. */
static bool try_unlink(struct tree *tree, struct tree_key key)
{
	struct tree_path path;
	uint32_t keeper;

	if (!tree_descend(tree, key, &path))
		return false;
	keeper = path.n - 1;
	/* Nothing but the leaf below it. */
	while (keeper && !node_count(path.steps[keeper].node))
		keeper--;
	/* Somebody came, or it is the last one of all. */
	if (keeper == path.n - 1 || !keeper)
		return path_is_unchanged(&path);
	if (!lock_steps(&path, keeper))
		return false;
	inner_take(path.steps[keeper].node, path.steps[keeper].child);
	node_unlock(path.steps[keeper].node, 0);
	for (uint32_t i = keeper + 1; i < path.n; i++)
		node_unlock(path.steps[i].node, TREE_OBSOLETE);
	for (uint32_t i = keeper + 1; i < path.n; i++)
		node_pool_retire(i == path.n - 1 ? tree->leaves : tree->inners,
				 path.steps[i].node);
	return true;
}

void tree_remove(struct tree *tree, struct tree_key key, bool keep_leaf)
{
	struct tree_path path;

	for (;;) {
		struct tree_step *leaf;
		uint32_t n, at;

		if (!tree_descend(tree, key, &path))
			continue;
		leaf = path_leaf(&path);
		n = node_count(leaf->node);
		at = node_search(leaf->node, TREE_LEAF_KEYS, n, key);
		if (at == n || !tree_key_equal(node_key(leaf->node, TREE_LEAF_KEYS, at), key)) {
			if (node_is_unchanged(leaf->node, leaf->version))
				return;
			continue;
		}
		if (!node_lock(leaf->node, leaf->version, 0))
			continue;
		leaf_take(leaf->node, at);
		node_unlock(leaf->node, 0);
		break;
	}
	if (node_count(path_leaf(&path)->node) || keep_leaf)
		return;
	while (!try_unlink(tree, key))
		;
}
