/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The heap as the core's allocator: the functions of struct ebb_alloc in core/core.h. */
#ifndef EBB_UTIL_HEAP_H
#define EBB_UTIL_HEAP_H

#include <stddef.h>
#include <stdlib.h>

static inline void *ebb_heap_alloc(void *ctx, size_t bytes)
{
	(void)ctx;
	return calloc(1, bytes);
}

static inline void ebb_heap_free(void *ctx, void *ptr)
{
	(void)ctx;
	free(ptr);
}

#endif
