// SPDX-License-Identifier: GPL-2.0-or-later
/* What VMs are charged for, and what counts as wasted: to the microsecond. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* Of "a" as of the last record that was looked at. */
static struct ebb_record before;

static void skip_charges(struct script *s)
{
	while (script_find_record(s, 'a', EBB_EVENT_CHARGE))
		before = s->record;
}

/* The next record of "a": so much more than before, in microseconds and milliseconds. */
static void expect_charge(struct script *s, uint64_t reserved_usec, uint64_t spot_usec,
			  uint64_t reserved_mib_msec, uint64_t spot_mib_msec)
{
	const uint64_t expected[EBB_CLASS_MAX][2] = {
		[EBB_CLASS_RESERVED] = { reserved_usec, reserved_mib_msec },
		[EBB_CLASS_SPOT] = { spot_usec, spot_mib_msec },
	};

	assert_true(script_find_record(s, 'a', EBB_EVENT_CHARGE));
	for (int k = 0; k < EBB_CLASS_MAX; k++) {
		assert_int_equal(s->record.charge[k].core_usec - before.charge[k].core_usec,
				 expected[k][0]);
		assert_int_equal(s->record.charge[k].mib_msec - before.charge[k].mib_msec,
				 expected[k][1]);
	}
	/* All of them count from the same moment. */
	assert_int_equal(s->record.at - s->record.total_usec, before.at - before.total_usec);
	before = s->record;
}

static void begin(struct script *s, enum ebb_class class, uint16_t reserved, const char *nodes)
{
	struct ebb_sla sla = script_sla(nodes);

	script_init(s, 1, 8, 1, false);
	s->can_lend = true;
	sla.class = class;
	sla.nodes[0].reserved = reserved;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_running(s, 'a', 1), 0);
	assert_int_equal(script_hello(s, 'a', true, true, 1, ""), 0);
	script_settle(s);
	ebb_state_charge_all(s->state, s->now);
	skip_charges(s);
}

static void test_cores(void **state)
{
	struct script s;

	(void)state;
	begin(&s, EBB_CLASS_RESERVED, 2, "1/4");
	/* One for a second. */
	s.now += SEC(1);
	ebb_state_charge_all(s.state, s.now);
	expect_charge(&s, SEC(1), 0, 0, 0);
	/* A core is held from the moment in which it is reserved for a request. */
	assert_int_equal(script_add(&s, 'a', 7, 3, 0, false), 0);
	script_expect(&s, "plug a 1", "plug a 2", "plug a 3");
	s.now += MSEC(10);
	for (uint16_t i = 1; i <= 3; i++)
		script_done(&s, EBB_ACTION_PLUG, 'a', i, 0);
	script_expect(&s, "place a 1 @1", "place a 2 @2", "place a 3 @3");
	for (uint16_t i = 1; i <= 3; i++)
		script_done(&s, EBB_ACTION_PLACE, 'a', i, 0);
	script_expect(&s, "response a 7 ack none [1,2,3]", "limits a 4/4");
	s.now += MSEC(90);
	/* It is until its thread has left it. */
	assert_int_equal(script_lend(&s, 'a', 8, 3, false), 0);
	script_expect(&s, "limits a 3/4", "home a 3 @0");
	s.now += 500;
	script_done(&s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(&s, "response a 8 ack none []");
	s.now += MSEC(100) - 500;
	ebb_state_charge_all(s.state, s.now);
	expect_charge(&s, 2 * MSEC(200), 2 * (MSEC(100) + 500) + MSEC(100) - 500, 0, 0);
	script_finish(&s);
}

/* Of a spot VM only the startup set is reserved; another SLA counts from then on. */
static void test_class(void **state)
{
	struct ebb_sla sla = script_sla("1/4");
	struct script s;

	(void)state;
	begin(&s, EBB_CLASS_SPOT, 1, "1/4");
	script_grow(&s, 'a', 2, 0);
	ebb_state_charge_all(s.state, s.now);
	skip_charges(&s);
	s.now += SEC(2);
	sla.class = EBB_CLASS_RESERVED;
	sla.nodes[0].reserved = 4;
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	s.now += SEC(1);
	assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
	expect_charge(&s, SEC(2) + 3 * SEC(1), 2 * SEC(2), 0, 0);
	script_finish(&s);
}

static void test_memory(void **state)
{
	struct script s;

	(void)state;
	begin(&s, EBB_CLASS_RESERVED, 1, "1/1m64-512");
	script_pool(&s, 'a', 0, 512, 100, 0);
	assert_int_equal(script_mem(&s, 'a'), 0);
	/* 333 us are less than a millisecond: they count with those that follow. */
	s.now += 333;
	ebb_state_charge_all(s.state, s.now);
	expect_charge(&s, 333, 0, 64 * 333 / 1000, 36 * 333 / 1000);
	s.now += SEC(1) - 333;
	ebb_state_charge_all(s.state, s.now);
	expect_charge(&s, SEC(1) - 333, 0, 64 * 1000 - 64 * 333 / 1000,
		      36 * 1000 - 36 * 333 / 1000);
	script_finish(&s);
}

/* By itself, so often. */
static void test_period(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 8, 1, false);
	script_finish(&s);
	s.cfg.charge_usec = SEC(60);
	s.state = ebb_state_create(&s.cfg, &s.host, s.policy);
	assert_non_null(s.state);
	script_loaded(&s);
	script_boot(&s, 'a', 1, "1/4");
	assert_true(s.wake_at <= s.now + SEC(60));
	assert_false(script_find_record(&s, 'a', EBB_EVENT_CHARGE));
	for (int i = 0; i < 3; i++) {
		s.now += SEC(60);
		script_expect_nothing(&s);
		if (i == 0)
			skip_charges(&s);
		else
			expect_charge(&s, SEC(60), 0, 0, 0);
		assert_int_equal(s.wake_at, s.now + SEC(60));
	}
	script_finish(&s);
}

static uint64_t wasted(const struct script *s)
{
	return ebb_state_node_wasted_usec(s->state, 0, s->now);
}

static void test_waste(void **state)
{
	struct script s;
	uint64_t before;

	(void)state;
	/* Eight cores; what nobody wants is not wasted. */
	begin(&s, EBB_CLASS_SPOT, 1, "1/4");
	script_grow(&s, 'a', 3, 0);
	before = wasted(&s);
	s.now += SEC(1);
	script_expect_nothing(&s);
	assert_int_equal(wasted(&s) - before, 0);
	/* Two that it gave back although it is to have them: until it takes one. */
	assert_int_equal(script_lend(&s, 'a', 8, 2, false), 0);
	assert_int_equal(script_lend(&s, 'a', 9, 3, false), 0);
	script_expect(&s, "limits a 2/4", "home a 2 @0", "home a 3 @0");
	script_done(&s, EBB_ACTION_HOME, 'a', 2, 0);
	script_done(&s, EBB_ACTION_HOME, 'a', 3, 0);
	script_expect(&s, "response a 8 ack none []", "response a 9 ack none []");
	before = wasted(&s);
	s.now += MSEC(30);
	assert_int_equal(wasted(&s) - before, 2 * MSEC(30));
	assert_int_equal(script_add(&s, 'a', 10, 1, 0, false), 0);
	script_expect(&s, "place a 2 @2");
	s.now += MSEC(5);
	assert_int_equal(wasted(&s) - before, 2 * MSEC(30) + MSEC(5));
	/* Without a driver nobody could take it. */
	assert_int_equal(script_hello(&s, 'a', false, false, 2, "1 2l 3l"), 0);
	script_settle(&s);
	before = wasted(&s);
	s.now += SEC(1);
	assert_int_equal(wasted(&s), before);
	script_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cores),
		cmocka_unit_test(test_class),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_period),
		cmocka_unit_test(test_waste),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
