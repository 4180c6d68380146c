// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The baseline I/Os of a promised memory against an exact list of all records in the order of their
 * last use. Both see the same trace; of the records only samples are simulated, several different
 * ones of each trace.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "oltp-engine/bench/ycsb/zipf.h"
#include "oltp-engine/src/base/baseline.h"
#include "oltp-engine/src/base/random.h"

#define KEYS		(1u << 20)
#define KEYS_MAX	(7u << 18)	/* those that are inserted included */
#define NONE		UINT32_MAX
#define EPOCH_USES	2000u		/* uses in one epoch */
#define SAMPLES		4u		/* different ones of each trace */
#define USES		4000000u	/* the second half of them counts */

/* ---- the exact cache ---- */

struct exact {
	bool is_lru;
	uint64_t bytes_max, bytes, ios;
	uint64_t recent;		/* time; records used before are of the oldest part */
	uint32_t first, last;		/* the list: youngest, oldest */
	struct exact_record {
		uint64_t used;
		uint32_t before, after, bytes;
		bool is_held;
	} records[KEYS_MAX];
};

static void exact_unlink(struct exact *e, uint32_t key)
{
	struct exact_record *r = &e->records[key];

	*(r->before == NONE ? &e->first : &e->records[r->before].after) = r->after;
	*(r->after == NONE ? &e->last : &e->records[r->after].before) = r->before;
	r->is_held = false;
	e->bytes -= r->bytes;
}

static void exact_link(struct exact *e, uint32_t key)
{
	struct exact_record *r = &e->records[key];

	r->before = NONE;
	r->after = e->first;
	*(e->first == NONE ? &e->last : &e->records[e->first].before) = key;
	e->first = key;
	r->is_held = true;
	e->bytes += r->bytes;
	while (e->bytes > e->bytes_max)
		exact_unlink(e, e->last);
}

/* The engine, too, finds out from time to time only. */
static void exact_look(struct exact *e)
{
	uint64_t left = e->bytes_max / BASELINE_OLD_PART;
	uint32_t at = e->last;

	if (e->is_lru || e->bytes < e->bytes_max - left)
		return;
	for (; at != NONE && e->records[at].bytes <= left; at = e->records[at].before)
		left -= e->records[at].bytes;
	e->recent = at == NONE ? 0 : e->records[at].used;
}

static void exact_use(struct exact *e, uint32_t key, uint32_t bytes, uint64_t time, bool is_new,
		      bool is_written)
{
	struct exact_record *r = &e->records[key];
	bool is_taken = is_new || is_written || r->is_held || r->used >= e->recent;

	if (time % (4 * EPOCH_USES) == 0)
		exact_look(e);
	if (r->is_held)
		exact_unlink(e, key);
	else if (!is_new)
		e->ios++;
	r->used = time;
	r->bytes = bytes;
	if (is_taken)
		exact_link(e, key);
}

/* ---- the trace ---- */

enum sampling {
	SAMPLING_HASH,		/* as it should be */
	SAMPLING_FEW,		/* broken: 1/32 of what there should be */
	SAMPLING_USES,		/* broken: by use, not by key */
	SAMPLING_LOW_KEYS,	/* broken: the first keys, whatever they are */
};

struct sample {
	struct baseline baseline;
	uint64_t from;		/* I/Os before the caches were warm */
	struct {
		uint32_t epoch;
		bool is_taken;
	} words[KEYS_MAX];	/* what the engine keeps with each record */
};

struct rig {
	struct exact exact;
	struct sample samples[SAMPLES];
	uint32_t bytes[KEYS_MAX];
	enum sampling sampling;
	uint64_t time;
	uint64_t exact_from;
	struct random64 random;
	uint32_t n_keys;
};

static bool is_sampled(const struct rig *rig, uint32_t i, uint32_t key)
{
	uint32_t shift = rig->samples[i].baseline.shift;

	switch (rig->sampling) {
	case SAMPLING_USES:
		key = (uint32_t)rig->time;
		break;
	case SAMPLING_LOW_KEYS:
		return key < KEYS >> shift;
	case SAMPLING_HASH:
	case SAMPLING_FEW:
		break;
	}
	return baseline_is_sampled(random64_mix(key + ((uint64_t)i + 1) * 0x9e3779b97f4a7c15ull),
				   baseline_mask(shift));
}

static void use_sample(struct rig *rig, uint32_t i, uint32_t key, bool is_new, bool is_written)
{
	struct sample *s = &rig->samples[i];
	uint64_t epoch = 1 + rig->time / EPOCH_USES;
	struct baseline_rule rule;
	struct baseline_use use;

	if (is_sampled(rig, i, key)) {
		rule = baseline_rule(&s->baseline);
		use = baseline_decide(&rule, s->words[key].epoch, rig->bytes[key],
				      s->words[key].is_taken, is_written);
		if (is_new)
			use = (struct baseline_use){ .bytes = rig->bytes[key], .enters = true };
		baseline_apply(&s->baseline, &use, epoch);
		s->words[key].is_taken = use.enters;
	}
	s->words[key].epoch = (uint32_t)epoch;
}

static void use(struct rig *rig, uint32_t key, bool is_new, bool is_written)
{
	exact_use(&rig->exact, key, rig->bytes[key], ++rig->time, is_new, is_written);
	for (uint32_t i = 0; i < SAMPLES; i++)
		use_sample(rig, i, key, is_new, is_written);
}

static void warm(struct rig *rig)
{
	rig->exact_from = rig->exact.ios;
	for (uint32_t i = 0; i < SAMPLES; i++)
		rig->samples[i].from = rig->samples[i].baseline.ios;
}

/* A memory for so many parts in 100 of the records that are there. */
static struct rig *rig_create(enum sampling sampling, uint32_t percent,
			      uint32_t (*bytes_of)(uint32_t key))
{
	struct rig *rig = calloc(1, sizeof(*rig));
	uint64_t all = 0;

	assert_non_null(rig);
	rig->exact.first = rig->exact.last = NONE;
	rig->sampling = sampling;
	rig->random.state = 7;
	rig->n_keys = KEYS;
	for (uint32_t i = 0; i < KEYS_MAX; i++) {
		rig->bytes[i] = bytes_of(i);
		all += i < KEYS ? rig->bytes[i] : 0;
	}
	rig->exact.bytes_max = all * percent / 100;
	for (uint32_t i = 0; i < SAMPLES; i++) {
		baseline_init(&rig->samples[i].baseline);
		baseline_set(&rig->samples[i].baseline, rig->exact.bytes_max,
			     baseline_shift(KEYS) + (sampling == SAMPLING_FEW ? 5 : 0));
	}
	return rig;
}

/* Relative errors of the samples' baselines. */
struct errors {
	double mean, rms, most;
};

static struct errors rig_end(struct rig *rig, const char *what)
{
	struct errors errors = { 0, 0, 0 };

	for (uint32_t i = 0; i < SAMPLES; i++) {
		double ios = (double)(rig->samples[i].baseline.ios - rig->samples[i].from);
		double error = ios / (double)(rig->exact.ios - rig->exact_from) - 1;

		errors.mean += error / SAMPLES;
		errors.rms += error * error / SAMPLES;
		errors.most = fabs(error) > errors.most ? fabs(error) : errors.most;
	}
	errors.rms = sqrt(errors.rms);
	print_message("%-40s mean %+.2f%%, rms %.2f%%, most %.2f%%\n", what,
		      100 * errors.mean, 100 * errors.rms, 100 * errors.most);
	free(rig);
	return errors;
}

static uint32_t bytes_ycsb(uint32_t key)
{
	(void)key;
	return 128;
}

/* theta 0: uniform; of the uses so many percent write. */
static struct errors run_ycsb(enum sampling sampling, double theta, uint32_t percent,
			      uint32_t write_percent, bool is_lru)
{
	struct rig *rig = rig_create(sampling, percent, bytes_ycsb);
	struct zipf zipf;
	char what[80];

	rig->exact.is_lru = is_lru;
	assert_int_equal(zipf_init(&zipf, KEYS, theta > 0 ? theta : 0.99,
				   sampling != SAMPLING_LOW_KEYS), 0);
	for (uint32_t i = 0; i < USES; i++) {
		if (i == USES / 2)
			warm(rig);
		use(rig, (uint32_t)(theta > 0 ? zipf_next(&zipf, &rig->random) :
				    random64_below(&rig->random, KEYS)), false,
		    random64_below(&rig->random, 100) < write_percent);
	}
	snprintf(what, sizeof(what), "Zipf %.2f, %u%% held, %u%% writes", theta, percent,
		 write_percent);
	return rig_end(rig, what);
}

static uint32_t bytes_tpcc(uint32_t key)
{
	return key < 256 ? 128 : key < KEYS / 2 ? 704 : key < KEYS ? 320 : 64;
}

/*
 * Like TPC-C: few hot large rows, skewed customers and stock (NURand), and order lines that are
 * added, read while they are young, and then left alone.
 */
static struct errors run_tpcc(enum sampling sampling, uint32_t percent)
{
	struct rig *rig = rig_create(sampling, percent, bytes_tpcc);
	const uint32_t txns = USES / 20;
	char what[80];

	for (uint32_t i = 0; i < txns; i++) {
		uint32_t a = (uint32_t)random64_below(&rig->random, KEYS / 2);

		if (i == txns / 2)
			warm(rig);
		use(rig, (uint32_t)random64_below(&rig->random, 256), false, true);
		a |= (uint32_t)random64_below(&rig->random, 8192);
		use(rig, 256 + a % (KEYS / 2 - 256), false, a & 1);
		for (uint32_t k = 0; k < 10; k++) {
			a = (uint32_t)random64_below(&rig->random, KEYS / 2);
			a |= (uint32_t)random64_below(&rig->random, 8192);
			use(rig, KEYS / 2 + a % (KEYS / 2), false, true);
		}
		for (uint32_t k = 0; k < 3; k++)
			use(rig, rig->n_keys++, true, true);
		/* Delivery and stock level come a little later. */
		for (uint32_t k = 0; k < 4 && i > 1500; k++)
			use(rig, rig->n_keys - 1 - (uint32_t)random64_below(&rig->random, 4000),
			    false, false);
		if (sampling == SAMPLING_HASH &&
		    baseline_shift(rig->n_keys) > rig->samples[0].baseline.shift) {
			for (uint32_t k = 0; k < SAMPLES; k++)
				baseline_resample(&rig->samples[k].baseline,
						  baseline_shift(rig->n_keys));
		}
	}
	snprintf(what, sizeof(what), "TPC-C-like, %u%% held", percent);
	return rig_end(rig, what);
}

/* The bound is 2%. The root of the mean square leaves room for samples that are not tried. */
static void assert_small(struct errors errors)
{
	assert_true(errors.most <= 0.02);
	assert_true(errors.rms <= 0.01);
}

static void test_ycsb_is_within_2_percent(void **state)
{
	(void)state;
	assert_small(run_ycsb(SAMPLING_HASH, 0.99, 10, 50, false));
	assert_small(run_ycsb(SAMPLING_HASH, 0.99, 25, 0, false));
	assert_small(run_ycsb(SAMPLING_HASH, 0.99, 50, 50, false));
}

static void test_uniform_is_within_2_percent(void **state)
{
	(void)state;
	assert_small(run_ycsb(SAMPLING_HASH, 0, 10, 50, false));
	assert_small(run_ycsb(SAMPLING_HASH, 0, 50, 0, false));
}

static void test_tpcc_is_within_2_percent(void **state)
{
	(void)state;
	assert_small(run_tpcc(SAMPLING_HASH, 20));
	assert_small(run_tpcc(SAMPLING_HASH, 50));
}

/* What the bounds are worth: samples that are too small, or no samples, miss them. */
static void test_broken_sampling_is_seen(void **state)
{
	(void)state;
	assert_true(run_tpcc(SAMPLING_FEW, 50).rms > 0.01);
	assert_true(run_ycsb(SAMPLING_USES, 0.99, 25, 50, false).rms > 0.05);
	assert_true(run_ycsb(SAMPLING_LOW_KEYS, 0.99, 25, 50, false).rms > 0.05);
}

/* The engine does not take in all that it reads: a plain list (LRU) has other I/Os. */
static void test_lru_is_another_cache(void **state)
{
	(void)state;
	assert_true(run_ycsb(SAMPLING_HASH, 0.99, 25, 0, true).rms > 0.02);
}

/* ---- by hand ---- */

static bool use_at(struct baseline *b, uint64_t before, uint64_t now, bool was_taken,
		   bool is_written)
{
	struct baseline_rule rule = baseline_rule(b);
	struct baseline_use use = baseline_decide(&rule, before, 1, was_taken, is_written);

	baseline_apply(b, &use, now);
	return use.enters;
}

static void test_small_cache_by_hand(void **state)
{
	(void)state;
	struct baseline b;

	baseline_init(&b);
	baseline_set(&b, 2, 0);
	assert_true(use_at(&b, 0, 1, false, true));
	assert_true(use_at(&b, 0, 2, false, true));
	assert_true(use_at(&b, 1, 3, true, false));
	assert_int_equal(b.ios, 2);
	/* A third record: the one used at 2 goes, the one used at 3 stays. */
	assert_true(use_at(&b, 0, 4, false, true));
	assert_true(use_at(&b, 3, 5, true, false));
	assert_int_equal(b.ios, 3);
	assert_true(use_at(&b, 2, 6, true, true));
	assert_int_equal(b.ios, 4);
	/* Deleted ones leave room, new ones cost nothing. */
	baseline_apply(&b, &(struct baseline_use){ .before = 6, .bytes = 1, .leaves = true }, 6);
	baseline_hold(&b, 1, 7);
	assert_true(use_at(&b, 5, 8, true, false));
	assert_int_equal(b.ios, 4);
	assert_int_equal(b.bytes, 2);
}

static void test_first_use_takes_no_room(void **state)
{
	(void)state;
	struct baseline b;

	baseline_init(&b);
	baseline_set(&b, 10, 0);
	for (uint64_t epoch = 11; epoch <= 20; epoch++)
		baseline_hold(&b, 1, epoch);
	/* Last used before all that is held. */
	assert_false(use_at(&b, 5, 30, false, false));
	assert_int_equal(b.ios, 1);
	assert_true(use_at(&b, 20, 31, true, false));
	/* Used again: read once more, and taken in. */
	assert_true(use_at(&b, 30, 32, false, false));
	assert_int_equal(b.ios, 2);
	/* Written: taken in at once. */
	assert_true(use_at(&b, 5, 33, false, true));
	assert_int_equal(b.ios, 3);
}

static void test_nothing_is_promised(void **state)
{
	(void)state;
	struct baseline b;

	baseline_init(&b);
	use_at(&b, 0, 1, false, true);
	assert_int_equal(b.ios, 0);
	baseline_set(&b, 1000, 1);
	baseline_hold(&b, 600, 1);
	assert_int_equal(b.bytes, 500);
	use_at(&b, 0, 2, false, true);
	assert_int_equal(b.ios, 2);
	/* I/Os are never lost. */
	baseline_set(&b, 0, 0);
	use_at(&b, 0, 3, false, true);
	assert_int_equal(b.ios, 2);
}

static void test_resizing(void **state)
{
	(void)state;
	struct baseline b;
	uint64_t held;

	baseline_init(&b);
	baseline_set(&b, 2000, 1);
	for (uint64_t epoch = 1; epoch <= 2000; epoch++)
		baseline_hold(&b, 1, epoch);
	held = baseline_rule(&b).held;
	assert_in_range(held, 1000, 1002);
	/* Half of it: the older half of the records is given up. */
	baseline_resize(&b, 1000);
	assert_int_equal(b.bytes, 500);
	assert_in_range(baseline_rule(&b).held, 1490, 1510);
	/* What was given up does not come back. */
	baseline_resize(&b, 2000);
	assert_in_range(baseline_rule(&b).held, 1490, 1510);
}

static void test_resampling_keeps_the_age(void **state)
{
	(void)state;
	struct baseline b;
	struct baseline_rule before, after;

	baseline_init(&b);
	baseline_set(&b, 1000, 0);
	for (uint64_t epoch = 1; epoch <= 2000; epoch++)
		baseline_hold(&b, 1, epoch);
	before = baseline_rule(&b);
	baseline_resample(&b, 1);
	after = baseline_rule(&b);
	assert_int_equal(b.bytes_max, 500);
	assert_in_range(b.bytes, 400, 500);
	assert_int_equal(after.held, before.held);
	assert_in_range(after.held, 1000, 1002);
	assert_in_range(after.recent, 1090, 1120);
	baseline_resample(&b, 0);
	assert_int_equal(b.bytes_max, 1000);
	assert_int_equal(baseline_rule(&b).held, before.held);
}

static void test_shift_follows_the_records(void **state)
{
	(void)state;
	assert_int_equal(baseline_shift(0), 0);
	assert_int_equal(baseline_shift(2 * BASELINE_SAMPLE - 1), 0);
	assert_int_equal(baseline_shift(2 * BASELINE_SAMPLE), 1);
	assert_int_equal(baseline_shift(8 * BASELINE_SAMPLE), 3);
	assert_int_equal(baseline_shift(UINT64_MAX), BASELINE_SHIFT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_cache_by_hand),
		cmocka_unit_test(test_first_use_takes_no_room),
		cmocka_unit_test(test_nothing_is_promised),
		cmocka_unit_test(test_resizing),
		cmocka_unit_test(test_resampling_keeps_the_age),
		cmocka_unit_test(test_shift_follows_the_records),
		cmocka_unit_test(test_ycsb_is_within_2_percent),
		cmocka_unit_test(test_uniform_is_within_2_percent),
		cmocka_unit_test(test_tpcc_is_within_2_percent),
		cmocka_unit_test(test_broken_sampling_is_seen),
		cmocka_unit_test(test_lru_is_another_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
