// SPDX-License-Identifier: BSD-3-Clause
/*
 * Leases and the states of their blocks: see pool.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define WORD_BITS	64

static int bit_get(const uint64_t *map, uint32_t i)
{
	return map[i / WORD_BITS] >> (i % WORD_BITS) & 1;
}

static void bit_set(uint64_t *map, uint32_t i)
{
	map[i / WORD_BITS] |= 1ull << (i % WORD_BITS);
}

static void bit_clear(uint64_t *map, uint32_t i)
{
	map[i / WORD_BITS] &= ~(1ull << (i % WORD_BITS));
}

struct ebb_pool_lease *ebb_pool_lease_create(const struct ebb_lease *lease)
{
	uint64_t num_blocks = lease->bytes / lease->block_bytes;
	size_t words = (size_t)(num_blocks + WORD_BITS - 1) / WORD_BITS;
	struct ebb_pool_lease *l;

	if (num_blocks == 0 || num_blocks > UINT32_MAX)
		return NULL;
	l = calloc(1, sizeof(*l) + 3 * words * sizeof(uint64_t));
	if (!l)
		return NULL;
	l->lease = *lease;
	l->num_blocks = (uint32_t)num_blocks;
	l->num_held = l->num_blocks;
	l->held = (uint64_t *)(l + 1);
	l->releasing = l->held + words;
	l->untold = l->releasing + words;
	for (uint32_t i = 0; i < l->num_blocks; i++)
		bit_set(l->held, i);
	return l;
}

void ebb_pool_lease_destroy(struct ebb_pool_lease *lease)
{
	free(lease);
}

/* Index of the first lease that starts above the address. */
static size_t index_above(const struct ebb_pool *pool, const void *addr)
{
	size_t from = 0, to = pool->num;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if ((uintptr_t)pool->leases[mid]->lease.addr > (uintptr_t)addr)
			to = mid;
		else
			from = mid + 1;
	}
	return from;
}

static uintptr_t end_of(const struct ebb_pool_lease *lease)
{
	return (uintptr_t)lease->lease.addr + lease->lease.bytes;
}

/* P2, P4: all that changes num_held and num_releasing goes through here. */
static void count_change(struct ebb_pool *pool, struct ebb_pool_lease *lease, int64_t held,
			 int64_t releasing)
{
	unsigned int node = lease->lease.node;
	uint64_t block_bytes = lease->lease.block_bytes;

	if (held == 0 && releasing == 0)
		return;
	lease->num_held += (uint32_t)held;
	lease->num_releasing += (uint32_t)releasing;
	pool->owned_bytes[node] += (uint64_t)held * block_bytes;
	pool->releasing_bytes[node] += (uint64_t)releasing * block_bytes;
	pool->seq++;
}

int ebb_pool_insert(struct ebb_pool *pool, struct ebb_pool_lease *lease)
{
	size_t i = index_above(pool, lease->lease.addr);

	if (i > 0 && end_of(pool->leases[i - 1]) > (uintptr_t)lease->lease.addr)
		return -EEXIST;
	if (i < pool->num && end_of(lease) > (uintptr_t)pool->leases[i]->lease.addr)
		return -EEXIST;
	if (pool->num == pool->room) {
		size_t room = pool->room ? 2 * pool->room : 16;
		void *leases = reallocarray(pool->leases, room, sizeof(*pool->leases));

		if (!leases)
			return -ENOMEM;
		pool->leases = leases;
		pool->room = room;
	}
	memmove(&pool->leases[i + 1], &pool->leases[i],
		(pool->num - i) * sizeof(*pool->leases));
	pool->leases[i] = lease;
	pool->num++;
	pool->owned_bytes[lease->lease.node] += lease->lease.bytes;
	pool->seq++;
	return 0;
}

void ebb_pool_remove(struct ebb_pool *pool, struct ebb_pool_lease *lease)
{
	size_t i = index_above(pool, lease->lease.addr) - 1;

	pool->num_untold -= lease->num_untold;
	ebb_pool_stale_set(pool, lease, 0);
	count_change(pool, lease, -(int64_t)lease->num_held, -(int64_t)lease->num_releasing);
	memmove(&pool->leases[i], &pool->leases[i + 1],
		(pool->num - i - 1) * sizeof(*pool->leases));
	pool->num--;
}

void ebb_pool_finish(struct ebb_pool *pool)
{
	free(pool->leases);
	memset(pool, 0, sizeof(*pool));
}

struct ebb_pool_lease *ebb_pool_find(const struct ebb_pool *pool, const void *addr)
{
	size_t i = index_above(pool, addr);

	if (i == 0 || (uintptr_t)addr >= end_of(pool->leases[i - 1]))
		return NULL;
	return pool->leases[i - 1];
}

int ebb_pool_take(struct ebb_pool *pool, struct ebb_pool_lease *lease, const void *addr,
		  uint64_t bytes, uint32_t *ret_first, uint32_t *ret_count)
{
	uint64_t offset = (uintptr_t)addr - (uintptr_t)lease->lease.addr;
	uint64_t block_bytes = lease->lease.block_bytes;
	uint32_t first, count, num_held = 0;

	if (bytes == 0 || bytes % block_bytes || offset % block_bytes)
		return -EINVAL;
	if (bytes > lease->lease.bytes - offset)
		return -ERANGE;
	first = (uint32_t)(offset / block_bytes);
	count = (uint32_t)(bytes / block_bytes);
	for (uint32_t i = first; i < first + count; i++)
		if (!bit_get(lease->held, i) && !bit_get(lease->untold, i))
			return -ENOENT;
	for (uint32_t i = first; i < first + count; i++) {
		if (bit_get(lease->held, i)) {
			bit_clear(lease->held, i);
			bit_set(lease->releasing, i);
			num_held++;
		} else {
			bit_clear(lease->untold, i);
			lease->num_untold--;
			pool->num_untold--;
		}
	}
	count_change(pool, lease, -(int64_t)num_held, num_held);
	*ret_first = first;
	*ret_count = count;
	return 0;
}

void ebb_pool_released(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t first,
		       uint32_t count)
{
	uint32_t num = 0;

	for (uint32_t i = first; i < first + count; i++) {
		num += (uint32_t)bit_get(lease->releasing, i);
		bit_clear(lease->releasing, i);
	}
	count_change(pool, lease, 0, -(int64_t)num);
}

void ebb_pool_give_back(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t first,
			uint32_t count)
{
	uint32_t num = 0;

	for (uint32_t i = first; i < first + count; i++) {
		if (!bit_get(lease->releasing, i))
			continue;
		bit_clear(lease->releasing, i);
		bit_set(lease->held, i);
		num++;
	}
	count_change(pool, lease, num, -(int64_t)num);
}

void ebb_pool_revoked(struct ebb_pool *pool, struct ebb_pool_lease *lease, uint32_t start,
		      uint32_t count, const uint64_t *held_map, int is_told)
{
	uint32_t num = 0;

	for (uint32_t i = 0; i < count && start + i < lease->num_blocks; i++) {
		if (bit_get(held_map, i) || !bit_get(lease->held, start + i))
			continue;
		bit_clear(lease->held, start + i);
		num++;
		if (is_told) {
			lease->has_told = 1;
			continue;
		}
		bit_set(lease->untold, start + i);
		lease->num_untold++;
		pool->num_untold++;
	}
	count_change(pool, lease, -(int64_t)num, 0);
}

int ebb_pool_untold_next(struct ebb_pool *pool, void **ret_addr, uint64_t *ret_bytes)
{
	struct ebb_pool_lease *lease = NULL;
	uint32_t first = 0, end;

	if (pool->num_untold == 0)
		return 0;
	for (size_t i = 0; i < pool->num && !lease; i++)
		if (pool->leases[i]->num_untold)
			lease = pool->leases[i];
	while (!bit_get(lease->untold, first))
		first++;
	for (end = first; end < lease->num_blocks && bit_get(lease->untold, end); end++)
		bit_clear(lease->untold, end);
	lease->has_told = 1;
	lease->num_untold -= end - first;
	pool->num_untold -= end - first;
	*ret_addr = (char *)lease->lease.addr + (uint64_t)first * lease->lease.block_bytes;
	*ret_bytes = (uint64_t)(end - first) * lease->lease.block_bytes;
	return 1;
}

void ebb_pool_compare(struct ebb_pool *pool, struct ebb_pool_lease *lease,
		      uint64_t revoked_bytes)
{
	if (revoked_bytes != lease->revoked_known_bytes)
		ebb_pool_stale_set(pool, lease, 1);
}

void ebb_pool_stale_set(struct ebb_pool *pool, struct ebb_pool_lease *lease, int is_stale)
{
	if (lease->is_stale == is_stale)
		return;
	lease->is_stale = is_stale;
	pool->num_stale += is_stale ? 1 : (size_t)-1;
}

int ebb_pool_is_spent(const struct ebb_pool_lease *lease)
{
	return lease->num_held == 0 && lease->num_releasing == 0 && lease->num_untold == 0 &&
	       lease->num_users == 0 && !lease->has_told;
}
