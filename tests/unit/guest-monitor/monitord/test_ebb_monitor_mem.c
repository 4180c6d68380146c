// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Applications and monitor together, on a simulated device: who is offered and
 * asked for memory.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "guest-monitor/libebb/link.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK		FAKE_EBB_BLOCK_BYTES

/* What shares of memory are waited for, in blocks: of two applications on a node. */
struct expected {
	struct ebb *apps[2];
	size_t num;
	uint32_t node;
	uint64_t offered[2];
	uint64_t demanded[2];
};

static bool shares_are(void *arg)
{
	const struct expected *e = arg;

	for (size_t i = 0; i < e->num; i++) {
		struct ebb_node_share s = ebb_rig_share(e->apps[i], e->node);

		if (s.mem_offered_bytes != e->offered[i] * BLOCK ||
		    s.mem_demanded_bytes != e->demanded[i] * BLOCK)
			return false;
	}
	return true;
}

static void expect_of(struct expected *e, uint64_t offered_a, uint64_t offered_b,
		      uint64_t demanded_a, uint64_t demanded_b)
{
	e->offered[0] = offered_a;
	e->offered[1] = offered_b;
	e->demanded[0] = demanded_a;
	e->demanded[1] = demanded_b;
	if (ebb_rig_until(e->apps, e->num, shares_are, e, EBB_RIG_SOON_MS))
		return;
	for (size_t i = 0; i < e->num; i++) {
		struct ebb_node_share s = ebb_rig_share(e->apps[i], e->node);

		print_error("application %zu: offered %u, expected %u; demanded %u, expected %u\n",
			    i, (unsigned int)(s.mem_offered_bytes / BLOCK),
			    (unsigned int)e->offered[i],
			    (unsigned int)(s.mem_demanded_bytes / BLOCK),
			    (unsigned int)e->demanded[i]);
	}
	fail();
}

static struct expected two_open(struct ebb_rig *rig)
{
	struct expected e = { .num = 2 };

	for (uint32_t node = 0; node < 2; node++)
		fake_ebb_dev_set_pool(rig->dev, node, 1000 * BLOCK);
	ebb_rig_monitor_start(rig);
	e.apps[0] = ebb_rig_open(rig, "a", 0);
	e.apps[1] = ebb_rig_open(rig, "b", 0);
	return e;
}

static void all_close(struct expected *e)
{
	for (size_t i = 0; i < e->num; i++)
		ebb_close(e->apps[i]);
}

static struct ebb_lease must_add(struct ebb *ebb, uint64_t blocks, unsigned int node)
{
	struct ebb_lease lease;

	assert_int_equal(ebb_mem_add(ebb, blocks * BLOCK, node, &lease), 0);
	assert_true(lease.bytes == blocks * BLOCK);
	return lease;
}

static bool is_held_known(void *arg)
{
	return ebb_rig_share(arg, 0).mem_held_bytes == 257 * BLOCK;
}

static void offers_are_shared(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_lease a;

	fake_ebb_dev_set_mem_limit(rig->dev, 0, 513 * BLOCK + 4096, 0);
	expect_of(&e, 257, 256, 0, 0);
	assert_true(ebb_rig_share(e.apps[0], 0).mem_limit_bytes == 513 * BLOCK + 4096);
	/* The fast one gets no more than its part, and what it gives back goes to both. */
	a = must_add(e.apps[0], 257, 0);
	expect_of(&e, 0, 256, 0, 0);
	assert_true(ebb_rig_until(e.apps, 2, is_held_known, e.apps[1], EBB_RIG_SOON_MS));
	assert_true(ebb_rig_share(e.apps[1], 0).mem_owned_bytes == 0);
	must_add(e.apps[1], 256, 0);
	expect_of(&e, 0, 0, 0, 0);
	assert_int_equal(ebb_mem_release(e.apps[0], a.addr, 257 * BLOCK), 0);
	expect_of(&e, 257, 0, 0, 0);
	/* Who has memory there is offered less here. */
	e.node = 1;
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 256 * BLOCK, 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 1, 300 * BLOCK, 0);
	expect_of(&e, 278, 22, 0, 0);
	all_close(&e);
}

static void demands_go_to_the_one_that_owns_most(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_lease a;

	fake_ebb_dev_set_mem_limit(rig->dev, 0, 400 * BLOCK, 0);
	expect_of(&e, 200, 200, 0, 0);
	a = must_add(e.apps[0], 300, 0);
	must_add(e.apps[1], 100, 0);
	expect_of(&e, 0, 0, 0, 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 150 * BLOCK - 1, 987654321);
	expect_of(&e, 0, 0, 225, 26);
	assert_true(ebb_rig_share(e.apps[0], 0).mem_deadline_ns == 987654321);
	assert_true(ebb_rig_share(e.apps[1], 0).mem_deadline_ns == 987654321);
	assert_true(ebb_rig_share(e.apps[0], 0).deadline_ns == 0);
	/* Half of it done: the other's part stays as it is. */
	assert_int_equal(ebb_mem_release(e.apps[0], a.addr, 126 * BLOCK), 0);
	expect_of(&e, 0, 0, 99, 26);
	/* The host takes some: of whom is not for the monitor to say. */
	assert_int_equal(fake_ebb_dev_revoke_at(rig->dev, (char *)a.addr + 126 * BLOCK,
						100 * BLOCK), 0);
	expect_of(&e, 0, 0, 0, 25);
	all_close(&e);
}

static void demand_is_met_by_the_next_look(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_lease a;

	fake_ebb_dev_set_mem_limit(rig->dev, 0, 10 * BLOCK, 0);
	expect_of(&e, 5, 5, 0, 0);
	a = must_add(e.apps[0], 10, 0);
	expect_of(&e, 0, 0, 0, 0);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 4 * BLOCK, 1);
	expect_of(&e, 0, 0, 6, 0);
	/* Before the monitor can have heard of it. */
	assert_int_equal(ebb_mem_release(e.apps[0], a.addr, 6 * BLOCK), 0);
	assert_int_equal(ebb_dispatch(e.apps[0]), 0);
	assert_true(ebb_rig_share(e.apps[0], 0).mem_demanded_bytes == 0);
	expect_of(&e, 0, 0, 0, 0);
	all_close(&e);
}

static bool has_leased_all(void *arg)
{
	struct ebb_rig *rig = arg;

	return fake_ebb_dev_leased_bytes(rig->dev, 0) == 40 * BLOCK;
}

static void application_killed_while_it_holds_memory(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = { .num = 1 };
	pid_t engine;

	fake_ebb_dev_set_pool(rig->dev, 0, 1000 * BLOCK);
	ebb_rig_monitor_start(rig);
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 40 * BLOCK, 0);
	engine = ebb_rig_engine_start(rig, "engine");
	assert_true(ebb_rig_until(NULL, 0, has_leased_all, rig, EBB_RIG_SOON_MS));
	e.apps[0] = ebb_rig_open(rig, "survivor", 0);
	expect_of(&e, 0, 0, 0, 0);
	ebb_rig_end(engine, SIGKILL);
	expect_of(&e, 40, 0, 0, 0);
	assert_int_equal(fake_ebb_dev_num_leases(rig->dev), 0);
	all_close(&e);
}

static bool has_no_monitor(void *arg)
{
	return !ebb_has_monitor(arg);
}

static void monitor_comes_and_goes(void **state)
{
	struct ebb_rig *rig = *state;
	struct expected e = two_open(rig);
	struct ebb_lease a;

	fake_ebb_dev_set_mem_limit(rig->dev, 0, 30 * BLOCK, 0);
	expect_of(&e, 15, 15, 0, 0);
	a = must_add(e.apps[0], 20, 0);
	must_add(e.apps[1], 10, 0);
	expect_of(&e, 0, 0, 0, 0);
	ebb_rig_monitor_end(rig, SIGKILL);
	assert_true(ebb_rig_until(e.apps, 2, has_no_monitor, e.apps[0], EBB_RIG_SOON_MS));
	/* Without it each sees the whole, and gives as far as it goes. */
	fake_ebb_dev_set_mem_limit(rig->dev, 0, 14 * BLOCK, 1);
	expect_of(&e, 0, 0, 16, 10);
	ebb_rig_monitor_start(rig);
	/* An odd block would be of whoever comes back first. */
	expect_of(&e, 0, 0, 13, 3);
	assert_int_equal(ebb_mem_release(e.apps[0], a.addr, 20 * BLOCK), 0);
	expect_of(&e, 4, 0, 0, 0);
	all_close(&e);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(offers_are_shared, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(demands_go_to_the_one_that_owns_most,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(demand_is_met_by_the_next_look, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(application_killed_while_it_holds_memory,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(monitor_comes_and_goes, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests_name("ebb_monitor_mem", tests, NULL, NULL);
}
