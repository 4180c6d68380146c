// SPDX-License-Identifier: GPL-2.0-or-later
/* Definitions, SLAs, admission, and hosts: what is accepted and what is said otherwise. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

static void test_sla_ranges(void **state)
{
	static const struct {
		size_t offset, size;
		uint32_t value;
		const char *text;
	} bad[] = {
#define FIELD(f)	offsetof(struct ebb_sla, f), sizeof(((struct ebb_sla *)0)->f)
		{ FIELD(class), 2, "class is 2, allowed are 0 to 1" },
		{ FIELD(class), (uint32_t)-1, "class is -1, allowed are 0 to 1" },
		{ FIELD(priority), 1001, "priority is 1001, allowed are 0 to 1000" },
		{ FIELD(tier), 4, "tier is 4, allowed are 0 to 3" },
		{ FIELD(reserve_percent), 51201,
		  "reserve-percent is 51201, allowed are 0 to 51200" },
		{ FIELD(max_percent), 51201, "max-percent is 51201, allowed are 0 to 51200" },
		{ FIELD(penalty), 1000001, "penalty is 1000001, allowed are 0 to 1000000" },
		{ FIELD(weight), 0, "weight is 0, allowed are 1 to 10000" },
		{ FIELD(weight), 10001, "weight is 10001, allowed are 1 to 10000" },
		{ FIELD(deadline_ms), 9, "deadline-ms is 9, allowed are 10 to 600000" },
		{ FIELD(deadline_ms), 600001, "deadline-ms is 600001, allowed are 10 to 600000" },
		{ FIELD(num_nodes), 0, "number of nodes is 0, allowed are 1 to 16" },
		{ FIELD(num_nodes), 17, "number of nodes is 17, allowed are 1 to 16" },
		{ FIELD(nodes[1].max), 513, "node 1 max is 513, allowed are 0 to 512" },
		{ FIELD(nodes[1].startup), 3, "node 1 startup is 3, allowed are 0 to 2" },
		{ FIELD(nodes[1].reserved), 3, "node 1 reserved is 3, allowed are 0 to 2" },
		{ FIELD(nodes[1].reserved), 1,
		  "node 1 reserved is 1, class spot allows its startup only, 0" },
		{ FIELD(nodes[0].reserved), 0, "node 0 reserved is 0, allowed are 1 to 4" },
		{ FIELD(nodes[1].host_node), 2, "node 1 host is 2, allowed are 0 to 1" },
		{ FIELD(nodes[0].startup), 0, "sum of startup is 0, allowed are 1 to 512" },
#undef FIELD
	};
	const struct ebb_sla good = script_sla("1/4,0/2");
	char text[EBB_TEXT_SIZE];
	struct ebb_sla sla;
	struct script s;

	(void)state;
	script_init(&s, 2, 4, 1, false);
	assert_int_equal(ebb_sla_check(&good, &s.host, text), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sla = good;
		memcpy((char *)&sla + bad[i].offset, &bad[i].value, bad[i].size);
		assert_int_equal(ebb_sla_check(&sla, &s.host, text), -EINVAL);
		assert_string_equal(text, bad[i].text);
		/* The VM is known with that error, and not managed. */
		assert_int_equal(script_define(&s, 'a', &sla), -EINVAL);
		assert_string_equal(script_vm(&s, 'a')->error, bad[i].text);
		assert_int_equal(script_running(&s, 'a', 1), -ENOENT);
	}
	/* More than the maximum is promised, or than the vCPUs of a VM on shared cores can use. */
	sla = good;
	sla.reserve_percent = 101;
	sla.max_percent = 100;
	assert_int_equal(ebb_sla_check(&sla, &s.host, text), -EINVAL);
	assert_string_equal(text, "reserve-percent is 101, which is more than max-percent, 100");
	sla.max_percent = 0;
	assert_int_equal(ebb_sla_check(&sla, &s.host, text), 0);
	sla.is_shared = s.host.cores[1].is_shared = true;
	sla.nodes[0].max = sla.nodes[0].reserved = 1;
	sla.nodes[1].max = sla.nodes[1].reserved = 0;
	assert_int_equal(ebb_sla_check(&sla, &s.host, text), -EINVAL);
	assert_string_equal(text, "reserve-percent is 101: 1 vCPUs can be promised 95 at most, "
				  "since 5 per cent of each core are for VMs without a promise");
	sla.reserve_percent = 95;
	assert_int_equal(ebb_sla_check(&sla, &s.host, text), 0);
	/* Mended, it is managed. */
	assert_int_equal(script_define(&s, 'a', &good), 0);
	assert_string_equal(script_vm(&s, 'a')->error, "");
	assert_int_equal(script_running(&s, 'a', 1), 0);
	script_finish(&s);
}

static int define_vcpus(struct script *s, const struct ebb_sla *sla,
			const struct ebb_vcpu_def *vcpus, uint16_t num_vcpus)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_DEFINED, .uuid = { 'a' } };

	fact.u.vm_defined.sla = *sla;
	fact.u.vm_defined.num_vcpus = num_vcpus;
	fact.u.vm_defined.vcpus = vcpus;
	return ebb_state_report(s->state, s->now, &fact);
}

static void test_sla_against_vcpus(void **state)
{
	const struct ebb_vcpu_def vcpus[] = { { 0, true }, { 0, false }, { 1, false } };
	const struct ebb_vcpu_def beyond[] = { { 0, true }, { 2, false }, { 1, false } };
	struct ebb_sla sla = script_sla("1/2,0/1");
	struct script s;

	(void)state;
	script_init(&s, 2, 4, 1, false);
	assert_int_equal(define_vcpus(&s, &sla, vcpus, 3), 0);
	assert_int_equal(define_vcpus(&s, &sla, vcpus, 0), -EINVAL);
	assert_int_equal(define_vcpus(&s, &sla, vcpus, EBB_MAX_VCPUS + 1), -EINVAL);
	assert_int_equal(define_vcpus(&s, &sla, beyond, 3), -EINVAL);
	assert_string_equal(script_vm(&s, 'a')->error,
			    "vCPU 1 is on node 2, allowed are 0 to 1");
	sla.nodes[0].max = 3;
	assert_int_equal(define_vcpus(&s, &sla, vcpus, 3), -EINVAL);
	assert_string_equal(script_vm(&s, 'a')->error,
			    "node 0 max is 3, the domain has 2 vCPUs there");
	sla.nodes[0].max = sla.nodes[0].reserved = sla.nodes[0].startup = 2;
	assert_int_equal(define_vcpus(&s, &sla, vcpus, 3), -EINVAL);
	assert_string_equal(script_vm(&s, 'a')->error,
			    "node 0 startup is 2, the domain enables 1 vCPUs there");
	script_finish(&s);
}

static void test_running_definition(void **state)
{
	struct ebb_sla sla = script_sla("1/4");
	struct ebb_fact invalid = {
		.type = EBB_FACT_VM_INVALID, .uuid = { 'a' },
		.u.vm_invalid = { .name = "a", .text = "weight is x" },
	};
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	/* Startup set and vCPUs cannot change under a running VM. */
	sla.nodes[0].startup = sla.nodes[0].reserved = 2;
	assert_int_equal(script_define(&s, 'a', &sla), -EBUSY);
	sla = script_sla("1/5");
	assert_int_equal(script_define(&s, 'a', &sla), -EBUSY);
	/* An SLA that became invalid: the last one stays in force while it runs. */
	assert_int_equal(ebb_state_report(s.state, s.now, &invalid), 0);
	assert_string_equal(script_vm(&s, 'a')->error, "weight is x");
	script_expect_nothing(&s);
	assert_true(script_vm(&s, 'a')->is_admitted);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	assert_int_equal(script_running(&s, 'a', 2), -ENOENT);
	/* Removed while it runs: forgotten when it stops. */
	sla = script_sla("1/4");
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_running(&s, 'a', 3), 0);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_REMOVED), 0);
	assert_non_null(script_vm(&s, 'a'));
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	assert_null(script_vm(&s, 'a'));
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), -ENOENT);
	script_finish(&s);
}

static int set_sla(struct script *s, const struct ebb_sla *sla)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' }, .u.sla_set = *sla };

	return ebb_state_report(s->state, s->now, &fact);
}

static void test_operator_sets_sla(void **state)
{
	struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init(&s, 1, 8, 1, false);
	assert_int_equal(set_sla(&s, &sla), -ENOENT);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 3, 0);
	sla.nodes[0].max = 2;
	sla.deadline_ms = 50;
	assert_int_equal(set_sla(&s, &sla), 0);
	script_expect(&s, "limits a 4/2!50");
	sla.nodes[0].max = 5;
	assert_int_equal(set_sla(&s, &sla), -EINVAL);
	sla.nodes[0].max = 4;
	assert_int_equal(set_sla(&s, &sla), 0);
	script_expect(&s, "limits a 4/4");
	sla.weight = 0;
	assert_int_equal(set_sla(&s, &sla), -EINVAL);
	assert_int_equal(script_vm(&s, 'a')->sla.weight, 100);
	script_finish(&s);
}

static void test_admission(void **state)
{
	struct ebb_sla sla = script_sla("2/2"), huge = script_sla("5/5");
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "3/4");
	/* Does not fit beside a: waits, holds nothing, is told nothing but its floor. */
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	assert_int_equal(script_running(&s, 'b', 2), 0);
	script_expect(&s, "home b 0 @3", "home b 1 @3");
	assert_false(script_vm(&s, 'b')->is_admitted);
	assert_string_equal(script_vm(&s, 'b')->error,
			    "startup set needs 2 cores on host node 0, VMs that came before need "
			    "3 of 4: stop one of them or lower startup");
	script_settle(&s);
	assert_int_equal(script_hello(&s, 'b', true, true, 1, ""), 0);
	script_expect(&s, "welcome b ack", "limits b 2/2");
	assert_int_equal(script_add(&s, 'b', 1, 1, 0, false), 0);
	script_expect(&s, "response b 1 nack ceiling []");
	/* One that can never fit does not stand in the way of others. */
	assert_int_equal(script_define(&s, 'c', &huge), 0);
	assert_int_equal(script_running(&s, 'c', 3), 0);
	script_settle(&s);
	assert_false(script_vm(&s, 'c')->is_admitted);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_settle(&s);
	assert_true(script_vm(&s, 'b')->is_admitted);
	assert_string_equal(script_vm(&s, 'b')->error, "");
	assert_int_not_equal(script_vm(&s, 'b')->vcpus[0].thread,
			     script_vm(&s, 'b')->vcpus[1].thread);
	script_finish(&s);
}

static void test_hosts(void **state)
{
	static struct ebb_host host;
	struct ebb_state_config cfg;
	struct ebb_policy_ops policy = ebb_policy_fair;
	char text[EBB_TEXT_SIZE];
	struct script s;

	(void)state;
	script_init(&s, 2, 4, 2, false);
	assert_int_equal(ebb_host_check(&s.host, text), 0);
	assert_int_equal(ebb_state_node_capacity(s.state, 1), 4);
	assert_int_equal(ebb_state_node_capacity(s.state, 2), 0);
	host = s.host;
	host.threads[3].core = 2;
	assert_int_equal(ebb_host_check(&host, text), -EINVAL);
	host = s.host;
	host.cores[7].num_threads = 1;
	assert_int_equal(ebb_host_check(&host, text), -EINVAL);
	host = s.host;
	host.cores[2].node = 2;
	assert_int_equal(ebb_host_check(&host, text), -EINVAL);
	host = s.host;
	host.num_nodes = 0;
	cfg = s.cfg;
	assert_null(ebb_state_create(&cfg, &host, &ebb_policy_fair));
	assert_int_equal(ebb_host_emulate(17, 1, 1, 250, &host), -EINVAL);
	assert_int_equal(ebb_host_emulate(16, 65, 1, 250, &host), -EINVAL);
	assert_int_equal(ebb_host_emulate(1, 1, 9, 250, &host), -EINVAL);
	assert_int_equal(ebb_host_emulate(1, 1, 1, 0, &host), -EINVAL);
	policy.abi = EBB_POLICY_ABI + 1;
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &policy), -EINVAL);
	policy = ebb_policy_fair;
	policy.mem = NULL;
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &policy), -EINVAL);
	policy = ebb_policy_fair;
	policy.state_size = EBB_POLICY_STATE_MAX + 1;
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &policy), -EINVAL);
	script_finish(&s);
}

static void test_policy_change(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 6, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_boot(&s, 'b', 2, "1/4");
	assert_int_equal(script_vm(&s, 'a')->nodes[0].limit, 3);
	assert_int_equal(script_vm(&s, 'b')->nodes[0].limit, 3);
	assert_int_equal(ebb_state_policy_set(s.state, s.now, &ebb_policy_strict), 0);
	/* b gives its offer up at once, then a has it. */
	script_expect(&s, "limits a 1/4", "limits b 1/2");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sla_ranges),
		cmocka_unit_test(test_sla_against_vcpus),
		cmocka_unit_test(test_running_definition),
		cmocka_unit_test(test_operator_sets_sla),
		cmocka_unit_test(test_admission),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_policy_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
