/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Promises of I/O on the control socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/host-agent/ctl_rig.h"

static int setup(void **state)
{
	return ctl_rig_setup(state, false);
}

static void test_set(void **state)
{
	json_t *volumes;
	json_t *answer = ctl_ask_good(
		*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			"{\"io.reserve-iops\":200,\"io.max-bytes\":\"1000000000000\","
			"\"io.a.b.weight\":7,\"io.simulated-1.reserve-iops\":300}}");
	assert_int_equal(ctl_number(answer, "io_reserve_iops"), 200);
	assert_int_equal(ctl_number(answer, "io_max_bytes"), 1000000000000);
	assert_int_equal(json_array_size(json_object_get(answer, "io_volumes")), 2);
	json_decref(answer);
	/* What holds of each disk; a volume whose last own value goes is not named any more. */
	answer = ctl_ask_good(
		*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			"{\"io.a.b.weight\":\"default\"}}");
	volumes = json_object_get(answer, "io_volumes");
	assert_int_equal(json_array_size(volumes), 1);
	assert_int_equal(ctl_number(json_array_get(volumes, 0), "io_reserve_iops"), 300);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	volumes = json_object_get(json_array_get(json_object_get(answer, "vms"), 0), "volumes");
	assert_int_equal(json_array_size(volumes), 1);
	assert_string_equal(ctl_text(json_array_get(volumes, 0), "volume"), "simulated-1");
	assert_int_equal(ctl_number(json_array_get(volumes, 0), "reserve_iops"), 300);
	assert_int_equal(ctl_number(json_array_get(volumes, 0), "max_bytes"), 1000000000000);
	json_decref(answer);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, ctl_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_set) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
