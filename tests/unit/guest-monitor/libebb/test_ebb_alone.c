// SPDX-License-Identifier: GPL-2.0-or-later
/* An application that has the monitor for itself, until it has not. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "guest-monitor/libebb/ebb.h"
#include "tests/lib/ebb_rig.h"

struct offered {
	struct ebb *apps[2];
	size_t num;
	uint32_t cpus;		/* to each, on node 0 */
};

static bool is_offered(void *arg)
{
	const struct offered *o = arg;

	for (size_t i = 0; i < o->num; i++)
		if (ebb_rig_share(o->apps[i], 0).cpus_offered != o->cpus)
			return false;
	return true;
}

static void expect(struct offered *o, size_t num, uint32_t cpus)
{
	o->num = num;
	o->cpus = cpus;
	if (!ebb_rig_until(o->apps, o->num, is_offered, o, EBB_RIG_SOON_MS))
		fail_msg("%zu applications, not %u CPUs for each", num, cpus);
}

/* The monitor's answer comes before what it then says about shares; the next one after that. */
static void settle(struct ebb *ebb)
{
	struct ebb_stats stats;

	assert_int_equal(ebb_dispatch(ebb), 0);
	for (int n = 0; n < 2; n++)
		assert_int_equal(ebb_stats_get(ebb, NULL, &stats), 0);
	assert_int_equal(ebb_dispatch(ebb), 0);
}

static void it_hears_of_the_device_by_itself(void **state)
{
	struct ebb_rig *rig = *state;
	struct offered o = { 0 };

	ebb_rig_monitor_start(rig);
	o.apps[0] = ebb_rig_open(rig, "a", 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 6, 0);
	expect(&o, 1, 4);
	settle(o.apps[0]);

	/* A monitor that does not run shows it best. */
	assert_int_equal(kill(rig->monitor, SIGSTOP), 0);
	fake_ebb_dev_set_limit(rig->dev, 0, 10, 0);
	expect(&o, 1, 8);
	assert_int_equal(ebb_has_monitor(o.apps[0]), 1);
	assert_int_equal(kill(rig->monitor, SIGCONT), 0);

	/* With a second one there is something to divide, without it no more. */
	o.apps[1] = ebb_rig_open(rig, "b", 0);
	expect(&o, 2, 4);
	ebb_close(o.apps[1]);
	expect(&o, 1, 8);
	ebb_close(o.apps[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_hears_of_the_device_by_itself, ebb_rig_setup,
						ebb_rig_teardown),
	};

	ebb_rig_role(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
