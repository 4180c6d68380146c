// SPDX-License-Identifier: GPL-2.0-or-later
/* Pool memory: offers, demands, revoking, restarts, and what is told to whom in which order. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* Of boot memory and overhead; what VMs may hold in their pools comes on top. */
#define BASE_MIB	(SCRIPT_BOOT_MIB + SCRIPT_OVERHEAD_MIB)

static uint32_t limit_mib(const struct script *s, char vm)
{
	return script_vm_pool(s, vm)->limit * EBB_BLOCK_MIB;
}

static void test_offer(void **state)
{
	struct script *s = *state;
	const struct ebb_sla sla = script_sla("1/1m64-512");

	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	/* The floor is kept for it from the start, and its memory cgroup set. */
	script_expect(s, "cap a 384", "place a 0 @0");
	script_done(s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	assert_int_equal(limit_mib(s, 'a'), 64);
	/* Without our driver the guest's own would take it. */
	assert_int_equal(script_hello(s, 'a', true, false, 0, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1");
	assert_int_equal(script_hello(s, 'a', false, true, 1, ""), 0);
	/* 64 are within what the cgroup allows, 512 are not. */
	script_expect(s, "limits a 1/1", "cap a 832");
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	script_expect(s, "limits a 1/1 m0/512");
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_OFFER));
	assert_int_equal(s->record.bytes, 64 << 20);
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_OFFER));
	assert_int_equal(s->record.bytes, 512 << 20);
	script_took(s, 'a');
	script_expect_nothing(s);
	/* The guest takes it block by block: nobody is asked, nobody is told. */
	script_holds(s, 'a', 2);
	script_expect_nothing(s);
	script_holds(s, 'a', 512);
	script_expect_nothing(s);
	/* libvirt hears of it later. */
	s->now += MSEC(500);
	script_expect(s, "mirror a 0 512");
	script_done(s, EBB_ACTION_MEM_MIRROR, 'a', 0, -EIO);
	s->now += SEC(60);
	script_expect_nothing(s);
}

/* Freed before given, and told before freed. */
static void test_handover(void **state)
{
	struct script *s = *state;

	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', 1000);
	script_settle(s);
	script_boot(s, 'b', 2, "1/1m128-1024");
	assert_int_equal(limit_mib(s, 'a'), 512);
	/* 24 of a are left when its device has confirmed that it can plug no more. */
	assert_int_equal(limit_mib(s, 'b'), 24);
	script_holds(s, 'a', 900);
	script_expect(s, "cap b 444");
	script_done(s, EBB_ACTION_MEM_CAP, 'b', 0, 0);
	script_expect(s, "limits b 1/1 m0/124");
	script_took(s, 'b');
	script_holds(s, 'a', 512);
	script_expect(s, "limits a 1/1 m512/512", "cap a 832", "cap b 832");
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_RELEASE));
	assert_int_equal(s->record.bytes, 488 << 20);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'b'), 512);
}

/* An offer that nobody took is only free once the device knows that it is no more. */
static void test_offer_taken_back(void **state)
{
	struct script *s = *state;
	const struct ebb_sla sla = script_sla("1/1m512-1024");

	script_boot(s, 'a', 1, "1/1m0-1024");
	assert_int_equal(s->pools[0][0].requested_bytes, 1024 << 20);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_running(s, 'b', 2), 0);
	script_expect(s, "limits a 1/1 m0/512", "cap b 320", "place b 0 @1");
	script_done(s, EBB_ACTION_MEM_CAP, 'b', 0, 0);
	script_done(s, EBB_ACTION_PLACE, 'b', 0, 0);
	script_expect_nothing(s);
	assert_int_equal(limit_mib(s, 'b'), 0);
	/* It crosses: the guest has just plugged. */
	script_holds(s, 'a', 700);
	script_expect(s, "limits a 1/1 m700/512!300");
	assert_int_equal(limit_mib(s, 'b'), 0);
	script_pool(s, 'a', 0, 512, 700, 0);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_expect(s, "cap b 644");
	assert_int_equal(limit_mib(s, 'b'), 324);
}

/* What was told last is confirmed before the next is told. */
static void test_one_after_the_other(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	script_boot(s, 'a', 1, "1/1m0-1024");
	set.u.sla_set = script_sla("1/1m0-512");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect(s, "limits a 1/1 m0/512");
	set.u.sla_set = script_sla("1/1m0-256");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect_nothing(s);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 1024 << 20);
	script_pool(s, 'a', 0, 512, 0, 0);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_expect(s, "limits a 1/1 m0/256", "cap a 832");
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 512 << 20);
	script_took(s, 'a');
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	script_expect(s, "cap a 576");
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 256 << 20);
}

/* A device that does not do it is asked by HELLO what it has. */
static void test_never_confirmed(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	script_boot(s, 'a', 1, "1/1m0-1024");
	set.u.sla_set = script_sla("1/1m0-512");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect(s, "limits a 1/1 m0/512");
	s->now += SEC(5);
	script_expect(s, "close a");
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1 m0/512");
	script_took(s, 'a');
	script_expect(s, "cap a 832");
}

static void demand(struct script *s, uint32_t held_mib)
{
	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', held_mib);
	script_settle(s);
	script_boot(s, 'b', 2, "1/1m0-1024");
}

static void test_revoke(void **state)
{
	struct script *s = *state;
	usec_t due;

	demand(s, 1024);
	due = script_vm_pool(s, 'a')->due[0].at;
	assert_int_equal(s->wake_at, due);
	s->now = due - 1;
	script_expect_nothing(s);
	s->now = due;
	script_expect(s, "revoke a 0 512");
	script_expect_nothing(s);
	/* The guest gives some back meanwhile: what was taken is what it has to confirm. */
	s->now += 400;
	script_holds(s, 'a', 700);
	script_expect(s, "cap b 644");
	script_pool(s, 'a', 0, 512, 512, 188);
	assert_int_equal(script_mem(s, 'a'), 0);
	assert_int_equal(limit_mib(s, 'b'), 324);
	script_expect(s, "limits a 1/1 m512/512", "cap a 832");
	assert_int_equal(limit_mib(s, 'b'), 512);
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_DEMAND));
	assert_int_equal(s->record.bytes, 512 << 20);
	assert_true(script_find_record(s, 'a', EBB_EVENT_MEM_REVOKE));
	assert_int_equal(s->record.bytes, 188 << 20);
	assert_int_equal(s->record.agent_usec, 0);
	assert_int_equal(s->record.total_usec, 400);
	assert_int_equal(script_vm_pool(s, 'a')->unconfirmed, 94);
}

static void test_revoke_again(void **state)
{
	struct script *s = *state;

	demand(s, 1024);
	s->now = script_vm_pool(s, 'a')->due[0].at;
	script_expect(s, "revoke a 0 512");
	s->now += SEC(1);
	script_expect(s, "revoke a 0 512", "mirror a 0 512");
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	/* A device that was reset by its QEMU says HELLO: the guest has its time again. */
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	s->now += SEC(2);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1 m1024/512!300");
	s->now += MSEC(300);
	script_expect(s, "revoke a 0 512");
}

/* Demands that grow have a deadline for each step; less demanded takes back the latest. */
static void test_steps(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };
	const struct ebb_vm_pool *p;

	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', 1000);
	script_settle(s);
	p = script_vm_pool(s, 'a');
	for (uint32_t step = 0; step < 3; step++) {
		static const char *const slas[] = { "1/1m0-800", "1/1m0-600", "1/1m0-400" };

		set.u.sla_set = script_sla(slas[step]);
		assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
		script_settle(s);
		s->now += MSEC(50);
	}
	assert_int_equal(p->num_due, 3);
	set.u.sla_set = script_sla("1/1m0-500");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_settle(s);
	assert_int_equal(p->num_due, 3);
	assert_int_equal(p->due[2].limit, 250);
	set.u.sla_set = script_sla("1/1m0-700");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_settle(s);
	assert_int_equal(p->num_due, 2);
	assert_int_equal(p->due[1].limit, 350);
	s->now = p->due[0].at;
	script_expect(s, "revoke a 0 800");
	script_pool(s, 'a', 0, 700, 800, 200);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_expect(s, "limits a 1/1 m800/700!51");
	s->now = p->due[0].at;
	script_expect(s, "revoke a 0 700");
}

static void test_many_steps(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };
	const struct ebb_vm_pool *p;

	script_boot(s, 'a', 1, "1/1m0-1024");
	script_holds(s, 'a', 1024);
	script_settle(s);
	p = script_vm_pool(s, 'a');
	for (uint32_t mib = 1000; mib >= 960; mib -= 2) {
		set.u.sla_set = script_sla("1/1m0-1024");
		set.u.sla_set.nodes[0].mem_max = mib / EBB_BLOCK_MIB;
		assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
		script_settle(s);
		assert_in_range(p->num_due, 1, EBB_MEM_DUES);
	}
	assert_int_equal(p->num_due, EBB_MEM_DUES);
	assert_int_equal(p->due[EBB_MEM_DUES - 1].limit, 480);
	/* All within the time that the last has. */
	assert_true(p->due[EBB_MEM_DUES - 1].at <= s->now + MSEC(300));
	for (int i = 1; i < EBB_MEM_DUES; i++)
		assert_true(p->due[i].at >= p->due[i - 1].at &&
			    p->due[i].limit < p->due[i - 1].limit);
}

/* While the link is down nothing can be taken, and what could be held counts. */
static void test_link_down(void **state)
{
	struct script *s = *state;

	demand(s, 800);
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_settle(s);
	assert_int_equal(script_mem(s, 'a'), -ENOENT);
	s->now += SEC(10);
	script_settle(s);
	/* Nobody answers for it any more, but it still has it. */
	assert_int_equal(limit_mib(s, 'a'), 0);
	assert_int_equal(ebb_state_pool_held(s->state, 0), 800 << 20);
	assert_int_equal(limit_mib(s, 'b'), 1024 - 800);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1 m800/512!300");
	script_took(s, 'a');
}

static void test_stop_frees(void **state)
{
	struct script *s = *state;

	demand(s, 1024);
	assert_int_equal(script_simple(s, 'a', EBB_FACT_VM_STOPPED), 0);
	assert_true(script_find_record(s, 'a', EBB_EVENT_LEAVE));
	assert_int_equal(s->record.bytes, 1024 << 20);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'b'), 1024);
	/* Started again: nothing of the last run counts. */
	script_pool(s, 'a', 0, 0, 0, 0);
	assert_int_equal(script_running(s, 'a', 3), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	/* b had taken nothing of what it was offered. */
	assert_int_equal(limit_mib(s, 'a'), 512);
	assert_int_equal(limit_mib(s, 'b'), 512);
}

static void test_machine_reset(void **state)
{
	struct script *s = *state;

	demand(s, 1024);
	script_pool(s, 'a', 0, 512, 0, 0);
	assert_int_equal(script_hello(s, 'a', false, false, 2, ""), 0);
	script_expect(s, "limits a 1/1", "cap a 832", "cap b 832");
	script_took(s, 'a');
	script_settle(s);
	/* The driver of the new boot. */
	assert_int_equal(limit_mib(s, 'a'), 0);
	assert_int_equal(limit_mib(s, 'b'), 1024);
	assert_int_equal(script_hello(s, 'a', false, true, 3, ""), 0);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'b'), 512);
	assert_int_equal(limit_mib(s, 'a'), 512);
}

static void test_no_pools(void **state)
{
	struct script *s = *state;

	script_boot(s, 'b', 1, "1/1m0-1024");
	const struct ebb_sla sla = script_sla("1/1m256-512");

	assert_int_equal(script_define(s, 'a', &sla), 0);
	s->pools[0][0].size_bytes = 0;
	assert_int_equal(script_running(s, 'a', 2), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s->record.text, "has no pool there"));
	assert_int_equal(limit_mib(s, 'a'), 0);
	assert_int_equal(limit_mib(s, 'b'), 1024);
	/* One with other blocks, and one that is too small, are none. */
	s->pools[0][0].size_bytes = 512 << 20;
	s->pools[0][0].block_bytes = 4 << 20;
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s->record.text, "in blocks of 4096 KiB"));
	s->pools[0][0].size_bytes = 256 << 20;
	s->pools[0][0].block_bytes = 2 << 20;
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	assert_non_null(strstr(s->record.text, "has 256 MiB"));
	assert_int_equal(limit_mib(s, 'a'), 0);
	s->pools[0][0].size_bytes = 512 << 20;
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'a'), 512);
	assert_int_equal(limit_mib(s, 'b'), 512);
	/* Of a node that the VM does not have. */
	s->pools[0][0].node = 3;
	assert_int_equal(script_mem(s, 'a'), -EINVAL);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_expect(s, "welcome a node");
}

/* The agent comes back: what may have been promised counts until the devices say. */
static void test_restart(void **state)
{
	const struct ebb_sla sla = script_sla("1/1m0-1024");
	struct script *s = *state;

	script_finish(s);
	script_init_loading(s, 1, 8, 1, false);
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_found(s, 'a', 1, s->now, "0@0"), 0);
	assert_int_equal(script_found(s, 'b', 2, s->now, "0@1"), 0);
	script_loaded(s);
	script_expect(s, "cap a 1344", "cap b 1344");
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	script_done(s, EBB_ACTION_MEM_CAP, 'b', 0, 0);
	script_expect_nothing(s);
	/* a has 600, may have 700 and left 100 unconfirmed; of b nothing is known yet. */
	script_pool(s, 'a', 0, 700, 600, 100);
	assert_int_equal(script_hello(s, 'a', true, true, 5, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1 m600/512!300");
	script_took(s, 'a');
	script_pool(s, 'b', 0, 300, 0, 0);
	assert_int_equal(script_hello(s, 'b', true, true, 5, ""), 0);
	script_settle(s);
	/* What b was offered before, and what a leaves. */
	assert_int_equal(script_vm_pool(s, 'a')->unconfirmed, 50);
	assert_int_equal(limit_mib(s, 'b'), 424);
	assert_int_equal(limit_mib(s, 'a'), 512);
	script_holds(s, 'a', 512);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'b'), 512);
}

/* One that was found and never says HELLO may hold all that its device can. */
static void test_restart_silent(void **state)
{
	const struct ebb_sla sla = script_sla("1/1m0-512");
	struct script *s = *state;

	script_finish(s);
	script_init_loading(s, 1, 8, 1, false);
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_found(s, 'a', 1, s->now, "0@0"), 0);
	script_loaded(s);
	script_boot(s, 'b', 2, "1/1m0-1024");
	s->now += SEC(100);
	script_settle(s);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 1024 << 20);
	assert_int_equal(limit_mib(s, 'b'), 512);
	assert_int_equal(limit_mib(s, 'a'), 0);
}

/* Somebody else sets the requested size: counted, and put right. */
static void test_foreign_change(void **state)
{
	struct script *s = *state;

	demand(s, 0);
	assert_int_equal(limit_mib(s, 'a'), 512);
	script_pool(s, 'a', 0, 800, 0, 0);
	assert_int_equal(script_mem(s, 'a'), 0);
	script_expect(s, "limits a 1/1 m0/512", "cap a 1120");
	assert_int_equal(ebb_state_pool_promised(s->state, 0), (800 + 512) << 20);
	script_took(s, 'a');
	script_settle(s);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 1024 << 20);
}

/* What libvirt was told late it may set late. */
static void test_late_mirror(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	script_boot(s, 'a', 1, "1/1m0-1024");
	s->now += MSEC(500);
	script_expect(s, "mirror a 0 1024");
	set.u.sla_set = script_sla("1/1m0-512");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect(s, "limits a 1/1 m0/512");
	script_took(s, 'a');
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 1024 << 20);
	s->now += MSEC(100);
	script_done(s, EBB_ACTION_MEM_MIRROR, 'a', 0, 0);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 1024 << 20);
	s->now += MSEC(400);
	script_expect(s, "mirror a 0 512");
	script_done(s, EBB_ACTION_MEM_MIRROR, 'a', 0, 0);
	s->now += SEC(1);
	script_settle(s);
	assert_int_equal(ebb_state_pool_promised(s->state, 0), 512 << 20);
}

static void test_cap_fails(void **state)
{
	struct script *s = *state;
	const struct ebb_sla sla = script_sla("1/1m0-512");

	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_expect(s, "welcome a ack", "limits a 1/1", "cap a 832", "place a 0 @0");
	script_done(s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, -EIO);
	/* Not offered before it is set. */
	script_expect_nothing(s);
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	s->now += MSEC(200);
	script_expect(s, "cap a 832");
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, -EOPNOTSUPP);
	/* There is none on this host: then it is offered without. */
	script_expect(s, "limits a 1/1 m0/512");
	assert_true(script_find_record(s, 'a', EBB_EVENT_ERROR));
	s->now += SEC(60);
	script_took(s, 'a');
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->cap.bytes, 0);
}

static void test_cap_times_out(void **state)
{
	struct script *s = *state;
	struct ebb_fact set = { .type = EBB_FACT_SLA_SET, .uuid = { 'a' } };

	script_boot(s, 'a', 1, "1/1m0-512");
	assert_int_equal(script_vm(s, 'a')->cap.bytes, (uint64_t)(BASE_MIB + 512) << 20);
	set.u.sla_set = script_sla("1/1m0-256");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect(s, "limits a 1/1 m0/256");
	script_took(s, 'a');
	script_expect(s, "cap a 576");
	/* It may have been lowered: nothing more is offered before it is known to be raised. */
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, -ETIMEDOUT);
	set.u.sla_set = script_sla("1/1m0-512");
	assert_int_equal(ebb_state_report(s->state, s->now, &set), 0);
	script_expect(s, "cap a 832");
	script_done(s, EBB_ACTION_MEM_CAP, 'a', 0, 0);
	script_expect(s, "limits a 1/1 m0/512");
}

static void test_admission(void **state)
{
	struct script *s = *state;
	struct ebb_sla sla = script_sla("1/1m700-800");

	script_boot(s, 'a', 1, "1/1m512-512");
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_running(s, 'b', 2), 0);
	script_settle(s);
	assert_false(script_vm(s, 'b')->is_admitted);
	assert_string_equal(script_vm(s, 'b')->error,
			    "min-mib needs 700 MiB on host node 0, VMs that came before need 512 "
			    "of 1024: stop one of them or lower min-mib");
	assert_int_equal(script_simple(s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_settle(s);
	assert_true(script_vm(s, 'b')->is_admitted);
	/* An SLA beyond the domain or out of range. */
	sla = script_sla("1/1m0-800");
	sla.nodes[0].mem_min = 500;
	assert_int_equal(script_define(s, 'c', &sla), -EINVAL);
	assert_string_equal(script_vm(s, 'c')->error,
			    "node 0 min-mib is 1000, allowed are 0 to 800");
	sla = script_sla("1/1m0-800");
	sla.mem_weight = 0;
	assert_int_equal(script_define(s, 'c', &sla), -EINVAL);
	assert_string_equal(script_vm(s, 'c')->error,
			    "memory weight is 0, allowed are 1 to 10000");
}

/* Where what VMs boot with comes out of the same memory. */
static void test_boot_memory(void **state)
{
	struct script *s = *state;
	const struct ebb_sla plain = script_sla("1/1"), greedy = script_sla("1/1m512-1024");
	const struct ebb_fact invalid = {
		.type = EBB_FACT_VM_INVALID, .uuid = { 'b' },
		.u.vm_invalid = { .name = "b", .text = "weight is x" },
	};

	script_finish(s);
	script_init_loading(s, 1, 8, 1, false);
	ebb_state_destroy(s->state);
	s->host.pool_has_boot = true;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	script_loaded(s);
	assert_int_equal(script_define(s, 'a', &greedy), 0);
	script_boot(s, 'a', 1, "1/1m512-1024");
	assert_int_equal(ebb_state_pool_capacity(s->state, 0), 768 << 20);
	assert_int_equal(limit_mib(s, 'a'), 768);
	assert_int_equal(script_define(s, 'b', &plain), 0);
	script_settle(s);
	assert_int_equal(limit_mib(s, 'a'), 512);
	/* One more that is defined does not throw out who is in. */
	assert_int_equal(script_define(s, 'c', &plain), 0);
	script_settle(s);
	assert_int_equal(ebb_state_pool_capacity(s->state, 0), 256 << 20);
	assert_true(script_vm(s, 'a')->is_admitted);
	assert_int_equal(script_simple(s, 'c', EBB_FACT_VM_REMOVED), 0);
	script_settle(s);
	assert_int_equal(ebb_state_pool_capacity(s->state, 0), 512 << 20);
	assert_int_equal(limit_mib(s, 'a'), 512);
	/* The memory of one that can not be managed any more is free, too. */
	assert_int_equal(ebb_state_report(s->state, s->now, &invalid), 0);
	script_settle(s);
	assert_int_equal(ebb_state_pool_capacity(s->state, 0), 768 << 20);
	assert_int_equal(limit_mib(s, 'a'), 768);
}

int main(void)
{
#define TEST(name)	cmocka_unit_test_setup_teardown(name, script_setup, script_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_offer),
		TEST(test_handover),
		TEST(test_offer_taken_back),
		TEST(test_one_after_the_other),
		TEST(test_never_confirmed),
		TEST(test_revoke),
		TEST(test_revoke_again),
		TEST(test_steps),
		TEST(test_many_steps),
		TEST(test_link_down),
		TEST(test_stop_frees),
		TEST(test_machine_reset),
		TEST(test_no_pools),
		TEST(test_restart),
		TEST(test_restart_silent),
		TEST(test_foreign_change),
		TEST(test_late_mirror),
		TEST(test_cap_fails),
		TEST(test_cap_times_out),
		TEST(test_admission),
		TEST(test_boot_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
