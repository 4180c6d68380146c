/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of volumes as JSON. */
#include <stdint.h>
#include <string.h>
#include "volumed/meter.h"
#include "volumed/vmeter.h"

#define DELAYS		24u	/* classes of "delays" */
#define PER_DOUBLING	4u	/* of the meter's classes */

/* Counters end at what JSON's readers can hold. */
static json_int_t sum_of(const json_t *a, const json_t *b)
{
	json_int_t sum;

	return __builtin_add_overflow(json_integer_value(a), json_integer_value(b), &sum) ?
		       INT64_MAX : sum;
}

static json_int_t max_of(const json_t *a, const json_t *b)
{
	return json_integer_value(a) > json_integer_value(b) ? json_integer_value(a) :
							       json_integer_value(b);
}

static void add_array(json_t *to, const json_t *from)
{
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)from, i, item) {
		json_t *sum = json_array_get(to, i);

		if (sum)
			json_integer_set(sum, sum_of(sum, item));
		else
			json_array_append_new(to, json_integer(json_integer_value(item)));
	}
}

void ebb_vmeter_add(json_t *to, const json_t *from)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)from, key, value) {
		json_t *old = json_object_get(to, key);

		if (!old)
			json_object_set_new(to, key, json_deep_copy(value));
		else if (json_is_array(value))
			add_array(old, value);
		else if (strcmp(key, "late-max-ns") == 0)
			json_integer_set(old, max_of(old, value));
		else
			json_integer_set(old, sum_of(old, value));
	}
}

/* ret: EBB_METER_DELAYS. */
static void read_classes(const json_t *counters, uint64_t *ret)
{
	const json_t *classes = json_object_get(counters, "delay-classes");

	for (size_t i = 0; i < EBB_METER_DELAYS; i++)
		ret[i] = json_integer_value(json_array_get(classes, i));
}

void ebb_vmeter_add_delays(json_t *counters)
{
	uint64_t classes[EBB_METER_DELAYS], delays[DELAYS] = { 0 };
	json_t *all;

	if (!json_object_get(counters, "delay-classes"))
		return;
	read_classes(counters, classes);
	for (size_t i = 0; i < EBB_METER_DELAYS; i++) {
		const size_t doubling = (i + PER_DOUBLING - 1) / PER_DOUBLING;

		delays[doubling < DELAYS ? doubling : DELAYS - 1] += classes[i];
	}
	all = json_array();
	for (size_t i = 0; i < DELAYS; i++)
		json_array_append_new(all, json_integer((json_int_t)delays[i]));
	json_object_set_new(counters, "delays", all);
}

json_t *ebb_vmeter_brief(const json_t *counters)
{
	static const char *const names[] = {
		"intervals", "violated-intervals", "charged", "early", "missed", "violated",
		"others-early", "others-promised", "slow", "overdue",
	};
	json_t *brief = json_object();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		json_t *value = json_object_get(counters, names[i]);

		if (value)
			json_object_set(brief, names[i], value);
	}
	return brief;
}

json_t *ebb_vmeter_delay(const json_t *counters)
{
	static const struct {
		const char *name;
		unsigned int permille;
	} percentiles[] = {
		{ "p50-ns", 500 }, { "p90-ns", 900 }, { "p99-ns", 990 }, { "p999-ns", 999 },
	};
	const json_int_t num = json_integer_value(json_object_get(counters, "due-requests"));
	const json_int_t sum = json_integer_value(json_object_get(counters, "late-ns"));
	const json_int_t max = json_integer_value(json_object_get(counters, "late-max-ns"));
	json_t *delay = json_pack("{s:I}", "mean-ns", num ? sum / num : (json_int_t)0);
	uint64_t classes[EBB_METER_DELAYS];

	read_classes(counters, classes);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		json_int_t ns = (json_int_t)ebb_meter_percentile(classes, percentiles[i].permille);

		json_object_set_new(delay, percentiles[i].name, json_integer(ns < max ? ns : max));
	}
	json_object_set_new(delay, "max-ns", json_integer(max));
	return delay;
}
