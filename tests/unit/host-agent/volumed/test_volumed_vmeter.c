// SPDX-License-Identifier: GPL-2.0-or-later
/* Counters of volumes as JSON: sums over storage daemons, classes of delays, percentiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "volumed/meter.h"
#include "volumed/vmeter.h"

static json_int_t get(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static json_int_t item(const json_t *o, const char *key, size_t i)
{
	return json_integer_value(json_array_get(json_object_get(o, key), i));
}

static void test_sum(void **state)
{
	json_t *sum = json_object();
	json_t *one = json_pack("{s:i, s:i, s:[i,i]}", "reads", 5, "late-max-ns", 70,
				"delay-classes", 1, 2);
	json_t *two = json_pack("{s:i, s:i, s:i, s:[i,i,i]}", "reads", 2, "writes", 3,
				"late-max-ns", 60, "delay-classes", 10, 20, 30);

	(void)state;
	ebb_vmeter_add(sum, NULL);
	ebb_vmeter_add(sum, one);
	ebb_vmeter_add(sum, two);
	/* Shorter than the sum. */
	ebb_vmeter_add(sum, one);
	assert_int_equal(get(sum, "reads"), 12);
	assert_int_equal(get(sum, "writes"), 3);
	assert_int_equal(get(sum, "late-max-ns"), 70);
	assert_int_equal(json_array_size(json_object_get(sum, "delay-classes")), 3);
	assert_int_equal(item(sum, "delay-classes", 0), 12);
	assert_int_equal(item(sum, "delay-classes", 1), 24);
	assert_int_equal(item(sum, "delay-classes", 2), 30);
	/* What was added is a copy. */
	assert_int_equal(item(one, "delay-classes", 0), 1);
	json_decref(sum);
	json_decref(one);
	json_decref(two);
}

/* A sum that JSON's readers can not hold stays at the largest number that they can. */
static void test_sum_too_large(void **state)
{
	json_t *sum = json_pack("{s:I, s:[I]}", "waited-ns", (json_int_t)INT64_MAX - 1,
				"delay-classes", (json_int_t)INT64_MAX - 1);
	json_t *more = json_pack("{s:i, s:[i]}", "waited-ns", 5, "delay-classes", 5);

	(void)state;
	ebb_vmeter_add(sum, more);
	assert_int_equal(get(sum, "waited-ns"), INT64_MAX);
	assert_int_equal(item(sum, "delay-classes", 0), INT64_MAX);
	json_decref(sum);
	json_decref(more);
}

/* The class of a delay in 24 classes, as the protocol has them. */
static size_t doubling_of(uint64_t usec)
{
	size_t class = 0;

	for (; usec && class < 23; usec >>= 1)
		class++;
	return class;
}

/* Each delay is in the same of the 24 classes as if it had been counted in them at once. */
static void test_delays(void **state)
{
	(void)state;
	for (uint64_t usec = 0; usec < 1ull << 26; usec += usec / 3 + 1) {
		struct ebb_meter m;
		struct ebb_meter_volume v;
		struct ebb_meter_request r;
		json_t *counters, *classes = json_array();
		const uint64_t *delays;

		assert_int_equal(ebb_meter_init(&m, EBB_METER_MAX_NSEC, 0), 0);
		assert_int_equal(ebb_meter_volume_add(&m, &v, 1, 100, 0, 0), 0);
		assert_int_equal(ebb_meter_arrive(&m, &v, &r, 1, 0), 0);
		ebb_meter_issue(&m, &v, &r, usec * 1000);
		delays = ebb_meter_read(&m, &v, usec * 1000)->delays;
		for (size_t i = 0; i < EBB_METER_DELAYS; i++)
			json_array_append_new(classes, json_integer((json_int_t)delays[i]));
		counters = json_pack("{s:o}", "delay-classes", classes);
		ebb_vmeter_add_delays(counters);
		assert_int_equal(json_array_size(json_object_get(counters, "delays")), 24);
		for (size_t i = 0; i < 24; i++)
			assert_int_equal(item(counters, "delays", i), i == doubling_of(usec));
		json_decref(counters);
	}
}

static void test_percentiles(void **state)
{
	json_t *counters = json_object(), *classes, *delay = ebb_vmeter_delay(counters);

	(void)state;
	/* Nothing was counted, as long as no storage daemon has come up. */
	ebb_vmeter_add_delays(counters);
	assert_int_equal(json_object_size(counters), 0);
	assert_int_equal(get(delay, "mean-ns"), 0);
	assert_int_equal(get(delay, "p99-ns"), 0);
	assert_int_equal(get(delay, "max-ns"), 0);
	json_decref(delay);
	/* 900 of less than 1 us, 90 of 1 to 1.25, 9 of 1.25 to 1.5, one of 1.5 us and a bit. */
	classes = json_pack("[i,i,i,i]", 900, 90, 9, 1);
	json_object_set_new(counters, "delay-classes", classes);
	json_object_set_new(counters, "due-requests", json_integer(1000));
	json_object_set_new(counters, "late-ns", json_integer(500000));
	json_object_set_new(counters, "late-max-ns", json_integer(1510));
	delay = ebb_vmeter_delay(counters);
	assert_int_equal(get(delay, "mean-ns"), 500);
	assert_int_equal(get(delay, "p50-ns"), 1000);
	assert_int_equal(get(delay, "p90-ns"), 1000);
	assert_int_equal(get(delay, "p99-ns"), 1250);
	assert_int_equal(get(delay, "p999-ns"), 1500);
	assert_int_equal(get(delay, "max-ns"), 1510);
	json_decref(delay);
	/* No percentile is beyond the maximum. */
	json_object_set_new(counters, "late-max-ns", json_integer(1020));
	delay = ebb_vmeter_delay(counters);
	assert_int_equal(get(delay, "p99-ns"), 1020);
	json_decref(delay);
	json_decref(counters);
}

static void test_brief(void **state)
{
	json_t *counters = json_pack("{s:i, s:i, s:i, s:[i,i]}", "charged", 3, "overdue", 4,
				     "reads", 7, "delay-classes", 1, 2);
	json_t *brief = ebb_vmeter_brief(counters);

	(void)state;
	assert_int_equal(json_object_size(brief), 2);
	assert_int_equal(get(brief, "charged"), 3);
	assert_int_equal(get(brief, "overdue"), 4);
	json_decref(brief);
	json_decref(counters);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_sum_too_large),
		cmocka_unit_test(test_delays),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_brief),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
