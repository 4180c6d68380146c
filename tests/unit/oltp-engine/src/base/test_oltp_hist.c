// SPDX-License-Identifier: GPL-2.0-or-later
/* The latency histogram: buckets without gaps, quantiles near the truth. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "oltp-engine/src/base/hist.h"

static void test_buckets_rise_and_stay_close(void **state)
{
	(void)state;
	uint32_t last = 0;

	for (uint64_t value = 0; value < 1000000; value += 1 + value / 1000) {
		uint32_t bucket = hist_bucket_of(value);

		assert_true(bucket == last || bucket == last + 1);
		assert_true(fabs(hist_bucket_ns(bucket) - (double)value) <=
			    0.5 + (double)value / 32);
		last = bucket;
	}
	assert_int_equal(hist_bucket_of(1ull << 40), HIST_BUCKETS - 1);
	assert_int_equal(hist_bucket_of(UINT64_MAX), HIST_BUCKETS - 1);
	assert_true(hist_bucket_of((1ull << 40) - 1) == HIST_BUCKETS - 1);
}

static void test_quantiles(void **state)
{
	(void)state;
	static struct hist hist;
	struct hist_view view = { 0 }, older;

	assert_true(hist_view_quantile_ns(&view, 0.5) == 0);
	for (uint64_t i = 1; i <= 10000; i++)
		hist_record(&hist, i * 100);
	hist_view_add(&view, &hist);
	assert_int_equal(hist_view_count(&view), 10000);
	assert_true(fabs(hist_view_quantile_ns(&view, 0.50) - 500000) < 500000 / 25.0);
	assert_true(fabs(hist_view_quantile_ns(&view, 0.95) - 950000) < 950000 / 25.0);
	assert_true(fabs(hist_view_quantile_ns(&view, 0.99) - 990000) < 990000 / 25.0);
	assert_true(fabs(hist_view_quantile_ns(&view, 1) - 1000000) < 1000000 / 25.0);

	/* An interval is a difference: the slow past no longer counts. */
	older = view;
	for (int i = 0; i < 100; i++)
		hist_record(&hist, 2000);
	view = (struct hist_view){ 0 };
	hist_view_add(&view, &hist);
	hist_view_sub(&view, &older);
	assert_int_equal(hist_view_count(&view), 100);
	assert_true(fabs(hist_view_quantile_ns(&view, 0.99) - 2000) < 2000 / 25.0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_rise_and_stay_close),
		cmocka_unit_test(test_quantiles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
