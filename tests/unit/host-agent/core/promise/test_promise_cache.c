// SPDX-License-Identifier: GPL-2.0-or-later
/* Whether the promise of a cache was kept, and who had the memory where it was not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/promise/cache.h"
#include "tests/unit/host-agent/core/core_script.h"

/* ---- arithmetic ------------------------------------------------------------ */

static uint64_t owed;
static struct promise_outcome out;

static void reckon(enum ebb_relio_verdict verdict, uint64_t baseline, uint64_t actual)
{
	const struct ebb_relio_interval i = {
		.length = SEC(1), .baseline = baseline, .actual = actual, .accesses = 5000,
	};

	promise_reckon_cache(&i, verdict, &owed, &out);
}

static void test_kept_and_broken(void **state)
{
	(void)state;
	owed = 0;
	reckon(EBB_RELIO_GOOD, 1000, 400);
	assert_int_equal(out.promised, 1000);
	assert_int_equal(out.got, 400);
	assert_int_equal(out.wanted, 5000);
	assert_int_equal(out.violated, 0);
	/* Fewer I/Os before excuse nothing. */
	reckon(EBB_RELIO_GOOD, 1000, 1100);
	assert_int_equal(out.violated, 100);
	assert_int_equal(owed, 0);
	/* Idle. */
	reckon(EBB_RELIO_GOOD, 0, 0);
	assert_int_equal(out.violated, 0);
}

static void test_chance_adds_up(void **state)
{
	(void)state;
	owed = 0;
	/* 36 may be chance, 72 are not. */
	reckon(EBB_RELIO_GOOD, 1000, 1036);
	assert_int_equal(out.violated, 0);
	assert_int_equal(owed, 36);
	reckon(EBB_RELIO_GOOD, 1000, 1036);
	assert_int_equal(out.violated, 72);
	/* What goes up and down around the promise breaks it never. */
	for (int n = 0; n < 100; n++) {
		reckon(EBB_RELIO_GOOD, 1000, n % 2 ? 970 : 1030);
		assert_int_equal(out.violated, 0);
	}
	/* A debt is no fault of an interval that kept its promise. */
	owed = 1000;
	reckon(EBB_RELIO_GOOD, 100, 100);
	assert_int_equal(out.violated, 0);
}

static void test_unclear(void **state)
{
	(void)state;
	owed = 20;
	reckon(EBB_RELIO_DOUBTED, 10, 1000);
	assert_int_equal(out.unclear, 1000);
	assert_int_equal(out.violated + out.promised + out.got, 0);
	assert_int_equal(owed, 0);
	reckon(EBB_RELIO_DOUBTED, 10, 0);
	assert_int_equal(out.unclear, 1);
}

/* ---- the core --------------------------------------------------------------- */

static int setup(void **state)
{
	script_setup(state);
	((struct script *)*state)->can_baseline = true;
	return 0;
}

static void settle(struct script *s)
{
	for (int i = 0; i < 8; i++) {
		script_settle(s);
		for (char vm = 'a'; vm < 'c'; vm++)
			if (script_vm(s, vm))
				script_took(s, vm);
	}
}

static void boot(struct script *s, char vm, uint32_t promised_mib, uint32_t held_mib)
{
	struct ebb_fact fact = { .type = EBB_FACT_SLA_SET };

	script_boot(s, vm, (uint64_t)vm, "1/1m0-1024");
	memcpy(fact.uuid, script_vm(s, vm)->uuid, sizeof(fact.uuid));
	fact.u.sla_set = script_vm(s, vm)->sla;
	fact.u.sla_set.reserve_mem_mib = promised_mib;
	assert_int_equal(ebb_state_report(s->state, s->now, &fact), 0);
	settle(s);
	script_holds(s, vm, held_mib);
	settle(s);
	while (script_find_record(s, vm, EBB_EVENT_LEDGER))
		;
}

static const struct ebb_ledger *sum_of(const struct script *s, char vm)
{
	return &script_vm(s, vm)->promised_cache.sum;
}

static void say(struct script *s, char vm, uint64_t baseline, uint64_t actual)
{
	const struct ebb_telemetry *t = &script_vm(s, vm)->telemetry;

	s->now += SEC(1);
	assert_int_equal(script_baseline(s, vm, script_vm(s, vm)->floor.promised_mib,
					 t->baseline_ios + baseline, t->actual_ios + actual), 0);
}

static void expect_record(struct script *s, char vm, enum ebb_cause cause, const char *words)
{
	const struct ebb_record *r = &s->record;

	assert_true(script_find_record(s, vm, EBB_EVENT_LEDGER));
	assert_int_equal(r->ledger.promise, EBB_PROMISE_MEM);
	assert_int_equal(r->ledger.rate, script_vm(s, vm)->floor.promised_mib);
	assert_memory_equal(&r->ledger.sum, sum_of(s, vm), sizeof(r->ledger.sum));
	if (r->code != cause || !strstr(r->text, words))
		fail_msg("%s: \"%s\"", ebb_cause_name((enum ebb_cause)r->code), r->text);
	assert_false(script_find_record(s, vm, EBB_EVENT_LEDGER));
}

static void test_records(void **state)
{
	struct script *s = *state;

	boot(s, 'a', 0, 0);
	boot(s, 'b', 0, 0);
	say(s, 'b', 0, 0);
	say(s, 'b', 10, 1000);
	assert_int_equal(sum_of(s, 'b')->num_intervals, 0);
	boot(s, 'c', 400, 200);
	/* The first reading is the begin of the first interval. */
	say(s, 'c', 5000, 0);
	assert_int_equal(sum_of(s, 'c')->num_intervals, 0);
	say(s, 'c', 1000, 900);
	expect_record(s, 'c', EBB_CAUSE_NONE, "");
	assert_int_equal(sum_of(s, 'c')->metered_usec, SEC(1));
	assert_int_equal(sum_of(s, 'c')->promised, 1000);
	assert_int_equal(sum_of(s, 'c')->got, 900);
	/* Reports that come more often make no more intervals. */
	s->now += MSEC(100);
	assert_int_equal(script_baseline(s, 'c', 400, 6000, 900), 0);
	assert_false(script_find_record(s, 'c', EBB_EVENT_LEDGER));
}

static void test_reasons(void **state)
{
	struct script *s = *state;

	boot(s, 'b', 0, 1024);
	boot(s, 'a', 400, 300);
	say(s, 'a', 0, 0);
	/* It waits for what b gives back. */
	assert_true(script_vm(s, 'a')->pools[0].limit <= 150);
	say(s, 'a', 1000, 2000);
	expect_record(s, 'a', EBB_CAUSE_OTHERS, "it held 300 of 400 MiB; above their floors: b");
	assert_int_equal(sum_of(s, 'a')->violated, 1000);
	assert_int_equal(sum_of(s, 'a')->num_violations, 1);
	/* As much as was promised. */
	script_pool(s, 'a', 0, 400, 400, 0);
	assert_int_equal(script_mem(s, 'a'), 0);
	say(s, 'a', 1000, 2000);
	expect_record(s, 'a', EBB_CAUSE_ITSELF, "it held 400 of 400 MiB");
}

static void test_not_taken(void **state)
{
	struct script *s = *state;

	boot(s, 'a', 400, 100);
	say(s, 'a', 0, 0);
	say(s, 'a', 1000, 2000);
	expect_record(s, 'a', EBB_CAUSE_ITSELF, "it held 100 of 400 MiB");
}

/* It is told once, counts as unclear, and the other VM's promise is as before. */
static void test_liar(void **state)
{
	struct script *s = *state;

	boot(s, 'a', 400, 400);
	boot(s, 'b', 400, 400);
	say(s, 'a', 0, 0);
	say(s, 'b', 0, 0);
	say(s, 'a', 0, 1ull << 50);
	expect_record(s, 'a', EBB_CAUSE_NONE, "");
	assert_int_equal(sum_of(s, 'a')->num_unclear, 1);
	assert_int_equal(sum_of(s, 'a')->num_violations, 0);
	/* Counters that go back. */
	s->now += SEC(1);
	assert_int_equal(script_baseline(s, 'a', 400, 0, 0), 0);
	expect_record(s, 'a', EBB_CAUSE_NONE, "");
	assert_int_equal(sum_of(s, 'a')->num_unclear, 2);
	say(s, 'b', 100, 90);
	expect_record(s, 'b', EBB_CAUSE_NONE, "");
	assert_int_equal(sum_of(s, 'b')->num_unclear, 0);
	assert_int_equal(script_vm(s, 'b')->floor.keep[0] * EBB_BLOCK_MIB, 400);
	/* After a minute without, one second of which b took, it is believed again. */
	for (int n = 0; n < 70; n++)
		say(s, 'a', 10, 10);
	assert_int_equal(sum_of(s, 'a')->num_unclear, 2 + 58);
	assert_int_equal(sum_of(s, 'a')->num_intervals, 2 + 70);
}

/* A guest that has rebooted counts from 0, and that is no lie. */
static void test_reboot(void **state)
{
	struct script *s = *state;

	boot(s, 'a', 400, 0);
	say(s, 'a', 1000, 1000);
	say(s, 'a', 10, 10);
	assert_int_equal(script_hello(s, 'a', false, true, 7, ""), 0);
	s->now += SEC(1);
	assert_int_equal(script_baseline(s, 'a', 400, 1, 1), 0);
	say(s, 'a', 10, 10);
	assert_int_equal(sum_of(s, 'a')->num_unclear, 0);
	assert_int_equal(sum_of(s, 'a')->num_intervals, 2);
}

int main(void)
{
#define CASE(test)	cmocka_unit_test_setup_teardown(test, setup, script_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_and_broken),
		cmocka_unit_test(test_chance_adds_up),
		cmocka_unit_test(test_unclear),
		CASE(test_records),
		CASE(test_reasons),
		CASE(test_not_taken),
		CASE(test_liar),
		CASE(test_reboot),
	};

	return cmocka_run_group_tests_name("promise_cache", tests, NULL, NULL);
}
