/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every command of the control protocol, against the core and the fake backend. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "backend/real/virtio_ebb_link.h"
#include "model/sla.h"
#include "tests/unit/host-agent/daemon/ctl_rig.h"
#include "util/clock.h"

static int setup(void **state)
{
	return ctl_rig_setup(state, false);
}

static int setup_shared(void **state)
{
	return ctl_rig_setup(state, true);
}

/* Until the first VM holds num CPUs. */
static void wait_held(struct ctl_rig *f, json_int_t num)
{
	uint64_t t0 = ebb_clock_mono_usec();
	json_int_t held;

	do {
		json_t *answer = ctl_ask_good(f, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");

		held = ctl_number(json_array_get(json_object_get(answer, "vms"), 0), "cpus_held");
		json_decref(answer);
		sd_event_run(f->agent.event, 10000);
	} while (held != num && ebb_clock_mono_usec() - t0 < PATIENCE_USEC);
	assert_int_equal(held, num);
}

static void test_version(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"version\"}");

	assert_string_equal(ctl_text(answer, "backend"), "fake");
	assert_int_equal(ctl_number(answer, "link_proto"), VIRTIO_EBB_LINK_PROTO);
	assert_true(ctl_text(answer, "version")[0]);
	assert_true(json_is_real(json_object_get(answer, "uptime_s")));
	json_decref(answer);
}

static void test_host(void **state)
{
	json_t *answer, *host, *node, *thread;

	wait_held(*state, 4);
	answer = ctl_ask_good(*state, "{\"cmd\":\"host\"}");
	host = json_object_get(answer, "host");
	assert_string_equal(ctl_text(host, "spec"), "emulated:2x2x1@0.25");
	assert_string_equal(ctl_text(host, "policy"), "fair");
	assert_true(json_is_true(json_object_get(host, "emulated")));
	assert_true(json_is_true(json_object_get(host, "loaded")));
	assert_true(json_is_null(json_object_get(host, "libvirt")));
	assert_true(json_real_value(json_object_get(host, "share")) == 0.25);
	assert_int_equal(json_array_size(json_object_get(host, "nodes")), 2);
	node = json_array_get(json_object_get(host, "nodes"), 1);
	assert_int_equal(ctl_number(node, "node"), 1);
	assert_int_equal(ctl_number(node, "cores"), 2);
	assert_int_equal(ctl_number(node, "threads"), 2);
	assert_int_equal(ctl_number(node, "capacity"), 2);
	assert_int_equal(ctl_number(node, "used"), 2);
	assert_int_equal(ctl_number(node, "mem_capacity_bytes"), 1 << 30);
	assert_true(ctl_number(node, "mem_promised_bytes") <= 1 << 30);
	/* Of 512 blocks 460.8, 409.6 and 486.4 */
	assert_int_equal(ctl_number(node, "mem_threshold_bytes"), 460 * EBB_BLOCK_BYTES);
	assert_int_equal(ctl_number(node, "mem_target_bytes"), 409 * EBB_BLOCK_BYTES);
	assert_int_equal(ctl_number(node, "mem_failover_bytes"), 486 * EBB_BLOCK_BYTES);
	assert_int_equal(ctl_number(json_object_get(host, "pressure"), "host_hot_percent"), 75);
	assert_int_equal(ctl_number(json_object_get(host, "pressure"), "cool_down_s"), 60);
	assert_true(ctl_number(node, "mem_held_bytes") <= ctl_number(node, "mem_promised_bytes"));
	assert_true(json_is_array(json_object_get(host, "violations")));
	assert_int_equal(json_array_size(json_object_get(host, "moves")), 0);
	assert_int_equal(json_array_size(json_object_get(host, "cores")), 4);
	thread = json_array_get(json_object_get(json_array_get(json_object_get(host, "cores"), 0),
						"threads"), 0);
	assert_string_equal(ctl_text(thread, "vm"), "simulated-1");
	json_decref(answer);
}

static void test_metrics(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"metrics\"}");

	assert_non_null(strstr(ctl_text(answer, "metrics"),
			       "ebb_violations_total{resource=\"memory\",node=\"1\"}"));
	json_decref(answer);
	ctl_expect_refused(*state, "{\"cmd\":\"metrics\",\"vm\":\"x\"}", "bad-request", "\"vm\"");
}

static void test_vms(void **state)
{
	json_t *answer, *vm, *node, *vcpu;

	wait_held(*state, 4);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\"}");
	assert_true(json_real_value(json_object_get(answer, "ts")) > 1e9);
	assert_int_equal(json_array_size(json_object_get(answer, "vms")), 2);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	vm = json_array_get(json_object_get(answer, "vms"), 0);
	assert_string_equal(ctl_text(vm, "uuid"), "eb000000-0000-0000-0000-000000000001");
	assert_string_equal(ctl_text(vm, "state"), "running");
	assert_string_equal(ctl_text(vm, "error"), "");
	assert_string_equal(ctl_text(vm, "class"), "reserved");
	assert_string_equal(ctl_text(vm, "link"), "up");
	assert_string_equal(ctl_text(vm, "link_error"), "");
	assert_true(json_is_true(json_object_get(vm, "driver")));
	assert_int_equal(ctl_number(vm, "weight"), 100);
	assert_int_equal(ctl_number(vm, "deadline_ms"), 2000);
	assert_int_equal(ctl_number(vm, "floor"), 1);
	assert_int_equal(ctl_number(vm, "ceiling"), 4);
	assert_int_equal(ctl_number(vm, "cpus_limit"), 4);
	assert_int_equal(ctl_number(vm, "cpus_target"), 4);
	assert_int_equal(ctl_number(vm, "mem_floor_bytes"), 0);
	assert_int_equal(ctl_number(vm, "mem_ceiling_bytes"), 1ll << 31);
	assert_int_equal(ctl_number(vm, "mem_target_bytes"), 1ll << 31);
	assert_int_equal(ctl_number(vm, "mem_limit_bytes"), 1ll << 31);
	assert_true(ctl_number(vm, "mem_held_bytes") <= 1ll << 31);
	assert_int_equal(ctl_number(vm, "mem_unconfirmed_bytes"), 0);
	assert_int_equal(ctl_number(vm, "mem_deadline_ms"), 0);
	assert_int_equal(ctl_number(vm, "mem_weight"), 100);
	assert_int_equal(ctl_number(vm, "mem_sla_deadline_ms"), 2000);
	assert_true(ctl_number(vm, "mem_cgroup_bytes") >= 1ll << 31);
	assert_non_null(json_object_get(vm, "telemetry"));
	node = json_array_get(json_object_get(vm, "nodes"), 1);
	assert_int_equal(ctl_number(node, "node"), 1);
	assert_int_equal(ctl_number(node, "host_node"), 1);
	assert_int_equal(ctl_number(node, "held"), 2);
	assert_int_equal(ctl_number(node, "limit"), 2);
	assert_int_equal(ctl_number(node, "target"), 2);
	assert_int_equal(ctl_number(node, "deadline_ms"), 0);
	assert_int_equal(ctl_number(node, "mem_floor_bytes"), 0);
	assert_int_equal(ctl_number(node, "mem_ceiling_bytes"), 1 << 30);
	assert_int_equal(ctl_number(node, "mem_limit_bytes"), 1 << 30);
	assert_int_equal(ctl_number(node, "mem_target_bytes"), 1 << 30);
	assert_true(ctl_number(node, "mem_told_bytes") <= 1 << 30);
	assert_true(ctl_number(node, "mem_held_bytes") <= 1 << 30);
	assert_int_equal(ctl_number(node, "mem_unconfirmed_bytes"), 0);
	assert_int_equal(ctl_number(node, "mem_deadline_ms"), 0);
	vcpu = json_array_get(json_object_get(vm, "vcpus"), 0);
	assert_int_equal(ctl_number(vcpu, "vcpu"), 0);
	assert_string_equal(ctl_text(vcpu, "state"), "startup");
	assert_int_equal(ctl_number(vcpu, "core"), 0);
	assert_int_equal(ctl_number(vcpu, "runs_on"), 0);
	json_decref(answer);
	/* By uuid as well. */
	answer = ctl_ask_good(*state,
			  "{\"cmd\":\"vms\",\"vm\":\"eb000000-0000-0000-0000-000000000002\"}");
	vm = json_array_get(json_object_get(answer, "vms"), 0);
	assert_string_equal(ctl_text(vm, "name"), "simulated-2");
	json_decref(answer);
}

static void test_explain(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"explain\",\"vm\":\"simulated-2\"}");
	json_t *e = json_object_get(answer, "explain");

	assert_string_equal(ctl_text(e, "name"), "simulated-2");
	assert_string_equal(ctl_text(e, "waits_for"), "start");
	assert_true(json_array_size(json_object_get(e, "lines")) >= 1);
	/* It has done nothing yet. */
	assert_true(json_is_array(json_object_get(e, "verdicts")));
	assert_int_equal(json_array_size(json_object_get(e, "verdicts")), 0);
	json_decref(answer);
}

/* Nothing was ever short there. */
static void test_explain_brokered(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"explain\",\"vm\":\"simulated-2\"}");
	json_t *e = json_object_get(answer, "explain");

	assert_true(json_is_array(json_object_get(e, "brokered")));
	assert_int_equal(json_array_size(json_object_get(e, "brokered")), 0);
	json_decref(answer);
}

static void test_histogram(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"histogram\",\"vm\":\"simulated-2\"}");
	json_t *told = json_object_get(answer, "histogram");

	assert_string_equal(ctl_text(told, "name"), "simulated-2");
	/* It does not run: nobody was asked, and nothing is held. */
	assert_true(json_is_null(json_object_get(told, "age_ms")));
	assert_int_equal(json_integer_value(json_object_get(told, "asks")), 0);
	assert_int_equal(json_integer_value(json_object_get(told, "seq")), 0);
	assert_true(json_is_array(json_object_get(told, "nodes")));
	assert_int_equal(json_array_size(json_object_get(told, "buckets")), 0);
	json_decref(answer);
}

static void test_policy(void **state)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"policy\",\"policy\":\"strict\"}");

	assert_string_equal(ctl_text(answer, "policy"), "strict");
	assert_int_equal(json_array_size(json_object_get(answer, "known")), 8);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"policy\"}");
	assert_string_equal(ctl_text(answer, "policy"), "strict");
	json_decref(answer);
}

static void test_history(void **state)
{
	json_t *answer, *row;

	wait_held(*state, 4);
	answer = ctl_ask_good(*state,
			  "{\"cmd\":\"history\",\"vm\":\"simulated-1\",\"event\":\"grant\"}");
	assert_true(json_array_size(json_object_get(answer, "history")) >= 1);
	row = json_array_get(json_object_get(answer, "history"), 0);
	assert_string_equal(ctl_text(row, "vm"), "simulated-1");
	assert_string_equal(ctl_text(row, "event"), "grant");
	assert_true(ctl_number(row, "cpus") >= 1);
	assert_true(ctl_text(row, "reason")[0]);
	assert_true(json_real_value(json_object_get(row, "total_ms")) > 0);
	assert_true(json_real_value(json_object_get(row, "libvirt_ms")) > 0);
	assert_true(json_real_value(json_object_get(row, "ts")) > 1e9);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"history\",\"event\":\"mem_offer\",\"limit\":1}");
	row = json_array_get(json_object_get(answer, "history"), 0);
	assert_int_equal(ctl_number(row, "bytes"), 1 << 30);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"history\",\"limit\":1}");
	assert_int_equal(json_array_size(json_object_get(answer, "history")), 1);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"history\",\"vm\":\"nobody\"}");
	assert_int_equal(json_array_size(json_object_get(answer, "history")), 0);
	json_decref(answer);
}

static void add_ledger(struct ctl_rig *f, const char *name, uint8_t uuid, uint64_t got,
		       enum ebb_cause cause)
{
	const usec_t now = ebb_clock_mono_usec();
	struct ebb_record r = {
		.at = now, .event = EBB_EVENT_LEDGER, .uuid = { uuid }, .total_usec = 2000000,
		.code = cause, .ledger = {
			.rate = 500000,
			.sum = { .metered_usec = 2000000, .got = got, .num_intervals = 2 },
		},
	};

	snprintf(r.name, sizeof(r.name), "%s", name);
	snprintf(r.text, sizeof(r.text), "%s", cause ? "it waited" : "");
	ebb_history_add(f->agent.history, &r, now);
}

/* Also of VMs that are gone; of one that is there and was promised nothing there is nothing. */
static void test_ledger(void **state)
{
	json_t *answer, *rows, *row;

	add_ledger(*state, "gone", 1, 700000, EBB_CAUSE_HOST);
	add_ledger(*state, "other", 2, 5, EBB_CAUSE_NONE);
	answer = ctl_ask_good(*state, "{\"cmd\":\"ledger\"}");
	assert_int_equal(json_array_size(json_object_get(answer, "ledger")), 2);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"ledger\",\"vm\":\"gone\",\"since\":1}");
	rows = json_object_get(answer, "ledger");
	assert_int_equal(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	assert_string_equal(ctl_text(row, "vm"), "gone");
	assert_string_equal(ctl_text(row, "resource"), "cpu");
	assert_string_equal(ctl_text(row, "cause"), "host");
	assert_string_equal(ctl_text(row, "reason"), "it waited");
	assert_int_equal(ctl_number(row, "got"), 700000);
	assert_int_equal(ctl_number(row, "rate"), 500000);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"ledger\",\"vm\":\"simulated-1\"}");
	assert_int_equal(json_array_size(json_object_get(answer, "ledger")), 0);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"ledger\",\"intervals\":true,\"limit\":5}");
	assert_null(json_object_get(answer, "ledger"));
	json_decref(answer);
}

/* What simulated-1 is charged, once it has memory beyond its reservation for some time. */
static json_t *wait_charge(struct ctl_rig *f)
{
	uint64_t t0 = ebb_clock_mono_usec();

	for (;;) {
		/* Up to this moment, not to the last full minute. */
		json_t *answer = ctl_ask_good(f, "{\"cmd\":\"history\",\"charge\":true,"
					     "\"vm\":\"simulated-1\"}");
		json_t *row = json_array_get(json_object_get(answer, "charge"), 0);

		if (json_real_value(json_object_get(row, "spot_mib_s")) > 0 ||
		    ebb_clock_mono_usec() - t0 > PATIENCE_USEC)
			return answer;
		json_decref(answer);
		sd_event_run(f->agent.event, 10000);
	}
}

static void test_charge(void **state)
{
	json_t *answer, *row;

	wait_held(*state, 4);
	answer = wait_charge(*state);
	assert_null(json_object_get(answer, "history"));
	assert_int_equal(json_array_size(json_object_get(answer, "charge")), 1);
	row = json_array_get(json_object_get(answer, "charge"), 0);
	assert_string_equal(ctl_text(row, "vm"), "simulated-1");
	assert_true(json_real_value(json_object_get(row, "reserved_core_s")) > 0);
	assert_true(json_real_value(json_object_get(row, "spot_mib_s")) > 0);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"history\",\"charge\":false,\"limit\":1}");
	assert_int_equal(json_array_size(json_object_get(answer, "history")), 1);
	json_decref(answer);
	ctl_expect_refused(*state, "{\"cmd\":\"history\",\"charge\":1}", "bad-request",
			   "\"charge\" must be true or false");
	answer = ctl_ask_good(*state, "{\"cmd\":\"host\"}");
	row = json_array_get(json_object_get(json_object_get(answer, "host"), "nodes"), 0);
	assert_true(json_is_real(json_object_get(row, "wasted_core_s")));
	assert_true(json_is_false(json_object_get(row, "uses_threads")));
	json_decref(answer);
}

/* What `host` says of a node: its VM has a minimum of 64 MiB there. */
static void expect_mem_promise(void **state, size_t node, json_int_t mib)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"host\"}");
	const json_t *nodes = json_object_get(json_object_get(answer, "host"), "nodes");
	const json_t *n = json_array_get(nodes, node), *p = json_object_get(n, "mem_promises");
	const json_int_t most = ctl_number(n, "mem_capacity_bytes") - (64 << 20);
	const json_int_t allowed = most * 80 / 100;	/* overbook_percent of the rig */

	assert_int_equal(ctl_number(p, "most_bytes"), most);
	assert_int_equal(ctl_number(p, "allowed_bytes"), allowed);
	assert_int_equal(ctl_number(p, "promised_bytes"), mib << 20);
	assert_int_equal(ctl_number(p, "free_bytes"), allowed - (mib << 20));
	assert_int_equal(ctl_number(p, "overbooked_bytes"), 0);
	json_decref(answer);
}

static void test_set(void **state)
{
	json_t *answer = ctl_ask_good(
		*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			"{\"weight\":\"300\",\"class\":\"spot\",\"deadline-ms\":10,\"max.1\":0}}");
	const json_t *vm;

	assert_string_equal(ctl_text(answer, "class"), "spot");
	assert_int_equal(ctl_number(answer, "weight"), 300);
	assert_int_equal(ctl_number(answer, "deadline_ms"), 10);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	assert_int_equal(ctl_number(json_array_get(json_object_get(answer, "vms"), 0), "ceiling"),
			 2);
	json_decref(answer);
	answer = ctl_ask_good(
		*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			"{\"mem.weight\":7,\"mem.deadline-ms\":90,\"mem.node1.min\":64,"
			"\"mem.node1.max\":\"128\",\"mem.node0.max\":0}}");
	assert_int_equal(ctl_number(answer, "mem_weight"), 7);
	assert_int_equal(ctl_number(answer, "mem_sla_deadline_ms"), 90);
	assert_int_equal(ctl_number(answer, "reserve_mem_mib"), 0);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
				      "{\"reserve-mem\":63}}");
	assert_int_equal(ctl_number(answer, "reserve_mem_mib"), 63);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	vm = json_array_get(json_object_get(answer, "vms"), 0);
	/* The driver of a simulated guest simulates no cache: all of it is kept. */
	assert_int_equal(ctl_number(vm, "promised_mem_mib"), 64);
	assert_int_equal(ctl_number(vm, "kept_mem_mib"), 64);
	json_decref(answer);
	expect_mem_promise(state, 1, 64);
	answer = ctl_ask_good(
		*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
			"{\"reserve-percent\":50,\"max-percent\":\"75\",\"penalty\":3}}");
	assert_int_equal(ctl_number(answer, "reserve_percent"), 50);
	assert_int_equal(ctl_number(answer, "max_percent"), 75);
	assert_int_equal(ctl_number(answer, "penalty"), 3);
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	assert_int_equal(ctl_number(json_array_get(json_object_get(answer, "vms"), 0),
				"mem_ceiling_bytes"), 128 << 20);
	assert_int_equal(ctl_number(json_array_get(json_object_get(answer, "vms"), 0),
				"mem_floor_bytes"), 64 << 20);
	json_decref(answer);
}

static const struct ebb_sla *sla_of(struct ctl_rig *f, const char *name)
{
	const struct ebb_vm *vm = NULL;

	assert_int_equal(ebb_state_vms_named(f->agent.state, name, &vm), 1);
	return &vm->sla;
}

static void test_set_class(void **state)
{
	const struct ebb_sla *sla = sla_of(*state, "simulated-1");
	json_t *answer;

	/* Reserved is what the ceiling is, and follows it, unless it is said. */
	assert_int_equal(sla->nodes[1].reserved, 2);
	json_decref(ctl_ask_good(*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
				     "{\"max.1\":1}}"));
	assert_int_equal(sla->nodes[1].reserved, 1);
	answer = ctl_ask_good(*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
				  "{\"reserved.1\":0,\"max.1\":2,\"priority\":7,\"tier\":\"park\","
				  "\"plug\":\"ahead\"}}");
	assert_int_equal(ctl_number(answer, "priority"), 7);
	assert_string_equal(ctl_text(answer, "tier"), "park");
	assert_string_equal(ctl_text(answer, "plug"), "ahead");
	json_decref(answer);
	assert_int_equal(sla->nodes[1].reserved, 0);
	assert_int_equal(sla->priority, 7);
	assert_int_equal(sla->tier, VIRTIO_EBB_TIER_PARK);
	assert_true(sla->plug_ahead);
	json_decref(ctl_ask_good(*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
				     "{\"class\":\"spot\"}}"));
	assert_int_equal(sla->nodes[0].reserved, 1);
	/* Whatever the order: the class counts first. */
	json_decref(ctl_ask_good(*state, "{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":"
				     "{\"reserved.1\":1,\"class\":\"reserved\"}}"));
	assert_int_equal(sla->nodes[0].reserved, 2);
	assert_int_equal(sla->nodes[1].reserved, 1);
}

static void test_refusals(void **state)
{
#define SET(values)	"{\"cmd\":\"set\",\"vm\":\"simulated-1\",\"values\":" values "}"
	static const struct {
		const char *request, *code, *message;
	} cases[] = {
		{"{\"cmd\":\"dance\"}", "unknown-command", "there is no command \"dance\""},
		{"{\"cmd\":\"vms\",\"wm\":1}", "bad-request", "\"vms\" has no member \"wm\""},
		{"{\"cmd\":\"vms\",\"vm\":1}", "bad-request", "needs a string \"vm\""},
		{"{\"cmd\":\"vms\",\"vm\":\"nobody\"}", "no-such-vm", "\"nobody\""},
		{"{\"cmd\":\"histogram\"}", "bad-request", "needs a string \"vm\""},
		{"{\"cmd\":\"explain\"}", "bad-request", "needs a string \"vm\""},
		{"{\"cmd\":\"explain\",\"vm\":\"nobody\"}", "no-such-vm", "\"nobody\""},
		{"{\"cmd\":\"policy\",\"policy\":\"generous\"}", "unknown-policy",
		 "\"generous\"; there are fair, strict, isolate, spot"},
		{"{\"cmd\":\"policy\",\"policy\":7}", "unknown-policy", "there are"},
		{"{\"cmd\":\"history\",\"limit\":0}", "bad-request", "1 to 100000"},
		{"{\"cmd\":\"history\",\"limit\":100001}", "bad-request", "1 to 100000"},
		{"{\"cmd\":\"history\",\"limit\":\"all\"}", "bad-request", "1 to 100000"},
		{"{\"cmd\":\"history\",\"since\":\"noon\"}", "bad-request", "unix seconds"},
		{"{\"cmd\":\"history\",\"vm\":1}", "bad-request", "\"vm\" must be a string"},
		{"{\"cmd\":\"history\",\"event\":[]}", "bad-request",
		 "\"event\" must be a string"},
		{"{\"cmd\":\"history\",\"event\":\"grnt\"}", "bad-request",
		 "there is no event \"grnt\"; there are join, leave, request, grant,"},
		{"{\"cmd\":\"history\",\"event\":\"charge\"}", "bad-request", ", move"},
		{"{\"cmd\":\"history\",\"event\":\"ledger\"}", "bad-request", ", move"},
		{"{\"cmd\":\"ledger\",\"limit\":0}", "bad-request", "1 to 100000"},
		{"{\"cmd\":\"ledger\",\"since\":\"noon\"}", "bad-request", "unix seconds"},
		{"{\"cmd\":\"ledger\",\"vm\":[]}", "bad-request", "\"vm\" must be a string"},
		{"{\"cmd\":\"ledger\",\"intervals\":1}", "bad-request", "must be true or false"},
		{"{\"cmd\":\"ledger\",\"event\":\"grant\"}", "bad-request", "no member \"event\""},
		{"{\"cmd\":\"ledger\",\"vm\":\"nobody\"}", "no-such-vm", "none in the ledger"},
		{"{\"cmd\":\"set\",\"vm\":\"nobody\",\"values\":{\"weight\":1}}", "no-such-vm",
		 "nobody"},
		{"{\"cmd\":\"set\",\"vm\":\"simulated-1\"}", "bad-request", "\"values\""},
		{SET("{}"), "bad-request", "class, priority, tier, plug, shared, reserve-"},
		{SET("{\"weight\":null}"), "bad-request", "must be a string or an integer"},
		{SET("{\"weight\":0}"), "bad-value", "weight=0: allowed: 1 to 10000"},
		{SET("{\"weight\":\"x\"}"), "bad-value", "weight=x"},
		{SET("{\"weight\":-1}"), "bad-value", "weight=-1"},
		{SET("{\"deadline-ms\":9}"), "bad-value", "allowed: 10 to 600000"},
		{SET("{\"class\":\"gold\"}"), "bad-value", "class=gold: allowed: reserved, spot"},
		{SET("{\"priority\":1001}"), "bad-value", "priority=1001: allowed: 0 to 1000"},
		{SET("{\"tier\":\"force\"}"), "bad-value",
		 "tier=force: allowed: any, lend, park, unplug"},
		{SET("{\"shared\":\"maybe\"}"), "bad-value", "shared=maybe: allowed: no, yes"},
		{SET("{\"plug\":\"never\"}"), "bad-value", "plug=never: allowed: demand, ahead"},
		{SET("{\"reserved.0\":0}"), "bad-value", "reserved.0=0: allowed: 1 to 2"},
		{SET("{\"reserved.0\":2,\"max.0\":1}"), "bad-value",
		 "reserved.0=2: allowed: 1 to 1"},
		{SET("{\"reserved.0\":2,\"class\":\"spot\"}"), "bad-value",
		 "reserved.0=2: allowed: 1 to 1"},
		{SET("{\"reserved.2\":1}"), "bad-value",
		 "reserved.2: VM \"simulated-1\" has nodes 0 to 1"},
		{SET("{\"max.7\":1}"), "bad-value", "max.7: VM \"simulated-1\" has nodes 0 to 1"},
		{SET("{\"max.\":1}"), "bad-value", "has nodes 0 to 1"},
		/* 2^32, which would be node 0. */
		{SET("{\"max.4294967296\":1}"), "bad-value", "has nodes 0 to 1"},
		{SET("{\"max. 0\":1}"), "bad-value", "has nodes 0 to 1"},
		{SET("{\"mem.node4294967296.max\":2}"), "bad-value", "has no pool on node 42949"},
		{SET("{\"max.0\":3}"), "bad-value", "max.0=3: allowed: 1 to 2"},
		{SET("{\"max.0\":0}"), "bad-value", "max.0=0: allowed: 1 to 2"},
		{SET("{\"mem.weight\":0}"), "bad-value", "mem.weight=0: allowed: 1 to 10000"},
		{SET("{\"reserve-percent\":-1}"), "bad-value", "allowed: 0 to 51200"},
		{SET("{\"max-percent\":\"half\"}"), "bad-value", "allowed: 0 to 51200"},
		{SET("{\"penalty\":1000001}"), "bad-value", "allowed: 0 to 1000000"},
		{SET("{\"io.reserve-iops\":10000001}"), "bad-value", "allowed: 0 to 10000000"},
		{SET("{\"io.d.reserve-iops\":-1}"), "bad-value",
		 "io.d.reserve-iops=-1: allowed: 0 to 10000000"},
		{SET("{\"io.d.colour\":1}"), "bad-value", "there is no \"io.d.colour\" to set"},
		{SET("{\"io.a b.weight\":1}"), "bad-value", "in the name of a volume"},
		{SET("{\"io.max-iops\":50,\"io.d.reserve-iops\":51}"), "refused",
		 "volume d reserve-iops is 51, which is more than max-iops, 50"},
		{SET("{\"reserve-percent\":60,\"max-percent\":50}"), "refused",
		 "reserve-percent is 60, which is more than max-percent, 50"},
		{SET("{\"mem.deadline-ms\":9}"), "bad-value", "allowed: 10 to 600000"},
		{SET("{\"mem.class\":1}"), "bad-value", "there is no \"mem.class\" to set"},
		{SET("{\"mem.node\":1}"), "bad-value", "there is no \"mem.node\" to set"},
		{SET("{\"mem.node0\":1}"), "bad-value", "there is no \"mem.node0\" to set"},
		{SET("{\"mem.node0.low\":1}"), "bad-value", "there is no \"mem.node0.low\""},
		{SET("{\"mem.node-1.max\":1}"), "bad-value", "there is no \"mem.node-1.max\""},
		{SET("{\"mem.node2.max\":2}"), "bad-value", "has no pool on node 2"},
		{SET("{\"mem.node0.max\":1026}"), "bad-value", "allowed: 0 to 1024"},
		{SET("{\"mem.node0.max\":3}"), "bad-value", "allowed: multiples of 2 MiB"},
		{SET("{\"mem.node0.min\":64,\"mem.node0.max\":32}"), "bad-value",
		 "mem.node0.min is 64, which is more than mem.node0.max, 32"},
		{SET("{\"startup\":1}"), "bad-value", "there is no \"startup\" to set"},
		{SET("{\"weight\":500,\"class\":\"gold\"}"), "bad-value", "class=gold"},
	};
	json_t *answer;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ctl_expect_refused(*state, cases[i].request, cases[i].code, cases[i].message);
	/* All or nothing. */
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-1\"}");
	assert_int_equal(ctl_number(json_array_get(json_object_get(answer, "vms"), 0), "weight"),
			 100);
	json_decref(answer);
}

/* Until the VM that shares cores runs, and there has been a look. */
static json_t *wait_shared(struct ctl_rig *f)
{
	uint64_t t0 = ebb_clock_mono_usec();

	for (;;) {
		json_t *answer = ctl_ask_good(f, "{\"cmd\":\"vms\"}");
		json_t *shared = json_object_get(answer, "shared");

		if (ctl_number(shared, "vms") == 1)
			return answer;
		json_decref(answer);
		sd_event_run(f->agent.event, 10000);
		if (ebb_clock_mono_usec() - t0 > PATIENCE_USEC)
			fail_msg("nobody shares cores");
	}
}

static void test_shared(void **state)
{
	json_t *answer = wait_shared(*state), *shared = json_object_get(answer, "shared");
	const char *all;

	assert_int_equal(ctl_number(shared, "threads"), 2);
	assert_int_equal(ctl_number(shared, "vcpus"), 1);
	assert_int_equal(ctl_number(shared, "hot_threads"), 0);
	assert_int_equal(ctl_number(shared, "stuck_threads"), 0);
	assert_int_equal(ctl_number(shared, "throttled_vms"), 0);
	assert_true(json_is_false(json_object_get(shared, "hot")));
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"metrics\"}");
	all = ctl_text(answer, "metrics");
	assert_non_null(strstr(all, "\nebb_shared_threads{node=\"1\"} 1\n"));
	assert_non_null(strstr(all, "\n# UNIT ebb_shared_used_ratio ratio\n"));
	assert_non_null(strstr(all, "\nebb_shared_used_ratio{node=\"0\"} 0.0000\n"));
	assert_non_null(strstr(all, "\nebb_shared_hot_threads{node=\"0\"} 0\n"));
	assert_non_null(strstr(all, "\nebb_shared_stuck_threads{node=\"1\"} 0\n"));
	assert_non_null(strstr(all, "\nebb_shared_host_hot 0\n"));
	assert_non_null(strstr(all, "\nebb_shared_vms{throttled=\"no\"} 1\n"
			       "ebb_shared_vms{throttled=\"yes\"} 0\n"));
	assert_non_null(strstr(all, "\nebb_shared_moves_total 0\n"));
	json_decref(answer);
}

/* A VM that is defined and does not run: what it is may change. */
static void define_stopped(struct ctl_rig *f)
{
	const struct ebb_vcpu_def vcpus[2] = { { .is_startup = true }, { .node = 0 } };
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED, .uuid = { 1, 2, 3 } };
	struct ebb_sla *sla = &fact.u.vm_defined.sla;

	strcpy(fact.u.vm_defined.name, "resting");
	fact.u.vm_defined.num_vcpus = 2;
	fact.u.vm_defined.vcpus = vcpus;
	ebb_sla_default(sla);
	sla->class = EBB_CLASS_SPOT;
	sla->deadline_ms = sla->mem_deadline_ms = 300;
	sla->num_nodes = 1;
	sla->nodes[0] = (struct ebb_sla_node){ .startup = 1, .reserved = 1, .max = 2 };
	assert_int_equal(ebb_agent_report(&f->agent, &fact), 0);
}

#define SET_OF(vm, values)	"{\"cmd\":\"set\",\"vm\":\"" vm "\",\"values\":" values "}"

static void test_set_shared(void **state)
{
	json_t *answer = wait_shared(*state);

	json_decref(answer);
	ctl_expect_refused(*state, SET_OF("simulated-2", "{\"shared\":\"no\"}"), "refused",
			   "VM \"simulated-2\" runs: whether it shares cores can not be changed");
	answer = ctl_ask_good(*state, SET_OF("simulated-2", "{\"shared\":\"yes\",\"weight\":7}"));
	assert_true(json_is_true(json_object_get(answer, "shared")));
	json_decref(answer);
	define_stopped(*state);
	ctl_expect_refused(*state, SET_OF("resting", "{\"shared\":\"yes\"}"), "refused",
			   "startup is 1, max 2: with shared=yes both must be equal");
	answer = ctl_ask_good(*state, SET_OF("resting", "{\"shared\":\"yes\",\"max.0\":1}"));
	assert_true(json_is_true(json_object_get(answer, "shared")));
	json_decref(answer);
	answer = ctl_ask_good(*state, SET_OF("resting", "{\"shared\":\"no\"}"));
	assert_true(json_is_false(json_object_get(answer, "shared")));
	json_decref(answer);
}

/* What was asked for and what is promised, of the VM and of all nodes together. */
static void expect_promise(void **state, json_int_t promised, const char *error)
{
	json_t *answer = ctl_ask_good(*state, "{\"cmd\":\"vms\",\"vm\":\"simulated-2\"}");
	json_t *vm = json_array_get(json_object_get(answer, "vms"), 0), *node;
	json_int_t sum = 0;
	size_t i;

	assert_int_equal(ctl_number(vm, "promised_percent"), promised);
	assert_true(json_real_value(json_object_get(vm, "kept_percent")) == (double)promised);
	assert_non_null(strstr(ctl_text(vm, "promise_error"), error));
	json_decref(answer);
	answer = ctl_ask_good(*state, "{\"cmd\":\"host\"}");
	json_array_foreach(json_object_get(json_object_get(answer, "host"), "nodes"), i, node) {
		json_t *p = json_object_get(node, "promises");

		assert_int_equal(ctl_number(p, "most_percent"), 95);
		assert_int_equal(ctl_number(p, "allowed_percent"), 76);
		assert_int_equal(ctl_number(p, "overbooked_percent"), 0);
		assert_int_equal(ctl_number(p, "free_percent"),
				 76 - ctl_number(p, "promised_percent"));
		sum += ctl_number(p, "promised_percent");
	}
	assert_int_equal(sum, promised);
	json_decref(answer);
}

static void test_promise(void **state)
{
	json_decref(wait_shared(*state));
	expect_promise(state, 0, "");
	json_decref(ctl_ask_good(*state, SET_OF("simulated-2", "{\"reserve-percent\":60}")));
	expect_promise(state, 60, "");
	ctl_expect_refused(*state, SET_OF("simulated-2", "{\"reserve-percent\":101}"), "refused",
			   "reserve-percent is 101: 1 vCPUs can be promised 95 at most");
	expect_promise(state, 60, "");
	/* More than the host may promise: the SLA says so, and the promise of before holds. */
	json_decref(ctl_ask_good(*state, SET_OF("simulated-2", "{\"reserve-percent\":90}")));
	expect_promise(state, 60, "more is not promised: node 0 of the host has 76%");
}

/* There are none. */
static void test_set_shared_nowhere(void **state)
{
	json_t *answer;

	define_stopped(*state);
	ctl_expect_refused(*state, SET_OF("resting", "{\"shared\":\"yes\",\"max.0\":1}"), "refused",
			   "node 0 of the host has no shared cores");
	answer = ctl_ask_good(*state, "{\"cmd\":\"vms\"}");
	assert_true(json_is_null(json_object_get(answer, "shared")));
	json_decref(answer);
}

#define TEST(name)	cmocka_unit_test_setup_teardown(test_##name, setup, ctl_rig_teardown)

#define TEST_SHARED(name) \
	cmocka_unit_test_setup_teardown(test_##name, setup_shared, ctl_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(version), TEST(host), TEST(metrics), TEST(vms), TEST(explain),
		TEST(explain_brokered), TEST(histogram), TEST(policy), TEST(history), TEST(charge),
		TEST(ledger), TEST(set), TEST(set_class), TEST(refusals), TEST(set_shared_nowhere),
		TEST_SHARED(shared), TEST_SHARED(set_shared), TEST_SHARED(promise),
	};

	return cmocka_run_group_tests_name("daemon/ctl-cmds", tests, NULL, NULL);
}
