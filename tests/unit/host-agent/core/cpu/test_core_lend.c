// SPDX-License-Identifier: GPL-2.0-or-later
/* CPU_LEND and plugging ahead, action by action. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

static const char *state_of(const struct script *s, char vm, uint16_t vcpu)
{
	return ebb_vcpu_state_name(script_vm(s, vm), vcpu);
}

/* "a" of one to four CPUs holds three, on a host of so many cores. */
static void begin(struct script *s, uint32_t cores)
{
	script_init(s, 1, cores, 1, false);
	s->can_lend = true;
	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 2, 0);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 3);
	while (script_find_record(s, 'a', EBB_EVENT_GRANT))
		;
}

/* Lends vCPU 2 of begin(). */
static void lend_2(struct script *s)
{
	assert_int_equal(script_lend(s, 'a', 50, 2, false), 0);
	script_settle(s);
	assert_string_equal(state_of(s, 'a', 2), "lent");
}

static int setup(void **state)
{
	begin(script_new(state), 4);
	return 0;
}

static void test_lend(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 2, false), 0);
	s->now += 20;
	/* It is not held from now on; its core is free when the thread has left it. */
	script_expect(s, "limits a 2/4", "home a 2 @0");
	assert_non_null(ebb_state_thread_owner(s->state, 2, NULL));
	s->now += 700;
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "response a 7 ack none []");
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
	assert_string_equal(state_of(s, 'a', 2), "lent");
	assert_int_equal(script_vm(s, 'a')->nodes[0].lent, 1);
	assert_int_equal(script_vm(s, 'a')->nodes[0].used, 2);
	assert_true(script_find_record(s, 'a', EBB_EVENT_LEND));
	assert_int_equal(s->record.cpus, 1);
	assert_int_equal(s->record.agent_usec, 20);
	assert_int_equal(s->record.place_usec, 700);
	assert_int_equal(s->record.total_usec, 720);
	/* Once more changes nothing, or parks it. */
	assert_int_equal(script_lend(s, 'a', 8, 2, false), 0);
	script_expect(s, "response a 8 ack none []");
	assert_int_equal(script_lend(s, 'a', 9, 2, true), 0);
	script_expect(s, "response a 9 ack none []");
	assert_string_equal(state_of(s, 'a', 2), "parked");
	script_expect_nothing(s);
}

static void test_refused(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 0, false), 0);
	script_expect(s, "response a 7 nack startup []");
	assert_int_equal(script_lend(s, 'a', 8, 3, false), 0);
	script_expect(s, "response a 8 nack not-held []");
	assert_int_equal(script_lend(s, 'a', 9, 4, false), -EINVAL);
	assert_int_equal(script_lend(s, 'a', 9, 1, false), 0);
	assert_int_equal(script_lend(s, 'a', 10, 1, false), 0);
	assert_int_equal(script_remove(s, 'a', 11, 1), 0);
	script_expect(s, "response a 10 busy in-progress []", "response a 11 busy in-progress []",
		      "limits a 2/4", "home a 1 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect(s, "response a 9 ack none []");
}

static void test_add_prefers_lent(void **state)
{
	struct script *s = *state;

	lend_2(s);
	/* No plug: it needs a core, and has one as soon as its thread is there. */
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "place a 2 @2");
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(s, "response a 7 ack none [2]", "limits a 3/4");
	assert_string_equal(state_of(s, 'a', 2), "granted");
	/* The other one has to be plugged. */
	assert_int_equal(script_add(s, 'a', 8, 1, 0, false), 0);
	script_expect(s, "plug a 3");
}

static void test_add_of_lent_fails(void **state)
{
	struct script *s = *state;

	lend_2(s);
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "place a 2 @2");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, -EIO);
	/* Where its thread is nobody knows: it goes home before the core is free. */
	script_expect(s, "response a 7 nack host []");
	assert_non_null(ebb_state_thread_owner(s->state, 2, NULL));
	assert_string_equal(state_of(s, 'a', 2), "lent");
	s->now += MSEC(200);
	script_expect(s, "home a 2 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(s);
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
}

static void test_remove_of_lent(void **state)
{
	struct script *s = *state;

	lend_2(s);
	assert_int_equal(script_remove(s, 'a', 7, 2), 0);
	script_expect(s, "unplug a 2");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, -ETIMEDOUT);
	/* It stays what it was, also for the device. */
	script_expect(s, "response a 7 nack host []");
	assert_string_equal(state_of(s, 'a', 2), "lent");
	assert_int_equal(script_remove(s, 'a', 8, 2), 0);
	script_expect(s, "unplug a 2");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect(s, "response a 8 ack none []");
	assert_string_equal(state_of(s, 'a', 2), "absent");
	assert_int_equal(script_vm(s, 'a')->nodes[0].lent, 0);
}

/* A demand is met by lending, before or after force. */
static void test_demand(void **state)
{
	struct script *s = *state;

	script_grow(s, 'a', 1, 0);
	script_boot(s, 'b', 2, "1/4");
	/* Two each; "a" has one more than that, and one for b's startup went at once. */
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 2);
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 2);
	assert_int_equal(script_lend(s, 'a', 7, 3, false), 0);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 1);
	s->now += MSEC(300);
	script_expect(s, "home a 2 @0", "limits a 2/2", "limits b 1/2");
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "flags a 2 forced");
	/* Forced already: lent from now on, and not forced any more. */
	assert_int_equal(script_lend(s, 'a', 8, 2, true), 0);
	script_expect(s, "response a 8 ack none []");
	assert_string_equal(state_of(s, 'a', 2), "parked");
	/* Answered at once: no core came free by it, and there is nothing to be timed. */
	assert_true(script_find_record(s, 'a', EBB_EVENT_LEND));
	assert_int_equal(s->record.cpus, 1);
	assert_true(script_find_record(s, 'a', EBB_EVENT_LEND));
	assert_int_equal(s->record.cpus, 0);
	assert_int_equal(s->record.asked, 1);
	assert_int_equal(s->record.total_usec, 0);
	/* Lent CPUs do not come back by themselves when there is room again. */
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(s, "limits a 2/4");
	assert_int_equal(script_add(s, 'a', 9, 2, 0, false), 0);
	script_expect(s, "place a 2 @2", "place a 3 @3");
}

static void test_home_fails(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 2, false), 0);
	script_expect(s, "limits a 2/4", "home a 2 @0");
	for (int i = 0; i < 3; i++) {
		script_done(s, EBB_ACTION_HOME, 'a', 2, -EIO);
		script_expect_nothing(s);
		s->now = s->wake_at;
		script_expect(s, "home a 2 @0");
	}
	/* The guest has to hear something, and has its CPU and core again. */
	s->now += SEC(12);
	script_expect(s, "response a 7 busy timeout []");
	script_done(s, EBB_ACTION_HOME, 'a', 2, -EIO);
	script_expect(s, "limits a 3/4");
	s->now = s->wake_at;
	script_expect(s, "place a 2 @2");
	assert_string_equal(state_of(s, 'a', 2), "granted");
}

/* ---- restarts, resets, lost links ---------------------------------------- */

static void test_link_lost(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 2, false), 0);
	script_expect(s, "limits a 2/4", "home a 2 @0");
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(s);
	/* The device has told the guest BUSY: so it still has the CPU. */
	assert_int_equal(script_hello(s, 'a', true, true, 1, "1 2"), 0);
	script_expect(s, "welcome a ack", "limits a 3/4", "place a 2 @2");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect_nothing(s);
	lend_2(s);
	/* Nobody in the guest has to answer for what is lent. */
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	s->now += SEC(6);
	script_expect(s, "home a 1 @0");
	assert_string_equal(state_of(s, 'a', 2), "lent");
}

static void test_hello_crosses(void **state)
{
	struct script *s = *state;

	lend_2(s);
	/* Sent before the answer arrived: believed only after a second look. */
	assert_int_equal(script_hello(s, 'a', false, true, 1, "1 2"), 0);
	assert_string_equal(state_of(s, 'a', 2), "lent");
	script_expect(s, "limits a 2/4");
	s->now += SEC(1);
	script_expect(s, "close a");
	assert_int_equal(script_hello(s, 'a', true, true, 1, "1 2l"), 0);
	script_expect(s, "welcome a ack", "limits a 2/4");
	assert_string_equal(state_of(s, 'a', 2), "lent");
	/* The other way round. */
	assert_int_equal(script_add(s, 'a', 8, 1, 0, false), 0);
	script_settle(s);
	assert_int_equal(script_hello(s, 'a', false, true, 1, "1 2l"), 0);
	assert_string_equal(state_of(s, 'a', 2), "granted");
	script_expect(s, "limits a 3/4");
	s->now += SEC(1);
	script_expect(s, "close a");
	assert_int_equal(script_hello(s, 'a', true, true, 1, "1 2l"), 0);
	script_expect(s, "welcome a ack", "limits a 2/4", "home a 2 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(s);
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
}

static void test_hello_during_add(void **state)
{
	struct script *s = *state;

	lend_2(s);
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "place a 2 @2");
	/* It is lent until the answer is there. */
	assert_int_equal(script_hello(s, 'a', false, true, 1, "1 2l"), 0);
	script_expect(s, "limits a 2/4");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(s, "response a 7 ack none [2]", "limits a 3/4");
}

static void test_reset(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 2, true), 0);
	script_settle(s);
	assert_string_equal(state_of(s, 'a', 2), "parked");
	/* The machine was reset: what is lent stays so, the other one is nobody's-> */
	assert_int_equal(script_hello(s, 'a', false, false, 2, "1 2l"), 0);
	script_expect(s, "home a 1 @0", "limits a 1/1");
	assert_string_equal(state_of(s, 'a', 2), "lent");
	script_settle(s);
	assert_int_equal(script_hello(s, 'a', false, true, 3, "1f 2l"), 0);
	script_expect(s, "limits a 1/4");
	/* The new boot lends what the old one left. */
	assert_int_equal(script_lend(s, 'a', 8, 1, false), 0);
	script_expect(s, "response a 8 ack none []");
	assert_int_equal(script_add(s, 'a', 9, 2, 0, false), 0);
	script_expect(s, "place a 1 @1", "place a 2 @2");
}

/* An unplug that is under way outlives the boot of the guest that asked for it, and its request. */
static void test_unplug_under_way(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_remove(s, 'a', 7, 1), 0);
	assert_int_equal(script_remove(s, 'a', 8, 2), 0);
	script_expect(s, "unplug a 1", "unplug a 2");
	assert_int_equal(script_hello(s, 'a', false, false, 2, "1 2"), 0);
	script_expect(s, "home a 1 @0", "home a 2 @0", "limits a 1/1");
	s->now += 10;
	assert_int_equal(script_hello(s, 'a', false, true, 3, "1 2"), 0);
	script_expect(s, "limits a 1/4");
	/* The new boot wants to keep them, and nobody can promise that: with a core or without. */
	assert_non_null(ebb_state_thread_owner(s->state, 1, NULL));
	assert_int_equal(script_lend(s, 'a', 9, 1, false), 0);
	script_expect(s, "response a 9 busy in-progress []");
	script_done(s, EBB_ACTION_HOME, 'a', 1, 0);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(s);
	assert_null(ebb_state_thread_owner(s->state, 1, NULL));
	assert_int_equal(script_lend(s, 'a', 10, 1, false), 0);
	script_expect(s, "response a 10 busy in-progress []");
	/* It is gone: to be removed.  It has failed: it may stay. */
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, 0);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, -ETIMEDOUT);
	assert_int_equal(script_lend(s, 'a', 11, 1, false), 0);
	assert_int_equal(script_lend(s, 'a', 12, 2, false), 0);
	script_expect(s, "response a 11 nack not-held []", "response a 12 ack none []");
	assert_int_equal(script_remove(s, 'a', 13, 1), 0);
	script_expect(s, "response a 13 ack none []");
	assert_string_equal(state_of(s, 'a', 2), "lent");
}

/* A driver that knows nothing of lending finds CPUs that were lent before. */
static void test_other_driver(void **state)
{
	struct script *s = *state;

	lend_2(s);
	s->can_lend = false;
	assert_int_equal(script_hello(s, 'a', false, true, 2, "1 2l"), 0);
	script_settle(s);
	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "plug a 3");
	script_done(s, EBB_ACTION_PLUG, 'a', 3, 0);
	script_settle(s);
	assert_int_equal(script_remove(s, 'a', 8, 2), 0);
	script_expect(s, "unplug a 2");
}

static void test_restart(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	s.can_lend = true;
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	/* 1 granted; 2 lent; 3 was on its way to a core for a CPU_ADD. */
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0 1@1 2@0 3@3"), 0);
	script_loaded(&s);
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1 2l 3p"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/4", "home a 3 @0");
	assert_string_equal(state_of(&s, 'a', 2), "lent");
	assert_string_equal(state_of(&s, 'a', 3), "parked");
	script_done(&s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect_nothing(&s);
	assert_null(ebb_state_thread_owner(s.state, 3, NULL));
	assert_int_equal(script_add(&s, 'a', 1, 3, 0, false), 0);
	script_expect(&s, "place a 2 @2", "place a 3 @3");
	script_settle(&s);
	assert_int_equal(script_vm(&s, 'a')->nodes[0].held, 4);
	script_finish(&s);
}

/* Unplugged by somebody, or by a removal of which nobody heard. */
static void test_gone(void **state)
{
	struct script *s = *state;

	lend_2(s);
	s->now += 10;
	assert_int_equal(script_found(s, 'a', 1, s->now, "0@0 1@1"), 0);
	script_settle(s);
	assert_int_equal(script_lend(s, 'a', 7, 2, false), 0);
	script_expect(s, "response a 7 nack not-held []");
	/* It is plugged again when it is needed, under the name that it has. */
	assert_int_equal(script_add(s, 'a', 8, 1, 0, false), 0);
	script_expect(s, "plug a 2");
	script_done(s, EBB_ACTION_PLUG, 'a', 2, 0);
	script_expect(s, "place a 2 @2");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(s, "response a 8 ack none [2]", "limits a 3/4");
}

static void test_gone_meanwhile(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 7, 2, false), 0);
	script_expect(s, "limits a 2/4", "home a 2 @0");
	s->now += 10;
	assert_int_equal(script_found(s, 'a', 1, s->now, "0@0 1@1"), 0);
	script_expect(s, "response a 7 ack none []");
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
}

/* ---- tier, plugging ahead ------------------------------------------------ */

static void test_tier(void **state)
{
	struct ebb_sla sla = script_sla("1/4");
	struct script *s = *state;

	sla.tier = VIRTIO_EBB_TIER_PARK;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	script_expect(s, "limits a 3/4 t2");
	script_expect_nothing(s);
	/* Only a driver that can lend may be told. */
	s->can_lend = false;
	assert_int_equal(script_hello(s, 'a', false, true, 1, "1 2"), 0);
	script_expect(s, "limits a 3/4");
}

static void start_ahead(struct script *s, const char *nodes)
{
	struct ebb_sla sla = script_sla(nodes);

	sla.plug_ahead = true;
	script_init(s, 1, 4, 1, false);
	s->can_lend = true;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	script_settle(s);
}

static void test_plug_ahead(void **state)
{
	struct script s;

	(void)state;
	start_ahead(&s, "1/3");
	assert_int_equal(script_hello(&s, 'a', true, false, 0, ""), 0);
	script_expect(&s, "welcome a ack", "limits a 1/1");
	/* One at a time, as soon as there is a driver for them. */
	assert_int_equal(script_hello(&s, 'a', false, true, 1, ""), 0);
	script_expect(&s, "limits a 1/3", "plug a 1");
	script_done(&s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_expect(&s, "home a 1 @0", "plug a 2");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect(&s, "flags a 1 lent");
	assert_string_equal(state_of(&s, 'a', 1), "lent");
	script_done(&s, EBB_ACTION_PLUG, 'a', 2, -EIO);
	script_expect_nothing(&s);
	s.now = s.wake_at;
	script_expect(&s, "plug a 2");
	script_done(&s, EBB_ACTION_PLUG, 'a', 2, 0);
	script_expect(&s, "home a 2 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(&s, "flags a 2 lent");
	script_expect_nothing(&s);
	/* What the guest gives back for good does not come again in this boot. */
	assert_int_equal(script_remove(&s, 'a', 7, 2), 0);
	script_settle(&s);
	assert_string_equal(state_of(&s, 'a', 2), "absent");
	assert_int_equal(script_hello(&s, 'a', false, true, 2, "1l"), 0);
	script_expect(&s, "limits a 1/3", "plug a 2");
	script_finish(&s);
}

static void test_plug_ahead_waits(void **state)
{
	struct script s;

	(void)state;
	start_ahead(&s, "1/4");
	assert_int_equal(script_hello(&s, 'a', true, true, 1, ""), 0);
	script_expect(&s, "welcome a ack", "limits a 1/4", "plug a 1");
	/* Requests first. */
	assert_int_equal(script_add(&s, 'a', 7, 1, 0, false), 0);
	script_expect(&s, "plug a 2");
	script_done(&s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_expect(&s, "home a 1 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect(&s, "flags a 1 lent");
	script_done(&s, EBB_ACTION_PLUG, 'a', 2, 0);
	script_expect(&s, "place a 2 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(&s, "response a 7 ack none [2]", "limits a 2/4", "plug a 3");
	script_finish(&s);
}

static void test_plug_ahead_needs_home(void **state)
{
	struct ebb_sla sla = script_sla("1/3");
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'b', 1, "1/4");
	script_grow(&s, 'b', 3, 0);
	sla.plug_ahead = s.can_lend = true;
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_running(&s, 'a', 2), 0);
	script_settle(&s);
	assert_string_equal(state_of(&s, 'a', 0), "waiting");
	assert_int_equal(script_hello(&s, 'a', true, true, 1, ""), 0);
	script_expect(&s, "limits b 4/2!300", "welcome a ack", "limits a 1/1");
	script_expect_nothing(&s);
	/* As soon as it has a core, the others come there. */
	assert_int_equal(script_remove(&s, 'b', 1, 3), 0);
	script_expect(&s, "unplug b 3");
	script_done(&s, EBB_ACTION_UNPLUG, 'b', 3, 0);
	script_expect(&s, "response b 1 ack none []", "limits b 3/2!300", "place a 0 @3",
		      "plug a 1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_done(&s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_expect(&s, "home a 1 @3", "plug a 2");
	script_finish(&s);
}

/* The device did not take it over: it was telling so while it was told. */
static void test_plug_ahead_ignored(void **state)
{
	struct script s;

	(void)state;
	start_ahead(&s, "1/2");
	assert_int_equal(script_hello(&s, 'a', true, true, 1, ""), 0);
	script_settle(&s);
	assert_string_equal(state_of(&s, 'a', 1), "lent");
	s.can_lend = false;
	assert_int_equal(script_hello(&s, 'a', false, true, 2, ""), 0);
	script_settle(&s);
	s.now += SEC(1);
	script_expect(&s, "close a");
	assert_int_equal(script_hello(&s, 'a', true, true, 2, ""), 0);
	script_expect(&s, "welcome a ack", "limits a 1/2", "unplug a 1");
	script_finish(&s);
}

#define ON_FOUR(name)	cmocka_unit_test_setup_teardown(name, setup, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_FOUR(test_lend),
		ON_FOUR(test_refused),
		ON_FOUR(test_add_prefers_lent),
		ON_FOUR(test_add_of_lent_fails),
		ON_FOUR(test_remove_of_lent),
		ON_FOUR(test_demand),
		ON_FOUR(test_home_fails),
		ON_FOUR(test_link_lost),
		ON_FOUR(test_hello_crosses),
		ON_FOUR(test_hello_during_add),
		ON_FOUR(test_reset),
		ON_FOUR(test_unplug_under_way),
		ON_FOUR(test_other_driver),
		cmocka_unit_test(test_restart),
		ON_FOUR(test_gone),
		ON_FOUR(test_gone_meanwhile),
		ON_FOUR(test_tier),
		cmocka_unit_test(test_plug_ahead),
		cmocka_unit_test(test_plug_ahead_waits),
		cmocka_unit_test(test_plug_ahead_needs_home),
		cmocka_unit_test(test_plug_ahead_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
