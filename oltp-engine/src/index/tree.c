// SPDX-License-Identifier: GPL-2.0-or-later
/* See tree.h: nodes and their locks, looking things up, putting keys in, taking them out. */
#include <errno.h>
#include <sched.h>

#include "oltp-engine/src/base/util.h"
#include "tree.h"

/*
 * Inside of the tree: nodes, their locks, and the way down. Fields of a node are read with acquire
 * and written with release, so that a thread that reads a field while it is being written sees,
 * when it looks at the version again, that the node is, or was, locked.
 */
static inline uint32_t node_count(const struct tree_node *node)
{
	return atomic_load_explicit(&node->n, memory_order_acquire);
}

static inline bool node_is_leaf(const struct tree_node *node)
{
	return !atomic_load_explicit(&node->level, memory_order_relaxed);
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

static inline struct tree_step *path_leaf(struct tree_path *path)
{
	return &path->steps[path->n - 1];
}

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

/* Waits while somebody changes the node. False: it is obsolete. */
static bool node_look(const struct tree_node *node, uint64_t *ret_version)
{
	uint64_t version;

	for (uint32_t spins = 1;; spins++) {
		/*
		 * Pairs with the release in node_unlock: the node's fields are complete.
		 * Sequentially consistent for threads that add a key and then look for another
		 * (txn_rows.c).
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

/* False: something has changed on the way, to be tried again. */
static bool tree_descend(const struct tree *tree, struct tree_key key, struct tree_path *path)
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

/*
 * Adding a key to a tree, see tree.h. A full leaf is split under the lock of its parent; if that is
 * full as well, the topmost of the full nodes above is split first, and the way taken again.
 */

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
		change->before = leaf->version & TREE_VERSION_MASK;
		change->after = (leaf->version + TREE_INSERT_ONE) & TREE_VERSION_MASK;
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

/* Taking keys, and leaves that got empty, out of a tree: see tree.h. */

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
