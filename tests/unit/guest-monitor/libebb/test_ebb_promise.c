// SPDX-License-Identifier: GPL-2.0-or-later
/* A promise of memory to a VM: who hears of it, and what the host hears of caches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "guest-monitor/libebb/ebb.h"
#include "guest-monitor/monitord/divide.h"
#include "tests/lib/ebb_rig.h"

#define BLOCK	(2ull << 20)

struct promised {
	struct ebb_rig *rig;
	struct ebb *apps[2];
	size_t num;
	uint32_t mib[2];
	unsigned int num_calls;
};

static bool is_promised(void *arg)
{
	const struct promised *p = arg;

	for (size_t i = 0; i < p->num; i++)
		if (ebb_mem_promise(p->apps[i]) != p->mib[i])
			return false;
	return true;
}

static void expect(struct promised *p, size_t num, uint32_t first, uint32_t second)
{
	p->num = num;
	p->mib[0] = first;
	p->mib[1] = second;
	if (!ebb_rig_until(p->apps, p->num, is_promised, p, EBB_RIG_SOON_MS))
		fail_msg("%zu applications, not %u and %u MiB", num, first, second);
}

static void count(void *arg, const struct ebb_shares *shares)
{
	struct promised *p = arg;

	(void)shares;
	p->num_calls++;
}

static void memory_add(struct promised *p, size_t i)
{
	struct ebb_lease lease;

	assert_int_equal(ebb_mem_add(p->apps[i], BLOCK, 0, &lease), 0);
}

static void start(struct promised *p, void **state)
{
	*p = (struct promised){ .rig = *state };
	fake_ebb_dev_set_pool(p->rig->dev, 0, 100 * BLOCK);
	fake_ebb_dev_set_mem_limit(p->rig->dev, 0, 100 * BLOCK, 0);
}

static void a_part_for_each(void **state)
{
	(void)state;
	assert_int_equal(ebb_divide_promise(1001, 0, 1), 1001);
	assert_int_equal(ebb_divide_promise(1001, 0, 2), 501);
	assert_int_equal(ebb_divide_promise(1001, 1, 2), 500);
	assert_int_equal(ebb_divide_promise(2, 2, 3), 0);
	assert_true(ebb_divide_promise(UINT32_MAX, 0, 1) == UINT32_MAX);
}

static void without_a_monitor_it_is_the_vm_s(void **state)
{
	struct promised p;
	unsigned int before;

	start(&p, state);
	p.apps[0] = ebb_rig_open(p.rig, "a", EBB_OPEN_NO_MONITOR);
	ebb_set_shares_callback(p.apps[0], count, &p);
	expect(&p, 1, 0, 0);
	fake_ebb_dev_promise(p.rig->dev, 300);
	expect(&p, 1, 300, 0);
	/* Nothing but the promise changes. */
	before = p.num_calls;
	assert_true(before > 0);
	fake_ebb_dev_promise(p.rig->dev, 200);
	expect(&p, 1, 200, 0);
	assert_int_equal(p.num_calls, before + 1);
	ebb_close(p.apps[0]);
}

static void it_is_divided_among_those_that_own_memory(void **state)
{
	struct promised p;

	start(&p, state);
	ebb_rig_monitor_start(p.rig);
	fake_ebb_dev_promise(p.rig->dev, 301);
	p.apps[0] = ebb_rig_open(p.rig, "a", 0);
	expect(&p, 1, 301, 0);
	p.apps[1] = ebb_rig_open(p.rig, "b", 0);
	memory_add(&p, 1);
	expect(&p, 2, 0, 301);
	memory_add(&p, 0);
	expect(&p, 2, 151, 150);
	ebb_close(p.apps[1]);
	expect(&p, 1, 301, 0);
	ebb_close(p.apps[0]);
}

static bool host_hears(void *arg)
{
	struct virtio_ebb_telemetry t;
	struct promised *p = arg;

	return fake_ebb_dev_telemetry(p->rig->dev, &t) > 0 && t.baseline_ios == 111 &&
	       t.actual_ios == 222 && t.baseline_mib == 30;
}

static void host_hears_of_simulated_caches(void **state)
{
	const struct ebb_stats stats = { .committed = 1 };
	struct promised p;

	start(&p, state);
	ebb_rig_monitor_start(p.rig);
	fake_ebb_dev_promise(p.rig->dev, 30);
	p.num = 2;
	p.apps[0] = ebb_rig_open(p.rig, "a", 0);
	p.apps[1] = ebb_rig_open(p.rig, "b", 0);
	ebb_baseline_set(p.apps[0], 10, 11, 22);
	ebb_baseline_set(p.apps[1], 20, 100, 200);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(ebb_report(p.apps[i], &stats), 0);
	assert_true(ebb_rig_until(p.apps, 2, host_hears, &p, EBB_RIG_SOON_MS));
	for (size_t i = 0; i < 2; i++)
		ebb_close(p.apps[i]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_part_for_each),
		cmocka_unit_test_setup_teardown(without_a_monitor_it_is_the_vm_s, ebb_rig_setup,
						ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(it_is_divided_among_those_that_own_memory,
						ebb_rig_setup, ebb_rig_teardown),
		cmocka_unit_test_setup_teardown(host_hears_of_simulated_caches, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
