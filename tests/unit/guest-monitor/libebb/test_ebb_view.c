// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The VM's view (V1, V2 of view.h) and what an application sees of it (S1, S2 of
 * handle.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/libebb/handle.h"

static const struct ebb_mem_sums no_mem;

static struct ebb_view view_of(uint32_t held, uint32_t limit, uint32_t startup, uint32_t hotplugged,
			       uint32_t owned)
{
	struct ebb_limits limits = { .generation = 7, .num_nodes = 1 };
	struct ebb_cpu cpu = { .node = 4 };
	struct ebb_view view;

	limits.nodes[0].node = 4;
	limits.nodes[0].cpus_held = held;
	limits.nodes[0].cpus_limit = limit;
	limits.nodes[0].deadline_ns = 99;
	ebb_view_init(&view, &limits);
	cpu.flags = EBB_CPU_STARTUP;
	for (uint32_t i = 0; i < startup; i++)
		ebb_view_count_cpu(&view, &cpu);
	for (uint32_t i = 0; i < hotplugged; i++) {
		cpu.flags = i < owned ? EBB_CPU_OWNED : 0;
		ebb_view_count_cpu(&view, &cpu);
	}
	ebb_view_finish(&view);
	return view;
}

static void counts(void **state)
{
	struct ebb_view view = view_of(5, 5, 2, 3, 1);

	(void)state;
	assert_int_equal(view.generation, 7);
	assert_int_equal(view.nodes[0].present, 5);
	assert_int_equal(view.nodes[0].hotplugged, 3);
	assert_int_equal(view.nodes[0].owned, 1);
	assert_int_equal(view.nodes[0].offer, 0);
	assert_int_equal(view.nodes[0].demand, 0);
	assert_int_equal(view.nodes[0].deadline_ns, 0);
}

static void forced_leaving_and_lent_cpus_do_not_count(void **state)
{
	struct ebb_view view = view_of(2, 3, 2, 0, 0);
	struct ebb_cpu cpu = { .node = 4, .flags = EBB_CPU_OWNED | EBB_CPU_FORCED };

	(void)state;
	ebb_view_count_cpu(&view, &cpu);
	cpu.flags = EBB_CPU_OWNED | EBB_CPU_LEAVING;
	ebb_view_count_cpu(&view, &cpu);
	/* One that is lent is idle, and nobody's. */
	cpu.flags = EBB_CPU_LENT;
	ebb_view_count_cpu(&view, &cpu);
	cpu.flags = EBB_CPU_LENT | EBB_CPU_PARKED;
	ebb_view_count_cpu(&view, &cpu);
	cpu.flags = EBB_CPU_OWNED;
	cpu.node = 5;
	ebb_view_count_cpu(&view, &cpu);
	ebb_view_finish(&view);
	assert_int_equal(view.nodes[0].present, 2);
	assert_int_equal(view.nodes[0].owned, 0);
	assert_int_equal(view.nodes[0].offer, 1);
}

static void offer_and_demand_need_both_sides(void **state)
{
	(void)state;
	assert_int_equal(view_of(2, 4, 2, 0, 0).nodes[0].offer, 2);
	/* The driver has added one, the host's next word is on its way; and the reverse. */
	assert_int_equal(view_of(2, 4, 2, 1, 1).nodes[0].offer, 1);
	assert_int_equal(view_of(3, 4, 2, 0, 0).nodes[0].offer, 1);
	assert_int_equal(view_of(5, 3, 2, 3, 3).nodes[0].demand, 2);
	assert_int_equal(view_of(5, 3, 2, 2, 2).nodes[0].demand, 1);
	assert_int_equal(view_of(4, 3, 2, 3, 3).nodes[0].demand, 1);
	assert_int_equal(view_of(5, 3, 2, 1, 1).nodes[0].demand, 0);
	assert_int_equal(view_of(5, 3, 2, 1, 1).nodes[0].deadline_ns, 0);
	assert_int_equal(view_of(5, 3, 2, 2, 2).nodes[0].deadline_ns, 99);
}

static void the_tier_is_passed_on(void **state)
{
	struct ebb_limits limits = { .generation = 7, .num_nodes = 1 };
	struct ebb_msg_shares word = { .num_nodes = 1 };
	struct ebb_shares shares;
	struct ebb_view view;

	(void)state;
	limits.nodes[0].node = 4;
	limits.nodes[0].tier = VIRTIO_EBB_TIER_PARK;
	ebb_view_init(&view, &limits);
	ebb_view_finish(&view);
	assert_int_equal(view.nodes[0].tier, VIRTIO_EBB_TIER_PARK);
	ebb_shares_compute(&view, &no_mem, NULL, &shares);
	assert_int_equal(shares.nodes[0].tier, VIRTIO_EBB_TIER_PARK);
	/* Of the same origin, but what the monitor says belongs together. */
	word.nodes[0].node = 4;
	word.nodes[0].tier = VIRTIO_EBB_TIER_UNPLUG;
	ebb_shares_compute(&view, &no_mem, &word, &shares);
	assert_int_equal(shares.nodes[0].tier, VIRTIO_EBB_TIER_UNPLUG);
}

static void senseless_numbers_are_cut(void **state)
{
	struct ebb_view view = view_of(2, UINT32_MAX, 2, 0, 0);

	(void)state;
	assert_int_equal(view.nodes[0].offer, EBB_VIEW_MAX_CPUS - 2);
}

static void direct_demand_is_at_most_what_is_owned(void **state)
{
	struct ebb_view view = view_of(6, 3, 2, 4, 1);
	struct ebb_shares shares;

	(void)state;
	ebb_shares_compute(&view, &no_mem, NULL, &shares);
	assert_int_equal(shares.num_nodes, 1);
	assert_int_equal(shares.nodes[0].node, 4);
	assert_int_equal(shares.nodes[0].cpus_held, 6);
	assert_int_equal(shares.nodes[0].cpus_limit, 3);
	assert_int_equal(shares.nodes[0].cpus_owned, 1);
	assert_int_equal(shares.nodes[0].cpus_demanded, 1);
	assert_int_equal(shares.nodes[0].deadline_ns, 99);

	view = view_of(6, 3, 2, 4, 0);
	ebb_shares_compute(&view, &no_mem, NULL, &shares);
	assert_int_equal(shares.nodes[0].cpus_demanded, 0);
	assert_int_equal(shares.nodes[0].deadline_ns, 0);
}

static struct ebb_msg_shares word_of(uint32_t owned, uint32_t offered, uint32_t demanded)
{
	struct ebb_msg_shares word = { .num_nodes = 1 };

	word.nodes[0].node = 4;
	word.nodes[0].held = 20;
	word.nodes[0].limit = 21;
	word.nodes[0].owned = owned;
	word.nodes[0].offered = offered;
	word.nodes[0].demanded = demanded;
	word.nodes[0].deadline_ns = demanded ? 55 : 0;
	return word;
}

static void monitors_word_is_relative_to_what_it_knew(void **state)
{
	struct ebb_msg_shares word = word_of(1, 3, 0);
	struct ebb_shares shares;
	struct ebb_view view;

	(void)state;
	for (uint32_t owned = 0; owned <= 6; owned++) {
		view = view_of(8, 8, 2, 6, owned);
		ebb_shares_compute(&view, &no_mem, &word, &shares);
		assert_int_equal(shares.nodes[0].cpus_offered, owned < 4 ? 4 - owned : 0);
		assert_int_equal(shares.nodes[0].cpus_demanded, 0);
	}
	assert_int_equal(shares.nodes[0].cpus_held, 20);
	assert_int_equal(shares.nodes[0].cpus_limit, 21);

	word = word_of(4, 0, 2);
	for (uint32_t owned = 0; owned <= 6; owned++) {
		view = view_of(8, 8, 2, 6, owned);
		ebb_shares_compute(&view, &no_mem, &word, &shares);
		assert_int_equal(shares.nodes[0].cpus_demanded, owned > 2 ? owned - 2 : 0);
		assert_int_equal(shares.nodes[0].deadline_ns, owned > 2 ? 55 : 0);
		assert_int_equal(shares.nodes[0].cpus_offered, 0);
	}
}

static void demand_never_exceeds_what_is_owned_whatever_the_monitor_says(void **state)
{
	struct ebb_msg_shares word = word_of(2, 0, UINT32_MAX);
	struct ebb_view view = view_of(8, 8, 2, 6, 3);
	struct ebb_shares shares;

	(void)state;
	ebb_shares_compute(&view, &no_mem, &word, &shares);
	assert_int_equal(shares.nodes[0].cpus_demanded, 3);
}

static void node_that_the_monitor_does_not_name(void **state)
{
	struct ebb_msg_shares word = { .num_nodes = 0 };
	struct ebb_view view = view_of(2, 9, 2, 0, 0);
	struct ebb_shares shares;

	(void)state;
	ebb_shares_compute(&view, &no_mem, &word, &shares);
	assert_int_equal(shares.num_nodes, 1);
	assert_int_equal(shares.nodes[0].cpus_offered, 0);
	assert_int_equal(shares.nodes[0].cpus_limit, 9);
}

/* ---- memory ---- */

#define BLOCK	(2ull << 20)

static struct ebb_view mem_view_of(uint64_t held, uint64_t limit_bytes, uint64_t leased,
				   uint64_t draining)
{
	struct ebb_limits limits = { .generation = 7, .num_nodes = 1 };
	struct ebb_pool_info pool = {
		.node = 4,
		.block_bytes = BLOCK,
		.leased_bytes = leased * BLOCK,
		.draining_bytes = draining * BLOCK,
	};
	struct ebb_view view;

	limits.nodes[0].node = 4;
	limits.nodes[0].mem_held_bytes = held * BLOCK;
	limits.nodes[0].mem_limit_bytes = limit_bytes;
	limits.nodes[0].mem_deadline_ns = 77;
	ebb_view_init(&view, &limits);
	ebb_view_set_pool(&view, &pool);
	ebb_view_finish(&view);
	return view;
}

static void mem_is(struct ebb_view view, uint64_t offer, uint64_t demand)
{
	assert_true(view.nodes[0].mem_offer_bytes == offer * BLOCK);
	assert_true(view.nodes[0].mem_demand_bytes == demand * BLOCK);
	assert_true(view.nodes[0].mem_deadline_ns == (demand ? 77 : 0));
}

static void memory_is_offered_and_demanded_in_whole_blocks(void **state)
{
	(void)state;
	mem_is(mem_view_of(3, 10 * BLOCK, 3, 0), 7, 0);
	mem_is(mem_view_of(3, 10 * BLOCK - 1, 3, 0), 6, 0);
	mem_is(mem_view_of(3, 3 * BLOCK + 1, 3, 0), 0, 0);
	mem_is(mem_view_of(3, 3 * BLOCK, 3, 0), 0, 0);
	mem_is(mem_view_of(3, 3 * BLOCK - 1, 3, 0), 0, 1);
	mem_is(mem_view_of(3, 0, 3, 0), 0, 3);
}

static void what_drains_is_neither_offered_nor_demanded(void **state)
{
	(void)state;
	mem_is(mem_view_of(5, 3 * BLOCK, 3, 2), 0, 0);
	mem_is(mem_view_of(5, 2 * BLOCK, 3, 2), 0, 1);
	mem_is(mem_view_of(5, 6 * BLOCK, 3, 2), 1, 0);
	/* Added, or released, between the two calls that count. */
	mem_is(mem_view_of(3, 6 * BLOCK, 5, 0), 1, 0);
	mem_is(mem_view_of(5, 6 * BLOCK, 3, 0), 1, 0);
	mem_is(mem_view_of(5, 2 * BLOCK, 3, 0), 0, 1);
	mem_is(mem_view_of(3, 2 * BLOCK, 5, 0), 0, 1);
}

static void node_without_a_pool_has_no_memory(void **state)
{
	struct ebb_limits limits = { .generation = 7, .num_nodes = 1 };
	struct ebb_view view;

	(void)state;
	limits.nodes[0].mem_limit_bytes = 100 * BLOCK;
	limits.nodes[0].mem_held_bytes = 200 * BLOCK;
	ebb_view_init(&view, &limits);
	ebb_view_finish(&view);
	mem_is(view, 0, 0);
	assert_true(view.nodes[0].mem_held_bytes == 0 && view.nodes[0].mem_limit_bytes == 0);
}

static void senseless_amounts_are_cut(void **state)
{
	struct ebb_limits limits = { .generation = 7, .num_nodes = 1 };
	struct ebb_pool_info pool = {
		.block_bytes = BLOCK, .leased_bytes = UINT64_MAX / BLOCK * BLOCK,
	};
	struct ebb_view view;

	(void)state;
	limits.nodes[0].mem_held_bytes = limits.nodes[0].mem_limit_bytes = UINT64_MAX;
	pool.draining_bytes = UINT64_MAX;
	ebb_view_init(&view, &limits);
	ebb_view_set_pool(&view, &pool);
	ebb_view_finish(&view);
	assert_true(view.nodes[0].mem_limit_bytes == EBB_VIEW_MAX_BYTES);
	assert_true(view.nodes[0].mem_offer_bytes == 0 && view.nodes[0].mem_demand_bytes == 0);
}

static void memory_of_an_application_without_monitor(void **state)
{
	struct ebb_mem_sums sums = { .seq = 0 };
	struct ebb_shares shares;
	struct ebb_view view = mem_view_of(10, 6 * BLOCK, 10, 0);

	(void)state;
	sums.owned_bytes[4] = 9 * BLOCK;
	ebb_shares_compute(&view, &sums, NULL, &shares);
	assert_true(shares.nodes[0].mem_owned_bytes == 9 * BLOCK);
	assert_true(shares.nodes[0].mem_demanded_bytes == 4 * BLOCK);
	assert_true(shares.nodes[0].mem_deadline_ns == 77);
	/* One of the four is on its way back. */
	sums.owned_bytes[4] = 8 * BLOCK;
	sums.releasing_bytes[4] = BLOCK;
	ebb_shares_compute(&view, &sums, NULL, &shares);
	assert_true(shares.nodes[0].mem_demanded_bytes == 3 * BLOCK);
	sums.owned_bytes[4] = 2 * BLOCK;
	ebb_shares_compute(&view, &sums, NULL, &shares);
	assert_true(shares.nodes[0].mem_demanded_bytes == 2 * BLOCK);
	sums.releasing_bytes[4] = 5 * BLOCK;
	ebb_shares_compute(&view, &sums, NULL, &shares);
	assert_true(shares.nodes[0].mem_demanded_bytes == 0);
	assert_true(shares.nodes[0].mem_deadline_ns == 0);
}

static void monitors_word_on_memory_is_relative_to_what_it_knew(void **state)
{
	struct ebb_msg_shares word = { .num_nodes = 1 };
	struct ebb_mem_sums sums = { .seq = 0 };
	struct ebb_view view = mem_view_of(10, 10 * BLOCK, 10, 0);
	struct ebb_shares shares;

	(void)state;
	word.nodes[0].node = 4;
	word.nodes[0].mem_owned_bytes = 3 * BLOCK;
	word.nodes[0].mem_offered_bytes = 4 * BLOCK;
	word.nodes[0].mem_held_bytes = 20 * BLOCK;
	for (uint64_t owned = 0; owned < 10; owned++) {
		sums.owned_bytes[4] = owned * BLOCK;
		ebb_shares_compute(&view, &sums, &word, &shares);
		assert_true(shares.nodes[0].mem_offered_bytes ==
			    (owned < 7 ? (7 - owned) * BLOCK : 0));
		assert_true(shares.nodes[0].mem_demanded_bytes == 0);
	}
	assert_true(shares.nodes[0].mem_held_bytes == 20 * BLOCK);
	word.nodes[0].mem_offered_bytes = 0;
	word.nodes[0].mem_demanded_bytes = 2 * BLOCK;
	word.nodes[0].mem_deadline_ns = 55;
	for (uint64_t owned = 0; owned < 10; owned++) {
		sums.owned_bytes[4] = owned * BLOCK;
		ebb_shares_compute(&view, &sums, &word, &shares);
		assert_true(shares.nodes[0].mem_demanded_bytes ==
			    (owned > 1 ? (owned - 1) * BLOCK : 0));
		assert_true(shares.nodes[0].mem_deadline_ns == (owned > 1 ? 55 : 0));
	}
}

/* ---- a device whose answers are given ---- */

static struct ebb_limits given_limits;
static int given_changes;		/* how often the list changes while it is read */
static uint32_t given_total;
static int given_is_old;		/* it knows the first structure of limits only */

static int given_ioctl(void *dev, unsigned long cmd, void *arg)
{
	struct ebb_cpu_list *list = arg;

	(void)dev;
	if (cmd == EBB_IOC_LIMITS && given_is_old)
		return -ENOTTY;
	if (cmd == EBB_IOC_LIMITS) {
		*(struct ebb_limits *)arg = given_limits;
		return 0;
	}
	if (cmd == _IOC(_IOC_READ | _IOC_WRITE, EBB_IOC_MAGIC, 1, EBB_LIMITS_SIZE_VER0)) {
		assert_int_equal(*(uint32_t *)arg, EBB_LIMITS_SIZE_VER0);
		memcpy(arg, &given_limits, EBB_LIMITS_SIZE_VER0);
		return 0;
	}
	if (list->start > 0 && given_changes > 0) {
		given_changes--;
		given_total--;
	}
	list->total = given_total;
	list->count = 0;
	while (list->count < EBB_MAX_REQ_CPUS && list->start + list->count < given_total)
		list->cpus[list->count++] = (struct ebb_cpu) { .flags = EBB_CPU_STARTUP };
	return 0;
}

static const struct ebb_dev_ops given_ops = { .ioctl = given_ioctl };

static void list_is_read_in_pieces_and_again_if_it_changes(void **state)
{
	struct ebb_view view;

	(void)state;
	given_limits = (struct ebb_limits) { .generation = 1, .num_nodes = 1 };
	given_total = 71;
	given_changes = 0;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), 0);
	assert_int_equal(view.nodes[0].present, 71);
	given_changes = 2;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), 0);
	assert_int_equal(view.nodes[0].present, 69);
	given_changes = 100;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), -EAGAIN);
}

static void older_driver_says_nothing_of_promises(void **state)
{
	struct ebb_view view;

	(void)state;
	given_limits = (struct ebb_limits) {
		.generation = 1, .num_nodes = 1, .vom_seq = 5, .mem_promise_mib = 77,
	};
	given_total = given_changes = 0;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), 0);
	assert_int_equal(view.mem_promise_mib, 77);
	given_is_old = 1;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), 0);
	assert_int_equal(view.vom_seq, 5);
	assert_int_equal(view.mem_promise_mib, 0);
	given_is_old = 0;
}

static void senseless_limits_are_refused(void **state)
{
	struct ebb_view view;

	(void)state;
	given_changes = 0;
	given_limits = (struct ebb_limits) { .num_nodes = EBB_MAX_NODES + 1 };
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), -EIO);
	given_limits = (struct ebb_limits) { .num_nodes = 1 };
	given_limits.nodes[0].node = EBB_MAX_NODES;
	assert_int_equal(ebb_view_read(&given_ops, NULL, &view), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(forced_leaving_and_lent_cpus_do_not_count),
		cmocka_unit_test(offer_and_demand_need_both_sides),
		cmocka_unit_test(the_tier_is_passed_on),
		cmocka_unit_test(senseless_numbers_are_cut),
		cmocka_unit_test(direct_demand_is_at_most_what_is_owned),
		cmocka_unit_test(monitors_word_is_relative_to_what_it_knew),
		cmocka_unit_test(demand_never_exceeds_what_is_owned_whatever_the_monitor_says),
		cmocka_unit_test(node_that_the_monitor_does_not_name),
		cmocka_unit_test(memory_is_offered_and_demanded_in_whole_blocks),
		cmocka_unit_test(what_drains_is_neither_offered_nor_demanded),
		cmocka_unit_test(node_without_a_pool_has_no_memory),
		cmocka_unit_test(senseless_amounts_are_cut),
		cmocka_unit_test(memory_of_an_application_without_monitor),
		cmocka_unit_test(monitors_word_on_memory_is_relative_to_what_it_knew),
		cmocka_unit_test(list_is_read_in_pieces_and_again_if_it_changes),
		cmocka_unit_test(older_driver_says_nothing_of_promises),
		cmocka_unit_test(senseless_limits_are_refused),
	};

	return cmocka_run_group_tests_name("ebb_view", tests, NULL, NULL);
}
