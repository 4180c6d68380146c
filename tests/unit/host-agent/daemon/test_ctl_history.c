/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The history database: what goes in comes out; old rows, damaged and foreign files. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/unit/host-agent/daemon/history_rig.h"
#include "util/clock.h"

#define WEB		"00000001-0000-0000-0000-000000000000"

static struct ebb_history_entry entry(double ts, const char *vm, enum ebb_event event)
{
	struct ebb_history_entry e = {
		.ts = ts,
		.record = { .at = 5 * EBB_USEC_PER_SEC, .event = event, .node = 1, .cpus = 2,
			    .asked = 3, .bytes = 5ull << 40, .text = "because" },
	};

	snprintf(e.record.name, sizeof(e.record.name), "%s", vm);
	return e;
}

static json_t *select_rows(struct ebb_history_db *db, const char *vm, const char *event,
			   double since, uint32_t limit)
{
	struct ebb_history_query q = { .since_ts = since, .limit = limit };
	json_t *rows = NULL;

	snprintf(q.vm, sizeof(q.vm), "%s", vm);
	snprintf(q.event, sizeof(q.event), "%s", event);
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	return rows;
}

static void expect_count(struct ebb_history_db *db, const char *vm, const char *event, double since,
			 uint32_t limit, size_t count)
{
	json_t *rows = select_rows(db, vm, event, since, limit);

	assert_int_equal(json_array_size(rows), count);
	json_decref(rows);
}

static double number(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static void test_round_trip(void **state)
{
	struct ebb_history_entry e[3] = {
		entry(100.5, "web", EBB_EVENT_GRANT), entry(101, "db's", EBB_EVENT_DEMAND),
		entry(102, "web", EBB_EVENT_DEMAND),
	};
	struct ebb_history_db *db;
	struct ebb_err err = { "" };
	json_t *rows, *row;

	(void)state;
	e[0].record.total_usec = 2500;
	e[0].record.libvirt_usec = 1500;
	e[1].record.node = EBB_NODE_ANY;
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	assert_int_equal(ebb_history_db_insert(db, e, 3, &err), 0);
	ebb_history_db_close(db);
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	assert_string_equal(err.text, "");
	rows = select_rows(db, "", "", 0, 100);
	assert_int_equal(json_array_size(rows), 3);
	row = json_array_get(rows, 0);
	assert_true(json_real_value(json_object_get(row, "ts")) == 100.5);
	assert_true(json_real_value(json_object_get(row, "mono_s")) == 5);
	assert_string_equal(json_string_value(json_object_get(row, "event")), "grant");
	assert_int_equal(json_integer_value(json_object_get(row, "node")), 1);
	assert_int_equal(json_integer_value(json_object_get(row, "cpus")), 2);
	assert_int_equal(json_integer_value(json_object_get(row, "bytes")), 5ull << 40);
	assert_true(json_real_value(json_object_get(row, "total_ms")) == 2.5);
	assert_true(json_real_value(json_object_get(row, "agent_ms")) == 0);
	assert_string_equal(json_string_value(json_object_get(row, "reason")), "because");
	row = json_array_get(rows, 1);
	assert_true(json_is_null(json_object_get(row, "node")));
	assert_true(json_is_null(json_object_get(row, "total_ms")));
	json_decref(rows);
	expect_count(db, "web", "", 0, 100, 2);
	expect_count(db, "db's", "", 0, 100, 1);
	expect_count(db, "' OR 1=1 --", "", 0, 100, 0);
	expect_count(db, "", "demand", 0, 100, 2);
	expect_count(db, "", "", 101, 100, 2);
	/* The newest, oldest of them first. */
	rows = select_rows(db, "", "", 0, 2);
	assert_true(json_real_value(json_object_get(json_array_get(rows, 0), "ts")) == 101);
	json_decref(rows);
	ebb_history_db_close(db);
}

static void test_trim(void **state)
{
	struct ebb_history_entry e[50];
	struct ebb_history_db *db;

	(void)state;
	for (int i = 0; i < 50; i++)
		e[i] = entry(i, "web", EBB_EVENT_OFFER);
	assert_int_equal(ebb_history_db_open(NULL, 60, &db, NULL), 0);
	assert_int_equal(ebb_history_db_insert(db, e, 50, NULL), 0);
	expect_count(db, "", "", 0, 1000, 50);
	assert_int_equal(ebb_history_db_insert(db, e, 50, NULL), 0);
	expect_count(db, "", "", 0, 1000, 60);
	ebb_history_db_close(db);
}

static void expect_set_aside(const char *text)
{
	struct ebb_history_db *db;
	struct ebb_err err = { "" };
	char old[128];
	struct stat st;

	snprintf(old, sizeof(old), "%s.old", history_path);
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" is not in \"%s\"", text, err.text);
	assert_int_equal(stat(old, &st), 0);
	expect_count(db, "", "", 0, 10, 0);
	ebb_history_db_close(db);
}

static void test_damaged(void **state)
{
	FILE *f = fopen(history_path, "w");

	(void)state;
	for (int i = 0; i < 1000; i++)
		fputs("this is no database ", f);
	fclose(f);
	expect_set_aside("not a database");
}

/* SQLite would read the log of an earlier file into the one that is set aside now. */
static void test_damaged_again(void **state)
{
	char log[128];
	struct stat st;

	snprintf(log, sizeof(log), "%s.old-wal", history_path);
	fclose(fopen(log, "w"));
	test_damaged(state);
	assert_int_equal(stat(log, &st), -1);
}

/*
 * No file can grow, as on a disk that is full: the history stays where it is, however often ebbd is
 * started.
 */
static void test_no_room(void **state)
{
	const struct ebb_history_entry e = entry(1, "web", EBB_EVENT_GRANT);
	struct rlimit before, none;
	struct ebb_history_db *db;
	struct ebb_err err;

	(void)state;
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, NULL), 0);
	assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	ebb_history_db_close(db);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	for (int i = 0; i < 2; i++) {
		err.text[0] = '\0';
		assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), -EIO);
		assert_non_null(strstr(err.text, history_path));
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	expect_count(db, "web", "", 0, 10, 1);
	ebb_history_db_close(db);
}

/* Root can rename devices: with --history /dev/null there must still be a /dev/null afterwards. */
static void test_no_file(void **state)
{
	struct ebb_history_db *db = NULL;
	struct ebb_err err = { "" };
	struct stat st;

	(void)state;
	assert_int_equal(symlink("/dev/full", history_path), 0);
	assert_true(ebb_history_db_open(history_path, 1000, &db, &err) < 0);
	assert_true(*err.text);
	assert_int_equal(lstat(history_path, &st), 0);
	assert_int_equal(unlink(history_path), 0);
	assert_int_equal(mkdir(history_path, 0700), 0);
	assert_true(ebb_history_db_open(history_path, 1000, &db, &err) < 0);
	assert_int_equal(stat(history_path, &st), 0);
}

static void test_other_version(void **state)
{
	sqlite3 *sql;

	(void)state;
	assert_int_equal(sqlite3_open(history_path, &sql), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sql, "PRAGMA user_version = 99", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(sql);
	expect_set_aside("is of version 99, not 5");
}

/* In the last version a row had what was held in its minute, not since counting began. */
static void test_last_version(void **state)
{
	static const char old[] =
		"CREATE TABLE decisions (id INTEGER PRIMARY KEY, ts REAL NOT NULL,"
		" mono_s REAL NOT NULL, vm TEXT NOT NULL, uuid TEXT NOT NULL, event TEXT NOT NULL,"
		" node INTEGER, cpus INTEGER NOT NULL, asked INTEGER NOT NULL,"
		" bytes INTEGER NOT NULL, code TEXT NOT NULL, agent_ms REAL, libvirt_ms REAL,"
		" place_ms REAL, total_ms REAL, reason TEXT NOT NULL, sla TEXT);"
		"CREATE INDEX decisions_vm ON decisions (vm, id);"
		"CREATE TABLE charges (id INTEGER PRIMARY KEY, vm TEXT NOT NULL,"
		" uuid TEXT NOT NULL, boot TEXT NOT NULL, run INTEGER NOT NULL,"
		" minute INTEGER NOT NULL, first_ts REAL NOT NULL, last_ts REAL NOT NULL,"
		" until_usec INTEGER NOT NULL, reserved_core_usec INTEGER NOT NULL,"
		" spot_core_usec INTEGER NOT NULL, reserved_mib_msec INTEGER NOT NULL,"
		" spot_mib_msec INTEGER NOT NULL, UNIQUE (uuid, boot, run, minute));"
		"PRAGMA user_version = 4;"
		"INSERT INTO decisions VALUES (1, 100, 5, 'web', 'u', 'grant', 0, 2, 2, 0, 'none',"
		" 1, 1, 1, 3, 'because', NULL);"
		"INSERT INTO charges VALUES"
		" (1, 'web', '" WEB "', 'x', 7, 2, 100, 160, 65000000, 60250000, 7000000, 1500,"
		" 125),"
		" (2, 'web', '" WEB "', 'x', 8, 2, 170, 175, 85000000, 5000000, 0, 0, 0),"
		" (3, 'web', '" WEB "', 'x', 7, 3, 160, 180, 85000000, 20000000, 1000000, 0, 0);";
	struct ebb_history_query q = { .what = EBB_HISTORY_CHARGE, .limit = 10 };
	struct ebb_history_entry e = entry(200, "web", EBB_EVENT_DEMAND);
	struct ebb_history_db *db;
	struct ebb_err err = { "" };
	json_t *rows;
	sqlite3 *sql;

	(void)state;
	assert_int_equal(sqlite3_open(history_path, &sql), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sql, old, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(sql);
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	assert_string_equal(err.text, "");
	expect_count(db, "web", "", 0, 100, 1);
	expect_count(db, "web", "grant", 0, 100, 1);
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_int_equal(json_array_size(rows), 1);
	assert_float_equal(number(json_array_get(rows, 0), "first_ts"), 100, 0);
	assert_float_equal(number(json_array_get(rows, 0), "last_ts"), 180, 0);
	assert_float_equal(number(json_array_get(rows, 0), "reserved_core_s"), 85.25, 0);
	assert_float_equal(number(json_array_get(rows, 0), "spot_core_s"), 8, 0);
	assert_float_equal(number(json_array_get(rows, 0), "spot_mib_s"), 0.125, 0);
	json_decref(rows);
	q.since_ts = 165;
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_float_equal(number(json_array_get(rows, 0), "reserved_core_s"), 25, 0);
	json_decref(rows);
	assert_int_equal(ebb_history_db_insert(db, &e, 1, &err), 0);
	expect_count(db, "web", "", 0, 100, 2);
	ebb_history_db_close(db);
	/* It is of this version from now on. */
	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, &err), 0);
	expect_count(db, "web", "", 0, 100, 2);
	ebb_history_db_close(db);
}

static void test_impossible_place(void **state)
{
	struct ebb_history_db *db;
	struct ebb_err err = { "" };

	(void)state;
	assert_int_equal(ebb_history_db_open("/nonexistent/history.db", 1000, &db, &err), -EIO);
	assert_non_null(strstr(err.text, "/nonexistent/history.db"));
}

/* What a VM has held from 70 to ts. */
static struct ebb_history_entry charge(double ts, const char *vm, uint8_t uuid, uint64_t core_s,
				       uint64_t spot_mib_s)
{
	struct ebb_history_entry e = entry(ts, vm, EBB_EVENT_CHARGE);

	e.record.uuid[0] = uuid;
	e.record.at = (usec_t)(ts * EBB_USEC_PER_SEC);
	e.record.order = 4;
	e.record.total_usec = (usec_t)((ts - 70) * EBB_USEC_PER_SEC);
	e.record.charge[EBB_CLASS_RESERVED].core_usec = core_s * EBB_USEC_PER_SEC;
	e.record.charge[EBB_CLASS_SPOT].core_usec = core_s * EBB_USEC_PER_SEC / 2;
	e.record.charge[EBB_CLASS_SPOT].mib_msec = spot_mib_s * 1000;
	return e;
}

static void expect_web(struct ebb_history_db *db, double since, double first_ts, double last_ts,
		       double reserved_core_s, double spot_mib_s)
{
	struct ebb_history_query q = {
		.what = EBB_HISTORY_CHARGE, .limit = 10, .since_ts = since, .vm = "web",
	};
	json_t *rows, *row;

	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_int_equal(json_array_size(rows), 2);
	row = json_array_get(rows, 0);
	assert_string_equal(json_string_value(json_object_get(row, "vm")), "web");
	assert_string_equal(json_string_value(json_object_get(row, "uuid")),
			    "01000000-0000-0000-0000-000000000000");
	assert_float_equal(number(row, "first_ts"), first_ts, 0);
	assert_float_equal(number(row, "last_ts"), last_ts, 0);
	assert_float_equal(number(row, "reserved_core_s"), reserved_core_s, 0);
	assert_float_equal(number(row, "spot_core_s"), reserved_core_s / 2, 0);
	assert_float_equal(number(row, "reserved_mib_s"), 0, 0);
	assert_float_equal(number(row, "spot_mib_s"), spot_mib_s, 0);
	/* Another VM of the same name has an account of its own. */
	assert_float_equal(number(json_array_get(rows, 1), "reserved_core_s"), 2, 0);
	json_decref(rows);
}

/* A history of one decision and one charge. */
static void make_history(void)
{
	const struct ebb_history_entry e[] = {
		charge(100, "web", 1, 60, 5), entry(110, "web", EBB_EVENT_GRANT),
	};
	struct ebb_history_db *db;

	assert_int_equal(ebb_history_db_open(history_path, 1000, &db, NULL), 0);
	assert_int_equal(ebb_history_db_insert(db, e, 2, NULL), 0);
	ebb_history_db_close(db);
}

static int query(const char *file, const char *text)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *sql;
	int value;

	assert_int_equal(sqlite3_open(file, &sql), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(sql, text, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	value = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	sqlite3_close(sql);
	return value;
}

/* What could still be read is in the file that was set aside. */
static void expect_decision_aside(void)
{
	char old[128];

	snprintf(old, sizeof(old), "%s.old", history_path);
	assert_int_equal(query(old, "SELECT count(*) FROM decisions WHERE vm = 'web'"), 1);
}

/* Of all tables only that of charges is damaged: its first page is not what SQLite wrote. */
static void test_damaged_charges(void **state)
{
	char page[65536];
	long size, number;
	FILE *f;

	(void)state;
	make_history();
	size = query(history_path, "PRAGMA page_size");
	number = query(history_path, "SELECT rootpage FROM sqlite_master WHERE name = 'charges'");
	f = fopen(history_path, "r+");
	memset(page, 0xa5, sizeof(page));
	assert_int_equal(fseek(f, (number - 1) * size, SEEK_SET), 0);
	assert_int_equal(fwrite(page, 1, (size_t)size, f), size);
	assert_int_equal(fclose(f), 0);
	expect_set_aside("malformed");
	expect_decision_aside();
}

static void test_foreign_charges(void **state)
{
	sqlite3 *sql;

	(void)state;
	make_history();
	assert_int_equal(sqlite3_open(history_path, &sql), SQLITE_OK);
	assert_int_equal(sqlite3_exec(sql, "DROP TABLE charges; CREATE TABLE charges (id INTEGER "
				      "PRIMARY KEY, uuid TEXT, boot TEXT)", NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(sql);
	expect_set_aside("no such column");
	expect_decision_aside();
}

static void test_charge(void **state)
{
	/* In any order, and one of them twice. */
	struct ebb_history_entry e[] = {
		charge(100, "web", 1, 60, 5), entry(110, "web", EBB_EVENT_GRANT),
		charge(160, "web", 1, 100, 9), charge(160, "db", 2, 7, 0),
		charge(400, "web", 3, 2, 0), charge(220, "web", 1, 101, 11),
		charge(161, "web", 1, 100, 11), charge(160, "web", 1, 100, 9),
	};
	struct ebb_history_query q = { .what = EBB_HISTORY_CHARGE, .limit = 10, .vm = "db" };
	struct ebb_history_db *db;
	json_t *rows;

	(void)state;
	assert_int_equal(ebb_history_db_open(NULL, 1000, &db, NULL), 0);
	e[4].record.total_usec = 100 * EBB_USEC_PER_SEC;
	assert_int_equal(ebb_history_db_insert(db, e, 8, NULL), 0);
	expect_web(db, 0, 70, 220, 101, 11);
	expect_web(db, 90, 70, 220, 101, 11);
	expect_web(db, 150, 100, 220, 41, 6);
	expect_web(db, 200, 161, 220, 1, 0);
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_int_equal(json_array_size(rows), 1);
	assert_float_equal(number(json_array_get(rows, 0), "reserved_core_s"), 7, 0);
	json_decref(rows);
	ebb_history_db_close(db);
}

/* Old rows leave the table: of a VM that still runs nothing is lost with them. */
static void test_charge_trim(void **state)
{
	struct ebb_history_query q = { .what = EBB_HISTORY_CHARGE, .limit = 10 };
	struct ebb_history_db *db;
	json_t *rows;

	(void)state;
	assert_int_equal(ebb_history_db_open(NULL, 3, &db, NULL), 0);
	for (int i = 1; i < 10; i++) {
		const struct ebb_history_entry e = charge(70 + 60 * i, "web", 1, 60 * i, 0);

		assert_int_equal(ebb_history_db_insert(db, &e, 1, NULL), 0);
	}
	assert_int_equal(ebb_history_db_select(db, &q, &rows, NULL), 0);
	assert_float_equal(number(json_array_get(rows, 0), "first_ts"), 70, 0);
	assert_float_equal(number(json_array_get(rows, 0), "reserved_core_s"), 540, 0);
	json_decref(rows);
	ebb_history_db_close(db);
}

/* Through the batching: a question sees everything that was added before it. */

static void test_batches(void **state)
{
	struct history_rig r = { 0 };
	json_t *rows;

	(void)state;
	history_rig_open(&r);
	for (int i = 0; i < 300; i++) {
		struct ebb_history_entry e = entry(0, "web", EBB_EVENT_OFFER);

		e.record.at = ebb_clock_mono_usec();
		ebb_history_add(r.history, &e.record, ebb_clock_mono_usec());
	}
	history_rig_ask(&r, EBB_HISTORY_DECISIONS);
	rows = history_rig_wait(&r);
	assert_int_equal(r.err, 0);
	assert_int_equal(json_array_size(rows), 300);
	assert_true(json_number_value(json_object_get(json_array_get(rows, 0), "ts")) > 1e9);
	json_decref(rows);
	/* What is asked when all ends is answered, too. */
	history_rig_ask(&r, EBB_HISTORY_DECISIONS);
	history_rig_close(&r);
	assert_true(r.is_answered);
	json_decref(r.rows);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(test_##name, history_folder_make, history_folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(round_trip), TEST(trim), TEST(damaged), TEST(damaged_again), TEST(no_room),
		TEST(no_file), TEST(other_version),
		TEST(last_version), TEST(impossible_place), TEST(charge), TEST(charge_trim),
		TEST(damaged_charges), TEST(foreign_charges),
		TEST(batches),
	};

	return cmocka_run_group_tests_name("daemon/history", tests, NULL, NULL);
}
