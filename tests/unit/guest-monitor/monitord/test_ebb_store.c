// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics: rates, sums for the host, and T1 to T3 of store.h.
 */
#include <endian.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "guest-monitor/monitord/store.h"

#define MS	1000000ull
#define T0	(5000 * MS)

static const struct ebb_msg_counters none;
static struct ebb_msg_counters sums;
static struct ebb_store_app app, other;
static const struct ebb_store_guest guest = {
	.cpus_online = 3,
	.cpu_permille = 1700,
	.cpu_permille_interval = 1600,
	.mem_total_bytes = 1 << 30,
	.mem_available_bytes = 1 << 20,
};

static int fresh(void **state)
{
	(void)state;
	sums = none;
	ebb_store_hello(&app, &none, T0);
	ebb_store_hello(&other, &none, T0);
	return 0;
}

static void report(struct ebb_store_app *to, uint64_t committed, uint64_t now_ns)
{
	struct ebb_msg_report r = {
		.counters = {
			.committed = committed, .aborted = committed / 10,
			.failed = committed / 100, .accesses = committed * 10,
		},
		.p50_us = 100, .p95_us = 200, .p99_us = 300, .workers = 2, .interval_ms = 500,
	};

	ebb_store_report(to, &sums, &r, now_ns);
}

static void rate_is(double rate, double expected)
{
	assert_true(fabs(rate - expected) < 0.001);
}

static void what_was_reported_is_read_back(void **state)
{
	union ebb_msg msg;

	(void)state;
	report(&app, 1000, T0 + 500 * MS);
	ebb_msg_init(&msg, EBB_MSG_STATS, 9);
	ebb_store_get(&app, &guest, &msg.stats);
	assert_int_equal(msg.stats.counters.committed, 1000);
	assert_int_equal(msg.stats.counters.aborted, 100);
	assert_int_equal(msg.stats.counters.failed, 10);
	assert_int_equal(msg.stats.counters.accesses, 10000);
	assert_int_equal(msg.stats.p50_us, 100);
	assert_int_equal(msg.stats.p95_us, 200);
	assert_int_equal(msg.stats.p99_us, 300);
	assert_int_equal(msg.stats.workers, 2);
	assert_int_equal(msg.stats.interval_ms, 500);
	assert_int_equal(msg.stats.cpu_permille, 1700);
	assert_int_equal(msg.stats.cpus_online, 3);
	assert_int_equal(msg.stats.mem_total_bytes, 1 << 30);
	assert_int_equal(msg.stats.mem_available_bytes, 1 << 20);
	assert_int_equal(msg.hdr.id, 9);
}

static void rates_are_between_two_reports(void **state)
{
	(void)state;
	report(&app, 1000, T0 + 500 * MS);
	rate_is(app.committed_ps, 2000);
	report(&app, 1300, T0 + 600 * MS);
	rate_is(app.committed_ps, 3000);
	rate_is(app.aborted_ps, 300);
	rate_is(app.accesses_ps, 30000);
	report(&app, 1300, T0 + 700 * MS);
	rate_is(app.committed_ps, 0);
}

static void reports_at_once_give_no_wild_rate(void **state)
{
	(void)state;
	report(&app, 1000, T0 + 500 * MS);
	report(&app, 1001, T0 + 500 * MS + 1000);
	rate_is(app.committed_ps, 2000);
	report(&app, 1200, T0 + 600 * MS);
	rate_is(app.committed_ps, 2000);
	assert_int_equal(app.counters.committed, 1200);
}

static void first_report_right_after_registering_gives_no_rate(void **state)
{
	(void)state;
	report(&app, 1000, T0 + 1);
	rate_is(app.committed_ps, 0);
	report(&app, 1100, T0 + 100 * MS + 1);
	rate_is(app.committed_ps, 1000);
}

static void counters_never_go_back(void **state)
{
	(void)state;
	report(&app, 1000, T0 + 100 * MS);
	report(&app, 400, T0 + 200 * MS);
	assert_int_equal(app.counters.committed, 1000);
	assert_int_equal(sums.committed, 1000);
	rate_is(app.committed_ps, 0);
	report(&app, 1100, T0 + 300 * MS);
	assert_int_equal(sums.committed, 1100);
}

static void sums_do_not_wrap(void **state)
{
	(void)state;
	report(&app, UINT64_MAX, T0 + 100 * MS);
	report(&other, 5, T0 + 100 * MS);
	assert_true(sums.committed == UINT64_MAX);
}

static void who_registers_again_is_not_counted_twice(void **state)
{
	struct ebb_msg_counters before;

	(void)state;
	report(&app, 1000, T0 + 100 * MS);
	before = app.counters;
	ebb_store_hello(&app, &before, T0 + 200 * MS);
	assert_int_equal(app.counters.committed, 1000);
	report(&app, 1500, T0 + 300 * MS);
	assert_int_equal(sums.committed, 1500);
	rate_is(app.committed_ps, 5000);
}

static void telemetry_sums_and_takes_the_worst(void **state)
{
	const struct ebb_store_app *apps[] = { &app, &other };
	struct ebb_msg_report slow = {
		.counters = { .baseline_ios = 70, .actual_ios = 80 },
		.p50_us = 90, .p95_us = 900, .p99_us = 9000, .workers = 5, .interval_ms = 1000,
		.baseline_mib = 64,
	};
	struct virtio_ebb_telemetry t;

	(void)state;
	report(&app, 1000, T0 + 100 * MS);
	ebb_store_report(&other, &sums, &slow, T0 + 100 * MS);
	ebb_store_telemetry(apps, 2, &sums, &guest, true, 250, T0 + 200 * MS, &t);
	assert_int_equal(le16toh(t.type), VIRTIO_EBB_TELEMETRY_TOTALS);
	assert_int_equal(le16toh(t.num_apps), 2);
	assert_int_equal(le32toh(t.interval_ms), 1000);
	assert_int_equal(le64toh(t.committed), 1000);
	assert_int_equal(le64toh(t.aborted), 100);
	assert_int_equal(le64toh(t.failed), 10);
	assert_int_equal(le64toh(t.accesses), 10000);
	assert_int_equal(le32toh(t.p50_us), 100);
	assert_int_equal(le32toh(t.p95_us), 900);
	assert_int_equal(le32toh(t.p99_us), 9000);
	assert_int_equal(le32toh(t.workers), 7);
	assert_int_equal(le32toh(t.cpus_online), 3);
	assert_int_equal(le32toh(t.cpu_permille), 1600);
	assert_int_equal(le64toh(t.mem_total_bytes), 1 << 30);
	assert_int_equal(le64toh(t.mem_available_bytes), 1 << 20);
	assert_int_equal(le64toh(t.baseline_ios), 70);
	assert_int_equal(le64toh(t.actual_ios), 80);
	assert_int_equal(le32toh(t.baseline_mib), 64);
	assert_int_equal(t.reserved, 0);
	assert_int_equal(t.reserved2, 0);
}

static void telemetry_says_nothing_of_caches_to_a_device_that_cannot(void **state)
{
	const struct ebb_store_app *apps[] = { &app };
	struct ebb_msg_report r = {
		.counters = { .baseline_ios = 70, .actual_ios = 80 }, .baseline_mib = 64,
	};
	struct virtio_ebb_telemetry t;

	(void)state;
	ebb_store_report(&app, &sums, &r, T0 + 100 * MS);
	/* A counter that goes back changes nothing. */
	r.counters.baseline_ios = 60;
	ebb_store_report(&app, &sums, &r, T0 + 200 * MS);
	assert_int_equal(sums.baseline_ios, 70);
	ebb_store_telemetry(apps, 1, &sums, &guest, false, 250, T0 + 200 * MS, &t);
	assert_int_equal(t.baseline_ios, 0);
	assert_int_equal(t.actual_ios, 0);
	assert_int_equal(t.baseline_mib, 0);
}

static void telemetry_forgets_old_latencies_but_no_counters(void **state)
{
	const struct ebb_store_app *apps[] = { &app };
	struct virtio_ebb_telemetry t;

	(void)state;
	report(&app, 1000, T0);
	ebb_store_telemetry(apps, 1, &sums, &guest, true, 250, T0 + EBB_STORE_FRESH_MS * MS, &t);
	assert_int_equal(le32toh(t.p99_us), 300);
	ebb_store_telemetry(apps, 1, &sums, &guest, true, 250, T0 + EBB_STORE_FRESH_MS * MS + 1,
			    &t);
	assert_int_equal(le32toh(t.p99_us), 0);
	assert_int_equal(le32toh(t.workers), 0);
	assert_int_equal(le32toh(t.interval_ms), 250);
	assert_int_equal(le64toh(t.committed), 1000);
	/* It left. */
	ebb_store_telemetry(apps, 0, &sums, &guest, true, 250, T0 + 1, &t);
	assert_int_equal(le16toh(t.num_apps), 0);
	assert_int_equal(le64toh(t.committed), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_was_reported_is_read_back, fresh),
		cmocka_unit_test_setup(rates_are_between_two_reports, fresh),
		cmocka_unit_test_setup(reports_at_once_give_no_wild_rate, fresh),
		cmocka_unit_test_setup(first_report_right_after_registering_gives_no_rate, fresh),
		cmocka_unit_test_setup(counters_never_go_back, fresh),
		cmocka_unit_test_setup(sums_do_not_wrap, fresh),
		cmocka_unit_test_setup(who_registers_again_is_not_counted_twice, fresh),
		cmocka_unit_test_setup(telemetry_sums_and_takes_the_worst, fresh),
		cmocka_unit_test_setup(telemetry_says_nothing_of_caches_to_a_device_that_cannot,
				       fresh),
		cmocka_unit_test_setup(telemetry_forgets_old_latencies_but_no_counters, fresh),
	};

	return cmocka_run_group_tests_name("ebb_store", tests, NULL, NULL);
}
