// SPDX-License-Identifier: GPL-2.0-or-later
/* Guests that do harm if they can: the neighbour gets its share in time, the verdict is told. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/explain.h"
#include "tests/unit/host-agent/core/core_script.h"

#define DEADLINE_MSEC	300	/* of script_sla() */

/* "a" has taken all four cores, then "b" starts, and two are demanded. */
static void begin(struct script *s)
{
	script_init(s, 1, 4, 1, false);
	s->can_lend = true;
	script_boot(s, 'a', 1, "1/4");
	script_grow(s, 'a', 3, 0);
	script_boot(s, 'b', 2, "1/4");
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 4);
	assert_int_equal(script_vm(s, 'a')->nodes[0].num_due, 2);
}

/* "b" has its share, and can take it. */
static void expect_share(struct script *s)
{
	script_settle(s);
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 2);
	if (script_vm(s, 'b')->nodes[0].held < 2)
		script_grow(s, 'b', 1, 0);
	assert_int_equal(script_vm(s, 'b')->nodes[0].held, 2);
}

static bool is_explained(struct script *s, const char *text)
{
	struct ebb_explain e;
	bool is_said = false;

	ebb_explain_vm(s->state, script_vm(s, 'a'), s->now, &e);
	for (uint32_t i = 0; i < e.num_lines; i++)
		is_said = is_said || strstr(e.lines[i], text);
	return is_said;
}

/* This and nothing else is to be said, also in what explains the VM. */
static void expect_verdict(struct script *s, enum ebb_verdict verdict, const char *text)
{
	char said[EBB_TEXT_SIZE];

	for (int i = 0; i < EBB_VERDICT_MAX; i++)
		assert_int_equal(ebb_vm_verdict(script_vm(s, 'a'), s->now, i, said),
				 i == (int)verdict);
	assert_true(ebb_vm_verdict(script_vm(s, 'a'), s->now, verdict, said));
	assert_string_equal(said, text);
	assert_true(is_explained(s, text));
}

static void expect_good(struct script *s)
{
	for (int i = 0; i < EBB_VERDICT_MAX; i++)
		if (ebb_vm_verdict(script_vm(s, 'a'), s->now, i, NULL))
			fail_msg("%s", ebb_verdict_name(i));
}

/* The next thing that was recorded of its conduct. */
static void expect_told(struct script *s, const char *text)
{
	assert_true(script_find_record(s, 'a', EBB_EVENT_CONDUCT));
	assert_string_equal(s->record.text, text);
}

static void expect_told_nothing(struct script *s)
{
	assert_false(script_find_record(s, 'a', EBB_EVENT_CONDUCT));
}

static int setup(void **state)
{
	begin(script_new(state));
	return 0;
}

static void test_good(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(s, 'a', 51, 2, false), 0);
	expect_share(s);
	expect_good(s);
	expect_told_nothing(s);
}

static void test_silent(void **state)
{
	struct script *s = *state;

	s->now += MSEC(DEADLINE_MSEC);
	expect_share(s);
	expect_verdict(s, EBB_VERDICT_SILENT, "did not answer 2 demands");
	assert_true(script_find_record(s, 'a', EBB_EVENT_FORCE));
	assert_non_null(strstr(s->record.text, "did not answer 1 demands"));
	expect_told(s, "silent: the guest did not answer 1 demands");
	/* It does not matter how long it has been silent, nor for ever. */
	s->now += SEC(600);
	expect_good(s);
	assert_int_equal(script_cpu_times(s, 'a', ""), 0);
	expect_told(s, "silent: the guest behaves again");
}

static void test_one_before_the_deadline(void **state)
{
	struct script *s = *state;

	s->now += MSEC(DEADLINE_MSEC) - 2000;
	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	script_settle(s);
	s->now += 2000;
	expect_share(s);
	expect_verdict(s, EBB_VERDICT_PARTIAL, "gave 1 of 2 CPUs only");
	assert_true(script_find_record(s, 'a', EBB_EVENT_FORCE));
	assert_non_null(strstr(s->record.text, "gave 1 of 2 CPUs only"));
	/* A new boot has done nothing yet. */
	assert_int_equal(script_hello(s, 'a', false, true, 2, ""), 0);
	script_settle(s);
	expect_good(s);
}

/* In time, but only just, each time: nobody is forced. */
static void test_always_late(void **state)
{
	struct script *s = *state;

	s->now += MSEC(DEADLINE_MSEC) - 2000;
	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	script_settle(s);
	expect_good(s);
	assert_int_equal(script_lend(s, 'a', 51, 2, false), 0);
	script_settle(s);
	s->now += 2000;
	expect_share(s);
	assert_false(script_find_record(s, 'a', EBB_EVENT_FORCE));
	expect_verdict(s, EBB_VERDICT_LATE, "gave 2 of 2 CPUs just before the deadline");
	assert_int_equal(script_cpu_times(s, 'a', ""), 0);
	expect_told(s, "late: the guest gave 2 of 2 CPUs just before the deadline");
	s->now += SEC(600);
	expect_good(s);
}

/* The device has it as lent: the guest may run on it, but on its own home only. */
static void test_keeps_computing(void **state)
{
	struct script *s = *state;
	uint16_t vcpu = 0;

	assert_int_equal(script_cpu_times(s, 'a', "2:1000/9 3:1000/9"), 0);
	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(s, 'a', 51, 2, false), 0);
	s->now += 1000;
	expect_share(s);
	for (uint16_t i = 2; i <= 3; i++) {
		const uint16_t runs_on = script_vm(s, 'a')->vcpus[i].placed;

		assert_ptr_equal(ebb_state_thread_owner(s->state, runs_on, &vcpu),
				 script_vm(s, 'a'));
		assert_int_equal(vcpu, 0);
	}
	/* In this period it was lent most of the time, which may not be all. */
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2000/9 3:2000/9"), 0);
	expect_good(s);
	/* A core of this host is a quarter of a CPU.  Once may be by chance. */
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2250/9 3:2250/9"), 0);
	expect_good(s);
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2750/9 3:2750/9"), 0);
	expect_verdict(s, EBB_VERDICT_SQUAT,
		       "computes on lent CPUs: 80% of a CPU over the last 5 s");
	expect_told(s, "squat: the guest computes on lent CPUs: 80% of a CPU over the last 5 s");
	/* Between the bounds nothing changes; below both of them it has ended, the second time. */
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2875/9 3:2875/9"), 0);
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2885/9 3:2885/9"), 0);
	expect_verdict(s, EBB_VERDICT_SQUAT,
		       "computes on lent CPUs: 1% of a CPU over the last 5 s");
	expect_told_nothing(s);
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2895/9 3:2895/9"), 0);
	expect_good(s);
	expect_told(s, "squat: the guest behaves again");
	/* News of vCPUs that do not exist is no news. */
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2895/9 9:0/0"), -EINVAL);
}

/* What a kernel does on every CPU is no misdeed, however many of them are lent. */
static void test_idles(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 8, 1, false);
	s.can_lend = true;
	script_boot(&s, 'a', 1, "1/8");
	script_grow(&s, 'a', 7, 0);
	for (uint16_t i = 1; i < 8; i++)
		assert_int_equal(script_lend(&s, 'a', 50 + i, i, i == 7), 0);
	script_settle(&s);
	for (unsigned i = 1; i < 10; i++) {
		char times[128] = "";

		s.now += SEC(5);
		for (unsigned v = 1; v < 8; v++)
			snprintf(times + strlen(times), sizeof(times) - strlen(times),
				 "%u:%u/%u ", v, 40 * i, v == 7 ? 5 * i : 500 * i);
		assert_int_equal(script_cpu_times(&s, 'a', times), 0);
		expect_good(&s);
		/* Too soon to say anything, whatever it is. */
		s.now += MSEC(10);
		assert_int_equal(script_cpu_times(&s, 'a', "1:99999/99999 2:99999/99999"), 0);
	}
	expect_told_nothing(&s);
	script_finish(&s);
}

static void test_starts_parked(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 50, 3, true), 0);
	assert_int_equal(script_lend(s, 'a', 51, 2, true), 0);
	script_settle(s);
	s->now += SEC(1);
	assert_int_equal(script_cpu_times(s, 'a', "2:0/40 3:0/40"), 0);
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:1/50 3:1/70"), 0);
	expect_good(s);
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2/60 3:2/170"), 0);
	expect_verdict(s, EBB_VERDICT_WAKE,
		       "tries to start parked CPUs: they were woken up to 22 times a second");
	expect_told(s, "wake: the guest tries to start parked CPUs: they were woken up to 22 "
			"times a second");
	/* The worst counts. */
	s->now += SEC(5);
	assert_int_equal(script_cpu_times(s, 'a', "2:2/60 3:2/220"), 0);
	expect_verdict(s, EBB_VERDICT_WAKE,
		       "tries to start parked CPUs: they were woken up to 22 times a second");
	s->now += SEC(60);
	expect_good(s);
}

static void test_asks_again(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(s, 'a', 51, 2, false), 0);
	script_settle(s);
	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(script_add(s, 'a', 60 + i, 1, 0, true), 0);
		s->now += MSEC(10);
		script_settle(s);
	}
	expect_share(s);
	assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
	expect_verdict(s, EBB_VERDICT_REASK, "asked 4 times at once for what it had given back");
}

static void test_alternates(void **state)
{
	struct script *s = *state;

	assert_int_equal(script_lend(s, 'a', 50, 3, false), 0);
	assert_int_equal(script_lend(s, 'a', 51, 2, false), 0);
	expect_share(s);
	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(script_lend(s, 'a', 100 + i, 1, false), 0);
		script_settle(s);
		assert_int_equal(script_vm(s, 'a')->nodes[0].held, 1);
		assert_int_equal(script_vm(s, 'b')->nodes[0].held, 2);
		assert_int_equal(script_add(s, 'a', 200 + i, 1, 0, false), 0);
		script_settle(s);
		assert_int_equal(script_vm(s, 'a')->nodes[0].held, 2);
		s->now += MSEC(50);
	}
	assert_int_equal(script_vm(s, 'b')->nodes[0].limit, 2);
	expect_verdict(s, EBB_VERDICT_FLAP,
		       "takes CPUs and gives them back at once: up to 20 within 10 s");
	expect_told(s, "flap: the guest takes CPUs and gives them back at once: up to 20 within "
			"10 s");
	s->now += SEC(60);
	expect_good(s);
}

/* Every second: that is what an engine does that follows its load. */
static void test_follows_its_load(void **state)
{
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	s.can_lend = true;
	script_boot(&s, 'a', 1, "1/4");
	for (uint64_t i = 0; i < 60; i++) {
		script_grow(&s, 'a', 3, 0);
		s.now += MSEC(500);
		for (uint16_t v = 1; v < 4; v++)
			assert_int_equal(script_lend(&s, 'a', 1000 + 10 * i + v, v, false), 0);
		script_settle(&s);
		s.now += MSEC(500);
	}
	expect_good(&s);
	expect_told_nothing(&s);
	script_finish(&s);
}

static void test_flood(void **state)
{
	struct script *s = *state;

	for (uint64_t i = 0; i < 120; i++) {
		assert_int_equal(script_add(s, 'a', 1000 + i, 8, 0, true), 0);
		s->now += MSEC(2);
		script_settle(s);
	}
	/* With the one of begin(). */
	expect_verdict(s, EBB_VERDICT_FLOOD, "floods: up to 121 requests within a second");
	/* Said once, when it began. */
	expect_told(s, "flood: the guest floods: up to 50 requests within a second");
	expect_told_nothing(s);
	s->now += MSEC(DEADLINE_MSEC);
	expect_share(s);
	assert_true(is_explained(s, "the guest did not answer 2 demands"));
	assert_true(is_explained(s, "the guest floods: up to 121 requests within a second"));
	s->now += SEC(60);
	expect_verdict(s, EBB_VERDICT_SILENT, "did not answer 2 demands");
}

static bool is_gathered(enum ebb_event event)
{
	return event == EBB_EVENT_REQUEST || event == EBB_EVENT_REFUSE;
}

/* A flood leaves few records; all that moved a core is among them, and nobody else loses any. */
static void test_flood_is_gathered(void **state)
{
	uint32_t recorded = 0, grants = 0, lends = 0;
	unsigned more_requests = 0, more_refusals = 0, n, m;
	struct ebb_record r;
	struct script s;

	(void)state;
	script_init(&s, 1, 4, 1, false);
	s.can_lend = true;
	script_boot(&s, 'a', 1, "1/2");
	script_boot(&s, 'b', 2, "1/2");
	while (ebb_state_record_pop(s.state, &r))
		;
	/* Of each ten requests, nine ask for too much. */
	for (uint64_t i = 0; i < 1000; i++) {
		assert_int_equal(script_add(&s, 'a', 10000 + i, 1, i % 10 == 0 ? 0 : 9, true), 0);
		script_settle(&s);
		if (i % 10 == 0) {
			assert_int_equal(script_lend(&s, 'a', 90000 + i, 1, false), 0);
			script_settle(&s);
		}
		s.now += MSEC(1);
	}
	assert_int_equal(script_add(&s, 'b', 1, 1, 9, true), 0);
	script_settle(&s);
	s.now += SEC(1);
	script_settle(&s);
	while (ebb_state_record_pop(s.state, &r)) {
		if (r.name[0] == 'b') {
			recorded += 1000 * is_gathered(r.event);
			continue;
		}
		grants += r.event == EBB_EVENT_GRANT;
		lends += r.event == EBB_EVENT_LEND;
		if (!is_gathered(r.event))
			continue;
		if (sscanf(r.text, "%u more requests for CPUs and %u more refusals", &n, &m) == 2) {
			more_requests += n;
			more_refusals += m;
			assert_non_null(strstr(r.text, "the last because of: node"));
		} else {
			recorded++;
		}
	}
	assert_int_equal(grants, 100);
	assert_int_equal(lends, 100);
	/* Those of "b", and twenty of "a" in each of two seconds, since carrying out takes time. */
	assert_int_equal(recorded, 2000 + 40);
	assert_int_equal(more_requests + more_refusals, 1000 + 900 - 40);
	script_finish(&s);
}

/* What was counted is told when the second is over, though nothing happens then, or the VM ends. */
static void test_gathered_is_told(void **state)
{
	struct ebb_record r;
	struct script s;

	(void)state;
	for (int stops = 0; stops < 2; stops++) {
		bool is_told = false;

		script_init(&s, 1, 4, 1, false);
		script_boot(&s, 'a', 1, "1/2");
		for (uint64_t i = 0; i < 30; i++) {
			assert_int_equal(script_add(&s, 'a', 100 + i, 1, 9, true), 0);
			script_settle(&s);
		}
		script_expect_nothing(&s);
		assert_true(s.wake_at <= s.now + SEC(1));
		while (ebb_state_record_pop(s.state, &r))
			assert_null(strstr(r.text, "more requests"));
		if (stops) {
			assert_int_equal(script_simple(&s, 'a', EBB_FACT_VM_STOPPED), 0);
		} else {
			s.now = s.wake_at;
			script_settle(&s);
		}
		while (ebb_state_record_pop(s.state, &r))
			is_told |= strstr(r.text, "20 more requests for CPUs and 20 more refusals")
				   != NULL;
		assert_true(is_told);
		script_finish(&s);
	}
}

static void boot_alone(struct script *s, char vm, uint64_t order, bool is_shared)
{
	struct ebb_sla sla = script_sla("1/1");

	sla.is_shared = is_shared;
	assert_int_equal(script_define(s, vm, &sla), 0);
	assert_int_equal(script_running(s, vm, order), 0);
	script_settle(s);
	assert_int_equal(script_cpu_times(s, vm, "0:0/0"), 0);
}

static usec_t time_of(const struct script *s, char vm)
{
	return script_vm(s, vm)->vcpu_times[0].at;
}

/* Of VMs that share cores times count that are an eighth of their window apart; else a second. */
static void test_times_of_shared(void **state)
{
	struct script s;
	usec_t begin;

	(void)state;
	script_init(&s, 1, 2, 1, false);
	ebb_state_destroy(s.state);
	s.host.cores[1].is_shared = true;
	s.cfg.pressure.hot_window_s = 2;
	s.state = ebb_state_create(&s.cfg, &s.host, s.policy);
	script_loaded(&s);
	boot_alone(&s, 'a', 1, false);
	boot_alone(&s, 'b', 2, true);
	begin = time_of(&s, 'a');
	for (unsigned i = 1; i <= 4; i++) {
		s.now += MSEC(250);
		assert_int_equal(script_cpu_times(&s, 'a', "0:100/0"), 0);
		assert_int_equal(script_cpu_times(&s, 'b', "0:100/0"), 0);
		assert_int_equal(time_of(&s, 'a'), i < 4 ? begin : s.now);
		assert_int_equal(time_of(&s, 'b'), s.now);
	}
	s.now += MSEC(240);
	assert_int_equal(script_cpu_times(&s, 'b', "0:100/0"), 0);
	assert_int_equal(time_of(&s, 'b'), s.now - MSEC(240));
	script_finish(&s);
}

#define BEGUN(name)	cmocka_unit_test_setup_teardown(name, setup, script_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BEGUN(test_good),
		BEGUN(test_silent),
		BEGUN(test_one_before_the_deadline),
		BEGUN(test_always_late),
		BEGUN(test_keeps_computing),
		cmocka_unit_test(test_idles),
		BEGUN(test_starts_parked),
		BEGUN(test_asks_again),
		BEGUN(test_alternates),
		cmocka_unit_test(test_follows_its_load),
		BEGUN(test_flood),
		cmocka_unit_test(test_flood_is_gathered),
		cmocka_unit_test(test_gathered_is_told),
		cmocka_unit_test(test_times_of_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
