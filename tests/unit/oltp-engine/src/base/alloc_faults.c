// SPDX-License-Identifier: GPL-2.0-or-later
/* See alloc_faults.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "alloc_faults.h"

static _Atomic uint64_t n_seen, fail_first = UINT64_MAX, fail_n;
/* Set while other threads allocate. */
static bool (*_Atomic is_own_allocation)(void);

void alloc_fail_except(bool (*is_own)(void))
{
	is_own_allocation = is_own;
}

void alloc_fail_from(uint64_t nth, uint64_t n)
{
	fail_first = UINT64_MAX;
	fail_n = n;
	n_seen = 0;
	fail_first = nth;
}

bool alloc_fail_end(void)
{
	return atomic_exchange(&fail_first, UINT64_MAX) < n_seen;
}

static bool is_to_fail(void)
{
	uint64_t nth, first = fail_first;
	bool (*is_own)(void) = is_own_allocation;

	if (is_own && is_own())
		return false;
	nth = atomic_fetch_add(&n_seen, 1);
	return nth >= first && nth - first < fail_n;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return is_to_fail() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return is_to_fail() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return is_to_fail() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return is_to_fail() ? NULL : __real_aligned_alloc(align, bytes);
}
