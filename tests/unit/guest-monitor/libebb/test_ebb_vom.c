// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of memory and histograms of them: against counting everything, with random items, merged,
 * sampled, and made up to be as bad as can be.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/libebb/vom.h"
#include "tests/lib/chance.h"

#define KIB		1024ull
#define MIB		(1024 * KIB)
#define NODES		4u
#define ITEMS		3000u
#define ROUNDS		2000
#define UNKNOWN		EBB_VOM_AGE_UNKNOWN

static double random_unit(void)
{
	return (roll(1u << 30) + 0.5) / (1u << 30);
}

static void test_rates(void **state)
{
	(void)state;
	assert_true(fabs(ebb_vom_rate(1000000000, 4000000000) - 0.25) < 1e-9);
	/* The one before is taken to lie as long before it. */
	assert_true(fabs(ebb_vom_rate(1000000000, UNKNOWN) - 0.5) < 1e-9);
	assert_true(ebb_vom_rate(UNKNOWN, UNKNOWN) == 0);
	assert_true(ebb_vom_rate(0, 0) == 1e6);
	assert_true(ebb_vom_rate(0, UNKNOWN) == 1e6);
}

static void test_values(void **state)
{
	(void)state;
	/* 100 us, twice a second, for 1 KiB. */
	assert_int_equal(ebb_vom_value(1024, 100000, 2), 204800000);
	assert_int_equal(ebb_vom_value(MIB, 100000, 2), 200000);
	/* Whatever is there is worth more than what is free. */
	assert_int_equal(ebb_vom_value(MIB, 0, 2), 1);
	assert_int_equal(ebb_vom_value(MIB, 100000, 0), 1);
	assert_int_equal(ebb_vom_value(MIB, 100000, -1), 1);
	assert_int_equal(ebb_vom_value(MIB, 100000, NAN), 1);
	assert_int_equal(ebb_vom_value(MIB, 100000, INFINITY), 100000000000ull);
	assert_int_equal(ebb_vom_value(0, 1000, 1), 1000 * MIB);
	/* What can not be made again. */
	assert_int_equal(ebb_vom_value(MIB, UNKNOWN, 0), EBB_VOM_VALUE_MAX);
	assert_int_equal(ebb_vom_value(1, UINT64_MAX - 1, 1e6), EBB_VOM_VALUE_MAX);
}

/* Bytes of the node at or below a value. */
static uint64_t below(const struct ebb_vom_item *items, size_t n, uint32_t node, uint64_t value)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (items[i].node == node && items[i].value <= value)
			bytes += items[i].bytes;
	return bytes;
}

static uint64_t worth(const struct ebb_vom_item *items, size_t n, uint32_t node, uint64_t value)
{
	return below(items, n, node, value) - (value ? below(items, n, node, value - 1) : 0);
}

static uint64_t to_kib(uint64_t bytes)
{
	return (bytes + KIB / 2) / KIB;
}

/* H1 to H4 by counting. */
static void assert_true_to(const struct ebb_vom_item *buckets, size_t made,
			   const struct ebb_vom_item *items, size_t n, size_t max)
{
	uint64_t told_kib = 0;

	assert_true(made <= max);
	for (size_t i = 0; i < made; i++) {
		const struct ebb_vom_item *b = &buckets[i];
		int is_first = i == 0 || b[-1].node != b->node;
		uint64_t part, all = below(items, n, b->node, UINT64_MAX) -
				     below(items, n, b->node, 0);

		assert_true(i == 0 || b[-1].node < b->node ||
			    (b[-1].node == b->node && b[-1].value < b->value));
		assert_true(b->bytes >= KIB && b->bytes % KIB == 0);
		told_kib = is_first ? 0 : told_kib;
		told_kib += b->bytes / KIB;
		assert_int_equal(told_kib, to_kib(below(items, n, b->node, b->value)));
		part = worth(items, n, b->node, b->value);
		/* One node alone may have all but two of them, one of those for what is free. */
		if (b->value && b->bytes > part && b->node == items[0].node && max > 64)
			assert_true((double)(b->bytes - part) <=
				    (double)all / (double)(max / NODES / 8) + 2 * KIB);
		assert_true(b->value || b->bytes <= part + KIB);
	}
	for (uint32_t node = 0; node < NODES; node++) {
		uint64_t all = below(items, n, node, UINT64_MAX);

		assert_int_equal(to_kib(all), below(buckets, made, node, UINT64_MAX) / KIB);
	}
}

static size_t random_items(struct ebb_vom_item *items)
{
	size_t n = 1 + roll(roll(4) ? 50 : ITEMS);
	uint32_t values = 1 + roll(roll(2) ? 5 : 100000);
	uint32_t bytes = 1 + roll(roll(2) ? 2000 : 1u << 30);
	uint32_t nodes = 1 + roll(NODES);

	for (size_t i = 0; i < n; i++)
		items[i] = (struct ebb_vom_item){
			.value = roll(values),
			.bytes = roll(bytes),
			.node = roll(nodes),
		};
	return n;
}

static void test_random(void **state)
{
	static struct ebb_vom_item items[ITEMS], buckets[ITEMS];

	(void)state;
	chance = 1;
	for (int round = 0; round < ROUNDS / 10; round++) {
		size_t n = random_items(items), max = 2 * NODES + roll(505);

		memcpy(buckets, items, n * sizeof(*items));
		assert_true_to(buckets, ebb_vom_histogram(buckets, n, max), items, n, max);
	}
}

/* One node, values all different: no bucket holds more than its part and one item. */
static void test_depth(void **state)
{
	static struct ebb_vom_item items[ITEMS], buckets[ITEMS];
	uint64_t all = 0;
	size_t made;

	(void)state;
	chance = 2;
	for (size_t i = 0; i < ITEMS; i++) {
		items[i] = (struct ebb_vom_item){ i * 7 % ITEMS,
						  (1 + roll(64)) * KIB, 1 };
		all += items[i].value ? items[i].bytes : 0;
	}
	memcpy(buckets, items, sizeof(items));
	made = ebb_vom_histogram(buckets, ITEMS, 512);
	/* Nor is there one for much less, so the room is used. */
	assert_in_range(made, 480, 512);
	assert_int_equal(buckets[0].value, 0);
	for (size_t i = 1; i < made; i++)
		assert_true(buckets[i].bytes <= all / 511 + 64 * KIB);
	assert_int_equal(buckets[made - 1].value, ITEMS - 1);
}

/* A node of little has its share of the buckets, one of nearly nothing at least one. */
static void test_nodes_share(void **state)
{
	static struct ebb_vom_item items[1200];
	size_t made, n[3] = { 0 };

	(void)state;
	for (size_t i = 0; i < 1200; i++)
		items[i] = (struct ebb_vom_item){ 1 + i, i % 3 == 0 ? 300 * KIB :
						  i % 3 == 1 ? 100 * KIB : KIB, i % 3 };
	made = ebb_vom_histogram(items, 1200, 108);
	for (size_t i = 0; i < made; i++)
		n[items[i].node]++;
	assert_in_range(n[0], 70, 78);
	assert_in_range(n[1], 22, 28);
	assert_in_range(n[2], 1, 3);
}

/* Histograms of parts, made into one, say of each end point what one of all would. */
static void test_merge(void **state)
{
	static struct ebb_vom_item items[ITEMS], merged[NODES * 512];

	(void)state;
	chance = 3;
	for (int round = 0; round < 100; round++) {
		size_t n = random_items(items), made = 0;

		for (size_t i = 0; i < n; i++)
			items[i].bytes = (1 + roll(100)) * KIB;
		for (size_t from = 0; from < n; from += ITEMS / 4) {
			size_t len = n - from < ITEMS / 4 ? n - from : ITEMS / 4;
			static struct ebb_vom_item part[ITEMS];
			size_t one;

			memcpy(part, items + from, len * sizeof(*items));
			one = ebb_vom_histogram(part, len, 512);
			memcpy(merged + made, part, one * sizeof(*part));
			made += one;
		}
		made = ebb_vom_histogram(merged, made, 512);
		assert_true(made <= 512);
		for (uint32_t node = 0; node < NODES; node++) {
			uint64_t all = below(items, n, node, UINT64_MAX), told = 0;

			assert_int_equal(below(merged, made, node, UINT64_MAX), all);
			assert_int_equal(below(merged, made, node, 0), below(items, n, node, 0));
			/* A part may lag by what is between two of its end points, no more. */
			for (size_t i = 0; i < made; i++) {
				uint64_t truth;

				if (merged[i].node != node)
					continue;
				told += merged[i].bytes;
				truth = below(items, n, node, merged[i].value);
				assert_true(told <= truth);
				assert_true((double)(truth - told) <=
					    (double)all / 16 + 4 * 101 * KIB);
			}
		}
	}
}

/*
 * What a uniform sample of 512 says of 100000 objects: at every end point the share of memory
 * below it is off by no more than the 0.1 % quantile of Kolmogorov's statistic, 1.95 / sqrt(512).
 */
static void test_sample(void **state)
{
	enum { OBJECTS = 100000, SAMPLES = 512 };
	static uint64_t values[OBJECTS];
	struct ebb_vom_item sample[SAMPLES];
	uint64_t told = 0, all = (uint64_t)OBJECTS * KIB;
	double worst = 0;
	size_t made;

	(void)state;
	chance = 4;
	/* As skewed as rates of use are. */
	for (size_t i = 0; i < OBJECTS; i++)
		values[i] = ebb_vom_value(KIB, 100000, 0.001 / random_unit());
	for (size_t i = 0; i < SAMPLES; i++)
		sample[i] = (struct ebb_vom_item){ values[roll(OBJECTS)],
						   all / SAMPLES, 0 };
	made = ebb_vom_histogram(sample, SAMPLES, 512);
	for (size_t i = 0; i < made; i++) {
		uint64_t truth = 0;
		double off;

		told += sample[i].bytes;
		for (size_t k = 0; k < OBJECTS; k++)
			truth += values[k] <= sample[i].value ? KIB : 0;
		off = fabs((double)told - (double)truth) / (double)all;
		worst = off > worst ? off : worst;
	}
	assert_int_equal(to_kib(told), to_kib(all));
	assert_true(worst < 1.95 / sqrt(SAMPLES));
	/* And it is a sample, not the truth. */
	assert_true(worst > 0.001);
}

static void test_extremes(void **state)
{
	struct ebb_vom_item items[8] = {
		{ UINT64_MAX, UINT64_MAX, 3 }, { UINT64_MAX, UINT64_MAX, 3 },
		{ 5, 100, 0 }, { 6, 300, 0 }, { 7, 200, 0 }, { 8, 0, 0 }, { 0, KIB, 1 },
		{ 0, 3 * KIB, 1 },
	};
	size_t n;

	(void)state;
	assert_int_equal(ebb_vom_histogram(items, 0, 512), 0);
	n = ebb_vom_histogram(items, 8, 512);
	assert_int_equal(n, 3);
	/* Too little for a KiB goes with what is worth more; here 600 bytes round up. */
	assert_int_equal(items[0].value, 7);
	assert_int_equal(items[0].bytes, KIB);
	assert_int_equal(items[1].value, 0);
	assert_int_equal(items[1].bytes, 4 * KIB);
	assert_int_equal(items[2].value, EBB_VOM_VALUE_MAX);
	assert_int_equal(items[2].bytes, EBB_VOM_BYTES_MAX);
	items[0] = (struct ebb_vom_item){ 3, 511, 0 };
	assert_int_equal(ebb_vom_histogram(items, 1, 2), 0);
}

/* More than all of memory in pieces: the most valuable go. */
static void test_too_much(void **state)
{
	struct ebb_vom_item items[4] = {
		{ 9, EBB_VOM_BYTES_MAX / 2, 0 }, { 2, EBB_VOM_BYTES_MAX / 2, 0 },
		{ 5, EBB_VOM_BYTES_MAX / 4, 0 }, { 7, EBB_VOM_BYTES_MAX / 2, 0 },
	};

	(void)state;
	assert_int_equal(ebb_vom_histogram(items, 4, 512), 3);
	assert_int_equal(items[2].value, 7);
	assert_int_equal(items[2].bytes, EBB_VOM_BYTES_MAX / 4);
	assert_int_equal(below(items, 3, 0, UINT64_MAX), EBB_VOM_BYTES_MAX);
}

static void test_fit(void **state)
{
	struct ebb_vom_item items[4] = { { 0, 10, 2 }, { 5, 20, 2 }, { 9, 30, 2 } };

	(void)state;
	/* The most valuable of it is not there. */
	assert_int_equal(ebb_vom_fit(items, 3, 2, 40), 3);
	assert_int_equal(items[2].bytes, 10);
	assert_int_equal(ebb_vom_fit(items, 3, 2, 40), 3);
	assert_int_equal(ebb_vom_fit(items, 3, 2, 30), 2);
	/* What is not claimed is as what is in the middle. */
	assert_int_equal(ebb_vom_fit(items, 2, 2, 100), 2);
	assert_int_equal(items[0].bytes, 10);
	assert_int_equal(items[1].bytes, 90);
	items[0].bytes = 90;
	assert_int_equal(ebb_vom_fit(items, 2, 2, 200), 2);
	assert_int_equal(items[0].bytes, 110);
	/* Of nothing, nothing is. */
	assert_int_equal(ebb_vom_fit(items, 0, 7, 64), 1);
	assert_int_equal(items[0].value, 0);
	assert_int_equal(items[0].node, 7);
	assert_int_equal(ebb_vom_fit(items, 1, 7, 0), 0);
	assert_int_equal(ebb_vom_fit(items, 0, 7, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_nodes_share),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
