// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets of VMs and alarms of VMs, against arrays that are searched from end to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alarm.h"
#include "core/set.h"
#include "tests/lib/chance.h"

#define NUM_STEPS	20000u

static void check_set(const struct core_set *set, const bool *is_in, size_t count)
{
	size_t expected = 0, num = 0;

	core_set_for_each(i, set) {
		while (expected < count && !is_in[expected])
			expected++;
		assert_int_equal(i, expected);
		assert_true(core_set_has(set, i));
		expected++;
		num++;
	}
	while (expected < count)
		assert_false(is_in[expected++]);
	assert_int_equal(core_set_is_empty(set), num == 0);
}

static void test_set(void **state)
{
	static bool is_in[EBB_MAX_VMS + 1];
	struct core_set set = { 0 };
	size_t count = 0;

	(void)state;
	for (uint32_t step = 0; step < NUM_STEPS; step++) {
		const size_t i = roll((uint32_t)count + 1);

		if (count < EBB_MAX_VMS && (count == 0 || roll(3) == 0)) {
			core_set_open(&set, i);
			memmove(&is_in[i + 1], &is_in[i], (count++ - i) * sizeof(is_in[0]));
			is_in[i] = roll(2);
			if (is_in[i])
				core_set_add(&set, i);
		} else if (i < count && roll(4) == 0) {
			core_set_close(&set, i);
			memmove(&is_in[i], &is_in[i + 1], (--count - i) * sizeof(is_in[0]));
		} else if (i < count && roll(2)) {
			core_set_remove(&set, i);
			is_in[i] = false;
		} else if (i < count) {
			core_set_add(&set, i);
			is_in[i] = true;
		}
		if (step % 64 == 0)
			check_set(&set, is_in, count);
	}
}

static void test_union(void **state)
{
	struct core_set a = { 0 }, b = { 0 };

	(void)state;
	core_set_add(&a, 0);
	core_set_add(&b, 63);
	core_set_add(&b, EBB_MAX_VMS - 1);
	core_set_unite(&a, &b);
	assert_int_equal(core_set_next(&a, 0), 0);
	assert_int_equal(core_set_next(&a, 1), 63);
	assert_int_equal(core_set_next(&a, 64), EBB_MAX_VMS - 1);
	assert_int_equal(core_set_next(&a, EBB_MAX_VMS), EBB_MAX_VMS);
}

static void test_alarms(void **state)
{
	static struct core_alarms alarms;
	static usec_t at[EBB_MAX_VMS];
	usec_t now = 1000;

	(void)state;
	core_alarms_clear(&alarms);
	for (uint32_t i = 0; i < EBB_MAX_VMS; i++)
		at[i] = EBB_TIME_NEVER;
	assert_int_equal(core_alarm_take(&alarms, EBB_TIME_NEVER - 1), EBB_MAX_VMS);
	for (uint32_t step = 0; step < NUM_STEPS; step++) {
		const uint16_t slot = (uint16_t)roll(EBB_MAX_VMS);
		usec_t soonest = EBB_TIME_NEVER;

		at[slot] = roll(8) ? now + roll(500) : EBB_TIME_NEVER;
		core_alarm_set(&alarms, slot, at[slot]);
		if (roll(16))
			continue;
		now += roll(20);
		for (uint16_t due; (due = core_alarm_take(&alarms, now)) < EBB_MAX_VMS;) {
			assert_true(at[due] <= now);
			at[due] = EBB_TIME_NEVER;
		}
		for (uint32_t i = 0; i < EBB_MAX_VMS; i++)
			soonest = at[i] < soonest ? at[i] : soonest;
		assert_true(soonest > now);
		assert_true(core_alarms_next(&alarms) == soonest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_alarms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
