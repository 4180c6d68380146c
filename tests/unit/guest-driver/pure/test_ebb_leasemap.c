/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Description: what a lease of the guest driver has; ranges that a program may name. */
#include "guest-driver/pure/leasemap.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MIB		((u64)1 << 20)
#define BLOCK_BYTES	(2 * MIB)

static u32 entries[16];
static struct ebb_leasemap map;

/* Ten blocks of the pool: 100 to 106, 200 to 202. */
static int setup(void **state)
{
	const struct ebb_run first = { 100, 7 }, second = { 200, 3 };

	(void)state;
	ebb_leasemap_init(&map, entries, BLOCK_BYTES);
	ebb_leasemap_append(&map, &first);
	ebb_leasemap_append(&map, &second);
	return 0;
}

static void check_counts(u32 held, u32 revoked)
{
	u32 is_held = 0;

	for (u32 i = 0; i < map.num_blocks; i++)
		is_held += ebb_leasemap_is_held(&map, i);
	assert_int_equal(is_held, held);
	assert_int_equal(map.num_held, held);
	assert_int_equal(map.num_revoked, revoked);
}

static void test_lookup(void **state)
{
	u32 block = 0;

	(void)state;
	assert_int_equal(map.num_blocks, 10);
	check_counts(10, 0);
	assert_int_equal(ebb_leasemap_lookup(&map, 6, &block), 0);
	assert_int_equal(block, 106);
	assert_int_equal(ebb_leasemap_lookup(&map, 7, &block), 0);
	assert_int_equal(block, 200);
	assert_int_equal(ebb_leasemap_lookup(&map, 10, &block), -ENOENT);
	assert_int_equal(ebb_leasemap_lookup(&map, UINT64_MAX, &block), -ENOENT);
	assert_int_equal(block, 200);
}

static void test_range(void **state)
{
	static const struct {
		u64 offset, bytes;
		int rc;
	} cases[] = {
		{ 0, 10 * BLOCK_BYTES, 0 },
		{ 9 * BLOCK_BYTES, BLOCK_BYTES, 0 },
		{ 0, 0, -EINVAL },
		{ BLOCK_BYTES, 0, -EINVAL },
		{ 4096, BLOCK_BYTES, -EINVAL },
		{ MIB, BLOCK_BYTES, -EINVAL },
		{ 0, MIB, -EINVAL },
		{ 0, BLOCK_BYTES + 1, -EINVAL },
		{ 1, BLOCK_BYTES - 1, -EINVAL },
		{ 0, UINT64_MAX, -EINVAL },
		{ 10 * BLOCK_BYTES, BLOCK_BYTES, -ERANGE },
		{ 9 * BLOCK_BYTES, 2 * BLOCK_BYTES, -ERANGE },
		{ 0, 11 * BLOCK_BYTES, -ERANGE },
		{ 2 * BLOCK_BYTES, -BLOCK_BYTES, -ERANGE },	/* the sum is one block */
		{ -BLOCK_BYTES, BLOCK_BYTES, -ERANGE },		/* the sum is 0 */
		{ -BLOCK_BYTES, 2 * BLOCK_BYTES, -ERANGE },
		{ (u64)1 << 63, BLOCK_BYTES, -ERANGE },
	};
	struct ebb_run r = { 77, 77 };

	(void)state;
	for (u32 i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc = ebb_leasemap_range(&map, cases[i].offset, cases[i].bytes, &r);

		assert_int_equal(rc, cases[i].rc);
		if (!rc) {
			assert_int_equal(r.first, cases[i].offset / BLOCK_BYTES);
			assert_int_equal(r.count, cases[i].bytes / BLOCK_BYTES);
		}
	}
}

static void test_release(void **state)
{
	struct ebb_run r = { 2, 3 }, over = { 4, 2 };
	u32 block;

	(void)state;
	assert_int_equal(ebb_leasemap_release(&map, &r), 0);
	check_counts(7, 0);
	assert_int_equal(ebb_leasemap_lookup(&map, 3, &block), -ENOENT);
	assert_int_equal(ebb_leasemap_block(&map, 3), 103);
	/* twice, and a range of which one block is gone */
	assert_int_equal(ebb_leasemap_release(&map, &r), -ENOENT);
	assert_int_equal(ebb_leasemap_release(&map, &over), -ENOENT);
	check_counts(7, 0);
	assert_int_equal(ebb_leasemap_lookup(&map, 5, &block), 0);
}

static void test_revoke(void **state)
{
	struct ebb_run r = { 0, 2 };
	u32 block;

	(void)state;
	ebb_leasemap_revoke(&map, 1, 101);
	check_counts(9, 1);
	assert_int_equal(ebb_leasemap_lookup(&map, 1, &block), -ENOENT);
	/* twice; not the block that is there; past the end */
	ebb_leasemap_revoke(&map, 1, 101);
	ebb_leasemap_revoke(&map, 2, 103);
	ebb_leasemap_revoke(&map, 10, 110);
	check_counts(9, 1);
	assert_int_equal(ebb_leasemap_release(&map, &r), -ENOENT);
	check_counts(9, 1);
	/* released before the host took it: not revoked */
	r = (struct ebb_run) { 2, 1 };
	assert_int_equal(ebb_leasemap_release(&map, &r), 0);
	ebb_leasemap_revoke(&map, 2, 102);
	check_counts(8, 1);
	ebb_leasemap_revoke_all(&map);
	check_counts(0, 9);
	ebb_leasemap_revoke_all(&map);
	check_counts(0, 9);
}

/* The marks of who maps blocks are no part of their numbers, and go with nothing. */
static void test_zeroed(void **state)
{
	struct ebb_run r = { 2, 1 };
	u32 block = 0;

	(void)state;
	for (u32 i = 0; i < map.num_blocks; i++)
		map.entries[i] |= i % 2 ? EBB_LEASEMAP_ZEROING : EBB_LEASEMAP_ZEROED;
	check_counts(10, 0);
	assert_int_equal(ebb_leasemap_lookup(&map, 8, &block), 0);
	assert_int_equal(block, 201);
	assert_int_equal(ebb_leasemap_lookup(&map, 9, &block), 0);
	assert_int_equal(block, 202);
	assert_int_equal(ebb_leasemap_release(&map, &r), 0);
	ebb_leasemap_revoke(&map, 2, 102);
	ebb_leasemap_revoke(&map, 8, 201);
	ebb_leasemap_revoke(&map, 9, 202);
	check_counts(7, 2);
	assert_int_equal(ebb_leasemap_block(&map, 9), 202);
	ebb_leasemap_revoke_all(&map);
	check_counts(0, 9);
}

static void test_move(void **state)
{
	u32 storage[10], block = 0;

	(void)state;
	ebb_leasemap_revoke(&map, 1, 101);
	assert_ptr_equal(ebb_leasemap_move(&map, storage), entries);
	memset(entries, 0xff, sizeof(entries));
	check_counts(9, 1);
	assert_int_equal(ebb_leasemap_lookup(&map, 1, &block), -ENOENT);
	assert_int_equal(ebb_leasemap_lookup(&map, 9, &block), 0);
	assert_int_equal(block, 202);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_lookup, setup),
		cmocka_unit_test_setup(test_range, setup),
		cmocka_unit_test_setup(test_release, setup),
		cmocka_unit_test_setup(test_revoke, setup),
		cmocka_unit_test_setup(test_zeroed, setup),
		cmocka_unit_test_setup(test_move, setup),
	};

	return cmocka_run_group_tests_name("ebb_leasemap", tests, NULL, NULL);
}
