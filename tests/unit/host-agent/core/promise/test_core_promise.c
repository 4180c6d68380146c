// SPDX-License-Identifier: GPL-2.0-or-later
/* Promises of CPU time to VMs on shared cores: intervals, records, and who got it instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/host-agent/core/core_script.h"

/* Two vCPUs of each VM, and what their threads have counted; ms. */
struct promising {
	struct script s;
	unsigned ran[26][2], waited[26][2];
};

/* Cores 1 and 2 are shared; an emulated one has its quota once in a period. */
static void begin_with(struct promising *p, bool is_emulated, usec_t period)
{
	struct script *s = &p->s;

	*p = (struct promising){ 0 };
	script_init_loading(s, 1, 3, 1, false);
	script_finish(s);
	s->host.is_emulated = is_emulated;
	s->host.period_usec = (uint32_t)period;
	s->host.cores[1].is_shared = s->host.cores[2].is_shared = true;
	/* A look at the places of vCPUs would move them. */
	s->cfg.pressure.hot_window_s = EBB_PRESSURE_S_MAX;
	/* Nearly twice what the cores have may be promised. */
	s->cfg.promise.overbook_percent = 190;
	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
	script_loaded(s);
}

static void begin(struct promising *p, bool is_emulated)
{
	begin_with(p, is_emulated, 0);
}

static struct ebb_sla sla_of(uint32_t reserve_percent)
{
	struct ebb_sla sla = script_sla("2/2");

	sla.is_shared = true;
	sla.reserve_percent = reserve_percent;
	return sla;
}

/* Its vCPUs are on these shared cores. */
static void add_vm(struct promising *p, char vm, uint32_t reserve_percent, const char *places)
{
	struct ebb_sla sla = sla_of(reserve_percent);

	assert_int_equal(script_define(&p->s, vm, &sla), 0);
	assert_int_equal(script_found(&p->s, vm, (uint64_t)vm, p->s.now, places), 0);
	script_settle(&p->s);
}

static void count(struct promising *p, char vm, int vcpu, unsigned ran, unsigned waited)
{
	p->ran[vm - 'a'][vcpu] += ran;
	p->waited[vm - 'a'][vcpu] += waited;
}

static void read_vm(struct promising *p, char vm)
{
	const int i = vm - 'a';
	char text[64];

	snprintf(text, sizeof(text), "0:%u/0+%u 1:%u/0+%u", p->ran[i][0], p->waited[i][0],
		 p->ran[i][1], p->waited[i][1]);
	assert_int_equal(script_cpu_times(&p->s, vm, text), 0);
}

/* A second has passed: all are read, "a" last, as it is judged. */
static void pass(struct promising *p, const char *vms)
{
	p->s.now += SEC(1);
	for (size_t i = strlen(vms); i > 0; i--)
		read_vm(p, vms[i - 1]);
}

static const struct ebb_ledger *sum_of(struct promising *p, char vm)
{
	return &script_vm(&p->s, vm)->promise.sum;
}

/* The next record is as the VM's counters are, with this cause and these words. */
static void expect_record(struct promising *p, char vm, enum ebb_cause cause, const char *words)
{
	const struct ebb_record *r = &p->s.record;

	assert_true(script_find_record(&p->s, vm, EBB_EVENT_LEDGER));
	assert_memory_equal(&r->ledger.sum, sum_of(p, vm), sizeof(r->ledger.sum));
	assert_int_equal(r->ledger.promise, EBB_PROMISE_CPU);
	if (r->code != cause || !strstr(r->text, words))
		fail_msg("%s: \"%s\"", ebb_cause_name((enum ebb_cause)r->code), r->text);
	if (cause == EBB_CAUSE_NONE)
		assert_string_equal(r->text, "");
}

/* Two cores have no 380 per cent of a core to promise: something is left to VMs without. */
static void test_refused(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 190, "0@1 1@2");
	add_vm(&p, 'b', 190, "0@1 1@2");
	pass(&p, "ab");
	count(&p, 'a', 0, 500, 500);
	count(&p, 'b', 0, 100, 900);
	pass(&p, "ab");
	assert_int_equal(sum_of(&p, 'a')->num_intervals, 1);
	assert_int_equal(sum_of(&p, 'b')->num_intervals, 0);
	script_finish(&p.s);
}

static void test_kept_and_broken(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 50, "0@1 1@2");
	add_vm(&p, 'b', 0, "0@1 1@2");
	pass(&p, "ab");
	assert_false(script_find_record(&p.s, 'a', EBB_EVENT_LEDGER));
	count(&p, 'a', 0, 500, 500);
	count(&p, 'b', 0, 500, 500);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	assert_int_equal(p.s.record.ledger.rate, 500000);
	assert_int_equal(p.s.record.total_usec, SEC(1));
	count(&p, 'a', 0, 300, 700);
	count(&p, 'b', 0, 700, 300);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_OTHERS,
		      "it waited 700 ms: b 700 ms, itself 0 ms, the host 0 ms");
	assert_int_equal(p.s.record.total_usec, SEC(2));
	assert_int_equal(sum_of(&p, 'a')->wanted, SEC(2));
	assert_int_equal(sum_of(&p, 'a')->promised, SEC(1));
	assert_int_equal(sum_of(&p, 'a')->got, MSEC(800));
	assert_int_equal(sum_of(&p, 'a')->violated, MSEC(200));
	assert_int_equal(sum_of(&p, 'a')->num_violations, 1);
	/* Nothing is promised to b, and nothing is metered. */
	assert_false(script_find_record(&p.s, 'b', EBB_EVENT_LEDGER));
	assert_int_equal(sum_of(&p, 'b')->num_intervals, 0);
	script_finish(&p.s);
}

static void test_idle(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 190, "0@1 1@2");
	add_vm(&p, 'b', 0, "0@1 1@2");
	pass(&p, "ab");
	for (unsigned i = 0; i < 20; i++) {
		count(&p, 'a', 0, i % 2 ? 7 * i : 0, 0);
		count(&p, 'b', 0, 1000 - 7 * i, 0);
		pass(&p, "ab");
		expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	}
	assert_int_equal(sum_of(&p, 'a')->num_intervals, 20);
	assert_int_equal(sum_of(&p, 'a')->num_violations, 0);
	assert_int_equal(sum_of(&p, 'a')->violated, 0);
	script_finish(&p.s);
}

static void test_causes(void **state)
{
	struct ebb_sla sla = sla_of(50);
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 50, "0@1 1@1");
	add_vm(&p, 'b', 0, "0@1 1@2");
	pass(&p, "ab");
	/* Nobody of ours ran, but for a tenth. */
	count(&p, 'a', 0, 200, 800);
	count(&p, 'b', 0, 80, 0);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_HOST, "800 ms: b 80 ms, itself 0 ms, the host 720 ms");
	/* On another core b takes nothing away. */
	count(&p, 'a', 0, 200, 800);
	count(&p, 'b', 1, 1000, 0);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_HOST, "800 ms: itself 0 ms, the host 800 ms");
	/* While a had no work b took nothing from it, however much it got. */
	count(&p, 'a', 0, 100, 300);
	count(&p, 'b', 0, 900, 0);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_OTHERS, "300 ms: b 300 ms, itself 0 ms, the host 0 ms");
	/* As if a look at its cores had throttled it. */
	((struct ebb_vm *)script_vm(&p.s, 'a'))->share.throttled = 200;
	count(&p, 'a', 0, 200, 800);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_LIMIT, "its limit 800 ms");
	((struct ebb_vm *)script_vm(&p.s, 'a'))->share.throttled = 0;
	/* It got its own maximum, and would have got no more if it had always had work. */
	sla.max_percent = sla.reserve_percent = 20;
	assert_int_equal(script_define(&p.s, 'a', &sla), 0);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	count(&p, 'a', 0, 90, 900);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_HOST, "the host 900 ms");
	count(&p, 'a', 0, 185, 815);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_LIMIT, "its limit 815 ms");
	script_finish(&p.s);
}

/* Each vCPU of a VM waits for the other: both on one core can not get 1.9 of it. */
static void test_itself(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 190, "0@1 1@1");
	pass(&p, "a");
	count(&p, 'a', 0, 500, 500);
	count(&p, 'a', 1, 500, 500);
	pass(&p, "a");
	expect_record(&p, 'a', EBB_CAUSE_ITSELF, "1000 ms: itself 1000 ms, the host 0 ms");
	assert_int_equal(sum_of(&p, 'a')->violated, MSEC(900));
	script_finish(&p.s);
}

static void test_overbooked(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 150, "0@1 1@2");
	add_vm(&p, 'b', 90, "0@1 1@2");
	pass(&p, "ab");
	for (int k = 0; k < 2; k++) {
		count(&p, 'a', k, 600, 400);
		count(&p, 'b', k, 400, 600);
	}
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_OVERBOOKED, "; 240% promised of 200%");
	script_finish(&p.s);
}

/* On an emulated host cores are a quarter of a CPU: who runs pauses, and waits for nobody. */
static void test_emulated(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, true);
	add_vm(&p, 'a', 80, "0@1 1@2");
	add_vm(&p, 'b', 0, "0@1 1@2");
	pass(&p, "ab");
	count(&p, 'a', 0, 200, 800);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	assert_int_equal(p.s.record.ledger.rate, 200000);
	count(&p, 'a', 0, 125, 875);
	count(&p, 'b', 0, 125, 875);
	pass(&p, "ab");
	expect_record(&p, 'a', EBB_CAUSE_OTHERS, "500 ms: b 500 ms");
	assert_int_equal(sum_of(&p, 'a')->violated, MSEC(75));
	script_finish(&p.s);
}

/* An interval may hold a piece of a period that has little of what the period gives. */
static void test_periods(void **state)
{
	static const unsigned ran[] = { 150, 250, 150, 150, 250 };
	struct promising p;

	(void)state;
	begin_with(&p, true, MSEC(500));
	add_vm(&p, 'a', 80, "0@1 1@2");
	add_vm(&p, 'b', 0, "0@1 1@2");
	pass(&p, "ab");
	for (int i = 0; i < 5; i++) {
		count(&p, 'a', 0, ran[i], 1000 - ran[i]);
		pass(&p, "ab");
		assert_int_equal(sum_of(&p, 'a')->num_violations, i >= 3);
		assert_int_equal(sum_of(&p, 'a')->violated, i >= 3 ? MSEC(50) : 0);
	}
	assert_int_equal(sum_of(&p, 'a')->promised, SEC(1));
	script_finish(&p.s);
}

/* A reading that comes soon ends no interval; one that is missing makes the next one longer. */
static void test_readings(void **state)
{
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 50, "0@1 1@2");
	pass(&p, "a");
	p.s.now += MSEC(800);
	read_vm(&p, 'a');
	assert_false(script_find_record(&p.s, 'a', EBB_EVENT_LEDGER));
	p.s.now += MSEC(100);
	read_vm(&p, 'a');
	expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	count(&p, 'a', 0, 900, 1600);
	p.s.now += MSEC(2500);
	read_vm(&p, 'a');
	expect_record(&p, 'a', EBB_CAUSE_HOST, "1600 ms");
	assert_int_equal(sum_of(&p, 'a')->metered_usec, MSEC(3400));
	assert_int_equal(sum_of(&p, 'a')->violated, MSEC(350));
	/* A new thread counts from 0, and a new run of the VM, too. */
	p.ran[0][0] = p.waited[0][0] = 0;
	pass(&p, "a");
	expect_record(&p, 'a', EBB_CAUSE_NONE, "");
	assert_int_equal(sum_of(&p, 'a')->got, MSEC(900));
	assert_int_equal(script_simple(&p.s, 'a', EBB_FACT_VM_STOPPED), 0);
	assert_int_equal(script_found(&p.s, 'a', 200, p.s.now, "0@1 1@2"), 0);
	assert_int_equal(sum_of(&p, 'a')->num_intervals, 0);
	script_finish(&p.s);
}

/* While the promise changes, the lower one counts; without one nothing does. */
static void test_changes(void **state)
{
	static const uint32_t percent[] = { 80, 40, 0, 70 };
	struct promising p;

	(void)state;
	begin(&p, false);
	add_vm(&p, 'a', 20, "0@1 1@2");
	pass(&p, "a");
	for (size_t i = 0; i < 4; i++) {
		struct ebb_sla sla = sla_of(percent[i]);

		assert_int_equal(script_define(&p.s, 'a', &sla), 0);
		count(&p, 'a', 0, 100, 900);
		pass(&p, "a");
	}
	count(&p, 'a', 0, 100, 900);
	pass(&p, "a");
	assert_int_equal(sum_of(&p, 'a')->num_intervals, 3);
	assert_int_equal(sum_of(&p, 'a')->promised, MSEC(200 + 400 + 700));
	assert_int_equal(sum_of(&p, 'a')->violated, MSEC(100 + 300 + 600));
	script_finish(&p.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_and_broken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_itself),
		cmocka_unit_test(test_overbooked),
		cmocka_unit_test(test_emulated),
		cmocka_unit_test(test_periods),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_changes),
	};

	return cmocka_run_group_tests_name("core: promises", tests, NULL, NULL);
}
