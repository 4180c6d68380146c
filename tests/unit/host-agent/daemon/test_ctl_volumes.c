/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Promises of I/O on the control socket: set, and shown with what became of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "tests/unit/host-agent/daemon/ctl_rig.h"

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
			"\"io.a.b.weight\":7,\"io.simulated-1.reserve-iops\":300,"
			"\"io.cold\":\"no\",\"io.simulated-1.cold\":\"yes\"}}");
	assert_int_equal(ctl_number(answer, "io_reserve_iops"), 200);
	assert_string_equal(ctl_text(answer, "io_cold"), "no");
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
	assert_string_equal(ctl_text(json_array_get(volumes, 0), "io_cold"), "yes");
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	volumes = json_object_get(json_array_get(json_object_get(answer, "vms"), 0), "volumes");
	assert_int_equal(json_array_size(volumes), 1);
	assert_string_equal(ctl_text(json_array_get(volumes, 0), "volume"), "simulated-1");
	assert_int_equal(ctl_number(json_array_get(volumes, 0), "reserve_iops"), 300);
	assert_int_equal(ctl_number(json_array_get(volumes, 0), "max_bytes"), 1000000000000);
	assert_string_equal(ctl_text(json_array_get(volumes, 0), "cold"), "yes");
	json_decref(answer);
}

/* The volume of a simulated VM, as `vms` shows it. */
static json_t *volume(struct ctl_rig *f, const char *vm)
{
	char request[128];
	json_t *answer, *v;

	snprintf(request, sizeof(request), "{\"cmd\":\"vms\",\"vm\":\"%s\"}", vm);
	answer = ctl_ask_good(f, request);
	v = json_incref(json_array_get(json_object_get(
		json_array_get(json_object_get(answer, "vms"), 0), "volumes"), 0));
	json_decref(answer);
	return v;
}

static void expect_state(struct ctl_rig *f, const char *name, const char *error)
{
	json_t *v = volume(f, "simulated-1");

	assert_string_equal(ctl_text(v, "state"), name);
	assert_string_equal(ctl_text(v, "error"), error);
	json_decref(v);
}

static void test_state(void **state)
{
	struct ebb_fact lost = { .type = EBB_FACT_VOLUMES_LOST };
	struct ctl_rig *f = *state;
	json_t *answer;

	expect_state(f, "none", "");
	answer = ctl_ask_good(f, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			      "{\"io.reserve-iops\":200}}");
	json_decref(answer);
	expect_state(f, "waiting", "the volume server has not answered yet");
	strcpy(lost.u.volumes_lost.text, "gone");
	assert_int_equal(ebb_agent_report(&f->agent, &lost), 0);
	expect_state(f, "waiting", "gone");
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, setup, ctl_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_set), TEST(test_state) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
