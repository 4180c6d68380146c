// SPDX-License-Identifier: GPL-2.0-or-later
/* Simulated guests that need much memory by turns, as in `ebbd --dry-run`, under the vom policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/sim/world.h"

#define NUM_VMS		3u
#define BLOCKS		500u
/* 90% */
#define THRESHOLD	450u
#define MUCH		(BLOCKS / 2)
#define LITTLE		(BLOCKS / 4 / (NUM_VMS - 1))

static uint32_t held(const struct world *w, unsigned vm)
{
	return world_vm(w, vm)->pools[0].held;
}

static uint32_t all_held(const struct world *w)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < NUM_VMS; i++)
		sum += held(w, i);
	return sum;
}

static void run(struct world *w, unsigned seconds)
{
	world_run_until(w, w->now + seconds * EBB_USEC_PER_SEC);
	assert_string_equal(w->failure, "");
}

static void begin(struct world *w)
{
	const struct ebb_sla sla = {
		.io = { .weight = 100, .penalty = 1 },
		.weight = 100, .deadline_ms = 300, .mem_weight = 100, .mem_deadline_ms = 300,
		.num_nodes = 1,
		.nodes[0] = { .startup = 1, .reserved = 1, .max = 4, .mem_max = BLOCKS },
	};
	struct ebb_fake_config cfg;
	struct ebb_host host;

	assert_int_equal(ebb_host_emulate(1, 4, 1, 250, &host), 0);
	host.pool_blocks[0] = BLOCKS;
	ebb_fake_config_default(&cfg);
	cfg.seed = 1;
	world_init(w, &host, &cfg, &ebb_policy_vom, false);
	for (unsigned i = 0; i < NUM_VMS; i++)
		assert_int_equal(world_define(w, i, &sla, EBB_FAKE_GREEDY), 0);
	ebb_fake_need_turn(w->fake, w->now, 0);
	for (unsigned i = 0; i < NUM_VMS; i++)
		world_start(w, i);
}

/* What they need fits below the target: memory goes to who needs it, and stays there. */
static void test_turns(void **state)
{
	static struct world w;
	uint64_t brokered;

	(void)state;
	begin(&w);
	run(&w, 20);
	assert_int_equal(held(&w, 0), MUCH);
	assert_int_equal(held(&w, 1), LITTLE);
	assert_int_equal(held(&w, 2), LITTLE);
	assert_int_equal(w.num_brokered, 0);
	for (uint32_t turn = 1; turn < 5; turn++) {
		brokered = w.num_brokered;
		ebb_fake_need_turn(w.fake, w.now, turn);
		run(&w, 20);
		assert_true(w.num_brokered > brokered);
		assert_int_equal(held(&w, turn % NUM_VMS), MUCH);
		for (unsigned i = 0; i < NUM_VMS; i++)
			assert_true(held(&w, i) >= LITTLE);
		assert_in_range(all_held(&w), MUCH + (NUM_VMS - 1) * LITTLE, THRESHOLD);
		/* Nobody is asked again for what is within the threshold. */
		brokered = w.num_brokered;
		run(&w, 20);
		assert_int_equal(w.num_brokered, brokered);
	}
	world_finish(&w);
}

/* They need more than the threshold: it is taken once in a cool-down, and taken up again. */
static void test_needs_more(void **state)
{
	static struct world w;
	usec_t end;
	unsigned falls = 0;
	bool is_down = false;

	(void)state;
	begin(&w);
	w.cfg.pressure.memory_target_percent = 10;
	w.cfg.pressure.memory_threshold_percent = 20;
	w.cfg.pressure.memory_failover_percent = 30;
	world_agent_restart(&w);
	run(&w, 5);
	for (end = w.now + 10 * EBB_USEC_PER_SEC; w.now < end;) {
		world_step(&w, end);
		assert_string_equal(w.failure, "");
		if (!is_down && all_held(&w) <= BLOCKS / 10) {
			falls++;
			is_down = true;
		}
		if (all_held(&w) > BLOCKS / 2)
			is_down = false;
	}
	/* The cool-down is a second, and guests take a part of it to answer and to give. */
	assert_in_range(falls, 3, 10);
	world_finish(&w);
}

/* Without a need they take whatever there is. */
static void test_no_need(void **state)
{
	static struct world w;

	(void)state;
	begin(&w);
	for (unsigned i = 0; i < NUM_VMS; i++)
		assert_int_equal(ebb_fake_vm_need(w.fake, w.now, w.vms[i].uuid, 0, UINT32_MAX), 0);
	assert_true(ebb_fake_vm_need(w.fake, w.now, w.vms[0].uuid, 1, 0) < 0);
	run(&w, 5);
	for (unsigned i = 0; i < 1000 && all_held(&w) <= THRESHOLD; i++)
		world_run_until(&w, w.now + EBB_USEC_PER_SEC / 100);
	assert_true(all_held(&w) > THRESHOLD);
	assert_true(w.num_brokered > 0);
	world_finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_needs_more),
		cmocka_unit_test(test_no_need),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
