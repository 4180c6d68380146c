// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Leases of one application, on a simulated device: what it may have, what is
 * left of it after releases and revokes, and what it is told.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/view.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK		FAKE_EBB_BLOCK_BYTES
#define POOL_BLOCKS	64

struct told {
	void *addr[16];
	uint64_t bytes[16];
	int num;
};

static void tell(void *arg, void *addr, uint64_t bytes)
{
	struct told *told = arg;

	if (told->num < 16) {
		told->addr[told->num] = addr;
		told->bytes[told->num] = bytes;
	}
	told->num++;
}

/* Alone, with pools on both nodes. */
static struct ebb *alone_open(struct ebb_rig *rig, uint64_t limit_blocks)
{
	/* Above cmocka's handler of this test. */
	assert_int_equal(ebb_mem_guard_install(), 0);
	fake_ebb_dev_set_pool(rig->dev, 0, POOL_BLOCKS * BLOCK);
	fake_ebb_dev_set_pool(rig->dev, 1, 2 * POOL_BLOCKS * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, limit_blocks * BLOCK, 0);
	return ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
}

static bool is_quiet(struct ebb *ebb)
{
	struct pollfd p = { .fd = ebb_fd(ebb), .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

/* Until there is nothing more to do; the simulated device answers at once. */
static void settle(struct ebb *ebb)
{
	do
		assert_int_equal(ebb_dispatch(ebb), 0);
	while (!is_quiet(ebb));
}

static void share_is(struct ebb *ebb, uint32_t node, uint64_t owned, uint64_t offered,
		     uint64_t demanded)
{
	struct ebb_node_share s;

	settle(ebb);
	s = ebb_rig_share(ebb, node);
	assert_int_equal(s.mem_owned_bytes / BLOCK, owned);
	assert_int_equal(s.mem_offered_bytes / BLOCK, offered);
	assert_int_equal(s.mem_demanded_bytes / BLOCK, demanded);
}

static char *block_at(const struct ebb_lease *lease, uint32_t i)
{
	return (char *)lease->addr + i * BLOCK;
}

static struct ebb_lease must_add(struct ebb *ebb, uint64_t blocks, unsigned int node)
{
	struct ebb_lease lease;

	assert_int_equal(ebb_mem_add(ebb, blocks * BLOCK, node, &lease), 0);
	return lease;
}

static void write_byte(void *arg)
{
	*(volatile char *)arg = 7;
}

static void is_gone(char *addr)
{
	void *at = NULL;

	assert_int_equal(ebb_mem_guard_run(write_byte, addr + 4321, &at), -EFAULT);
	assert_ptr_equal(at, addr + 4321);
}

static void leases_are_granted_up_to_the_limit(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 8);
	struct ebb_lease a, b, c = { .fd = -7 };

	share_is(ebb, 0, 0, 8, 0);
	a = must_add(ebb, 6, 0);
	assert_true(a.bytes == 6 * BLOCK);
	assert_true(a.node == 0 && a.block_bytes == BLOCK);
	assert_true((uintptr_t)a.addr % BLOCK == 0);
	for (uint32_t i = 0; i < 6; i++) {
		assert_int_equal(*block_at(&a, i), 0);
		*block_at(&a, i) = (char)i;
	}
	share_is(ebb, 0, 6, 2, 0);
	assert_true(ebb_rig_share(ebb, 0).mem_held_bytes == 6 * BLOCK);
	assert_true(ebb_rig_share(ebb, 0).mem_limit_bytes == 8 * BLOCK);
	b = must_add(ebb, 4, 0);
	assert_true(b.bytes == 2 * BLOCK);
	share_is(ebb, 0, 8, 0, 0);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 0, &c), -EDQUOT);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 1, &c), -EDQUOT);
	assert_int_equal(ebb_mem_add(ebb, (POOL_BLOCKS + 1) * BLOCK, 0, &c), -ERANGE);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 2, &c), -ENXIO);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 4000000000u, &c), -ENXIO);
	assert_int_equal(ebb_mem_add(ebb, 0, 0, &c), -EINVAL);
	assert_int_equal(ebb_mem_add(ebb, BLOCK + 4096, 0, &c), -EINVAL);
	assert_int_equal(ebb_mem_add(ebb, UINT64_MAX, 0, &c), -EINVAL);
	fake_ebb_dev_set_draining(rig->dev, 1, BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 1, BLOCK, 0);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 1, &c), -EAGAIN);
	assert_int_equal(c.fd, -7);
	fake_ebb_dev_set_draining(rig->dev, 1, 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 1, 5 * BLOCK, 0);
	c = must_add(ebb, 9, EBB_NODE_ANY);
	assert_true(c.node == 1 && c.bytes == 5 * BLOCK);
	share_is(ebb, 1, 5, 0, 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(*block_at(&a, i), i);
	ebb_close(ebb);
	assert_int_equal(fake_ebb_dev_num_leases(rig->dev), 0);
}

static void ranges_are_released_by_address(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 32);
	struct ebb_lease a = must_add(ebb, 8, 0), b = must_add(ebb, 4, 0), found;

	for (uint32_t i = 0; i < 8; i++)
		*block_at(&a, i) = (char)(i + 1);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 3), 2 * BLOCK), 0);
	share_is(ebb, 0, 10, 22, 0);
	assert_true(fake_ebb_dev_leased_bytes(rig->dev, 0) == 10 * BLOCK);
	is_gone(block_at(&a, 3));
	is_gone(block_at(&a, 4));
	for (uint32_t i = 0; i < 8; i++)
		if (i != 3 && i != 4)
			assert_int_equal(*block_at(&a, i), i + 1);
	assert_int_equal(ebb_lease_find(ebb, block_at(&a, 3) + 5, &found), 0);
	assert_memory_equal(&found, &a, sizeof(a));

	assert_int_equal(ebb_mem_release(ebb, a.addr, 3 * BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 6), 2 * BLOCK), 0);
	assert_int_equal(fake_ebb_dev_num_leases(rig->dev), 2);
	/* The last one: the lease is closed, its addresses are nobody's. */
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 5), BLOCK), 0);
	assert_int_equal(ebb_lease_find(ebb, block_at(&a, 5), &found), -ENOENT);
	assert_int_equal(ebb_lease_find(ebb, block_at(&b, 3), &found), 0);
	share_is(ebb, 0, 4, 28, 0);
	assert_int_equal(fake_ebb_dev_num_leases(rig->dev), 1);
	ebb_close(ebb);
}

static void bad_releases_change_nothing(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 32), *other;
	struct ebb_lease a = must_add(ebb, 4, 0), theirs;
	char here;

	other = ebb_rig_open(rig, "b", EBB_OPEN_NO_MONITOR);
	theirs = must_add(other, 2, 0);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 1), BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, a.addr, 0), -EINVAL);
	assert_int_equal(ebb_mem_release(ebb, a.addr, BLOCK / 2), -EINVAL);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 0) + 4096, BLOCK), -EINVAL);
	assert_int_equal(ebb_mem_release(ebb, a.addr, UINT64_MAX), -EINVAL);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 2), 3 * BLOCK), -ERANGE);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 1), BLOCK), -ENOENT);
	assert_int_equal(ebb_mem_release(ebb, a.addr, 4 * BLOCK), -ENOENT);
	assert_int_equal(ebb_mem_release(ebb, NULL, BLOCK), -ENOENT);
	assert_int_equal(ebb_mem_release(ebb, &here, BLOCK), -ENOENT);
	assert_int_equal(ebb_mem_release(ebb, theirs.addr, BLOCK), -ENOENT);
	assert_int_equal(ebb_lease_close(ebb, theirs.addr), -ENOENT);
	share_is(ebb, 0, 3, 27, 0);
	*block_at(&a, 0) = *block_at(&a, 2) = *block_at(&a, 3) = *block_at(&theirs, 1) = 1;
	ebb_close(other);
	ebb_close(ebb);
}

static void demands_are_met_by_releasing(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 8);
	struct ebb_lease a = must_add(ebb, 8, 0);

	fake_ebb_dev_set_mem_limit(rig->dev, 0, 5 * BLOCK, 123456789);
	share_is(ebb, 0, 8, 0, 3);
	assert_true(ebb_rig_share(ebb, 0).mem_deadline_ns == 123456789);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 6), 2 * BLOCK), 0);
	share_is(ebb, 0, 6, 0, 1);
	/* A limit within a block: the whole block must go. */
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 5 * BLOCK - 4096, 123456789);
	share_is(ebb, 0, 6, 0, 2);
	/* What drains is not asked for again, and is not offered either. */
	assert_int_equal(ebb_mem_release(ebb, a.addr, 2 * BLOCK), 0);
	fake_ebb_dev_set_draining(rig->dev, 0, 2 * BLOCK);
	share_is(ebb, 0, 4, 0, 0);
	assert_true(ebb_rig_share(ebb, 0).mem_deadline_ns == 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 7 * BLOCK + 4096, 0);
	share_is(ebb, 0, 4, 1, 0);
	ebb_close(ebb);
}

static void demand_is_at_most_what_is_owned(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 8), *other;

	other = ebb_rig_open(rig, "b", EBB_OPEN_NO_MONITOR);
	must_add(ebb, 2, 0);
	must_add(other, 6, 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, BLOCK, 1);
	share_is(ebb, 0, 2, 0, 2);
	share_is(other, 0, 6, 0, 6);
	ebb_close(other);
	share_is(ebb, 0, 2, 0, 1);
	ebb_close(ebb);
}

static void revoked_ranges_are_told(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 16);
	struct ebb_lease a = must_add(ebb, 8, 0), b = must_add(ebb, 4, 0), found;
	struct told told = { .num = 0 };

	ebb_set_revoked_callback(ebb, tell, &told);
	for (uint32_t i = 0; i < 8; i++)
		*block_at(&a, i) = 1;
	settle(ebb);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 2), 2 * BLOCK), 0);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 6), BLOCK), 0);
	assert_false(is_quiet(ebb));
	is_gone(block_at(&a, 2));
	share_is(ebb, 0, 9, 7, 0);
	assert_int_equal(told.num, 2);
	assert_ptr_equal(told.addr[0], block_at(&a, 2));
	assert_true(told.bytes[0] == 2 * BLOCK);
	assert_ptr_equal(told.addr[1], block_at(&a, 6));
	assert_true(told.bytes[1] == BLOCK);
	is_gone(block_at(&a, 3));
	is_gone(block_at(&a, 6));
	assert_int_equal(*block_at(&a, 1) + *block_at(&a, 4) + *block_at(&a, 5), 3);
	*block_at(&b, 0) = 1;
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 6), BLOCK), -ENOENT);

	/* All gone: a straggler still finds SIGBUS there, until the lease is closed. */
	assert_int_equal(ebb_mem_release(ebb, a.addr, 2 * BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 4), 2 * BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 7), BLOCK), 0);
	assert_int_equal(ebb_lease_find(ebb, a.addr, &found), 0);
	is_gone(block_at(&a, 2));
	is_gone(block_at(&a, 7));
	assert_int_equal(ebb_lease_close(ebb, block_at(&a, 3)), 0);
	assert_int_equal(ebb_lease_find(ebb, a.addr, &found), -ENOENT);
	share_is(ebb, 0, 4, 12, 0);
	assert_int_equal(told.num, 2);
	ebb_close(ebb);
}

static void release_goes_around_what_was_revoked(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 16);
	struct ebb_lease a = must_add(ebb, 10, 0), found;
	struct told told = { .num = 0 };

	ebb_set_revoked_callback(ebb, tell, &told);
	settle(ebb);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 1), BLOCK), 0);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 4), 2 * BLOCK), 0);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 9), BLOCK), 0);
	/* Not told of 1, 4 and 5 yet, and given up meanwhile; of 9 it must be told. */
	assert_int_equal(ebb_mem_release(ebb, a.addr, 8 * BLOCK), 0);
	assert_true(fake_ebb_dev_leased_bytes(rig->dev, 0) == BLOCK);
	share_is(ebb, 0, 1, 15, 0);
	assert_int_equal(told.num, 1);
	assert_ptr_equal(told.addr[0], block_at(&a, 9));
	assert_int_equal(ebb_mem_release(ebb, a.addr, BLOCK), -ENOENT);
	ebb_close(ebb);

	/* Revoked as a whole and given up as a whole: nothing is left of it. */
	ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	a = must_add(ebb, 3, 0);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, a.addr, 3 * BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, a.addr, 3 * BLOCK), 0);
	assert_int_equal(ebb_lease_find(ebb, a.addr, &found), -ENOENT);
	settle(ebb);
	ebb_close(ebb);
}

static void without_a_callback_revokes_are_only_counted(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 16);
	struct ebb_lease a = must_add(ebb, 4, 0);
	struct told told = { .num = 0 };

	assert_true(fake_ebb_dev_revoke(rig->dev, 0, 2 * BLOCK) == 2 * BLOCK);
	share_is(ebb, 0, 2, 14, 0);
	ebb_set_revoked_callback(ebb, tell, &told);
	settle(ebb);
	assert_int_equal(told.num, 0);
	assert_true(fake_ebb_dev_revoke(rig->dev, 0, BLOCK) == BLOCK);
	settle(ebb);
	assert_int_equal(told.num, 1);
	assert_ptr_equal(told.addr[0], block_at(&a, 1));
	ebb_close(ebb);
}

static void lease_larger_than_one_map(void **state)
{
	const uint32_t blocks = 2 * EBB_LEASE_INFO_BLOCKS + 100;
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 0);
	struct told told = { .num = 0 };
	struct ebb_lease_info info;
	struct ebb_lease a;

	fake_ebb_dev_set_pool(rig->dev, 1, blocks * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 1, blocks * BLOCK, 0);
	a = must_add(ebb, blocks, 1);
	assert_true(a.bytes == blocks * BLOCK);
	ebb_set_revoked_callback(ebb, tell, &told);
	settle(ebb);
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, blocks - 1), BLOCK), 0);
	/* Looking at another part of it takes nothing of the news away. */
	assert_int_equal(ebb_lease_info_get(ebb, a.addr, 0, &info), 0);
	assert_int_equal(info.count, EBB_LEASE_INFO_BLOCKS);
	assert_true(info.revoked_bytes == BLOCK);
	settle(ebb);
	assert_int_equal(told.num, 1);
	assert_ptr_equal(told.addr[0], block_at(&a, blocks - 1));
	/* Over the seam. */
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, block_at(&a, 4090), 12 * BLOCK), 0);
	assert_int_equal(ebb_mem_release(ebb, block_at(&a, 4000), 200 * BLOCK), 0);
	assert_true(fake_ebb_dev_leased_bytes(rig->dev, 1) == (blocks - 201) * BLOCK);
	settle(ebb);
	assert_int_equal(told.num, 1);
	assert_int_equal(ebb_lease_info_get(ebb, a.addr, blocks - 1, &info), 0);
	assert_int_equal(info.count, 1);
	assert_int_equal(info.held_map[0], 0);
	assert_int_equal(ebb_lease_info_get(ebb, a.addr, blocks, &info), -ERANGE);
	assert_int_equal(ebb_lease_info_get(ebb, &info, 0, &info), -ENOENT);
	ebb_close(ebb);
}

static void pools_are_described(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = ebb_rig_open(rig, "a", EBB_OPEN_NO_MONITOR);
	struct ebb_mem_info info;

	assert_int_equal(ebb_mem_info_get(ebb, &info), 0);
	assert_int_equal(info.num_pools, 0);
	ebb_close(ebb);
	ebb = alone_open(rig, 9);
	must_add(ebb, 5, 0);
	fake_ebb_dev_set_draining(rig->dev, 0, BLOCK);
	assert_int_equal(ebb_mem_info_get(ebb, &info), 0);
	assert_int_equal(info.num_pools, 2);
	assert_true(info.pools[0].size_bytes == POOL_BLOCKS * BLOCK);
	assert_true(info.pools[0].held_bytes == 6 * BLOCK);
	assert_true(info.pools[0].leased_bytes == 5 * BLOCK);
	assert_true(info.pools[0].draining_bytes == BLOCK);
	ebb_close(ebb);
}

static void leases_are_closed_and_come_back(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, POOL_BLOCKS);
	struct ebb_lease leases[20];

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 20; i++) {
			leases[i] = must_add(ebb, 3, 0);
			*block_at(&leases[i], 2) = 1;
		}
		share_is(ebb, 0, 60, 4, 0);
		for (int i = 19; i >= 0; i -= 2)
			assert_int_equal(ebb_lease_close(ebb, block_at(&leases[i], 1)), 0);
		share_is(ebb, 0, 30, 34, 0);
		for (int i = 0; i < 20; i += 2)
			assert_int_equal(ebb_lease_close(ebb, leases[i].addr), 0);
		assert_int_equal(ebb_lease_close(ebb, leases[0].addr), -ENOENT);
		share_is(ebb, 0, 0, 64, 0);
	}
	must_add(ebb, 3, 0);
	ebb_close(ebb);
	assert_int_equal(fake_ebb_dev_num_leases(rig->dev), 0);
}

static void device_goes_away(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 8);
	struct ebb_lease a = must_add(ebb, 4, 0), b;

	settle(ebb);
	fake_ebb_dev_unplug(rig->dev);
	assert_int_equal(ebb_mem_release(ebb, a.addr, BLOCK), -ENODEV);
	assert_int_equal(ebb_mem_add(ebb, BLOCK, 0, &b), -ENODEV);
	assert_int_equal(ebb_dispatch(ebb), -ENODEV);
	assert_int_equal(ebb_lease_close(ebb, a.addr), 0);
	ebb_close(ebb);
	fake_ebb_dev_replug(rig->dev);
}

/* Releases from its callback what it is asked for, as an engine may. */
static void release_demanded(void *arg, const struct ebb_shares *shares)
{
	struct ebb_lease *lease = arg;
	struct ebb *ebb = *(struct ebb **)lease->addr;
	uint64_t bytes = shares->nodes[0].mem_demanded_bytes;

	if (bytes == 0)
		return;
	lease->bytes -= bytes;
	assert_int_equal(ebb_mem_release(ebb, (char *)lease->addr + lease->bytes, bytes), 0);
}

static void callback_may_release(void **state)
{
	struct ebb_rig *rig = *state;
	struct ebb *ebb = alone_open(rig, 8);
	struct ebb_lease a = must_add(ebb, 8, 0);

	*(struct ebb **)a.addr = ebb;
	ebb_set_shares_callback(ebb, release_demanded, &a);
	settle(ebb);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 3 * BLOCK, 1);
	share_is(ebb, 0, 3, 0, 0);
	assert_true(a.bytes == 3 * BLOCK);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 2 * BLOCK, 1);
	share_is(ebb, 0, 2, 0, 0);
	ebb_close(ebb);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leases_are_granted_up_to_the_limit, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(ranges_are_released_by_address, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(bad_releases_change_nothing, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(demands_are_met_by_releasing, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(demand_is_at_most_what_is_owned, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(revoked_ranges_are_told, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(release_goes_around_what_was_revoked,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(without_a_callback_revokes_are_only_counted,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(lease_larger_than_one_map, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(pools_are_described, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(leases_are_closed_and_come_back, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(device_goes_away, ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(callback_may_release, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_mem", tests, NULL, NULL);
}
