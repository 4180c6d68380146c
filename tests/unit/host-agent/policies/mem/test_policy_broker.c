// SPDX-License-Identifier: GPL-2.0-or-later
/* The policies that broker memory: when they do, what is offered, and what they never do. */
#include <string.h>

#include "tests/unit/host-agent/policies/mem/broker_bench.h"

static const struct ebb_policy_ops *const brokers[] = {
	&ebb_policy_vom, &ebb_policy_equal, &ebb_policy_proportional, &ebb_policy_balloon,
};

#define NUM_BROKERS	(sizeof(brokers) / sizeof(brokers[0]))

static struct broker_bench b;

static void pass(uint32_t seconds)
{
	b.view.now += seconds * EBB_USEC_PER_SEC;
}

/* Below the threshold nobody loses anything, and all that is free is offered, by weight. */
static void test_free_room(void **state)
{
	(void)state;
	for (size_t p = 0; p < NUM_BROKERS; p++) {
		broker_init(&b, brokers[p], 1);
		broker_vm(&b, 0, 100, 500);
		broker_vm(&b, 0, 100, 300);
		broker_vm(&b, 0, 0, 0);
		b.vms[2].mem_weight = 200;
		broker_decide(&b);
		assert_int_equal(b.targets[0].mem[0], 550);
		assert_int_equal(b.targets[1].mem[0], 350);
		assert_int_equal(b.targets[2].mem[0], 100);
		assert_false(b.asks);
		/* Nothing has changed: neither has the plan. */
		broker_decide(&b);
		assert_int_equal(b.targets[1].mem[0], 350);
		/* One takes it all: half of what the others left is for it. */
		b.vms[1].nodes[0].mem.held = 350;
		broker_decide(&b);
		assert_int_equal(b.targets[0].mem[0], 525);
		assert_int_equal(b.targets[2].mem[0], 50);
		assert_int_equal(b.targets[1].mem[0], 425);
		broker_check(&b);
	}
}

/* A VM that wants nothing does not keep a growing one from the room, and can begin to grow. */
static void test_room_moves(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_vom, 1);
	broker_vm(&b, 0, 0, 100);
	for (int i = 0; i < 10; i++)
		broker_vm(&b, 0, 0, 10);
	for (int round = 0; round < 10; round++) {
		broker_decide(&b);
		broker_check(&b);
		b.vms[0].nodes[0].mem.held = b.targets[0].mem[0];
	}
	assert_true(b.vms[0].nodes[0].mem.held >= 1000 - 10 * 19);
	for (uint32_t v = 1; v <= 10; v++)
		assert_true(b.targets[v].mem[0] >= 18);
}

/* However many others there are that want nothing: a growing VM gets to where it is brokered. */
static void test_threshold_is_reached(void **state)
{
	(void)state;
	for (size_t p = 0; p < NUM_BROKERS; p++) {
		uint32_t rounds = 0;

		broker_init(&b, brokers[p], 1);
		broker_vm(&b, 0, 0, 100);
		for (int i = 0; i < 40; i++)
			broker_vm(&b, 0, 0, 10);
		while (b.vms[0].nodes[0].mem.held <= 900 - 40 * 10) {
			assert_true(rounds++ < 20);
			broker_decide(&b);
			broker_check(&b);
			b.vms[0].nodes[0].mem.held = b.targets[0].mem[0];
		}
		/* And no further. */
		for (uint32_t v = 1; v <= 40; v++)
			assert_true(b.targets[v].mem[0] > 10);
	}
}

/* M = alpha + (threshold - target), from whom the policy says, down to the floor. */
static void test_who_gives(void **state)
{
	(void)state;
	for (size_t p = 0; p < NUM_BROKERS; p++) {
		uint32_t kept[3];

		broker_init(&b, brokers[p], 1);
		broker_vm(&b, 0, 100, 600);
		broker_vm(&b, 0, 50, 200);
		broker_vm(&b, 0, 140, 150);
		broker_tell(&b, 0, (uint32_t[]){ 5, 100, 70, 500, 0, 0 });
		broker_tell(&b, 1, (uint32_t[]){ 9, 30, 60, 170, 0, 0 });
		broker_tell(&b, 2, (uint32_t[]){ 1, 150, 0, 0 });
		broker_decide(&b);
		broker_check(&b);
		assert_false(b.asks);
		for (int v = 0; v < 3; v++)
			kept[v] = b.targets[v].mem[0];
		if (brokers[p] == &ebb_policy_vom) {
			/* 10 and no more of the cheapest, then 100, then 30, and 10 at 60. */
			assert_int_equal(kept[2], 140);
			assert_int_equal(kept[0], 500);
			assert_int_equal(kept[1], 160);
			assert_int_equal(b.targets[0].mem_cutoff[0], 61);
			assert_int_equal(b.targets[2].mem_cutoff[0], 61);
		} else if (brokers[p] == &ebb_policy_equal) {
			assert_int_equal(kept[2], 140);
			assert_int_equal(kept[0], 530);
			assert_int_equal(kept[1], 130);
		} else if (brokers[p] == &ebb_policy_proportional) {
			/* 10 are less than its part; of the rest three quarters. */
			assert_int_equal(kept[2], 140);
			assert_int_equal(kept[0], 495);
			assert_int_equal(kept[1], 165);
		} else {
			assert_int_equal(kept[0], 450);
			assert_int_equal(kept[1], 50);
			assert_int_equal(kept[2], 140);
		}
	}
}

/* What a VM of twice the weight has is worth twice as much. */
static void test_weights(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_vom, 1);
	broker_vm(&b, 0, 0, 500);
	broker_vm(&b, 0, 0, 500);
	b.vms[0].mem_weight = 300;
	broker_tell(&b, 0, (uint32_t[]){ 10, 80, 50, 420, 0, 0 });
	broker_tell(&b, 1, (uint32_t[]){ 20, 100, 40, 400, 0, 0 });
	broker_decide(&b);
	/* 20 (100), 3 x 10 (80), 40 (20). */
	assert_int_equal(b.targets[0].mem[0], 420);
	assert_int_equal(b.targets[1].mem[0], 380);
	assert_int_equal(b.targets[1].mem_cutoff[0], 41);
	assert_int_equal(b.targets[0].mem_cutoff[0], 40 * 100 / 300 + 1);
}

/* Balloon: relieved as soon as enough is given, whoever gave it. */
static void test_balloon(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_balloon, 1);
	broker_vm(&b, 0, 100, 700);
	broker_vm(&b, 0, 100, 250);
	broker_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 550);
	assert_int_equal(b.targets[1].mem[0], 100);
	b.vms[0].nodes[0].mem.held = 650;
	b.vms[1].nodes[0].mem.held = 200;
	broker_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 600);
	assert_int_equal(b.targets[1].mem[0], 150);
	b.vms[1].nodes[0].mem.held = 150;
	broker_decide(&b);
	assert_true(b.targets[0].mem[0] >= 650);
	assert_true(b.targets[1].mem[0] >= 150);
	broker_check(&b);
}

/* At most once in a cool-down; who gave stays down, who did not grows into it. */
static void test_cooldown(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_vom, 1);
	broker_vm(&b, 0, 100, 700);
	broker_vm(&b, 0, 100, 220);
	broker_tell(&b, 0, (uint32_t[]){ 1, 700, 0, 0 });
	broker_tell(&b, 1, (uint32_t[]){ 1000, 220, 0, 0 });
	broker_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 580);
	assert_int_equal(b.targets[1].mem[0], 420);
	/* While it gives, the other one grows: the one that gave stays down. */
	b.vms[0].nodes[0].mem.held = 580;
	b.vms[1].nodes[0].mem.held = 400;
	for (int i = 0; i < 5; i++) {
		pass(10);
		broker_decide(&b);
		broker_check(&b);
		assert_int_equal(b.targets[0].mem[0], 580);
		assert_int_equal(b.targets[0].mem_cutoff[0], 2);
		assert_int_equal(b.targets[1].mem_cutoff[0], 0);
		assert_false(b.asks);
	}
	/* 980 are in use, and the cool-down is over. */
	pass(10);
	broker_decide(&b);
	assert_true(b.asks);
	assert_int_equal(b.targets[0].mem[0], 580);
	pass(1);
	broker_tell(&b, 0, (uint32_t[]){ 1, 580, 0, 0 });
	broker_tell(&b, 1, (uint32_t[]){ 1000, 400, 0, 0 });
	broker_decide(&b);
	assert_false(b.asks);
	assert_int_equal(b.targets[0].mem[0], 400);
	assert_int_equal(b.targets[1].mem[0], 600);
	/* Pressure is gone: it may grow again. */
	b.vms[0].nodes[0].mem.held = 400;
	broker_decide(&b);
	assert_true(b.targets[0].mem[0] > 400);
	assert_int_equal(b.targets[0].mem_cutoff[0], 0);
}

/* Within the threshold again after the cool-down, though not at the target. */
static void test_lifted(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_equal, 1);
	broker_vm(&b, 0, 100, 700);
	broker_vm(&b, 0, 240, 240);
	broker_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 560);
	b.vms[0].nodes[0].mem.held = 560;
	b.vms[1].nodes[0].mem.held = 300;
	pass(59);
	broker_decide(&b);
	assert_int_equal(b.targets[0].mem[0], 560);
	pass(1);
	broker_decide(&b);
	assert_true(b.targets[0].mem[0] > 560);
}

/* Guests are asked first; when no more answers can come, what is known has to do. */
static void test_asking(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_vom, 2);
	broker_vm(&b, 1, 100, 600);
	broker_vm(&b, 1, 100, 350);
	broker_vm(&b, 0, 100, 350);
	broker_decide(&b);
	assert_true(b.asks);
	assert_int_equal(b.targets[0].mem[0], 600);
	assert_int_equal(b.targets[1].mem[0], 350);
	pass(1);
	broker_tell(&b, 1, (uint32_t[]){ 0, 100, 7, 250, 0, 0 });
	broker_decide(&b);
	assert_false(b.asks);
	assert_int_equal(b.targets[0].mem[0], 600);
	pass(1);
	b.view.vom_is_open = false;
	broker_decide(&b);
	assert_false(b.asks);
	/* The silent one gives its part: 150 x 500 / 750. */
	assert_int_equal(b.targets[0].mem[0], 500);
	assert_int_equal(b.targets[1].mem[0], 300);
	/* What it had to give is worth nothing, and there is no word on what goes first. */
	assert_int_equal(b.targets[1].mem_cutoff[0], 0);
	assert_int_equal(b.targets[2].mem[0], 1000);
}

/* Where memory is short, the answers are there when the cool-down ends. */
static void test_asked_ahead(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_vom, 1);
	broker_vm(&b, 0, 100, 700);
	broker_vm(&b, 0, 100, 240);
	broker_tell(&b, 0, (uint32_t[]){ 1, 700, 0, 0 });
	broker_tell(&b, 1, (uint32_t[]){ 9, 240, 0, 0 });
	broker_decide(&b);
	assert_false(b.asks);
	assert_true(b.targets[0].mem[0] < 700);
	/* The newcomer has what was given, and more: above the threshold again. */
	b.vms[0].nodes[0].mem.held = b.targets[0].mem[0];
	b.vms[1].nodes[0].mem.held = 990 - b.targets[0].mem[0];
	pass(58);
	broker_decide(&b);
	assert_false(b.asks);
	pass(1);
	broker_decide(&b);
	assert_true(b.asks);
	broker_tell(&b, 0, (uint32_t[]){ 1, 700, 0, 0 });
	broker_tell(&b, 1, (uint32_t[]){ 9, 500, 0, 0 });
	broker_decide(&b);
	assert_false(b.asks);
	pass(1);
	broker_decide(&b);
	assert_false(b.asks);
	assert_true(b.targets[0].mem[0] < b.vms[0].nodes[0].mem.held);
	assert_true(b.targets[1].mem[0] >= b.vms[1].nodes[0].mem.held);
}

/* Floors that nobody holds yet are in use: they are promised. */
static void test_floor_of_newcomer(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_proportional, 1);
	broker_vm(&b, 0, 100, 850);
	broker_vm(&b, 0, 200, 0);
	broker_decide(&b);
	broker_check(&b);
	assert_int_equal(b.targets[0].mem[0], 600);
	assert_true(b.targets[1].mem[0] >= 200);
}

/* VMs come and go while others are down. */
static void test_vms_come_and_go(void **state)
{
	(void)state;
	broker_init(&b, &ebb_policy_equal, 1);
	for (int i = 0; i < 3; i++)
		broker_vm(&b, 0, 0, i == 1 ? 601 : 150);
	b.vms[0].nodes[0].mem.floor = b.vms[2].nodes[0].mem.floor = 150;
	broker_decide(&b);
	assert_int_equal(b.targets[1].mem[0], 500);
	/* The first and the last go, another one comes that was there before all of them. */
	b.vms[0].order = 0;
	b.view.num_vms = 2;
	b.vms[0].nodes[0].mem = (struct ebb_view_mem){ .ceiling = 1000, .held = 250 };
	b.vms[1].nodes[0].mem.held = 560;
	broker_decide(&b);
	broker_check(&b);
	assert_int_equal(b.targets[1].mem[0], 500);
	assert_true(b.targets[0].mem[0] >= 200);
}

static void test_no_driver(void **state)
{
	(void)state;
	for (size_t p = 0; p < NUM_BROKERS; p++) {
		broker_init(&b, brokers[p], 1);
		broker_vm(&b, 0, 50, 50);
		broker_vm(&b, 0, 50, 300);
		b.vms[0].has_driver = false;
		broker_decide(&b);
		assert_int_equal(b.targets[0].mem[0], 50);
		assert_int_equal(b.targets[1].mem[0], 950);
	}
}

/* ---- by chance ----------------------------------------------------------- */

static uint32_t some(uint32_t most)
{
	static const uint32_t odd[] = { 0, 1, 2047, UINT32_MAX, UINT32_MAX - 1, 1u << 31 };

	if (broker_roll(&b, 12) == 0)
		return odd[broker_roll(&b, 6)];
	return (uint32_t)broker_roll(&b, most + 1ull);
}

static void lie(uint32_t v, uint16_t g)
{
	struct ebb_view_mem *mem = &b.vms[v].nodes[g].mem;

	mem->buckets = b.buckets[v][g];
	mem->num_buckets = broker_roll(&b, 4) ? (uint32_t)broker_roll(&b, BROKER_BUCKETS + 1) : 0;
	for (uint32_t i = 0; i < mem->num_buckets; i++)
		b.buckets[v][g][i] = (struct ebb_vom_bucket){
			.value = broker_roll(&b, 8) ? broker_roll(&b, 1000) : UINT64_MAX,
			.kib = some(100000), .node = (uint16_t)broker_roll(&b, 20),
		};
	mem->vom_at = broker_roll(&b, 3) ? b.view.now - broker_roll(&b, 90000000) : 0;
	if (broker_roll(&b, 40) == 0)
		mem->vom_at = UINT64_MAX;
}

static void make_view(const struct ebb_policy_ops *policy)
{
	uint64_t left[EBB_MAX_NODES];
	const uint16_t nodes = (uint16_t)(1 + broker_roll(&b, 4));

	broker_init(&b, policy, nodes);
	for (uint16_t h = 0; h < nodes; h++) {
		b.view.nodes[h].mem_capacity = some(5000);
		b.view.nodes[h].mem_threshold = some(5000);
		b.view.nodes[h].mem_target = some(5000);
		left[h] = b.view.nodes[h].mem_capacity;
	}
	for (uint64_t num = broker_roll(&b, 20); num > 0; num--) {
		struct ebb_view_vm *vm = &b.vms[b.view.num_vms];

		broker_vm(&b, 0, 0, 0);
		vm->has_driver = broker_roll(&b, 8) > 0;
		vm->mem_weight = broker_roll(&b, 4) ? some(10000) : 100;
		vm->num_nodes = (uint16_t)(1 + broker_roll(&b, 3));
		for (uint16_t g = 0; g < vm->num_nodes; g++) {
			const uint16_t h = (uint16_t)broker_roll(&b, nodes);
			struct ebb_view_mem *mem = &vm->nodes[g].mem;

			vm->nodes[g].host_node = h;
			mem->floor = (uint32_t)broker_roll(&b, left[h] / 8 + 1);
			left[h] -= mem->floor;
			mem->ceiling = some(1000);
			/* The core says so of floors and ceilings. */
			if (mem->ceiling < mem->floor)
				mem->ceiling = mem->floor;
			mem->held = some(1000);
			mem->used = some(1000);
			mem->target = broker_roll(&b, 2) ? some(1000) : 0;
		}
	}
}

/* Whatever guests say and hold: within the bounds, at every step. */
static void test_bounds(void **state)
{
	(void)state;
	b.chance = 1;
	for (int i = 0; i < 4000; i++) {
		make_view(brokers[i % NUM_BROKERS]);
		for (int round = 0; round < 4; round++) {
			b.view.vom_is_open = broker_roll(&b, 4) == 0;
			b.view.vom_asked_at = broker_roll(&b, 2) ? broker_roll(&b, 2000000000) : 0;
			for (uint32_t v = 0; v < b.view.num_vms; v++)
				for (uint16_t g = 0; g < b.vms[v].num_nodes; g++)
					lie(v, g);
			broker_decide(&b);
			broker_check(&b);
			b.view.now += broker_roll(&b, 90) * EBB_USEC_PER_SEC;
			if (broker_roll(&b, 2))
				broker_follow(&b, (uint32_t)broker_roll(&b, 200));
		}
	}
}

/* Asked twice for the same, it says the same; followed, it comes to rest within the cool-down. */
static void test_rest(void **state)
{
	static struct ebb_plan_vm last[BROKER_VMS];

	(void)state;
	b.chance = 5;
	for (int i = 0; i < 400; i++) {
		broker_init(&b, brokers[i % NUM_BROKERS], 1);
		for (uint64_t num = 2 + broker_roll(&b, 10); num > 0; num--)
			broker_vm(&b, 0, (uint32_t)broker_roll(&b, 50),
				  (uint32_t)broker_roll(&b, 250));
		for (uint32_t v = 0; v < b.view.num_vms; v++)
			broker_tell(&b, v, (uint32_t[]){ (uint32_t)broker_roll(&b, 50), 100,
							  60, 2000, 0, 0 });
		broker_decide(&b);
		memcpy(last, b.targets, sizeof(last));
		broker_decide(&b);
		assert_memory_equal(last, b.targets, sizeof(last));
		/* VMs give, and take nothing. */
		for (int round = 0; round < 40; round++) {
			broker_follow(&b, 0);
			memcpy(last, b.targets, sizeof(last));
			broker_decide(&b);
			broker_check(&b);
			if (round > 10)
				assert_memory_equal(last, b.targets, sizeof(last));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_free_room),
		cmocka_unit_test(test_room_moves),
		cmocka_unit_test(test_threshold_is_reached),
		cmocka_unit_test(test_who_gives),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_balloon),
		cmocka_unit_test(test_cooldown),
		cmocka_unit_test(test_lifted),
		cmocka_unit_test(test_asking),
		cmocka_unit_test(test_asked_ahead),
		cmocka_unit_test(test_floor_of_newcomer),
		cmocka_unit_test(test_vms_come_and_go),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_rest),
	};

	return cmocka_run_group_tests_name("policy broker", tests, NULL, NULL);
}
