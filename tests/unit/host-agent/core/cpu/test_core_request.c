// SPDX-License-Identifier: GPL-2.0-or-later
/* CPU_ADD and CPU_REMOVE from request to answer, action by action. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* One VM "a" of one to four CPUs, on a host of four cores. */
static int boot_one(void **state)
{
	struct script *s = calloc(1, sizeof(*s));

	script_init(s, 1, 4, 1, false);
	script_boot(s, 'a', 1, "1/4");
	*state = s;
	return 0;
}

static void test_boot(void **state)
{
	struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	script_expect_nothing(&s);
	assert_int_equal(script_running(&s, 'a', 1), 0);
	script_expect(&s, "place a 0 @0");
	script_done(&s, EBB_ACTION_PLACE, 'a', 0, 0);
	script_expect_nothing(&s);
	/* Linked, but no driver: nothing to offer yet. */
	assert_int_equal(script_hello(&s, 'a', true, false, 0, ""), 0);
	script_expect(&s, "welcome a ack", "limits a 1/1");
	assert_int_equal(script_hello(&s, 'a', false, true, 1, ""), 0);
	script_expect(&s, "limits a 1/4");
	script_finish(&s);
}

static void test_add(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_add(s, 'a', 7, 2, 0, false), 0);
	s->now += 40;
	script_expect(s, "plug a 1", "plug a 2");
	s->now += 1000;
	script_done(s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_done(s, EBB_ACTION_PLUG, 'a', 2, 0);
	script_expect(s, "place a 1 @1", "place a 2 @2");
	s->now += 300;
	script_done(s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect_nothing(s);
	script_done(s, EBB_ACTION_PLACE, 'a', 1, 0);
	s->now += 5;
	script_expect(s, "response a 7 ack none [1,2]", "limits a 3/4");
	script_expect_nothing(s);

	assert_true(script_find_record(s, 'a', EBB_EVENT_REQUEST));
	assert_true(script_find_record(s, 'a', EBB_EVENT_GRANT));
	assert_int_equal(s->record.cpus, 2);
	assert_int_equal(s->record.asked, 2);
	assert_int_equal(s->record.agent_usec, 40);
	assert_int_equal(s->record.libvirt_usec, 1000);
	assert_int_equal(s->record.place_usec, 300);
	assert_int_equal(s->record.total_usec, 1345);
}

static void test_add_partial(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_add(s, 'a', 7, 3, 0, false), 0);
	script_expect(s, "plug a 1", "plug a 2", "plug a 3");
	script_done(s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_done(s, EBB_ACTION_PLUG, 'a', 2, -EIO);
	script_done(s, EBB_ACTION_PLUG, 'a', 3, 0);
	/* The core of the one that failed is free again. */
	script_expect(s, "place a 1 @1", "place a 3 @3");
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
	script_done(s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_done(s, EBB_ACTION_PLACE, 'a', 3, -EIO);
	/* Not placed: not granted either, and it does not stay. */
	script_expect(s, "response a 7 ack none [1]", "limits a 2/4", "unplug a 3");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 3, 0);
	script_expect_nothing(s);
	assert_null(ebb_state_thread_owner(s->state, 3, NULL));
	assert_true(script_find_record(s, 'a', EBB_EVENT_GRANT));
	assert_int_equal(s->record.cpus, 1);
	assert_int_equal(s->record.asked, 3);
	assert_int_equal(s->record.code, VIRTIO_EBB_REASON_HOST);
}

static void test_add_fails(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/2");
	assert_int_equal(script_add(&s, 'a', 7, 1, 0, false), 0);
	script_expect(&s, "plug a 1");
	script_done(&s, EBB_ACTION_PLUG, 'a', 1, -EIO);
	script_expect(&s, "response a 7 nack host []");
	/* Not tried again at once, but soon. */
	assert_int_equal(script_add(&s, 'a', 8, 1, 0, false), 0);
	script_expect(&s, "response a 8 busy capacity []");
	s.now += MSEC(200);
	assert_int_equal(script_add(&s, 'a', 9, 1, 0, false), 0);
	script_expect(&s, "plug a 1");
	script_finish(&s);
}

static void test_add_refused(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 2, 2, 1, false);
	script_boot(&s, 'a', 1, "1/2,0/4");
	assert_int_equal(script_add(&s, 'a', 1, 1, 2, false), 0);
	script_expect(&s, "response a 1 nack node []");
	assert_int_equal(script_add(&s, 'a', 2, 33, 0, false), -EINVAL);
	assert_int_equal(script_add(&s, 'a', 2, 0, 0, false), -EINVAL);
	assert_int_equal(script_add(&s, 'b', 2, 1, 0, false), -ENOENT);
	script_grow(&s, 'a', 1, 0);
	assert_int_equal(script_add(&s, 'a', 3, 1, 0, false), 0);
	script_expect(&s, "response a 3 nack ceiling []");
	script_grow(&s, 'a', 2, 1);
	assert_int_equal(script_add(&s, 'a', 4, 1, 1, false), 0);
	script_expect(&s, "response a 4 nack limit []");
	assert_int_equal(script_add(&s, 'a', 5, 1, EBB_NODE_ANY, false), 0);
	script_expect(&s, "response a 5 nack limit []");
	script_finish(&s);
}

static void test_add_more_than_offered(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	script_boot(&s, 'a', 1, "1/8");
	assert_int_equal(script_add(&s, 'a', 1, 8, 0, false), 0);
	script_expect(&s, "plug a 1", "plug a 2", "plug a 3");
	/* The same tag twice: whoever sends that is broken. */
	assert_int_equal(script_add(&s, 'a', 1, 1, 0, false), -EINVAL);
	for (uint16_t i = 1; i < 4; i++)
		script_done(&s, EBB_ACTION_PLUG, 'a', i, 0);
	script_expect(&s, "place a 1 @1", "place a 2 @2", "place a 3 @3");
	for (uint16_t i = 1; i < 4; i++)
		script_done(&s, EBB_ACTION_PLACE, 'a', i, 0);
	script_expect(&s, "response a 1 ack none [1,2,3]", "limits a 4/4");
	script_finish(&s);
}

static void test_add_any_node(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 2, 2, 1, false);
	script_boot(&s, 'a', 1, "1/2,0/2");
	/* First where most is on offer, then where anything is. */
	assert_int_equal(script_add(&s, 'a', 1, 3, EBB_NODE_ANY, false), 0);
	script_expect(&s, "plug a 1", "plug a 2", "plug a 3");
	assert_int_equal(script_vm(&s, 'a')->vcpus[2].thread, 2);
	assert_int_equal(script_vm(&s, 'a')->vcpus[1].thread, 1);
	script_finish(&s);
}

static void test_hyperthreads(void **state)
{
	struct script s;

	(void)state;
	/* Two cores of two threads, counted by thread: 4 CPUs. */
	script_init(&s, 1, 2, 2, true);
	script_boot(&s, 'a', 1, "1/4");
	assert_int_equal(script_add(&s, 'a', 1, 2, 0, false), 0);
	script_expect(&s, "plug a 1");
	script_done(&s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_expect(&s, "place a 1 @2");
	script_done(&s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_expect(&s, "response a 1 ack none [1]", "limits a 2/4");
	/* Within the limit, but no whole core is left. */
	assert_int_equal(script_add(&s, 'a', 2, 1, 0, false), 0);
	script_expect(&s, "response a 2 busy capacity []");
	assert_int_equal(script_add(&s, 'a', 3, 1, 0, true), 0);
	script_expect(&s, "plug a 2");
	script_done(&s, EBB_ACTION_PLUG, 'a', 2, 0);
	script_expect(&s, "place a 2 @1");
	script_done(&s, EBB_ACTION_PLACE, 'a', 2, 0);
	script_expect(&s, "response a 3 ack none [2ht]", "limits a 3/4");
	script_finish(&s);
}

static void test_whole_cores(void **state)
{
	struct script s;

	(void)state;
	/* Counted by core: a hyperthread that is allowed still gets a core of its own. */
	script_init(&s, 1, 2, 2, false);
	script_boot(&s, 'a', 1, "1/4");
	assert_int_equal(script_vm(&s, 'a')->nodes[0].limit, 2);
	assert_int_equal(script_add(&s, 'a', 1, 3, 0, true), 0);
	script_expect(&s, "plug a 1");
	assert_int_equal(script_vm(&s, 'a')->vcpus[1].thread, 2);
	script_finish(&s);
}

static void test_add_times_out(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_add(s, 'a', 7, 2, 0, false), 0);
	script_expect(s, "plug a 1", "plug a 2");
	assert_int_equal(s->wake_at, s->now + s->cfg.request_usec);
	s->now += SEC(12);
	script_expect(s, "response a 7 busy timeout []");
	assert_null(ebb_state_thread_owner(s->state, 1, NULL));
}

static void test_late_plug_is_undone(void **state)
{
	struct script *s = *state;
	struct ebb_fact late = { .type = EBB_FACT_ACTION_DONE };

	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "plug a 1");
	late.u.action_done.id = s->last[0].id;
	late.u.action_done.type = s->last[0].type;
	s->now += SEC(12);
	script_expect(s, "response a 7 busy timeout []");
	s->now += SEC(1);
	assert_int_equal(ebb_state_report(s->state, s->now, &late), 0);
	script_expect(s, "unplug a 1");
	assert_true(script_find_record(s, 'a', EBB_EVENT_RECLAIM));
	/* Reported twice: the second time it means nothing. */
	assert_int_equal(ebb_state_report(s->state, s->now, &late), 0);
	script_expect_nothing(s);
}

static void test_reuse(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "plug a 1");
	/* The link drops, comes back, and the guest asks again before anything was undone. */
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_done(s, EBB_ACTION_PLUG, 'a', 1, 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	assert_int_equal(script_add(s, 'a', 8, 1, 0, false), 0);
	script_expect(s, "welcome a ack", "limits a 1/4", "place a 1 @1");
	script_done(s, EBB_ACTION_PLACE, 'a', 1, 0);
	script_expect(s, "response a 8 ack none [1]", "limits a 2/4");
}

static void test_link_lost_while_adding(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_add(s, 'a', 7, 1, 0, false), 0);
	script_expect(s, "plug a 1");
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_done(s, EBB_ACTION_PLUG, 'a', 1, 0);
	script_expect(s, "unplug a 1");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, 0);
	script_expect_nothing(s);
	assert_null(ebb_state_thread_owner(s->state, 1, NULL));
}

static void test_remove_twice(void **state)
{
	struct script *s = *state;

	script_grow(s, 'a', 2, 0);
	assert_int_equal(script_remove(s, 'a', 9, 2), 0);
	script_expect(s, "unplug a 2");
	assert_int_equal(script_remove(s, 'a', 10, 2), 0);
	script_expect(s, "response a 10 busy in-progress []");
}

static void test_remove_answers(void **state)
{
	struct script *s = *state;

	script_grow(s, 'a', 2, 0);
	assert_int_equal(script_remove(s, 'a', 9, 2), 0);
	s->now += 25;
	script_expect(s, "unplug a 2");
	s->now += 2000;
	script_done(s, EBB_ACTION_UNPLUG, 'a', 2, 0);
	script_expect(s, "response a 9 ack none []", "limits a 2/4");
	assert_null(ebb_state_thread_owner(s->state, 2, NULL));
	assert_true(script_find_record(s, 'a', EBB_EVENT_RELEASE));
	assert_int_equal(s->record.cpus, 1);
	assert_int_equal(s->record.agent_usec, 25);
	assert_int_equal(s->record.libvirt_usec, 2000);
	assert_int_equal(s->record.total_usec, 2025);

	assert_int_equal(script_remove(s, 'a', 11, 2), 0);
	script_expect(s, "response a 11 nack not-held []");
	assert_int_equal(script_remove(s, 'a', 12, 0), 0);
	script_expect(s, "response a 12 nack startup []");
	assert_int_equal(script_remove(s, 'a', 13, 4), -EINVAL);
}

static void test_remove_not_ejected(void **state)
{
	struct script *s = *state;

	script_grow(s, 'a', 1, 0);
	assert_int_equal(script_remove(s, 'a', 9, 1), 0);
	script_expect(s, "unplug a 1");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, -ETIMEDOUT);
	/* The guest does not use it: the core is taken, and the guest may ask again. */
	script_expect(s, "home a 1 @0", "response a 9 nack host []", "limits a 1/4");
	assert_non_null(ebb_state_thread_owner(s->state, 1, NULL));
	script_done(s, EBB_ACTION_HOME, 'a', 1, 0);
	script_expect(s, "flags a 1 forced");
	assert_null(ebb_state_thread_owner(s->state, 1, NULL));
	/* It is not given a core again, whatever is on offer. */
	s->now += SEC(60);
	script_expect_nothing(s);
	assert_int_equal(script_remove(s, 'a', 10, 1), 0);
	script_expect(s, "unplug a 1");
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, 0);
	script_expect(s, "response a 10 ack none []");
}

/* For each of these, and no other, a refusal closes the link. */
static void test_facts_from_link(void **state)
{
	static const bool is_from_link[EBB_FACT_MAX] = {
		[EBB_FACT_HELLO] = true, [EBB_FACT_REQUEST] = true, [EBB_FACT_TELEMETRY] = true,
		[EBB_FACT_MEM] = true,	 [EBB_FACT_VOM] = true,
		[EBB_FACT_ACCOUNT] = true,
	};

	(void)state;
	for (int i = 0; i < EBB_FACT_MAX; i++)
		assert_int_equal(ebb_fact_is_from_link((enum ebb_fact_type)i), is_from_link[i]);
}

static void test_remove_while_link_is_down(void **state)
{
	struct script *s = *state;

	script_grow(s, 'a', 1, 0);
	assert_int_equal(script_remove(s, 'a', 9, 1), 0);
	script_expect(s, "unplug a 1");
	assert_int_equal(script_simple(s, 'a', EBB_FACT_LINK_LOST), 0);
	script_done(s, EBB_ACTION_UNPLUG, 'a', 1, 0);
	script_expect_nothing(s);
	/* The device still lists it; the guest asks again and is told that it is gone. */
	assert_int_equal(script_hello(s, 'a', true, true, 1, "1"), 0);
	script_expect(s, "welcome a ack", "limits a 1/4");
	assert_int_equal(script_add(s, 'a', 10, 3, 0, false), 0);
	script_expect(s, "plug a 2", "plug a 3");
	assert_int_equal(script_remove(s, 'a', 11, 1), 0);
	script_expect(s, "response a 11 ack none []");
}

int main(void)
{
#define ONE_VM(name)	cmocka_unit_test_setup_teardown(name, boot_one, script_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot),
		ONE_VM(test_add),
		ONE_VM(test_add_partial),
		cmocka_unit_test(test_add_fails),
		cmocka_unit_test(test_add_refused),
		cmocka_unit_test(test_add_more_than_offered),
		cmocka_unit_test(test_add_any_node),
		cmocka_unit_test(test_hyperthreads),
		cmocka_unit_test(test_whole_cores),
		ONE_VM(test_add_times_out),
		ONE_VM(test_late_plug_is_undone),
		ONE_VM(test_reuse),
		ONE_VM(test_link_lost_while_adding),
		ONE_VM(test_remove_twice),
		ONE_VM(test_remove_answers),
		ONE_VM(test_remove_not_ejected),
		ONE_VM(test_remove_while_link_is_down),
		cmocka_unit_test(test_facts_from_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
