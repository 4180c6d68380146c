// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ledger in the history: rows that come late, twice or never, agents that restart, files of
 * agents that knew no ledger, and what is deleted.
 */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "daemon/metrics.h"
#include "tests/unit/host-agent/core/core_script.h"
#include "tests/unit/host-agent/daemon/history_rig.h"
#include "util/clock.h"
#include "util/log.h"


/*
 * As of second n of a count that began at second `since`, on both clocks: each second 300 ms were
 * wanted, 150 due and 150 got; in every third only 100, and 50 were violated.
 */
static struct ebb_history_entry entry(char vm, unsigned since, unsigned n)
{
	const unsigned broken = n / 3;
	struct ebb_history_entry e = {
		.ts = since + n,
		.record = {
			.event = EBB_EVENT_LEDGER, .at = (since + n) * EBB_USEC_PER_SEC,
			.total_usec = n * EBB_USEC_PER_SEC, .name = { vm }, .uuid = { (uint8_t)vm },
			.ledger = { .rate = 500000, .sum = {
				.metered_usec = n * EBB_USEC_PER_SEC, .wanted = n * 300,
				.promised = n * 150, .got = n * 150 - broken * 50,
				.violated = broken * 50, .unclear = n,
				.num_intervals = n, .num_violations = broken, .num_unclear = n,
			} },
		},
	};

	if (n % 3 == 0) {
		e.record.code = EBB_CAUSE_OTHERS;
		snprintf(e.record.text, sizeof(e.record.text), "second %u", n);
	}
	return e;
}

static void insert(struct ebb_history_db *db, char vm, unsigned since, unsigned n)
{
	const struct ebb_history_entry e = entry(vm, since, n);

	assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
}

static json_t *ask(struct ebb_history_db *db, enum ebb_history_what what, const char *vm,
		   double since)
{
	struct ebb_history_query q = { .what = what, .limit = 1000, .since_ts = since };
	struct ebb_err err = { "" };
	json_t *rows = NULL;

	snprintf(q.vm, sizeof(q.vm), "%s", vm);
	if (ebb_history_db_select(db, &q, &rows, &err) < 0)
		fail_msg("%s", err.text);
	return rows;
}

static long long integer(const json_t *row, const char *key)
{
	const json_t *value = json_object_get(row, key);

	if (!json_is_integer(value))
		fail_msg("\"%s\" is no integer", key);
	return json_integer_value(value);
}

static double real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static const char *text(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

/* So many intervals, of which so many were broken; the last of them at broken_ts, or 0. */
static void expect(struct ebb_history_db *db, double since, unsigned n, unsigned broken,
		   double first_ts, double broken_ts)
{
	json_t *rows = ask(db, EBB_HISTORY_LEDGER, "a", since), *row = json_array_get(rows, 0);

	assert_int_equal(json_array_size(rows), 1);
	assert_string_equal(text(row, "vm"), "a");
	assert_string_equal(text(row, "resource"), "cpu");
	assert_string_equal(text(row, "unit"), "usec");
	assert_int_equal(integer(row, "rate"), 500000);
	assert_int_equal(integer(row, "num_intervals"), n);
	assert_int_equal(integer(row, "num_violations"), broken);
	assert_int_equal(integer(row, "num_unclear"), n);
	assert_int_equal(integer(row, "wanted"), 300 * n);
	assert_int_equal(integer(row, "promised"), 150 * n);
	assert_int_equal(integer(row, "got"), 150 * n - 50 * broken);
	assert_int_equal(integer(row, "violated"), 50 * broken);
	assert_int_equal(integer(row, "unclear"), n);
	assert_float_equal(real(row, "metered_s"), n, 0);
	assert_float_equal(real(row, "first_ts"), first_ts, 0);
	if (broken_ts > 0) {
		assert_float_equal(real(row, "broken_ts"), broken_ts, 0);
		assert_string_equal(text(row, "cause"), "others");
		assert_memory_equal(text(row, "reason"), "second ", 7);
	} else {
		assert_true(json_is_null(json_object_get(row, "broken_ts")));
		assert_string_equal(text(row, "cause"), "none");
		assert_string_equal(text(row, "reason"), "");
	}
	json_decref(rows);
}

/* Volumes of one VM are counted apart, though their counts began at the same moment. */
static void test_volumes(void **state)
{
	static const char *const names[] = { "x", "y" };
	struct ebb_history_db *db = history_open_db();
	json_t *rows;

	(void)state;
	for (unsigned n = 1; n <= 6; n++)
		for (size_t i = 0; i < 2; i++) {
			struct ebb_history_entry e = entry('a', 1000, n * (unsigned)(i + 1));

			e.record.ledger.promise = EBB_PROMISE_IO;
			strcpy(e.record.ledger.volume, names[i]);
			assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
		}
	insert(db, 'a', 1000, 1);
	rows = ask(db, EBB_HISTORY_LEDGER, "a", 0);
	assert_int_equal(json_array_size(rows), 3);
	for (size_t i = 0; i < 2; i++) {
		const json_t *row = json_array_get(rows, i + 1);

		assert_memory_equal(text(row, "resource"), "io/", 3);
		assert_string_equal(text(row, "resource") + 3, names[i]);
		assert_string_equal(text(row, "unit"), "units");
		assert_int_equal(integer(row, "num_intervals"), 6 * (i + 1));
	}
	json_decref(rows);
	ebb_history_db_close(db);
}

static void test_sums(void **state)
{
	struct ebb_history_db *db = history_open_db();
	json_t *rows;

	(void)state;
	/* Late, twice, and beside another VM. */
	for (unsigned n = 20; n > 0; n--)
		insert(db, 'a', 1000, n);
	insert(db, 'a', 1000, 7);
	insert(db, 'b', 1000, 4);
	expect(db, 0, 20, 6, 1000, 1018);
	expect(db, 1015.5, 5, 1, 1015, 1018);
	expect(db, 1020, 1, 0, 1019, 0);
	rows = ask(db, EBB_HISTORY_LEDGER, "", 0);
	assert_int_equal(json_array_size(rows), 2);
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_LEDGER, "", 1010);
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_LEDGER, "c' OR 1=1 --", 0);
	assert_int_equal(json_array_size(rows), 0);
	json_decref(rows);
	ebb_history_db_close(db);
}

/* The agent, or the VM, starts again: a new count, that is added. */
static void test_restart(void **state)
{
	struct ebb_history_db *db = history_open_db();

	(void)state;
	insert(db, 'a', 1000, 10);
	ebb_history_db_close(db);
	db = history_open_db();
	insert(db, 'a', 2000, 2);
	insert(db, 'a', 2000, 5);
	expect(db, 0, 15, 4, 1000, 0);
	expect(db, 1500, 5, 1, 2000, 0);
	insert(db, 'a', 2000, 6);
	expect(db, 0, 16, 5, 1000, 2006);
	ebb_history_db_close(db);
}

/* Only some of the rows were ever written: the last one has it all. */
static void test_lost(void **state)
{
	struct ebb_history_db *db = history_open_db();
	json_t *rows, *row;

	(void)state;
	insert(db, 'a', 1000, 1);
	insert(db, 'a', 1000, 2);
	insert(db, 'a', 1000, 9);
	expect(db, 0, 9, 3, 1000, 1009);
	rows = ask(db, EBB_HISTORY_INTERVALS, "a", 0);
	assert_int_equal(json_array_size(rows), 3);
	row = json_array_get(rows, 0);
	assert_int_equal(integer(row, "num_intervals"), 1);
	assert_int_equal(integer(row, "promised"), 150);
	assert_float_equal(real(row, "ts"), 1001, 0);
	assert_string_equal(text(row, "cause"), "none");
	row = json_array_get(rows, 2);
	assert_int_equal(integer(row, "num_intervals"), 7);
	assert_int_equal(integer(row, "num_violations"), 3);
	assert_int_equal(integer(row, "wanted"), 7 * 300);
	assert_int_equal(integer(row, "violated"), 150);
	assert_float_equal(real(row, "metered_s"), 7, 0);
	assert_string_equal(text(row, "reason"), "second 9");
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_INTERVALS, "a", 1002);
	assert_int_equal(json_array_size(rows), 2);
	assert_int_equal(integer(json_array_get(rows, 0), "wanted"), 300);
	json_decref(rows);
	ebb_history_db_close(db);
}

static void test_old_file(void **state)
{
	struct ebb_history_db *db = history_open_db();
	struct ebb_history_entry e = { .ts = 7, .record = { .event = EBB_EVENT_GRANT } };
	struct ebb_history_query q = { .limit = 10 };
	json_t *rows;
	sqlite3 *sql;

	(void)state;
	assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	ebb_history_db_close(db);
	assert_int_equal(sqlite3_open(history_path, &sql), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sql, "DROP TABLE ledger; DROP TABLE ledger_minutes;"
				      "DROP TABLE ledger_intervals;", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(sql);
	db = history_open_db();
	insert(db, 'a', 1000, 3);
	expect(db, 0, 3, 1, 1000, 1003);
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_int_equal(json_array_size(rows), 1);
	json_decref(rows);
	ebb_history_db_close(db);
}

/* Totals stay; minutes stay for longer than intervals. */
static void test_trim(void **state)
{
	struct ebb_history_db *db;
	json_t *rows;

	(void)state;
	assert_int_equal(ebb_history_db_open(NULL, 100, &db, NULL), 0);
	ebb_history_db_keep(db, 1);
	insert(db, 'a', 0, 30);
	insert(db, 'a', 0, 59);
	for (unsigned n = 3600; n < 3 * 3600; n += 60)
		insert(db, 'a', 0, n);
	rows = ask(db, EBB_HISTORY_INTERVALS, "a", 0);
	/* One hour, less the oldest: what was before it is gone. */
	assert_int_equal(json_array_size(rows), 60);
	assert_int_equal(integer(json_array_get(rows, 0), "num_intervals"), 60);
	json_decref(rows);
	expect(db, 0, 10740, 3580, 0, 10740);
	expect(db, 10740, 60, 20, 10680, 10740);
	/* From the minutes, of which 100 are there; before that, all is counted. */
	expect(db, 5000, 10740 - 4920, 1940, 4920, 10740);
	expect(db, 1000, 10740, 3580, 0, 10740);
	ebb_history_db_close(db);
}

/* ---- from the accounts of threads to the file ------------------------------- */

/* An agent starts and finds the VM running, which is promised half of a core. */
static void start_agent(struct script *s)
{
	struct ebb_sla sla = script_sla("1/1");

	s->state = ebb_state_create(&s->cfg, &s->host, s->policy);
	assert_non_null(s->state);
	sla.is_shared = true;
	sla.reserve_percent = 50;
	assert_int_equal(script_define(s, 'a', &sla), 0);
	assert_int_equal(script_found(s, 'a', 1, s->now, "0@1"), 0);
	script_loaded(s);
	script_settle(s);
}

/* A second later its thread has run so long in all, and waited for the rest; ms. */
static void read_times(struct script *s, struct ebb_history_db *db, unsigned ran, unsigned waited)
{
	char times[48];

	s->now += SEC(1);
	snprintf(times, sizeof(times), "0:%u/0+%u", ran, waited);
	assert_int_equal(script_cpu_times(s, 'a', times), 0);
	while (script_find_record(s, 'a', EBB_EVENT_LEDGER)) {
		const struct ebb_history_entry e = {
			.ts = (double)s->record.at / EBB_USEC_PER_SEC, .record = s->record,
		};

		assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	}
}

static void expect_metric(const struct script *s, const char *line)
{
	char *all = ebb_metrics_text(s->state, s->now);

	assert_non_null(all);
	if (!strstr(all, line))
		fail_msg("%s is not in %s", line, all);
	free(all);
}

/* The agent is killed and started again: what passed in between is not metered, and not lost. */
static void test_agent_restart(void **state)
{
	struct ebb_history_db *db = history_open_db();
	struct script s;
	json_t *rows, *row;

	(void)state;
	script_init_loading(&s, 1, 2, 1, false);
	script_finish(&s);
	s.host.is_emulated = false;
	s.host.cores[1].is_shared = true;
	start_agent(&s);
	read_times(&s, db, 100, 0);
	read_times(&s, db, 400, 700);
	read_times(&s, db, 900, 1200);
	expect_metric(&s, "\nebb_cpu_wanted_seconds_total{vm=\"a\"} 2.000000\n");
	expect_metric(&s, "\nebb_cpu_promised_seconds_total{vm=\"a\"} 1.000000\n");
	expect_metric(&s, "\nebb_cpu_got_seconds_total{vm=\"a\"} 0.800000\n");
	expect_metric(&s, "\nebb_cpu_violated_seconds_total{vm=\"a\"} 0.200000\n");
	expect_metric(&s, "\nebb_cpu_unclear_seconds_total{vm=\"a\"} 0.000000\n");
	expect_metric(&s, "\nebb_promise_intervals_total{vm=\"a\",resource=\"cpu\"} 2\n");
	expect_metric(&s, "\nebb_promise_violations_total{vm=\"a\",resource=\"cpu\"} 1\n");
	script_finish(&s);
	s.now += SEC(10);
	start_agent(&s);
	read_times(&s, db, 2000, 5000);
	read_times(&s, db, 2400, 5600);
	rows = ask(db, EBB_HISTORY_LEDGER, "a", 0);
	assert_int_equal(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	assert_float_equal(real(row, "metered_s"), 3, 0);
	assert_int_equal(integer(row, "wanted"), SEC(3));
	assert_int_equal(integer(row, "promised"), MSEC(1500));
	assert_int_equal(integer(row, "got"), MSEC(1200));
	assert_int_equal(integer(row, "violated"), MSEC(300));
	assert_int_equal(integer(row, "num_violations"), 2);
	assert_string_equal(text(row, "cause"), "host");
	assert_string_equal(text(row, "reason"),
			    "it waited 600 ms: itself 0 ms, the host 600 ms");
	json_decref(rows);
	script_finish(&s);
	ebb_history_db_close(db);
}

/* ---- through the batching -------------------------------------------------- */

static json_t *ask_rig(struct history_rig *r, enum ebb_history_what what)
{
	json_t *rows;

	history_rig_ask(r, what);
	rows = history_rig_wait(r);
	assert_non_null(rows);
	return rows;
}

static void add(struct history_rig *r, char vm, unsigned n)
{
	struct ebb_history_entry e = entry(vm, 1000, n);

	/* As if it had just ended: the machine itself may not run for so long yet. */
	ebb_history_add(r->history, &e.record, e.record.at);
}

/* Nothing can be written for long: of the intervals some are lost, of the sums nothing. */
static void test_full(void **state)
{
	struct ebb_history_db *db;
	struct history_rig r = { 0 };
	sqlite3 *lock;
	json_t *rows;

	(void)state;
	history_rig_open(&r);
	assert_int_equal(sqlite3_open(history_path, &lock), SQLITE_OK);
	assert_int_equal(sqlite3_exec(lock, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (unsigned n = 1; n <= 6000; n++) {
		add(&r, 'a', n);
		add(&r, 'b', n);
	}
	json_decref(ask_rig(&r, EBB_HISTORY_LEDGER));
	sqlite3_close(lock);
	rows = ask_rig(&r, EBB_HISTORY_LEDGER);
	assert_int_equal(json_array_size(rows), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(integer(json_array_get(rows, i), "num_intervals"), 6000);
		assert_int_equal(integer(json_array_get(rows, i), "violated"), 2000 * 50);
	}
	json_decref(rows);
	rows = ask_rig(&r, EBB_HISTORY_INTERVALS);
	assert_in_range(json_array_size(rows), 1000, 8192);
	json_decref(rows);
	/* What is left is written when the agent ends. */
	add(&r, 'a', 6003);
	history_rig_close(&r);
	db = history_open_db();
	rows = ask(db, EBB_HISTORY_LEDGER, "a", 0);
	assert_int_equal(integer(json_array_get(rows, 0), "num_intervals"), 6003);
	json_decref(rows);
	ebb_history_db_close(db);
}

/* While all goes well each interval has its row, however many come at once. */
static void test_each(void **state)
{
	struct history_rig r = { 0 };
	json_t *rows;

	(void)state;
	history_rig_open(&r);
	for (unsigned n = 1; n <= 500; n++)
		add(&r, 'a', n);
	rows = ask_rig(&r, EBB_HISTORY_INTERVALS);
	assert_int_equal(json_array_size(rows), 500);
	json_decref(rows);
	history_rig_close(&r);
}

static void keep_records(struct script *s, struct ebb_history_db *db)
{
	struct ebb_history_entry e;

	while (ebb_state_record_pop(s->state, &e.record)) {
		e.ts = (double)e.record.at / EBB_USEC_PER_SEC;
		if (e.record.event == EBB_EVENT_LEDGER)
			assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	}
}

/* A promised cache: from what the guest counts to the file and the metrics. */
static void test_cache(void **state)
{
	struct ebb_history_db *db = history_open_db();
	struct ebb_sla sla = script_sla("1/1m0-1024");
	json_t *rows, *row;
	struct script s;

	(void)state;
	script_init(&s, 1, 2, 1, false);
	sla.reserve_mem_mib = 64;
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_running(&s, 'a', 1), 0);
	script_settle(&s);
	for (uint64_t n = 0; n < 4; n++) {
		s.now += SEC(1);
		assert_int_equal(script_baseline(&s, 'a', 64, 1000 * n, 1250 * n), 0);
		keep_records(&s, db);
	}
	rows = ask(db, EBB_HISTORY_LEDGER, "a", 0);
	assert_int_equal(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(row, "resource")), "memory");
	assert_string_equal(json_string_value(json_object_get(row, "unit")), "ios");
	assert_int_equal(integer(row, "rate"), 64);
	assert_int_equal(integer(row, "promised"), 3000);
	assert_int_equal(integer(row, "got"), 3750);
	assert_int_equal(integer(row, "violated"), 750);
	assert_int_equal(integer(row, "num_violations"), 3);
	assert_float_equal(real(row, "relative_io"), 0.25, 1e-9);
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_INTERVALS, "a", 0);
	assert_int_equal(json_array_size(rows), 3);
	assert_float_equal(real(json_array_get(rows, 2), "relative_io"), 0.25, 1e-9);
	json_decref(rows);
	expect_metric(&s, "\nebb_cache_baseline_ios_total{vm=\"a\"} 3000\n");
	expect_metric(&s, "\nebb_cache_actual_ios_total{vm=\"a\"} 3750\n");
	expect_metric(&s, "\nebb_cache_violated_ios_total{vm=\"a\"} 750\n");
	expect_metric(&s, "\nebb_promise_violations_total{vm=\"a\",resource=\"memory\"} 3\n");
	script_finish(&s);
	ebb_history_db_close(db);
}

/* Reads beyond a promised cache are I/O of the system, which has a row of its own. */
static void test_system(void **state)
{
	struct ebb_history_db *db = history_open_db();
	struct ebb_sla sla = script_sla("1/1m0-1024");
	json_t *rows, *row;
	struct script s;

	(void)state;
	script_init(&s, 1, 2, 1, false);
	script_volumes_up(&s);
	sla.reserve_mem_mib = 64;
	sla.io.reserve_iops = 600;
	s.volumes.num = 1;
	strcpy(s.volumes.names[0], "x");
	assert_int_equal(script_define(&s, 'a', &sla), 0);
	assert_int_equal(script_running(&s, 'a', 1), 0);
	script_settle(&s);
	for (uint64_t n = 0; n < 4; n++) {
		s.now += SEC(1);
		assert_int_equal(script_baseline(&s, 'a', 64, 0, 250 * n), 0);
		script_volume_meter(&s, "x", "", (struct ebb_volume_counters){
			.intervals = n, .charged = 400 * n });
		keep_records(&s, db);
	}
	rows = ask(db, EBB_HISTORY_LEDGER, "system", 0);
	assert_int_equal(json_array_size(rows), 1);
	row = json_array_get(rows, 0);
	assert_string_equal(text(row, "vm"), "system");
	assert_string_equal(text(row, "resource"), "io/x");
	assert_int_equal(integer(row, "got"), 750);
	assert_int_equal(integer(row, "wanted"), 750);
	assert_int_equal(integer(row, "promised") + integer(row, "rate"), 0);
	assert_int_equal(integer(row, "num_intervals"), 3);
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_INTERVALS, "system", 0);
	assert_int_equal(json_array_size(rows), 3);
	assert_int_equal(integer(json_array_get(rows, 2), "got"), 250);
	json_decref(rows);
	rows = ask(db, EBB_HISTORY_LEDGER, "a", 0);
	assert_int_equal(json_array_size(rows), 2);
	row = json_array_get(rows, 0);
	row = strcmp(text(row, "resource"), "io/x") == 0 ? row : json_array_get(rows, 1);
	assert_int_equal(integer(row, "got"), 450);
	assert_int_equal(integer(row, "promised"), 450);
	assert_int_equal(integer(row, "unclear"), 750);
	json_decref(rows);
	expect_metric(&s, "\nebb_io_got_units_total{vm=\"a\",volume=\"x\"} 450\n");
	expect_metric(&s, "\nebb_io_unclear_units_total{vm=\"a\",volume=\"x\"} 750\n");
	expect_metric(&s, "\nebb_io_system_units_total{vm=\"a\",volume=\"x\"} 750\n");
	script_finish(&s);
	ebb_history_db_close(db);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(test_##name, history_folder_make, history_folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sums), TEST(restart), TEST(lost), TEST(old_file), TEST(trim),
		TEST(agent_restart), TEST(full), TEST(each), TEST(cache), TEST(volumes),
		TEST(system),
	};

	return cmocka_run_group_tests_name("daemon/history: ledger", tests, NULL, NULL);
}
