// SPDX-License-Identifier: GPL-2.0-or-later
/* Demands, deadlines, force, and the way back; VMs that come, go and reboot. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* a holds all four cores of the host, then b arrives. */
static void full_house(struct script *s)
{
	const struct ebb_sla sla = script_sla("1/4");

	script_init(s, 1, 4, 1, false);
	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 3, 0);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	assert_int_equal(script_running(s, 'b', 2), 0);
	/* One CPU of b has no core of its own yet; it does not sit on a's startup core. */
	script_expect(s, "limits a 4/3!300", "home b 0 @1");
	script_done(s, EBB_ACTION_HOME, 'b', 0, 0);
	assert_int_equal(script_hello(s, 'b', true, true, 1, ""), 0);
	script_expect(s, "limits a 4/2!300", "welcome b ack", "limits b 1/1");
}

static int setup_full(void **state)
{
	full_house(script_new(state));
	return 0;
}

static void test_demand_is_met(void **state)
{
	struct script *s = *state;

	s->now += MSEC(20);
	assert_int_equal(script_remove(s, 'a', 1, 3), 0);
	script_expect(s, "unplug a 3");
	s->now += MSEC(20);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 3, 0);
	/* The first core goes to the startup set. */
	script_expect(s, "response a 1 ack none []", "limits a 3/2!260", "place b 0 @3");
	script_done(s, EBB_ACTION_PLACE, 'b', 0, 0);
	assert_int_equal(script_remove(s, 'a', 2, 2), 0);
	script_expect(s, "unplug a 2");
	/* Freed before given: nothing is offered to b before the answer. */
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 1);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect(s, "response a 2 ack none []", "limits a 2/2", "limits b 1/2");
	s->now += SEC(10);
	script_expect_nothing(s);
}

static void test_force(void **state)
{
	struct script *s = *state;

	/* What a is sure to lose is offered to b a little before. */
	assert_int_equal(s->wake_at, s->now + MSEC(290));
	s->now += MSEC(289);
	script_expect_nothing(s);
	s->now += MSEC(1);
	script_expect(s, "limits b 1/2");
	assert_int_equal(s->wake_at, s->now + MSEC(10));
	s->now += MSEC(9);
	script_expect_nothing(s);
	s->now += MSEC(1);
	/* The newest two; they share the core of a's startup set. */
	script_expect(s, "home a 2 @0", "home a 3 @0", "limits a 2/2");
	assert_true(script_find_record(s, 'a', EBB_EVENT_FORCE));
	/* Until they have arrived their cores are not free. */
	script_expect_nothing(s);
	s->now += 800;
	script_done(s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(s, "flags a 3 forced", "place b 0 @3");
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_done(s, EBB_ACTION_PLACE, 'b', 0, 0);
	script_expect(s, "flags a 2 forced");
	/* Granted and plugged they stay until the guest removes them. */
	assert_int_equal(script_remove(s, 'a', 5, 2), 0);
	script_expect(s, "unplug a 2");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect(s, "response a 5 ack none []");
}

static void test_force_fails_first(void **state)
{
	struct script *s = *state;

	s->now += MSEC(300);
	script_expect(s, "home a 2 @0", "home a 3 @0", "limits a 2/2", "limits b 1/2");
	script_done(s, EBB_ACTION_HOME, 'a', 2, -EIO);
	script_done(s, EBB_ACTION_HOME, 'a', 3, -EIO);
	/* Nobody gets a core that may still be in use, and nobody knows for how long it is. */
	script_expect(s, "limits b 1/1");
	assert_int_equal(s->wake_at, s->now + MSEC(200));
	s->now += MSEC(200);
	script_expect(s, "home a 2 @0", "home a 3 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 2, -EIO);
	script_done(s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(s, "flags a 3 forced", "place b 0 @3");
	assert_int_equal(s->wake_at, s->now + MSEC(400));
}

static void test_unforce(void **state)
{
	struct script *s = *state;

	s->now += MSEC(300);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
	/* b leaves: what the guest of a still has gets cores again, oldest first. */
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(s, "limits a 4/4", "place a 2 @2", "place a 3 @3");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_done(s, EBB_ACTION_PLACE, 'a', 3, 0);
	script_expect(s, "flags a 2 clear", "flags a 3 clear");
	assert_true(script_find_record(s, 'a', EBB_EVENT_UNFORCE));
}

/* What the guest has not got back yet it is not asked for. */
static void test_unforce_is_taken_back(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script *s = *state;

	s->now += MSEC(300);
	script_settle(s);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(s, "limits a 4/4", "place a 2 @2", "place a 3 @3");
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_done(s, EBB_ACTION_PLACE, 'a', 3, -EIO);
	script_expect(s, "flags a 2 clear");
	assert_int_equal(script_define(s, 'c', &sla), 0);
	assert_int_equal(script_running(s, 'c', 3), 0);
	script_expect(s, "limits a 3/3", "home c 0 @3");
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 0);
	/* Where it runs nobody knows: its core is free once it is home. */
	s->now += MSEC(200);
	script_expect(s, "home a 3 @0");
	script_done(s, EBB_ACTION_HOME, 'c', 0, 0);
	script_done(s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect_nothing(s);
	assert_ptr_equal(ebb_state_thread_owner(s->state, 3, NULL), script_vm(s, 'c'));
	/* The next one does have a deadline. */
	assert_int_equal(script_hello(s, 'c', true, true, 1, ""), 0);
	script_expect(s, "limits a 3/2!300", "welcome c ack", "limits c 1/1");
}

static void test_demand_is_taken_back(void **state)
{
	struct script *s = *state;

	s->now += MSEC(100);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_expect(s, "limits a 4/4");
	/* Nothing but accounts is due. */
	assert_true(s->wake_at > s->now + SEC(100000));
	s->now += SEC(1);
	script_expect_nothing(s);
}

static void test_later_demand_has_its_own_deadline(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script *s = *state;

	s->now += MSEC(200);
	assert_int_equal(script_define(s, 'c', &sla), 0);
	assert_int_equal(script_running(s, 'c', 3), 0);
	/* a owes one more, b's goal falls; what was due first stays due first. */
	script_expect(s, "home c 0 @2");
	script_done(s, EBB_ACTION_HOME, 'c', 0, 0);
	assert_int_equal(script_hello(s, 'c', true, true, 1, ""), 0);
	script_expect(s, "welcome c ack", "limits c 1/1");
	assert_int_equal(script_vm(s, 'a')->nodes[0].limit, 2);
	s->now += MSEC(100);
	script_settle(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit +
			 script_vm(s, 'c')->nodes[0].limit, 2);
}

static void test_given_back_but_slow(void **state)
{
	struct script *s = *state;

	s->now += MSEC(290);
	/* In time, though libvirt is not done at the deadline: this one goes, no other. */
	assert_int_equal(script_remove(s, 'a', 1, 1), 0);
	assert_int_equal(script_remove(s, 'a', 2, 2), 0);
	script_expect(s, "unplug a 1", "unplug a 2", "limits b 1/2");
	s->now += MSEC(10);
	script_expect(s, "home a 1 @0", "home a 2 @0", "limits a 2/2");
	script_done(s, EBB_ACTION_HOME, 'a', 1, 0);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	/* b's startup CPU owns now the core on which it was a guest. */
	script_expect_nothing(s);
	assert_int_equal(script_vm(s, 'b')->vcpus[0].thread, 1);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, 0);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect(s, "response a 1 ack none []", "response a 2 ack none []");
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
}

static void test_no_driver(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 2, 0);
	/* The driver is gone: nobody answers for the CPUs, no deadline is waited for. */
	assert_int_equal(script_hello(&s, 'a', false, false, 2, "1 2"), 0);
	script_expect(&s, "home a 1 @0", "home a 2 @0", "limits a 1/1");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(&s, "flags a 1 forced", "flags a 2 forced");
	/* A driver again: it finds them and removes them; they get no core meanwhile. */
	assert_int_equal(script_hello(&s, 'a', false, true, 3, "1f 2f"), 0);
	script_expect(&s, "limits a 1/4");
	assert_int_equal(script_remove(&s, 'a', 1, 1), 0);
	script_expect(&s, "unplug a 1");
	script_finish(&s);
}

static void test_reboot(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 2, 0);
	assert_int_equal(script_add(&s, 'a', 77, 1, 0, false), 0);
	script_expect(&s, "plug a 3");
	/* A reset drops the request, and what was held is held by nobody. */
	assert_int_equal(script_hello(&s, 'a', false, true, 2, "1 2"), 0);
	script_expect(&s, "home a 1 @0", "home a 2 @0", "limits a 1/4");
	script_done(&s, EBB_ACTION_PLUG, 'a', 3, 0);
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(&s, "flags a 1 forced", "flags a 2 forced", "unplug a 3");
	script_finish(&s);
}

static void test_qemu_dies(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_expect_nothing(s);
	assert_int_equal(script_simple(s, 'a', EBB_FACT_VM_STOPPED), 0);
	script_expect(s, "limits b 1/4", "place b 0 @0");
	script_done(s, EBB_ACTION_PLACE, 'b', 0, 0);
	/* It may start again at once. */
	assert_int_equal(script_running(s, 'a', 3), 0);
	script_expect(s, "limits b 1/3", "place a 0 @1");
}

static void test_link_stays_down(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 2, 0);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_LINK_LOST), 0);
	script_expect_nothing(&s);
	assert_int_equal(s.wake_at, s.now + s.cfg.link_grace_usec);
	s.now += SEC(5);
	script_expect(&s, "home a 1 @0", "home a 2 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(&s);
	/* The same boot is back: it has its cores again. */
	assert_int_equal(script_hello(&s, 'a', true, true, 1, "1 2"), 0);
	script_expect(&s, "welcome a ack", "limits a 3/4", "place a 1 @1", "place a 2 @2");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, 0);
	/* The device was never told that they were forced. */
	script_expect_nothing(&s);
	script_finish(&s);
}

#define FULL(name)	cmocka_unit_test_setup_teardown(name, setup_full, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FULL(test_demand_is_met),
		FULL(test_force),
		FULL(test_force_fails_first),
		FULL(test_unforce),
		FULL(test_unforce_is_taken_back),
		FULL(test_demand_is_taken_back),
		FULL(test_later_demand_has_its_own_deadline),
		FULL(test_given_back_but_slow),
		cmocka_unit_test(test_no_driver),
		cmocka_unit_test(test_reboot),
		FULL(test_qemu_dies),
		cmocka_unit_test(test_link_stays_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
