// SPDX-License-Identifier: GPL-2.0-or-later
/* Violations and moves as others get to see them: JSON, OpenMetrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/internal.h"
#include "daemon/metrics.h"
#include "daemon/view-pressure.h"
#include "daemon/view.h"
#include "tests/unit/host-agent/core/core_script.h"

static int greedy_decide(void *st, const struct ebb_view *view, struct ebb_plan *ret_plan)
{
	(void)st;
	for (uint32_t v = 0; v < view->num_vms; v++) {
		ret_plan->targets[v].nodes[0] = 1;
		ret_plan->targets[v].mem[0] = view->vms[v].nodes[0].mem.ceiling;
	}
	return 0;
}

static const struct ebb_policy_ops greedy_policy = {
	.abi = EBB_POLICY_ABI,
	.size = sizeof(struct ebb_policy_ops),
	.name = "greedy",
	.decide = greedy_decide,
	.mem_review_usec = EBB_USEC_PER_SEC,
};

static void boot(struct script *s, char vm, uint64_t order, uint32_t held_mib)
{
	struct ebb_sla sla = script_sla("1/1m0-512");

	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_running(s, vm, order), 0);
	assert_int_equal(script_hello(s, vm, true, true, 1, ""), 0);
	script_settle(s);
	script_pool(s, vm, 0, 512, held_mib, 0);
	assert_int_equal(script_mem(s, vm), 0);
	script_settle(s);
}

/* Two VMs with all of the memory of a node, and core 1 hot. */
static void begin(struct script *s)
{
	script_init(s, 1, 2, 1, false);
	assert_int_equal(ebb_state_policy_set(s->state, s->now, &greedy_policy), 0);
	boot(s, 'a', 1, 512);
	boot(s, 'b', 2, 512);
	pressure_report_core(&s->state->pressure, s->now, 1, 900, 900, "a 90%");
	s->now += SEC(5);
	script_settle(s);
	s->now += SEC(2);
}

static const char *text(const json_t *o, const char *key)
{
	const char *value = json_string_value(json_object_get(o, key));

	if (!value)
		fail_msg("\"%s\" is no string", key);
	return value;
}

static double number(const json_t *o, const char *key)
{
	if (!json_is_number(json_object_get(o, key)))
		fail_msg("\"%s\" is no number", key);
	return json_number_value(json_object_get(o, key));
}

static void test_view(void **state)
{
	json_t *all, *one, *vm;
	struct script s;

	(void)state;
	begin(&s);
	all = ebb_view_violations(s.state, s.now);
	assert_int_equal(json_array_size(all), 2);
	one = json_array_get(all, 0);
	assert_string_equal(text(one, "resource"), "memory");
	assert_true(number(one, "node") == 0);
	assert_true(json_is_null(json_object_get(one, "core")));
	assert_true(number(one, "percent") == 100);
	assert_true(number(one, "peak_percent") == 100);
	assert_true(number(one, "since_s") >= 2 && number(one, "since_s") < 3);
	assert_non_null(strstr(text(one, "text"), "1024 of 1024 MiB held"));
	one = json_array_get(all, 1);
	assert_string_equal(text(one, "resource"), "core");
	assert_true(number(one, "core") == 1);
	assert_true(number(one, "percent") == 90);
	json_decref(all);
	all = ebb_view_moves(s.state, s.now);
	assert_int_equal(json_array_size(all), 1);
	one = json_array_get(all, 0);
	/* The same in all else: who came last. */
	assert_string_equal(text(one, "vm"), "b");
	assert_string_equal(text(one, "resource"), "memory");
	assert_non_null(strstr(text(one, "text"), "should move"));
	vm = ebb_view_vm(s.state, script_vm(&s, 'b'), s.now, "");
	assert_true(json_equal(json_object_get(vm, "move"), one));
	json_decref(vm);
	json_decref(all);
	vm = ebb_view_vm(s.state, script_vm(&s, 'a'), s.now, "");
	assert_true(json_is_null(json_object_get(vm, "move")));
	json_decref(vm);
	script_finish(&s);
}

static void expect_line(const char *all, const char *line)
{
	const char *at = strstr(all, line);

	if (!at || (at > all && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("\"%s\" is no line of:\n%s", line, all);
}

static void test_metrics(void **state)
{
	struct script s;
	char *all;

	(void)state;
	begin(&s);
	/* A label's value is quoted. */
	strcpy(((struct ebb_vm *)script_vm(&s, 'b'))->name, "b\"\\\n");
	all = ebb_metrics_text(s.state, s.now);
	assert_non_null(all);
	expect_line(all, "# TYPE ebb_violations counter");
	expect_line(all, "ebb_violations_total{resource=\"memory\",node=\"0\"} 1");
	expect_line(all, "ebb_violations_total{resource=\"cpu\",node=\"0\"} 0");
	expect_line(all, "ebb_violations_total{resource=\"core\",node=\"0\"} 1");
	expect_line(all, "ebb_violation_active{resource=\"memory\",node=\"0\"} 1");
	expect_line(all, "ebb_resource_used_ratio{resource=\"memory\",node=\"0\"} 1.0000");
	expect_line(all, "ebb_move_recommendations_total{resource=\"memory\",node=\"0\"} 1");
	expect_line(all, "ebb_move_recommended{vm=\"b\\\"\\\\\\n\",resource=\"memory\","
		    "node=\"0\"} 1");
	expect_line(all, "ebb_memory_brokerings_total{node=\"0\"} 0");
	expect_line(all, "ebb_histogram_asks_total{vm=\"a\"} 0");
	expect_line(all, "ebb_memory_cutoff{vm=\"a\"} 0");
	/* It has said nothing. */
	assert_null(strstr(all, "ebb_histogram_age_seconds{"));
	assert_string_equal(all + strlen(all) - 6, "# EOF\n");
	free(all);
	/* The counters stay when it is over. */
	pressure_report_core(&s.state->pressure, s.now, 1, 0, 0, "");
	all = ebb_metrics_text(s.state, s.now);
	expect_line(all, "ebb_violations_total{resource=\"core\",node=\"0\"} 1");
	expect_line(all, "ebb_violation_active{resource=\"core\",node=\"0\"} 0");
	free(all);
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_view),
		cmocka_unit_test(test_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
