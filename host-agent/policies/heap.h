/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A heap of VMs by their index: the first entry is the one that goes before all others. */
#ifndef EBB_POLICIES_HEAP_H
#define EBB_POLICIES_HEAP_H

#include <stdbool.h>
#include <stdint.h>

typedef bool policy_goes_before(const void *ctx, uint32_t a, uint32_t b);

/* The VM at i may have to go later than before: those below it that go before it rise. */
static inline void policy_heap_sink(uint16_t *heap, uint32_t num, uint32_t i,
				    policy_goes_before *goes_before, const void *ctx)
{
	const uint16_t v = heap[i];

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= num)
			break;
		if (child + 1 < num && goes_before(ctx, heap[child + 1], heap[child]))
			child++;
		if (!goes_before(ctx, heap[child], v))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = v;
}

/* Of entries in any order. */
static inline void policy_heap_make(uint16_t *heap, uint32_t num, policy_goes_before *goes_before,
				    const void *ctx)
{
	for (uint32_t i = num / 2; i > 0; i--)
		policy_heap_sink(heap, num, i - 1, goes_before, ctx);
}

#endif
