// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bookkeeping of leases (P1 to P4 of pool.h): against a shadow that keeps one
 * byte for every block there ever was.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/libebb/pool.h"
#include "tests/lib/chance.h"

#define BLOCK		(2u << 20)
#define MAX_LEASES	24
#define MAX_BLOCKS	150
#define RANDOM_POOLS	300
#define RANDOM_STEPS	600

static struct ebb_pool_lease *enter(struct ebb_pool *pool, uintptr_t block, uint32_t num_blocks,
				    unsigned int node)
{
	struct ebb_lease lease = {
		.addr = (void *)(block * BLOCK),
		.bytes = (uint64_t)num_blocks * BLOCK,
		.node = node,
		.block_bytes = BLOCK,
		.fd = -1,
	};
	struct ebb_pool_lease *l = ebb_pool_lease_create(&lease);

	assert_non_null(l);
	assert_int_equal(ebb_pool_insert(pool, l), 0);
	return l;
}

static void leave(struct ebb_pool *pool, struct ebb_pool_lease *l)
{
	ebb_pool_remove(pool, l);
	ebb_pool_lease_destroy(l);
}

static int take(struct ebb_pool *pool, uintptr_t addr, uint64_t bytes)
{
	struct ebb_pool_lease *l = ebb_pool_find(pool, (void *)addr);
	uint32_t first, count;

	if (!l)
		return -ENOENT;
	return ebb_pool_take(pool, l, (void *)addr, bytes, &first, &count);
}

static void finds_by_address(void **state)
{
	struct ebb_pool pool = { 0 };
	struct ebb_pool_lease *a, *b, *c;

	(void)state;
	b = enter(&pool, 20, 4, 0);
	a = enter(&pool, 10, 2, 0);
	c = enter(&pool, 24, 1, 0);
	assert_ptr_equal(ebb_pool_find(&pool, (void *)(10ul * BLOCK)), a);
	assert_ptr_equal(ebb_pool_find(&pool, (void *)(12ul * BLOCK - 1)), a);
	assert_null(ebb_pool_find(&pool, (void *)(12ul * BLOCK)));
	assert_null(ebb_pool_find(&pool, (void *)(10ul * BLOCK - 1)));
	assert_null(ebb_pool_find(&pool, NULL));
	assert_ptr_equal(ebb_pool_find(&pool, (void *)(24ul * BLOCK - 1)), b);
	assert_ptr_equal(ebb_pool_find(&pool, (void *)(24ul * BLOCK)), c);
	assert_null(ebb_pool_find(&pool, (void *)(25ul * BLOCK)));
	assert_null(ebb_pool_find(&pool, (void *)UINTPTR_MAX));
	leave(&pool, b);
	assert_null(ebb_pool_find(&pool, (void *)(20ul * BLOCK)));
	leave(&pool, a);
	leave(&pool, c);
	ebb_pool_finish(&pool);
}

static void overlaps_are_refused(void **state)
{
	static const struct { uintptr_t block; uint32_t num; } bad[] = {
		{ 10, 4 }, { 9, 2 }, { 13, 5 }, { 11, 1 }, { 5, 100 },
	};
	struct ebb_pool pool = { 0 };
	struct ebb_pool_lease *a = enter(&pool, 10, 4, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ebb_lease lease = {
			.addr = (void *)(bad[i].block * BLOCK),
			.bytes = (uint64_t)bad[i].num * BLOCK,
			.block_bytes = BLOCK,
		};
		struct ebb_pool_lease *l = ebb_pool_lease_create(&lease);

		assert_int_equal(ebb_pool_insert(&pool, l), -EEXIST);
		ebb_pool_lease_destroy(l);
	}
	leave(&pool, a);
	ebb_pool_finish(&pool);
}

static void bad_ranges_change_nothing(void **state)
{
	struct ebb_pool pool = { 0 };
	struct ebb_pool_lease *a = enter(&pool, 10, 4, 3);
	const uintptr_t start = 10ul * BLOCK;
	uint64_t seq;

	(void)state;
	assert_int_equal(take(&pool, start + BLOCK, BLOCK), 0);
	seq = pool.seq;
	assert_int_equal(take(&pool, start, 0), -EINVAL);
	assert_int_equal(take(&pool, start, BLOCK - 1), -EINVAL);
	assert_int_equal(take(&pool, start + 4096, BLOCK), -EINVAL);
	assert_int_equal(take(&pool, start, 5ull * BLOCK), -ERANGE);
	assert_int_equal(take(&pool, start + 3 * BLOCK, 2ull * BLOCK), -ERANGE);
	assert_int_equal(take(&pool, start, UINT64_MAX / BLOCK * BLOCK), -ERANGE);
	assert_int_equal(take(&pool, start + BLOCK, BLOCK), -ENOENT);
	assert_int_equal(take(&pool, start, 2ull * BLOCK), -ENOENT);
	assert_int_equal(take(&pool, start, 4ull * BLOCK), -ENOENT);
	assert_int_equal(take(&pool, start - BLOCK, BLOCK), -ENOENT);
	assert_true(pool.seq == seq);
	assert_true(pool.owned_bytes[3] == 3ull * BLOCK);
	assert_true(pool.releasing_bytes[3] == BLOCK);
	leave(&pool, a);
	assert_true(pool.owned_bytes[3] == 0 && pool.releasing_bytes[3] == 0);
	ebb_pool_finish(&pool);
}

static void spent_leases_are_told_from_others(void **state)
{
	struct ebb_pool pool = { 0 };
	const uint64_t nothing[1] = { 0 };
	struct ebb_pool_lease *l = enter(&pool, 1, 2, 0);
	uint64_t bytes;
	void *addr;

	(void)state;
	assert_int_equal(take(&pool, BLOCK, 2ull * BLOCK), 0);
	assert_false(ebb_pool_is_spent(l));
	l->num_users = 1;
	ebb_pool_released(&pool, l, 0, 2);
	assert_false(ebb_pool_is_spent(l));
	l->num_users = 0;
	assert_true(ebb_pool_is_spent(l));
	leave(&pool, l);

	/* Revoked, and given up before anybody was told: nobody will touch it. */
	l = enter(&pool, 1, 2, 0);
	ebb_pool_revoked(&pool, l, 0, 2, nothing, 0);
	assert_int_equal(take(&pool, BLOCK, 2ull * BLOCK), 0);
	assert_true(ebb_pool_is_spent(l));
	assert_int_equal(ebb_pool_untold_next(&pool, &addr, &bytes), 0);
	leave(&pool, l);

	/* Told: somebody may be about to. */
	l = enter(&pool, 1, 2, 0);
	ebb_pool_revoked(&pool, l, 0, 2, nothing, 0);
	assert_int_equal(ebb_pool_untold_next(&pool, &addr, &bytes), 1);
	assert_ptr_equal(addr, (void *)(uintptr_t)BLOCK);
	assert_true(bytes == 2ull * BLOCK);
	assert_false(ebb_pool_is_spent(l));
	leave(&pool, l);
	l = enter(&pool, 1, 2, 0);
	ebb_pool_revoked(&pool, l, 0, 2, nothing, 1);
	assert_false(ebb_pool_is_spent(l));
	leave(&pool, l);
	ebb_pool_finish(&pool);
}

/* ---- random, against a shadow ---- */

enum shadow_state { GONE, HELD, RELEASING, UNTOLD };

struct shadow {
	struct ebb_pool_lease *l;	/* NULL: none */
	uintptr_t start;
	uint32_t num_blocks;
	unsigned int node;
	unsigned char state[MAX_BLOCKS];
};

static void shadow_agrees(const struct ebb_pool *pool, const struct shadow *shadows)
{
	uint64_t owned[EBB_MAX_NODES] = { 0 }, releasing[EBB_MAX_NODES] = { 0 }, untold = 0;
	size_t num = 0;

	for (int i = 0; i < MAX_LEASES; i++) {
		const struct shadow *s = &shadows[i];

		if (!s->l)
			continue;
		num++;
		for (uint32_t b = 0; b < s->num_blocks; b++) {
			owned[s->node] += s->state[b] == HELD ? BLOCK : 0;
			releasing[s->node] += s->state[b] == RELEASING ? BLOCK : 0;
			untold += s->state[b] == UNTOLD;
		}
		assert_ptr_equal(ebb_pool_find(pool, (void *)(s->start + roll(BLOCK))),
				 s->l);
	}
	assert_int_equal(pool->num, num);
	assert_true(pool->num_untold == untold);
	assert_memory_equal(pool->owned_bytes, owned, sizeof(owned));
	assert_memory_equal(pool->releasing_bytes, releasing, sizeof(releasing));
	for (size_t i = 1; i < pool->num; i++)				/* P1 */
		assert_true((uintptr_t)pool->leases[i - 1]->lease.addr +
			    pool->leases[i - 1]->lease.bytes <=
			    (uintptr_t)pool->leases[i]->lease.addr);
}

static void random_take(struct ebb_pool *pool, struct shadow *s)
{
	uint32_t first = roll(s->num_blocks), count = 1 + roll(8);
	uint32_t ret_first, ret_count;
	int expected = 0, r;

	if (count > s->num_blocks - first)
		expected = -ERANGE;
	for (uint32_t b = first; expected == 0 && b < first + count; b++)
		if (s->state[b] != HELD && s->state[b] != UNTOLD)
			expected = -ENOENT;
	r = ebb_pool_take(pool, s->l, (void *)(s->start + (uintptr_t)first * BLOCK),
			  (uint64_t)count * BLOCK, &ret_first, &ret_count);
	assert_int_equal(r, expected);
	if (r < 0)
		return;
	assert_int_equal(ret_first, first);
	assert_int_equal(ret_count, count);
	for (uint32_t b = first; b < first + count; b++)
		s->state[b] = s->state[b] == HELD ? RELEASING : GONE;
}

static void random_end(struct ebb_pool *pool, struct shadow *s)
{
	uint32_t first = roll(s->num_blocks);
	uint32_t count = 1 + roll(s->num_blocks - first);
	int is_back = roll(3) == 0;

	if (is_back)
		ebb_pool_give_back(pool, s->l, first, count);
	else
		ebb_pool_released(pool, s->l, first, count);
	for (uint32_t b = first; b < first + count; b++)
		if (s->state[b] == RELEASING)
			s->state[b] = is_back ? HELD : GONE;
}

static void random_revoke(struct ebb_pool *pool, struct shadow *s)
{
	uint64_t map[(MAX_BLOCKS + 63) / 64];
	uint32_t start = roll(s->num_blocks);
	uint32_t count = s->num_blocks - start;
	int is_told = roll(4) == 0;

	memset(map, 0xff, sizeof(map));
	for (int i = 0; i < 5; i++) {
		uint32_t b = roll(count);

		map[b / 64] &= ~(1ull << (b % 64));
		if (s->state[start + b] == HELD)
			s->state[start + b] = is_told ? GONE : UNTOLD;
	}
	ebb_pool_revoked(pool, s->l, start, count, map, is_told);
}

/* P3: every run was untold, and is as long as it can be. */
static void random_tell(struct ebb_pool *pool, struct shadow *shadows)
{
	uint64_t bytes;
	void *addr;

	while (roll(3) && ebb_pool_untold_next(pool, &addr, &bytes)) {
		struct ebb_pool_lease *l = ebb_pool_find(pool, addr);
		struct shadow *s = shadows;
		uint32_t first, count;

		while (s->l != l)
			s++;
		first = (uint32_t)(((uintptr_t)addr - s->start) / BLOCK);
		count = (uint32_t)(bytes / BLOCK);
		assert_true(count > 0 && first + count <= s->num_blocks);
		assert_true(first == 0 || s->state[first - 1] != UNTOLD);
		assert_true(first + count == s->num_blocks || s->state[first + count] != UNTOLD);
		for (uint32_t b = first; b < first + count; b++) {
			assert_int_equal(s->state[b], UNTOLD);
			s->state[b] = GONE;
		}
	}
}

static void random_step(struct ebb_pool *pool, struct shadow *shadows)
{
	int i = (int)roll(MAX_LEASES);
	struct shadow *s = &shadows[i];

	if (!s->l) {
		s->num_blocks = 1 + roll(MAX_BLOCKS);
		s->start = (1 + (uintptr_t)i * MAX_BLOCKS) * BLOCK;
		s->node = roll(EBB_MAX_NODES);
		memset(s->state, HELD, sizeof(s->state));
		s->l = enter(pool, s->start / BLOCK, s->num_blocks, s->node);
		return;
	}
	switch (roll(10)) {
	case 0:
		if (roll(4) == 0) {
			leave(pool, s->l);
			s->l = NULL;
		}
		break;
	case 1:
		random_revoke(pool, s);
		break;
	case 2:
		random_tell(pool, shadows);
		break;
	case 3:
	case 4:
	case 5:
		random_end(pool, s);
		break;
	default:
		random_take(pool, s);
		break;
	}
}

static void random_pools_agree_with_their_shadows(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < RANDOM_POOLS; seed++) {
		struct shadow shadows[MAX_LEASES] = { 0 };
		struct ebb_pool pool = { 0 };

		chance = seed;
		for (int i = 0; i < RANDOM_STEPS; i++) {
			uint64_t seq = pool.seq, owned[EBB_MAX_NODES], releasing[EBB_MAX_NODES];

			memcpy(owned, pool.owned_bytes, sizeof(owned));
			memcpy(releasing, pool.releasing_bytes, sizeof(releasing));
			random_step(&pool, shadows);
			shadow_agrees(&pool, shadows);
			if (pool.seq == seq) {				/* P4 */
				assert_memory_equal(pool.owned_bytes, owned, sizeof(owned));
				assert_memory_equal(pool.releasing_bytes, releasing,
						    sizeof(releasing));
			}
		}
		for (int i = 0; i < MAX_LEASES; i++)
			if (shadows[i].l)
				leave(&pool, shadows[i].l);
		assert_true(pool.num_untold == 0);
		ebb_pool_finish(&pool);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_by_address),
		cmocka_unit_test(overlaps_are_refused),
		cmocka_unit_test(bad_ranges_change_nothing),
		cmocka_unit_test(spent_leases_are_told_from_others),
		cmocka_unit_test(random_pools_agree_with_their_shadows),
	};

	return cmocka_run_group_tests_name("ebb_pool", tests, NULL, NULL);
}
