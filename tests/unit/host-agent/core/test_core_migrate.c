// SPDX-License-Identifier: GPL-2.0-or-later
/* A VM comes from another host with what it holds, or leaves for one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/host-agent/core/core_script.h"

#define MIB(n)	((uint32_t)((n) / EBB_BLOCK_MIB))

/*
 * A VM is paused for a migration: its QEMU waits for it to arrive from another host, or, if
 * is_leaving, for the other host to have it.  plugged: as for script_found(), one
 * digit each; pool_mib: in the pool of node 0.
 */
static int script_paused(struct script *s, char vm, uint64_t order, const char *plugged,
			 uint32_t pool_mib, bool is_leaving)
{
	struct ebb_fact fact = { .type = EBB_FACT_VM_RUNNING, .uuid = { (uint8_t)vm } };
	struct ebb_fact_vm_running *r = &fact.u.vm_running;
	struct ebb_vcpu_fact vcpus[8];

	*r = (struct ebb_fact_vm_running){
		.order = order, .as_of = s->now, .plugged = vcpus,
		.is_incoming = !is_leaving, .is_outgoing = is_leaving,
		.mem_blocks = { MIB(pool_mib) },
	};
	for (const char *p = plugged; *p; p += strcspn(p, " "), p += strspn(p, " "))
		vcpus[r->num_plugged++] = (struct ebb_vcpu_fact){
			.vcpu = (uint16_t)(p[0] - '0'),
			.thread = p[2] == '-' ? EBB_THREAD_NONE : (uint16_t)(p[2] - '0'),
		};
	return ebb_state_report(s->state, s->now, &fact);
}

static int script_incoming(struct script *s, char vm, uint64_t order, const char *plugged,
			   uint32_t pool_mib)
{
	return script_paused(s, vm, order, plugged, pool_mib, false);
}

static void come(struct script *s, const char *nodes, const char *plugged, uint32_t pool_mib)
{
	const struct ebb_sla sla = script_sla(nodes);

	assert_int_equal(script_define(s, 'm', &sla), 0);
	assert_int_equal(script_incoming(s, 'm', 9, plugged, pool_mib), 0);
}

/* The device of the new QEMU has what the old one had. */
static void brings(struct script *s, uint32_t requested_mib, uint32_t held_mib)
{
	script_pool(s, 'm', 0, requested_mib, held_mib, 0);
}

/* However long it takes, nothing is done, told or charged before the VM is here. */
static void test_waits(void **state)
{
	struct script *s = *state;

	come(s, "1/4m64-512", "0@5 1@6 2@7", 64);
	script_expect_nothing(s);
	s->now += SEC(60);
	script_expect_nothing(s);
	assert_true(script_vm(s, 'm')->is_incoming);
	assert_true(script_vm(s, 'm')->is_admitted);
	/* Its floor is kept for it: its minimum and its startup set. */
	assert_int_equal(ebb_state_node_used(s->state, 0), 1);
	assert_int_equal(script_vm_pool(s, 'm')->limit, MIB(64));
	assert_int_equal(script_vm(s, 'm')->charge.core_usec[EBB_CLASS_RESERVED], 0);
	/* libvirt says meanwhile what it said before. */
	assert_int_equal(script_incoming(s, 'm', 9, "0@5 1@6 2@7", 64), 0);
	assert_true(script_vm(s, 'm')->is_incoming);
}

/* What it holds is taken over: a granted CPU gets a core, a lent one none, blocks stay. */
static void test_arrives(void **state)
{
	struct script *s = *state;
	const struct ebb_vm *vm;

	come(s, "1/4m64-512", "0@5 1@6 2@7", 64);
	script_expect_nothing(s);
	brings(s, 256, 200);
	assert_int_equal(script_hello(s, 'm', true, true, 3, "1 2l"), 0);
	vm = script_vm(s, 'm');
	assert_false(vm->is_incoming);
	script_settle(s);
	script_took(s, 'm');
	script_settle(s);
	assert_int_equal(vm->nodes[0].held, 2);
	assert_int_equal(vm->nodes[0].lent, 1);
	assert_int_not_equal(vm->vcpus[1].thread, EBB_THREAD_NONE);
	assert_int_equal(vm->vcpus[1].placed, vm->vcpus[1].thread);
	assert_int_equal(vm->vcpus[1].force, EBB_FORCE_NONE);
	assert_int_equal(vm->vcpus[2].thread, EBB_THREAD_NONE);
	assert_int_equal(vm->nodes[0].limit, 4);
	assert_int_equal(script_vm_pool(s, 'm')->held, MIB(200));
	assert_int_equal(script_vm_pool(s, 'm')->limit, MIB(512));
	assert_int_equal(ebb_state_node_used(s->state, 0), 2);
	s->now += SEC(5);
	script_settle(s);
	assert_int_equal(vm->nodes[0].held, 2);
	assert_true(script_find_record(s, 'm', EBB_EVENT_JOIN));
	assert_true(script_find_record(s, 'm', EBB_EVENT_JOIN));
	assert_true(script_find_record(s, 'm', EBB_EVENT_JOIN));
	assert_non_null(strstr(s->record.text, "brought 1 hotplugged CPUs and 200 MiB"));
}

/* What the new host can not hold is demanded back with a deadline, and taken after it. */
static void test_over_share(void **state)
{
	struct script *s = *state;
	const struct ebb_vm_pool *p;

	script_boot(s, 'a', 1, "1/8m0-1024");
	script_settle(s);
	script_holds(s, 'a', 900);
	script_grow(s, 'a', 7, 0);
	come(s, "1/4m64-1024", "0@- 1@- 2@-", 0);
	script_settle(s);
	/* 300 MiB, and 124 are not in use. */
	brings(s, 400, 300);
	assert_int_equal(script_hello(s, 'm', true, true, 3, "1 2"), 0);
	script_settle(s);
	p = script_vm_pool(s, 'm');
	/* What its old host had offered it besides is withdrawn; nobody has lost anything yet. */
	assert_int_equal(p->limit, MIB(300));
	assert_int_equal(p->held, MIB(300));
	assert_int_equal(script_vm_pool(s, 'a')->held, MIB(900));
	assert_int_equal(script_vm_pool(s, 'a')->num_due, 1);
	assert_true(script_vm_pool(s, 'a')->due[0].at > s->now);
	/* Its CPUs run at home until a has given cores back. */
	assert_int_equal(script_vm(s, 'm')->vcpus[1].force, EBB_FORCE_NO_CORE);
	assert_true(script_vm(s, 'a')->nodes[0].num_due > 0);
	s->now += SEC(3);
	script_settle(s);
	assert_int_equal(script_vm(s, 'm')->nodes[0].held, 3);
	/* a has kept four; m may have another one. */
	assert_int_equal(ebb_state_node_used(s->state, 0), 7);
}

/* More CPUs than it may have here, and there are cores: it runs on them until the deadline. */
static void test_open_demand(void **state)
{
	struct script *s = *state;
	const struct ebb_vm *vm;

	script_boot(s, 'a', 1, "1/8");
	script_settle(s);
	script_grow(s, 'a', 2, 0);
	come(s, "1/8m64-512", "0@- 1@- 2@- 3@- 4@-", 64);
	script_settle(s);
	brings(s, 64, 64);
	assert_int_equal(script_hello(s, 'm', true, true, 5, "1 2 3 4"), 0);
	script_settle(s);
	vm = script_vm(s, 'm');
	assert_int_equal(vm->nodes[0].limit, 4);
	assert_int_equal(vm->nodes[0].held, 5);
	assert_int_equal(vm->nodes[0].num_due, 1);
	assert_true(vm->nodes[0].due[0] > s->now);
	s->now = vm->nodes[0].due[0];
	script_settle(s);
	assert_int_equal(vm->nodes[0].held, 4);
}

/* A VM that does not fit runs without more than what it brought, which is demanded back. */
static void test_not_admitted(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "8/8m1000-1024");
	come(s, "1/4m64-512", "0@- 1@-", 64);
	script_settle(s);
	assert_false(script_vm(s, 'm')->is_admitted);
	brings(s, 64, 64);
	assert_int_equal(script_hello(s, 'm', true, true, 3, "1"), 0);
	script_settle(s);
	assert_int_equal(script_vm_pool(s, 'm')->limit, 0);
	assert_true(script_vm_pool(s, 'm')->num_due > 0);
	assert_int_equal(script_vm(s, 'm')->vcpus[1].thread, EBB_THREAD_NONE);
}

/* libvirt says that it is here, and its device says nothing, as one whose VM stays paused may. */
static void test_arrives_silent(void **state)
{
	struct script *s = *state;
	usec_t arrived_at;

	come(s, "1/4m64-512", "0@- 1@-", 64);
	s->now += SEC(60);
	script_expect_nothing(s);
	arrived_at = s->now;
	assert_int_equal(script_found(s, 'm', 9, s->now, "0@- 1@-"), 0);
	assert_false(script_vm(s, 'm')->is_incoming);
	assert_int_equal(script_vm(s, 'm')->running_at, arrived_at);
	script_settle(s);
	/* What libvirt said of its pool counts until the device speaks. */
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 64 << 20);
	/* Nor are its CPUs taken before the device has had time to speak. */
	assert_int_not_equal(script_vm(s, 'm')->vcpus[1].force, EBB_FORCE_ABSENT);
	s->now += SEC(10);
	script_settle(s);
	assert_int_equal(script_vm(s, 'm')->vcpus[1].force, EBB_FORCE_ABSENT);
	assert_int_equal(script_hello(s, 'm', true, true, 3, "1"), 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'm')->nodes[0].held, 2);
}

/* The migration fails: the new host forgets it, and everything is free again. */
static void test_does_not_arrive(void **state)
{
	struct script *s = *state;

	come(s, "1/4m64-512", "0@5 1@6 2@7", 64);
	script_settle(s);
	assert_int_equal(script_simple(s, 'm', EBB_FACT_VM_STOPPED), 0);
	assert_int_equal(script_simple(s, 'm', EBB_FACT_VM_REMOVED), 0);
	script_expect_nothing(s);
	assert_null(script_vm(s, 'm'));
	assert_int_equal(ebb_state_node_used(s->state, 0), 0);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 0);
}

/* The old host: at the end libvirt calls the VM paused for migration.  It stays what it was. */
static void test_leaves(void **state)
{
	struct script *s = *state;
	struct ebb_explain e;

	script_boot(s, 'm', 1, "1/4m64-512");
	script_grow(s, 'm', 2, 0);
	script_holds(s, 'm', 100);
	script_settle(s);
	assert_int_equal(script_incoming(s, 'm', 1, "0@0 1@1 2@2", 512), 0);
	script_expect_nothing(s);
	assert_false(script_vm(s, 'm')->is_incoming);
	assert_true(script_vm(s, 'm')->is_outgoing);
	ebb_explain_vm(s->state, script_vm(s, 'm'), s->now, &e);
	assert_non_null(strstr(e.lines[0], "on its way to another host"));
	assert_int_equal(ebb_state_node_used(s->state, 0), 3);
	/* It fails: everything is as before. */
	assert_int_equal(script_found(s, 'm', 1, s->now, "0@0 1@1 2@2"), 0);
	assert_false(script_vm(s, 'm')->is_outgoing);
	script_settle(s);
	assert_int_equal(script_vm(s, 'm')->nodes[0].held, 3);
	assert_int_equal(script_vm_pool(s, 'm')->held, MIB(100));
	assert_int_equal(script_vm_pool(s, 'm')->limit, MIB(512));
	/* It succeeds: everything is free. */
	assert_int_equal(script_simple(s, 'm', EBB_FACT_VM_STOPPED), 0);
	script_settle(s);
	assert_int_equal(ebb_state_node_used(s->state, 0), 0);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 0);
}

/* The new host's agent is restarted while the VM is on its way. */
static void test_agent_restarts(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@1"), 0);
	/* Pinned as on its old host, where it had core 1 for a hotplugged CPU. */
	assert_int_equal(script_define(&s, 'm', &sla), 0);
	assert_int_equal(script_incoming(&s, 'm', 2, "0@0 1@1", 0), 0);
	script_loaded(&s);
	script_expect_nothing(&s);
	assert_ptr_equal(ebb_state_thread_owner(s.state, 1, NULL), script_vm(&s, 'a'));
	s.now += SEC(60);
	script_settle(&s);
	assert_int_equal(script_hello(&s, 'm', true, true, 3, "1"), 0);
	assert_int_equal(script_hello(&s, 'a', true, true, 3, ""), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'm')->nodes[0].held, 2);
	assert_ptr_equal(ebb_state_thread_owner(s.state, 1, NULL), script_vm(&s, 'a'));
	script_finish(&s);
}

/* The new host's agent is restarted after the VM has come, with more CPUs than it may have here. */
static void test_new_agent_restarts(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	const struct ebb_vm *vm;
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@3"), 0);
	assert_int_equal(script_define(&s, 'm', &sla), 0);
	assert_int_equal(script_found(&s, 'm', 2, s.now, "0@0 1@- 2@-"), 0);
	script_loaded(&s);
	script_settle(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 3, ""), 0);
	assert_int_equal(script_hello(&s, 'm', true, true, 3, "1 2"), 0);
	script_settle(&s);
	vm = script_vm(&s, 'm');
	assert_int_equal(vm->nodes[0].limit, 2);
	assert_int_equal(vm->nodes[0].held, 3);
	assert_int_equal(vm->nodes[0].num_due, 1);
	script_finish(&s);
}

/* The old host's agent is restarted in the last moment: the device says that the VM is here. */
static void test_source_agent_restarts(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'm', &sla), 0);
	assert_int_equal(script_incoming(&s, 'm', 1, "0@0 1@1", 0), 0);
	script_loaded(&s);
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'm', true, true, 3, "1"), 0);
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'm')->nodes[0].held, 2);
	assert_int_equal(ebb_state_node_used(s.state, 0), 2);
	script_finish(&s);
}

/* The same when libvirt says that the VM leaves: it is not one that comes. */
static void test_source_agent_knows(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'm', &sla), 0);
	assert_int_equal(script_paused(&s, 'm', 1, "0@0 1@1", 0, true), 0);
	assert_false(script_vm(&s, 'm')->is_incoming);
	assert_true(script_vm(&s, 'm')->is_outgoing);
	assert_true(script_find_record(&s, 'm', EBB_EVENT_JOIN));
	assert_non_null(strstr(s.record.text, "found running"));
	script_loaded(&s);
	script_settle(&s);
	assert_int_equal(script_hello(&s, 'm', true, true, 3, "1"), 0);
	script_settle(&s);
	assert_false(script_find_record(&s, 'm', EBB_EVENT_JOIN));
	assert_int_equal(ebb_state_node_used(s.state, 0), 2);
	assert_int_equal(script_simple(&s, 'm', EBB_FACT_VM_STOPPED), 0);
	script_settle(&s);
	assert_false(script_vm(&s, 'm')->is_outgoing);
	assert_int_equal(ebb_state_node_used(s.state, 0), 0);
	script_finish(&s);
}

/* As another agent: of another host, or of another boot. */
static void become(struct script *s, uint64_t writer)
{
	ebb_state_destroy(s->state);
	s->cfg.writer = writer;
	s->cfg.charge_usec = SEC(1);
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
	s->num_open = 0;
}

static int tell_account(struct script *s, char vm, const struct ebb_account *a)
{
	struct ebb_fact fact = {
		.type = EBB_FACT_ACCOUNT, .uuid = { (uint8_t)vm }, .u.account = *a,
	};

	return ebb_state_report(s->state, s->now, &fact);
}

/* The counters that the device would be given now. */
static struct ebb_account account_of(const struct script *s)
{
	struct ebb_account a;

	ebb_vm_account(script_vm(s, 'm'), &a);
	return a;
}

/* What a VM has held and got goes on on the next host, and counts once. */
static void test_counters_go_on(void **state)
{
	struct script *s = *state;
	struct ebb_account a, b;

	become(s, 5);
	script_loaded(s);
	script_boot(s, 'm', 1, "2/4m64-512");
	script_holds(s, 'm', 100);
	script_settle(s);
	s->now += MSEC(500);
	script_settle(s);
	s->now += MSEC(9500);
	script_expect(s, "account m");
	a = s->last[0].u.account;
	assert_int_equal(a.writer, 5);
	/* Settling takes moments, in which it holds less. */
	assert_in_range(a.age, SEC(10), SEC(10) + MSEC(1));
	assert_in_range(a.core_usec[EBB_CLASS_RESERVED], 2 * SEC(10), 2 * SEC(10) + MSEC(2));
	assert_in_range(a.mib_usec[EBB_CLASS_RESERVED], 64 * SEC(10), 64 * SEC(10) + MSEC(64));
	assert_in_range(a.mib_usec[EBB_CLASS_SPOT], 36 * SEC(10), 36 * SEC(10) + MSEC(36));
	/* The device keeps the newest, so that is told again, each second. */
	script_expect_nothing(s);
	s->now += SEC(1);
	script_expect(s, "account m");
	assert_int_equal(s->last[0].u.account.age, a.age + SEC(1));
	a = s->last[0].u.account;
	/* To this agent the device says nothing new. */
	assert_int_equal(tell_account(s, 'm', &a), 0);
	assert_int_equal(account_of(s).age, a.age);

	a.cpu = (struct ebb_ledger){
		.metered_usec = SEC(3), .wanted = 9, .promised = 8, .got = 7, .violated = 1,
		.num_intervals = 3, .num_violations = 1,
	};
	become(s, 6);
	script_loaded(s);
	come(s, "2/4m64-512", "0@- 1@-", 512);
	script_expect_nothing(s);
	s->now += SEC(2);
	brings(s, 512, 100);
	assert_int_equal(script_hello(s, 'm', true, true, 3, ""), 0);
	assert_int_equal(tell_account(s, 'm', &a), 0);
	assert_int_equal(account_of(s).core_usec[EBB_CLASS_RESERVED],
			 a.core_usec[EBB_CLASS_RESERVED]);
	/* What this host gives is another matter, of its history. */
	assert_int_equal(script_vm(s, 'm')->charge.core_usec[EBB_CLASS_RESERVED], 0);
	script_settle(s);
	s->now += SEC(1);
	script_settle(s);
	b = account_of(s);
	assert_in_range(b.age, a.age + SEC(1), a.age + SEC(1) + MSEC(1));
	assert_in_range(b.core_usec[EBB_CLASS_RESERVED],
			a.core_usec[EBB_CLASS_RESERVED] + 2 * SEC(1) - MSEC(2),
			a.core_usec[EBB_CLASS_RESERVED] + 2 * SEC(1) + MSEC(2));
	assert_int_equal(b.cpu.got, 7);
	assert_int_equal(b.cpu.num_violations, 1);
	/* The link was lost meanwhile: the device says again what it was given. */
	assert_int_equal(script_simple(s, 'm', EBB_FACT_LINK_LOST), 0);
	assert_int_equal(script_hello(s, 'm', true, true, 3, ""), 0);
	assert_int_equal(tell_account(s, 'm', &b), 0);
	assert_in_range(account_of(s).age, b.age, b.age + MSEC(1));
	assert_int_equal(account_of(s).cpu.got, 7);
	/* While there was no link the VM ran on, and nothing of that is forgotten. */
	assert_int_equal(script_simple(s, 'm', EBB_FACT_LINK_LOST), 0);
	s->now += SEC(3);
	script_settle(s);
	assert_int_equal(script_hello(s, 'm', true, true, 3, ""), 0);
	assert_int_equal(tell_account(s, 'm', &b), 0);
	assert_in_range(account_of(s).age, b.age + SEC(3), b.age + SEC(3) + MSEC(2));
	assert_int_equal(account_of(s).cpu.got, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, script_setup, script_teardown)
		TEST(waits), TEST(arrives), TEST(over_share), TEST(open_demand),
		TEST(not_admitted),
		TEST(arrives_silent), TEST(does_not_arrive), TEST(leaves),
		TEST(counters_go_on),
		cmocka_unit_test(test_agent_restarts),
		cmocka_unit_test(test_new_agent_restarts),
		cmocka_unit_test(test_source_agent_restarts),
		cmocka_unit_test(test_source_agent_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
