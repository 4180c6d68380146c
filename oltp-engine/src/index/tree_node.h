/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the tree: nodes, their locks, and the way down. What is in a node is read with acquire
 * and written with release, so that who reads something that is being written also sees, when it
 * looks at the version again, that the node is, or was, locked.
 */
#ifndef OLTP_TREE_NODE_H
#define OLTP_TREE_NODE_H

#include "oltp-engine/src/base/util.h"
#include "tree.h"

static inline uint32_t node_count(const struct tree_node *node)
{
	return atomic_load_explicit(&node->n, memory_order_acquire);
}

static inline bool node_is_leaf(const struct tree_node *node)
{
	return !atomic_load_explicit(&node->level, memory_order_relaxed);
}

static inline uint32_t node_room(const struct tree_node *node)
{
	return node_is_leaf(node) ? TREE_LEAF_KEYS : TREE_INNER_KEYS;
}

static inline struct tree_key node_key(const struct tree_node *node, uint32_t room, uint32_t i)
{
	return (struct tree_key){
		atomic_load_explicit(&node->words[i], memory_order_acquire),
		atomic_load_explicit(&node->words[room + i], memory_order_acquire),
	};
}

static inline void node_key_set(struct tree_node *node, uint32_t room, uint32_t i,
				struct tree_key key)
{
	atomic_store_explicit(&node->words[i], key.sort, memory_order_release);
	atomic_store_explicit(&node->words[room + i], key.primary, memory_order_release);
}

static inline struct tree_node *node_child(const struct tree_node *node, uint32_t i)
{
	return (struct tree_node *)(uintptr_t)atomic_load_explicit(
		&node->words[2 * TREE_INNER_KEYS + i], memory_order_acquire);
}

static inline void node_child_set(struct tree_node *node, uint32_t i, struct tree_node *child)
{
	atomic_store_explicit(&node->words[2 * TREE_INNER_KEYS + i], (uint64_t)(uintptr_t)child,
			      memory_order_release);
}

/* The first of n keys that is not less. */
static inline uint32_t node_search(const struct tree_node *node, uint32_t room, uint32_t n,
				   struct tree_key key)
{
	uint32_t first = 0;

	while (n) {
		uint32_t half = n / 2;
		bool is_less = tree_key_less(node_key(node, room, first + half), key);

		first = is_less ? first + half + 1 : first;
		n = is_less ? n - half - 1 : half;
	}
	return first;
}

/* Waits while somebody changes the node. False: it is obsolete. */
bool node_look(const struct tree_node *node, uint64_t *ret_version);

static inline bool node_is_unchanged(const struct tree_node *node, uint64_t version)
{
	return atomic_load_explicit(&node->version, memory_order_relaxed) == version;
}

/* add: 0 or TREE_INSERT_ONE. False: it is not as it was. */
static inline bool node_lock(struct tree_node *node, uint64_t version, uint64_t add)
{
	return atomic_compare_exchange_strong_explicit(&node->version, &version,
						       (version | TREE_LOCKED) + add,
						       memory_order_seq_cst, memory_order_relaxed);
}

/* flag: 0 or TREE_OBSOLETE. */
static inline void node_unlock(struct tree_node *node, uint64_t flag)
{
	uint64_t version = atomic_load_explicit(&node->version, memory_order_relaxed);

	atomic_store_explicit(&node->version, ((version - TREE_LOCKED) + TREE_CHANGE_ONE) | flag,
			      memory_order_release);
}

/* The way from the anchor to a leaf, each step as it was when it was taken. */
struct tree_step {
	struct tree_node *node;
	uint64_t version;
	uint32_t child;		/* where it went on; not of the leaf */
};

struct tree_path {
	struct tree_step steps[TREE_HEIGHT_MAX + 1];
	uint32_t n;
	struct tree_key low, high;	/* what the leaf was responsible for */
};

/* False: something has changed on the way, to be tried again. */
bool tree_descend(const struct tree *tree, struct tree_key key, struct tree_path *ret_path);

static inline struct tree_step *path_leaf(struct tree_path *path)
{
	return &path->steps[path->n - 1];
}

#endif
