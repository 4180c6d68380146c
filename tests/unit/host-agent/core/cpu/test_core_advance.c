// SPDX-License-Identifier: GPL-2.0-or-later
/* Description: cores that are offered before they are free, and requests that wait for them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* a has three of four cores and is to give one back, b has one and is to get it; 300 ms. */
static void begin(struct script *s)
{
	script_init(s, 1, 4, 1, false);
	s->can_lend = true;
	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 2, 0);
	script_boot(s, 'b', 2, "1/4");
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 3);
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 1);
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 1);
}

/* Request 7 of b has got a's core. */
static void is_granted(struct script *s)
{
	script_done(s, EBB_ACTION_PLUG, 'b', 1, 0);
	script_expect(s, "place b 1 @2");
	script_done(s, EBB_ACTION_PLACE, 'b', 1, 0);
	script_expect(s, "response b 7 ack none [1]", "limits b 2/2");
}

static int setup(void **state)
{
	begin(script_new(state));
	return 0;
}

static void test_next_owner_asks_before_the_deadline(void **state)
{
	struct script *s = *state;

	s->now = script_vm(s, 'a')->nodes[0].due[0] - MSEC(10);
	script_expect(s, "limits b 1/2");
	s->now += MSEC(4);
	assert_int_equal(script_add(s, 'b', 7, 1, 0, false), 0);
	/* The core is still a's, so the request waits. */
	script_expect_nothing(s);
	s->now += MSEC(6);
	script_expect(s, "home a 2 @0", "limits a 2/2");
	script_expect_nothing(s);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "flags a 2 forced", "plug b 1");
	is_granted(s);
}

/* The owner gives it back: the next one hears of it while the thread is on its way home. */
static void test_offer_overlaps_lending(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 5, 2, false), 0);
	script_expect(s, "limits a 2/2", "home a 2 @0", "limits b 1/2");
	assert_int_equal(script_add(s, 'b', 7, 1, 0, false), 0);
	script_expect_nothing(s);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "response a 5 ack none []", "plug b 1");
	is_granted(s);
}

/* The thread is slow to move: the request is answered in time, and the offer is taken back. */
static void test_wait_ends(void **state)
{
	struct script *s = *state;

	s->now = script_vm(s, 'a')->nodes[0].due[0] - MSEC(10);
	script_expect(s, "limits b 1/2");
	assert_int_equal(script_add(s, 'b', 7, 1, 0, false), 0);
	s->now += MSEC(10);
	script_expect(s, "home a 2 @0", "limits a 2/2");
	assert_int_equal(s->wake_at, s->now + MSEC(20));
	s->now += MSEC(19);
	script_expect_nothing(s);
	s->now += MSEC(1);
	script_expect(s, "response b 7 busy capacity []", "limits b 1/1");
	/* It has arrived at last, and b is told again. */
	s->now += MSEC(100);
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "flags a 2 forced", "limits b 1/2");
}

/* The thread can not be moved at all. */
static void test_home_fails(void **state)
{
	struct script *s = *state;

	s->now = script_vm(s, 'a')->nodes[0].due[0];
	script_expect(s, "home a 2 @0", "limits a 2/2", "limits b 1/2");
	script_done(s, EBB_ACTION_HOME, 'a', 2, -EIO);
	script_expect(s, "limits b 1/1");
	s->now += SEC(1);
	script_expect(s, "home a 2 @0");
	script_done(s, EBB_ACTION_HOME, 'a', 2, 0);
	script_expect(s, "flags a 2 forced", "limits b 1/2");
}

static void test_vm_stops_while_it_waits(void **state)
{
	struct script *s = *state;

	s->now = script_vm(s, 'a')->nodes[0].due[0] - MSEC(10);
	script_expect(s, "limits b 1/2");
	assert_int_equal(script_add(s, 'b', 7, 1, 0, false), 0);
	script_expect_nothing(s);
	assert_int_equal(script_simple(s, 'b', EBB_FACT_VM_STOPPED), 0);
	script_settle(s);
	s->now += MSEC(300);
	/* Nobody needs the core any more, and a keeps it. */
	script_expect_nothing(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 3);
}

#define BEGUN(name)	cmocka_unit_test_setup_teardown(name, setup, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BEGUN(test_next_owner_asks_before_the_deadline),
		BEGUN(test_offer_overlaps_lending),
		BEGUN(test_wait_ends),
		BEGUN(test_home_fails),
		BEGUN(test_vm_stops_while_it_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
