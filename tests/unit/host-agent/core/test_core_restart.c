// SPDX-License-Identifier: GPL-2.0-or-later
/* The agent starts and finds a world: nothing is lost, moved, or granted twice. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

static void start(struct script *s, const char *found_a, const char *found_b)
{
	const struct ebb_sla sla = script_sla("1/4");

	script_init_loading(s, 1, 4, 1, false);
	assert_int_equal(script_define(s, 'b', &sla), 0);
	if (found_b)
		assert_int_equal(script_found(s, 'b', 2, s->now, found_b), 0);
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_found(s, 'a', 1, s->now, found_a), 0);
	script_expect_nothing(s);
	script_loaded(s);
}

static void test_moves_nothing(void **state)
{
	struct script s;

	(void)state;
	/* Out of order on purpose: everybody stays where it is. */
	start(&s, "0@3 2@0", "0@1 3@2");
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "2"), 0);
	assert_int_equal(script_hello(&s, 'b', true, true, 5, "3"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/2", "welcome b ack", "limits b 2/2");
	s.now += SEC(60);
	script_expect_nothing(&s);
	script_finish(&s);
}

static void test_nobodys_vcpu(void **state)
{
	struct script s;

	(void)state;
	start(&s, "0@0 1@1 2@-", NULL);
	script_expect_nothing(&s);
	/* One was granted, the other was not, whatever the last agent had in mind. */
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/4", "unplug a 2");
	script_done(&s, EBB_ACTION_UNPLUG, 'a', 2, -ETIMEDOUT);
	script_expect(&s, "home a 2 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect_nothing(&s);
	/* The guest may still eject it at any time, so it is granted to nobody again. */
	assert_int_equal(script_add(&s, 'a', 1, 2, 0, false), 0);
	script_expect(&s, "plug a 3");
	script_done(&s, EBB_ACTION_PLUG, 'a', 3, -EIO);
	script_expect(&s, "response a 1 nack host []");
	/* Again and again, at growing intervals. */
	s.now += MSEC(200);
	script_expect(&s, "unplug a 2");
	script_done(&s, EBB_ACTION_UNPLUG, 'a', 2, -ETIMEDOUT);
	script_expect_nothing(&s);
	assert_int_equal(s.wake_at, s.now + MSEC(400));
	s.now += MSEC(400);
	script_expect(&s, "unplug a 2");
	script_done(&s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect_nothing(&s);
	script_finish(&s);
}

static void test_granted_without_core(void **state)
{
	struct script s;

	(void)state;
	/* Where vCPU 1 of a runs is not known; b has the rest. */
	start(&s, "0@0 1@-", "0@1 1@2 2@3");
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'b', true, true, 5, "1 2"), 0);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1"), 0);
	script_expect(&s, "welcome a ack", "flags a 1 forced", "limits a 1/1", "home a 1 @0",
		      "welcome b ack", "limits b 3/2!300");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect_nothing(&s);
	/* As soon as there is a core for it, it has one again. */
	assert_int_equal(script_remove(&s, 'b', 1, 2), 0);
	script_expect(&s, "unplug b 2");
	script_done(&s, EBB_ACTION_UNPLUG, 'b', 2, 0);
	script_expect(&s, "limits a 2/2", "place a 1 @3", "response b 1 ack none []",
		      "limits b 2/2");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_expect(&s, "flags a 1 clear");
	script_finish(&s);
}

static void test_forced_stays_forced(void **state)
{
	struct script s;

	(void)state;
	start(&s, "0@0 1@0 2@1", "0@2 1@3");
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1f 2"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/2");
	assert_null(ebb_state_thread_owner(s.state, 4, NULL));
	assert_int_equal(script_vm(&s, 'a')->vcpus[1].thread, EBB_THREAD_NONE);
	script_finish(&s);
}

static void test_waiting_owns_nothing(void **state)
{
	const struct ebb_sla sla = script_sla("1/2");
	struct script s;

	(void)state;
	/* a came first, and waits beside vCPU 0 of b for b to give the core of vCPU 1 back. */
	script_init_loading(&s, 1, 2, 2, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@1"), 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	assert_int_equal(script_found(&s, 'b', 2, s.now, "0@0 1@2"), 0);
	script_loaded(&s);
	/* There is a better place to wait: not beside a startup vCPU. */
	script_expect(&s, "home a 0 @3");
	script_done(&s, EBB_ACTION_HOME, 'a', 0, 0);
	script_expect_nothing(&s);
	assert_ptr_equal(ebb_state_thread_owner(s.state, 0, NULL), script_vm(&s, 'b'));
	assert_null(ebb_state_thread_owner(s.state, 1, NULL));
	assert_int_equal(script_vm(&s, 'a')->vcpus[0].thread, EBB_THREAD_NONE);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, ""), 0);
	assert_int_equal(script_hello(&s, 'b', true, true, 5, "1"), 0);
	script_expect(&s, "welcome a ack", "limits a 1/1", "welcome b ack", "limits b 2/1!300");
	assert_int_equal(script_remove(&s, 'b', 1, 1), 0);
	script_expect(&s, "unplug b 1");
	script_done(&s, EBB_ACTION_UNPLUG, 'b', 1, 0);
	script_expect(&s, "place a 0 @2", "response b 1 ack none []", "limits b 1/1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_expect_nothing(&s);
	script_finish(&s);
}

/*
 * A startup vCPU that could not be moved to its new core runs where it waited.  Nobody comes there
 * before it has left: found together again, the agent would take the other one for forced.
 */
static void test_waits_where_it_waited(void **state)
{
	const struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init_loading(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@1 1@1"), 0);
	assert_int_equal(script_define(&s, 'b', &sla), 0);
	assert_int_equal(script_found(&s, 'b', 2, s.now, "0@0 1@1 2@2 3@3"), 0);
	script_loaded(&s);
	script_expect_nothing(&s);
	assert_int_equal(script_hello(&s, 'a', true, true, 5, "1f"), 0);
	assert_int_equal(script_hello(&s, 'b', true, true, 5, "1 2 3"), 0);
	script_expect(&s, "welcome a ack", "limits a 1/1", "welcome b ack", "limits b 4/2!300");
	assert_int_equal(script_remove(&s, 'b', 1, 3), 0);
	script_expect(&s, "unplug b 3");
	script_done(&s, EBB_ACTION_UNPLUG, 'b', 3, 0);
	script_expect(&s, "place a 0 @3", "home a 1 @3", "response b 1 ack none []",
		      "limits b 3/2!300");
	script_done(&s, EBB_ACTION_PLACE, 'a', 0, -EIO);
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	assert_int_equal(script_remove(&s, 'b', 1, 1), 0);
	script_expect(&s, "unplug b 1");
	script_done(&s, EBB_ACTION_UNPLUG, 'b', 1, 0);
	script_expect(&s, "limits a 1/2", "response b 1 ack none []", "limits b 2/2");
	assert_null(ebb_state_thread_owner(s.state, 1, NULL));
	assert_int_equal(script_add(&s, 'a', 1, 1, 0, false), 0);
	script_expect(&s, "response a 1 busy capacity []");
	s.now += MSEC(200);
	script_expect(&s, "place a 0 @3");
	script_done(&s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_expect(&s, "limits a 2/2", "place a 1 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_expect(&s, "flags a 1 clear");
	script_finish(&s);
}

static void test_device_never_comes(void **state)
{
	struct script s;

	(void)state;
	start(&s, "0@0 1@1", NULL);
	script_expect_nothing(&s);
	s.now += SEC(5);
	script_expect(&s, "home a 1 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect_nothing(&s);
	assert_null(ebb_state_thread_owner(s.state, 1, NULL));
	script_finish(&s);
}

static void test_answer_crossed_hello(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	script_grow(&s, 'a', 1, 0);
	/* Sent before the grant arrived, or because it came too late: not to be known. */
	assert_int_equal(script_hello(&s, 'a', false, true, 1, ""), 0);
	script_expect(&s, "limits a 2/4");
	s.now += SEC(1);
	script_expect(&s, "close a");
	assert_int_equal(script_hello(&s, 'a', true, true, 1, "1"), 0);
	script_expect(&s, "welcome a ack", "limits a 2/4");
	/* Long after a grant a HELLO without it is final. */
	s.now += SEC(2);
	assert_int_equal(script_hello(&s, 'a', false, true, 1, ""), 0);
	script_expect(&s, "limits a 1/4", "unplug a 1");
	script_finish(&s);
}

static void test_hello_is_checked(void **state)
{
	struct ebb_fact hello = {
		.type = EBB_FACT_HELLO,
		.u.hello = { .is_first = true, .num_nodes = 2, .max_cpus = 4 },
	};
	const struct ebb_hello_cpu bad_vcpu = { .vcpu = 4 };
	const struct ebb_hello_cpu bad_startup = { .vcpu = 1, .flags = VIRTIO_EBB_CPU_F_STARTUP };
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	hello.uuid[0] = 'a';
	assert_int_equal(ebb_state_report(s.state, s.now, &hello), -ENOENT);
	script_boot(&s, 'a', 1, "1/4");
	assert_int_equal(ebb_state_report(s.state, s.now, &hello), 0);
	script_expect(&s, "welcome a node");
	hello.u.hello.num_nodes = 1;
	hello.u.hello.max_cpus = 3;
	assert_int_equal(ebb_state_report(s.state, s.now, &hello), 0);
	script_expect(&s, "welcome a range");
	hello.u.hello.max_cpus = 4;
	hello.u.hello.num_cpus = 1;
	hello.u.hello.cpus = &bad_vcpu;
	assert_int_equal(ebb_state_report(s.state, s.now, &hello), 0);
	script_expect(&s, "welcome a range");
	hello.u.hello.cpus = &bad_startup;
	hello.u.hello.is_first = false;
	assert_int_equal(ebb_state_report(s.state, s.now, &hello), 0);
	script_expect(&s, "close a");
	assert_int_equal(script_add(&s, 'a', 1, 1, 0, false), -ENOENT);
	script_finish(&s);
}

static void test_changes_by_others(void **state)
{
	struct script s;
	usec_t before;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/4");
	before = s.now;
	s.now += 10;
	script_grow(&s, 'a', 1, 0);
	/* Read before the plug, told after it: it knows nothing of vCPU 1. */
	assert_int_equal(script_found(&s, 'a', 1, before, "0@0"), 0);
	script_expect_nothing(&s);
	assert_int_equal(script_vm(&s, 'a')->vcpus[1].life, EBB_VCPU_PLUGGED);
	/* Somebody pinned it elsewhere, and plugged another one by hand. */
	s.now += MSEC(10);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0 1@3 2@-"), 0);
	script_expect(&s, "place a 1 @1", "unplug a 2");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_done(&s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect_nothing(&s);
	/* Somebody unplugged what the guest holds: the core is free, the grant is not over. */
	s.now += MSEC(10);
	assert_int_equal(script_found(&s, 'a', 1, s.now, "0@0"), 0);
	script_expect(&s, "limits a 1/4");
	assert_null(ebb_state_thread_owner(s.state, 1, NULL));
	assert_int_equal(script_remove(&s, 'a', 3, 1), 0);
	script_expect(&s, "response a 3 ack none []");
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves_nothing),
		cmocka_unit_test(test_nobodys_vcpu),
		cmocka_unit_test(test_granted_without_core),
		cmocka_unit_test(test_forced_stays_forced),
		cmocka_unit_test(test_waiting_owns_nothing),
		cmocka_unit_test(test_waits_where_it_waited),
		cmocka_unit_test(test_device_never_comes),
		cmocka_unit_test(test_answer_crossed_hello),
		cmocka_unit_test(test_hello_is_checked),
		cmocka_unit_test(test_changes_by_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
