// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory is demanded where it is worth least: against taking one unit after the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/monitord/cut.h"
#include "tests/lib/chance.h"

#define PARTS	6
#define BUCKETS	12
#define STEP	(2ull << 20)
#define KIB	1024ull
#define ROUNDS	3000

/* What the next unit of the part is worth, by its most valuable byte; UINT64_MAX: it has none. */
static uint64_t next_value(const struct ebb_cut *part, uint32_t node, uint64_t units)
{
	uint64_t seen = 0, all = 0;

	if ((units + 1) * STEP > part->owned)
		return UINT64_MAX;
	for (uint32_t i = 0; i < part->num_buckets; i++)
		all += part->buckets[i].node == node ? part->buckets[i].kib * KIB : 0;
	seen = all < part->owned ? part->owned - all : 0;
	if (seen >= (units + 1) * STEP)
		return 0;
	for (uint32_t i = 0; i < part->num_buckets; i++) {
		if (part->buckets[i].node != node)
			continue;
		seen += part->buckets[i].kib * KIB;
		if (seen >= (units + 1) * STEP)
			return part->buckets[i].value;
	}
	return UINT64_MAX;
}

static uint64_t one_by_one(struct ebb_cut *parts, size_t num, uint32_t node, uint64_t units)
{
	for (; units > 0; units--) {
		uint64_t lowest = UINT64_MAX;
		size_t at = num;

		/* Of several, the last. */
		for (size_t i = 0; i < num; i++) {
			uint64_t value = next_value(&parts[i], node, parts[i].units);

			if (value != UINT64_MAX && value <= lowest) {
				lowest = value;
				at = i;
			}
		}
		if (at == num)
			break;
		parts[at].units++;
	}
	return units;
}

static void test_random(void **state)
{
	static struct ebb_vom_bucket buckets[PARTS][BUCKETS];

	(void)state;
	chance = 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct ebb_cut parts[PARTS] = { 0 }, truth[PARTS];
		size_t num = 1 + roll(PARTS);
		uint32_t node = roll(2);
		uint64_t units = roll(200), left;

		for (size_t i = 0; i < num; i++) {
			uint64_t value = roll(3);

			parts[i].buckets = buckets[i];
			parts[i].num_buckets = roll(BUCKETS + 1);
			parts[i].owned = roll(40) * STEP;
			for (uint32_t b = 0; b < parts[i].num_buckets; b++) {
				buckets[i][b] = (struct ebb_vom_bucket){
					.value = value,
					.kib = 1 + roll(12 << 10),
					.node = (uint16_t)(b >= BUCKETS / 2),
				};
				value += 1 + roll(10);
			}
		}
		memcpy(truth, parts, sizeof(parts));
		left = ebb_cut_down(parts, num, node, units, STEP);
		assert_int_equal(left, one_by_one(truth, num, node, units));
		for (size_t i = 0; i < num; i++)
			assert_int_equal(parts[i].units, truth[i].units);
	}
}

static void test_by_value(void **state)
{
	static const struct ebb_vom_bucket a[] = { { .value = 10, .kib = 10 << 11 },
						   { .value = 1000, .kib = 10 << 11 } };
	static const struct ebb_vom_bucket b[] = { { .value = 500, .kib = 20 << 11 } };
	struct ebb_cut parts[3] = {
		{ .buckets = a, .num_buckets = 2, .owned = 20 * STEP },
		{ .buckets = b, .num_buckets = 1, .owned = 20 * STEP },
		{ .owned = 0 },
	};

	(void)state;
	assert_int_equal(ebb_cut_down(parts, 3, 0, 15, STEP), 0);
	assert_int_equal(parts[0].units, 10);
	assert_int_equal(parts[1].units, 5);
	assert_int_equal(parts[2].units, 0);
	/* It owns more than it has told of: that is worth nothing. */
	parts[1].owned = 32 * STEP;
	assert_int_equal(ebb_cut_down(parts, 3, 0, 15, STEP), 0);
	assert_int_equal(parts[0].units, 3);
	assert_int_equal(parts[1].units, 12);
	/* Nor can all give more than there is. */
	assert_int_equal(ebb_cut_down(parts, 3, 0, 60, STEP), 8);
	assert_int_equal(parts[0].units, 20);
	assert_int_equal(parts[1].units, 32);
	assert_int_equal(ebb_cut_down(parts, 3, 0, 0, STEP), 0);
	assert_int_equal(parts[0].units + parts[1].units, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_by_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
