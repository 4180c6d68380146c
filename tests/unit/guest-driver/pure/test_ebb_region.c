/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Description: the states of a pool's blocks in the guest driver.  The random
 * test keeps a model of its own and checks invariants R1 to R8 of region.h.
 */
#include "guest-driver/pure/region.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define NUM_BLOCKS	64

static struct ebb_block blocks[NUM_BLOCKS];
static struct ebb_region region;
static int lease_a, lease_b;
static bool has_failed[NUM_BLOCKS];	/* of the random test */

static int setup(void **state)
{
	(void)state;
	memset(blocks, 0, sizeof(blocks));
	ebb_region_init(&region, blocks, NUM_BLOCKS);
	return 0;
}

/* R1, R3, R8, and that the counts of R2 are of states. */
static void check_counts(void)
{
	u32 num[EBB_BLOCK_STATE_MAX] = { 0 };

	for (u32 i = 0; i < NUM_BLOCKS; i++) {
		assert_in_range(blocks[i].state, 0, EBB_BLOCK_STATE_MAX - 1);
		num[blocks[i].state]++;
		assert_int_equal(!!blocks[i].owner, blocks[i].state == EBB_BLOCK_GRANTED);
		if (blocks[i].has_failed)
			assert_in_range(blocks[i].state, EBB_BLOCK_DRAINING, EBB_BLOCK_CONFIRMING);
		else
			assert_int_not_equal(blocks[i].state, EBB_BLOCK_BAD);
	}
	for (u32 s = 0; s < EBB_BLOCK_STATE_MAX; s++)
		assert_int_equal(region.num[s], num[s]);
	assert_int_equal(ebb_region_num_plugged(&region),
			 num[EBB_BLOCK_PLUGGING] + num[EBB_BLOCK_GRANTED] +
			 num[EBB_BLOCK_DRAINING]);
}

static struct ebb_run run(u32 first, u32 count)
{
	return (struct ebb_run) { first, count };
}

static void grant(u32 first, u32 count, void *owner, u32 index)
{
	struct ebb_run r = run(first, count);

	assert_int_equal(ebb_region_plug(&region, &r), 0);
	check_counts();
	for (u32 i = 0; i < count; i++)
		assert_int_equal(ebb_region_grant(&region, first + i, owner, index + i), 0);
	check_counts();
}

static bool find(enum ebb_block_state state, u32 from, u32 end, u32 max, u32 first, u32 count)
{
	struct ebb_run r;

	return ebb_region_next(&region, state, from, end, max, NULL, NULL, &r) &&
	       r.first == first && r.count == count;
}

static void test_life(void **state)
{
	struct ebb_run r = run(4, 3);

	(void)state;
	grant(4, 3, &lease_a, 10);
	assert_true(blocks[5].owner == &lease_a && blocks[5].index == 11);
	assert_int_equal(ebb_region_unplugged(&region, &r), -EBUSY);
	for (u32 i = 4; i < 7; i++)
		assert_int_equal(ebb_region_leave(&region, i, &lease_a), 0);
	check_counts();
	assert_int_equal(ebb_region_num_plugged(&region), 3);
	assert_int_equal(ebb_region_unplugged(&region, &r), 0);
	check_counts();
	assert_int_equal(ebb_region_num_plugged(&region), 0);
	assert_int_equal(ebb_region_unplugged(&region, &r), -EBUSY);
}

static void test_plug_needs_free(void **state)
{
	struct ebb_run r = run(3, 2), past = run(NUM_BLOCKS - 1, 2), far = run(NUM_BLOCKS, 1);

	(void)state;
	grant(4, 1, &lease_a, 0);
	assert_int_equal(ebb_region_plug(&region, &r), -EBUSY);
	assert_int_equal(blocks[3].state, EBB_BLOCK_FREE);
	assert_int_equal(ebb_region_plug(&region, &past), -EBUSY);
	assert_int_equal(ebb_region_plug(&region, &far), -EBUSY);
	r = run(2, UINT32_MAX);
	assert_int_equal(ebb_region_plug(&region, &r), -EBUSY);
	check_counts();
}

static void test_grant_needs_plug(void **state)
{
	(void)state;
	assert_int_equal(ebb_region_grant(&region, 0, &lease_a, 0), -ENOENT);
	grant(0, 1, &lease_a, 0);
	assert_int_equal(ebb_region_grant(&region, 0, &lease_b, 0), -ENOENT);
	assert_int_equal(ebb_region_grant(&region, NUM_BLOCKS, &lease_b, 0), -ENOENT);
	assert_ptr_equal(blocks[0].owner, &lease_a);
	check_counts();
}

/* The host wants blocks back that are plugged, or being plugged. */
static void test_expel(void **state)
{
	struct ebb_run r = run(2, 2), gone = run(0, 1);
	struct ebb_block old = { .owner = NULL };

	(void)state;
	grant(0, 1, &lease_a, 5);
	assert_int_equal(ebb_region_plug(&region, &r), 0);
	assert_true(ebb_region_expel(&region, 0, &old));
	assert_true(old.owner == &lease_a && old.index == 5);
	assert_true(ebb_region_expel(&region, 2, &old));
	assert_null(old.owner);
	assert_false(ebb_region_expel(&region, 0, &old));	/* it drains */
	assert_false(ebb_region_expel(&region, 1, &old));	/* it is free */
	assert_false(ebb_region_expel(&region, NUM_BLOCKS, &old));
	assert_int_equal(ebb_region_grant(&region, 2, &lease_a, 0), -ENOENT);
	assert_int_equal(ebb_region_grant(&region, 3, &lease_a, 0), 0);
	assert_int_equal(ebb_region_unplugged(&region, &gone), 0);
	check_counts();
}

/* The host plugs blocks and revokes one of them before its answer is read. */
static void test_revoked_while_plugging(void **state)
{
	struct ebb_run r = run(8, 4), one = run(9, 1), past = run(NUM_BLOCKS - 1, 4);
	struct ebb_block old;

	(void)state;
	assert_int_equal(ebb_region_plug(&region, &r), 0);
	assert_true(ebb_region_revoke(&region, 9, &old));
	assert_null(old.owner);
	assert_int_equal(ebb_region_grant(&region, 8, &lease_a, 0), 0);
	assert_int_equal(ebb_region_grant(&region, 9, &lease_a, 1), -ENOENT);
	/* Even if that has ended by then. */
	assert_int_equal(ebb_region_claim(&region, &one), 0);
	assert_int_equal(ebb_region_confirmed(&region, &one, true), 0);
	assert_int_equal(ebb_region_grant(&region, 9, &lease_a, 1), -ENOENT);
	ebb_region_end_plug(&region, &r, true);
	assert_int_equal(blocks[8].state, EBB_BLOCK_GRANTED);
	assert_int_equal(blocks[9].state, EBB_BLOCK_FREE);
	assert_int_equal(blocks[10].state, EBB_BLOCK_DRAINING);
	assert_int_equal(blocks[11].state, EBB_BLOCK_DRAINING);
	check_counts();

	r = run(NUM_BLOCKS - 1, 1);
	assert_int_equal(ebb_region_plug(&region, &r), 0);
	ebb_region_end_plug(&region, &past, false);
	assert_int_equal(blocks[NUM_BLOCKS - 1].state, EBB_BLOCK_FREE);
	check_counts();
}

static void test_leave_by_owner_only(void **state)
{
	(void)state;
	grant(0, 1, &lease_a, 0);
	assert_int_equal(ebb_region_leave(&region, 0, &lease_b), -ENOENT);
	assert_int_equal(ebb_region_leave(&region, 1, &lease_a), -ENOENT);
	assert_int_equal(ebb_region_leave(&region, NUM_BLOCKS, &lease_a), -ENOENT);
	assert_int_equal(ebb_region_leave(&region, 0, &lease_a), 0);
	assert_int_equal(ebb_region_leave(&region, 0, &lease_a), -ENOENT);
}

static void test_revoke(void **state)
{
	struct ebb_block old;
	struct ebb_run r = run(0, 3), one = run(2, 1);

	(void)state;
	grant(0, 2, &lease_a, 7);
	assert_int_equal(ebb_region_leave(&region, 1, &lease_a), 0);
	/* granted, draining, free: all can be news of the host */
	assert_true(ebb_region_revoke(&region, 0, &old));
	assert_true(old.owner == &lease_a && old.index == 7);
	assert_true(ebb_region_revoke(&region, 1, &old));
	assert_null(old.owner);
	assert_true(ebb_region_revoke(&region, 2, &old));
	assert_null(old.owner);
	check_counts();
	assert_int_equal(ebb_region_num_plugged(&region), 0);
	/* told again, or something that is not there */
	assert_false(ebb_region_revoke(&region, 0, &old));
	assert_false(ebb_region_revoke(&region, NUM_BLOCKS, &old));
	assert_int_equal(ebb_region_leave(&region, 0, &lease_a), -ENOENT);
	assert_int_equal(ebb_region_plug(&region, &r), -EBUSY);
	assert_int_equal(ebb_region_unplugged(&region, &r), -EBUSY);

	assert_int_equal(ebb_region_claim(&region, &r), 0);
	assert_int_equal(ebb_region_claim(&region, &r), -EBUSY);
	/* R6: an old level, told while the host is being told */
	assert_false(ebb_region_revoke(&region, 1, &old));
	assert_int_equal(ebb_region_confirmed(&region, &one, false), 0);
	assert_int_equal(blocks[2].state, EBB_BLOCK_REVOKED);
	assert_int_equal(ebb_region_confirmed(&region, &r, true), -EBUSY);
	r = run(0, 2);
	assert_int_equal(ebb_region_confirmed(&region, &r, true), 0);
	check_counts();
	grant(0, 2, &lease_b, 0);
}

static void test_fail(void **state)
{
	struct ebb_run r = run(4, 4), left = run(0, 1), taken = run(1, 1), bad = run(3, 1);
	struct ebb_block old = { .owner = NULL };

	(void)state;
	grant(0, 2, &lease_a, 5);
	assert_true(ebb_region_fail(&region, 0, &old));
	assert_true(old.owner == &lease_a && old.index == 5);
	assert_false(ebb_region_fail(&region, 0, &old));	/* again, while it drains */
	assert_int_equal(blocks[0].state, EBB_BLOCK_DRAINING);
	assert_int_equal(ebb_region_unplugged(&region, &left), 0);
	assert_int_equal(blocks[0].state, EBB_BLOCK_BAD);
	assert_int_equal(ebb_region_plug(&region, &left), -EBUSY);
	check_counts();

	/* The host took it before, and is told that nobody uses it. */
	assert_true(ebb_region_revoke(&region, 1, &old));
	assert_false(ebb_region_fail(&region, 1, &old));
	assert_int_equal(ebb_region_claim(&region, &taken), 0);
	assert_int_equal(ebb_region_confirmed(&region, &taken, true), 0);
	assert_int_equal(blocks[1].state, EBB_BLOCK_BAD);

	/* Nobody has it, and the host takes it afterwards. */
	assert_false(ebb_region_fail(&region, 3, &old));
	assert_int_equal(blocks[3].state, EBB_BLOCK_BAD);
	assert_true(ebb_region_revoke(&region, 3, &old));
	assert_int_equal(ebb_region_claim(&region, &bad), 0);
	assert_int_equal(ebb_region_confirmed(&region, &bad, true), 0);
	assert_int_equal(blocks[3].state, EBB_BLOCK_BAD);

	/* The host was asked for it. */
	assert_int_equal(ebb_region_plug(&region, &r), 0);
	assert_true(ebb_region_fail(&region, 5, &old));
	assert_null(old.owner);
	assert_int_equal(ebb_region_grant(&region, 5, &lease_a, 0), -ENOENT);
	ebb_region_end_plug(&region, &r, false);
	assert_int_equal(blocks[4].state, EBB_BLOCK_FREE);
	/* The host has nothing of it that could be unplugged. */
	assert_int_equal(blocks[5].state, EBB_BLOCK_BAD);
	check_counts();

	assert_false(ebb_region_fail(&region, NUM_BLOCKS, &old));
	assert_int_equal(ebb_region_room(&region, NUM_BLOCKS, NUM_BLOCKS), NUM_BLOCKS - 4);
}

static bool is_odd(void *data, u32 block)
{
	(*(u32 *)data)++;
	return block % 2;
}

static void test_next(void **state)
{
	struct ebb_run r;
	u32 calls = 0;

	(void)state;
	assert_true(find(EBB_BLOCK_FREE, 0, NUM_BLOCKS, UINT32_MAX, 0, NUM_BLOCKS));
	assert_true(find(EBB_BLOCK_FREE, 5, UINT32_MAX, UINT32_MAX, 5, NUM_BLOCKS - 5));
	assert_true(find(EBB_BLOCK_FREE, 5, 9, UINT32_MAX, 5, 4));
	assert_true(find(EBB_BLOCK_FREE, 5, 9, 2, 5, 2));
	assert_false(find(EBB_BLOCK_FREE, 9, 9, 2, 9, 0));
	assert_false(find(EBB_BLOCK_FREE, 5, 9, 0, 5, 0));
	assert_false(find(EBB_BLOCK_GRANTED, 0, NUM_BLOCKS, 1, 0, 1));
	grant(3, 2, &lease_a, 0);
	grant(8, 1, &lease_b, 0);
	assert_true(find(EBB_BLOCK_FREE, 0, NUM_BLOCKS, UINT32_MAX, 0, 3));
	assert_true(find(EBB_BLOCK_FREE, 3, NUM_BLOCKS, UINT32_MAX, 5, 3));
	assert_true(find(EBB_BLOCK_GRANTED, 4, NUM_BLOCKS, UINT32_MAX, 4, 1));
	assert_true(find(EBB_BLOCK_GRANTED, 5, NUM_BLOCKS, UINT32_MAX, 8, 1));

	/* The caller's predicate is asked of blocks in the state only. */
	assert_true(ebb_region_next(&region, EBB_BLOCK_GRANTED, 0, NUM_BLOCKS, 9, is_odd, &calls,
				    &r));
	assert_true(r.first == 3 && r.count == 1);
	assert_int_equal(calls, 2);
}

static void test_room(void **state)
{
	struct ebb_block old;

	(void)state;
	assert_int_equal(ebb_region_room(&region, 10, 0), 0);
	assert_int_equal(ebb_region_room(&region, 10, 4), 4);
	assert_int_equal(ebb_region_room(&region, 10, UINT32_MAX), 10);
	assert_int_equal(ebb_region_room(&region, 1000, UINT32_MAX), NUM_BLOCKS);
	grant(0, 6, &lease_a, 0);
	assert_int_equal(ebb_region_leave(&region, 0, &lease_a), 0);
	assert_int_equal(ebb_region_room(&region, 10, 8), 2);
	/* The limit fell below what is held. */
	assert_int_equal(ebb_region_room(&region, 10, 3), 0);
	/* What the host took is not plugged any more, and not free yet. */
	assert_true(ebb_region_revoke(&region, 1, &old));
	assert_int_equal(ebb_region_room(&region, 10, 8), 3);
	assert_int_equal(ebb_region_room(&region, 1000, 1000), NUM_BLOCKS - 6);
}

/* The model: what becomes of a block that would be FREE. */
static u32 to_be(u32 state, u32 block)
{
	return state == EBB_BLOCK_FREE && has_failed[block] ? EBB_BLOCK_BAD : state;
}

/* One random call; model[] has the states as they should be afterwards. */
static void random_call(u32 *model)
{
	struct ebb_run r = run(rand() % NUM_BLOCKS, 1 + rand() % 4);
	void *owner = rand() % 2 ? &lease_a : &lease_b;
	static const struct {
		u32 from, to;
	} moves[] = {
		{ EBB_BLOCK_FREE, EBB_BLOCK_PLUGGING },
		{ EBB_BLOCK_DRAINING, EBB_BLOCK_FREE },
		{ EBB_BLOCK_REVOKED, EBB_BLOCK_CONFIRMING },
		{ EBB_BLOCK_CONFIRMING, EBB_BLOCK_FREE },
		{ EBB_BLOCK_CONFIRMING, EBB_BLOCK_REVOKED },
	};
	u32 what = rand() % 5000 ? rand() % 11 : 11;
	struct ebb_block old = { .owner = NULL };
	bool is_good = r.first + r.count <= NUM_BLOCKS;
	int rc;

	if (what == 5) {
		bool is_owner = blocks[r.first].owner == owner;

		rc = ebb_region_leave(&region, r.first, owner);
		assert_int_equal(rc, is_owner ? 0 : -ENOENT);
		if (is_owner)
			model[r.first] = EBB_BLOCK_DRAINING;
		return;
	}
	if (what == 6) {
		bool is_news = model[r.first] < EBB_BLOCK_REVOKED;

		assert_int_equal(ebb_region_revoke(&region, r.first, &old), is_news);
		assert_int_equal(!!old.owner, model[r.first] == EBB_BLOCK_GRANTED);
		if (is_news)
			model[r.first] = EBB_BLOCK_REVOKED;
		return;
	}
	if (what == 7) {
		bool is_plugging = model[r.first] == EBB_BLOCK_PLUGGING;

		rc = ebb_region_grant(&region, r.first, owner, 0);
		assert_int_equal(rc, is_plugging ? 0 : -ENOENT);
		if (is_plugging)
			model[r.first] = EBB_BLOCK_GRANTED;
		return;
	}
	if (what == 10 || what == 11) {
		bool is_in = model[r.first] == EBB_BLOCK_PLUGGING ||
			     model[r.first] == EBB_BLOCK_GRANTED;

		has_failed[r.first] |= what == 11;
		assert_int_equal(what == 10 ? ebb_region_expel(&region, r.first, &old) :
				 ebb_region_fail(&region, r.first, &old), is_in);
		assert_int_equal(!!old.owner, model[r.first] == EBB_BLOCK_GRANTED);
		model[r.first] = is_in ? EBB_BLOCK_DRAINING : to_be(model[r.first], r.first);
		return;
	}
	if (what > 7) {
		u32 to = what == 8 ? EBB_BLOCK_DRAINING : EBB_BLOCK_FREE;

		ebb_region_end_plug(&region, &r, what == 8);
		for (u32 i = r.first; i < NUM_BLOCKS && i < r.first + r.count; i++)
			if (model[i] == EBB_BLOCK_PLUGGING || model[i] == EBB_BLOCK_DRAINING)
				model[i] = to_be(to, i);
		return;
	}
	for (u32 i = 0; is_good && i < r.count; i++)
		is_good = model[r.first + i] == moves[what].from;
	switch (what) {
	case 0:
		rc = ebb_region_plug(&region, &r);
		break;
	case 1:
		rc = ebb_region_unplugged(&region, &r);
		break;
	case 2:
		rc = ebb_region_claim(&region, &r);
		break;
	default:
		rc = ebb_region_confirmed(&region, &r, what == 3);
	}
	assert_int_equal(rc, is_good ? 0 : -EBUSY);
	for (u32 i = 0; is_good && i < r.count; i++)
		model[r.first + i] = to_be(moves[what].to, r.first + i);
}

static void test_random(void **state)
{
	u32 model[NUM_BLOCKS] = { 0 }, reached = 0;

	(void)state;
	srand(6);
	for (u32 n = 0; n < 200000; n++) {
		random_call(model);
		if (n % 64)
			continue;
		check_counts();
		for (u32 i = 0; i < NUM_BLOCKS; i++) {
			assert_int_equal(blocks[i].state, model[i]);
			reached |= 1u << model[i];
		}
	}
	assert_int_equal(reached, (1u << EBB_BLOCK_STATE_MAX) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_life, setup),
		cmocka_unit_test_setup(test_plug_needs_free, setup),
		cmocka_unit_test_setup(test_grant_needs_plug, setup),
		cmocka_unit_test_setup(test_revoked_while_plugging, setup),
		cmocka_unit_test_setup(test_expel, setup),
		cmocka_unit_test_setup(test_leave_by_owner_only, setup),
		cmocka_unit_test_setup(test_revoke, setup),
		cmocka_unit_test_setup(test_fail, setup),
		cmocka_unit_test_setup(test_next, setup),
		cmocka_unit_test_setup(test_room, setup),
		cmocka_unit_test_setup(test_random, setup),
	};

	return cmocka_run_group_tests_name("ebb_region", tests, NULL, NULL);
}
