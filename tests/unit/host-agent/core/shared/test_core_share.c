// SPDX-License-Identifier: GPL-2.0-or-later
/* Shared cores: who is placed where, who is moved and who is not, and throttles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/shared/balance.h"
#include "tests/lib/chance.h"

#define SEC	EBB_USEC_PER_SEC
#define MAX	512

static struct ebb_share_core cores[64];
static struct ebb_share_vm vms[64];
static struct ebb_share_vcpu vcpus[MAX];
static struct ebb_share s;
static void host(uint16_t nodes, uint16_t per_node)
{
	memset(cores, 0, sizeof(cores));
	memset(vms, 0, sizeof(vms));
	memset(vcpus, 0, sizeof(vcpus));
	s = (struct ebb_share){ .cores = cores, .vms = vms, .vcpus = vcpus };
	ebb_share_config_default(&s.cfg);
	s.num_cores = nodes * per_node;
	for (uint16_t c = 0; c < s.num_cores; c++)
		cores[c].node = c / per_node;
}

static void add_vm(uint16_t num_vcpus, uint32_t weight)
{
	struct ebb_share_vm *vm = &vms[s.num_vms];

	vm->weight = weight;
	vm->first = s.num_vcpus;
	vm->num_vcpus = num_vcpus;
	vm->num_groups = ebb_share_groups(&s, num_vcpus);
	for (uint16_t g = 0; g < EBB_MAX_GUEST_NODES; g++)
		vm->nodes[g] = EBB_NODE_ANY;
	for (uint16_t i = 0; i < num_vcpus; i++)
		vcpus[s.num_vcpus++] = (struct ebb_share_vcpu){
			.vm = s.num_vms, .group = i % vm->num_groups, .core = EBB_SHARE_NONE,
		};
	s.num_vms++;
}

static void put(uint32_t vcpu, uint16_t core, uint16_t use, uint16_t wait)
{
	vcpus[vcpu].core = core;
	vcpus[vcpu].use = use;
	vcpus[vcpu].wait = wait;
	vms[vcpus[vcpu].vm].nodes[vcpus[vcpu].group] = cores[core].node;
}

static uint32_t shared_with_self(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < s.num_vcpus; i++)
		for (uint32_t k = 0; k < i; k++)
			count += vcpus[i].vm == vcpus[k].vm && vcpus[i].core == vcpus[k].core;
	return count;
}

static void test_small_on_one_node_large_on_several(void **state)
{
	uint32_t on[2] = { 0 };

	(void)state;
	host(2, 8);
	add_vm(4, 100);
	add_vm(4, 100);
	add_vm(12, 100);
	assert_int_equal(vms[0].num_groups, 1);
	assert_int_equal(vms[2].num_groups, 2);
	ebb_share_place(&s);
	for (uint32_t i = 1; i < 4; i++)
		assert_int_equal(cores[vcpus[i].core].node, cores[vcpus[0].core].node);
	/* The second goes where the first is not. */
	assert_int_not_equal(cores[vcpus[4].core].node, cores[vcpus[0].core].node);
	for (uint32_t i = 8; i < 20; i++)
		on[cores[vcpus[i].core].node]++;
	assert_int_equal(on[0], 6);
	assert_int_equal(on[1], 6);
	assert_int_equal(shared_with_self(), 0);
	/* More than there are cores: as evenly as can be. */
	add_vm(20, 100);
	ebb_share_place(&s);
	for (uint16_t c = 0; c < s.num_cores; c++)
		assert_in_range(cores[c].num_vcpus, 2, 3);
	/* Better with somebody busy than two of a VM on a core. */
	host(1, 2);
	add_vm(1, 100);
	put(0, 0, 900, 0);
	add_vm(2, 100);
	ebb_share_place(&s);
	assert_int_equal(shared_with_self(), 0);
}

static void test_idle_neighbours_stay(void **state)
{
	(void)state;
	host(1, 4);
	add_vm(4, 100);
	add_vm(4, 100);
	for (uint32_t i = 0; i < 4; i++) {
		put(i, (uint16_t)i, 990, 5);
		put(4 + i, (uint16_t)i, 20, 5);
	}
	ebb_share_look(&s, 100 * SEC);
	assert_int_equal(s.num_hot, 0);
	assert_int_equal(s.num_moves, 0);
	assert_int_equal(vms[0].throttle, 0);
	assert_true(s.is_hot); /* on average */
}

static void test_busy_neighbours_part(void **state)
{
	(void)state;
	host(1, 4);
	add_vm(2, 100);
	add_vm(2, 100);
	/* By size alone one of each would go. */
	put(0, 0, 500, 100);
	put(1, 1, 490, 100);
	put(2, 0, 490, 100);
	put(3, 1, 500, 100);
	ebb_share_look(&s, 100 * SEC);
	assert_int_equal(s.num_hot, 2);
	assert_int_equal(s.num_moves, 2);
	assert_int_equal(s.num_moved_vms, 1); /* the same VM twice, not two of them */
	assert_int_equal(s.num_stuck, 0);
	assert_false(s.is_hot);
	assert_int_equal(s.cost_usec, 2 * s.cfg.move_usec);
	for (uint16_t c = 0; c < 4; c++)
		assert_int_equal(cores[c].num_vcpus, 1);
	/* As it is now nobody moves again. */
	for (uint32_t i = 0; i < 4; i++)
		vcpus[i].use = 600;
	ebb_share_look(&s, 115 * SEC);
	assert_int_equal(s.num_moves, 0);
}

/* Who has little to do is no reason to leave two busy ones on a core, even if his gets full. */
static void test_one_of_two_joins_the_light(void **state)
{
	(void)state;
	host(1, 2);
	for (int i = 0; i < 5; i++)
		add_vm(1, 100);
	put(0, 0, 500, 500);
	put(1, 0, 500, 500);
	for (uint32_t i = 2; i < 5; i++)
		put(i, 1, 40, 0);
	ebb_share_look(&s, 100 * SEC);
	assert_int_equal(s.num_moves, 1);
	assert_int_not_equal(vcpus[0].core, vcpus[1].core);
	/* As it is now nobody moves again, also when everybody might. */
	vcpus[0].use = vcpus[1].use = 900;
	vcpus[0].wait = vcpus[1].wait = 100;
	ebb_share_look(&s, 1000 * SEC);
	assert_int_equal(s.num_moves, 0);
}

/* A full core hides what its vCPUs would use; what they waited tells. */
static void test_waiting_counts_on_full_cores_only(void **state)
{
	(void)state;
	host(1, 3);
	add_vm(1, 100);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 500, 500);
	put(1, 0, 500, 100);
	put(2, 1, 300, 300);
	ebb_share_look(&s, SEC);
	assert_int_equal(vcpus[0].demand, 1000);
	/* It was idle for long enough to do all its work. */
	assert_int_equal(vcpus[1].demand, 500);
	assert_int_equal(vcpus[2].demand, 300);
	/* Nearly always ready: most of its waiting counts. */
	put(0, 0, 500, 480);
	put(1, 0, 500, 450);
	ebb_share_look(&s, SEC);
	assert_int_equal(vcpus[0].demand, 884);
	assert_int_equal(vcpus[1].demand, 725);
}

/* Two that would fill a core get less of it, as something else runs there, too. */
static void test_other_programs_on_a_core(void **state)
{
	(void)state;
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 380, 610);
	put(1, 0, 390, 600);
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_hot, 1);
	assert_int_equal(s.num_moves, 1);
	assert_int_not_equal(vcpus[0].core, vcpus[1].core);
	/* They take turns: neither is ready for most of the time. */
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 380, 100);
	put(1, 0, 390, 100);
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_hot, 0);
	assert_int_equal(s.num_moves, 0);
	/* They waited for long but did all their work, which is below the target: not hot. */
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 350, 550);
	put(1, 0, 350, 540);
	ebb_share_look(&s, SEC);
	assert_int_equal(cores[0].level, 700);
	assert_int_equal(s.num_hot, 0);
	assert_int_equal(s.num_moves, 0);
	/* The same with more work than the target: one of them moves. */
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 390, 510);
	put(1, 0, 390, 500);
	ebb_share_look(&s, SEC);
	assert_int_equal(cores[0].level, 900);
	assert_int_equal(s.num_hot, 1);
	assert_int_equal(s.num_moves, 1);
	/* One that is throttled waits for its quota, whoever else is there. */
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 300, 700);
	put(1, 0, 100, 0);
	vms[0].throttle = 300;
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_hot, 0);
}

/* Neither core has room for another, but two can change places. */
static void test_change_of_places(void **state)
{
	(void)state;
	host(1, 2);
	add_vm(1, 100);
	add_vm(1, 100);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 500, 0);
	put(1, 0, 400, 0);
	put(2, 1, 250, 0);
	put(3, 1, 300, 0);
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_moves, 2);
	assert_in_range(cores[0].demand, 600, 800);
	assert_in_range(cores[1].demand, 600, 800);
	assert_int_equal(s.num_stuck, 0);
}

static void test_stays_after_a_move(void **state)
{
	(void)state;
	host(1, 4);
	add_vm(1, 100);
	add_vm(1, 100);
	put(0, 0, 450, 0);
	put(1, 0, 450, 0);
	vms[0].moved_at = vms[1].moved_at = 100 * SEC;
	vms[0].moved_load = vms[1].moved_load = 440;
	ebb_share_look(&s, 115 * SEC);
	assert_int_equal(s.num_moves, 0);
	assert_int_equal(s.num_held, 1);
	assert_int_equal(s.num_stuck, 0);
	assert_int_equal(vms[0].throttle, 0);
	/* Time passes. */
	ebb_share_look(&s, 160 * SEC);
	assert_int_equal(s.num_moves, 1);
	/* Or the load is not what it was. */
	put(0, 0, 450, 0);
	put(1, 0, 450, 0);
	vms[0].moved_at = vms[1].moved_at = 160 * SEC;
	vms[0].moved_load = 440;
	vms[1].moved_load = 100;
	ebb_share_look(&s, 161 * SEC);
	assert_int_equal(s.num_moves, 1);
	assert_true(vms[1].is_moved);
	assert_int_equal(vms[1].moved_at, 161 * SEC);
	/* What it was moved for is not its load if that was a guess: the next window tells. */
	put(0, 0, 450, 0);
	put(1, 0, 450, 0);
	vms[1].moved_at = vms[0].moved_at = 161 * SEC;
	vms[0].moved_load = 440;
	ebb_share_look(&s, 176 * SEC);
	assert_int_equal(vms[1].moved_load, 450);
	assert_int_equal(s.num_moves, 0);
}

static void test_throttle_by_weight(void **state)
{
	(void)state;
	host(1, 2);
	add_vm(2, 100);
	add_vm(2, 300);
	add_vm(2, 100);
	for (uint16_t c = 0; c < 2; c++) {
		put(c, c, 400, 600);
		put(2 + c, c, 500, 500);
		put(4 + c, c, 100, 10);
	}
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_moves, 0);
	assert_int_equal(s.num_stuck, 2);
	assert_true(s.is_hot);
	assert_int_equal(vms[0].throttle, 0);
	ebb_share_look(&s, 16 * SEC);
	/* 925, between hot and all, less the 100 that the third uses, by 1 to 3. */
	assert_int_equal(vms[0].throttle, 206);
	assert_int_equal(vms[1].throttle, 618);
	assert_int_equal(vms[2].throttle, 0);
	/* Held back they use less; that is no reason to let them go. */
	for (uint16_t c = 0; c < 2; c++) {
		put(c, c, 204, 600);
		put(2 + c, c, 610, 400);
		put(4 + c, c, 100, 0);
	}
	ebb_share_look(&s, 31 * SEC);
	assert_int_equal(vms[0].throttle, 206);
	assert_int_equal(vms[1].throttle, 618);
	/* The heavy one is done, the light one would like to have 600. */
	for (uint16_t c = 0; c < 2; c++)
		put(2 + c, c, 0, 0);
	vms[0].throttle_load = 600;
	ebb_share_look(&s, 46 * SEC);
	assert_int_equal(vms[0].throttle, 0);
	assert_int_equal(vms[1].throttle, 0);
	assert_int_equal(s.num_stuck, 0);
	assert_false(s.is_hot);
}

/* The limit is one for all vCPUs of a VM: it is not slowed down where nothing is wrong. */
static void test_no_throttle_for_one_crowded_core(void **state)
{
	(void)state;
	host(1, 4);
	add_vm(4, 100);
	add_vm(1, 100);
	for (usec_t now = SEC; now < 40 * SEC; now += 15 * SEC) {
		for (uint16_t c = 0; c < 4; c++)
			put(c, c, c ? 700 : 500, c ? 0 : 400);
		put(4, 0, vms[1].throttle ? vms[1].throttle : 500, 400);
		ebb_share_look(&s, now);
		assert_int_equal(s.num_moves, 0);
		assert_int_equal(s.num_stuck, 1);
		assert_int_equal(vms[0].throttle, 0);
	}
	/* The other has nothing but that core. */
	assert_int_equal(vms[1].throttle, 462);
}

/* What is hot is better than what can not do all it should. */
static void test_full_goes_to_hot(void **state)
{
	(void)state;
	host(1, 2);
	for (uint32_t i = 0; i < 4; i++)
		add_vm(1, 100);
	for (uint32_t i = 0; i < 3; i++)
		put(i, 0, 333, 67);
	put(3, 1, 540, 0);
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_moves, 1);
	assert_int_equal(s.num_stuck, 0);
	assert_in_range(cores[1].demand, 850, 900);
	/* A core that is hot and not full does not go there. */
	host(1, 2);
	for (uint32_t i = 0; i < 4; i++)
		add_vm(1, 100);
	put(0, 0, 400, 0);
	put(1, 0, 390, 0);
	put(2, 0, 100, 0);
	put(3, 1, 780, 0);
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_moves, 0);
	assert_int_equal(s.num_stuck, 1);
}

/* Cores of another node are cool, but a VM's memory is where it is. */
static void test_nobody_changes_nodes(void **state)
{
	(void)state;
	host(2, 2);
	add_vm(2, 100);
	add_vm(2, 100);
	for (uint16_t c = 0; c < 2; c++) {
		put(c, c, 500, 200);
		put(2 + c, c, 500, 100);
	}
	ebb_share_look(&s, SEC);
	assert_int_equal(s.num_moves, 0);
	assert_int_equal(s.num_stuck, 2);
	ebb_share_look(&s, 16 * SEC);
	assert_int_equal(vms[0].throttle, 462);
}

/* Core 0 is hot, core 1 idle, and 50% of core 1 are promised already; a and b: as on core 0. */
static uint32_t moves_with(uint16_t a, uint16_t b)
{
	host(1, 2);
	for (int i = 0; i < 3; i++)
		add_vm(1, 100);
	put(0, 0, 500, 0);
	put(1, 0, 490, 0);
	put(2, 1, 0, 0);
	vcpus[0].reserve = a;
	vcpus[1].reserve = b;
	vcpus[2].reserve = 500;
	ebb_share_look(&s, 100 * EBB_USEC_PER_SEC);
	return s.num_moves;
}

static void test_no_core_promises_more_than_it_has(void **state)
{
	(void)state;
	/* A newcomer goes where there is enough left to promise, though it is busy there. */
	host(1, 2);
	for (int i = 0; i < 3; i++)
		add_vm(1, 100);
	put(0, 0, 0, 0);
	put(1, 1, 500, 0);
	vcpus[0].reserve = vcpus[2].reserve = 600;
	ebb_share_place(&s);
	assert_int_equal(vcpus[2].core, 1);
	assert_int_equal(cores[1].reserve, 600);
	/* One with a promise moves where that fits; one without as it likes. */
	assert_int_equal(moves_with(0, 0), 1);
	assert_int_equal(moves_with(450, 460), 1);
	assert_int_equal(vcpus[0].core, 1);
	assert_int_equal(moves_with(460, 450), 1);
	assert_int_equal(vcpus[1].core, 1);
	assert_int_equal(cores[1].reserve, 950);
	assert_int_equal(moves_with(460, 460), 0);
}

static void test_no_throttle_below_a_promise(void **state)
{
	(void)state;
	for (uint16_t reserve = 0; reserve <= 600; reserve += 600) {
		host(1, 1);
		add_vm(1, 100);
		add_vm(1, 300);
		for (usec_t now = 100; now < 160; now += 15) {
			put(0, 0, 500, 500);
			put(1, 0, 500, 500);
			vcpus[0].reserve = reserve;
			ebb_share_look(&s, now * EBB_USEC_PER_SEC);
		}
		assert_int_equal(vms[0].throttle, reserve ? 600 : 231);
		assert_true(vms[1].throttle > 0);
	}
}

static void check(const uint16_t *before)
{
	uint32_t moves = 0;

	for (uint16_t c = 0; c < s.num_cores; c++) {
		uint32_t demand = 0, count = 0;

		for (uint32_t i = 0; i < s.num_vcpus; i++) {
			count += vcpus[i].core == c;
			demand += vcpus[i].core == c ? vcpus[i].demand : 0;
		}
		assert_int_equal(cores[c].demand, demand);
		assert_int_equal(cores[c].num_vcpus, count);
	}
	for (uint32_t i = 0; i < s.num_vcpus; i++) {
		assert_in_range(vcpus[i].core, 0, s.num_cores - 1);
		assert_int_equal(cores[vcpus[i].core].node,
				 vms[vcpus[i].vm].nodes[vcpus[i].group]);
		moves += vcpus[i].core != before[i];
	}
	assert_int_equal(shared_with_self(), 0);
	assert_int_equal(s.num_moves, moves);
}

static void test_random(void **state)
{
	uint16_t before[MAX];
	uint32_t moved = 0;

	(void)state;
	for (uint32_t round = 1; round < 60; round++) {
		chance = round;
		host(1 + roll(2), 8);
		for (uint32_t i = 8 + roll(12); i > 0; i--)
			add_vm((uint16_t)(1 + roll(8)), 1 + roll(1000));
		ebb_share_place(&s);
		for (uint32_t i = 0; i < s.num_vcpus; i++)
			before[i] = vcpus[i].core;
		check(before);
		for (usec_t now = 15 * SEC; now < 300 * SEC; now += 15 * SEC) {
			uint32_t hot = 0;

			for (uint16_t m = 0; m < s.num_vms; m++) {
				const uint32_t load = roll(3) ? roll(150) : roll(1000);

				if (roll(3) > 0)
					continue;
				for (uint32_t i = 0; i < vms[m].num_vcpus; i++)
					vcpus[vms[m].first + i].use = (uint16_t)load;
			}
			for (uint32_t i = 0; i < s.num_vcpus; i++) {
				before[i] = vcpus[i].core;
				vcpus[i].wait = vcpus[i].use / 2;
			}
			ebb_share_look(&s, now);
			check(before);
			moved += s.num_moves;
			for (uint16_t c = 0; c < s.num_cores; c++)
				hot += cores[c].is_hot && cores[c].demand > s.cfg.hot &&
				       !cores[c].is_stuck && !cores[c].is_held &&
				       cores[c].num_active > 1;
			assert_int_equal(hot, 0);
			assert_true(s.num_moves == 0 || s.num_hot > 0);
		}
	}
	assert_true(moved > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_on_one_node_large_on_several),
		cmocka_unit_test(test_idle_neighbours_stay),
		cmocka_unit_test(test_busy_neighbours_part),
		cmocka_unit_test(test_one_of_two_joins_the_light),
		cmocka_unit_test(test_waiting_counts_on_full_cores_only),
		cmocka_unit_test(test_other_programs_on_a_core),
		cmocka_unit_test(test_change_of_places),
		cmocka_unit_test(test_stays_after_a_move),
		cmocka_unit_test(test_throttle_by_weight),
		cmocka_unit_test(test_no_throttle_for_one_crowded_core),
		cmocka_unit_test(test_full_goes_to_hot),
		cmocka_unit_test(test_nobody_changes_nodes),
		cmocka_unit_test(test_no_core_promises_more_than_it_has),
		cmocka_unit_test(test_no_throttle_below_a_promise),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
