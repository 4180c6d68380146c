// SPDX-License-Identifier: GPL-2.0-or-later
/* The strict policy: static sets, in order of arrival. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "model/policy.h"

struct bench {
	struct ebb_view view;
	struct ebb_view_vm vms[4];
	struct ebb_plan_vm targets[4];
};

static void bench_init(struct bench *b, uint32_t cores)
{
	memset(b, 0, sizeof(*b));
	b->view.num_nodes = 1;
	b->view.nodes[0] = (struct ebb_view_node){
		.capacity = cores, .num_cores = cores, .num_threads = cores,
	};
	b->view.vms = b->vms;
}

static void bench_vm(struct bench *b, uint16_t floor, uint16_t ceiling, bool has_driver)
{
	b->vms[b->view.num_vms] = (struct ebb_view_vm){
		.order = b->view.num_vms + 1, .weight = 100, .has_driver = has_driver,
		.num_nodes = 1,
		.nodes = { { .floor = floor, .ceiling = ceiling, .used = floor } },
	};
	b->view.num_vms++;
}

static uint16_t target(struct bench *b, uint32_t v)
{
	struct ebb_plan plan = { .targets = b->targets };

	memset(b->targets, 0, sizeof(b->targets));
	assert_int_equal(ebb_policy_decide(&ebb_policy_strict, &(uint64_t){ 0 },
					   &b->view, &plan), 0);
	return b->targets[v].nodes[0];
}

static void test_order_of_arrival(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 10);
	bench_vm(&b, 1, 6, true);
	assert_int_equal(target(&b, 0), 6);
	bench_vm(&b, 2, 6, true);
	assert_int_equal(target(&b, 0), 6);
	assert_int_equal(target(&b, 1), 4);
	/* A newcomer's floor comes from the latest. */
	bench_vm(&b, 1, 6, true);
	assert_int_equal(target(&b, 0), 6);
	assert_int_equal(target(&b, 1), 3);
	assert_int_equal(target(&b, 2), 1);
}

static void test_lends_to_nobody(void **state)
{
	struct bench b;

	(void)state;
	bench_init(&b, 8);
	bench_vm(&b, 1, 6, false);
	bench_vm(&b, 1, 6, true);
	/* The first cannot use its set now; the second does not get it. */
	assert_int_equal(target(&b, 0), 1);
	assert_int_equal(target(&b, 1), 2);
}

static void test_memory(void **state)
{
	struct ebb_plan plan;
	struct bench b;

	(void)state;
	bench_init(&b, 8);
	b.view.nodes[0].mem_capacity = 100;
	bench_vm(&b, 1, 1, true);
	bench_vm(&b, 1, 1, false);
	bench_vm(&b, 1, 1, true);
	b.vms[0].nodes[0].mem = (struct ebb_view_mem){ .floor = 10, .ceiling = 50 };
	b.vms[1].nodes[0].mem = (struct ebb_view_mem){ .floor = 5, .ceiling = 30 };
	b.vms[2].nodes[0].mem = (struct ebb_view_mem){ .floor = 1, .ceiling = 50 };
	plan.targets = b.targets;
	memset(b.targets, 0, sizeof(b.targets));
	assert_int_equal(ebb_policy_decide(&ebb_policy_strict, &(uint64_t){ 0 },
					   &b.view, &plan), 0);
	assert_int_equal(b.targets[0].mem[0], 50);
	/* Its own, but not now. */
	assert_int_equal(b.targets[1].mem[0], 5);
	assert_int_equal(b.targets[2].mem[0], 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_arrival),
		cmocka_unit_test(test_lends_to_nobody),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
