/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Blocks of memory for tables and indexes, from the source that the user named. The default source
 * is anonymous memory with huge pages advised, cut from larger arenas so that blocks lie together.
 */
#ifndef OLTP_MEM_H
#define OLTP_MEM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "oltp.h"

struct mem {
	const struct oltp_mem_ops *ops;
	void *ctx;
	int node;
	pthread_mutex_t lock;		/* serialises the hooks and guards the arena */
	uint8_t *arena_next, *arena_end;	/* default source only */
};

void mem_init(struct mem *mem, const struct oltp_mem_ops *ops, void *ctx, int node);

/* Every block must have been freed. */
void mem_finish(struct mem *mem);

/* Rounds a size up to whole blocks; mem_alloc and mem_free take only such sizes. */
size_t mem_round(size_t bytes);

/* bytes: from mem_round. Zeroed and aligned to OLTP_MEM_BLOCK_BYTES; NULL: no memory. */
void *mem_alloc(struct mem *mem, size_t bytes);

/* Accepts NULL. */
void mem_free(struct mem *mem, void *addr, size_t bytes);

/* Anonymous memory in huge pages. */

/*
 * Zeroed and aligned to OLTP_MEM_BLOCK_BYTES; bytes is a multiple of that. Freed with munmap().
 * NULL: no memory.
 */
void *map_aligned(size_t bytes);

#endif
