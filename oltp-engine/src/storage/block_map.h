/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From an address to the block it is in, without a lock: two levels over the 27 bits of an address
 * that name a block of 2 MiB. Safe to read in a signal handler. One writer at a time.
 */
#ifndef OLTP_BLOCK_MAP_H
#define OLTP_BLOCK_MAP_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "oltp.h"

#define BLOCK_MAP_SHIFT		21u
#define BLOCK_MAP_LEAF_BITS	13u
#define BLOCK_MAP_ROOT_BITS	(48u - BLOCK_MAP_SHIFT - BLOCK_MAP_LEAF_BITS)

_Static_assert(OLTP_MEM_BLOCK_BYTES == 1ul << BLOCK_MAP_SHIFT, "a block is 2 MiB");

struct block;

struct block_map_leaf {
	struct block *_Atomic blocks[1u << BLOCK_MAP_LEAF_BITS];
};

struct block_map {
	struct block_map_leaf *_Atomic leaves[1u << BLOCK_MAP_ROOT_BITS];
};

/* Inline always, so that the sanitizers treat it as its caller, see IN_SIGBUS_HANDLER. */
static inline __attribute__((always_inline)) struct block *
block_map_get(const struct block_map *map, const void *addr)
{
	uintptr_t number = (uintptr_t)addr >> BLOCK_MAP_SHIFT;
	struct block_map_leaf *leaf;

	if (number >> (BLOCK_MAP_LEAF_BITS + BLOCK_MAP_ROOT_BITS))
		return NULL;
	/* Both pair with the releases in block_map_set. */
	leaf = atomic_load_explicit(&map->leaves[number >> BLOCK_MAP_LEAF_BITS],
				    memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf->blocks[number & ((1u << BLOCK_MAP_LEAF_BITS) - 1)],
				    memory_order_acquire);
}

/* Errors: -ENOMEM (not for NULL). */
static inline int block_map_set(struct block_map *map, const void *addr, struct block *block)
{
	uintptr_t number = (uintptr_t)addr >> BLOCK_MAP_SHIFT;
	struct block_map_leaf *_Atomic *root = &map->leaves[number >> BLOCK_MAP_LEAF_BITS];
	struct block_map_leaf *leaf = atomic_load_explicit(root, memory_order_acquire);

	if (!leaf) {
		if (!block)
			return 0;
		leaf = calloc(1, sizeof(*leaf));
		if (!leaf)
			return -ENOMEM;
		atomic_store_explicit(root, leaf, memory_order_release);
	}
	atomic_store_explicit(&leaf->blocks[number & ((1u << BLOCK_MAP_LEAF_BITS) - 1)], block,
			      memory_order_release);
	return 0;
}

static inline void block_map_finish(struct block_map *map)
{
	for (unsigned int i = 0; i < 1u << BLOCK_MAP_ROOT_BITS; i++)
		free(atomic_load_explicit(&map->leaves[i], memory_order_relaxed));
}

#endif
