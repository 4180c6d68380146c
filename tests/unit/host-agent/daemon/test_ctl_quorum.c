// SPDX-License-Identifier: GPL-2.0-or-later
/* Whoever watches the cluster tells the agent whether the host has quorum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/metrics.h"
#include "tests/unit/host-agent/daemon/ctl_rig.h"
#include "util/clock.h"

static int setup(void **state)
{
	return ctl_rig_setup(state, false);
}

static void expect(struct ctl_rig *f, const char *request, bool has_quorum)
{
	json_t *answer = ctl_ask_good(f, request);

	assert_true(json_is_boolean(json_object_get(answer, "quorum")));
	assert_int_equal(json_is_true(json_object_get(answer, "quorum")), has_quorum);
	json_decref(answer);
}

static void test_quorum(void **state)
{
	struct ctl_rig *f = *state;
	json_t *answer;
	char *text;

	expect(f, "{\"cmd\":\"quorum\"}", true);
	expect(f, "{\"cmd\":\"quorum\",\"quorum\":false}", false);
	expect(f, "{\"cmd\":\"quorum\"}", false);
	answer = ctl_ask_good(f, "{\"cmd\":\"host\"}");
	assert_true(json_is_false(json_object_get(json_object_get(answer, "host"), "quorum")));
	json_decref(answer);
	text = ebb_metrics_text(f->agent.state, ebb_clock_mono_usec());
	assert_non_null(strstr(text, "\nebb_quorum 0\n"));
	free(text);
	expect(f, "{\"cmd\":\"quorum\",\"quorum\":true}", true);
}

static void expect_refused(struct ctl_rig *f, const char *for_s)
{
	char request[96];

	snprintf(request, sizeof(request), "{\"cmd\":\"quorum\",\"quorum\":true,\"for_s\":%s}",
		 for_s);
	ctl_expect_refused(f, request, "bad-request", "for_s");
}

static void test_for_how_long(void **state)
{
	struct ctl_rig *f = *state;

	expect(f, "{\"cmd\":\"quorum\",\"quorum\":true,\"for_s\":60}", true);
	expect(f, "{\"cmd\":\"quorum\",\"quorum\":false,\"for_s\":1}", false);
	expect_refused(f, "0");
	expect_refused(f, "86401");
	expect_refused(f, "\"60\"");
	expect(f, "{\"cmd\":\"quorum\"}", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_quorum, setup, ctl_rig_teardown),
		cmocka_unit_test_setup_teardown(test_for_how_long, setup, ctl_rig_teardown),
	};

	return cmocka_run_group_tests_name("quorum", tests, NULL, NULL);
}
