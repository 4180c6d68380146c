// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Levelling in closed form, against doing it one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/monitord/fill.h"
#include "tests/lib/chance.h"

#define MAX_PARTS	8
#define RANDOM_ROUNDS	20000

static void up_one_by_one(struct ebb_fill *parts, size_t num, uint64_t units, uint64_t step)
{
	for (; units > 0; units--) {
		struct ebb_fill *lowest = NULL;

		for (size_t i = 0; i < num; i++)
			if (parts[i].is_in &&
			    (!lowest || parts[i].level + parts[i].units * step <
				       lowest->level + lowest->units * step))
				lowest = &parts[i];
		if (!lowest)
			return;
		lowest->units++;
	}
}

static uint64_t down_one_by_one(struct ebb_fill *parts, size_t num, uint64_t units,
				uint64_t step)
{
	for (; units > 0; units--) {
		struct ebb_fill *highest = NULL;

		for (size_t i = 0; i < num; i++)
			if (parts[i].is_in && parts[i].units < parts[i].most &&
			    (!highest || parts[i].level - parts[i].units * step >=
					highest->level - highest->units * step))
				highest = &parts[i];
		if (!highest)
			break;
		highest->units++;
	}
	return units;
}

static void levelling_is_as_one_by_one(void **state)
{
	(void)state;
	for (uint32_t seed = 0; seed < RANDOM_ROUNDS; seed++) {
		struct ebb_fill a[MAX_PARTS] = { 0 }, b[MAX_PARTS];
		uint64_t units, step;
		size_t num;

		chance = seed;
		num = roll(MAX_PARTS + 1);
		step = 1 + roll(4);
		units = roll(40);
		for (size_t i = 0; i < num; i++) {
			a[i].is_in = roll(4);
			a[i].most = roll(10);
			a[i].level = a[i].most * step + roll(20);
		}
		memcpy(b, a, sizeof(a));
		up_one_by_one(b, num, units, step);
		ebb_fill_up(a, num, units, step);
		assert_memory_equal(a, b, sizeof(a));
		for (size_t i = 0; i < num; i++)
			b[i].units = 0;
		assert_true(ebb_fill_down(a, num, units, step) ==
			    down_one_by_one(b, num, units, step));
		assert_memory_equal(a, b, sizeof(a));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levelling_is_as_one_by_one),
	};

	return cmocka_run_group_tests_name("ebb_fill", tests, NULL, NULL);
}
