// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The clock that stands still while nobody runs transactions, and what a pause says while it lasts:
 * by themselves, and in an engine whose records are judged by them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/src/base/clock.h"
#include "oltp-engine/src/memory/idle.h"
#include "oltp-engine/src/memory/manager.h"
#include "oltp_memory_rig.h"
#include "recency_members.h"
#include "tests/lib/chance.h"

#define SEC		1000000000ull
#define TICK		20000000ull
#define RECORDS		400u

static void test_pauses(void **state)
{
	struct idle idle;

	(void)state;
	idle_init(&idle, IDLE_NEVER, 7, 100 * SEC);
	/* Ten seconds are given. */
	assert_int_equal(idle_look(&idle, 7, false, 110 * SEC), 110 * SEC);
	assert_int_equal(idle_now(&idle, 110 * SEC + 1), 110 * SEC);
	for (uint64_t s = 111; s <= 200; s++)
		assert_int_equal(idle_look(&idle, 7, false, s * SEC), 110 * SEC);
	/* It goes on where it stood, with the time between the two looks. */
	assert_int_equal(idle_look(&idle, 8, false, 200 * SEC + TICK), 110 * SEC + TICK);
	assert_int_equal(idle_now(&idle, 200 * SEC + 2 * TICK), 110 * SEC + 2 * TICK);
	/* Counters that are those of fewer workers are news like any other. */
	assert_int_equal(idle_look(&idle, 3, false, 201 * SEC), 111 * SEC);
	assert_int_equal(idle_look(&idle, 3, false, 220 * SEC), 121 * SEC);
	/* A transaction that takes long is no pause. */
	assert_int_equal(idle_look(&idle, 3, true, 220 * SEC + TICK), 121 * SEC + TICK);
	assert_int_equal(idle_look(&idle, 3, true, 300 * SEC), 201 * SEC);
	/* Something every ten seconds: nothing is left out. */
	for (uint64_t i = 1; i <= 100; i++)
		assert_int_equal(idle_look(&idle, 3 + i, false, (300 + 10 * i) * SEC),
				 (201 + 10 * i) * SEC);
}

static bool is_near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

/* The less the longer it lasts; once it is over, all. */
static void test_less_is_expected(void **state)
{
	struct idle idle;

	(void)state;
	idle_init(&idle, 60000, 7, 100 * SEC);
	assert_true(is_near(idle_expected(&idle, 100 * SEC), 1));
	assert_true(is_near(idle_expected(&idle, 115 * SEC), sqrt(60.0 / 105)));
	assert_true(is_near(idle_expected(&idle, 160 * SEC), 0.5));
	idle_look(&idle, 7, false, 160 * SEC);
	assert_true(is_near(idle_expected(&idle, 160 * SEC), 0.5));
	assert_true(is_near(idle_expected(&idle, 400 * SEC), 0.25));
	assert_true(is_near(idle_expected(&idle, 220 * SEC), sqrt(1.0 / 7)));
	idle_look(&idle, 8, false, 220 * SEC);
	assert_true(is_near(idle_expected(&idle, 220 * SEC), 1));
	/* The next one begins anew; a transaction that takes long is none. */
	assert_true(is_near(idle_expected(&idle, 280 * SEC), 0.5));
	idle_look(&idle, 8, true, 280 * SEC);
	assert_true(is_near(idle_expected(&idle, 280 * SEC), 1));
	/* Somebody looked after this was read. */
	assert_true(is_near(idle_expected(&idle, 279 * SEC), 1));
	idle_init(&idle, IDLE_NEVER, 7, 100 * SEC);
	assert_true(is_near(idle_expected(&idle, 100000 * SEC), 1));
}

static void test_never_back(void **state)
{
	uint64_t random = 1, now_ns = 5, activity = 0, last = now_ns, count = 0;
	struct idle idle;

	(void)state;
	idle_init(&idle, IDLE_HALF_MS, activity, now_ns);
	for (int i = 0; i < 100000; i++) {
		uint64_t step, clock, seen;

		chance_step(&random);
		step = random >> 33 & 1 ? TICK : (random >> 40) * 2000;
		now_ns += step;
		seen = idle_now(&idle, now_ns);
		assert_true(seen >= last && seen - last <= step);
		activity += !(random >> 60);
		clock = idle_look(&idle, activity, !(random >> 59), now_ns);
		/* Of a pause that turns out to be over, the time since the look before counts. */
		assert_true(clock >= seen && clock - last <= step);
		count += clock > last;
		last = clock;
	}
	assert_true(last < now_ns - 1000 * SEC && count > 100);
}

static uint64_t wait_still(struct rig *rig)
{
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms += 100) {
		uint64_t ns = manager_busy_ns(rig->engine->manager);

		rig_sleep_ms(100);
		if (ns == manager_busy_ns(rig->engine->manager))
			return ns;
	}
	fail_msg("the clock does not stand still");
	return 0;
}

static void wait_looks(struct rig *rig)
{
	struct oltp_memory_recency recency;
	uint64_t until = 0;

	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS; ms++) {
		assert_int_equal(oltp_memory_recency_read(rig->engine, &recency), 0);
		until = until ?: recency.looks + TURNS_ALL;
		if (recency.looks >= until)
			return;
		rig_sleep_ms(1);
	}
	fail_msg("nobody looks");
}

static void test_engine(void **state)
{
	static struct oltp_memory_sample before[SAMPLES], after[SAMPLES];
	uint64_t still_ns, oldest_ns = 0;
	struct rig rig;
	double paused;
	uint32_t n;

	(void)state;
	rig_idle_half_ms = 100;
	rig_open(&rig, OLTP_CC_NO_WAIT, 4 * MIB, true, 0);
	rig_insert(&rig, 0, RECORDS);
	wait_looks(&rig);
	for (uint64_t key = 0; key < RECORDS; key++)
		assert_int_equal(rig_read(&rig, key, 0), OLTP_OK);
	still_ns = wait_still(&rig);
	wait_looks(&rig);
	n = oltp_memory_sample_read(rig.engine, before, SAMPLES);
	assert_in_range(n, 200, RECORDS);
	rig_sleep_ms(300);
	wait_looks(&rig);
	/* Nobody used anything, and nothing has got older. */
	assert_int_equal(oltp_memory_sample_read(rig.engine, after, SAMPLES), n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(after[i].last_ns, before[i].last_ns);
		assert_int_equal(after[i].before_ns, before[i].before_ns);
		assert_int_equal(after[i].node, 0);
		assert_true(before[i].expected > 0 && before[i].expected < 0.9);
		assert_true(after[i].expected < before[i].expected);
		oldest_ns = before[i].last_ns > oldest_ns ? before[i].last_ns : oldest_ns;
	}
	assert_int_equal(manager_busy_ns(rig.engine->manager), still_ns);
	paused = after[0].expected;
	/* One that is used sets it going again, for all. */
	assert_int_equal(rig_read(&rig, 0, 0), OLTP_OK);
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS &&
	     manager_busy_ns(rig.engine->manager) == still_ns; ms++)
		rig_sleep_ms(1);
	assert_true(manager_busy_ns(rig.engine->manager) > still_ns);
	n = oltp_memory_sample_read(rig.engine, after, SAMPLES);
	for (uint32_t i = 0; i < n; i++) {
		if (after[i].last_ns > oldest_ns)
			oldest_ns = 0;
		assert_true(after[i].expected > paused);
	}
	assert_int_equal(oldest_ns, 0);
	rig_close(&rig);
}

static bool is_paused(struct manager *m, uint64_t since_ns)
{
	bool is;

	pthread_mutex_lock(&m->lock);
	is = m->idle.look_ns > since_ns && idle_is_pause(&m->idle, m->idle.look_ns, SEC);
	pthread_mutex_unlock(&m->lock);
	return is;
}

/* Memory that is offered is not filled with what nobody asks for; once somebody does, it is. */
static void test_nothing_is_read_ahead_in_a_pause(void **state)
{
	(void)state;
	const uint32_t n = 6 * RIG_PER_BLOCK;
	struct manager *m;
	uint64_t end_ns;
	struct rig rig;

	rig_open(&rig, OLTP_CC_NO_WAIT, 16 * MIB, true, 0);
	m = rig.engine->manager;
	rig_insert(&rig, 0, n);
	assert_int_equal(rig_demand(&rig, 8 * MIB, RIG_DEADLINE_MS).held_bytes, 8 * MIB);
	end_ns = clock_now_ns();
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && !is_paused(m, end_ns); ms++)
		rig_sleep_ms(1);
	assert_true(is_paused(m, end_ns));
	oltp_blocks_native_set_limit(rig.blocks, 16 * MIB, 0);
	rig_sleep_ms(300);
	assert_int_equal(rig_stats(&rig).held_bytes, 8 * MIB);
	for (uint32_t ms = 0; ms < RIG_DEADLINE_MS && rig_stats(&rig).cold_records > 0; ms++) {
		rig_work(&rig);
		rig_sleep_ms(1);
	}
	assert_int_equal(rig_stats(&rig).cold_records, 0);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_less_is_expected),
		cmocka_unit_test(test_never_back),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_nothing_is_read_ahead_in_a_pause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
